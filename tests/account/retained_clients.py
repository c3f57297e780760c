"""What moto and botocore make or work out anew for each test, kept: it outlasts what they do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import boto3
from botocore import compat, hooks, useragent
from botocore.config import Config
from moto.core import responses
from moto.core.models import RESPONSES_METHODS
from moto.sqs import models

_REGISTERING = ("register", "register_first", "register_last", "unregister")


class _Retained:
    """A client, and whether it is still as it was made."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._has_its_handlers = True
        for name in _REGISTERING:
            method = getattr(client.meta.events, name)
            setattr(client.meta.events, name, partial(self._changed, method))
        _ = client.exceptions  # is made when somebody asks for it
        self._made = dict(vars(client))

    @property
    def is_as_made(self) -> bool:
        return self._has_its_handlers and vars(self.client) == self._made

    def _changed(self, method: Callable[..., None], *given: Any, **named: Any) -> None:
        self._has_its_handlers = False
        method(*given, **named)


_retained: dict[tuple[str, str, str], _Retained] = {}


class RetainedSession:
    """What boto3's session is; whoever asks it for more than a client gets clients of his own."""

    def __init__(self, region_name: str) -> None:
        self.region_name = region_name

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        """One that no test has put a handler or a method of its own on."""
        if config is None or "_own" in vars(self):
            return self._own.client(service_name, config=config)
        key = (self.region_name, service_name, repr(vars(config)))
        if key not in _retained or not _retained[key].is_as_made:
            made = boto3.Session(region_name=self.region_name)
            _retained[key] = _Retained(made.client(service_name, config=config))
        return _retained[key].client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    @cached_property
    def _own(self) -> boto3.Session:
        return boto3.Session(region_name=self.region_name)


_OF_ITS_ARGUMENTS_ALONE = (
    (compat, "accepts_kwargs"),
    (hooks, "accepts_kwargs"),
    (useragent, "sanitize_user_agent_string_component"),
    (responses, "camelcase_to_underscores"),
    (responses, "method_names_from_class"),
    (models, "camelcase_to_underscores"),
)


def remember() -> None:
    """Once per process."""
    # Nobody calls moto here but botocore, and patterns for `requests` are 1,288 a test.
    RESPONSES_METHODS.clear()
    for module, name in _OF_ITS_ARGUMENTS_ALONE:
        setattr(module, name, cache(getattr(module, name)))
