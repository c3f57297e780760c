"""Which AWS calls code makes, seen below botocore and never sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import boto3

from functions.aws.clients import Clients

# Where IAM names an action otherwise than the API does.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
_PREFIX = {"emr-serverless": "emr-serverless", "s3": "s3", "sns": "sns"}


class Recorded(NamedTuple):
    clients: Clients
    actions: set[str]


def recording(answers: Mapping[str, Any]) -> Recorded:
    """Clients that answer with `answers` by operation, and note the IAM action of each call."""
    session = boto3.Session("key", "secret", region_name="us-east-1")
    recorded = Recorded(Clients(session), set())

    class Answer:
        status_code = 200

    def note(model: Any, **_: Any) -> tuple[Answer, Any]:
        service = _PREFIX[model.service_model.service_name]
        recorded.actions.add(f"{service}:{model.name}")
        return Answer(), answers.get(model.name, {})

    # What a handler returns here is the answer, which the stubs' type does not say.
    session.events.register("before-call", cast("Callable[..., None]", note))
    return recorded
