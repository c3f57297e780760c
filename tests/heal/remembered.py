"""What botocore and moto work out anew for each call, and what is always the same."""

from __future__ import annotations

from functools import cache

from botocore import compat, hooks, useragent
from moto.core import responses
from moto.sqs import models

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
    for module, name in _OF_ITS_ARGUMENTS_ALONE:
        setattr(module, name, cache(getattr(module, name)))
