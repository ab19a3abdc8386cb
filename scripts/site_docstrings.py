"""Turn what is reStructuredText in docstrings into Markdown, for the pages of the API.

Equations become MathML, which browsers show by themselves: no script, no fonts, no network.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert

import demix

DISPLAY = re.compile(r"^\.\. math::[ ]*(.*(?:\n[ ]+\S.*)*)", re.MULTILINE)
ROLE = re.compile(r":(math|class|func|meth|attr|mod):`([^`]+)`")


class Readable(griffe.Extension):
    """Rewrites every docstring once it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """Return a docstring with equations as MathML and references as links."""
    docstring = DISPLAY.sub(lambda found: _math(found[1], "block"), docstring)
    return ROLE.sub(_role, docstring)


def _role(found: re.Match[str]) -> str:
    if found[1] == "math":
        return _math(found[2], "inline")
    name = found[2].removeprefix("demix.")
    room = demix._ROOM_OF.get(name.split(".")[0])
    if room is None:
        return f"`{name}`"
    # A function in a module of its own name is found behind it.
    own = (Path(demix.__file__).parent / room / f"{name}.py").exists()
    return f"[`{name}`][demix.{room}.{f'{name}.{name}' if own else name}]"


def _math(equation: str, display: str) -> str:
    # A tilde after a letter stands above it: z~ is the positive of z.
    equation = re.sub(r"(\w)~", r"\\tilde{\1}", " ".join(equation.split()))
    return convert(equation, display=display)
