"""The picture can be parsed, holds every word, and nothing runs out of its box."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest

from infra.diagram.card import Card, Section
from infra.diagram.cards import sections
from infra.diagram.drawing import COLUMN, MARGIN, drawing, in_words
from tests.infra.synthesized import template_of

SVG = "{http://www.w3.org/2000/svg}"


def _drawn(columns: int, *cards: Card) -> ET.Element:
    found = (Section("made up", cards),) if cards else _sections()
    return ET.fromstring(drawing(found, columns, "what it is"))  # noqa: S314 - our own


def _sections() -> tuple[Section, ...]:
    return sections(template_of("tagged").raw["Resources"])


def _texts(picture: ET.Element) -> str:
    return " ".join(each.text or "" for each in picture.iter(f"{SVG}text"))


@pytest.mark.parametrize("columns", [1, 2])
def test_every_card_is_in_it_with_its_words(columns: int) -> None:
    said = _texts(_drawn(columns))
    for section in _sections():
        assert section.title in said
        for card in section.cards:
            assert card.title in said
            for words in (*card.started_by, *card.touches):
                assert words in said


@pytest.mark.parametrize("columns", [1, 2])
def test_no_box_is_wider_than_its_column_nor_lower_than_the_picture(columns: int) -> None:
    picture = _drawn(columns)
    width, height = (float(each) for each in picture.attrib["viewBox"].split()[2:])
    back, *boxes = picture.iter(f"{SVG}rect")
    assert (back.attrib["width"], back.attrib["height"]) == (f"{width:g}", f"{height:g}")
    for box in boxes:
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= COLUMN


def test_long_words_are_put_on_lines() -> None:
    long = "a rule that has very much to say about what it lets through to its target, and why"
    picture = _drawn(1, Card("one", "", (long,)))
    assert long in _texts(picture)
    assert len(list(picture.iter(f"{SVG}text"))) > 3


def test_what_a_description_holds_stays_text() -> None:
    picture = _drawn(1, Card("<script>", 'a & "b"', ("</text>",)))
    assert '<script> a & "b"' in _texts(picture).replace("</text> ", "")
    assert picture.find(f".//{SVG}script") is None


def test_columns_are_filled_alike() -> None:
    cards = tuple(Card(f"card {n}", "says", ("by it",)) for n in range(3))
    four = tuple(Section(f"section {n}", cards) for n in range(4))
    assert _height(four, 2) < 0.6 * _height(four, 1)


def test_columns_are_filled_alike_though_no_cut_would_fill_them() -> None:
    cards = tuple(Card(f"card {n}", "says", ("by it",)) for n in range(5))
    uneven = tuple(Section(f"section {n}", cards[:n]) for n in (2, 5, 3))
    assert _height(uneven, 2) < 0.55 * _height(uneven, 1)
    first = ET.fromstring(drawing(uneven, 2, "")).find(f"{SVG}g")  # noqa: S314 - our own
    assert first is not None
    assert first.attrib["transform"] == f"translate({MARGIN} {MARGIN})"
    assert first.findtext(f"{SVG}text") == "section 2"


def test_the_stack_s_columns_end_alike() -> None:
    assert _height(_sections(), 2) < 0.53 * _height(_sections(), 1)


def _height(found: Sequence[Section], columns: int) -> float:
    picture = ET.fromstring(drawing(found, columns, ""))  # noqa: S314 - our own
    return float(picture.attrib["viewBox"].split()[3])


def test_in_words_each_card_is_a_row_of_four() -> None:
    rows = [line for line in in_words(_sections()) if line.startswith("|")]
    cards = sum(len(each.cards) for each in _sections())
    assert len(rows) == cards + 2 * len(_sections())
    assert {row.count("|") for row in rows} == {5}
