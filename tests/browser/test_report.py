"""The report as a reader's browser shows it: at a desk, on a phone, in the dark, on paper."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from functions.report import page, read
from tests.browser.chromium import Chromium
from tests.functions.report.weeks import DAYS, arn, busy_week, incident, week

pytestmark = pytest.mark.browser
SHOTS = Path(__file__).parents[2] / "build" / "browser"
DESK, PHONE = 1240, 360
WIDE_NAME = "W" * 80
HOSTILE = "</title></style><script>document.title = 'run'</script><img src=x onerror=alert(1)>"


def _weeks() -> dict[str, dict[str, Any]]:
    missing = {"nights_missing": [f"{each}" for each in DAYS], "files_read": 0, "bytes_read": 0}
    unbroken = incident(
        queue_arn=arn(WIDE_NAME),
        label=WIDE_NAME,
        outcome=WIDE_NAME,
        why=WIDE_NAME * 3,
        case_id=WIDE_NAME,
        error_codes=[WIDE_NAME],
        principals=[f"arn:aws:iam::123456789012:role/{WIDE_NAME}"],
    )
    return {
        "busy": busy_week(),
        "quiet": week(),
        "nothing-read": week(not_seen=missing),
        "one": week([incident()], not_seen={"nights_missing": ["2026-11-10"]}),
        "long-names": week([unbroken] * 3),
        "hostile": week([incident(label=HOSTILE, why=HOSTILE, queue_arn=arn(HOSTILE))] * 2),
    }


WEEKS = _weeks()


@pytest.fixture
def opened(tmp_path: Path, browser: Chromium) -> Any:
    def open_page(html: str, width: int = DESK, *, dark: bool = False) -> Chromium:
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        browser.open(path, width, dark=dark)
        return browser

    return open_page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, 768, PHONE])
@pytest.mark.parametrize("name", WEEKS)
def test_nothing_is_wider_than_the_window(opened: Any, name: str, width: int, dark: bool) -> None:
    shown = opened(page(read(WEEKS[name])), width, dark=dark)
    shown.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
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
    shown = opened(page(read(week())).replace("</main>", wide), PHONE)
    assert len(shown.evaluate(SPILLS)) == 1
    assert shown.evaluate("document.documentElement.scrollWidth") > PHONE


CHOSEN = "document.querySelector('img').currentSrc"
IS_DRAWN = "(image => image.complete && image.naturalWidth > 0)(document.querySelector('img'))"


def test_each_window_and_light_has_its_own_picture(opened: Any) -> None:
    html = page(read(busy_week()))
    chosen = set()
    for width in (DESK, PHONE):
        for dark in (False, True):
            shown = opened(html, width, dark=dark)
            assert shown.evaluate(IS_DRAWN)
            chosen.add(shown.evaluate(CHOSEN))
    assert len(chosen) == 4


def test_the_page_asks_for_nothing_but_itself(opened: Any) -> None:
    asked = opened(page(read(busy_week()))).fetched
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
    html = page(read(week())).replace("</main>", PLANTED)
    shown = opened(html)
    assert shown.evaluate(TITLE).startswith("No incidents this week.")
    assert not [each for each in shown.fetched if "planted.png" in each]


def test_it_is_the_policy_that_stops_it(opened: Any) -> None:
    html = POLICY.sub("", page(read(week())).replace("</main>", PLANTED))
    shown = opened(html)
    assert shown.evaluate(TITLE) == "run"
    assert [each for each in shown.fetched if "planted.png" in each]


def test_a_hostile_name_is_only_text(opened: Any) -> None:
    shown = opened(page(read(WEEKS["hostile"])))
    assert shown.evaluate("document.scripts.length") == 0
    assert shown.evaluate("document.images.length") == 1
    assert shown.evaluate("document.querySelector('td code').textContent").startswith("</title>")
    assert shown.evaluate(TITLE).startswith("2 incidents")


def test_the_phone_says_what_the_head_of_the_table_says(opened: Any) -> None:
    shown = opened(page(read(busy_week())), PHONE)
    label = "getComputedStyle(document.querySelectorAll('.cases td')[1], '::before').content"
    assert shown.evaluate(label) == '"Queue"'
    assert opened(page(read(busy_week())), DESK).evaluate(label) == "none"


def test_it_prints_on_a4_in_light_colours(opened: Any) -> None:
    shown = opened(page(read(busy_week())), DESK, dark=True)
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
