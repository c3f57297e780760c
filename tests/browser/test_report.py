"""The report as a reader's browser shows it: at a desk, on a phone, in the dark, on paper."""

from __future__ import annotations

import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from functions.report import page, read
from tests.browser.axe import PACKAGE, AxeMissing, axe
from tests.browser.chromium import Chromium
from tests.browser.reports import WEEKS

pytestmark = pytest.mark.browser
SHOTS = Path(__file__).parents[2] / "build" / "browser"
DESK, TABLET, PHONE = 1240, 768, 360


@cache
def html_of(name: str) -> str:
    return page(read(WEEKS[name]))


@pytest.fixture
def opened(tmp_path: Path, browser: Chromium) -> Any:
    def open_page(html: str, width: int = DESK, *, dark: bool = False) -> Chromium:
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        browser.open(path, width, dark=dark)
        return browser

    return open_page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, TABLET, PHONE])
@pytest.mark.parametrize("name", WEEKS)
def test_nothing_is_wider_than_the_window(opened: Any, name: str, width: int, dark: bool) -> None:
    shown = opened(html_of(name), width, dark=dark)
    shown.evaluate(OPEN_ALL)
    shown.screenshot(SHOTS / f"{name}-{width}{'-dark' if dark else ''}.png")
    assert shown.evaluate("innerWidth") == width
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.evaluate(SPILLS) == []


OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true })"
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


CHOSEN = "document.querySelector('img').currentSrc"
IS_DRAWN = "(image => image.complete && image.naturalWidth > 0)(document.querySelector('img'))"


def test_each_window_and_light_has_its_own_picture(opened: Any) -> None:
    html = html_of("busy")
    chosen = set()
    for width in (DESK, PHONE):
        for dark in (False, True):
            shown = opened(html, width, dark=dark)
            assert shown.evaluate(IS_DRAWN)
            chosen.add(shown.evaluate(CHOSEN))
    assert len(chosen) == 4


def test_the_page_asks_for_nothing_but_itself(opened: Any) -> None:
    asked = opened(html_of("busy")).fetched
    assert {each.partition(":")[0] for each in asked} == {"file", "data"}
    assert sum(each.startswith("file:") for each in asked) == 1


PLANTED = (
    "<script>document.title = 'run'</script>"
    "<img src='data:,' onerror=\"document.title = 'run'\">"
    "<img src='file:///planted.png'></main>"
)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# A page has loaded when its scripts have run and its pictures came or failed.
TITLE = "document.title"


def test_a_planted_script_does_not_run_and_a_planted_picture_is_not_fetched(opened: Any) -> None:
    html = html_of("quiet").replace("</main>", PLANTED)
    shown = opened(html)
    assert shown.evaluate(TITLE).startswith("No incidents this week.")
    assert not [each for each in shown.fetched if "planted.png" in each]


def test_it_is_the_policy_that_stops_it(opened: Any) -> None:
    html = POLICY.sub("", html_of("quiet").replace("</main>", PLANTED))
    shown = opened(html)
    assert shown.evaluate(TITLE) == "run"
    assert [each for each in shown.fetched if "planted.png" in each]


def test_a_hostile_name_is_only_text(opened: Any) -> None:
    shown = opened(html_of("hostile"))
    assert shown.evaluate("document.scripts.length") == 0
    assert shown.evaluate("[...document.images].every(each => each.src.startsWith('data:image'))")
    names = shown.evaluate("[...document.querySelectorAll('td code')].map(it => it.textContent)")
    assert "<script>alert(1)</script>" in names
    assert re.match(r"\d+ incidents", shown.evaluate(TITLE))


def test_the_phone_says_what_the_head_of_the_table_says(opened: Any) -> None:
    shown = opened(html_of("busy"), PHONE)
    label = "getComputedStyle(document.querySelector('.cases td.where'), '::before').content"
    assert shown.evaluate(label) == '"Queue"'
    assert opened(html_of("busy"), DESK).evaluate(label) == "none"


def test_it_prints_on_a4_in_light_colours(opened: Any) -> None:
    shown = opened(html_of("busy"), DESK, dark=True)
    dark = shown.evaluate(CHOSEN)
    path = SHOTS / "busy.pdf"
    shown.print_a4(path)
    assert b"/MediaBox [0 0 594.9" in path.read_bytes()
    scheme = {"name": "prefers-color-scheme", "value": "dark"}
    shown.call("Emulation.setEmulatedMedia", media="print", features=[scheme])
    assert shown.evaluate("getComputedStyle(document.body).color") == "rgb(22, 32, 44)"
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # Chromium chooses a picture's source a moment after the media has changed.
    patience = time.monotonic() + 10
    while shown.evaluate(CHOSEN) == dark and time.monotonic() < patience:
        time.sleep(0.02)
    assert shown.evaluate(CHOSEN) != dark


RUN_AXE = """axe.run(document, {resultTypes: ['violations']}).then(found => ({
  passes: found.passes.length,
  violations: found.violations.map(each => [each.id, each.nodes.map(it => it.html).slice(0, 3)]),
}))"""


@pytest.fixture(scope="session")
def rules() -> str:
    try:
        return axe()
    except AxeMissing as missing:
        pytest.skip(f"{PACKAGE} could not be fetched: {missing}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("name", WEEKS)
def test_axe_finds_no_violation(opened: Any, rules: str, name: str, width: int, dark: bool) -> None:
    shown = opened(html_of(name), width, dark=dark)
    shown.evaluate(OPEN_ALL)
    shown.evaluate(rules)
    found = shown.evaluate(RUN_AXE)
    assert found["passes"] > 10
    assert found["violations"] == []


def test_axe_would_find_one(opened: Any, rules: str) -> None:
    shown = opened(html_of("busy").replace("</main>", '<img src="data:,"></main>'))
    shown.evaluate(rules)
    found = shown.evaluate(RUN_AXE)
    assert [each[0] for each in found["violations"]] == ["image-alt"]


@pytest.mark.parametrize("name", WEEKS)
def test_nothing_on_the_page_is_against_its_policy(opened: Any, name: str) -> None:
    """Chromium reports to the console what a policy stopped, also in a style or a picture."""
    assert opened(html_of(name)).stopped == []


def test_what_the_policy_stops_is_reported(opened: Any) -> None:
    shown = opened(html_of("quiet").replace("</main>", PLANTED))
    assert len(shown.stopped) >= 3


REACHED_BY_KEYS = """[...document.querySelectorAll('.scrolls')].every(each => each.tabIndex === 0)
  && [...document.querySelectorAll('summary')].every(each => each.tabIndex === 0)"""
SCROLLS = """[...document.querySelectorAll('body *')].filter(each =>
  each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1
  && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX) && each.tabIndex < 0).length"""


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("name", ["busy", "long-names", "largest"])
def test_whatever_scrolls_or_opens_is_reached_by_keys(opened: Any, name: str, width: int) -> None:
    shown = opened(html_of(name), width)
    shown.evaluate(OPEN_ALL)
    assert shown.evaluate(REACHED_BY_KEYS)
    assert shown.evaluate(SCROLLS) == 0
    focused = []
    for _ in range(12):
        for kind in ("keyDown", "keyUp"):
            shown.call("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)
        focused.append(shown.evaluate("document.activeElement.tagName"))
    assert {"SUMMARY", "DIV"} <= set(focused)


IS_SHOWN = "document.querySelector('details.more table').checkVisibility()"


def test_what_is_folded_away_is_on_paper(opened: Any) -> None:
    shown = opened(html_of("largest"))
    assert not shown.evaluate(IS_SHOWN)
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert shown.evaluate(IS_SHOWN)
    shown.print_a4(SHOTS / "largest.pdf")
