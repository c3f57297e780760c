"""Pictures of the docs: dark mode, size, texts and placement."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from docs import pictures
from tests.prove import scale
from tests.source_files import ROOT

DRAWN = pictures.draw_pictures()
SVG = "{http://www.w3.org/2000/svg}"
# What Arial takes for each character of such a line, at 13 px.
CHARACTER_PIXELS = 6.6


@pytest.mark.parametrize("name", DRAWN)
def test_docs_picture_has_a_dark_mode(name: str) -> None:
    root = ET.fromstring(DRAWN[name])  # noqa: S314 - our own picture
    (style,) = root.iter(f"{SVG}style")
    assert "prefers-color-scheme: dark" in (style.text or "")


@pytest.mark.parametrize("name", DRAWN)
def test_docs_picture_says_that_its_numbers_are_made_up_and_has_no_wide_line(
    name: str,
) -> None:
    root = ET.fromstring(DRAWN[name])  # noqa: S314 - our own picture
    texts = [(text.get("class"), text.text or "") for text in root.iter(f"{SVG}text")]
    assert texts[-1] == ("note-below", "The numbers are made up.")
    beside = [*texts[1:], ("", "")]
    for (kind, text), (next_kind, figure) in zip(texts, beside, strict=True):
        line = f"{text}  {figure}" if kind is None and next_kind == "lane-figure" else text
        assert len(line) * CHARACTER_PIXELS <= 350, line


@pytest.mark.parametrize("name", DRAWN)
def test_docs_picture_is_shown_below_why_in_a_runbook_with_an_alternative_text(name: str) -> None:
    pages = [path.read_text() for path in (ROOT / "docs" / "runbooks").glob("*.md")]
    (page,) = (page for page in pages if f"](../pictures/{name})" in page)
    why = page.partition("\n## Why\n\n")[2]
    assert why.startswith("![")
    assert why.partition(f"](../pictures/{name})")[0].endswith("The numbers are made up.")


@pytest.fixture(scope="module")
def curves() -> tuple[scale.Curve, ...]:
    """The scale curves. Their costs are counted in a scan and a synthesized stack."""
    return scale.curves()


def test_every_colour_of_the_scale_curves_changes_in_dark_mode(
    curves: tuple[scale.Curve, ...],
) -> None:
    style, end, drawn = pictures.draw_curves(curves).partition("</style>")
    assert end
    for attribute, colour in set(re.findall(r'(fill|stroke)="(#\w+)"', drawn)):
        (dark,) = re.findall(rf'\[{attribute}="{colour}"\]{{{attribute}:(#\w+)}}', style)
        assert dark != colour


def test_scale_curves_name_their_axes_and_first_limit_and_fit_a_phone(
    curves: tuple[scale.Curve, ...],
) -> None:
    root = ET.fromstring(pictures.draw_curves(curves))  # noqa: S314 - our own picture
    assert float(root.get("width", "inf")) <= 380
    texts = [*root.itertext()]
    for curve in curves:
        assert {curve.title, f"{curve.of} (log scale)"} <= {*texts}
        assert "dollars a month (log scale)" in texts
        words, at = next(iter(curve.marks.items()))
        assert f"red: {at:,.0f}, {words}" in texts


def test_each_scale_curve_covers_all_its_limits_and_its_cost_never_falls(
    curves: tuple[scale.Curve, ...],
) -> None:
    for curve in curves:
        assert curve.xs[0] < min(curve.marks.values()), curve.of
        assert max(curve.marks.values()) < curve.xs[-1], curve.of
        sums = [curve.dollars_at(x) for x in curve.xs]
        assert sums == sorted(sums), curve.of
        assert sums[0] > 0, curve.of


def test_scale_model_needs_a_second_executor_above_the_bytes_that_one_can_read() -> None:
    assert scale.executors(0.95 * scale.readable(1)) == 1
    assert scale.executors(1.05 * scale.readable(1)) == 2


def test_scale_model_ends_a_nightly_run_of_nearly_what_seven_executors_read_within_an_hour() -> (
    None
):
    assert scale.nightly_seconds(0.95 * scale.readable(7), 7) < 3_600
