"""The one decorator of the Lambdas: settings, clients, clock, log, metrics and errors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from mendq.aws.clients import Clients
from mendq.aws.errors import blame
from mendq.model.names import NAMESPACE
from mendq.model.settings import LambdaSettings

Settings = TypeVar("Settings", bound=LambdaSettings)
Made = TypeVar("Made")
Event = dict[str, Any]
# Event fields are other people's text: one line stays one line, whatever stands in it.
to_line = partial(json.dumps, ensure_ascii=True, default=str, separators=(",", ":"))


@dataclass(frozen=True)
class Call(Generic[Settings]):
    """One invocation: what every Lambda knows of it."""

    settings: Settings
    clients: Clients
    context: LambdaContext
    log: Logger
    metrics: Metrics
    now: datetime

    def remaining_seconds(self) -> float:
        return self.context.get_remaining_time_in_millis() / 1000

    def at_store(self, kind: Callable[..., Made], **more: Any) -> Made:
        """A context of an invocation that reads or moves cases."""
        owner = self.context.aws_request_id
        return kind(clients=self.clients, settings=self.settings, owner=owner, now=self.now, **more)

    def writing(self, kind: Callable[..., Made], **more: Any) -> Made:
        """A context of an invocation that writes: it knows the time that is left."""
        clock = partial(datetime.now, UTC)
        return self.at_store(kind, remaining_seconds=self.remaining_seconds, clock=clock, **more)


@dataclass
class Entry(Generic[Settings]):
    """A handler as Lambda calls it; `cold_start` is done once for all invocations."""

    settings: type[Settings]
    act: Callable[[Any, Call[Settings]], Any]
    metrics: Metrics = field(default_factory=lambda: Metrics(namespace=NAMESPACE))

    def __post_init__(self) -> None:
        service = self.act.__module__.rpartition(".")[2]
        self.logger = Logger(service=service, json_serializer=to_line)

    @cached_property
    def cold_start(self) -> tuple[Settings, Clients]:
        """Raises SettingsUnreadable."""
        return self.settings.from_environment(os.environ), Clients.of_this_lambda()

    def forget(self) -> None:
        """Begin cold again."""
        self.__dict__.pop("cold_start", None)

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
