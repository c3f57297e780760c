"""Read every queue of an account, each thing once and within AWS's rate limits."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mendq.aws.clients import Clients, Pace
from mendq.aws.cloudwatch import listed_kinds, queue_alarms
from mendq.aws.consumers import (
    FIGURES,
    Figures,
    list_mappings,
    reserved_concurrency_of,
    timeout_seconds_of,
)
from mendq.aws.dlqs import SOURCES, dlq_arn_here, list_source_arns, recent_move_destinations
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.facts_reader import Answer, FactsReader, function_names
from mendq.aws.queue import attributes_of
from mendq.cases.context import StoreContext
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.seen_moves import SeenMoves
from mendq.model.facts import Facts, Need
from mendq.model.limits import Consent
from mendq.model.metrics import Measurement, Window

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping_


class AskedOnce(Struct, frozen=True):
    """Answers by what was asked; an error is an answer too."""

    _answers: dict[Any, Future[Any]] = msgspec.field(default_factory=dict)
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

    def answers_of(self, read: Callable[..., Answer]) -> Iterator[tuple[str, Answer]]:
        """What a read has answered so far about each, errors aside."""
        for asked, answer in [*self._answers.items()]:
            if asked[0] is read and answer.done() and not answer.exception():
                yield asked[1], answer.result()

    def knows(self, asked: Hashable) -> bool:
        return asked in self._answers


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

    def of(self, read: Callable[..., object]) -> Pace:
        """That of the service which answers the read."""
        if read in (timeout_seconds_of, reserved_concurrency_of, _mappings_by_queue):
            return self.functions
        return self.cloudwatch if read in (listed_kinds, queue_alarms) else self.sqs


# Answers by what was asked: a read, and the ARN of a queue.
Recalled = Mapping[Any, Any]


class ScanReader(FactsReader, frozen=True):
    """What was answered is kept for as long as the scan lasts.

    `recalled` is what the round before was answered, but for what is `outdated`.
    """

    paces: Paces = msgspec.field(default_factory=Paces)
    retained: AskedOnce = msgspec.field(default_factory=AskedOnce)
    recalled: Recalled = msgspec.field(default_factory=dict)
    outdated: set[Any] = msgspec.field(default_factory=set)

    def ask(self, read: Callable[..., Answer], *about: Hashable) -> Answer:
        """What is kept or recalled, or asked for when it is this call's turn."""
        asked = (read, *about)

        def in_turn() -> Answer:
            self.paces.of(read).wait()
            return read(self.clients, *about)

        if asked in self.recalled and asked not in self.outdated:
            found: Answer = self.recalled[asked]
            return found
        return self.retained.about(asked, in_turn)

    def ask_anew(self, facts: Facts) -> None:
        """Recall nothing of what is around this queue: it is to be measured."""
        sources = (list_source_arns, facts.queue_arn)
        around = (facts.dlq_arn, *self.recalled.get(sources, ()))
        self.outdated.update({sources, *((attributes_of, each) for each in around)})

    def moves_by_name(self) -> frozenset[str]:
        """What every DLQ says that was heard of, and earlier stretches noted.

        First asked once all queues were looked at.
        """
        return self.retained.about("moves_by_name", self._moves_by_name)

    def _moves_by_name(self) -> frozenset[str]:
        with ThreadPoolExecutor(THREADS) as pool:
            heard = pool.map(self._heard_of_moves, sorted(self._known_dlqs()))
            return super().moves_by_name().union(*heard) - {SOURCES}

    def _known_dlqs(self) -> Iterator[str]:
        """The queues that were heard to take some."""
        for queue_arn, attributes in self._answers_of(attributes_of):
            if there := dlq_arn_here(Facts(queue_arn, attributes, {})):
                yield there
        yield from (arn for arn, named_by in self._answers_of(list_source_arns) if named_by)

    def _answers_of(self, read: Callable[..., Answer]) -> Iterator[tuple[str, Answer]]:
        yield from self.retained.answers_of(read)
        yield from ((about, it) for (asked, about), it in self.recalled.items() if asked is read)

    def _heard_of_moves(self, dlq_arn: str) -> frozenset[str]:
        """One that keeps us out says nothing of others; about its own sources it is an error."""
        try:
            return self.ask(recent_move_destinations, dlq_arn, self.now)
        except (FactsUnavailable, QueueRefusesUs):
            return frozenset()

    def mappings(self, queue_arn: str) -> Sequence[Mapping_]:
        """One listing of the account's, instead of one for each queue."""
        return self.ask(_mappings_by_queue).get(queue_arn, ())

    def listed_kinds(self, queue_name: str) -> Sequence[str]:
        """One listing of the account's, instead of one for each queue."""
        return self.ask(listed_kinds).get(queue_name, ())

    def figures(self, names: Sequence[str]) -> Mapping[str, Figures]:
        """Many functions to a call; those that are known are not asked about again."""
        unknown = [name for name in names if not self.retained.knows(("figures", name))]
        for first in range(0, len(unknown), FUNCTIONS_A_CALL):
            self.paces.cloudwatch.wait()
            some = unknown[first : first + FUNCTIONS_A_CALL]
            for name, figures in super().figures(some).items():
                self.retained.keep(("figures", name), figures)
        return {name: self.retained.about(("figures", name), dict) for name in names}

    def metrics_of_figures(self, suspects: Iterable[Facts], *, anew: bool = False) -> int:
        """How many metrics their consumers' figures would cost."""
        names = {name for each in suspects for name in function_names(each)}
        unknown = (anew or not self.retained.knows(("figures", name)) for name in names)
        return len(FIGURES) * sum(unknown)

    def measure(self, windows: Mapping[str, Window]) -> Mapping[str, Measurement | None]:
        """Those that are known are not asked about again: each metric is billed."""
        asked = {arn: ("measured", arn, window) for arn, window in windows.items()}
        unknown = {arn: windows[arn] for arn in windows if not self.retained.knows(asked[arn])}
        if unknown:
            self.paces.cloudwatch.wait()
            for arn, found in super().measure(unknown).items():
                self.retained.keep(asked[arn], found)
        return {arn: self.retained.about(key, lambda: None) for arn, key in asked.items()}

    def metrics_to_ask(self, facts: Facts, needs: Collection[Need], *, anew: bool = False) -> int:
        """How many metrics it takes to know what `needs` names, beyond what is kept.

        `facts` have attributes; who consumes is asked here, which costs nothing. `anew`: as heal
        asks, which keeps nothing of what a scan was answered.
        """
        window = self.window(facts) if Need.MEASUREMENTS in needs else None
        known = not anew and self.retained.knows(("measured", facts.queue_arn, window))
        measured = len(window.series) if window and not known else 0
        figured = [self.with_consumers(facts)] if Need.LAMBDA_CONSUMERS in needs else []
        # One more: the deletes at its source.
        figures = self.metrics_of_figures(figured, anew=anew)
        return measured + figures + (Need.SOLE_SOURCE in needs)

    def metrics_asked_again(self, queue_arn: str, needs: Collection[Need]) -> int:
        """How many metrics heal asks for."""
        facts = Facts(queue_arn, self.ask(attributes_of, queue_arn), {})
        return self.metrics_to_ask(facts, needs, anew=True)


def _mappings_by_queue(clients: Clients) -> Mapping[str, Sequence[Mapping_]]:
    found: dict[str, list[Mapping_]] = defaultdict(list)
    for each in list_mappings(clients):
        found[each.get("EventSourceArn", "")].append(each)
    return found


def reader_in(context: StoreContext, consent: Consent, paces: Paces | None = None) -> ScanReader:
    """The reader of one scan, whoever makes it; what is open is listed once."""
    retained = AskedOnce()

    def list_open_symptoms(queue_arns: Iterable[str]) -> frozenset[str]:
        asked, known = frozenset(queue_arns), retained.about("open", context.open_cases.list_open)
        return frozenset(each.symptom for each in known if each.queue_arn in asked)

    return ScanReader(
        context.clients,
        context.now,
        context.settings.timing,
        list_open_symptoms,
        noted_moves=lambda: context.stored(SeenMoves).into(context.now),
        list_newest_cases=context.open_cases.list_newest_cases,
        consent=consent,
        has_made=context.stored(MadeDlqs).is_made,
        paces=paces or Paces(),
    )
