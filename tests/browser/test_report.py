"""The report in a browser: desktop, phone, dark mode and print."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from mendq.report.drawing import DARK_PALETTE, LIGHT_PALETTE
from tests.browser.axe import PACKAGE, AxeMissing, load_axe
from tests.browser.reports import (
    CONTEXT,
    OPEN_ALL,
    PHONE,
    TABLET,
    WEEKS,
    make_mail_html,
    make_report_html,
)

pytestmark = pytest.mark.browser
# Every kind in both lights and both widths, some of them in all.
LOOKED_AT = [
    *((name, width, dark) for name in WEEKS for width, dark in ((CONTEXT, False), (PHONE, True))),
    *[("busy", CONTEXT, True), ("busy", PHONE, False), ("busy", TABLET, False)],
    ("long-names", TABLET, True),
]
# Boxes that reach out of the window without a frame of their own that scrolls.
SPILLS = """[...document.querySelectorAll('body *')]
  .filter(each => !each.closest('.scrolls, thead') || each.matches('.scrolls'))
  .filter(each => each.getBoundingClientRect().right > innerWidth + 0.5)
  .map(each => each.outerHTML.slice(0, 80))"""
RUN_AXE = """axe.run(document, {resultTypes: ['violations']}).then(found => ({
  passes: found.passes.length,
  violations: found.violations.map(each => [each.id, each.nodes.map(it => it.html).slice(0, 3)]),
}))"""


@pytest.fixture(scope="session")
def rules() -> str:
    try:
        return load_axe()
    except AxeMissing as missing:
        return f"throw '{PACKAGE} could not be fetched: {missing}'"


def _violations(shown: Any, rules: str) -> Any:
    if rules.startswith("throw"):
        pytest.skip(rules)
    shown.evaluate(rules)
    found = shown.evaluate(RUN_AXE)
    assert found["passes"] > 10
    return found["violations"]


@pytest.mark.parametrize(("name", "width", "dark"), LOOKED_AT)
def test_report_page_fits_the_window_and_has_no_broken_anchor_policy_or_accessibility_fault(
    open_page: Any, rules: str, name: str, width: int, dark: bool
) -> None:
    shown = open_page(make_report_html(name), width, dark=dark)
    assert shown.blocked_messages == [], "what a policy stopped, also in a style or a picture"
    shown.evaluate(OPEN_ALL)
    assert shown.evaluate("innerWidth") == width
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.evaluate(SPILLS) == []
    assert shown.evaluate(ANCHORS) == []
    assert _violations(shown, rules) == []


@pytest.mark.parametrize("name", ["busy", "quiet", "scan-only", "largest", "long-names"])
@pytest.mark.parametrize(("width", "dark"), [(600, False), (PHONE, True)])
def test_report_mail_fits_the_window_and_meets_accessibility_rules(
    open_page: Any, rules: str, name: str, width: int, dark: bool
) -> None:
    shown = open_page(make_mail_html(name), width, dark=dark)
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.evaluate(SPILLS) == []
    # A mail stands within the page of a mail program, whose landmarks are not its own.
    of_pages = {"landmark-one-main", "region"}
    assert [
        violation for violation in _violations(shown, rules) if violation[0] not in of_pages
    ] == []


def test_report_of_a_quiet_week_is_one_card(open_page: Any) -> None:
    quiet = open_page(make_report_html("quiet"))
    assert quiet.evaluate("document.querySelectorAll('.card, .tile, table').length") == 1
    assert "7 of 7 days read" in quiet.evaluate("document.querySelector('.card').textContent")


def test_waiting_cases_of_a_report_come_before_its_headline(open_page: Any) -> None:
    shown = open_page(make_report_html("scan-only"))
    tops = "['.open', 'h1', '.tiles', '#days'].map(it => document.querySelector(it).offsetTop)"
    found = shown.evaluate(tops)
    assert found == sorted(found)
    assert shown.evaluate(ANCHORS) == []


# Links within the page that lead nowhere, and places of the same name.
ANCHORS = """[
  ...[...document.querySelectorAll('a[href^="#"]')].map(it => it.hash.slice(1))
    .filter(it => !document.getElementById(it)),
  ...[...document.querySelectorAll('[id]')].map(it => it.id)
    .filter((it, n, all) => all.indexOf(it) !== n),
]"""
SHOWN = """[...document.querySelectorAll('.wide img, .narrow img')]
  .filter(each => each.checkVisibility() && each.complete && each.naturalWidth > 0)
  .map(each => each.src)"""
HEAD = "getComputedStyle(document.querySelector('.cases td.where'), '::before').content"


def test_report_shows_another_single_chart_for_each_width_and_colour_scheme(
    open_page: Any,
) -> None:
    chosen = set()
    for width in (CONTEXT, PHONE):
        for dark in (False, True):
            (one,) = open_page(make_report_html("busy"), width, dark=dark).evaluate(SHOWN)
            chosen.add(one)
    assert len(chosen) == 4


@pytest.mark.parametrize(("width", "head"), [(CONTEXT, "none"), (PHONE, '"Queue"')])
def test_table_cell_of_the_report_shows_its_column_name_only_on_a_phone(
    open_page: Any, width: int, head: str
) -> None:
    assert open_page(make_report_html("busy"), width).evaluate(HEAD) == head


IS_SHOWN = "document.querySelector('details.more table').checkVisibility()"


def test_report_in_dark_mode_prints_on_a4_in_light_colours(open_page: Any, tmp_path: Path) -> None:
    shown = open_page(make_report_html("busy"), CONTEXT, dark=True)
    path = tmp_path / "busy.pdf"
    shown.print_a4(path)
    assert b"/MediaBox [0 0 594.9" in path.read_bytes()
    fills = _fills(path.read_bytes())
    assert {LIGHT_PALETTE.series_colours[0], LIGHT_PALETTE.text_colour} <= fills
    assert (
        not {
            DARK_PALETTE.series_colours[0],
            DARK_PALETTE.text_colour,
            DARK_PALETTE.background_colour,
        }
        & fills
    )


def test_folded_rows_of_the_report_are_shown_only_in_print(open_page: Any) -> None:
    shown = open_page(make_report_html("largest"))
    assert not shown.evaluate(IS_SHOWN)
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert shown.evaluate(IS_SHOWN)


def _fills(pdf: bytes) -> set[str]:
    """The colours that a PDF fills shapes and messages with, as `#rrggbb`."""
    streams = re.findall(rb"FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    drawn = b"".join(zlib.decompressobj().decompress(stream) for stream in streams)
    fills = set()
    for colour in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg", drawn):
        fills.add("#" + "".join(f"{round(255 * float(part)):02x}" for part in colour))
    return fills
