"""Pictures of a case on the report page: timeline and visibility timeout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy

import pytest

from mendq.report.drawing import Bar, LanePicture, make_case_pictures
from mendq.report.html_page import make_page
from mendq.report.summary import SummaryUnreadable, read_summary
from tests.report.hostile import PAYLOADS
from tests.report.page_parts import PageParts
from tests.report.weeks import PICTURED, Document, make_incident, make_summary, make_week


def draw_pictures(**changes: object) -> list[LanePicture]:
    """The pictures of one case."""
    (case,) = make_summary([make_incident(**{**deepcopy(PICTURED), **changes})]).cases
    return list(make_case_pictures(case))


def test_case_with_two_timeline_points_and_no_consumer_needs_has_no_picture() -> None:
    assert draw_pictures(timeline=PICTURED["timeline"][:2], visibility=[]) == []
    assert "How it went" not in make_page(make_summary([make_incident()]))


def test_timeline_picture_shows_each_duration_and_starts_each_bar_at_the_previous_end() -> None:
    (line, _) = draw_pictures()
    assert [(lane.label, lane.figure) for lane in line.lanes] == [
        ("first failure", "Mon 9 14:02"),
        ("evidence complete: 4 failed calls", "+1 min 49 s"),
        ("applied: VisibilityTimeout 30 -> 90", "+2 min 9 s"),
        ("closed", "+2 d"),
    ]
    bars = [lane.bars[0] for lane in line.lanes]
    assert (bars[0], [bar.tone for bar in bars[1:]]) == (Bar(0, 0), ["calm", "calm", "good"])
    assert [bar.begin for bar in bars[1:]] == [bar.end for bar in bars[:-1]]
    assert line.scale_to_pixels(bars[-1].end) == 340


def test_visibility_picture_draws_consumer_need_and_timeouts_on_one_scale() -> None:
    (_, need) = draw_pictures()
    assert [
        (lane.label, need.scale_to_pixels(lane.bars[0].end), lane.bars[0].tone)
        for lane in need.lanes
    ] == [
        ("Lambda p99", 159.0, "calm"),
        ("timeout before", 113.3, "bad"),
        ("timeout after", 340.0, "good"),
    ]
    assert need.line_position == 30


def test_timeline_picture_with_reversed_or_equal_times_stays_within_its_frame() -> None:
    points = PICTURED["timeline"]
    for odd in ([*points[::-1]], [points[0]] * 3):
        (line, *_) = draw_pictures(timeline=odd)
        assert all(0 <= line.scale_to_pixels(bar.begin) <= line.scale_to_pixels(bar.end) <= 340
                   for lane in line.lanes for bar in lane.bars)  # fmt: skip


def test_hostile_texts_in_case_pictures_add_no_markup_to_the_page() -> None:
    def make_case(text: str) -> Document:
        points = [{**point, "state": text, "says": text} for point in PICTURED["timeline"]]
        spans = [{**need, "what": text} for need in PICTURED["visibility"]]
        return make_incident(timeline=points, visibility=spans)

    def read_page(texts: Sequence[str]) -> PageParts:
        return PageParts(make_page(make_summary([make_case(text) for text in texts])))

    hostile = read_page(PAYLOADS)
    tame = read_page(["tame"] * len(PAYLOADS))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in tame.elements]


@pytest.mark.parametrize(("name", "most"), [("timeline", 12), ("visibility", 7)])
def test_summary_with_more_timeline_points_or_needs_than_a_case_has_is_refused(
    name: str, most: int
) -> None:
    def with_many(count: int) -> Document:
        many: Document = {name: [PICTURED[name][0]] * count}
        return make_week([make_incident(**many)])

    read_summary(json.dumps(with_many(most)).encode())
    with pytest.raises(SummaryUnreadable):
        read_summary(json.dumps(with_many(most + 1)).encode())
