"""Gathers what is true of a queue, no more than is needed; reads only.

`FactsReader` asks about one queue as heal does; a scan, which asks about all of them, keeps what it
was answered in a kind of its own.
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
    listed_kinds,
    measure,
    messages_deleted,
    queue_alarms,
    with_alarms,
)
from mendq.aws.consumers import (
    Figures,
    active_function_arns,
    consumers_behind,
    figures_of,
    list_mappings,
    reserved_concurrency_of,
    timeout_seconds_of,
)
from mendq.aws.dlqs import dlq_arn_here, list_source_arns, recent_move_destinations
from mendq.aws.errors import QueueGone, QueueRefusesUs
from mendq.aws.queue import attributes_of, tags_if_readable
from mendq.model.case import Case
from mendq.model.dlq import select_confirmed_sources
from mendq.model.facts import Facts, Need, QueueFacts, SoleSource
from mendq.model.limits import Consent, Timing
from mendq.model.metrics import CLOUDWATCH_LAG, Measurement, Window
from mendq.model.queue import arn_of_dlq, parts_of

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping_


AN_HOUR = timedelta(hours=1)
Answer = TypeVar("Answer")


def has_made_none(_source_arn: str, _dlq_arn: str) -> bool:
    """Return False: without a case store, Mendq does not know which DLQs it made."""
    return False


class FactsReader(Struct, frozen=True):
    """The sources of facts; `list_open_symptoms` returns the open cases about some queues.

    `noted_moves` says into which queues a scan has seen messages being moved by name;
    `list_newest_cases` names the newest cases about some queues, over or not; `consent` says which
    queues are managed; `has_made` says whether Mendq made a DLQ for a source.

    Every method raises FactsUnavailable, or the case store's error.
    """

    clients: Clients
    now: datetime
    timing: Timing
    list_open_symptoms: Callable[[Iterable[str]], frozenset[str]]
    noted_moves: Callable[[], frozenset[str]]
    list_newest_cases: Callable[[Iterable[str]], tuple[Case, ...]]
    consent: Consent
    has_made: Callable[[str, str], bool] = has_made_none

    def read_queue(self, queue_arn: str, tags: Mapping[str, str], needs: Collection[Need]) -> Facts:
        """Its attributes alone; none where it is gone and `needs` names nothing: that may be it."""
        try:
            attributes = self.ask(attributes_of, queue_arn)
        except QueueGone:
            if needs:
                raise
            attributes = {}
        return Facts(queue_arn, attributes, tags)

    def with_more(self, facts: Facts, needs: Collection[Need]) -> Facts:
        """The facts with what else `needs` names."""
        for need, add in _ADDED.items():
            if need in needs:
                facts = add(self, facts)
        return facts

    def ask(self, read: Callable[..., Answer], *about: Hashable) -> Answer:
        """What AWS answers to one of the reads of this room."""
        return read(self.clients, *about)

    def mappings(self, queue_arn: str) -> Sequence[Mapping_]:
        return self.ask(list_mappings, queue_arn)

    def listed_kinds(self, queue_name: str) -> Sequence[str]:
        return self.ask(listed_kinds, queue_name).get(queue_name, ())

    def figures(self, names: Sequence[str]) -> Mapping[str, Figures]:
        return figures_of(self.clients, names, self.now)

    def measure(self, windows: Mapping[str, Window]) -> Mapping[str, Measurement | None]:
        return measure(self.clients, windows)

    def moves_by_name(self) -> frozenset[str]:
        """The queues that messages are moved into although they came from others."""
        return self.noted_moves()

    def with_consumers(self, facts: Facts) -> Facts:
        """Who consumes, without figures: those are billed."""
        mappings = self.mappings(facts.queue_arn)
        if not mappings:
            return facts
        timeouts_seconds = {
            arn: self.ask(timeout_seconds_of, arn) for arn in active_function_arns(mappings)
        }
        enabled, stopped = consumers_behind(mappings, timeouts_seconds)
        return replace(facts, lambda_consumers=enabled, stopped_consumers=stopped)

    def with_figures(self, facts: Facts) -> Facts:
        """How the consumers did in the last hour."""
        if not facts.lambda_consumers:
            return facts
        figures = self.figures(function_names(facts))
        figured = (replace(each, **figures[each.name]) for each in facts.lambda_consumers)
        return replace(facts, lambda_consumers=tuple(figured))

    def with_reserved_concurrency(self, facts: Facts) -> Facts:
        """Of the functions whose mapping says how often they may run at once."""
        reserved = (
            each
            if each.maximum_concurrency is None
            else replace(each, reserved_concurrency=self.ask(reserved_concurrency_of, each.name))
            for each in facts.lambda_consumers
        )
        return replace(facts, lambda_consumers=tuple(reserved))

    def window(self, facts: Facts) -> Window | None:
        """The time in which the queue was as it is: no measurement may speak of another."""
        shortest = timedelta(minutes=self.timing.measuring_minutes)
        settled_at = facts.settled_at(self.timing.propagation_seconds, after_the_timeout=True)
        is_new = settled_at == facts.created_at
        window = Window.choose(self.now, settled_at, shortest, is_new=is_new)
        return window and replace(window, kinds=self._kinds(facts))

    def _kinds(self, facts: Facts) -> tuple[str, ...]:
        """Of the series that are worth asking for."""
        has = {"every queue": True, "FIFO": facts.is_fifo}
        has["repeated sends"] = facts.can_outlast_deduplication
        has["receives"] = facts.is_short_polled
        return (*(kind for kind in has if has[kind]), *self.listed_kinds(facts.name))

    def with_dlq(self, facts: Facts) -> Facts:
        if facts.dlq_arn is None:
            return facts
        here = dlq_arn_here(facts)
        return replace(facts, dlq=self._named(here) if here else QueueFacts(facts.dlq_arn, {}))

    def made_dlq(self, facts: Facts) -> str:
        """Return the ARN of the queue's DLQ if Mendq made it for this queue, else an empty text."""
        dlq_arn = dlq_arn_here(facts)
        if dlq_arn is None or (facts.dlq is not None and not facts.dlq.exists):
            return ""
        return dlq_arn if self.has_made(facts.queue_arn, dlq_arn) else ""

    def with_dlq_namesake(self, facts: Facts) -> Facts:
        return replace(facts, dlq_namesake=self._named(arn_of_dlq(facts.queue_arn)))

    def _named(self, queue_arn: str) -> QueueFacts:
        with suppress(QueueGone):
            return QueueFacts(queue_arn, self.ask(attributes_of, queue_arn))
        return QueueFacts(queue_arn, {})

    def with_dlq_sources(self, facts: Facts) -> Facts:
        """One that is gone meanwhile, or keeps us out, is left out."""
        named_by, confirmed = self._named_by(facts)
        sources = list[QueueFacts]()
        for arn in confirmed:
            with suppress(QueueGone, QueueRefusesUs):
                sources.append(QueueFacts(arn, self.ask(attributes_of, arn)))
        others = tuple(each for each in named_by if each not in confirmed)
        return replace(facts, dlq_sources=tuple(sources), unconfirmed_sources=others)

    def _named_by(self, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The queues that name it as their DLQ, and those of them that are believed."""
        named_by = self.ask(list_source_arns, facts.queue_arn)
        tags = partial(self.ask, tags_if_readable)
        return named_by, select_confirmed_sources(named_by, facts, self.consent, tags)

    def with_move_tasks(self, facts: Facts) -> Facts:
        """Out of it, out of its DLQ, which is into it, or into it from elsewhere."""
        either = (facts.queue_arn, dlq_arn_here(facts))
        moved = any(self.ask(recent_move_destinations, each, self.now) for each in either if each)
        moved = moved or facts.queue_arn in self.moves_by_name()
        return replace(facts, move_task_running=moved)

    def with_open_cases(self, facts: Facts) -> Facts:
        return replace(
            facts, open_symptoms=self.list_open_symptoms((facts.queue_arn, *facts.source_arns))
        )

    def with_source_cases(self, facts: Facts) -> Facts:
        return replace(facts, source_cases=self.list_newest_cases(facts.source_arns))

    def with_sole_source(self, facts: Facts) -> Facts:
        """Count all that are believed: one that keeps us out has a share in its messages too."""
        _, sources = self._named_by(facts)
        if len(sources) != 1:
            return facts
        (arn,) = sources
        tags = self.ask(tags_if_readable, arn)
        until = self.now - CLOUDWATCH_LAG
        deleted = messages_deleted(self.clients, arn, until - AN_HOUR, until)
        mode = self.consent.mode_of(parts_of(arn).name, tags)
        per_second = deleted / AN_HOUR.total_seconds()
        found = SoleSource(arn, tags, mode, per_second, self.timing.soak_factor)
        return replace(facts, sole_source=found)

    def with_measurements(self, facts: Facts) -> Facts:
        window = self.window(facts)
        if window is None:
            return facts
        return replace(facts, measurement=self.measure({facts.queue_arn: window})[facts.queue_arn])


def function_names(facts: Facts) -> list[str]:
    """The functions that consume, each once."""
    return sorted({each.name for each in facts.lambda_consumers})


# In this order: cases are open about the sources too, alarms are the DLQ's too.
_ADDED: dict[Need, Callable[[FactsReader, Facts], Facts]] = {
    Need.LAMBDA_CONSUMERS: lambda reader, facts: reader.with_figures(reader.with_consumers(facts)),
    Need.RESERVED_CONCURRENCY: FactsReader.with_reserved_concurrency,
    Need.DLQ: FactsReader.with_dlq,
    Need.ALARMS: lambda reader, facts: with_alarms(facts, reader.ask(queue_alarms)),
    Need.DLQ_NAMESAKE: FactsReader.with_dlq_namesake,
    Need.DLQ_SOURCES: FactsReader.with_dlq_sources,
    Need.MOVE_TASKS: FactsReader.with_move_tasks,
    Need.OPEN_CASES: FactsReader.with_open_cases,
    Need.SOURCE_CASES: FactsReader.with_source_cases,
    Need.SOLE_SOURCE: FactsReader.with_sole_source,
    Need.MEASUREMENTS: FactsReader.with_measurements,
}
