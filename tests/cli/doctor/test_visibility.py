"""Which calls the trails log, which symptoms they show, and how that is printed at 80 columns."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from mendq.catalogue import CATALOGUE
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.checks import Doctor
from mendq.cli.doctor.visibility import (
    LATE_DELETES_REASON,
    UNLOGGED_QUEUE_REASON,
    SymptomVisibility,
    Trail,
    find_unlogged_calls,
    list_symptom_visibility,
    list_unlogged_queues,
)
from mendq.cli.look.doctor import print_checks
from mendq.cli.output import Output
from tests.cli.doctor.builders import SQS_DATA_EVENTS

ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
OTHERS = "arn:aws:sqs:us-east-1:123456789012:others"

SELECTORS = json.loads(Path(__file__).with_name("selectors.json").read_text())


def _trail(*more: dict[str, Any]) -> Trail:
    return Trail("mendq", ({"FieldSelectors": [*SQS_DATA_EVENTS, *more]},))


def _field(name: str, **operators: list[str]) -> dict[str, Any]:
    return {"Field": name, **operators}


def _calls(name: str) -> Trail:
    return _trail(_field("eventName", Equals=[name]))


@pytest.mark.parametrize(
    ("is_logged", "fields"),
    [(word == "logged", each) for word, selectors in SELECTORS.items() for each in selectors],
)
def test_trail_evaluates_advanced_event_selectors_like_cloudtrail(
    *, is_logged: bool, fields: list[Any] | None
) -> None:
    """A trail without any selector logs nothing."""
    trail = Trail("mendq", () if fields is None else ({"FieldSelectors": fields},))
    assert trail.is_logging(ORDERS, "DeleteMessage") is is_logged


def _sight(symptom: str, trails: list[Trail], *queue_arns: str) -> SymptomVisibility:
    (found,) = (
        each for each in list_symptom_visibility(trails, queue_arns) if each.symptom == symptom
    )
    return found


def test_queue_outside_every_trail_selector_is_unlogged_and_blind_to_every_symptom_of_calls() -> (
    None
):
    trail = _trail(_field("resources.ARN", Equals=[ORDERS]))
    assert list_unlogged_queues([trail], [ORDERS, OTHERS]) == [OTHERS]
    for each in list_symptom_visibility([trail], [ORDERS, OTHERS]):
        on_standard_queues_alone = each.symptom == "empty_receives"
        assert ORDERS in each.visible or on_standard_queues_alone or not each.by_calls, each
        assert set(each.blind.items()) <= {(OTHERS, UNLOGGED_QUEUE_REASON)}


def test_fifo_only_symptom_is_not_listed_as_blind_for_standard_queues() -> None:
    found = _sight("dedup_id_missing", [], ORDERS, OTHERS)
    assert (found.visible, found.partly, list(found.blind)) == ((), {}, [ORDERS])


def test_symptom_names_unlogged_calls_and_is_blind_if_none_of_its_calls_is_logged() -> None:
    two = [_calls("DeleteMessage"), _calls("ChangeMessageVisibility")]
    found = _sight("visibility_timeout_too_short", two, ORDERS)
    batches = "ChangeMessageVisibilityBatch, DeleteMessageBatch"
    assert found.partly == {ORDERS: f"not logged: {batches}"}
    assert ORDERS in _sight("message_too_long", [_calls("ListQueueTags")], ORDERS).blind


def test_late_deletes_on_a_standard_queue_are_partly_visible_in_calls_and_found_by_the_scan() -> (
    None
):
    found = _sight("visibility_timeout_too_short", [_trail()], OTHERS)
    assert (found.partly, found.by_the_scan) == ({OTHERS: LATE_DELETES_REASON}, True)
    assert not [
        each for each in list_symptom_visibility([_trail()], [ORDERS]) if each.partly or each.blind
    ]
    assert _sight("in_flight_limit", [_trail()], OTHERS).visible == (OTHERS,)


def test_find_unlogged_calls_lists_the_calls_of_each_queue_that_no_trail_logs() -> None:
    names = _field("eventName", NotEquals=["DeleteMessage"])
    most = _trail(_field("resources.ARN", Equals=[ORDERS]), names)
    found = find_unlogged_calls([most], [ORDERS, OTHERS])
    assert found[ORDERS] == {"DeleteMessage"}
    assert {"DeleteMessage", "SendMessage"} < found[OTHERS]
    assert find_unlogged_calls([_trail()], [ORDERS, OTHERS]) == {}


# As people read it.

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/Mendq-FollowUpDlq69C47468-1ECBD6D51"
READ = Command.aws("eu-west-1", "sqs", "receive-message", "--queue-url", URL)
LOG = Command.aws("eu-west-1", "logs", "filter-log-events", "--log-group-name", f"Mendq-{'a' * 80}")


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    monkeypatch.setenv("COLUMNS", "80")

    def shown(*checks: Check, **of: Any) -> str:
        logs, account = {"heal-1": Log("Mendq-a", LOG)}, cast("Account", None)
        found = Doctor(account, datetime.now(UTC), [*checks], logs=logs, **of)
        print_checks(Output(as_json=False), found, verbose=True)
        return capsys.readouterr().out

    return shown


def test_doctor_without_managed_queues_lists_every_symptom_as_seen_by_calls_or_by_scan(
    printed: Callable[..., str],
) -> None:
    table, _, scanned = printed().partition("What the scan finds")
    assert "once a queue is managed" in table
    alone = {each.name for each in CATALOGUE if each.detection and not each.seen_as}
    assert {each.name for each in CATALOGUE if each.name in table}.isdisjoint(alone)
    assert [each.name for each in CATALOGUE if each.name not in table + scanned] == []


@pytest.mark.parametrize(
    ("remedy", "typed"),
    [
        (READ, READ),
        ("see the log of heal-1", LOG),
        ("the log Mendq-a, then deploy", LOG),
        # Somebody's text; more than a line; no Lambda and no log of ours.
        (f"aws sqs purge-queue {URL}", None),
        (Command(f"{READ}\nrm -r ."), None),
        ("see the log of heal-12", None),
        ("the log Mendq-a/more", None),
    ],
)
def test_doctor_prints_only_its_own_commands_unbroken_at_80_columns(
    printed: Callable[..., str], remedy: str, typed: str | None
) -> None:
    fine = Check("queue b", Status.OK, "0 message(s)", READ)
    shown = printed(Check("queue a", Status.FAIL, "it fails", remedy), fine)
    lines = shown.partition("What the trails")[0].splitlines()
    copied = [shlex.split(each) for each in lines if each.startswith("  aws ") or URL in each]
    assert copied == ([] if typed is None else [shlex.split(typed)])
