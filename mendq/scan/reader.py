"""Read the queues of an account for a scan, with each call made once and within AWS's limits."""

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
from mendq.model.consent import Consent
from mendq.model.facts import Facts, Need
from mendq.model.metrics import Measurement, Window

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping_


class AnswerCache(Struct, frozen=True):
    """A cache of AWS's answers that all threads share. An error is an answer too."""

    _answers: dict[Any, Future[Any]] = msgspec.field(default_factory=dict)
    _lock: threading.Lock = msgspec.field(default_factory=threading.Lock)

    def about(self, asked: Hashable, ask: Callable[[], Answer]) -> Answer:
        """Return the cached answer for the key `asked`; if there is none, call `ask` and cache it.

        If `ask` raised an error, now or before, raise that error.
        """
        with self._lock:
            known = self._answers.get(asked)
            answer = self._answers.setdefault(asked, Future()) if known is None else known
        if known is None:
            try:
                answer.set_result(ask())
            except Exception as error:  # noqa: BLE001 - raised below, to whoever asked
                answer.set_exception(error)
        result: Answer = answer.result()
        return result

    def keep(self, asked: Hashable, answer: object) -> None:
        """Cache an answer, unless there is one already."""
        self.about(asked, lambda: answer)

    def answers_of(self, read: Callable[..., Answer]) -> Iterator[tuple[str, Answer]]:
        """Yield the first argument and the answer of each cached call of `read`.

        Calls that raised an error are left out.
        """
        for asked, answer in [*self._answers.items()]:
            if asked[0] is read and answer.done() and not answer.exception():
                yield asked[1], answer.result()

    def knows(self, asked: Hashable) -> bool:
        """Return True if the answer is cached, or another thread is asking for it now."""
        return asked in self._answers


# SQS documents no quota for reading attributes. With 50 calls per second, 10,000 queues take three
# and a half minutes.
SQS_CALLS_PER_SECOND = 50
# An account may make 15 Lambda control-plane calls per second, including deployments.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
LAMBDA_CALLS_PER_SECOND = 5
# CloudWatch allows 50 calls per second, and 90,000 datapoints per second that are older than three
# hours.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
CLOUDWATCH_CALLS_PER_SECOND = 2
FUNCTIONS_A_CALL = 100
THREADS = 8


class Paces(Struct, frozen=True):
    """One rate limit for each service that is called."""

    sqs: Pace = msgspec.field(default_factory=lambda: Pace(SQS_CALLS_PER_SECOND))
    functions: Pace = msgspec.field(default_factory=lambda: Pace(LAMBDA_CALLS_PER_SECOND))
    cloudwatch: Pace = msgspec.field(default_factory=lambda: Pace(CLOUDWATCH_CALLS_PER_SECOND))

    def of(self, read: Callable[..., object]) -> Pace:
        """Return the rate limit of the service that the function `read` calls."""
        if read in (timeout_seconds_of, reserved_concurrency_of, _mappings_by_queue):
            return self.functions
        return self.cloudwatch if read in (listed_kinds, queue_alarms) else self.sqs


# Answers of AWS by call. A call is a pair: the reading function, and the ARN of the queue.
Recalled = Mapping[Any, Any]


class ScanReader(FactsReader, frozen=True):
    """A FactsReader that caches every answer for the duration of the scan.

    Attributes:
        paces: The rate limits.
        retained: The answers of this scan.
        recalled: Answers of the last hour's scan, by reading function and queue ARN. They are used
            in place of a new call.
        outdated: Keys of `recalled` that must not be used any more.
    """

    paces: Paces = msgspec.field(default_factory=Paces)
    retained: AnswerCache = msgspec.field(default_factory=AnswerCache)
    recalled: Recalled = msgspec.field(default_factory=dict)
    outdated: set[Any] = msgspec.field(default_factory=set)

    def ask(self, read: Callable[..., Answer], *about: Hashable) -> Answer:
        """Return the cached answer, or the last hour's, or call AWS within the rate limit."""
        asked = (read, *about)

        def call_aws() -> Answer:
            self.paces.of(read).wait()
            return read(self.clients, *about)

        if asked in self.recalled and asked not in self.outdated:
            answer: Answer = self.recalled[asked]
            return answer
        return self.retained.about(asked, call_aws)

    def ask_anew(self, facts: Facts) -> None:
        """Make later reads of the queue's DLQ and sources call AWS.

        The queue will be measured, so answers of the last hour's scan may be too old.
        """
        sources = (list_source_arns, facts.queue_arn)
        around = (facts.dlq_arn, *self.recalled.get(sources, ()))
        self.outdated.add(sources)
        self.outdated.update((attributes_of, arn) for arn in around)

    def moves_by_name(self) -> frozenset[str]:
        """Return the ARNs of queues that are the named destination of a redrive.

        They come from the redrives of all known DLQs, and from what an earlier scan stored. Call it
        only after all queues were read, because DLQs are found in the answers.
        """
        return self.retained.about("moves_by_name", self._moves_by_name)

    def _moves_by_name(self) -> frozenset[str]:
        with ThreadPoolExecutor(THREADS) as pool:
            destinations = pool.map(self._read_move_destinations, sorted(self._list_known_dlqs()))
            return super().moves_by_name().union(*destinations) - {SOURCES}

    def _list_known_dlqs(self) -> Iterator[str]:
        """Yield the ARNs of queues that are known to be a DLQ."""
        for queue_arn, attributes in self._answers_of(attributes_of):
            if there := dlq_arn_here(Facts(queue_arn, attributes, {})):
                yield there
        yield from (arn for arn, named_by in self._answers_of(list_source_arns) if named_by)

    def _answers_of(self, read: Callable[..., Answer]) -> Iterator[tuple[str, Answer]]:
        """Yield queue ARN and answer of each call of `read`, from this scan and the last hour's."""
        yield from self.retained.answers_of(read)
        for (recalled_read, about), answer in self.recalled.items():
            if recalled_read is read:
                yield about, answer

    def _read_move_destinations(self, dlq_arn: str) -> frozenset[str]:
        """Return the ARNs of the queues to which a DLQ's messages are moved.

        If the DLQ's redrives cannot be read, return none. Each source of the DLQ gets the error.
        """
        try:
            return self.ask(recent_move_destinations, dlq_arn, self.now)
        except (FactsUnavailable, QueueRefusesUs):
            return frozenset()

    def mappings(self, queue_arn: str) -> Sequence[Mapping_]:
        """Return the event source mappings of a queue. All mappings are read once per scan."""
        return self.ask(_mappings_by_queue).get(queue_arn, ())

    def listed_kinds(self, queue_name: str) -> Sequence[str]:
        """Return the kinds of metrics that CloudWatch has only for some queues, for this queue.

        They are listed once per scan for all queues.
        """
        return self.ask(listed_kinds).get(queue_name, ())

    def figures(self, names: Sequence[str]) -> Mapping[str, Figures]:
        """Return figures by function name. Those that are not cached are read, up to 100 functions
        with one query.
        """
        unknown = [name for name in names if not self.retained.knows(("figures", name))]
        for first in range(0, len(unknown), FUNCTIONS_A_CALL):
            self.paces.cloudwatch.wait()
            some = unknown[first : first + FUNCTIONS_A_CALL]
            for name, figures in super().figures(some).items():
                self.retained.keep(("figures", name), figures)
        return {name: self.retained.about(("figures", name), dict) for name in names}

    def metrics_of_figures(self, suspects: Iterable[Facts], *, anew: bool = False) -> int:
        """Return how many metrics must be read for the figures of these queues' consumers.

        Args:
            suspects: The queues, with their consumers.
            anew: True to count metrics with a cached answer too.
        """
        names: set[str] = set()
        for facts in suspects:
            names.update(function_names(facts))
        unknown = (anew or not self.retained.knows(("figures", name)) for name in names)
        return len(FIGURES) * sum(unknown)

    def measure(self, windows: Mapping[str, Window]) -> Mapping[str, Measurement | None]:
        """Return measurements by queue ARN. Only those that are not cached are read, because AWS
        bills each metric.
        """
        asked = {arn: ("measured", arn, window) for arn, window in windows.items()}
        unknown = {arn: windows[arn] for arn in windows if not self.retained.knows(asked[arn])}
        if unknown:
            self.paces.cloudwatch.wait()
            for arn, measurement in super().measure(unknown).items():
                self.retained.keep(asked[arn], measurement)
        return {arn: self.retained.about(key, lambda: None) for arn, key in asked.items()}

    def metrics_to_ask(self, facts: Facts, needs: Collection[Need], *, anew: bool = False) -> int:
        """Return how many metrics must be read for these needs. Cached ones are not counted.

        Args:
            facts: The queue with its attributes. Its consumers are read here, which AWS does not
                bill.
            needs: The facts that are needed.
            anew: True to count cached ones too: heal does not have this scan's answers.
        """
        window = self.window(facts) if Need.MEASUREMENTS in needs else None
        known = not anew and self.retained.knows(("measured", facts.queue_arn, window))
        measured = len(window.series) if window and not known else 0
        figured = [self.with_consumers(facts)] if Need.LAMBDA_CONSUMERS in needs else []
        # One more metric: the deletes of the source queue.
        figures = self.metrics_of_figures(figured, anew=anew)
        return measured + figures + (Need.SOLE_SOURCE in needs)

    def metrics_asked_again(self, queue_arn: str, needs: Collection[Need]) -> int:
        """Return how many metrics heal will read about the queue."""
        facts = Facts(queue_arn, self.ask(attributes_of, queue_arn), {})
        return self.metrics_to_ask(facts, needs, anew=True)


def _mappings_by_queue(clients: Clients) -> Mapping[str, Sequence[Mapping_]]:
    """Return all event source mappings of the account and region by the ARN of their source.

    Sources are queues, and also streams and others. Mappings without a source ARN are under an
    empty text. Raises FactsUnavailable.
    """
    mappings: dict[str, list[Mapping_]] = defaultdict(list)
    for mapping in list_mappings(clients):
        mappings[mapping.get("EventSourceArn", "")].append(mapping)
    return mappings


def reader_in(context: StoreContext, consent: Consent, paces: Paces | None = None) -> ScanReader:
    """Return the reader for one scan. It lists the open cases only once."""
    retained = AnswerCache()

    def list_open_symptoms(queue_arns: Iterable[str]) -> frozenset[str]:
        asked = frozenset(queue_arns)
        open_cases = retained.about("open", context.open_cases.list_open)
        return frozenset(case.symptom for case in open_cases if case.queue_arn in asked)

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
