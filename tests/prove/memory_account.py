"""An account in memory: all that a case's life asks of AWS, in a tenth of what moto takes.

Answers are given below botocore's parsing. What is asked of DynamoDB is read as expressions; what
else is answered is what `test_memory_account` holds beside moto's answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from io import BytesIO
from types import CodeType, SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

import boto3

from mendq.aws.clients import CallRateLimit, Clients
from mendq.model.queue import DEFAULT_NUMBER_BY_ATTRIBUTE
from tests.account.account import ACCOUNT, REGION, Account, make_settings
from tests.account.calm_metrics import DELETED_METRIC, STEADY_METRICS, list_minutes
from tests.prove.proof import BEGINS_AT
from tests.prove.struck_calls import StruckCalls

Asked = Mapping[str, Any]
Item = dict[str, Any]
FREEZE = ("account", "freeze")
ARNS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
_TO_PYTHON = (
    (r"attribute_not_exists\(#?(\w+)\)", r"('\1' not in item)"),
    (r"attribute_exists\(#?(\w+)\)", r"('\1' in item)"),
    (r"begins_with\(#?(\w+), (:\w+)\)", r"begins(item.get('\1'), values['\2'])"),
    (r"\bcontains\(#?(\w+), (:\w+)\)", r"contains(item.get('\1'), values['\2'])"),
    (r"#?(\w+) (=|<=|>=|<|>) (:\w+)", r"compare(item.get('\1'), '\2', values['\3'])"),
    (r"\bAND\b", "and"),
    (r"\bOR\b", "or"),
    (r"\bNOT\b", "not"),
)
_PARTS = re.compile(r"\b(SET|REMOVE|ADD|DELETE) (.*?)(?= (?:SET|REMOVE|ADD|DELETE) |$)")
_SET = re.compile(r"#?(\w+) = (if_not_exists\()?(?:#?\w+, )?(:\w+)")
_NAMED = re.compile(r"#?(\w+) (:\w+)")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<": lambda one, other: bool(one < other),
    ">": lambda one, other: bool(one > other),
    "<=": lambda one, other: bool(one <= other),
    ">=": lambda one, other: bool(one >= other),
}


@cache
def _condition(expression: str) -> CodeType:
    for pattern, python in _TO_PYTHON:
        expression = re.sub(pattern, python, expression)
    return compile(expression, "condition", "eval")


def _value(typed: Asked) -> Any:
    ((kind, value),) = typed.items()
    known = {"N": int, "SS": frozenset}
    return kind, known[kind](value) if kind in known else value


def _compare(one: Asked | None, how: str, other: Asked) -> bool:
    if one is None or one.keys() != other.keys():
        return False
    return _COMPARED[how](_value(one)[1], _value(other)[1])


def _begins(one: Asked | None, other: Asked) -> bool:
    return one is not None and str(one["S"]).startswith(other["S"])


def _contains(one: Asked | None, other: Asked) -> bool:
    return one is not None and other["S"] in one["SS"]


_ASKED = {"compare": _compare, "begins": _begins, "contains": _contains}


SEAL_TABLE = "seals"


def _holds(item: Item, asked: Asked, name: str = "ConditionExpression") -> bool:
    if name not in asked:
        return True
    known = {"item": item, "values": asked.get("ExpressionAttributeValues", {})}
    return bool(eval(_condition(asked[name]), _ASKED | known))  # noqa: S307


def _apply_update(item: Item, asked: Asked) -> Item:
    changed = {**item, **asked["Key"]}
    values = asked.get("ExpressionAttributeValues", {})
    for verb, rest in _PARTS.findall(asked["UpdateExpression"]):
        if verb == "REMOVE":
            for name in re.findall(r"#?(\w+)", rest):
                changed.pop(name, None)
        elif verb == "SET":
            _set_values(changed, rest, values)
        else:
            for name, value in _NAMED.findall(rest):
                _add(changed, name, values[value], more=verb == "ADD")
    return changed


def _set_values(item: Item, assignments: str, values: Asked) -> None:
    for name, unless_there, value in _SET.findall(assignments):
        item[name] = item.get(name, values[value]) if unless_there else values[value]


def _add(item: Item, name: str, typed: Asked, *, more: bool) -> None:
    kind, value = _value(typed)
    if kind == "N":
        item[name] = {"N": str(int(item.get(name, {"N": "0"})["N"]) + value)}
        return
    stood = frozenset(item.pop(name, {"SS": ()})["SS"])
    if left := stood | value if more else stood - value:
        item[name] = {"SS": sorted(left)}


def method_of(operation: str) -> str:
    """The name of the method that answers it, where there is one."""
    return re.sub(r"([A-Z])", r"_\1", operation).lower()


class RefusedCallError(Exception):
    """AWS's answer with this code, and what else it says."""

    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.document = {"Error": {"Code": code, "Message": code}, **more}


@dataclass
class MemoryAccount:
    """`queues` by name, each with its attributes and, beside them, its tags; `items` by key.

    `invoke` answers whoever asks a Lambda and waits; what waits for nobody is in `invoked`.
    """

    account: Account
    calls: StruckCalls
    queues: dict[str, tuple[dict[str, str], dict[str, str]]] = field(default_factory=dict)
    items: dict[tuple[str, str], Item] = field(default_factory=dict)
    # The items of the table of seal keys. Its keys may be those of items of the case store.
    seals: dict[tuple[str, str], Item] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    published: list[Asked] = field(default_factory=list)
    invoked: list[dict[str, str]] = field(default_factory=list)
    deletes: list[datetime] = field(default_factory=list)
    invoke: Callable[[dict[str, str]], Mapping[str, Any]] = dict

    def empty(self) -> None:
        """As it was at first."""
        for contents in (self.queues, self.items, self.objects, self.published, self.deletes):
            contents.clear()
        self.seals.clear()
        self.account.now = BEGINS_AT
        self.account.deliveries = 0
        self.invoked = []

    def make(self, name: str, seconds: int, tags: dict[str, str]) -> str:
        at = str(int(self.account.now.timestamp()))
        times = {"CreatedTimestamp": at, "LastModifiedTimestamp": at}
        counts = ("", "NotVisible", "Delayed")
        attributes = {
            **{attribute: str(value) for attribute, value in DEFAULT_NUMBER_BY_ATTRIBUTE.items()},
            **dict.fromkeys((f"ApproximateNumberOfMessages{count}" for count in counts), "0"),
            **({"FifoQueue": "true"} if name.endswith(".fifo") else {}),
            "QueueArn": f"{ARNS}{name}",
            "VisibilityTimeout": str(seconds),
            **times,
        }
        self.queues[name] = attributes, tags
        return attributes["QueueArn"]

    def set(self, name: str, attributes: Mapping[str, str]) -> None:
        at = str(int(self.account.now.timestamp()))
        self.queues[name][0].update(attributes, LastModifiedTimestamp=at)

    def answer(self, operation: str, asked: Asked) -> Any:
        """Raise AttributeError for operations that are not implemented."""
        try:
            return SimpleNamespace(status_code=200), self.does(method_of(operation))(asked)
        except RefusedCallError as refused:
            return SimpleNamespace(status_code=400), refused.document

    def does(self, method: str) -> Callable[[Asked], Item]:
        found: Callable[[Asked], Item] = getattr(self, method)
        return found

    def freeze(self) -> None:
        self.items[FREEZE] = {
            "pk": {"S": FREEZE[0]},
            "sk": {"S": FREEZE[1]},
            "reason": {"S": "an incident"},
        }

    def thaw(self) -> None:
        self.items.pop(FREEZE, None)

    def _queue(self, asked: Asked) -> tuple[dict[str, str], dict[str, str]]:
        name = str(asked["QueueUrl"]).rpartition("/")[2]
        if name not in self.queues:
            raise RefusedCallError("AWS.SimpleQueueService.NonExistentQueue")
        return self.queues[name]

    def _list_queue_tags(self, asked: Asked) -> Item:
        return {"Tags": dict(self._queue(asked)[1])}

    def _get_queue_attributes(self, asked: Asked) -> Item:
        return {"Attributes": dict(self._queue(asked)[0])}

    def _set_queue_attributes(self, asked: Asked) -> Item:
        self.set(self._queue(asked)[0]["QueueArn"].rpartition(":")[2], asked["Attributes"])
        return {}

    def _item(self, key: Asked) -> Item:
        return self.items.get((key["pk"]["S"], key["sk"]["S"]), {})

    def _transact_get_items(self, asked: Asked) -> Item:
        found = (
            self._item(transact_item["Get"]["Key"]) for transact_item in asked["TransactItems"]
        )
        return {"Responses": [{"Item": item} if item else {} for item in found]}

    def _get_item(self, asked: Asked) -> Item:
        if asked["TableName"] == SEAL_TABLE:
            item = self.seals.get((asked["Key"]["pk"]["S"], asked["Key"]["sk"]["S"]), {})
        else:
            item = self._item(asked["Key"])
        return {"Item": item} if item else {}

    def _transact_write_items(self, asked: Asked) -> Item:
        parts = [
            (verb, part)
            for transact_item in asked["TransactItems"]
            for verb, part in transact_item.items()
        ]
        failed = [
            not _holds(self._item(part.get("Key", part.get("Item"))), part) for _, part in parts
        ]
        if any(failed):
            codes = [{"Code": "ConditionalCheckFailed" if reason else "None"} for reason in failed]
            raise RefusedCallError("TransactionCanceledException", CancellationReasons=codes)
        for verb, request in parts:
            self._write(verb, request)
        return {}

    def _write(self, verb: str, asked: Asked) -> Item:
        named = asked.get("Key", asked.get("Item"))
        assert named is not None
        if not _holds(item := self._item(named), asked):
            raise RefusedCallError("ConditionalCheckFailedException")
        key = named["pk"]["S"], named["sk"]["S"]
        if verb == "Delete":
            self.items.pop(key, None)
        elif verb != "ConditionCheck":
            self.items[key] = dict(asked["Item"]) if verb == "Put" else _apply_update(item, asked)
        return {"Attributes": self.items.get(key, {})}

    def _update_item(self, asked: Asked) -> Item:
        if asked["TableName"] == SEAL_TABLE:
            key = asked["Key"]["pk"]["S"], asked["Key"]["sk"]["S"]
            self.seals[key] = _apply_update(self.seals.get(key, {}), asked)
            return {"Attributes": self.seals[key]}
        return self._write("Update", asked)

    def _put_item(self, asked: Asked) -> Item:
        return self._write("Put", asked)

    def _query(self, asked: Asked) -> Item:
        index = "due_at" if "IndexName" in asked else "sk"
        found = [
            item
            for item in self.items.values()
            if index in item
            and _holds(item, asked, "KeyConditionExpression")
            and _holds(item, asked, "FilterExpression")
        ]
        return {"Items": sorted(found, key=lambda item: _value(item[index])[1])}

    def _put_object(self, asked: Asked) -> Item:
        body = asked["Body"]
        self.objects[asked["Key"]] = json.loads(
            body if isinstance(body, bytes) else body.getvalue()
        )
        return {}

    def _publish(self, asked: Asked) -> Item:
        self.published.append(asked)
        return {"MessageId": str(len(self.published))}

    def _put_events(self, _asked: Asked) -> Item:
        return {"Entries": [{"EventId": "1"}]}

    def _lookup_events(self, _asked: Asked) -> Item:
        return {"Events": []}

    def _list_event_source_mappings(self, _asked: Asked) -> Item:
        return {"EventSourceMappings": []}

    def _get_metric_data(self, asked: Asked) -> Item:
        counted = [
            delete for delete in self.deletes if asked["StartTime"] <= delete < asked["EndTime"]
        ]
        results = []
        for query in asked["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]["MetricName"]
            value_by_time = dict[datetime, float]()
            if metric in STEADY_METRICS:
                minutes = list_minutes(asked["StartTime"], asked["EndTime"])
                value_by_time = dict.fromkeys(minutes, 0.0)
            if metric == DELETED_METRIC:
                value_by_time |= {
                    delete.replace(second=0, microsecond=0): 5.0 for delete in counted
                }
            result = {
                "Id": query["Id"],
                "Values": [*value_by_time.values()],
                "Timestamps": [*value_by_time],
            }
            results.append({**result, "StatusCode": "Complete"})
        return {"MetricDataResults": results}

    def _invoke(self, asked: Asked) -> Item:
        request = json.loads(asked["Payload"])
        if asked["InvocationType"] == "Event":
            self.invoked.append(request)
            return {"StatusCode": 202}
        answer = self.invoke(request)
        return {"Payload": BytesIO(json.dumps(answer).encode())} | (
            {"FunctionError": "Unhandled"} if "errorMessage" in answer else {}
        )


_Kind = TypeVar("_Kind", bound=MemoryAccount)


@contextmanager
def memory_account(kind: type[_Kind]) -> Iterator[_Kind]:
    """Make an empty account whose own clients answer inside the block."""
    account = Account(Clients(boto3.Session(region_name=REGION)), make_settings(), BEGINS_AT)
    account.clients.__dict__["event_history_pace"] = CallRateLimit(None)
    made = kind(account, StruckCalls(lambda *_: None))
    made.calls.answers = made.answer
    made.calls.listen(account.clients)
    # Spelling out who calls takes botocore longer than a call takes here.
    with patch("botocore.useragent.UserAgentString.to_string", lambda _: "nobody"):
        yield made
