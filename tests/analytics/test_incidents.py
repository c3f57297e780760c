"""Calls into bursts, 900 seconds join and 901 split; and which case speaks for a burst."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from analytics.cases import CaseTimeline, Transition
from analytics.days import to_microseconds
from analytics.incidents import (
    COLUMN_TYPES_BY_TABLE,
    Burst,
    CaseIndex,
    ListedMute,
    ScanListing,
    group_into_bursts,
    list_scan_incidents,
    select_failed_calls,
)
from analytics.trail import READING_SCHEMA
from mendq.model.account_and_region import AccountAndRegion
from tests.analytics.builders import ACCOUNT, QUEUE_ARN, REGION, make_time, make_transition
from tests.analytics.week_builders import make_queue_arn, make_timeline

CALL = (
    "event_id string, micros bigint, error_code string, queue_arn string, account string, "
    "region string, principal_arn string, symptom string, ignored string, is_own_look boolean"
)
VISIBILITY = "visibility_timeout_too_short"
HOME = AccountAndRegion(ACCOUNT, REGION)
START = make_time("11-10 09:00")


def make_call(seconds: float, **fields: Any) -> dict[str, Any]:
    moment = to_microseconds(START + timedelta(seconds=seconds))
    own: dict[str, Any] = {"account": ACCOUNT, "region": REGION, "queue_arn": QUEUE_ARN}
    own |= {"symptom": VISIBILITY}
    own |= {"error_code": "MessageNotInflight", "principal_arn": "p", "ignored": None}
    own |= {"is_own_look": False}
    return {"event_id": f"{seconds}", "micros": moment, **own, **fields}


def group_calls(spark: SparkSession, *rows: dict[str, Any]) -> list[Any]:
    frame = spark.createDataFrame(list(rows), CALL)
    calls = frame.withColumn("event_time", sf.timestamp_micros("micros")).drop("micros")
    after = (sf.unix_micros("first_failure") - to_microseconds(START)).alias("after")
    return calls.transform(group_into_bursts).select("*", after).collect()


def test_failed_calls_up_to_900_seconds_apart_are_one_burst_and_later_calls_start_another(
    spark: SparkSession,
) -> None:
    rows = group_calls(spark, *map(make_call, (0, 900, 1801, 2701, 3601.000001)))
    bursts = sorted((row["after"], row["failed_calls"]) for row in rows)
    assert bursts == [(0, 2), (1801_000_000, 2), (3601_000_001, 1)]


def test_failed_calls_of_another_account_region_queue_or_symptom_are_another_burst(
    spark: SparkSession,
) -> None:
    others = [
        {"account": "999999999999"},
        {"region": "eu-west-1"},
        {"queue_arn": "unresolved"},
        {"symptom": "unknown:Teapot"},
    ]
    rows = group_calls(
        spark,
        make_call(0),
        *(make_call(1, **key_fields) for key_fields in others),
        make_call(5),
        make_call(0.001),
    )
    assert sorted(row["failed_calls"] for row in rows) == [1, 1, 1, 1, 3]
    assert len({row["incident_id"] for row in rows}) == 5


def test_burst_keeps_its_id_when_later_calls_join_it_and_gets_another_if_it_begins_earlier(
    spark: SparkSession,
) -> None:
    """A night that is read again must not count its incidents twice."""
    [alone] = group_calls(spark, make_call(0))
    [joined] = group_calls(spark, make_call(0), make_call(5))
    [earlier] = group_calls(spark, make_call(-0.001), make_call(0))
    assert joined["incident_id"] == alone["incident_id"]
    assert earlier["incident_id"] != alone["incident_id"]


def test_burst_lists_its_error_codes_and_the_first_ten_of_its_principals_in_alphabetical_order(
    spark: SparkSession,
) -> None:
    [row] = group_calls(
        spark,
        *(make_call(n, principal_arn=f"p{20 - n:02}", error_code=f"c{n % 2}") for n in range(12)),
    )
    assert row["principals"] == [f"p{number:02}" for number in range(9, 19)]
    assert row["error_codes"] == ["c0", "c1"]


def test_burst_has_enough_evidence_only_if_three_calls_failed_within_600_seconds(
    spark: SparkSession,
) -> None:
    times = {"a": (0, 300), "b": (0, 300, 601), "c": (0, 300, 600), "d": (0, 800, 1000, 1400)}
    rows = [
        make_call(moment, queue_arn=name) for name, moments in times.items() for moment in moments
    ]
    enough = {row["queue_arn"]: row["enough_evidence"] for row in group_calls(spark, *rows)}
    assert enough == {"a": False, "b": False, "c": True, "d": True}


def group_calls_by_queue(
    spark: SparkSession, reasons_by_queue: dict[str, tuple[str | None, ...]]
) -> dict[str, Row]:
    """Return the burst of each queue. A call with a reason is one that heal ignores."""
    calls = [
        make_call(second, queue_arn=name, ignored=reason)
        for name, reasons in reasons_by_queue.items()
        for second, reason in enumerate(reasons)
    ]
    return {row["queue_arn"]: row for row in group_calls(spark, *calls)}


def test_failed_calls_that_heal_ignores_are_counted_in_a_burst_but_are_no_evidence(
    spark: SparkSession,
) -> None:
    rows = group_calls_by_queue(
        spark,
        {
            "all ignored": ("no_evidence",) * 5,
            "two count": (None, *("no_evidence",) * 4, None),
            "three count": (None, "no_evidence", None, None),
        },
    )
    seen = {name: (row["failed_calls"], row["enough_evidence"]) for name, row in rows.items()}
    assert seen == {"all ignored": (5, False), "two count": (6, False), "three count": (4, True)}


def test_burst_is_ignored_only_if_all_its_calls_are_and_for_their_most_frequent_reason(
    spark: SparkSession,
) -> None:
    rows = group_calls_by_queue(
        spark,
        {
            "all ignored": ("elsewhere", "no_evidence", "elsewhere"),
            "one counts": (None, "no_evidence", "no_evidence"),
        },
    )
    reasons = {name: row["ignored"] for name, row in rows.items()}
    assert reasons == {"all ignored": "elsewhere", "one counts": None}


# Calls of Mendq itself and of other accounts.


def make_reading(spark: SparkSession, file: str, *calls: dict[str, Any]) -> DataFrame:
    """Make the reading of a file whose event ids are the positions of `calls`."""
    own = {"event_name": "DeleteMessage", "error_code": "", "queue_arn": "", "account": ACCOUNT}
    own |= {"region": REGION, "request_id": "r", "symptom": "s", "principal_arn": "p"}
    rows = [
        {
            **own,
            "position": n,
            "event_id": f"{n}",
            "event_time": None,
            "ignored": None,
            "is_own_look": False,
            **call_fields,
        }
        for n, call_fields in enumerate(calls)
    ]
    read = {"file": file, "reason": None, "records": 1, "unreadable_records": [], "calls": rows}
    return spark.createDataFrame([read], READING_SCHEMA)


def test_failed_call_in_two_trail_files_is_counted_once_for_the_file_whose_name_sorts_first(
    spark: SparkSession,
) -> None:
    """The file that is first by name wins, in whatever folder."""
    late = make_reading(spark, "a/2.json.gz", {}, {})
    early = make_reading(spark, "b/1.json.gz", {})
    rows = select_failed_calls(late.union(early)).collect()
    assert sorted((row["event_id"], row["file"]) for row in rows) == [
        ("0", "b/1.json.gz"), ("1", "a/2.json.gz"),
    ]  # fmt: skip


def test_burst_is_an_operators_own_look_only_if_all_its_calls_are(spark: SparkSession) -> None:
    calls = [make_call(n, queue_arn=name, is_own_look=own) for name, flags in {
        "own": (True, True), "mixed": (True, False),
    }.items() for n, own in enumerate(flags)]  # fmt: skip
    rows = {row["queue_arn"]: row["is_own_look"] for row in group_calls(spark, *calls)}
    assert rows == {"own": True, "mixed": False}


@pytest.mark.parametrize(("is_own_look", "why"), [(True, "own_look"), (False, None)])
def test_incident_with_a_case_is_marked_as_own_look_only_if_it_is_an_operators_own_look(
    *, is_own_look: bool, why: str | None
) -> None:
    index = CaseIndex.build([make_case("c", "10 09:06", ("10 09:00", "10 09:05"))], [])
    burst = make_burst_row("10 09:00", "10 09:05", is_own_look=is_own_look)
    incident = index.make_incident_of_burst(burst)
    assert (incident["why"], incident["case_id"]) == (why, "c")


def test_failed_calls_of_mendq_another_account_or_region_are_left_out_and_ignored_ones_kept(
    spark: SparkSession,
) -> None:
    calls = [{"ignored": ignored} for ignored in ("own_call", "no_evidence", None)]
    elsewhere = {"account": "999999999999"}, {"region": "eu-west-1"}
    rows = select_failed_calls(make_reading(spark, "f", *calls, *elsewhere), HOME).collect()
    assert [(row["event_id"], row["ignored"]) for row in rows] == [
        ("1", "no_evidence"), ("2", None),
    ]  # fmt: skip


# Incidents with and without a case.

SCENE = yaml.safe_load(Path(__file__).with_name("joined.yaml").read_text())


def to_micros(when: str) -> int:
    return to_microseconds(make_time(f"11-{when}"))


def make_burst_row(first: str, last: str, queue: str = "orders", **fields: Any) -> dict[str, Any]:
    own = {"queue_arn": make_queue_arn(queue), "symptom": VISIBILITY, "enough_evidence": True}
    own |= {"account": ACCOUNT, "region": REGION, "ignored": None, "is_own_look": False}
    return {"first_failure": to_micros(first), "last_failure": to_micros(last), **own, **fields}


def make_case(
    name: str,
    opened: str,
    evidence: tuple[str, str],
    states: str = "observed",
    queue: str = "orders",
    **fields: Any,
) -> CaseTimeline:
    first_at, last_at = (f"11-{moment}" for moment in evidence)
    seen = {"first_at": first_at, "last_at": last_at, "case_id": name, **fields}
    transitions = (
        make_transition(n, state, f"11-{opened}", queue_arn=make_queue_arn(queue), **seen)
        for n, state in enumerate(states.split(), 1)
    )
    return CaseTimeline.from_transitions(map(Transition.from_document, transitions))


def join_scene(home: AccountAndRegion | None) -> dict[str, dict[str, Any]]:
    """Return the incidents of joined.yaml by name, joined with its cases and scans."""
    scans = [
        ScanListing(
            to_micros(scan["at"]),
            ("no ARN", *map(make_queue_arn, scan["managed"])),
            scan.get("whole", True),
            tuple(ListedMute(*mute) for mute in scan.get("mutes", ())),
        )
        for scan in SCENE["scans"]
    ]
    known = CaseIndex.build(
        [make_case(**case_fields) for case_fields in SCENE["cases"]], scans[::-1], home
    )
    return {
        incident_fields["name"]: known.make_incident_of_burst(make_burst_row(**incident_fields))
        for incident_fields in SCENE["incidents"]
    }


@pytest.mark.parametrize("home", [HOME, None])
def test_incident_joins_its_case_or_names_the_reason_why_it_has_none(
    home: AccountAndRegion | None,
) -> None:
    """Without `home`, the ARNs in the listings tell which account was scanned."""
    incidents = join_scene(home)
    assert {name: (row["case_id"], row["why"]) for name, row in incidents.items()} == {
        incident_fields["name"]: (incident_fields.get("case"), incident_fields.get("told"))
        for incident_fields in SCENE["incidents"]
    }


def test_incident_of_two_cases_has_the_later_ones_outcome_and_is_notified_if_either_was() -> None:
    incidents = join_scene(HOME)
    assert incidents["both"]["outcome"] == "healed"
    assert incidents["both"]["notified"] is True
    assert incidents["only touched"]["notified"] is False


def test_incident_takes_the_seconds_to_heal_from_its_case() -> None:
    assert join_scene(HOME)["only touched"]["seconds_to_heal"] == 10 * 60


def test_incident_without_a_case_has_the_outcome_not_seen() -> None:
    assert join_scene(HOME)["beside"]["outcome"] == "not_seen"


def test_empty_scan_listings_mean_not_managed_only_if_the_scanned_account_is_known() -> None:
    scans = [
        ScanListing(to_micros(moment), (), is_complete=True) for moment in ("15 03:00", "15 04:00")
    ]
    row = make_burst_row("15 03:10", "15 03:50")
    whys = [
        CaseIndex.build((), scans, home).make_incident_of_burst(row)["why"] for home in (HOME, None)
    ]
    assert whys == ["not_managed", "unknown"]


SCANNED = {
    "evidence": {
        "failed_calls": 0,
        **dict.fromkeys(("first_at", "last_at"), "2026-11-10T09:00:00Z"),
    }
}


SCANNED_AT = to_micros("10 09:00")
ORDERS_ARN = make_queue_arn("orders")


def make_scan_timeline(name: str, **fields: Any) -> CaseTimeline:
    """Make a case that a scan opened at SCANNED_AT and that was fixed ten minutes later."""
    return make_timeline(
        ("applied", "11-10 09:00"),
        ("verified", "11-10 09:10"),
        **{"case_id": name, "notified": (1,), "urgent": True, **SCANNED, **fields},
    )


def test_case_that_a_scan_opened_is_an_incident_without_failed_calls() -> None:
    [incident] = list_scan_incidents([make_scan_timeline("alone")], [])
    assert incident["found_by"] == "scan"
    assert incident["account"] == ACCOUNT
    assert incident["region"] == REGION
    assert incident["queue_arn"] == ORDERS_ARN
    assert incident["symptom"] == VISIBILITY
    assert incident["first_failure"] == incident["last_failure"] == SCANNED_AT
    assert incident["failed_calls"] == 0
    assert incident["error_codes"] == incident["principals"] == []
    assert incident["case_id"] == "alone"
    assert incident["why"] is None
    assert incident["outcome"] == "escalated"
    assert incident["seconds_to_heal"] == 10 * 60
    assert incident["notified"] is incident["urgent"] is True
    assert set(incident) == set(COLUMN_TYPES_BY_TABLE["incidents"])


def test_incident_of_a_scan_has_the_same_id_in_every_night_and_another_for_another_case() -> None:
    [first] = list_scan_incidents([make_scan_timeline("one")], [])
    [again] = list_scan_incidents([make_scan_timeline("one")], [])
    [other] = list_scan_incidents([make_scan_timeline("other")], [])
    assert again["incident_id"] == first["incident_id"] != other["incident_id"]


def test_case_of_failed_calls_or_without_its_beginning_is_no_incident_of_a_scan() -> None:
    by_calls = make_scan_timeline("calls", evidence={**SCANNED["evidence"], "failed_calls": 3})
    without_opening = make_scan_timeline("older", first_n=2)
    assert list_scan_incidents([by_calls, without_opening], []) == []


@pytest.mark.parametrize(
    ("first_failure", "last_failure"),
    [(SCANNED_AT - 5, SCANNED_AT), (SCANNED_AT, SCANNED_AT + 5)],
)
def test_case_of_a_scan_is_no_incident_of_its_own_if_failed_calls_join_it(
    first_failure: int, last_failure: int
) -> None:
    burst = Burst(ORDERS_ARN, VISIBILITY, first_failure, last_failure)
    assert list_scan_incidents([make_scan_timeline("joined")], [burst]) == []


@pytest.mark.parametrize(
    "burst",
    [
        Burst(ORDERS_ARN, VISIBILITY, SCANNED_AT + 1, SCANNED_AT + 9),
        Burst(ORDERS_ARN, "other", SCANNED_AT, SCANNED_AT),
        Burst(make_queue_arn("q"), VISIBILITY, 0, 2 * SCANNED_AT),
    ],
    ids=["later", "of another symptom", "of another queue"],
)
def test_case_of_a_scan_stays_an_incident_beside_failed_calls_that_are_not_about_it(
    burst: Burst,
) -> None:
    assert len(list_scan_incidents([make_scan_timeline("alone")], [burst])) == 1


def test_failed_calls_over_a_week_after_a_scan_opened_a_case_are_another_incident() -> None:
    grown = {**SCANNED["evidence"], "last_at": "2026-12-10T09:00:00Z"}
    long_open = make_timeline(("escalated", "11-10 09:00"), evidence=grown)
    last_evidence = to_micros("10 09:00")
    week = 7 * 86_400 * 1_000_000
    for first, rows in ((last_evidence + week, 0), (last_evidence + week + 1, 1)):
        burst = Burst(make_queue_arn("orders"), VISIBILITY, first, first)
        assert len(list_scan_incidents([long_open], [burst])) == rows
