"""Test which symptoms the trails show, and how the doctor prints this at 80 columns."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs

from mendq.catalogue import CATALOGUE
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.checks import Doctor
from mendq.cli.doctor.visibility import (
    ANY_QUEUE,
    LATE_DELETES_REASON,
    NO_MANAGEMENT_EVENTS_REASON,
    UNLOGGED_QUEUE_REASON,
    SymptomVisibility,
    Trail,
    count_unconfirmed_symptoms,
    find_unlogged_calls,
    list_symptom_visibility,
    list_unlogged_queues,
)
from mendq.cli.look.doctor import print_checks
from mendq.cli.output import Output
from tests.cli.doctor.builders import SQS_DATA_EVENTS
from tests.cli.named_rows import parametrize_rows

ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
OTHERS = "arn:aws:sqs:us-east-1:123456789012:others"

SELECTORS = json.loads(Path(__file__).with_name("selectors.json").read_text())


def _make_trail(*more: dict[str, Any]) -> Trail:
    """Make a trail that logs SQS data events and management events."""
    selectors = ({"FieldSelectors": [*SQS_DATA_EVENTS, *more]},)
    return Trail("mendq", selectors, logs_changes=True)


def _make_field(name: str, **operators: list[str]) -> dict[str, Any]:
    return {"Field": name, **operators}


def _make_trail_of_call(name: str) -> Trail:
    return _make_trail(_make_field("eventName", Equals=[name]))


@parametrize_rows(SELECTORS)
def test_trail_evaluates_advanced_event_selectors_like_cloudtrail(
    *, is_logged: bool, fields: list[Any] | None
) -> None:
    """A trail without any selector logs nothing."""
    trail = Trail("mendq", () if fields is None else ({"FieldSelectors": fields},))
    assert trail.is_logging(ORDERS, "DeleteMessage") is is_logged


def _find_visibility(symptom: str, trails: list[Trail], *queue_arns: str) -> SymptomVisibility:
    (found_visibility,) = (
        visibility
        for visibility in list_symptom_visibility(trails, queue_arns)
        if visibility.symptom == symptom
    )
    return found_visibility


# Symptoms of calls that only FIFO queues can have.
FIFO_SYMPTOMS = {"dedup_id_missing", "fifo_throttled"}


def test_no_symptom_of_failed_calls_is_seen_on_a_queue_outside_all_trail_selectors() -> None:
    trail = _make_trail(_make_field("resources.ARN", Equals=[ORDERS]))
    assert list_unlogged_queues([trail], [ORDERS, OTHERS]) == [OTHERS]
    for visibility in list_symptom_visibility([trail], [ORDERS, OTHERS]):
        on_standard_queues_alone = visibility.symptom == "empty_receives"
        assert (
            ORDERS in visibility.visible or on_standard_queues_alone or not visibility.by_calls
        ), visibility
        on_fifo_queues_alone = visibility.symptom in FIFO_SYMPTOMS
        if visibility.symptom == "mapping_refused":
            continue  # its failed calls are no data events
        shows_on_others = visibility.by_calls and not on_fifo_queues_alone
        expected_blindness = {OTHERS: UNLOGGED_QUEUE_REASON} if shows_on_others else {}
        assert visibility.blind == expected_blindness, visibility


def test_fifo_only_symptom_is_not_listed_as_unseen_on_standard_queues() -> None:
    visibility = _find_visibility("dedup_id_missing", [], ORDERS, OTHERS)
    assert (visibility.visible, visibility.partly, list(visibility.blind)) == ((), {}, [ORDERS])


@pytest.mark.parametrize(
    ("selectors", "reason"),
    [
        ((), NO_MANAGEMENT_EVENTS_REASON),
        (None, "not known: mendq cannot be read"),
    ],
)
def test_refused_mapping_is_not_seen_if_no_trail_is_known_to_log_management_events(
    selectors: tuple[()] | None, reason: str
) -> None:
    visibility = _find_visibility("mapping_refused", [Trail("mendq", selectors)], ORDERS)
    assert {**visibility.partly, **visibility.blind} == {ORDERS: reason}


def test_refused_mapping_is_seen_on_a_queue_outside_all_data_event_selectors() -> None:
    trail = Trail("mendq", (), logs_changes=True)
    assert _find_visibility("mapping_refused", [trail], ORDERS).visible == (ORDERS,)


def test_symptom_is_seen_in_part_and_names_its_calls_that_no_trail_logs() -> None:
    two = [_make_trail_of_call("DeleteMessage"), _make_trail_of_call("ChangeMessageVisibility")]
    visibility = _find_visibility("visibility_timeout_too_short", two, ORDERS)
    batches = "ChangeMessageVisibilityBatch, DeleteMessageBatch"
    assert visibility.partly == {ORDERS: f"not logged: {batches}"}


def test_symptom_is_not_seen_if_no_trail_logs_any_of_its_calls() -> None:
    trails = [_make_trail_of_call("ListQueueTags")]
    assert ORDERS in _find_visibility("message_too_long", trails, ORDERS).blind


def test_late_deletes_on_a_standard_queue_are_seen_in_part_in_calls_and_found_by_the_scan() -> None:
    found = _find_visibility("visibility_timeout_too_short", [_make_trail()], OTHERS)
    assert (found.partly, found.by_the_scan) == ({OTHERS: LATE_DELETES_REASON}, True)


def test_every_symptom_of_a_fifo_queue_is_seen_if_a_trail_logs_all_its_calls() -> None:
    for visibility in list_symptom_visibility([_make_trail()], [ORDERS]):
        assert (visibility.partly, visibility.blind) == ({}, {})


def test_in_flight_limit_of_a_standard_queue_is_seen_if_a_trail_logs_all_its_calls() -> None:
    visibility = _find_visibility("in_flight_limit", [_make_trail()], OTHERS)
    assert visibility.visible == (OTHERS,)


def test_doctor_counts_the_symptoms_of_which_no_real_cloudtrail_record_is_known() -> None:
    """Count the symptoms that failed calls show and of which no record by AWS itself is known.

    Those that only a template shows are not counted.
    """
    deployed = [symptom for symptom in CATALOGUE if not symptom.is_of_template]
    by_calls = {symptom.name for symptom in CATALOGUE if symptom.seen_as}
    by_both = {symptom.name for symptom in CATALOGUE if symptom.seen_as and symptom.detection}
    sentence = count_unconfirmed_symptoms(list(list_symptom_visibility([], [ANY_QUEUE])))
    assert [int(number) for number in re.findall(r"\d+", sentence)] == [
        len(by_calls),
        len(deployed),
        len(by_both),
        len(deployed) - len(by_calls),
    ]


def test_doctor_prints_no_count_of_unconfirmed_symptoms_if_real_records_of_all_are_known() -> None:
    visibilities = [
        structs.replace(visibility, unconfirmed_on_aws=False)
        for visibility in list_symptom_visibility([], [ANY_QUEUE])
    ]
    assert count_unconfirmed_symptoms(visibilities) == ""


def test_find_unlogged_calls_lists_the_calls_of_each_queue_that_no_trail_logs() -> None:
    names = _make_field("eventName", NotEquals=["DeleteMessage"])
    trail = _make_trail(_make_field("resources.ARN", Equals=[ORDERS]), names)
    unlogged = find_unlogged_calls([trail], [ORDERS, OTHERS])
    assert unlogged[ORDERS] == {"DeleteMessage"}
    assert {"DeleteMessage", "SendMessage"} < unlogged[OTHERS]
    assert find_unlogged_calls([_make_trail()], [ORDERS, OTHERS]) == {}


URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/Mendq-FollowUpDlq69C47468-1ECBD6D51"
READ = Command.aws("eu-west-1", "sqs", "receive-message", "--queue-url", URL)
LOG = Command.aws("eu-west-1", "logs", "filter-log-events", "--log-group-name", f"Mendq-{'a' * 80}")


@pytest.fixture
def print_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    monkeypatch.setenv("COLUMNS", "80")

    def print_doctor(*checks: Check, **of: Any) -> str:
        logs = {"heal-1": Log("Mendq-a", LOG)}
        account = cast("Account", None)
        doctor = Doctor(account, datetime.now(UTC), [*checks], logs=logs, **of)
        print_checks(Output(as_json=False), doctor, verbose=True)
        return capsys.readouterr().out

    return print_doctor


def test_doctor_without_managed_queues_lists_every_symptom_as_seen_by_calls_or_by_scan(
    print_at_80_columns: Callable[..., str],
) -> None:
    table, _, scanned = print_at_80_columns().partition("What the scan finds")
    assert "once a queue is managed" in table
    alone = {entry.name for entry in CATALOGUE if entry.detection and not entry.seen_as}
    assert {entry.name for entry in CATALOGUE if entry.name in table}.isdisjoint(alone)
    not_shown = [entry.name for entry in CATALOGUE if entry.name not in table + scanned]
    assert not_shown == [entry.name for entry in CATALOGUE if entry.is_of_template]


@pytest.mark.parametrize(
    ("remedy", "typed"),
    [
        (READ, READ),
        ("see the log of heal-1", LOG),
        ("the log Mendq-a, then deploy", LOG),
        # Text from AWS, more than one line, no Lambda function of Mendq, no log of Mendq.
        (f"aws sqs purge-queue {URL}", None),
        (Command(f"{READ}\nrm -r ."), None),
        ("see the log of heal-12", None),
        ("the log Mendq-a/more", None),
    ],
    ids=[
        "command",
        "see the log",
        "log, then deploy",
        "plain text",
        "two lines",
        "unknown function",
        "unknown log",
    ],
)
def test_doctor_prints_only_its_own_commands_unbroken_at_80_columns(
    print_at_80_columns: Callable[..., str], remedy: str, typed: str | None
) -> None:
    fine = Check("queue b", Status.OK, "0 message(s)", READ)
    output = print_at_80_columns(Check("queue a", Status.FAIL, "it fails", remedy), fine)
    lines = output.partition("What the trails")[0].splitlines()
    # A wrapped command would end early here. Text from AWS may hold the address of an SQS queue.
    copied = [shlex.split(line) for line in lines if line.startswith("  aws ")]
    assert copied == ([] if typed is None else [shlex.split(typed)])
