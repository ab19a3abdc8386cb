"""The pages of fits in a real browser: on a screen, in the dark, by keyboard and on paper."""

from __future__ import annotations

import re
import zlib

import pytest
from fits import blobs, fit, runs

from browser import Seen, see
from demix.report.blocks import write_page
from demix.report.compare import compare_page
from demix.report.fit import fit_page
from demix.report.style import PALETTE

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='taken'\"></script>"

# What a reader with a keyboard meets: everything that can hold the focus, and whether it did.
WALK = """<script>
const stops = Array.from(document.querySelectorAll('a[href], [tabindex="0"]'));
const reached = stops.filter((stop) => { stop.focus(); return document.activeElement === stop; });
const seen = Array.from(document.images).filter((image) => image.naturalWidth > 1);
document.body.dataset.stops = stops.length;
document.body.dataset.reached = reached.length;
document.body.dataset.images = document.images.length;
document.body.dataset.seen = seen.length;
</script></body>"""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Seen:
    """The page of a fit in the dark, after a walk over all that can hold the focus."""
    page = fit_page(**fit(n=2, images=blobs(400)["images"], factor_names=[HOSTILE, "down"]))
    path = write_page(page, tmp_path_factory.mktemp("fit") / "fit.html")
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", WALK), encoding="utf-8")
    return see(path, dark=True, paper=True)


@pytest.fixture(scope="module")
def walked(fitted) -> str:
    return fitted.dom


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Seen:
    """The page of a comparison in the light."""
    page = compare_page(runs(HOSTILE, "second"), agreement=[[1.0, 0.4], [0.4, 1.0]])
    path = write_page(page, tmp_path_factory.mktemp("runs") / "runs.html")
    return see(path)


@pytest.fixture(scope="module")
def compared_dom(compared) -> str:
    return compared.dom


def plots(dom: str) -> list[str]:
    text = re.sub(r"<script\b.*?</script>", "", dom, flags=re.DOTALL)
    return re.split(r'<div class="plot(?=[ "])', text)[1:]


def data(dom: str, name: str) -> int:
    return int(re.search(rf'data-{name}="(\d+)"', dom)[1])


def test_every_figure_of_a_fit_is_drawn(walked):
    training, latents, courses, scatter, before, after = plots(walked)
    assert all('class="main-svg"' in plot for plot in plots(walked))
    # Null, training, held out and the step that was kept; and the same in the legend.
    assert training.count('class="js-line"') == 4 + 4
    assert latents.count('class="point"') == 400 + 2 * 30
    assert "r = " in latents
    assert courses.count('class="js-line"') == 2
    assert scatter.count('class="point"') == 2 * 400
    assert before.count("<image") == after.count("<image") == 1


def test_images_are_decoded_and_described(walked):
    assert data(walked, "images") == data(walked, "seen") == 14
    images = re.findall(r"<img [^>]*>", plots(walked)[2])
    assert len(images) == 14
    assert all(re.search(r'alt="Image \d+, where .+ is [−\d.]+\."', image) for image in images)


def test_everything_that_can_be_reached_is_reached_by_keyboard(walked):
    assert data(walked, "stops") == data(walked, "reached")
    # The way past the heading, a link per section and for provenance; a stop per figure and table.
    assert data(walked, "stops") == 1 + 9 + 1 + 7 + 3


def test_figures_of_a_comparison_are_drawn(compared_dom):
    dots, curves, agreement = plots(compared_dom)
    assert dots.count('class="xerror"') == 2
    assert curves.count('class="js-line"') == 2 + 2
    assert agreement.count("heatmap-label") >= 1


def test_hostile_names_are_shown_as_they_are_and_do_nothing(walked, compared_dom):
    assert "<title>2 latents of 400 rows</title>" in walked
    assert '<th scope="row">&lt;img src=x' in walked
    assert "<title>2 fits side by side</title>" in compared_dom
    assert "<img" not in "".join(plots(compared_dom))
    assert not any("<img src=x" in plot for plot in plots(walked))


@pytest.mark.parametrize(("name", "dark"), [("fitted", True), ("compared", False)])
def test_the_page_is_seen_in_the_colours_of_its_mode(name, dark, request):
    from PIL import Image

    picture = Image.open(request.getfixturevalue(name).picture).convert("RGB")
    colours = {shade: count for count, shade in picture.getcolors(maxcolors=1 << 24)}

    def painted(shade: str, mode: int) -> int:
        value = PALETTE[shade][mode]
        return colours.get(tuple(int(value[i : i + 2], 16) for i in (1, 3, 5)), 0)

    assert painted("paper", dark) > 0.5 * picture.width * picture.height
    assert painted("paper", dark) > 50 * painted("paper", not dark)
    assert painted("accent", dark) > 200
    assert painted("accent", not dark) < 20


def test_figures_follow_the_mode(walked, compared_dom):
    def fill(name: str, mode: int) -> str:
        value = PALETTE[name][mode]
        return "fill: rgb({}, {}, {})".format(*(int(value[i : i + 2], 16) for i in (1, 3, 5)))

    for dark, dom in ((0, compared_dom), (1, walked)):
        drawn = "".join(plots(dom))
        for name in ("accent", "ink"):
            assert fill(name, dark) in drawn
            assert fill(name, 1 - dark) not in drawn


def test_paper_is_light_even_if_the_screen_is_dark(fitted):
    pdf = fitted.paper
    assert 2 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 9
    inks = set()
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            marks = zlib.decompress(stream)
        except zlib.error:
            continue  # a font or an image that is packed in another way
        for ink in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg\b", marks):
            inks.add("#" + "".join(f"{round(255 * float(part)):02x}" for part in ink))
    # Paper is white by itself; what lies on it is black or of the palette.
    assert {PALETTE[name][0] for name in ("ink", "soft", "rule", "accent")} <= inks
    assert not inks & {pair[1] for pair in PALETTE.values()}
