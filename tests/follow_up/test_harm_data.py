"""A fix is verified only with data that could show its harm, whatever step it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.follow_up.case_evidence import DueCase, gather_evidence
from mendq.model.case import Case, start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.harms import HARM_BY_STEP_CLASS, HarmSign
from mendq.model.lifecycle import (
    SCAN_INTERVAL_AND_WINDOW,
    VerificationEvidence,
    make_next_transition,
)
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import (
    AllowRedriveFrom,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    DeduplicateByContent,
    LowerVisibilityTimeout,
    SetMaximumMessageSize,
    SetReceiveWaitTime,
    SetVisibilityTimeout,
)
from tests.account.account import ACCOUNT, REGION, Account
from tests.account.calm_metrics import DELETED_METRIC, VISIBLE_METRIC, CalmMetrics
from tests.heal.operators import make_context

_ARN_PREFIX = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
DLQ_NAME = "orders-dlq"
DLQ_ARN = f"{_ARN_PREFIX}{DLQ_NAME}"
SOURCE_ARNS = (f"{_ARN_PREFIX}bills", f"{_ARN_PREFIX}orders")
ATTACH = AttachDlq("", RedrivePolicy(DLQ_ARN, 5).text)


@dataclass(frozen=True)
class WrittenStep:
    """The steps that a fix wrote to a queue.

    Args:
        steps: The steps, the last one with a sign of harm.
        queue_name: The queue.
        attributes: The queue's attributes besides the written ones.
    """

    steps: tuple[AttributeStep, ...]
    queue_name: str = "orders"
    attributes: dict[str, str] = field(default_factory=dict)


STEPS_BY_KIND: dict[type[AttributeStep], WrittenStep] = {
    SetVisibilityTimeout: WrittenStep((SetVisibilityTimeout(30, 180),)),
    LowerVisibilityTimeout: WrittenStep((LowerVisibilityTimeout(14_400, 180),)),
    SetMaximumMessageSize: WrittenStep((SetMaximumMessageSize(1_024, 262_144),)),
    SetReceiveWaitTime: WrittenStep((SetReceiveWaitTime(0, 20),)),
    DeduplicateByContent: WrittenStep((DeduplicateByContent("false", "true"),), "orders.fifo"),
    CreateDlq: WrittenStep((CreateDlq("", DLQ_ARN),), attributes={"RedrivePolicy": ATTACH.after}),
    AttachDlq: WrittenStep((ATTACH,)),
    AllowRedriveFrom: WrittenStep(
        (
            AllowRedriveFrom(
                RedriveAllowPolicy("byQueue", SOURCE_ARNS[:1]).text,
                RedriveAllowPolicy("byQueue", SOURCE_ARNS).text,
            ),
        ),
        "bills-dlq",
    ),
}
# Of the timeouts above, and some time for the change to arrive.
LONGEST_TIMEOUT = timedelta(hours=5)
KINDS_WITH_SIGN = [kind for kind, harm in HARM_BY_STEP_CLASS.items() if harm.sign is not None]
BY_NAME = pytest.mark.parametrize("kind", KINDS_WITH_SIGN, ids=lambda kind: kind.__name__)


class FixedQueue:
    """A queue with the value of a fix, twelve hours after the write and without failed calls."""

    def __init__(self, account: Account, kind: type[AttributeStep]) -> None:
        self.account = account
        self.metrics = CalmMetrics(account.clients, delete_count=7)
        self.kind = kind
        written = STEPS_BY_KIND[kind]
        self.steps = written.steps
        if kind is not AllowRedriveFrom:
            account.queue(DLQ_NAME)
        in_queue = {
            step.attribute: str(step.after) for step in written.steps if not step.is_permanent
        }
        self.queue_arn = account.queue(written.queue_name, **written.attributes, **in_queue)

    def follow_up(self) -> tuple[VerificationEvidence, Case | None]:
        """Return the evidence, and the case's next transition."""
        written_at = self.account.now
        symptom = _find_symptom(self.kind)
        case = start_case(
            State.APPLIED,
            queue_arn=self.queue_arn,
            symptom=symptom.name,
            reason="made up",
            evidence=Evidence((Sighting.from_scan(written_at),)),
            steps=self.steps,
            now=written_at,
            actor="heal",
        )
        self.account.now = written_at + SCAN_INTERVAL_AND_WINDOW + LONGEST_TIMEOUT
        context = make_context(self.account)
        view = context.case_store.look(self.queue_arn, symptom.name, symptom.attributes)
        evidence = gather_evidence(DueCase(symptom, case, view, context))
        return evidence, make_next_transition(case, evidence, self.account.now)


def _find_symptom(kind: type[AttributeStep]) -> Symptom:
    """Return a symptom whose fix writes the attribute of this kind of step."""
    return next(
        symptom for symptom in SYMPTOM_BY_NAME.values() if kind.attribute in symptom.attributes
    )


@BY_NAME
def test_step_is_verified_if_cloudwatch_has_data_and_none_shows_harm(
    account: Account, kind: type[AttributeStep]
) -> None:
    evidence, moved = FixedQueue(account, kind).follow_up()
    assert evidence.harm == ""
    assert moved is not None
    assert moved.state is State.VERIFIED


@BY_NAME
def test_step_is_not_verified_if_cloudwatch_has_no_data_that_could_show_harm(
    account: Account, kind: type[AttributeStep]
) -> None:
    fixed_queue = FixedQueue(account, kind)
    fixed_queue.metrics.silent_metrics = frozenset({VISIBLE_METRIC})
    evidence, moved = fixed_queue.follow_up()
    assert evidence.harm is None
    assert evidence.lacks_harm_data
    assert moved is not None
    assert (moved.state, moved.code) == (State.UNVERIFIED, "")
    assert moved.reason.endswith("CloudWatch has too little data to tell whether the fix does harm")


@BY_NAME
@pytest.mark.parametrize(
    ("first_minutes", "last_minutes", "is_verified"),
    [
        pytest.param(0, 2, False, id="only the last two minutes"),
        pytest.param(0, 100, False, id="less than half of the time"),
        pytest.param(300, 0, False, id="none of the last hour"),
        pytest.param(0, 200, True, id="more than half, up to the end"),
    ],
)
def test_step_is_verified_only_if_cloudwatch_reports_most_of_the_time_and_its_end(
    account: Account,
    kind: type[AttributeStep],
    first_minutes: int,
    last_minutes: int,
    *,
    is_verified: bool,
) -> None:
    fixed_queue = FixedQueue(account, kind)
    fixed_queue.metrics.reported_minutes = (first_minutes, last_minutes)
    evidence, moved = fixed_queue.follow_up()
    assert evidence.lacks_harm_data is not is_verified
    assert moved is not None
    assert (moved.state is State.VERIFIED) is is_verified


@BY_NAME
def test_step_is_not_verified_by_the_short_time_after_a_gap_of_one_metric(
    account: Account, kind: type[AttributeStep]
) -> None:
    """Until the last ten minutes, CloudWatch lacks the deletes. What is measured begins there."""
    fixed_queue = FixedQueue(account, kind)
    fixed_queue.metrics.missing_until_last = {DELETED_METRIC: 10}
    evidence, moved = fixed_queue.follow_up()
    assert evidence.lacks_harm_data
    assert moved is not None
    assert moved.state is State.UNVERIFIED


def test_every_kind_of_step_with_a_sign_of_harm_is_tested_here() -> None:
    assert STEPS_BY_KIND.keys() == set(KINDS_WITH_SIGN)
    assert {HARM_BY_STEP_CLASS[kind].sign for kind in STEPS_BY_KIND} == set(HarmSign)


@pytest.mark.parametrize("kind", [CreateDlq, AttachDlq], ids=lambda kind: kind.__name__)
def test_empty_dlq_without_data_does_not_verify_its_step_because_messages_may_have_left(
    account: Account, kind: type[AttributeStep]
) -> None:
    fixed_queue = FixedQueue(account, kind)
    assert account.attributes(DLQ_ARN)["ApproximateNumberOfMessages"] == "0"
    fixed_queue.metrics.has_data = False
    evidence, _ = fixed_queue.follow_up()
    assert evidence.harm is None


def test_messages_in_a_created_dlq_are_reported_as_harm_also_without_data(
    account: Account,
) -> None:
    fixed_queue = FixedQueue(account, CreateDlq)
    account.clients.sqs.send_message(QueueUrl=account.url(DLQ_ARN), MessageBody="moved")
    fixed_queue.metrics.has_data = False
    evidence, moved = fixed_queue.follow_up()
    assert "1 message moved to the DLQ orders-dlq" in (evidence.harm or "")
    assert moved is not None
    assert moved.state is State.ESCALATED
