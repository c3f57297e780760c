"""Read every queue of an account, each thing once and within AWS's rate limits."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from mendq.aws.alarms import queue_alarms, with_alarms
from mendq.aws.cloudwatch import optional_series
from mendq.aws.consumers import FIGURES, Figures, mappings_of
from mendq.aws.dlqs import SOURCES, dlq_arn_here
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.facts_reader import FactsReader, function_names
from mendq.aws.pace import Pace
from mendq.cases.context import StoreContext
from mendq.model.facts import Facts, Need
from mendq.model.limits import Consent
from mendq.model.metrics import Measured, Window, metrics_of

Answer = TypeVar("Answer")


class AskedOnce(Struct, frozen=True):
    """Answers by what was asked; an error is an answer too."""

    _answers: dict[Hashable, Future[Any]] = msgspec.field(default_factory=dict)
    _lock: threading.Lock = msgspec.field(default_factory=threading.Lock)

    def about(self, asked: Hashable, ask: Callable[[], Answer]) -> Answer:
        """What `ask` answered the first time, or raised."""
        with self._lock:
            known = self._answers.get(asked)
            answer = self._answers.setdefault(asked, Future()) if known is None else known
        if known is None:
            try:
                answer.set_result(ask())
            except Exception as error:  # noqa: BLE001 - raised below, to whoever asked
                answer.set_exception(error)
        found: Answer = answer.result()
        return found

    def keep(self, asked: Hashable, answer: object) -> None:
        """Answer so from now on, unless it was answered before."""
        self.about(asked, lambda: answer)

    def knows(self, asked: Hashable) -> bool:
        return asked in self._answers


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


class Paces(Struct, frozen=True):
    """One for each service that is asked."""

    sqs: Pace = msgspec.field(default_factory=lambda: Pace(SQS_CALLS_PER_SECOND))
    functions: Pace = msgspec.field(default_factory=lambda: Pace(LAMBDA_CALLS_PER_SECOND))
    cloudwatch: Pace = msgspec.field(default_factory=lambda: Pace(CLOUDWATCH_CALLS_PER_SECOND))


class ScanReader(FactsReader, frozen=True):
    """What was answered is kept for as long as the scan lasts.

    `known_dlqs` are the queues that were heard to take some.
    """

    paces: Paces = msgspec.field(default_factory=Paces)
    retained: AskedOnce = msgspec.field(default_factory=AskedOnce)
    known_dlqs: set[str] = msgspec.field(default_factory=set)

    def _in_turn(self, pace: Pace, ask: Callable[[str], Answer], arn: str) -> Answer:
        """What is kept, or asked for when it is this call's turn."""

        def paced() -> Answer:
            pace.wait()
            return ask(arn)

        return self.retained.about((ask.__name__, arn), paced)

    def attributes(self, queue_arn: str) -> Mapping[str, str]:
        attributes = self._in_turn(self.paces.sqs, super().attributes, queue_arn)
        there = dlq_arn_here(Facts(queue_arn, attributes, {}))
        self.known_dlqs.update([there] if there else [])
        return attributes

    def tags(self, queue_arn: str) -> Mapping[str, str]:
        return self._in_turn(self.paces.sqs, super().tags, queue_arn)

    def sources(self, queue_arn: str) -> tuple[str, ...]:
        sources = self._in_turn(self.paces.sqs, super().sources, queue_arn)
        self.known_dlqs.update([queue_arn] if sources else [])
        return sources

    def with_alarms(self, facts: Facts) -> Facts:
        """One listing of the account's, instead of one for each queue."""
        return with_alarms(
            facts, self.retained.about("alarms", partial(queue_alarms, self.clients))
        )

    def moves_out_of(self, dlq_arn: str) -> frozenset[str]:
        return self._in_turn(self.paces.sqs, super().moves_out_of, dlq_arn)

    def moves_by_name(self) -> frozenset[str]:
        """What every DLQ says that was heard of, and earlier stretches noted.

        First asked once all queues were looked at.
        """
        return self.retained.about("moves_by_name", self._moves_by_name)

    def _moves_by_name(self) -> frozenset[str]:
        with ThreadPoolExecutor(THREADS) as pool:
            heard = pool.map(self._heard_of_moves, sorted(self.known_dlqs))
            return super().moves_by_name().union(*heard) - {SOURCES}

    def _heard_of_moves(self, dlq_arn: str) -> frozenset[str]:
        """One that keeps us out says nothing of others; about its own sources it is an error."""
        try:
            return self.moves_out_of(dlq_arn)
        except (FactsUnavailable, QueueRefusesUs):
            return frozenset()

    def mappings(self, queue_arn: str) -> Sequence[Mapping_]:
        """One listing of the account's, instead of one for each queue."""
        return self.retained.about("mappings", self._mappings).get(queue_arn, ())

    def _mappings(self) -> Mapping[str, Sequence[Mapping_]]:
        by_queue: dict[str, list[Mapping_]] = defaultdict(list)
        for each in mappings_of(self.clients):
            by_queue[each.get("EventSourceArn", "")].append(each)
        return by_queue

    def timeout_seconds(self, function_arn: str) -> int | None:
        return self._in_turn(self.paces.functions, super().timeout_seconds, function_arn)

    def reserved_concurrency(self, function_name: str) -> int | None:
        return self._in_turn(self.paces.functions, super().reserved_concurrency, function_name)

    def figures(self, names: Sequence[str]) -> Mapping[str, Figures]:
        """Many functions to a call; those that are known are not asked about again."""
        unknown = [name for name in names if not self.retained.knows(("figures", name))]
        for first in range(0, len(unknown), FUNCTIONS_A_CALL):
            self.paces.cloudwatch.wait()
            some = unknown[first : first + FUNCTIONS_A_CALL]
            for name, figures in super().figures(some).items():
                self.retained.keep(("figures", name), figures)
        return {name: self.retained.about(("figures", name), Figures) for name in names}

    def metrics_of_figures(self, suspects: Iterable[Facts], *, anew: bool = False) -> int:
        """How many metrics their consumers' figures would cost."""
        names = {name for each in suspects for name in function_names(each)}
        unknown = (anew or not self.retained.knows(("figures", name)) for name in names)
        return len(FIGURES) * sum(unknown)

    def measured(self, windows: Mapping[str, Window]) -> Mapping[str, Measured | None]:
        """Those that are known are not asked about again: each metric is billed."""
        asked = {arn: ("measured", arn, window) for arn, window in windows.items()}
        unknown = {arn: windows[arn] for arn in windows if not self.retained.knows(asked[arn])}
        if unknown:
            self.paces.cloudwatch.wait()
            for arn, found in super().measured(unknown).items():
                self.retained.keep(asked[arn], found)
        return {arn: self.retained.about(key, lambda: None) for arn, key in asked.items()}

    def optional_series(self, queue_name: str) -> Collection[str]:
        """One listing of the account's, instead of one for each queue."""
        listed = self.retained.about("series", lambda: optional_series(self.clients))
        return listed.get(queue_name, ())

    def metrics_of(self, facts: Facts, window: Window) -> int:
        """How many metrics it takes to measure the queue."""
        optional, duplicates = self.optional_series(facts.name), window.counts_duplicates
        return len(metrics_of(fifo=facts.is_fifo, duplicates=duplicates, optional=optional))

    def metrics_to_ask(self, facts: Facts, needs: Collection[Need], *, anew: bool = False) -> int:
        """How many metrics it takes to know what `needs` names, beyond what is kept.

        `facts` have attributes; who consumes is asked here, which costs nothing. `anew`: as heal
        asks, which keeps nothing of what a scan was answered.
        """
        window = self.window(facts) if Need.MEASUREMENTS in needs else None
        asked = ("measured", facts.queue_arn, window)
        known = window is None or (self.retained.knows(asked) and not anew)
        figured = [self.consumers(facts)] if Need.LAMBDA_CONSUMERS in needs else []
        measured = 0 if known or window is None else self.metrics_of(facts, window)
        # One more: the deletes at its source.
        figures = self.metrics_of_figures(figured, anew=anew)
        return measured + figures + (Need.SOLE_SOURCE in needs)

    def metrics_asked_again(self, queue_arn: str, needs: Collection[Need]) -> int:
        """How many metrics heal asks for."""
        facts = Facts(queue_arn, self.attributes(queue_arn), {})
        return self.metrics_to_ask(facts, needs, anew=True)


def reader_in(context: StoreContext, consent: Consent, paces: Paces | None = None) -> ScanReader:
    """The reader of one scan, whoever makes it; what is open is listed once."""
    retained = AskedOnce()

    def open_about(queue_arns: Iterable[str]) -> frozenset[str]:
        asked, known = frozenset(queue_arns), retained.about("open", context.open_cases.by_due)
        return frozenset(each.symptom for each in known if each.queue_arn in asked)

    return ScanReader(
        context.clients,
        context.now,
        context.settings.timing,
        open_about,
        noted_moves=lambda: context.moves_by_name.into(context.now),
        newest_about=context.open_cases.newest_about,
        consent=consent,
        paces=paces or Paces(),
    )
