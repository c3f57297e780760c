"""The one decorator of the Lambdas: settings, clients, clock, log, metrics (EMF) and errors."""

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
from mendq.aws.errors import blame
from mendq.model.case import State
from mendq.model.json_text import to_json
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.model.settings import LambdaSettings

# A Lambda loads its own rooms, and not those of the others.
if TYPE_CHECKING:
    from mendq.heal.outcome import Outcome

Settings = TypeVar("Settings", bound=LambdaSettings)
Made = TypeVar("Made")
Event = dict[str, Any]
# Event fields are other people's text: one line stays one line, whatever stands in it.
to_line = partial(to_json, is_compact=True, default=str)

# An anomaly band learns nothing from a series that is only there when something happens; any other
# counter that is always there costs its month and is watched by no alarm.
COUNTED_AS_ZERO = OwnMetric.AUTO_FIXES


class Call(Struct, Generic[Settings], frozen=True):
    """One invocation: what every Lambda knows of it."""

    settings: Settings
    clients: Clients
    context: LambdaContext
    log: Logger
    metrics: Metrics
    now: datetime

    def remaining_seconds(self) -> float:
        return self.context.get_remaining_time_in_millis() / 1000

    def make_store_context(self, kind: Callable[..., Made], **more: Any) -> Made:
        """Return the context of an invocation that reads or moves cases."""
        owner = self.context.aws_request_id
        return kind(clients=self.clients, settings=self.settings, owner=owner, now=self.now, **more)

    def make_writing_context(self, kind: Callable[..., Made], **more: Any) -> Made:
        """Return the context of an invocation that writes. It knows the time that is left."""
        clock = partial(datetime.now, UTC)
        return self.make_store_context(
            kind, remaining_seconds=self.remaining_seconds, clock=clock, **more
        )

    def count(self, counts: Mapping[OwnMetric, int], *, zeros: bool = False) -> None:
        """Send what is not zero, and COUNTED_AS_ZERO; all of it with `zeros`."""
        for name, value in counts.items():
            if value or zeros or name == COUNTED_AS_ZERO:
                self.measure(name, value, "Count")

    def measure(self, name: str, value: float, unit: Literal["Count", "Seconds"]) -> None:
        """Send a value; CloudWatch takes no NaN and no Infinity, so these are left out."""
        if isfinite(value):
            self.metrics.add_metric(name, MetricUnit(unit), value)

    def answer_case(self, event: Event, outcome: Outcome) -> Event:
        """Count and log the outcome of a case. Return it as the answer to the caller."""
        document, refused = outcome.document(), outcome.refusal is not None
        fixed = document["state"] == State.APPLIED
        counts = {OwnMetric.AUTO_FIXES: fixed, OwnMetric.ESCALATIONS: outcome.is_escalation}
        self.count({**counts, OwnMetric.REFUSALS: refused})
        self.log.info("took up a case", request=event, **document)
        return document


def count_by_symptom(name: OwnMetric, counts: Mapping[str, int]) -> None:
    """Never a dimension per queue: there may be thousands."""
    for symptom, value in counts.items():
        with single_metric(name, MetricUnit.Count, value, namespace=NAMESPACE) as metric:
            metric.add_dimension("symptom", symptom)


@dataclass
class Entry(Generic[Settings]):
    """A handler as Lambda calls it; `cold_start` is done once for all invocations."""

    settings: type[Settings]
    act: Callable[[Any, Call[Settings]], Any]
    metrics: Metrics = field(default_factory=lambda: Metrics(namespace=NAMESPACE))

    def __post_init__(self) -> None:
        gc.freeze()
        gc.enable()
        service = self.act.__module__.rpartition(".")[2]
        self.logger = Logger(service=service, json_serializer=to_line)

    @cached_property
    def cold_start(self) -> tuple[Settings, Clients]:
        """Raises SettingsUnreadable."""
        return self.settings.from_environment(os.environ), Clients.for_lambda()

    def __call__(self, event: Any, context: Any) -> Any:
        """Answer as `act` does; its error is logged with whom it is to blame on, and raised."""
        return self.logger.inject_lambda_context(self._answer)(event, context)

    def _answer(self, event: Any, context: LambdaContext) -> Any:
        settings, clients = self.cold_start
        now = datetime.now(UTC)
        try:
            return self.act(event, Call(settings, clients, context, self.logger, self.metrics, now))
        except Exception as error:
            self.logger.exception("it failed", blame=blame(error))
            raise
        finally:
            if self.metrics.metric_set:
                self.metrics.flush_metrics()


def entry(
    settings: type[Settings],
) -> Callable[[Callable[[Any, Call[Settings]], Any]], Entry[Settings]]:
    """Make a Lambda's handler of a function of the event and the call."""
    return partial(Entry, settings)
