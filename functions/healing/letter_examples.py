"""Dead letters for the examples of the catalogue: two hundred that came two hours ago."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from functions.healing import examples
from functions.healing.callers import granted_by
from functions.healing.case import Case
from functions.healing.dead_letters import Redrive
from functions.healing.facts import Facts, LambdaConsumer, SourceQueue
from functions.healing.limits import Timing
from functions.healing.mode import Mode
from functions.healing.queue_defaults import DEFAULTS
from functions.healing.sole_source import SoleSource
from functions.healing.states import State
from functions.healing.steps import SetMessageRetention

A_DAY = 86_400
LATER = examples.AT + timedelta(hours=3)
HANDLER = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:letters", 30, 0)
LEASE = examples.case(
    "lease_expired", State.APPLIED, State.VERIFIED, State.WATCHING, reason="it did not show again"
)
KMS = examples.case("kms_throttled", State.WATCHING, State.CLOSED)
BY_A_PERSON = examples.case(
    "consumer_failing", State.ESCALATED, State.CLOSED, reason="rolled the release back"
)
FOR_ONE_NETWORK = json.dumps(
    {
        "Statement": {
            "Effect": "Deny",
            "Principal": "*",
            "Action": granted_by(("SendMessage",)),
            "Resource": examples.STANDARD_ARN,
            "Condition": {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}},
        }
    }
)
SOLE = SoleSource(
    examples.STANDARD_ARN,
    {},
    Mode.HEAL,
    deletes_per_second=20,
    soak_factor=Timing.soak_factor,
)
MEASURED = examples.measured(backlog_now=200, visible_now=200, oldest_age_seconds_now=7_200)


def source(letters_arn: str = examples.DEAD_LETTER_ARN, **attributes: str) -> SourceQueue:
    """The queue that they died in; `attributes` over its own."""
    defaults = {
        "RedrivePolicy": Redrive(letters_arn, 5).text,
        "VisibilityTimeout": "60",
        "MessageRetentionPeriod": str(DEFAULTS["MessageRetentionPeriod"]),
    }
    return SourceQueue(examples.STANDARD_ARN, {**defaults, **attributes})


def letters(*cases: Case, **attributes: str) -> Facts:
    """Their queue, where the cases about the source are these, else the lease that is mended."""
    given = {
        "ApproximateNumberOfMessages": "200",
        "MessageRetentionPeriod": str(SetMessageRetention.maximum),
        **attributes,
    }
    return replace(
        examples.queue(None, examples.DEAD_LETTER_ARN, **given),
        dead_letter_sources=(source(),),
        measured=MEASURED,
        source_cases=cases or (LEASE,),
        sole_source=SOLE,
    )
