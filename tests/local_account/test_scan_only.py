"""A scan-only stack end to end: its schedule, its roles as enforced, its message, its commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import invoke_function
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = [pytest.mark.account, pytest.mark.long]
A_DAY_SECONDS = "86400"
FOUR_DAYS_SECONDS = "345600"


REFUSED_COMMANDS = (
    ("freeze", "--yes"),
    ("rollback", "--since", "1d", "--yes"),
    ("approve", "orders", "--yes"),
    ("report",),
    ("drill", "--yes"),
)


@dataclass(frozen=True)
class DeployedScan:
    """A scan-only stack, a queue that is subscribed to its topic, and a managed queue at fault."""

    account: LocalAccount
    mailbox: Queue
    faulty_queue: Queue


@pytest.fixture(scope="module")
def stack() -> Iterator[DeployedScan]:
    """A scan-only stack with permissions enforced.

    The queues are made before the schedule starts the first scan, which may be the one that reports
    them.
    """
    settings = {"scanOnly": True, "notifications": {"urgent": ["on-call@example.com"]}}
    with LocalAccount(settings) as account:
        yield DeployedScan(account, _make_mailbox(account), _make_faulty_queue(account))


def _make_mailbox(account: LocalAccount) -> Queue:
    """Make a queue that is subscribed to the stack's only topic."""
    mailbox = new_queue(account)
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": mailbox.arn,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    account.client("sqs").set_queue_attributes(QueueUrl=mailbox.url, Attributes={"Policy": policy})
    account.client("sns").subscribe(
        TopicArn=account.outputs["UrgentTopic"], Protocol="sqs", Endpoint=mailbox.arn
    )
    return mailbox


def _make_faulty_queue(account: LocalAccount) -> Queue:
    """Make a managed queue whose DLQ keeps messages for a shorter time than the queue."""
    dlq = new_queue(account, tags={"mendq": "observe"}, MessageRetentionPeriod=A_DAY_SECONDS)
    redrive_policy = json.dumps({"deadLetterTargetArn": dlq.arn, "maxReceiveCount": 5})
    return new_queue(
        account,
        tags={"mendq": "observe"},
        MessageRetentionPeriod=FOUR_DAYS_SECONDS,
        RedrivePolicy=redrive_policy,
    )


def test_scan_only_stack_reports_a_fault_once_by_its_own_topic_and_changes_nothing(
    stack: DeployedScan,
) -> None:
    attributes_before = stack.faulty_queue.attributes()
    schedules = stack.account.client("scheduler").list_schedules()["Schedules"]
    (schedule,) = (entry["Name"] for entry in schedules)
    stack.account.fire(schedule, datetime.now(UTC))
    messages: list[str] = []

    def is_reported() -> bool:
        for received in stack.mailbox.receive_some():
            notification = json.loads(received["Body"])
            messages.append(f"{notification['Subject']}\n\n{notification['Message']}")
            stack.mailbox.delete(received["ReceiptHandle"])
        return any("DLQ retention too short" in message for message in messages)

    eventually(is_reported)
    (message,) = messages
    assert "scanOnly: true" in message
    assert "NOT LOOKED AT" not in message, "its role may read all that it needs"
    assert "docs/runbooks/dlq_retention_too_short.md" in message
    invoke_function(stack.account, "Scan", {})
    assert stack.mailbox.receive_some() == []
    assert stack.faulty_queue.attributes() == attributes_before


def _read_text(stack: DeployedScan, *arguments: str) -> str:
    """Return what a command prints, on one line."""
    return " ".join(mendq_here(stack.account, *arguments).output.split())


def test_looking_commands_say_what_a_scan_only_stack_does_not_have(stack: DeployedScan) -> None:
    doctor = _read_text(stack, "doctor", "--verbose")
    assert "is scan-only (scanOnly: true)" in doctor
    assert "no trail, probe, cases" in doctor
    assert not re.search(r"\bheartbeat\b", doctor)
    cost = json.loads(mendq_here(stack.account, "cost", "--json").stdout)
    assert cost["stack"]["is_scan_only"]
    assert cost["stack"]["dollars_per_month"] < 1
    assert "opens no case" in _read_text(stack, "cases")
    assert "keeps no findings by queue" in _read_text(stack, "queues")
    assert "dlq_retention_too_short" in _read_text(stack, "scan", "--dry-run")


@pytest.mark.parametrize("arguments", REFUSED_COMMANDS)
def test_command_about_what_a_scan_only_stack_does_not_have_is_refused_in_one_sentence(
    stack: DeployedScan, arguments: tuple[str, ...]
) -> None:
    result = mendq_here(stack.account, *arguments, "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "scan_only"
    assert "is scan-only (scanOnly: true): it only scans and reports" in error["message"]
    assert "nothing was done" in error["message"]
