"""A million failed calls about one queue, at a day's pace: 11.6 a second."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from uuid import UUID

from mendq.cases.spread import NOTE_SLOT_DURATION
from mendq.heal.apply import FAILURE_NOTES_PAUSE
from mendq.model.evidence import EVENTS_SUFFICIENT_FOR_CASE
from mendq.model.mode import Mode
from tests.account.account import Account, make_settings, moto_account
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda
from tests.prove.proof import BEGINS_AT, Proof, Proving

CALLS = 1_000_000
# At the same rate, so in a little over an hour.
QUICK_CALLS = 50_000
A_DAY_SECONDS = 86_400
# A transition is recorded, and marked once it lies in the case bucket.
CASE_STORE_WRITES_OF_A_TRANSITION = 2
# Besides the transition: spread, claim, and one more if the evidence came in two parts.
CASE_STORE_WRITES_OF_A_FIX = CASE_STORE_WRITES_OF_A_TRANSITION + 3
# A queue that goes on showing a symptom is noted anew every other slot, and forgotten once.
SPREAD_NOTED_EVERY = 2 * NOTE_SLOT_DURATION


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
    with proving.measure_seconds("wall_seconds"), heal_lambda(account) as lambda_:
        for bodies in batches(account, queue_arn, calls, seconds):
            again += len(lambda_.deliver(bodies))
            proving.progress(lambda_.invocations * BATCH_MESSAGES / calls)
    made = lambda_.calls
    transitions = len(account.transitions())
    puts = made.of("s3", "PutObject")
    pages = made.of("sns", "Publish")
    proving.note(
        {
            "failed_calls": calls,
            "invocations": lambda_.invocations,
            "aws_calls": made.total,
            "case_store_writes": made.case_store_writes,
            "case_bucket_puts": puts,
            "transitions": transitions,
            "pages": pages,
        }
    )
    no_more = "no more is put into the case bucket than there are transitions"
    proving.holding(
        {
            "every message is taken at its first delivery": again == 0,
            no_more: puts <= transitions,
            "one page at most": pages <= 1,
        }
    )
    return lambda_, queue_arn


def prove_storm(proving: Proving, calls: int = CALLS) -> None:
    with moto_account() as account:
        seconds = A_DAY_SECONDS * calls / CALLS
        lambda_, queue_arn = storm(proving, account, calls, seconds)
        raised = account.visibility(queue_arn) == 45
        # What fails while the case is open says whether it helped: the first few, then some.
        noted = EVENTS_SUFFICIENT_FOR_CASE + int(seconds / FAILURE_NOTES_PAUSE.total_seconds())
        most = CASE_STORE_WRITES_OF_A_FIX + noted
        few = lambda_.calls.case_store_writes <= most
        proving.holding(
            {
                "one write of the queue at most": lambda_.calls.queue_writes <= 1,
                "its visibility timeout went from 30 s to 45 s": raised,
                f"the case store is written at most {most} times": few,
            }
        )


def prove_observed_storm(proving: Proving, calls: int = CALLS) -> None:
    with moto_account() as account:
        account.settings = make_settings(tag_may_raise_to=Mode.OBSERVE)
        seconds = A_DAY_SECONDS * calls / CALLS
        lambda_, queue_arn = storm(proving, account, calls, seconds)
        tellings = 1 + int(seconds / 60 / account.settings.timing.cooldown_minutes)
        # In observe mode nothing is open, so it is told again once a cooldown.
        spread = 2 * (1 + int(seconds / SPREAD_NOTED_EVERY.total_seconds()))
        most = CASE_STORE_WRITES_OF_A_TRANSITION * tellings + spread
        told = len(account.transitions())
        few = lambda_.calls.case_store_writes <= most
        stands = account.visibility(queue_arn) == 30
        proving.holding(
            {
                "no write of the queue": lambda_.calls.queue_writes == 0,
                "its visibility timeout is still 30 s": stands,
                f"it is told at most once a cooldown: {tellings} times": told <= tellings,
                f"the case store is written at most {most} times": few,
            }
        )


STORMS = (
    Proof(
        "storm",
        "Failed calls about one queue, a million a day, are one write, told once.",
        prove_storm,
        prove_quickly=partial(prove_storm, calls=QUICK_CALLS),
    ),
    Proof(
        "storm_observed",
        "In observe mode the same storm writes no queue and is told once a cooldown.",
        prove_observed_storm,
        prove_quickly=partial(prove_observed_storm, calls=QUICK_CALLS),
    ),
)
