"""Read the queues of an account for a scan, with each call made once and within AWS's limits."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mendq.aws.clients import CallRateLimit, Clients
from mendq.aws.cloudwatch import (
    list_metric_kinds,
    measure_queues,
    read_alarmed_metrics,
    read_days_of_traffic,
    read_deletes_by_minute,
    read_queue_series,
)
from mendq.aws.consumers import (
    FUNCTION_METRIC_BY_KEY,
    FunctionMetrics,
    list_mappings,
    read_function_timeout_seconds,
    read_reserved_concurrency,
)
from mendq.aws.dlqs import (
    ORIGINAL_SOURCES_DESTINATION,
    find_local_dlq_arn,
    list_source_arns,
    read_recent_move_destinations,
)
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.facts_reader import FactsReader, ReadResult, function_names
from mendq.aws.keys import read_key_state
from mendq.aws.queue import read_queue_attributes
from mendq.cases.context import StoreContext
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.seen_moves import SeenMoves
from mendq.model.consent import Consent
from mendq.model.facts import MOST_REDRIVE_SOURCES, Facts, Need
from mendq.model.key_state import KeyState
from mendq.model.metrics import (
    DAYS_OF_TRAFFIC_METRICS,
    Datapoints,
    Measurement,
    MetricGap,
    Window,
)
from mendq.model.traffic import Traffic, summarize_traffic
from mendq.notifications.text import format_count

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import (
        EventSourceMappingConfigurationTypeDef as EventSourceMapping,
    )


# AWS bills the deletes of a DLQ as one metric.
DLQ_DELETES_METRICS = 1


class AnswerCache(Struct, frozen=True):
    """A cache of AWS's answers that all threads of a scan share. Errors are cached too."""

    _futures_by_call: dict[Any, Future[Any]] = msgspec.field(default_factory=dict)
    _lock: threading.Lock = msgspec.field(default_factory=threading.Lock)

    def get_or_ask(self, call: Hashable, ask: Callable[[], ReadResult]) -> ReadResult:
        """Return the cached answer of a call. If there is none, run `ask` and cache its result.

        `call` is the key. If `ask` raised an error, now or before, raise that error.
        """
        with self._lock:
            known_future = self._futures_by_call.get(call)
            future = known_future or self._futures_by_call.setdefault(call, Future())
        if known_future is None:
            try:
                future.set_result(ask())
            except Exception as error:  # noqa: BLE001 - raised below, to whoever asked
                future.set_exception(error)
        answer: ReadResult = future.result()
        return answer

    def store(self, call: Hashable, answer: object) -> None:
        """Cache an answer, unless there is one already."""
        self.get_or_ask(call, lambda: answer)

    def iterate_answers(
        self, read_function: Callable[..., ReadResult]
    ) -> Iterator[tuple[str, ReadResult]]:
        """Yield the first argument and the answer of each cached call of `read_function`.

        Calls that raised an error, or have no answer yet, are left out.
        """
        for call, future in [*self._futures_by_call.items()]:
            if call[0] is read_function and future.done() and not future.exception():
                yield call[1], future.result()

    def has_answer(self, call: Hashable) -> bool:
        """Return True if the call's answer or error is cached, or if a thread is asking for it."""
        return call in self._futures_by_call


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
FUNCTIONS_PER_CALL = 100
# The list of event source mappings is read this often if Lambda fails to return it.
MAPPING_READS = 2
# KMS is not asked any more after it did not answer for this many keys.
MOST_SILENT_KEYS = 2
THREAD_COUNT = 8


class Paces(Struct, frozen=True):
    """One rate limit for each service that is called."""

    sqs_pace: CallRateLimit = msgspec.field(
        default_factory=lambda: CallRateLimit(SQS_CALLS_PER_SECOND)
    )
    lambda_pace: CallRateLimit = msgspec.field(
        default_factory=lambda: CallRateLimit(LAMBDA_CALLS_PER_SECOND)
    )
    cloudwatch_pace: CallRateLimit = msgspec.field(
        default_factory=lambda: CallRateLimit(CLOUDWATCH_CALLS_PER_SECOND)
    )

    def pace_of(self, read_function: Callable[..., object]) -> CallRateLimit:
        """Return the rate limit of the service that `read_function` calls."""
        if read_function in _LAMBDA_READ_FUNCTIONS:
            return self.lambda_pace
        if read_function in _CLOUDWATCH_READ_FUNCTIONS:
            return self.cloudwatch_pace
        return self.sqs_pace


# AWS's answers by call. A call is a pair: the function that reads, and the ARN of the queue.
AnswerByCall = Mapping[Any, Any]


class ScanReader(FactsReader, frozen=True):
    """A FactsReader that caches AWS's answers for the duration of the scan.

    The number of messages that a sole source has deleted is not cached.

    Attributes:
        paces: The rate limits.
        scan_answers: The answers of this scan.
        last_scan_answers: Answers of the last hour's scan, by call. They are used in place of a
            new call.
        outdated_calls: Calls whose answer in `last_scan_answers` must not be used any more.
    """

    paces: Paces = msgspec.field(default_factory=Paces)
    scan_answers: AnswerCache = msgspec.field(default_factory=AnswerCache)
    last_scan_answers: AnswerByCall = msgspec.field(default_factory=dict)
    outdated_calls: set[Any] = msgspec.field(default_factory=set)

    def ask(self, read_function: Callable[..., ReadResult], *arguments: Hashable) -> ReadResult:
        """Return the answer of the last hour's scan, if there is one that may still be used.

        Otherwise return this scan's cached answer. If there is none, call AWS within the rate
        limit.
        """
        call_key = (read_function, *arguments)

        def call_aws() -> ReadResult:
            self.paces.pace_of(read_function).wait()
            return read_function(self.clients, *arguments)

        if call_key in self.last_scan_answers and call_key not in self.outdated_calls:
            answer: ReadResult = self.last_scan_answers[call_key]
            return answer
        return self.scan_answers.get_or_ask(call_key, call_aws)

    def forget_last_scan_answers(self, facts: Facts) -> None:
        """Stop using the last hour's answers about the queue's DLQ and its sources.

        Call this for a queue that will be measured: answers of the last hour's scan are too old
        then.
        """
        source_list_call = (list_source_arns, facts.queue_arn)
        neighbor_arns = (facts.dlq_arn, *self.last_scan_answers.get(source_list_call, ()))
        self.outdated_calls.add(source_list_call)
        self.outdated_calls.update((read_queue_attributes, arn) for arn in neighbor_arns)

    def forget_last_dlq_answer(self, facts: Facts) -> None:
        """Stop using the last hour's answer about the queue's DLQ, so that it is read now."""
        self.outdated_calls.add((read_queue_attributes, facts.dlq_arn))

    def read_named_move_destinations(self) -> frozenset[str]:
        """Return the ARNs of queues that are the named destination of a redrive.

        They come from the redrives of all known DLQs, and from what an earlier scan stored. Call it
        only after all queues were read, because DLQs are found in the answers.
        """
        return self.scan_answers.get_or_ask("moves_by_name", self._read_destinations_of_known_dlqs)

    def _read_destinations_of_known_dlqs(self) -> frozenset[str]:
        """Return the stored destinations of redrives, and those of all known DLQs' redrives."""
        with ThreadPoolExecutor(THREAD_COUNT) as thread_pool:
            destinations = thread_pool.map(
                self._read_move_destinations, sorted(self._list_known_dlqs())
            )
            stored_destinations = super().read_named_move_destinations()
            return stored_destinations.union(*destinations) - {ORIGINAL_SOURCES_DESTINATION}

    def _list_known_dlqs(self) -> Iterator[str]:
        """Yield the ARNs of queues that are known to be a DLQ."""
        for queue_arn, attributes in self._iterate_answers(read_queue_attributes):
            if dlq_arn := find_local_dlq_arn(Facts(queue_arn, attributes, {})):
                yield dlq_arn
        yield from (
            arn for arn, source_arns in self._iterate_answers(list_source_arns) if source_arns
        )

    def _iterate_answers(
        self, read_function: Callable[..., ReadResult]
    ) -> Iterator[tuple[str, ReadResult]]:
        """Yield queue ARN and answer of each call of `read_function`.

        The answers of this scan come first, then those of the last hour's scan.
        """
        yield from self.scan_answers.iterate_answers(read_function)
        for (last_read_function, queue_arn), answer in self.last_scan_answers.items():
            if last_read_function is read_function:
                yield queue_arn, answer

    def _read_move_destinations(self, dlq_arn: str) -> frozenset[str]:
        """Return where SQS moves a DLQ's messages, or moved them recently.

        The set has ARNs of queues, and ORIGINAL_SOURCES_DESTINATION for moves to the original
        sources. It is empty if the DLQ's redrives cannot be read: the check of each source reads
        them too, and reports the error.
        """
        try:
            return self.ask(read_recent_move_destinations, dlq_arn, self.now)
        except (FactsUnavailable, QueueRefusesUs):
            return frozenset()

    def read_mappings(self, queue_arn: str) -> Sequence[EventSourceMapping]:
        """Return the event source mappings of a queue. All mappings are read once per scan.

        If Lambda does not answer in time, the read is repeated up to MAPPING_READS times: all
        queues depend on it. If it still fails, raise FactsUnavailable.
        """
        for read_number in range(1, MAPPING_READS):
            with suppress(FactsUnavailable):
                return self.ask(_read_mappings_by_source, read_number).get(queue_arn, ())
        return self.ask(_read_mappings_by_source, MAPPING_READS).get(queue_arn, ())

    def read_key_state(self, key: str) -> KeyState:
        """Return the state of a KMS key.

        If KMS did not answer MOST_SILENT_KEYS times in this scan, do not ask it again: each time
        costs seconds.
        """
        silent_answers = [
            key_state
            for _, key_state in self.scan_answers.iterate_answers(read_key_state)
            if key_state.is_silent
        ]
        if len(silent_answers) >= MOST_SILENT_KEYS:
            return silent_answers[0]
        return super().read_key_state(key)

    def explain_unjudged_keys(self) -> str:
        """Return why keys could not be read in this scan, and how many; empty if all could."""
        key_count_by_error = Counter[str](
            key_state.error
            for _, key_state in self.scan_answers.iterate_answers(read_key_state)
            if key_state.error
        )
        return "; ".join(
            f"{error} for {format_count(key_count, 'key')}"
            for error, key_count in sorted(key_count_by_error.items())
        )

    def read_own_metric_kinds(self, queue_name: str) -> Sequence[str]:
        """Return the optional kinds of metrics that CloudWatch has for this queue.

        Optional kinds are those that not every queue has. They are listed once per scan, for all
        queues.
        """
        return self.ask(list_metric_kinds).get(queue_name, ())

    def read_function_metrics(self, function_names: Sequence[str]) -> Mapping[str, FunctionMetrics]:
        """Return metrics of the last hour by function name.

        Those that are not cached are read, up to 100 functions with one query.
        """
        uncached_function_names = [
            function_name
            for function_name in function_names
            if not self.scan_answers.has_answer(("figures", function_name))
        ]
        for batch_start in range(0, len(uncached_function_names), FUNCTIONS_PER_CALL):
            self.paces.cloudwatch_pace.wait()
            name_batch = uncached_function_names[batch_start : batch_start + FUNCTIONS_PER_CALL]
            for function_name, function_metrics in (
                super().read_function_metrics(name_batch).items()
            ):
                self.scan_answers.store(("figures", function_name), function_metrics)
        return {
            function_name: self.scan_answers.get_or_ask(("figures", function_name), dict)
            for function_name in function_names
        }

    def count_function_metrics(
        self, facts_of_queues: Iterable[Facts], *, includes_cached: bool = False
    ) -> int:
        """Return how many metrics of Lambda functions must be read for these queues' consumers.

        AWS bills each metric.

        Args:
            facts_of_queues: The queues, with their consumers.
            includes_cached: True to count metrics with a cached answer too.
        """
        needed_function_names: set[str] = set()
        for facts in facts_of_queues:
            needed_function_names.update(function_names(facts))
        unread_flags = (
            includes_cached or not self.scan_answers.has_answer(("figures", function_name))
            for function_name in needed_function_names
        )
        return len(FUNCTION_METRIC_BY_KEY) * sum(unread_flags)

    def read_traffic(self, windows: Mapping[str, Window]) -> Mapping[str, Traffic | None]:
        """Return the three sums of up to MOST_QUEUES_PER_SUMS_CALL queues, by queue ARN.

        Only those that are not cached are read. None for a queue of which CloudWatch did not return
        all three. Raise FactsUnavailable.
        """
        sums_windows = {arn: replace(window, kinds=("sums",)) for arn, window in windows.items()}
        uncached_windows = {
            arn: window
            for arn, window in sums_windows.items()
            if not self.scan_answers.has_answer(_sums_call(arn, window))
        }
        if uncached_windows:
            self.paces.cloudwatch_pace.wait()
            for arn, points_by_series in read_queue_series(
                self.clients, uncached_windows, {}
            ).items():
                self.scan_answers.store(_sums_call(arn, windows[arn]), points_by_series)
        traffic_by_arn = dict[str, Traffic | None]()
        for arn, window in sums_windows.items():
            known_points = self._find_known_points(arn, window)
            is_complete = known_points.keys() >= window.series.keys()
            traffic_by_arn[arn] = summarize_traffic(known_points, window) if is_complete else None
        return traffic_by_arn

    def _find_known_points(self, queue_arn: str, window: Window) -> Mapping[str, Datapoints]:
        """Return the cached datapoints of the queue's sums by series; empty if there are none."""
        sums_call = _sums_call(queue_arn, window)
        if not self.scan_answers.has_answer(sums_call):
            return {}
        points_by_series: Mapping[str, Datapoints] = self.scan_answers.get_or_ask(sums_call, dict)
        return points_by_series

    def count_series_to_read(self, queue_arn: str, window: Window) -> int:
        """Return how many metrics of the queue must be read to measure it in this window."""
        known_series = self._find_known_points(queue_arn, window).keys()
        return len(window.series.keys() - known_series)

    def measure(self, windows: Mapping[str, Window]) -> Mapping[str, Measurement | None]:
        """Return measurements by queue ARN.

        Only those that are not cached are read, because AWS bills each metric. Of a queue whose
        sums are cached, only the other metrics are read.
        """
        measurement_call_by_arn = {
            arn: ("measured", arn, window) for arn, window in windows.items()
        }
        uncached_windows = {
            arn: windows[arn]
            for arn in windows
            if not self.scan_answers.has_answer(measurement_call_by_arn[arn])
        }
        if uncached_windows:
            self.paces.cloudwatch_pace.wait()
            known_points_by_arn = {
                arn: self._find_known_points(arn, window)
                for arn, window in uncached_windows.items()
            }
            for arn, measurement in measure_queues(
                self.clients, uncached_windows, known_points_by_arn
            ).items():
                self.scan_answers.store(measurement_call_by_arn[arn], measurement)
        measurement_by_arn = dict[str, Measurement | None]()
        for arn, call in measurement_call_by_arn.items():
            measurement = self.scan_answers.get_or_ask(call, lambda: None)
            measurement_by_arn[arn] = None if isinstance(measurement, MetricGap) else measurement
        return measurement_by_arn

    def find_metric_gap(self, queue_arn: str, window: Window) -> MetricGap | None:
        """Return the gap that keeps a queue from being measured; None if there is none."""
        call = ("measured", queue_arn, window)
        if not self.scan_answers.has_answer(call):
            return None
        measurement = self.scan_answers.get_or_ask(call, lambda: None)
        return measurement if isinstance(measurement, MetricGap) else None

    def count_metrics_to_read(
        self, facts: Facts, needs: Collection[Need], *, includes_cached: bool = False
    ) -> int:
        """Return how many metrics must be read for these needs.

        Cached metrics do not count, except with `includes_cached`.

        Args:
            facts: The queue with its attributes. Its consumers are read here, which AWS does not
                bill.
            needs: The facts that are needed.
            includes_cached: True to count cached ones too: heal does not have this scan's answers.
        """
        window = self.choose_window(facts) if Need.MEASUREMENTS in needs else None
        measurement_call = ("measured", facts.queue_arn, window)
        metric_count = 0
        if window and includes_cached:
            metric_count += len(window.series)
        elif window and not self.scan_answers.has_answer(measurement_call):
            metric_count += self.count_series_to_read(facts.queue_arn, window)
        if Need.LAMBDA_CONSUMERS in needs:
            # If they cannot be read now, heal cannot read their metrics either.
            with suppress(FactsUnavailable, QueueRefusesUs):
                facts_of_queues = [self.with_consumers(facts)]
                metric_count += self.count_function_metrics(
                    facts_of_queues, includes_cached=includes_cached
                )
        if Need.DAYS_OF_TRAFFIC in needs and (
            includes_cached or not self.has_days_of_traffic(facts.queue_arn)
        ):
            metric_count += len(DAYS_OF_TRAFFIC_METRICS)
        if (
            Need.REDRIVES in needs
            and facts.dlq_arn
            and (includes_cached or self.must_read_dlq_deletes(facts))
        ):
            metric_count += DLQ_DELETES_METRICS
        if Need.REDRIVE_SOURCES in needs:
            # The deletes of each source. Unconfirmed ones count too, so this may be too many.
            source_count = len(self.ask(list_source_arns, facts.queue_arn))
            metric_count += min(max(1, source_count), MOST_REDRIVE_SOURCES)
        return metric_count

    def has_days_of_traffic(self, queue_arn: str) -> bool:
        """Return True if the queue's traffic of the last four days was asked for in this scan."""
        return self.scan_answers.has_answer((read_days_of_traffic, queue_arn, self.now))

    def must_read_dlq_deletes(self, facts: Facts) -> bool:
        """Return True if `with_redrives` will ask for the deletes of the queue's DLQ."""
        return (
            find_local_dlq_arn(facts) is not None
            and facts.may_job_send_messages_back
            and not self.has_dlq_deletes(facts)
        )

    def has_dlq_deletes(self, facts: Facts) -> bool:
        """Return True if the deletes of the queue's DLQ were asked for in this scan."""
        measurement = facts.measurement
        return measurement is not None and self.scan_answers.has_answer(
            (read_deletes_by_minute, facts.dlq_arn, measurement.since, measurement.until)
        )

    def count_metrics_that_heal_reads(self, queue_arn: str, needs: Collection[Need]) -> int:
        """Return how many metrics heal will read about the queue."""
        facts = Facts(queue_arn, self.ask(read_queue_attributes, queue_arn), {})
        return self.count_metrics_to_read(facts, needs, includes_cached=True)


def _sums_call(queue_arn: str, window: Window) -> Hashable:
    """Return the key under which the datapoints of a queue's sums are cached."""
    return ("sums", queue_arn, window.since, window.until)


def _read_mappings_by_source(
    clients: Clients, _read_number: int
) -> Mapping[str, Sequence[EventSourceMapping]]:
    """Return all event source mappings of the account and region by the ARN of their source.

    Sources are queues, and also streams and others. Mappings without a source ARN are under an
    empty text. Raises FactsUnavailable if Lambda cannot be read.
    """
    mappings_by_source: dict[str, list[EventSourceMapping]] = defaultdict(list)
    for mapping in list_mappings(clients):
        mappings_by_source[mapping.get("EventSourceArn", "")].append(mapping)
    return mappings_by_source


# The read functions that call Lambda and CloudWatch. All others call SQS, or KMS, whose quota for
# DescribeKey is higher.
_LAMBDA_READ_FUNCTIONS = (
    read_function_timeout_seconds,
    read_reserved_concurrency,
    _read_mappings_by_source,
)
_CLOUDWATCH_READ_FUNCTIONS = (
    list_metric_kinds,
    read_alarmed_metrics,
    read_days_of_traffic,
    read_deletes_by_minute,
)


def make_scan_reader(
    context: StoreContext, consent: Consent, paces: Paces | None = None
) -> ScanReader:
    """Return the reader for one scan. It lists the open cases only once."""
    scan_answers = AnswerCache()

    def list_open_symptoms(queue_arns: Iterable[str]) -> frozenset[str]:
        requested_queue_arns = frozenset(queue_arns)
        open_cases = scan_answers.get_or_ask("open", context.open_cases.list_open_cases)
        return frozenset(
            case.symptom for case in open_cases if case.queue_arn in requested_queue_arns
        )

    return ScanReader(
        context.clients,
        context.now,
        context.settings.timing,
        list_open_symptoms,
        read_noted_move_destinations=lambda: context.open_store(SeenMoves).list_destinations(
            context.now
        ),
        list_newest_cases=context.open_cases.list_newest_cases,
        consent=consent,
        has_made_dlq=context.open_store(MadeDlqs).is_made_by_mendq,
        paces=paces or Paces(),
    )
