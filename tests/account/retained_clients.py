"""Clients and lookups that moto and botocore would make again for each test, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import boto3
from botocore import compat, hooks, useragent
from botocore.config import Config
from botocore.hooks import EventAliaser
from moto import backend_index
from moto.core import responses
from moto.core.models import RESPONSES_METHODS
from moto.core.serialize import AttributePicker, XFormedAttributePicker
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.sqs import models

_REGISTERING = ("register", "register_first", "register_last", "unregister")


class _Retained:
    """A client, and whether it is still as it was made."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._has_its_handlers = True
        for name in _REGISTERING:
            method = getattr(client.meta.events, name)
            setattr(client.meta.events, name, partial(self._note_handler_change, method))
        _ = client.exceptions  # is made when somebody asks for it
        self._made = dict(vars(client))

    @property
    def is_as_made(self) -> bool:
        return self._has_its_handlers and vars(self.client) == self._made

    def _note_handler_change(self, method: Callable[..., None], *given: Any, **named: Any) -> None:
        self._has_its_handlers = False
        method(*given, **named)


# Each client has its own copy of its session's handlers.
_session = cache(boto3.Session)
_retained: dict[tuple[str, str, str], _Retained] = {}


class RetainedSession:
    """A boto3 session that shares its clients until a caller uses more than `client`."""

    def __init__(self, region_name: str) -> None:
        self.region_name = region_name

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        """Return a client that has no test's handlers or methods."""
        if config is None or "_own" in vars(self):
            return self._own.client(service_name, config=config)
        key = (self.region_name, service_name, repr(vars(config)))
        if key not in _retained or not _retained[key].is_as_made:
            made = _session(region_name=self.region_name).client(service_name, config=config)
            _retained[key] = _Retained(made)
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
# Services with their own hosts. Moto would try the patterns of 150 services before these.
_ASKED_MOST = ("dynamodb", "sqs", "sns", "lambda", "cloudwatch", "events", "cloudtrail")


def _names_of(picker: type[Any]) -> Callable[[Any, Any], tuple[str, ...]]:
    """Under which a value may lie: what it is in and where decides, not what it is."""
    find = picker.get_possible_keys
    known = dict[tuple[object, ...], tuple[str, ...]]()

    def names(self: Any, context: Any) -> tuple[str, ...]:
        shape = context.shape
        service = context.service_model.service_name
        within = getattr(getattr(shape, "parent", None), "name", "")
        key = type(context.obj), service, within, shape.name, context.key
        return known.get(key) or known.setdefault(key, tuple(find(self, context)))

    return names


def remember() -> None:
    """Once per process."""
    pickers: tuple[Any, ...] = (XFormedAttributePicker, AttributePicker)
    for picker in pickers:
        picker.get_possible_keys = _names_of(picker)
    parser: Any = ConditionExpressionParser
    parser._lex_one_node = staticmethod(cache(partial(parser._lex_one_node, parser)))
    # All emitters share one cache, because no emitter has other aliases than botocore's.
    aliaser: Any = EventAliaser
    aliaser._alias_event_name = staticmethod(cache(aliaser(None)._alias_event_name))
    backend_index.backend_url_patterns.sort(key=lambda each: each[0] not in _ASKED_MOST)
    # Nobody calls moto here but botocore, and patterns for `requests` are 1,288 a test.
    RESPONSES_METHODS.clear()
    for module, name in _OF_ITS_ARGUMENTS_ALONE:
        setattr(module, name, cache(getattr(module, name)))
