"""The report as a reader's browser shows it: at a context, on a phone, in the dark, on paper."""

from __future__ import annotations

import re
import zlib
from typing import Any

import pytest

from mendq.report.drawing import DARK, LIGHT
from tests.browser.reports import CONTEXT, OPEN_ALL, PHONE, SHOTS, TABLET, WEEKS, html_of

pytestmark = pytest.mark.browser
READS = [(CONTEXT, False), (CONTEXT, True), (PHONE, False), (PHONE, True)]


@pytest.mark.parametrize(("width", "dark"), [*READS, (TABLET, False)])
@pytest.mark.parametrize("name", WEEKS)
def test_nothing_is_wider_than_the_window(opened: Any, name: str, width: int, dark: bool) -> None:
    shown = opened(html_of(name), width, dark=dark)
    shown.evaluate(OPEN_ALL)
    shown.screenshot(SHOTS / f"{name}-{width}{'-dark' if dark else ''}.png")
    assert shown.evaluate("innerWidth") == width
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.evaluate(SPILLS) == []


# Boxes that reach out of the window without a frame of their own that scrolls.
SPILLS = """[...document.querySelectorAll('body *')]
  .filter(each => !each.closest('.scrolls, thead') || each.matches('.scrolls'))
  .filter(each => each.getBoundingClientRect().right > innerWidth + 0.5)
  .map(each => each.outerHTML.slice(0, 80))"""


def test_a_box_that_spills_would_be_seen(opened: Any) -> None:
    wide = '<p class="planted" style="width: 2000px">wide</p></main>'
    shown = opened(html_of("quiet").replace("</main>", wide), PHONE)
    assert len(shown.evaluate(SPILLS)) == 1
    assert shown.evaluate("document.documentElement.scrollWidth") > PHONE


SHOWN = """[...document.querySelectorAll('.wide img, .narrow img')]
  .filter(each => each.checkVisibility() && each.complete && each.naturalWidth > 0)
  .map(each => each.src)"""


def test_each_window_and_light_has_its_own_picture(opened: Any) -> None:
    html = html_of("busy")
    chosen = set()
    for width in (CONTEXT, PHONE):
        for dark in (False, True):
            shown = opened(html, width, dark=dark)
            (one,) = shown.evaluate(SHOWN)
            chosen.add(one)
    assert len(chosen) == 4


def test_the_phone_says_what_the_head_of_the_table_says(opened: Any) -> None:
    shown = opened(html_of("busy"), PHONE)
    symptom = "getComputedStyle(document.querySelector('.cases td.where'), '::before').content"
    assert shown.evaluate(symptom) == '"Queue"'
    assert opened(html_of("busy"), CONTEXT).evaluate(symptom) == "none"


def test_it_prints_on_a4_in_light_colours(opened: Any) -> None:
    shown = opened(html_of("busy"), CONTEXT, dark=True)
    path = SHOTS / "busy.pdf"
    shown.print_a4(path)
    assert b"/MediaBox [0 0 594.9" in path.read_bytes()
    fills = _fills(path.read_bytes())
    assert {LIGHT.series[0], LIGHT.ink} <= fills
    assert not {DARK.series[0], DARK.ink, DARK.paper} & fills


def _fills(pdf: bytes) -> set[str]:
    """The colours that a PDF fills shapes and messages with, as `#rrggbb`."""
    streams = re.findall(rb"FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    drawn = b"".join(zlib.decompressobj().decompress(each) for each in streams)
    found = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg", drawn)
    return {"#" + "".join(f"{round(255 * float(part)):02x}" for part in each) for each in found}


IS_SHOWN = "document.querySelector('details.more table').checkVisibility()"


def test_what_is_folded_away_is_on_paper(opened: Any) -> None:
    shown = opened(html_of("largest"))
    assert not shown.evaluate(IS_SHOWN)
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert shown.evaluate(IS_SHOWN)
    shown.print_a4(SHOTS / "largest.pdf")
