"""Which AWS calls code makes, noted before botocore sends them, and which IAM actions they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import boto3

from functions.aws.clients import Clients

REGION = "us-east-1"
# Where IAM does not call a service as botocore does.
# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
_PREFIX = {"accessanalyzer": "access-analyzer", "resourcegroupstaggingapi": "tag", "sesv2": "ses"}
_ACTION = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:ListObjectsV2": "s3:ListBucket",
    **{
        f"sqs:{each}Batch": f"sqs:{each}"
        for each in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")
    },
}
# A transaction takes the actions of its parts.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
_OF_PART = {
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


@dataclass(frozen=True)
class Recorded:
    """Clients, and what was called with them: operations as the API names them, IAM actions."""

    clients: Clients
    operations: set[str] = field(default_factory=set)
    actions: set[str] = field(default_factory=set)

    def note(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        self.operations.add(model.name)
        self.actions.update(_actions(model.service_model.service_name, model.name, params))


def recording(answers: Mapping[str, Any], otherwise: Any = None) -> Recorded:
    """Clients that answer with `answers` by operation; what is not among them is sent.

    `otherwise` answers it instead where it is given.
    """
    session = boto3.Session("key", "secret", region_name=REGION)
    recorded = Recorded(Clients(session))

    class Answer:
        status_code = 200

    def answer(model: Any, **_: Any) -> tuple[Answer, Any] | None:
        found = answers.get(model.name, otherwise)
        return None if found is None else (Answer(), found)

    session.events.register("before-parameter-build", recorded.note)
    # What a handler returns here is the answer, which the stubs' type does not say.
    session.events.register("before-call", cast("Callable[..., None]", answer))
    return recorded


def _actions(service: str, operation: str, params: Mapping[str, Any]) -> Iterator[str]:
    prefix = _PREFIX.get(service, service)
    if operation.startswith("Transact"):
        for item in params["TransactItems"]:
            yield from (f"{prefix}:{_OF_PART[part]}" for part in item)
    else:
        action = f"{prefix}:{operation}"
        yield _ACTION.get(action, action)
        if action == "ses:SendEmail" and "Raw" in params["Content"]:
            yield "ses:SendRawEmail"
