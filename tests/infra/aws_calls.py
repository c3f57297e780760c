"""Which AWS calls code makes, noted before botocore sends them, and which IAM actions they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

import boto3

from mendq.aws.clients import Clients
from tests.infra.called_resources import resources_of, table_of, tags_of

REGION = "us-east-1"
# Where IAM does not call a service as botocore does.
# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
_PREFIX = {"accessanalyzer": "access-analyzer", "resourcegroupstaggingapi": "tag", "sesv2": "ses"}
_ACTION = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:CopyObject": "s3:PutObject",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListBuckets": "s3:ListAllMyBuckets",
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


Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Call:
    """What IAM is asked: an action, a resource of the template's account, its tags, other keys."""

    action: str
    resource: str
    tags: Pairs = frozenset()
    keys: Pairs = frozenset()


@dataclass(frozen=True)
class Sent:
    """A request as botocore knows it, and the tags that its queue bore then."""

    service: str
    operation: str
    params: Mapping[str, Any]
    tags: Pairs

    def actions(self) -> Iterator[str]:
        """What IAM calls it."""
        if self.operation.startswith("Transact"):
            parts = (part for item in self.params["TransactItems"] for part in item)
            yield from (f"dynamodb:{_OF_PART[part]}" for part in parts)
            return
        yield from _actions(self.service, self.operation, self.params)
        if self.operation == "CreateQueue" and self.params.get("tags"):
            yield "sqs:TagQueue"

    def calls(self) -> Iterator[Call]:
        if self.service == "dynamodb":
            for verb, resource in _items(self.operation, self.params):
                yield Call(f"dynamodb:{verb}", resource)
            return
        if self.operation == "CopyObject":
            bucket, _, key = unquote(self.params["CopySource"]).partition("/")
            of_source = resources_of("s3", "GetObject", {"Bucket": bucket, "Key": key})
            yield from (Call("s3:GetObject", each) for each in of_source)
        keys = frozenset(_keys(self.params))
        for resource in resources_of(self.service, self.operation, self.params):
            for action in _actions(self.service, self.operation, self.params):
                yield Call(action, resource, self.tags, keys)
        if "executionRoleArn" in self.params:
            passed = frozenset({("iam:PassedToService", f"{self.service}.amazonaws.com")})
            yield Call("iam:PassRole", self.params["executionRoleArn"], keys=passed)


@dataclass(frozen=True)
class Recorded:
    """Clients, and what was sent with them."""

    clients: Clients
    sent: list[Sent] = field(default_factory=list)

    @property
    def operations(self) -> set[str]:
        """As the API names them."""
        return {each.operation for each in self.sent}

    @property
    def calls(self) -> set[Call]:
        """As IAM is asked for them."""
        return {call for each in self.sent for call in each.calls()}

    def note(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        service = model.service_model.service_name
        tags = tags_of(params) if service == "sqs" else frozenset()
        self.sent.append(Sent(service, model.name, dict(params), tags))


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
    called = f"{_PREFIX.get(service, service)}:{operation}"
    yield _ACTION.get(called, called)
    if called == "ses:SendEmail" and "Raw" in params["Content"]:
        yield "ses:SendRawEmail"


def _items(operation: str, params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if operation.startswith("Transact"):
        for item in params["TransactItems"]:
            yield from ((_OF_PART[part], table_of(said)) for part, said in item.items())
    else:
        yield operation, table_of(params)


def _keys(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "Prefix" in params:
        yield "s3:prefix", params["Prefix"]
    if "FromEmailAddress" in params:
        yield "ses:FromAddress", params["FromEmailAddress"]
    for entry in params.get("Entries", ()):
        if "DetailType" in entry:
            yield "events:source", entry["Source"]
            yield "events:detail-type", entry["DetailType"]
    if params.get("tags"):
        yield "aws:TagKeys", ",".join(params["tags"])
