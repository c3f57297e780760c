"""A DLQ that Mendq attached, and messages that move there afterwards."""

from __future__ import annotations

from datetime import timedelta

from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.resume import continue_case
from mendq.model.queue import arn_of_dlq
from tests.heal.operators import OWNERS, context_of, run_of, say
from tests.scan.scanning import Scanning, an_hour_on, consumed

MISSING, ARRIVING = "dlq_missing", "dlq_messages_arriving"


def attached(scanned: Scanning, name: str = "orders") -> tuple[str, str, str]:
    """A queue whose DLQ was proposed, approved and attached: its ARN, the DLQ's, and the case."""
    account = scanned.account
    queue = account.queue(name)
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="order")
    consumed(scanned, queue)
    account.later(hours=8)
    an_hour_on(account)
    for minutes in range(10, 180, 10):
        at = account.now - timedelta(minutes=minutes)
        scanned.count(queue, at, sent=40, received=41, deleted=40, visible=1)
    a_round(scanned)
    (proposed,) = [each for each in account.transitions() if each["symptom"] == MISSING]
    case_id = str(proposed["case_id"])
    assert proposed["to"] == "proposed"
    say(account, "approve", case_id)
    request = {"case_id": case_id, "queue_arn": queue, "symptom": MISSING}
    done = continue_case(request, run_of(MISSING, account))
    assert done.case is not None
    return queue, arn_of_dlq(queue), case_id


def arrive(scanned: Scanning, dlq: str, number: int) -> None:
    """So many messages move to the DLQ now, which CloudWatch has counted since ten minutes."""
    account = scanned.account
    for _ in range(number):
        account.clients.sqs.send_message(QueueUrl=account.url(dlq), MessageBody="dead")
    for minutes in (10, 8, 6, 4):
        at = account.now - timedelta(minutes=minutes)
        scanned.count(dlq, at, visible=number if minutes < 8 else 0, age=60)


def a_round(scanned: Scanning) -> None:
    """The scan of this hour, and heal about what it found."""
    scanned.done()
    for healed in scanned.heal():
        assert healed.error_by_message_id == {}


def follow(scanned: Scanning) -> FollowUpResult:
    """follow_up, as its Lambda does it each minute."""
    followed = follow_up(context_of(scanned.account), OWNERS, lambda: 60)
    assert followed.errors == {}
    return followed


def states_of(scanned: Scanning, symptom: str) -> list[str]:
    """The states that the symptom's cases went through."""
    transitions = scanned.account.transitions()
    return [str(each["to"]) for each in transitions if each["symptom"] == symptom]


def reason_of(scanned: Scanning, symptom: str) -> str:
    """Why the symptom's newest transition is as it is."""
    reasons = [e["reason"] for e in scanned.account.transitions() if e["symptom"] == symptom]
    return str(reasons[-1])


def urgent(scanned: Scanning) -> list[str]:
    """The urgent pages."""
    return [body for _, body in scanned.account.pages("urgent")]
