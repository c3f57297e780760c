"""The doctor's findings at 80 columns: whole words, and each reason once."""

from __future__ import annotations

import json
import shlex

import pytest

from mendq.catalogue import CATALOGUE
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.checks import Findings
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.trails import Trails
from mendq.cli.doctor.visibility import OUTSIDE, Trail
from mendq.cli.look.doctor import print_findings
from mendq.cli.output import Output
from tests.cli.conftest import Operator

SOURCE = "eventsourcemapping HealFunctionSqsEventSourceMendqIntakeQueue88BDDCD09779940B"
QUEUES = [
    f"arn:aws:sqs:us-east-1:123456789012:{name}"
    for name in (f"{'orders-of-the-whole-company-' * 2}eu.fifo", "messages")
]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    checks = [
        Check(SOURCE, Status.FAIL, "c2931807-83fa-44b7-aa03-74a20fc680c3 is Disabled", "enable it"),
        Check("function a", Status.OK, "is Active"),
        Check("function b", Status.OK, "is Active"),
    ]
    print_findings(Output(as_json=False), Findings(checks, QUEUES))
    return capsys.readouterr().out


def test_long_names_are_whole(shown: str) -> None:
    for whole in (*SOURCE.split(), "c2931807-83fa-44b7-aa03-74a20fc680c3", "-> enable it"):
        assert whole in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_what_is_fine_is_one_line_a_kind(shown: str) -> None:
    assert "functions: 2 of 2 are fine" in shown
    assert "function a" not in shown


def test_queues_are_named_with_why_they_are_blind(shown: str) -> None:
    assert shown.count(OUTSIDE) <= 3  # both queues, the FIFO one, the standard one
    for arn in QUEUES:
        assert arn.rpartition(":")[2] in shown


def test_before_a_queue_is_managed_the_symptoms_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_findings(Output(as_json=False), Findings())
    announced = capsys.readouterr().out
    for symptom in CATALOGUE:
        assert symptom.name in announced
    assert "once a queue is managed" in announced


def test_a_queue_that_is_logged_in_part_is_warned_of_and_priced(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = operator.aws.queue("orders.fifo")
    fields = [
        {"Field": "eventCategory", "Equals": ["Data"]},
        {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
        {"Field": "eventName", "NotEquals": ["DeleteMessage"]},
    ]
    trail = Trail("mendq", ({"FieldSelectors": fields},))
    monkeypatch.setattr(Trails, "look", lambda trails, _: trails.logging.append(trail) or ())
    monkeypatch.setattr(Deployment, "look", lambda _: ())
    found = json.loads(operator.mendq("doctor", "--json").stdout)
    (warned,) = (each for each in found["checks"] if each["check"] == "selectors")
    assert (warned["status"], "DeleteMessage" in warned["says"]) == ("warn", True)
    assert "trail.eventNames" in warned["remedy"]
    assert found["not_logged"] == {arn: ["DeleteMessage"]}
    assert found["outside_selectors"] == []
    assert [each["queue_arn"] for each in found["cost_of_seeing"]] == [arn]


URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/Mendq-FollowUpDlq69C47468-1ECBD6D51"
READ = Command.aws("eu-west-1", "sqs", "receive-message", "--queue-url", URL)
LOG = Command.aws("eu-west-1", "logs", "filter-log-events", "--log-group-name", f"Mendq-{'a' * 80}")


def _printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: Check
) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    print_findings(Output(as_json=False), Findings([check], logs={"heal-1": Log("Mendq-a", LOG)}))
    return capsys.readouterr().out.partition("What the trails")[0].splitlines()


@pytest.mark.parametrize("remedy", [READ, "see the log of heal-1"])
def test_a_command_can_be_copied_from_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], remedy: str
) -> None:
    lines = _printed(monkeypatch, capsys, Check("queue a", Status.FAIL, "1 message(s)", remedy))
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
    lines = _printed(monkeypatch, capsys, check)
    assert not [each for each in lines if each.startswith("  aws ") or URL in each]
