"""Which calls the trails log, which symptoms they show, and how that is printed at 80 columns."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.checks import Findings
from mendq.cli.doctor.life import LastRound
from mendq.cli.doctor.visibility import (
    LATE_DELETES_PASS,
    OUTSIDE,
    Situation,
    Trail,
    logged,
    not_logged,
    outside,
    sights,
)
from mendq.cli.look.doctor import print_findings
from mendq.cli.output import Output

ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
OTHERS = "arn:aws:sqs:us-east-1:123456789012:others"
OF_SQS = (
    {"Field": "eventCategory", "Equals": ["Data"]},
    {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
)


def _trail(*more: dict[str, Any], base: tuple[dict[str, Any], ...] = OF_SQS) -> Trail:
    return Trail("mendq", ({"FieldSelectors": [*base, *more]},))


def _field(name: str, **operators: list[str]) -> dict[str, Any]:
    return {"Field": name, **operators}


def _calls(*names: str) -> Trail:
    return _trail(_field("eventName", Equals=list(names)))


@pytest.mark.parametrize(
    "trail",
    [
        Trail("basic", ()),
        _trail(base=(_field("eventCategory", Equals=["Management"]),)),
        _trail(base=(OF_SQS[0], _field("resources.type", Equals=["AWS::S3::Object"]))),
        _trail(_field("resources.ARN", StartsWith=[OTHERS])),
        _trail(_field("resources.ARN", NotEquals=[ORDERS])),
        _trail(_field("resources.ARN", NotStartsWith=["arn:aws:sqs:"])),
        _trail(_field("resources.ARN", EndsWith=["dlq"])),
        _trail(_field("resources.ARN", StartsWith=["arn:aws"], NotEndsWith=[".fifo"])),
        _calls("SendMessage"),
        _trail(_field("eventName", NotEquals=["DeleteMessage"])),
        _trail(_field("eventSource", Equals=["s3.amazonaws.com"])),
    ],
)
def test_what_is_not_logged(trail: Trail) -> None:
    assert not trail.logs(ORDERS, "DeleteMessage")


@pytest.mark.parametrize(
    "trail",
    [
        _trail(),
        _trail(_field("resources.ARN", StartsWith=[OTHERS, ORDERS[:-5]])),
        _trail(_field("resources.ARN", Equals=[ORDERS])),
        _trail(_field("eventName", NotEquals=["SendMessage"])),
        _trail(_field("userIdentity.arn", NotStartsWith=["arn:aws:sts::123456789012:"])),
        _trail(_field("readOnly", Equals=["false"])),
    ],
)
def test_what_is_logged(trail: Trail) -> None:
    assert trail.logs(ORDERS, "DeleteMessage")


def test_several_trails_add_up() -> None:
    names = ("SendMessage", "DeleteMessage", "ReceiveMessage")
    two = [_calls("SendMessage"), _calls("DeleteMessage")]
    assert logged(two, ORDERS, names) == {"SendMessage", "DeleteMessage"}


def _sight(symptom: str, trails: list[Trail], *queue_arns: str) -> Situation:
    (found,) = (each for each in sights(trails, queue_arns) if each.symptom == symptom)
    return found


def test_a_queue_outside_is_blind_to_everything() -> None:
    trail = _trail(_field("resources.ARN", Equals=[ORDERS]))
    assert outside([trail], [ORDERS, OTHERS]) == [OTHERS]
    for each in sights([trail], [ORDERS, OTHERS]):
        on_standard_queues_alone = each.symptom == "empty_receives"
        assert ORDERS in each.visible or on_standard_queues_alone or each.is_scanned_only, each
        assert set(each.blind.items()) <= {(OTHERS, OUTSIDE)}


def test_what_only_fifo_queues_show_is_not_asked_of_others() -> None:
    found = _sight("dedup_id_missing", [], ORDERS, OTHERS)
    assert (found.visible, found.partly, list(found.blind)) == ((), {}, [ORDERS])


def test_calls_that_are_not_logged_are_named_and_where_none_is_the_symptom_is_blind() -> None:
    found = _sight("visibility_timeout_too_short", [_calls("DeleteMessage")], ORDERS)
    assert "ChangeMessageVisibility" in found.partly[ORDERS]
    assert "DeleteMessage" not in found.partly[ORDERS].split(", ")
    assert ORDERS in _sight("message_too_long", [_calls("ListQueueTags")], ORDERS).blind


def test_a_late_delete_on_a_standard_queue_answers_200_and_the_scan_finds_the_race() -> None:
    found = _sight("visibility_timeout_too_short", [_trail()], OTHERS)
    assert (found.partly, found.by_the_scan) == ({OTHERS: LATE_DELETES_PASS}, True)
    assert _sight("in_flight_limit", [_trail()], OTHERS).visible == (OTHERS,)


def test_a_trail_of_everything_shows_every_symptom_of_a_fifo_queue() -> None:
    for each in sights([_trail()], [ORDERS]):
        assert not each.partly, each
        assert not each.blind, each


def test_calls_that_no_trail_logs_are_said_by_queue() -> None:
    most = _trail(
        _field("resources.ARN", Equals=[ORDERS]), _field("eventName", NotEquals=["DeleteMessage"])
    )
    found = not_logged([most], [ORDERS, OTHERS])
    assert found[ORDERS] == {"DeleteMessage"}
    assert {"DeleteMessage", "SendMessage"} < found[OTHERS]
    assert not_logged([_trail()], [ORDERS, OTHERS]) == {}


def test_before_a_queue_is_managed_a_symptom_has_its_calls() -> None:
    blind = _sight("message_too_long", [_calls("ListQueueTags")])
    seen = _sight("message_too_long", [_calls("SendMessage")])
    assert (blind.calls_logged, seen.calls_logged) == ((), ("SendMessage",))
    assert {*blind.calls_not_logged} == {"SendMessage", *seen.calls_not_logged}


# As people read it.

SOURCE = "eventsourcemapping HealFunctionSqsEventSourceMendqIntakeQueue88BDDCD09779940B"
QUEUES = [
    f"arn:aws:sqs:us-east-1:123456789012:{name}"
    for name in (f"{'orders-of-the-whole-company-' * 2}eu.fifo", "messages")
]
URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/Mendq-FollowUpDlq69C47468-1ECBD6D51"
READ = Command.aws("eu-west-1", "sqs", "receive-message", "--queue-url", URL)
LOG = Command.aws("eu-west-1", "logs", "filter-log-events", "--log-group-name", f"Mendq-{'a' * 80}")


def _printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *checks: Check, **of: Any
) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    logs = {"heal-1": Log("Mendq-a", LOG)}
    print_findings(Output(as_json=False), Findings([*checks], logs=logs, **of))
    return capsys.readouterr().out


def test_long_names_are_whole_and_what_is_fine_is_one_line_a_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = "c2931807-83fa-44b7-aa03-74a20fc680c3"
    checks = (
        Check(SOURCE, Status.FAIL, f"{made} is Disabled", "enable it"),
        Check("function a", Status.OK, "is Active"),
        Check("function b", Status.OK, "is Active"),
    )
    shown = _printed(monkeypatch, capsys, *checks, queues=QUEUES)
    for whole in (*SOURCE.split(), made, "-> enable it", "functions: 2 of 2 are fine"):
        assert whole in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "function a" not in shown
    assert shown.count(OUTSIDE) <= 3  # both queues, the FIFO one, the standard one
    for arn in QUEUES:
        assert arn.rpartition(":")[2] in shown


def test_before_a_queue_is_managed_the_symptoms_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = _printed(monkeypatch, capsys)
    assert [each.name for each in CATALOGUE if each.name not in shown] == []
    assert "once a queue is managed" in shown


def test_what_only_a_scan_finds_is_said_to_be_found_by_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    last = LastRound(datetime(2026, 11, 20, 12, 15, tzinfo=UTC), 30, 9, 5, 0, 2)
    shown = _printed(monkeypatch, capsys, queues=[OTHERS], last_round=last)
    table, _, scanned = shown.partition("What the scan finds")
    alone = [each.name for each in CATALOGUE if each.detection and not each.seen_as]
    assert alone
    for name in alone:
        assert name not in table
        assert name in scanned
    for said in ("by the scan", "12:15 UTC", "none skipped"):
        assert said in " ".join(scanned.split())


@pytest.mark.parametrize("remedy", [READ, "see the log of heal-1"])
def test_a_command_can_be_copied_from_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], remedy: str
) -> None:
    check = Check("queue a", Status.FAIL, "1 message(s)", remedy)
    lines = _printed(monkeypatch, capsys, check).partition("What the trails")[0].splitlines()
    whole = READ if isinstance(remedy, Command) else LOG
    assert [shlex.split(each) for each in lines if "aws " in each] == [shlex.split(whole)]


@pytest.mark.parametrize(
    "check",
    [
        Check("function a", Status.FAIL, "it is Failed", f"aws sqs purge-queue --queue-url {URL}"),
        Check("queue a", Status.OK, "0 message(s)", READ),
        Check("queue a", Status.FAIL, "1 message(s)", Command(f"{READ}\nrm -r .")),
        Check("heartbeat", Status.FAIL, "none", "see the log of heal-12"),
    ],
    ids=["somebody's text", "nothing to do", "more than a line", "no Lambda of ours"],
)
def test_what_is_no_command_of_ours_is_not_there_to_copy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: Check
) -> None:
    lines = _printed(monkeypatch, capsys, check).partition("What the trails")[0].splitlines()
    assert not [each for each in lines if each.startswith("  aws ") or URL in each]
