"""Looks at every queue of an account: each thing once, and no faster than it can bear."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.aws.asked_once import AskedOnce
from functions.aws.consumers import FIGURES, Figures, mappings_of
from functions.aws.looks import Looks, function_names
from functions.aws.measurements import measure
from functions.aws.open_cases import OpenCase
from functions.aws.pace import Pace
from functions.healing.facts import Facts
from functions.healing.measured import Measured
from functions.healing.measuring import Window

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping_

# SQS states no quota for looking at a queue's attributes; 50 a second have 10,000 queues looked at
# in three and a half minutes.
SQS_CALLS_PER_SECOND = 50
# Lambda lets an account make 15 control-plane calls a second, deployments and all.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
LAMBDA_CALLS_PER_SECOND = 5
# CloudWatch gives 50 calls, and 90,000 datapoints older than three hours, a second.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
CLOUDWATCH_CALLS_PER_SECOND = 2
FUNCTIONS_A_CALL = 100


@dataclass(frozen=True)
class Paces:
    """One for each service that is asked."""

    sqs: Pace = field(default_factory=lambda: Pace(SQS_CALLS_PER_SECOND))
    functions: Pace = field(default_factory=lambda: Pace(LAMBDA_CALLS_PER_SECOND))
    cloudwatch: Pace = field(default_factory=lambda: Pace(CLOUDWATCH_CALLS_PER_SECOND))


@dataclass(frozen=True)
class SweepLooks(Looks):
    """What was answered is kept for as long as the sweep lasts."""

    paces: Paces = field(default_factory=Paces)
    kept: AskedOnce = field(default_factory=AskedOnce)

    def attributes(self, queue_arn: str) -> Mapping[str, str]:
        def ask() -> Mapping[str, str]:
            self.paces.sqs.wait()
            return super(SweepLooks, self).attributes(queue_arn)

        return self.kept.about(("attributes", queue_arn), ask)

    def sources(self, queue_arn: str) -> tuple[str, ...]:
        def ask() -> tuple[str, ...]:
            self.paces.sqs.wait()
            return super(SweepLooks, self).sources(queue_arn)

        return self.kept.about(("sources", queue_arn), ask)

    def redrives(self, dead_letter_arn: str) -> bool:
        def ask() -> bool:
            self.paces.sqs.wait()
            return super(SweepLooks, self).redrives(dead_letter_arn)

        return self.kept.about(("redrives", dead_letter_arn), ask)

    def mappings(self, queue_arn: str) -> Sequence[Mapping_]:
        """One listing of the account's, instead of one for each queue."""
        return self.kept.about("mappings", self._mappings).get(queue_arn, ())

    def _mappings(self) -> Mapping[str, Sequence[Mapping_]]:
        by_queue: dict[str, list[Mapping_]] = defaultdict(list)
        for each in mappings_of(self.clients):
            by_queue[each.get("EventSourceArn", "")].append(each)
        return by_queue

    def timeout_seconds(self, function_arn: str) -> int | None:
        def ask() -> int | None:
            self.paces.functions.wait()
            return super(SweepLooks, self).timeout_seconds(function_arn)

        return self.kept.about(("timeout", function_arn), ask)

    def figures(self, names: Sequence[str]) -> Mapping[str, Figures]:
        """Many functions to a call; those that are known are not asked about again."""
        unknown = [name for name in names if not self.kept.knows(("figures", name))]
        for first in range(0, len(unknown), FUNCTIONS_A_CALL):
            self.paces.cloudwatch.wait()
            some = unknown[first : first + FUNCTIONS_A_CALL]
            for name, figures in super().figures(some).items():
                self.kept.about(("figures", name), lambda figures=figures: figures)  # type: ignore[misc]
        return {name: self.kept.about(("figures", name), Figures) for name in names}

    def metrics_of_figures(self, suspects: Iterable[Facts]) -> int:
        """How many metrics their consumers' figures would cost."""
        names = {name for each in suspects for name in function_names(each)}
        return len(FIGURES) * sum(not self.kept.knows(("figures", name)) for name in names)

    def measured(self, windows: Mapping[str, Window]) -> Mapping[str, Measured | None]:
        self.paces.cloudwatch.wait()
        return measure(self.clients, windows)


def open_about(
    list_open: Callable[[], list[OpenCase]],
) -> Callable[[Iterable[str]], frozenset[str]]:
    """What cases are open about some queues, from one listing of all."""
    kept = AskedOnce()

    def by_queue() -> Mapping[str, set[str]]:
        symptoms: dict[str, set[str]] = defaultdict(set)
        for each in list_open():
            symptoms[each.queue_arn].add(each.symptom)
        return dict(symptoms)

    def about(queue_arns: Iterable[str]) -> frozenset[str]:
        known = kept.about("open", by_queue)
        return frozenset(name for each in queue_arns for name in known.get(each, ()))

    return about
