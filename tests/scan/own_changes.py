"""A DLQ that Mendq attached, and messages that move there afterwards."""

from __future__ import annotations

from datetime import timedelta

from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.resume import continue_case
from mendq.model.queue import arn_of_dlq
from tests.account.calm_metrics import ReportedQueue
from tests.heal.operators import OWNERS, make_context, make_owner_run, send_decision
from tests.scan.scanner import Scanner, attach_lambda_consumer, start_next_hour

MISSING = "dlq_missing"
ARRIVING = "dlq_messages_arriving"


def make_queue_with_attached_dlq(scanner: Scanner, name: str = "orders") -> tuple[str, str, str]:
    """Make a queue to which Mendq attached a DLQ. Return its ARN, the DLQ's ARN and the case id.

    A scan proposes the DLQ, and the operator approves it.
    """
    account = scanner.account
    queue = account.queue(name)
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="order")
    attach_lambda_consumer(scanner, queue)
    account.later(hours=8)
    start_next_hour(account)
    for minutes in range(10, 180, 10):
        at = account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue, at, sent=40, received=41, deleted=40, visible=1)
    scan_and_heal(scanner)
    (proposal,) = [
        transition for transition in account.transitions() if transition["symptom"] == MISSING
    ]
    case_id = str(proposal["case_id"])
    assert proposal["to"] == "proposed"
    send_decision(account, "approve", case_id)
    request = {"case_id": case_id, "queue_arn": queue, "symptom": MISSING}
    outcome = continue_case(request, make_owner_run(MISSING, account))
    assert outcome.case is not None
    dlq = arn_of_dlq(queue)
    ReportedQueue(account.clients, dlq)
    return queue, dlq, case_id


def move_messages_to_dlq(scanner: Scanner, dlq: str, number: int) -> None:
    """Send `number` messages to the DLQ, and have CloudWatch count them for the last 10 minutes."""
    account = scanner.account
    for _ in range(number):
        account.clients.sqs.send_message(QueueUrl=account.url(dlq), MessageBody="dead")
    for minutes in (10, 8, 6, 4):
        at = account.now - timedelta(minutes=minutes)
        scanner.put_metrics(dlq, at, visible=number if minutes < 8 else 0, age=60)


def scan_and_heal(scanner: Scanner) -> None:
    """Run the scan of this hour, and let heal handle its findings."""
    scanner.run_due_scan()
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}


def run_follow_up(scanner: Scanner) -> FollowUpResult:
    """Run follow-up as its Lambda function does every minute."""
    result = follow_up(make_context(scanner.account), OWNERS, lambda: 60)
    assert result.errors == {}
    return result


def states_of(scanner: Scanner, symptom: str) -> list[str]:
    """Return the states that the symptom's cases went through."""
    transitions = scanner.account.transitions()
    return [str(transition["to"]) for transition in transitions if transition["symptom"] == symptom]


def reason_of(scanner: Scanner, symptom: str) -> str:
    """Return the reason of the symptom's newest transition."""
    transitions = scanner.account.transitions()
    reasons = [
        transition["reason"] for transition in transitions if transition["symptom"] == symptom
    ]
    return str(reasons[-1])


def read_urgent_pages(scanner: Scanner) -> list[str]:
    """Return the texts of the urgent pages."""
    return [body for _, body in scanner.account.pages("urgent")]
