"""The pages of docs/ that the bench writes: their structure, from figures made for a test."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench import cost_page, emr_cost, kept, pages
from bench.goals import GOALS
from bench.kept import Part
from bench.rounds import Cost, Measure
from functions.healing.night_workers import WORKER
from tests.bench.markdown import tables_of

GB = 10**9


def _measure(name: str, walls: dict[str, float]) -> Measure:
    costs = {way: [Cost(each, each)] * 3 for way, each in walls.items()}
    return Measure(name, f"About {name}", next(iter(walls)), costs)


def _nights(fixed_ms: float, ms_a_gb: float) -> Measure:
    """Nights of 1 and 10 GB that take so long."""
    costs = {
        f"{size} GB": [
            Cost(fixed_ms + size * ms_a_gb, 1, 0, 2_600, size * GB, 8.0 * size * GB),
        ]
        for size in (1, 10)
    }
    return Measure("nights", "Whole nights", "1 GB", costs)


def _night(**more: Measure) -> Part:
    found = {
        "ingest": _measure("ingest", {"limit (here)": 500, "native reader": 900}),
        "nights": _nights(10_000, 30_000),
        **more,
    }
    return Part("2026-11-22T01:00Z", "make bench", "2 cores", found)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    parts = {"night": _night()}
    kept.write(parts, tmp_path / "measures.json")
    assert kept.read(tmp_path / "measures.json") == parts


@pytest.mark.parametrize("text", ["{}", '{"schema": 1, "cold": {}}'])
def test_another_schema_is_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "measures.json").write_text(text)
    assert kept.read(tmp_path / "measures.json") == {}
    assert kept.read(tmp_path / "missing.json") == {}


def test_every_goal_and_every_measure_is_on_the_page() -> None:
    page = pages.performance({"night": _night()})
    goals, *measures = tables_of(page)
    assert [row[0] for row in goals[2:]] == [each.text for each in GOALS]
    assert [table[2][0] for table in measures] == ["limit (here)", "1 GB"]
    assert "native reader | 900 ms | 1.80" in page
    assert "Taken 2026-11-22T01:00Z by `make bench` on 2 cores." in page
    assert "{" not in page


def test_rows_are_as_long_as_their_headings() -> None:
    page = pages.performance({"night": _night(), "handler": _night()})
    assert len(tables_of(page)) == 5
    assert {len({len(row) for row in table}) for table in tables_of(page)} == {1}


def test_a_missed_goal_is_said() -> None:
    small = {
        "native reader, 20 files of 10,000": 100.0,
        "native reader, 2,000 files of 100": 201.0,
    }
    page = pages.performance({"night": _night(files=_measure("files", small))})
    assert "\nMissed: 2,000 small files, against the same volume in large ones.\n" in page
    small["native reader, 2,000 files of 100"] = 200
    page = pages.performance({"night": _night(files=_measure("files", small))})
    assert "\nNone of what was measured is missed.\n" in page


def test_the_picture_has_a_bar_for_every_way(tmp_path: Path) -> None:
    """And is XML that fetches nothing, on its own paper."""
    peers = _measure("peers", {"native reader": 900, "Polars": 2_700})
    pages.write({"night": _night(peers=peers)}, tmp_path)
    text = (tmp_path / "performance.svg").read_text()
    words = "".join(ET.fromstring(text).itertext())  # noqa: S314 - our own
    for expected in (
        "limit (here)",
        "500 ms",
        "900 ms, 1.8 x limit",
        "2.70 s, 3.0 x native reader",
    ):
        assert expected in words
    assert "prefers-color-scheme: dark" in text
    assert "href" not in text


def test_the_night_has_to_be_measured_first(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="make bench ONLY=night"):
        pages.write({"handler": _night()}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_rate_is_what_more_bytes_took() -> None:
    rate = emr_cost.rate(_nights(10_000, 30_000))
    assert rate.fixed_seconds == pytest.approx(10)
    assert rate.seconds_a_byte == pytest.approx(30 / GB)
    assert rate.compression == 8


def test_nights_that_tell_no_rate_are_refused() -> None:
    with pytest.raises(ValueError, match="quiet"):
        emr_cost.rate(_nights(10_000, 0))


def test_a_night_is_billed_for_driver_and_executors_from_the_start() -> None:
    rate = emr_cost.Rate(fixed_seconds=10, seconds_a_byte=30 / GB, compression=8)
    one, two = (emr_cost.estimate(rate, 100 * GB, executors) for executors in (1, 2))
    start = emr_cost.START_SECONDS + 10
    assert [one.seconds, two.seconds] == pytest.approx([start + 3_000, start + 1_500])
    hourly = WORKER.vcpu * emr_cost.VCPU_HOUR + WORKER.memory_gb * emr_cost.GB_HOUR
    assert one.dollars == pytest.approx(2 * one.seconds / 3_600 * hourly)
    assert two.dollars == pytest.approx(3 * two.seconds / 3_600 * hourly)


def test_no_night_is_billed_for_less_than_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emr_cost, "START_SECONDS", 1)
    assert emr_cost.estimate(emr_cost.Rate(1, 1e-9, 8), 1, 1).seconds == 60


def test_as_many_executors_as_end_it_within_an_hour() -> None:
    rate = emr_cost.Rate(fixed_seconds=10, seconds_a_byte=30 / GB, compression=8)
    assert emr_cost.within_an_hour(rate, 1).executors == 1
    for volume in (100 * GB, 120 * GB, 1000 * GB):
        found = emr_cost.within_an_hour(rate, volume)
        assert found.seconds <= 3_600
        if found.executors > 1:
            assert emr_cost.estimate(rate, volume, found.executors - 1).seconds > 3_600


def test_what_stands_around_emrs_part_stays() -> None:
    new = cost_page.with_emr("", _night())
    assert new.startswith("# What Mendq costs on AWS\n")
    around = f"# Title\n\nBefore.\n\n{new[new.index(cost_page.BEGIN) :]}\nAfter.\n"
    again = cost_page.with_emr(around.replace("Nothing of this ran on EMR", "stale"), _night())
    assert again == around
    assert "{" not in new
