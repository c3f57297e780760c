"""What was given up: messages in our own DLQs, Lambdas that fail without one."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms.description import AlarmDescription
from infra.alarms.liveness import BLIND
from infra.alarms.watching import AS_BEFORE, FINE, FIVE_MINUTES, Firing, Ringing, watch
from mendq.model.case import Severity

FAILS_IN, FAILING_PERIODS = 2, 6
IMPACT = "Something that Mendq was to do was given up; it is kept for 14 days, for a person."
UNDELIVERED = AlarmDescription(
    "failed_calls_undelivered",
    "EventBridge could not put failed calls into the intake queue",
    BLIND,
    runbook="own_dlq",
    severity=Severity.URGENT,
)
DLQ = AlarmDescription(
    "own_dlq",
    "a DLQ of Mendq's own holds something",
    IMPACT,
    severity=Severity.INFO,
)
FAILING = AlarmDescription(
    "lambda_failing",
    f"a Lambda that writes failed in {FAILS_IN} of {FAILING_PERIODS} periods of "
    f"{FIVE_MINUTES.to_minutes():.0f} minutes",
    "Changes that were approved, or are due, are not made; after a day their cases are escalated.",
    severity=Severity.INFO,
)
ANNOUNCED = (UNDELIVERED, DLQ, FAILING)


class Parked(Construct):
    """Each tells of itself: what lies in one queue for days must not hide the next.

    `dlqs` and `writers` by what they belong to, such as `start-nightly`.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        undelivered: sqs.Queue,
        dlqs: Mapping[str, sqs.Queue],
        writers: Mapping[str, lambda_.Function],
    ) -> None:
        super().__init__(scope, name)
        again = Firing(1, FINE, FAILS_IN, FAILING_PERIODS)
        self.alarms = (
            self._messages(UNDELIVERED, undelivered),
            *(self._messages(DLQ, each, of) for of, each in dlqs.items()),
            *(
                watch(self, FAILING, each.metric_errors(period=FIVE_MINUTES), again, of)
                for of, each in writers.items()
            ),
        )

    def _messages(self, announced: AlarmDescription, queue: sqs.Queue, of: str = "") -> Ringing:
        """By what waits, not by what arrived: it ends when a person has emptied the queue."""
        waiting = queue.metric_approximate_number_of_messages_visible(
            period=FIVE_MINUTES, statistic="Maximum"
        )
        return watch(self, announced, waiting, Firing(1, AS_BEFORE), of)
