"""The decorator of all Lambda handlers.

It gives each handler its settings, AWS clients, clock, logger and metrics, and logs its errors.
Metrics are written to the log in CloudWatch's embedded metric format (EMF).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import summarize_error_cause
from mendq.model.json_text import to_json
from mendq.model.names import METRIC_NAMESPACE, OwnMetric
from mendq.model.settings import LambdaSettings
from mendq.model.state import State

# Not imported at run time, so that a Lambda loads only the packages that it uses itself.
if TYPE_CHECKING:
    from mendq.heal.outcome import Outcome

Settings = TypeVar("Settings", bound=LambdaSettings)
ContextType = TypeVar("ContextType")
Event = dict[str, Any]
# Writes a log record as one line of JSON, whatever text an event field contains.
to_log_line = partial(to_json, is_compact=True, default=str)

# The only counter that `LambdaInvocation.send_counts` sends even if it is zero. Its alarm learns
# the usual values, so it needs a value at all times. CloudWatch bills a metric in each month in
# which it is sent, so other counters are left out if they are zero.
ALWAYS_SENT_COUNTER = OwnMetric.AUTO_FIXES


class LambdaInvocation(Struct, Generic[Settings], frozen=True):
    """One invocation of a Lambda function.

    `context` is Lambda's own context object. `now` is the time at which the invocation began.
    """

    settings: Settings
    clients: Clients
    context: LambdaContext
    log: Logger
    metrics: Metrics
    now: datetime

    def remaining_seconds(self) -> float:
        """Return the seconds until Lambda ends the invocation."""
        return self.context.get_remaining_time_in_millis() / 1000

    def make_store_context(
        self, context_class: Callable[..., ContextType], **further_fields: Any
    ) -> ContextType:
        """Return a context for reading and changing cases: clients, settings, request id and time.

        Args:
            context_class: The class of the context.
            further_fields: Fields that only this class has.
        """
        request_id = self.context.aws_request_id
        return context_class(
            clients=self.clients,
            settings=self.settings,
            owner=request_id,
            now=self.now,
            **further_fields,
        )

    def make_writing_context(
        self, context_class: Callable[..., ContextType], **further_fields: Any
    ) -> ContextType:
        """Return a context for writing to queues, with the invocation's remaining time.

        Args:
            context_class: The class of the context.
            further_fields: Fields that only this class has.
        """
        clock = partial(datetime.now, UTC)
        return self.make_store_context(
            context_class, remaining_seconds=self.remaining_seconds, clock=clock, **further_fields
        )

    def send_counts(
        self, count_by_metric: Mapping[OwnMetric, int], *, should_send_zeros: bool = False
    ) -> None:
        """Send the counts that are not zero, and ALWAYS_SENT_COUNTER if `count_by_metric` has it.

        With `should_send_zeros`, send all counts.
        """
        for metric_name, count in count_by_metric.items():
            if count or should_send_zeros or metric_name == ALWAYS_SENT_COUNTER:
                self.send_metric_value(metric_name, count, "Count")

    def send_metric_value(self, name: str, value: float, unit: Literal["Count", "Seconds"]) -> None:
        """Send a value of a metric. Skip NaN and infinity, which CloudWatch does not take."""
        if isfinite(value):
            self.metrics.add_metric(name, MetricUnit(unit), value)

    def answer_case(self, event: Event, outcome: Outcome) -> Event:
        """Count and log the outcome of a case. Return it as the answer to the caller."""
        outcome_document = outcome.document()
        count_by_metric = {
            OwnMetric.AUTO_FIXES: outcome_document["state"] == State.APPLIED,
            OwnMetric.ESCALATIONS: outcome.is_escalation,
            OwnMetric.REFUSALS: outcome.refusal is not None,
        }
        self.send_counts(count_by_metric)
        self.log.info("continued a case", request=event, **outcome_document)
        return outcome_document


def send_counts_by_symptom(
    metric_name: OwnMetric, count_by_symptom_name: Mapping[str, int]
) -> None:
    """Send one count for each symptom, with the dimension `symptom`.

    There is no dimension for the queue, because there may be thousands of queues.
    """
    for symptom, count in count_by_symptom_name.items():
        with single_metric(
            metric_name, MetricUnit.Count, count, namespace=METRIC_NAMESPACE
        ) as metric:
            metric.add_dimension("symptom", symptom)


@dataclass
class Entry(Generic[Settings]):
    """A handler that Lambda calls. Settings and clients are made once for all invocations.

    `handle_event` is the function that the handler calls with the event and the
    `LambdaInvocation`.
    """

    settings_class: type[Settings]
    handle_event: Callable[[Any, LambdaInvocation[Settings]], Any]
    metrics: Metrics = field(default_factory=lambda: Metrics(namespace=METRIC_NAMESPACE))

    def __post_init__(self) -> None:
        gc.freeze()
        gc.enable()
        service_name = self.handle_event.__module__.rpartition(".")[2]
        self.logger = Logger(service=service_name, json_serializer=to_log_line)

    @cached_property
    def settings_and_clients(self) -> tuple[Settings, Clients]:
        """The settings and AWS clients. They are made at the first invocation.

        Raises:
            SettingsUnreadable: An environment variable is missing or has a wrong value.
        """
        return self.settings_class.from_environment(os.environ), Clients.for_lambda()

    def __call__(self, event: Any, context: Any) -> Any:
        """Return what `handle_event` returns. Log an error that it raises, and raise it again."""
        return self.logger.inject_lambda_context(self._handle_logged_event)(event, context)

    def _handle_logged_event(self, event: Any, context: LambdaContext) -> Any:
        settings, clients = self.settings_and_clients
        now = datetime.now(UTC)
        try:
            return self.handle_event(
                event, LambdaInvocation(settings, clients, context, self.logger, self.metrics, now)
            )
        except Exception as error:
            self.logger.exception("it failed", blame=summarize_error_cause(error))
            raise
        finally:
            if self.metrics.metric_set:
                self.metrics.flush_metrics()


def entry(
    settings_class: type[Settings],
) -> Callable[[Callable[[Any, LambdaInvocation[Settings]], Any]], Entry[Settings]]:
    """Return a decorator that makes a Lambda handler of a function.

    The function gets the event and the `LambdaInvocation`. `settings_class` is the class of the
    Lambda's settings.
    """
    return partial(Entry, settings_class)
