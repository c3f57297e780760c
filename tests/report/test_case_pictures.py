"""The pictures of a case on the page: what is drawn, what is not, and nobody's markup in it."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from mendq.report.drawing import Bar, LanePicture, make_case_pictures
from mendq.report.html_page import make_page
from mendq.report.summary import SummaryUnreadable, read_summary
from tests.report.hostile import PAYLOADS
from tests.report.page_parts import PageParts
from tests.report.weeks import PICTURED, Document, make_incident, make_summary, make_week


def drawn(**changes: object) -> list[LanePicture]:
    """The pictures of one case."""
    (case,) = make_summary([make_incident(**{**deepcopy(PICTURED), **changes})]).cases
    return list(make_case_pictures(case))


def test_two_points_are_no_picture_and_what_nothing_names_is_not_drawn() -> None:
    assert drawn(timeline=PICTURED["timeline"][:2], visibility=[]) == []
    assert "How it went" not in make_page(make_summary([make_incident()]))


def test_each_time_is_beside_its_bar_and_each_bar_begins_where_the_one_before_ended() -> None:
    (line, _) = drawn()
    assert [(each.label, each.figure) for each in line.lanes] == [
        ("first failure", "Mon 9 14:02"),
        ("evidence complete: 4 failed calls", "+1 min 49 s"),
        ("applied: VisibilityTimeout 30 -> 90", "+2 min 9 s"),
        ("closed", "+2 d"),
    ]
    bars = [each.bars[0] for each in line.lanes]
    assert (bars[0], [each.tone for each in bars[1:]]) == (Bar(0, 0), ["calm", "calm", "good"])
    assert [each.begin for each in bars[1:]] == [each.end for each in bars[:-1]]
    assert line.scale_to_pixels(bars[-1].end) == 340


def test_what_consumers_need_stands_on_one_scale_with_the_timeout() -> None:
    (_, need) = drawn()
    assert [
        (each.label, need.scale_to_pixels(each.bars[0].end), each.bars[0].tone)
        for each in need.lanes
    ] == [
        ("Lambda p99", 159.0, "calm"),
        ("timeout before", 113.3, "bad"),
        ("timeout after", 340.0, "good"),
    ]
    assert need.line_position == 30


def test_times_that_run_backwards_or_take_none_are_drawn_within_the_picture() -> None:
    points = PICTURED["timeline"]
    for odd in ([*points[::-1]], [points[0]] * 3):
        (line, *_) = drawn(timeline=odd)
        assert all(0 <= line.scale_to_pixels(bar.begin) <= line.scale_to_pixels(bar.end) <= 340
                   for lane in line.lanes for bar in lane.bars)  # fmt: skip


def test_somebody_elses_words_are_text_in_a_picture() -> None:
    def of(text: str) -> Document:
        points = [{**each, "state": text, "says": text} for each in PICTURED["timeline"]]
        spans = [{**each, "what": text} for each in PICTURED["visibility"]]
        return make_incident(timeline=points, visibility=spans)

    hostile, tame = (
        PageParts(make_page(make_summary([of(each) for each in some])))
        for some in (PAYLOADS, ["tame"] * len(PAYLOADS))
    )
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in tame.elements]


@pytest.mark.parametrize(("name", "most"), [("timeline", 12), ("visibility", 7)])
def test_a_list_that_no_case_fills_is_refused(name: str, most: int) -> None:
    def with_many(count: int) -> Document:
        many: Document = {name: [PICTURED[name][0]] * count}
        return make_week([make_incident(**many)])

    read_summary(json.dumps(with_many(most)).encode())
    with pytest.raises(SummaryUnreadable):
        read_summary(json.dumps(with_many(most + 1)).encode())
