"""Nobody chose the visibility timeout: it is SQS's 30 seconds, and work takes nearly as long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.dlq.attach import FIXED_FIRST
from mendq.catalogue.examples import AT, FUNCTION, standard, vary
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import (
    MAX_VISIBILITY_TAG,
    failing_consumer,
    slowest,
    to_advised,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import DEFAULTS
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY

DEFAULT_SECONDS = int(DEFAULTS[SetVisibilityTimeout.attribute])
NEARLY_SECONDS = 20


def detect(facts: Facts) -> DetectedFault | None:
    """The default, and runs that take two thirds of it; a race says it better."""
    p99_seconds, name = slowest(facts)
    if p99_seconds <= NEARLY_SECONDS or not is_suspect(facts) or failing_consumer(facts):
        return None
    if FIXED_FIRST & facts.open_symptoms:
        return None
    unchanged = facts.modified_at is not None and facts.modified_at == facts.created_at
    return DetectedFault(
        f"the visibility timeout is SQS's default of {DEFAULT_SECONDS} s"
        f"{', and the queue was never changed' * unchanged}; in the last hour 1 of 100 runs of "
        f"{name} took {p99_seconds:.1f} s or more"
    )


def is_suspect(facts: Facts) -> bool:
    """A function whose runs may take that long."""
    may_take = max((each.timeout_seconds for each in facts.lambda_consumers), default=0)
    return facts.visibility_seconds == DEFAULT_SECONDS and may_take > NEARLY_SECONDS


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    return to_advised(facts, limits, SetVisibilityTimeout, shows=is_suspect(facts))


def _ran(seconds: float | None = 24.0, fails: float = 0, **over: Any) -> Facts:
    """99 of 100 runs of its function stayed within so many seconds."""
    ran = replace(FUNCTION, duration_p99_seconds=seconds, error_share=fails)
    return standard(lambda_consumers=(ran,), sent=1, **over)


_MADE: Any = dict.fromkeys(("CreatedTimestamp", "LastModifiedTimestamp"), f"{AT.timestamp():.0f}")
_TO_185 = (SetVisibilityTimeout(DEFAULT_SECONDS, 185),)

VISIBILITY_TIMEOUT_DEFAULT = FixedSymptom(
    name="visibility_timeout_default",
    sentence="The visibility timeout is SQS's default of 30 s, and work takes nearly as long.",
    plan_in_words="Raise VisibilityTimeout to what AWS advises or its tag names; never by itself.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    gives_way_to=FIXED_FIRST,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS, Need.OPEN_CASES}), is_suspect),
    tags=(MAX_PROCESSING, MAX_VISIBILITY),
    examples=lambda: (
        QueueExample("runs of 24 s", _ran(), _TO_185),
        QueueExample("since it was made", _ran(**_MADE), _TO_185),
        QueueNearMiss("somebody chose 31 s", _ran(VisibilityTimeout=31)),
        QueueNearMiss("runs of 20 s", _ran(20.0)),
        QueueNearMiss("nobody knows how long runs take", _ran(None)),
        QueueNearMiss("its function fails", _ran(24.0, 0.5)),
        RefusalExample(
            "the ceiling", vary(_ran(), tags={MAX_VISIBILITY_TAG: "184"}), "over_ceiling"
        ),
        RefusalExample("somebody has chosen since", _ran(VisibilityTimeout=60), "need_already_met"),
        RefusalExample("a tag", vary(_ran(), tags={MAX_VISIBILITY_TAG: "?"}), "tag_unreadable"),
    ),
)
