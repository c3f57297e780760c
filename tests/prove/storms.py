"""A million failed calls about one queue, at a day's pace: 11.6 a second."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from mendq.cases.view import SLOT
from mendq.heal.apply import NOTED_EVERY
from mendq.model.evidence import EvidenceNeeded
from mendq.model.limits import Mode
from tests.heal.conftest import Account, moto_account, settings
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda
from tests.prove.proof import BEGINS_AT, Proof, Proving

CALLS = 1_000_000
A_DAY_SECONDS = 86_400
# A transition is recorded, and marked once it lies in the case bucket.
CASE_STORE_WRITES_OF_A_TRANSITION = 2
# Spread and claim beside it, and one more where its evidence came in two.
CASE_STORE_WRITES_OF_A_FIX = CASE_STORE_WRITES_OF_A_TRANSITION + 3
# A queue that goes on showing a symptom is noted anew every other slot, and forgotten once.
SPREAD_NOTED_EVERY = 2 * SLOT


def batches(
    account: Account, queue_arn: str, calls: int, seconds: float
) -> Iterator[dict[str, str]]:
    """Distinct calls, evenly over `seconds`; the account's clock moves with them."""
    template = envelope_of(account.record(queue_arn, "EVENT-ID", eventTime="EVENT-TIME"))
    begin = account.now
    for first in range(0, calls, BATCH_MESSAGES):
        bodies: dict[str, str] = {}
        for n in range(first, min(first + BATCH_MESSAGES, calls)):
            event_id = str(UUID(int=n))
            at = begin + timedelta(seconds=seconds * n / calls)
            text = template.replace("EVENT-ID", event_id)
            bodies[event_id] = text.replace("EVENT-TIME", f"{at:%Y-%m-%dT%H:%M:%SZ}")
        account.now = at + timedelta(seconds=5)
        yield bodies


def storm(proving: Proving, account: Account, calls: int, seconds: float) -> tuple[HealLambda, str]:
    """Deliver them all; the Lambda that took them, and the queue they were about."""
    account.now = BEGINS_AT
    queue_arn = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    again = 0
    with proving.timed("wall_seconds"), heal_lambda(account) as lambda_:
        for bodies in batches(account, queue_arn, calls, seconds):
            again += len(lambda_.deliver(bodies))
            proving.progress(lambda_.invocations * BATCH_MESSAGES / calls)
    proving.figure("failed_calls", calls)
    proving.figure("invocations", lambda_.invocations)
    proving.figure("aws_calls", lambda_.calls.total)
    proving.figure("set_queue_attributes", lambda_.calls.of("sqs", "SetQueueAttributes"))
    proving.figure("case_store_writes", lambda_.calls.case_store_writes)
    proving.figure("case_bucket_puts", lambda_.calls.of("s3", "PutObject"))
    proving.figure("transitions", len(account.transitions()))
    proving.figure("pages", lambda_.calls.of("sns", "Publish"))
    proving.figure("log_megabytes", round(lambda_.output_bytes / 1e6, 2))
    proving.holds("every message is taken at its first delivery", whether=again == 0)
    proving.holds(
        "no more is put into the case bucket than there are transitions",
        whether=lambda_.calls.of("s3", "PutObject") <= len(account.transitions()),
    )
    proving.holds("one page at most", whether=lambda_.calls.of("sns", "Publish") <= 1)
    return lambda_, queue_arn


def fixed(proving: Proving, calls: int = CALLS) -> None:
    with moto_account() as account:
        seconds = A_DAY_SECONDS * calls / CALLS
        lambda_, queue_arn = storm(proving, account, calls, seconds)
        proving.holds("one write of the queue at most", whether=lambda_.calls.queue_writes <= 1)
        proving.holds(
            "its visibility timeout went from 30 s to 45 s",
            whether=account.visibility(queue_arn) == 45,
        )
        # What fails while the case is open says whether it helped: the first few, then some.
        noted = EvidenceNeeded().distinct_events + int(seconds / NOTED_EVERY.total_seconds())
        most = CASE_STORE_WRITES_OF_A_FIX + noted
        proving.holds(
            f"the case store is written at most {most} times",
            whether=lambda_.calls.case_store_writes <= most,
        )


def observed(proving: Proving, calls: int = CALLS) -> None:
    with moto_account() as account:
        account.settings = settings(tag_may_raise_to=Mode.OBSERVE)
        seconds = A_DAY_SECONDS * calls / CALLS
        lambda_, queue_arn = storm(proving, account, calls, seconds)
        tellings = 1 + int(seconds / 60 / account.settings.timing.cooldown_minutes)
        proving.holds("no write of the queue", whether=lambda_.calls.queue_writes == 0)
        proving.holds(
            "its visibility timeout is still 30 s", whether=account.visibility(queue_arn) == 30
        )
        proving.holds(
            f"it is told at most once a cooldown: {tellings} times",
            whether=len(account.transitions()) <= tellings,
        )
        # In observe mode nothing is open, so it is told again once a cooldown.
        most = CASE_STORE_WRITES_OF_A_TRANSITION * tellings + 2 * (
            1 + int(seconds / SPREAD_NOTED_EVERY.total_seconds())
        )
        proving.holds(
            f"the case store is written at most {most} times",
            whether=lambda_.calls.case_store_writes <= most,
        )


STORMS = (
    Proof(
        "storm",
        "A million failed calls about one queue in a day are one write, told once.",
        fixed,
    ),
    Proof(
        "storm_observed",
        "In observe mode the same storm writes no queue and is told once a cooldown.",
        observed,
    ),
)
