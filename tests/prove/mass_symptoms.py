"""A thousand queues show one symptom: the cause is not theirs, so they are left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.heal.conftest import Account, moto_account
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda
from tests.prove.proof import BEGINS_AT, Proof, Proving
from tests.prove.quick_case_store import quick_case_store

QUEUES = 1_000
CALLS_A_QUEUE = 3
QUEUES_A_BATCH = BATCH_MESSAGES // CALLS_A_QUEUE
Cases = Sequence[Mapping[str, Any]]


def at_once(proving: Proving, queues: int = QUEUES) -> None:
    """As full as batches go, one after another in the same minute."""
    with moto_account() as account, quick_case_store():
        cases = _failing_queues(proving, account, queues)
        reasons = {case["reason"].split(" managed queues ")[-1] for case in cases}
        not_theirs = {"show it within the hour: the cause is not this queue's"}
        proving.holding(
            {
                "no queue is written": proving.figures["queue_writes"] == 0,
                "every queue's case is told": _states(cases) == {"refused": queues},
                "each tells that the cause is not this queue's": reasons == not_theirs,
            }
        )


def _failing_queues(proving: Proving, account: Account, queues: int) -> Cases:
    """The transitions that it came to."""
    account.now = BEGINS_AT
    queue_arns = [account.queue(f"orders-{n}", VisibilityTimeout="30") for n in range(queues)]
    account.later(minutes=5)
    again: dict[str, str] = {}
    with proving.timed("wall_seconds"), heal_lambda(account) as lambda_:
        for first in range(0, queues, QUEUES_A_BATCH):
            bodies = dict(_failed_calls(account, queue_arns[first : first + QUEUES_A_BATCH]))
            account.later(seconds=5)
            again |= lambda_.deliver(bodies)
            proving.progress(first / queues)
        come_again = len(again)
        again = _once_more(account, lambda_, again)
    cases = account.transitions()
    _note(proving, cases, lambda_, queues)
    proving.figure("messages_delivered_again", come_again)
    proving.holds("every message is taken in two deliveries", whether=not again)
    proving.holds("one page at most", whether=lambda_.calls.of("sns", "Publish") <= 1)
    return cases


def _failed_calls(account: Account, queue_arns: list[str]) -> Iterator[tuple[str, str]]:
    for queue_arn in queue_arns:
        for n in range(CALLS_A_QUEUE):
            event_id = f"{queue_arn.rpartition(':')[2]}-{n}"
            yield event_id, envelope_of(account.record(queue_arn, event_id))


def _once_more(account: Account, lambda_: HealLambda, bodies: dict[str, str]) -> dict[str, str]:
    """After the intake queue's visibility timeout; what is left after that."""
    account.later(minutes=7)
    messages = list(bodies.items())
    left: dict[str, str] = {}
    for first in range(0, len(messages), BATCH_MESSAGES):
        left |= lambda_.deliver(dict(messages[first : first + BATCH_MESSAGES]))
    return left


def _note(proving: Proving, cases: Cases, lambda_: HealLambda, queues: int) -> None:
    calls = lambda_.calls
    proving.note(
        {
            "queues": queues,
            "failed_calls": queues * CALLS_A_QUEUE,
            "invocations": lambda_.invocations,
            "aws_calls": calls.total,
            "queue_writes": calls.queue_writes,
            "case_store_writes": calls.case_store_writes,
            "case_bucket_puts": calls.of("s3", "PutObject"),
            "pages": calls.of("sns", "Publish"),
            **{f"cases_{state}": count for state, count in _states(cases).items()},
        }
    )


def _states(cases: Cases) -> Counter[str]:
    return Counter(case["to"] for case in cases)


MASS_SYMPTOMS = (
    Proof(
        "mass_symptom",
        "A thousand queues that show one symptom at once are told, and none is written.",
        at_once,
    ),
)
