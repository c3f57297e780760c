"""The pictures of the documents stand alone, say that they are made up, and fit a phone."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from docs import pictures
from tests.architecture.test_documents import ROOT

DRAWN = pictures.drawn()
SVG = "{http://www.w3.org/2000/svg}"
# What Arial takes for each character of such a line, at 13 px.
CHARACTER_PIXELS = 6.6


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_a_document_for_light_and_dark_that_says_what_it_is(name: str) -> None:
    root = ET.fromstring(DRAWN[name])  # noqa: S314 - our own picture
    (style,) = root.iter(f"{SVG}style")
    assert "prefers-color-scheme: dark" in (style.text or "")
    texts = [(each.get("class"), each.text or "") for each in root.iter(f"{SVG}text")]
    assert texts[-1] == ("note-below", "The numbers are made up.")
    beside = [*texts[1:], ("", "")]
    for (kind, text), (next_kind, figure) in zip(texts, beside, strict=True):
        line = f"{text}  {figure}" if kind is None and next_kind == "lane-figure" else text
        assert len(line) * CHARACTER_PIXELS <= 350, line


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_shown_in_a_runbook_below_its_why_and_says_so_in_words(name: str) -> None:
    pages = [each.read_text() for each in (ROOT / "docs" / "runbooks").glob("*.md")]
    (page,) = (each for each in pages if f"](../pictures/{name})" in each)
    why = page.partition("\n## Why\n\n")[2]
    assert why.startswith("![")
    assert why.partition(f"](../pictures/{name})")[0].endswith("The numbers are made up.")
    assert (ROOT / "docs" / "pictures" / name).read_text() == DRAWN[name]
