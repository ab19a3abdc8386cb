"""An SVG as part of a page: checked, without reach beyond itself, in the colours of the page."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from demix._support.errors import DemixError
from demix.report.style import palette_variables

_MARKS = {
    *("svg", "g", "defs", "use", "clipPath", "text", "tspan"),
    *("path", "rect", "line", "circle", "ellipse", "polyline", "polygon"),
}
# Left out: what nobody sees, and style sheets, which would reach every picture of the page.
_DROPPED = {"metadata", "style", "title", "desc"}
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")


def parse_svg(svg: str) -> Element:
    """Return the root of an SVG; raise if it is broken, runs scripts or refers to the outside."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise DemixError(f"a picture must be an SVG, but its XML is broken: {error}") from error
    _clean(root)
    if root.tag != "svg" or len(root.get("viewBox", "").split()) != 4:
        raise DemixError("a picture must be an svg element with a viewBox of four numbers")
    return root


def inline_svg(svg: str, prefix: str) -> tuple[str, str]:
    """Return viewBox and contents of an SVG, for an ``svg`` element inside HTML.

    Ids begin with ``prefix``, so that those of two pictures on one page differ. Colours of the
    palette become its CSS variables, so that the picture follows the page into dark mode.
    """
    root = parse_svg(svg)
    variables = palette_variables()

    def shade(match: re.Match[str]) -> str:
        variable = variables.get(match[0])
        return f"var({variable})" if variable else match[0]

    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                value = prefix + value
            elif name == "href":
                value = f"#{prefix}{value[1:]}"
            elif name == "style":
                value = _COLOUR.sub(shade, value)
            element.set(name, value.replace("url(#", f"url(#{prefix}"))
    contents = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    return root.attrib["viewBox"], contents


def _clean(element: Element) -> None:
    element.tag = _local(element.tag)
    if element.tag not in _MARKS:
        raise _refusal(f"<{element.tag}>")
    element.attrib = {_local(name): value for name, value in element.attrib.items()}
    for name, value in element.attrib.items():
        outside = name == "href" and not value.startswith("#")
        if outside or name.startswith("on") or re.search(r"url\((?!#)", value):
            raise _refusal(f'{name}="{value}"')
    for child in list(element):
        if _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child)


def _local(name: str) -> str:
    # HTML knows the elements of SVG without their namespace.
    return name.rpartition("}")[2]


def _refusal(what: str) -> DemixError:
    return DemixError(f"a picture holds marks and text only, but this one has {what}; remove it")
