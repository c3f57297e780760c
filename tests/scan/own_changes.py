"""A DLQ that Mendq attached, and messages that move there afterwards."""

from __future__ import annotations

from datetime import timedelta

from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.resume import continue_case
from mendq.model.queue import arn_of_dlq
from tests.heal.operators import OWNERS, context_of, run_of, say
from tests.scan.scanner import Scanner, attach_lambda_consumer, start_next_hour

MISSING, ARRIVING = "dlq_missing", "dlq_messages_arriving"


def attached(scanner: Scanner, name: str = "orders") -> tuple[str, str, str]:
    """A queue whose DLQ was proposed, approved and attached: its ARN, the DLQ's, and the case."""
    account = scanner.account
    queue = account.queue(name)
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="order")
    attach_lambda_consumer(scanner, queue)
    account.later(hours=8)
    start_next_hour(account)
    for minutes in range(10, 180, 10):
        at = account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue, at, sent=40, received=41, deleted=40, visible=1)
    a_round(scanner)
    (proposed,) = [each for each in account.transitions() if each["symptom"] == MISSING]
    case_id = str(proposed["case_id"])
    assert proposed["to"] == "proposed"
    say(account, "approve", case_id)
    request = {"case_id": case_id, "queue_arn": queue, "symptom": MISSING}
    done = continue_case(request, run_of(MISSING, account))
    assert done.case is not None
    return queue, arn_of_dlq(queue), case_id


def arrive(scanner: Scanner, dlq: str, number: int) -> None:
    """So many messages move to the DLQ now, which CloudWatch has counted since ten minutes."""
    account = scanner.account
    for _ in range(number):
        account.clients.sqs.send_message(QueueUrl=account.url(dlq), MessageBody="dead")
    for minutes in (10, 8, 6, 4):
        at = account.now - timedelta(minutes=minutes)
        scanner.put_metrics(dlq, at, visible=number if minutes < 8 else 0, age=60)


def a_round(scanner: Scanner) -> None:
    """The scan of this hour, and heal about what it found."""
    scanner.run_due_scan()
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}


def follow(scanner: Scanner) -> FollowUpResult:
    """follow_up, as its Lambda does it each minute."""
    followed = follow_up(context_of(scanner.account), OWNERS, lambda: 60)
    assert followed.errors == {}
    return followed


def states_of(scanner: Scanner, symptom: str) -> list[str]:
    """The states that the symptom's cases went through."""
    transitions = scanner.account.transitions()
    return [str(each["to"]) for each in transitions if each["symptom"] == symptom]


def reason_of(scanner: Scanner, symptom: str) -> str:
    """Why the symptom's newest transition is as it is."""
    reasons = [e["reason"] for e in scanner.account.transitions() if e["symptom"] == symptom]
    return str(reasons[-1])


def urgent(scanner: Scanner) -> list[str]:
    """The urgent pages."""
    return [body for _, body in scanner.account.pages("urgent")]
