"""The report is for every reader: axe-core's rules, and what keys reach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.axe import PACKAGE, AxeMissing, axe
from tests.browser.reports import CONTEXT, OPEN_ALL, PHONE, WEEKS, html_of

pytestmark = pytest.mark.browser
# Every kind in both lights and both widths, one of them in all four.
LOOKED_AT = [
    *((name, width, dark) for name in WEEKS for width, dark in ((CONTEXT, False), (PHONE, True))),
    ("busy", CONTEXT, True),
    ("busy", PHONE, False),
]
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


@pytest.mark.parametrize(("name", "width", "dark"), LOOKED_AT)
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


REACHED_BY_KEYS = """[...document.querySelectorAll('.scrolls')].every(each => each.tabIndex === 0)
  && [...document.querySelectorAll('summary')].every(each => each.tabIndex === 0)"""
SCROLLS = """[...document.querySelectorAll('body *')].filter(each =>
  each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1
  && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX) && each.tabIndex < 0).length"""


@pytest.mark.parametrize("width", [CONTEXT, PHONE])
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
