"""Read the facts about queues that symptoms need. Nothing is written.

`FactsReader` asks AWS about one queue at a time; heal uses it. Its subclass `ScanReader`
(`mendq/scan/reader.py`) reads for all queues and keeps AWS's answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import (
    add_alarmed_metrics_of_queue_and_dlq,
    count_deleted_messages,
    list_metric_kinds,
    measure_queues,
    read_alarmed_metrics,
    read_days_of_traffic,
    read_deletes_by_minute,
)
from mendq.aws.consumers import (
    FunctionMetrics,
    list_active_function_arns,
    list_consumers,
    list_disabling_times,
    list_mappings,
    read_function_metrics,
    read_function_timeout_seconds,
    read_reserved_concurrency,
)
from mendq.aws.dlqs import (
    find_local_dlq_arn,
    list_source_arns,
    read_recent_move_destinations,
    read_recent_redrives,
)
from mendq.aws.errors import QueueGone, QueueRefusesUs
from mendq.aws.keys import read_key_state
from mendq.aws.queue import read_queue_attributes, read_tags_if_allowed
from mendq.model.case import Case
from mendq.model.consent import Consent
from mendq.model.dlq import select_confirmed_sources
from mendq.model.facts import (
    MOST_REDRIVE_SOURCES,
    Facts,
    LambdaConsumer,
    Need,
    QueueFacts,
    RedriveSource,
    has_customer_key,
)
from mendq.model.key_state import KeyState
from mendq.model.limits import Timing
from mendq.model.metrics import (
    CLOUDWATCH_LAG,
    LONGEST_WINDOW,
    OLDEST_WINDOW_START_AGE,
    Measurement,
    MetricGap,
    Window,
)
from mendq.model.queue import arn_of_dlq, parse_queue_arn
from mendq.model.redrives import Redrives
from mendq.model.state import State
from mendq.model.steps import find_redrive_destination

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import (
        EventSourceMappingConfigurationTypeDef as EventSourceMapping,
    )


ONE_HOUR = timedelta(hours=1)
ReadResult = TypeVar("ReadResult")


def has_made_no_dlq(_source_arn: str, _dlq_arn: str) -> bool:
    """Return False: without a case store, Mendq does not know which DLQs it made."""
    return False


class FactsReader(Struct, frozen=True):
    """Reads facts about a queue.

    Methods may raise FactsUnavailable, QueueRefusesUs or the case store's errors.

    Attributes:
        clients: The AWS clients.
        now: The present time.
        timing: The account's waiting times.
        list_open_symptoms: Returns the symptoms with an open case on one of the queues.
        read_noted_move_destinations: Returns the ARNs of queues that a scan saw as the named
            destination of a redrive.
        list_newest_cases: Returns the newest case of each symptom on the queues, open or ended.
        consent: The settings that say which queues Mendq manages.
        has_made_dlq: Returns True if Mendq made the DLQ for the source.
    """

    clients: Clients
    now: datetime
    timing: Timing
    list_open_symptoms: Callable[[Iterable[str]], frozenset[str]]
    read_noted_move_destinations: Callable[[], frozenset[str]]
    list_newest_cases: Callable[[Iterable[str]], tuple[Case, ...]]
    consent: Consent
    has_made_dlq: Callable[[str, str], bool] = has_made_no_dlq

    def read_queue(self, queue_arn: str, tags: Mapping[str, str], needs: Collection[Need]) -> Facts:
        """Read the queue's attributes. Return them with the given tags.

        If the queue was deleted, raise QueueGone. But if `needs` is empty, return empty attributes
        then, because the missing queue may itself be the symptom.
        """
        try:
            attributes = self.ask(read_queue_attributes, queue_arn)
        except QueueGone:
            if needs:
                raise
            attributes = {}
        return Facts(queue_arn, attributes, tags)

    def with_needed_facts(self, facts: Facts, needs: Collection[Need]) -> Facts:
        """Return the facts with the ones added that `needs` lists.

        A need that is not in `_FACTS_ADDER_BY_NEED` is skipped.
        """
        for need, facts_adder in _FACTS_ADDER_BY_NEED.items():
            if need in needs:
                facts = facts_adder(self, facts)
        return facts

    def ask(
        self, read_function: Callable[..., ReadResult], *read_arguments: Hashable
    ) -> ReadResult:
        """Call `read_function`, a function of `mendq.aws`, and return its result.

        `read_function` gets the clients first, then `read_arguments`. `ScanReader` overrides this
        method to cache results.
        """
        return read_function(self.clients, *read_arguments)

    def read_mappings(self, queue_arn: str) -> Sequence[EventSourceMapping]:
        """Return the event source mappings of a queue."""
        return self.ask(list_mappings, queue_arn)

    def read_own_metric_kinds(self, queue_name: str) -> Sequence[str]:
        """Return the kinds of metrics that this queue has, but not every queue."""
        return self.ask(list_metric_kinds, queue_name).get(queue_name, ())

    def read_function_metrics(self, function_names: Sequence[str]) -> Mapping[str, FunctionMetrics]:
        """Return metrics of the last hour, such as durations and errors, by function name.

        At most 100 functions can be read at once.
        """
        return read_function_metrics(self.clients, function_names, self.now)

    def measure(self, window_by_arn: Mapping[str, Window]) -> Mapping[str, Measurement | None]:
        """Return the measurements of queues in these windows, by queue ARN.

        None for a queue without data, and for one that CloudWatch's gaps keep from being measured.
        """
        measurement_by_arn = dict[str, Measurement | None]()
        for queue_arn, measurement in measure_queues(self.clients, window_by_arn).items():
            measurement_by_arn[queue_arn] = (
                None if isinstance(measurement, MetricGap) else measurement
            )
        return measurement_by_arn

    def read_named_move_destinations(self) -> frozenset[str]:
        """Return the ARNs of queues that a scan saw as the named destination of a redrive.

        Such a redrive may move messages to a queue that they did not come from. `ScanReader`
        overrides this method.
        """
        return self.read_noted_move_destinations()

    def with_consumers(self, facts: Facts) -> Facts:
        """Return the facts with the queue's Lambda consumers.

        Their metrics are not read, because AWS charges for reading metrics.
        """
        mappings = self.read_mappings(facts.queue_arn)
        if not mappings:
            return facts
        timeout_seconds_by_arn = {
            arn: self.ask(read_function_timeout_seconds, arn)
            for arn in list_active_function_arns(mappings)
        }
        consumers, stopped_function_arns = list_consumers(mappings, timeout_seconds_by_arn)
        return replace(
            facts,
            lambda_consumers=consumers,
            stopped_consumers=stopped_function_arns,
            mappings_disabled_at=list_disabling_times(mappings),
        )

    def with_function_metrics(self, facts: Facts) -> Facts:
        """Return the facts with the consumers' metrics of the last hour."""
        if not facts.lambda_consumers:
            return facts
        metrics_by_function_name = self.read_function_metrics(function_names(facts))
        consumers = [
            replace(consumer, **metrics_by_function_name[consumer.name])
            for consumer in facts.lambda_consumers
        ]
        return replace(facts, lambda_consumers=tuple(consumers))

    def with_reserved_concurrency(self, facts: Facts) -> Facts:
        """Return the facts with the reserved concurrency of consumers.

        It is read only for functions whose event source mapping limits concurrent invocations, by a
        maximum concurrency or by provisioned mode.
        """
        return self._with_reserved_concurrency_if(
            facts, lambda consumer: consumer.most_runs is not None
        )

    def with_switched_off_functions(self, facts: Facts) -> Facts:
        """Return the facts with the reserved concurrency of functions that may be switched off.

        It is not read for functions that ran in the last hour without being throttled.
        """
        return self._with_reserved_concurrency_if(
            facts, lambda consumer: consumer.may_be_switched_off
        )

    def _with_reserved_concurrency_if(
        self, facts: Facts, must_read: Callable[[LambdaConsumer], bool]
    ) -> Facts:
        """Return the facts with the reserved concurrency of consumers that `must_read` accepts."""
        consumers = []
        for consumer in facts.lambda_consumers:
            if must_read(consumer):
                reserved_concurrency = self.ask(read_reserved_concurrency, consumer.name)
                consumer = replace(consumer, reserved_concurrency=reserved_concurrency)  # noqa: PLW2901
            consumers.append(consumer)
        return replace(facts, lambda_consumers=tuple(consumers))

    def with_key_state(self, facts: Facts) -> Facts:
        """Return the facts with the state of the queue's customer managed KMS key.

        If the key cannot be read, `kms_key_state` has the reason. No error is raised.
        """
        if not has_customer_key(facts):
            return facts
        key_state = self.read_key_state(str(facts.kms_key))
        return replace(facts, kms_key_state=key_state.with_seconds_left(self.now))

    def read_key_state(self, key: str) -> KeyState:
        """Return the state of a KMS key. `ScanReader` overrides this method."""
        return self.ask(read_key_state, key)

    def choose_window(self, facts: Facts) -> Window | None:
        """Return the window to measure: the last hours since the queue's last change.

        Return None if the last change is so recent that there is too little time to measure.
        """
        shortest_duration = timedelta(minutes=self.timing.measuring_minutes)
        settled_at = facts.settled_at(self.timing.propagation_seconds, after_the_timeout=True)
        is_queue_unchanged = settled_at == facts.created_at
        window = Window.choose(self.now, settled_at, shortest_duration, is_new=is_queue_unchanged)
        return window and replace(window, kinds=self._list_metric_kinds(facts))

    def _list_metric_kinds(self, facts: Facts) -> tuple[str, ...]:
        """Return the kinds of metrics (METRICS_BY_KIND) that must be read for this queue."""
        metric_kinds = ["every queue"]
        if facts.is_fifo:
            metric_kinds.append("FIFO")
        if facts.can_outlast_deduplication:
            metric_kinds.append("repeated sends")
        if facts.is_short_polled:
            metric_kinds.append("receives")
        return (*metric_kinds, *self.read_own_metric_kinds(facts.name))

    def with_dlq(self, facts: Facts) -> Facts:
        """Return the facts with the DLQ that the RedrivePolicy names.

        Its attributes are empty if it does not exist or is not in the same account and region.
        """
        if facts.dlq_arn is None:
            return facts
        dlq_arn = find_local_dlq_arn(facts)
        return replace(
            facts, dlq=self._read_named_queue(dlq_arn) if dlq_arn else QueueFacts(facts.dlq_arn, {})
        )

    def find_dlq_made_by_mendq(self, facts: Facts) -> str:
        """Return the ARN of the queue's DLQ if Mendq made it for this queue, else an empty text.

        The text is also empty if `facts` show that the DLQ does not exist.
        """
        dlq_arn = find_local_dlq_arn(facts)
        if dlq_arn is None or (facts.dlq is not None and not facts.dlq.exists):
            return ""
        return dlq_arn if self.has_made_dlq(facts.queue_arn, dlq_arn) else ""

    def with_dlq_namesake(self, facts: Facts) -> Facts:
        """Return the facts with `dlq_namesake`: the queue with the name of a DLQ that Mendq makes.

        Mendq derives the name from the queue's name. Attributes and tags are empty if there is no
        such queue.
        """
        namesake = self._read_named_queue(arn_of_dlq(facts.queue_arn))
        if namesake.exists:
            tags = self.ask(read_tags_if_allowed, namesake.queue_arn)
            namesake = replace(namesake, tags=tags)
        return replace(facts, dlq_namesake=namesake)

    def _read_named_queue(self, queue_arn: str) -> QueueFacts:
        """Return a queue's attributes; empty if it does not exist."""
        with suppress(QueueGone):
            return QueueFacts(queue_arn, self.ask(read_queue_attributes, queue_arn))
        return QueueFacts(queue_arn, {})

    def with_dlq_sources(self, facts: Facts) -> Facts:
        """Return the facts with the queues that use this queue as their DLQ.

        A confirmed source that was deleted is left out. One that refuses Mendq is in
        `unread_sources`.
        """
        candidate_source_arns, confirmed_arns = self._list_sources(facts)
        confirmed_sources = list[QueueFacts]()
        unread_arns = list[str]()
        for source_arn in confirmed_arns:
            with suppress(QueueGone):
                try:
                    attributes = self.ask(read_queue_attributes, source_arn)
                except QueueRefusesUs:
                    unread_arns.append(source_arn)
                else:
                    confirmed_sources.append(QueueFacts(source_arn, attributes))
        unconfirmed_arns = tuple(
            source_arn for source_arn in candidate_source_arns if source_arn not in confirmed_arns
        )
        return replace(
            facts,
            dlq_sources=tuple(confirmed_sources),
            unconfirmed_sources=unconfirmed_arns,
            unread_sources=tuple(unread_arns),
        )

    def _list_sources(self, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the ARNs of the queues that name this queue as their DLQ, in two tuples.

        The first has all such queues, the second the confirmed ones (`select_confirmed_sources`).
        """
        candidate_source_arns = self.ask(list_source_arns, facts.queue_arn)
        read_tags = partial(self.ask, read_tags_if_allowed)
        return candidate_source_arns, select_confirmed_sources(
            candidate_source_arns, facts, self.consent, read_tags
        )

    def with_move_tasks(self, facts: Facts) -> Facts:
        """Return the facts with `move_task_running`.

        It is True if a redrive moves messages out of the queue, out of its DLQ, or into the queue,
        or may have done so recently (`read_recent_move_destinations`).
        """
        are_messages_moving = bool(
            self.ask(read_recent_move_destinations, facts.queue_arn, self.now)
        )
        dlq_arn = find_local_dlq_arn(facts)
        if not are_messages_moving and dlq_arn:
            are_messages_moving = bool(self.ask(read_recent_move_destinations, dlq_arn, self.now))
        are_messages_moving = (
            are_messages_moving or facts.queue_arn in self.read_named_move_destinations()
        )
        return replace(facts, move_task_running=are_messages_moving)

    def with_redrives(self, facts: Facts) -> Facts:
        """Return the facts with `redrives`, if messages may go round between the queue and its DLQ.

        Nothing is read otherwise, and if Mendq itself sent messages back in the measured time.
        The DLQ's deletes are read only if a job may send messages back.
        """
        dlq_arn = find_local_dlq_arn(facts)
        measurement = facts.measurement
        if (
            dlq_arn is None
            or measurement is None
            or not facts.may_messages_go_round
            or self._has_sent_messages_back(dlq_arn)
        ):
            return facts
        move_tasks = self.ask(read_recent_redrives, dlq_arn, facts.queue_arn, measurement.since)
        dlq_deletes: tuple[tuple[datetime, int], ...] = ()
        if facts.may_job_send_messages_back:
            dlq_deletes = self.ask(
                read_deletes_by_minute, dlq_arn, measurement.since, measurement.until
            )
        return replace(facts, redrives=Redrives(move_tasks, dlq_deletes))

    def _has_sent_messages_back(self, dlq_arn: str) -> bool:
        """Return True if Mendq sends messages of the DLQ back, or did so in the last hours."""
        return any(
            find_redrive_destination(case.steps)
            and (not case.is_final or self.now - case.at < OLDEST_WINDOW_START_AGE)
            for case in self.list_newest_cases([dlq_arn])
        )

    def with_open_cases(self, facts: Facts) -> Facts:
        """Return the facts with the symptoms of open cases on the queue or its sources.

        For a FIFO queue, also add the symptoms whose case was refused recently after failed calls.
        In a FIFO queue a late delete fails, which explains why consumers finish no message.
        """
        open_symptoms_by_source = {
            source_arn: self.list_open_symptoms((source_arn,)) for source_arn in facts.source_arns
        }
        open_symptoms = self.list_open_symptoms((facts.queue_arn,)).union(
            *open_symptoms_by_source.values()
        )
        refused_symptoms: list[str] = []
        for case in self.list_newest_cases((facts.queue_arn,)) if facts.is_fifo else ():
            is_recent = self.now - case.at < LONGEST_WINDOW
            if case.state is State.REFUSED and case.evidence["failed_calls"] and is_recent:
                refused_symptoms.append(case.symptom)
        return replace(
            facts,
            open_symptoms=open_symptoms,
            open_symptoms_by_source=open_symptoms_by_source,
            refused_symptoms=frozenset(refused_symptoms),
        )

    def with_source_cases(self, facts: Facts) -> Facts:
        """Return the facts with the newest case of each symptom on the DLQ's sources.

        The cases may be open or ended. If there are several sources, also add the DLQ's own newest
        case with a redrive to a source.
        """
        source_cases = self.list_newest_cases(facts.source_arns)
        redrive_case = None
        if len(facts.source_arns) > 1:
            redrive_cases = [
                case
                for case in self.list_newest_cases([facts.queue_arn])
                if find_redrive_destination(case.steps)
            ]
            redrive_case = max(redrive_cases, key=lambda case: case.at, default=None)
        return replace(facts, source_cases=source_cases, redrive_case=redrive_case)

    def with_redrive_sources(self, facts: Facts) -> Facts:
        """Return the facts with the confirmed sources as `redrive_sources`.

        If there are more than MOST_REDRIVE_SOURCES, return `facts` unchanged. A source whose policy
        denies Mendq access is included, because DLQ messages may come from it.
        """
        _, source_arns = self._list_sources(facts)
        if len(source_arns) > MOST_REDRIVE_SOURCES:
            return facts
        redrive_sources = tuple(self._read_redrive_source(source_arn) for source_arn in source_arns)
        return replace(facts, redrive_sources=redrive_sources)

    def _read_redrive_source(self, source_arn: str) -> RedriveSource:
        source_tags = self.ask(read_tags_if_allowed, source_arn)
        measured_until = self.now - CLOUDWATCH_LAG
        deleted_messages = count_deleted_messages(
            self.clients, source_arn, measured_until - ONE_HOUR, measured_until
        )
        source_mode = self.consent.mode_of(parse_queue_arn(source_arn).name, source_tags)
        deletes_per_second = deleted_messages / ONE_HOUR.total_seconds()
        return RedriveSource(
            source_arn, source_tags, source_mode, deletes_per_second, self.timing.soak_factor
        )

    def with_days_of_traffic(self, facts: Facts) -> Facts:
        """Return the facts with the hours of the last four days in which the queue was read."""
        days_of_traffic = self.ask(read_days_of_traffic, facts.queue_arn, self.now)
        return replace(facts, days_of_traffic=days_of_traffic)

    def with_measurements(self, facts: Facts) -> Facts:
        """Return the facts with the queue's measurement; without one if the window is too short."""
        window = self.choose_window(facts)
        if window is None:
            return facts
        return replace(facts, measurement=self.measure({facts.queue_arn: window})[facts.queue_arn])


def function_names(facts: Facts) -> list[str]:
    """Return the names of the queue's consuming Lambda functions, sorted and without repeats."""
    return sorted({consumer.name for consumer in facts.lambda_consumers})


# The method that reads each need, in the order of the reads. The DLQ and the sources come before
# alarms and open cases, which are read for them too.
_FACTS_ADDER_BY_NEED: dict[Need, Callable[[FactsReader, Facts], Facts]] = {
    Need.LAMBDA_CONSUMERS: lambda reader, facts: reader.with_function_metrics(
        reader.with_consumers(facts)
    ),
    Need.RESERVED_CONCURRENCY: FactsReader.with_reserved_concurrency,
    Need.SWITCHED_OFF_FUNCTIONS: FactsReader.with_switched_off_functions,
    Need.KMS_KEY: FactsReader.with_key_state,
    Need.DLQ: FactsReader.with_dlq,
    Need.ALARMS: lambda reader, facts: add_alarmed_metrics_of_queue_and_dlq(
        facts, reader.ask(read_alarmed_metrics)
    ),
    Need.DLQ_NAMESAKE: FactsReader.with_dlq_namesake,
    Need.DLQ_SOURCES: FactsReader.with_dlq_sources,
    Need.MOVE_TASKS: FactsReader.with_move_tasks,
    Need.OPEN_CASES: FactsReader.with_open_cases,
    Need.SOURCE_CASES: FactsReader.with_source_cases,
    Need.REDRIVE_SOURCES: FactsReader.with_redrive_sources,
    Need.MEASUREMENTS: FactsReader.with_measurements,
    Need.REDRIVES: FactsReader.with_redrives,
    Need.DAYS_OF_TRAFFIC: lambda reader, facts: reader.with_days_of_traffic(facts),
}
