"""Record the AWS calls of the product, before botocore sends them, with their IAM actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

import boto3

from mendq.aws.clients import Clients
from tests.infra.called_resources import resources_of, table_of, tags_of

REGION = "us-east-1"
# The IAM prefix of services that IAM and botocore name differently.
# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
_PREFIX = {"accessanalyzer": "access-analyzer", "resourcegroupstaggingapi": "tag", "sesv2": "ses"}
_ACTION = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:CopyObject": "s3:PutObject",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListBuckets": "s3:ListAllMyBuckets",
    "s3:ListObjectsV2": "s3:ListBucket",
    **{
        f"sqs:{action}Batch": f"sqs:{action}"
        for action in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")
    },
}
# A transaction needs the actions of its parts.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
_ACTION_BY_PART = {
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Call:
    """A call as IAM judges it: action, resource, tags of the resource, other condition keys."""

    action: str
    resource: str
    tags: Pairs = frozenset()
    keys: Pairs = frozenset()


@dataclass(frozen=True)
class SentRequest:
    """A request as botocore sends it, and the tags of its queue at that time."""

    service: str
    operation: str
    params: Mapping[str, Any]
    tags: Pairs

    def actions(self) -> Iterator[str]:
        """Yield the IAM actions of the request."""
        if self.operation.startswith("Transact"):
            parts = (part for item in self.params["TransactItems"] for part in item)
            yield from (f"dynamodb:{_ACTION_BY_PART[part]}" for part in parts)
            return
        yield from _list_actions(self.service, self.operation, self.params)
        if self.operation == "CreateQueue" and self.params.get("tags"):
            yield "sqs:TagQueue"

    def calls(self) -> Iterator[Call]:
        if self.service == "dynamodb":
            for verb, params in _list_item_actions(self.operation, self.params):
                keys = frozenset(_list_partition_keys(params))
                yield Call(f"dynamodb:{verb}", table_of(params), keys=keys)
            return
        if self.operation == "CopyObject":
            bucket, _, key = unquote(self.params["CopySource"]).partition("/")
            of_source = resources_of("s3", "GetObject", {"Bucket": bucket, "Key": key})
            yield from (Call("s3:GetObject", arn) for arn in of_source)
        keys = frozenset(_list_condition_keys(self.params))
        for resource in resources_of(self.service, self.operation, self.params):
            for action in _list_actions(self.service, self.operation, self.params):
                yield Call(action, resource, self.tags, keys)
        if "executionRoleArn" in self.params:
            passed = frozenset({("iam:PassedToService", f"{self.service}.amazonaws.com")})
            yield Call("iam:PassRole", self.params["executionRoleArn"], keys=passed)


@dataclass(frozen=True)
class CallRecorder:
    """AWS clients that record their requests."""

    clients: Clients
    sent: list[SentRequest] = field(default_factory=list)

    @property
    def operations(self) -> set[str]:
        """The names of the recorded API operations."""
        return {request.operation for request in self.sent}

    @property
    def calls(self) -> set[Call]:
        """The recorded calls as IAM judges them."""
        return {call for request in self.sent for call in request.calls()}

    def note(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        service = model.service_model.service_name
        tags = tags_of(params) if service == "sqs" else frozenset()
        self.sent.append(SentRequest(service, model.name, dict(params), tags))


def make_recorder(answers: Mapping[str, Any], otherwise: Any = None) -> CallRecorder:
    """Return clients that give these answers by operation.

    Other operations get `otherwise`, or are really sent if it is None.
    """
    session = boto3.Session("key", "secret", region_name=REGION)
    recorder = CallRecorder(Clients(session))

    class HttpAnswer:
        status_code = 200

    def answer(model: Any, **_: Any) -> tuple[HttpAnswer, Any] | None:
        content = answers.get(model.name, otherwise)
        return None if content is None else (HttpAnswer(), content)

    session.events.register("before-parameter-build", recorder.note)
    # botocore takes the handler's return value as the answer, which the stubs do not declare.
    session.events.register("before-call", cast("Callable[..., None]", answer))
    return recorder


def _list_actions(service: str, operation: str, params: Mapping[str, Any]) -> Iterator[str]:
    action = f"{_PREFIX.get(service, service)}:{operation}"
    yield _ACTION.get(action, action)
    if action == "ses:SendEmail" and "Raw" in params["Content"]:
        yield "ses:SendRawEmail"


def _list_item_actions(
    operation: str, params: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the IAM actions of a DynamoDB request, each with the parameters of its part."""
    if operation.startswith("Transact"):
        for item in params["TransactItems"]:
            yield from ((_ACTION_BY_PART[part], part_params) for part, part_params in item.items())
    else:
        yield operation, params


def _list_partition_keys(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the condition key with the partition key of the item that a request names."""
    for item in (params.get("Key"), params.get("Item")):
        if item:
            yield "dynamodb:LeadingKeys", item["pk"]["S"]


def _list_condition_keys(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
