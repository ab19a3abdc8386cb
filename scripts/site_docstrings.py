"""Turn what is reStructuredText in docstrings into Markdown, for the pages of the API.

Equations become MathML, which browsers show by themselves: no script, no fonts, no network.
"""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

import demix
import demix.papers

DISPLAY = re.compile(r"^\.\. math::[ ]*(.*(?:\n[ ]+\S.*)*)", re.MULTILINE)
# The module of each public name, where its documentation is.
_MODULE_OF = {
    name: f"{face.__name__}.{module}"
    for face in (demix, demix.papers)
    for name, module in face._MODULE_OF.items()
}
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
    name = found[2].removeprefix("demix.").removeprefix("papers.")
    module = _MODULE_OF.get(name.split(".")[0])
    return f"`{name}`" if module is None else f"[`{name}`][{module}.{name}]"


def _math(equation: str, display: str) -> str:
    # A tilde after a letter stands above it: z~ is the positive of z.
    equation = re.sub(r"(\w)~", r"\\tilde{\1}", " ".join(equation.split()))
    return convert(equation, display=display)
