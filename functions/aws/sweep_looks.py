"""Looks at every queue of an account: each thing once, and no faster than it can bear."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from functions.aws.asked_once import AskedOnce
from functions.aws.consumers import FIGURES, Figures, mappings_of
from functions.aws.dead_letters_look import SOURCES, dead_letter_arn_here
from functions.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs
from functions.aws.looks import Looks, function_names
from functions.aws.measurements import measure
from functions.aws.open_cases import OpenCase
from functions.aws.pace import Pace
from functions.healing.facts import Facts, Need
from functions.healing.measured import Measured
from functions.healing.measuring import Window, metrics_of

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
THREADS = 8


@dataclass(frozen=True)
class Paces:
    """One for each service that is asked."""

    sqs: Pace = field(default_factory=lambda: Pace(SQS_CALLS_PER_SECOND))
    functions: Pace = field(default_factory=lambda: Pace(LAMBDA_CALLS_PER_SECOND))
    cloudwatch: Pace = field(default_factory=lambda: Pace(CLOUDWATCH_CALLS_PER_SECOND))


@dataclass(frozen=True)
class SweepLooks(Looks):
    """What was answered is kept for as long as the sweep lasts.

    `dead_letters` are the queues that were heard to take some.
    """

    paces: Paces = field(default_factory=Paces)
    kept: AskedOnce = field(default_factory=AskedOnce)
    dead_letters: set[str] = field(default_factory=set)

    def attributes(self, queue_arn: str) -> Mapping[str, str]:
        def ask() -> Mapping[str, str]:
            self.paces.sqs.wait()
            attributes = super(SweepLooks, self).attributes(queue_arn)
            there = dead_letter_arn_here(Facts(queue_arn, attributes, {}))
            self.dead_letters.update([there] if there else [])
            return attributes

        return self.kept.about(("attributes", queue_arn), ask)

    def sources(self, queue_arn: str) -> tuple[str, ...]:
        def ask() -> tuple[str, ...]:
            self.paces.sqs.wait()
            sources = super(SweepLooks, self).sources(queue_arn)
            self.dead_letters.update([queue_arn] if sources else [])
            return sources

        return self.kept.about(("sources", queue_arn), ask)

    def moves_out_of(self, dead_letter_arn: str) -> frozenset[str]:
        def ask() -> frozenset[str]:
            self.paces.sqs.wait()
            return super(SweepLooks, self).moves_out_of(dead_letter_arn)

        return self.kept.about(("moves", dead_letter_arn), ask)

    def moves_by_name(self) -> frozenset[str]:
        """What every dead-letter queue says that was heard of, and earlier stretches noted.

        First asked once all queues were looked at.
        """
        return self.kept.about("moves_by_name", self._moves_by_name)

    def _moves_by_name(self) -> frozenset[str]:
        with ThreadPoolExecutor(THREADS) as pool:
            heard = pool.map(self._heard_of_moves, sorted(self.dead_letters))
            return super().moves_by_name().union(*heard) - {SOURCES}

    def _heard_of_moves(self, dead_letter_arn: str) -> frozenset[str]:
        """One that keeps us out says nothing of others; about its own sources it is an error."""
        try:
            return self.moves_out_of(dead_letter_arn)
        except (FactsUnavailable, QueueGone, QueueRefusesUs):
            return frozenset()

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
        """Those that are known are not asked about again: each metric is billed."""
        unknown = {
            arn: window
            for arn, window in windows.items()
            if not self.kept.knows(("measured", arn, window))
        }
        if unknown:
            self.paces.cloudwatch.wait()
            for arn, found in measure(self.clients, unknown).items():
                self.kept.about(("measured", arn, windows[arn]), lambda found=found: found)  # type: ignore[misc]
        return {
            arn: self.kept.about(("measured", arn, window), lambda: None)
            for arn, window in windows.items()
        }

    def with_more(self, facts: Facts, needs: Collection[Need]) -> Facts:
        """What was measured before is not measured again."""
        more = super().with_more(facts, frozenset(needs) - {Need.MEASUREMENTS})
        return self.measurements(more) if Need.MEASUREMENTS in needs else more

    def measurements(self, facts: Facts) -> Facts:
        window = self.window(facts)
        if window is None:
            return facts
        found = self.measured({facts.queue_arn: window})
        return replace(facts, measured=found[facts.queue_arn])

    def source_cases(self, facts: Facts) -> Facts:
        """Asked of each source once, however many dead-letter queues it has had."""
        cases = (
            case
            for arn in facts.source_arns
            for case in self.kept.about(("cases", arn), partial(self.newest_about, (arn,)))
        )
        return replace(facts, source_cases=tuple(cases))

    def metrics_to_ask(self, facts: Facts, needs: Collection[Need]) -> int:
        """How many metrics it takes to know what `needs` names, beyond what is kept.

        `facts` have attributes; who consumes is asked here, which costs nothing.
        """
        window = self.window(facts) if Need.MEASUREMENTS in needs else None
        known = window is None or self.kept.knows(("measured", facts.queue_arn, window))
        figured = [self.consumers(facts)] if Need.LAMBDA_CONSUMERS in needs else []
        measured = 0 if known else len(metrics_of(fifo=facts.is_fifo))
        return measured + self.metrics_of_figures(figured) + _of_its_source(needs)

    def metrics_asked_again(self, queue_arn: str, needs: Collection[Need]) -> int:
        """How many metrics heal asks for, which keeps nothing of what a sweep was answered."""
        facts = Facts(queue_arn, self.attributes(queue_arn), {})
        measures = Need.MEASUREMENTS in needs and self.window(facts) is not None
        names = function_names(self.consumers(facts)) if Need.LAMBDA_CONSUMERS in needs else ()
        own = len(metrics_of(fifo=facts.is_fifo)) * measures + len(FIGURES) * len(names)
        return own + _of_its_source(needs)


def _of_its_source(needs: Collection[Need]) -> int:
    """The deletes there."""
    return int(Need.SOLE_SOURCE in needs)


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
