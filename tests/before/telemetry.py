"""What the Lambdas leave behind: metrics, log lines, items and objects, by name and shape."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from functions import approve, follow_up, heal, probe, rollback, scan
from mendq.aws.clients import Clients
from mendq.model.names import HEARTBEAT, NAMESPACE, WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.model.settings import ApproveSettings, CaseSettings, FollowUpSettings, ProbeSettings
from mendq.nightly.outcome import NightlyMetric
from mendq.probe.probe import QUEUE_NAME
from tests.before.operator_accounts import scrubbed, shape_of
from tests.heal.conftest import ACCOUNT, Account
from tests.heal.operators import ALICE, OWNERS, Heal
from tests.scan.scanning import Scanning, scanning

_DIGITS = re.compile(r"\d+")


@dataclass
class Context:
    """What Lambda hands over."""

    aws_request_id: str = "request-1"
    function_name: str = "mendq"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:mendq"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def record() -> Any:
    """The names that stand in constants, and what was seen of a life of some cases."""
    return {
        "metrics": {
            "namespace": NAMESPACE,
            "own": sorted(OwnMetric),
            "nightly": sorted(NightlyMetric),
            "heartbeat": HEARTBEAT,
            "when_something_happens": WHEN_SOMETHING_HAPPENS,
        },
        **_lived(),
    }


def _lived() -> dict[str, Any]:
    """Several queues fail, are fixed, proposed and taken back; the schedules fire."""
    with scanning() as made, _lambdas(made):
        account = made.account
        Heal(account)
        said = {name: _printed(way, made) for name, way in _WAYS.items()}
        stored = _items(account)
        objects = _objects(account)
        notified = {severity: account.pages(severity) for severity in ("urgent", "info")}
    return {
        "lambdas": said,
        "items": stored,
        "objects": objects,
        "notifications": {
            severity: [scrubbed(subject) for subject, _ in pages]
            for severity, pages in notified.items()
        },
    }


@contextmanager
def _lambdas(made: Scanning) -> Iterator[None]:
    """The environment that the stack gives them, and the clients of the account in moto."""
    account = made.account
    shared = {name: getattr(account.settings, name) for name in CaseSettings.__dataclass_fields__}
    every = (
        FollowUpSettings(**shared, owners=OWNERS),
        ApproveSettings(**shared, owners=OWNERS),
        made.settings(),
        account.settings,
        ProbeSettings(
            ACCOUNT,
            case_table=account.settings.case_table,
            urgent_topic_arn=account.settings.urgent_topic_arn,
            probe_queue_url=account.url(account.queue(QUEUE_NAME, tag=None)),
        ),
    )
    environment = {name: text for each in every for name, text in each.to_environment().items()}
    with (
        patch.dict(os.environ, environment),
        patch.object(Clients, "of_this_lambda", lambda: account.clients),
    ):
        for handler in (heal, follow_up, approve, rollback, scan, probe):
            handler.handler.forget()
        yield


def _batch(account: Account, name: str, tag: str, **over: Any) -> Any:
    account.later(hours=-1)
    arn = account.queue(name, tag=tag, VisibilityTimeout="30")
    account.later(hours=1)
    bodies = account.late_deletes(arn, f"{name}1", f"{name}2", f"{name}3", **over)
    records = [
        {"messageId": message_id, "body": body, "eventSource": "aws:sqs"}
        for message_id, body in bodies.items()
    ]
    return heal.handler({"Records": records}, Context())


def _newest(account: Account, state: str) -> str:
    return str([each for each in account.transitions() if each["to"] == state][-1]["case_id"])


def _junk(made: Scanning) -> Any:
    junk = [{"messageId": "junk", "body": "<html>", "eventSource": "aws:sqs"}]
    return heal.handler({"Records": junk}, Context())


def _said(made: Scanning, word: str, state: str) -> Any:
    event = {"case_id": _newest(made.account, state), "decision": word, "actor": ALICE}
    return approve.handler(event, Context())


def _taken_back(made: Scanning, **over: Any) -> Any:
    event = {"case_id": _newest(made.account, "applied"), "actor": ALICE, **over}
    return rollback.handler(event, Context())


def _scanned(made: Scanning) -> Any:
    made.account.later(hours=-1)
    dead = made.account.queue("bills-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": 5})
    made.account.queue("bills", tag=None, RedrivePolicy=policy)
    made.account.later(hours=1)
    return scan.handler({}, Context())


def _found(made: Scanning) -> Any:
    return [heal.handler(each, Context()) for each in made.announced]


def _now() -> Any:
    return {"time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}


_WAYS: Mapping[str, Callable[[Scanning], Any]] = {
    "heal fixes": lambda made: _batch(made.account, "orders.fifo", "heal"),
    "heal proposes": lambda made: _batch(made.account, "bookings.fifo", "propose"),
    "heal observes": lambda made: _batch(made.account, "watched.fifo", "observe"),
    "heal refuses": lambda made: _batch(made.account, "mine.fifo", "off"),
    "heal meets an unknown code": lambda made: _batch(
        made.account, "odd.fifo", "heal", errorCode="Surprise"
    ),
    "heal meets junk": _junk,
    "follow_up": lambda _: follow_up.handler(_now(), Context()),
    "approve declines": lambda made: _said(made, "decline", "proposed"),
    "approve refuses": lambda made: _said(made, "close", "applied"),
    "rollback looks": lambda made: _taken_back(made, dry_run=True),
    "rollback undoes": lambda made: _taken_back(made, dry_run=False),
    "scan": _scanned,
    "heal takes findings": _found,
    "probe": lambda _: probe.handler(_now(), Context()),
}


def _printed(way: Callable[[Scanning], Any], made: Scanning) -> Any:
    """The shape of the answer, and of each line that was written to standard output."""
    with tempfile.TemporaryFile() as file, _standard_output_in(file):
        answer = way(made)
        sys.stdout.flush()
        file.seek(0)
        lines = [json.loads(each) for each in file.read().decode().splitlines() if each[:1] == "{"]
    metrics = sorted({text for each in lines if "_aws" in each for text in _metrics(each)})
    logs = [_log(each) for each in lines if "_aws" not in each]
    return {"answers": shape_of(answer), "metrics": metrics, "logs": _each_once(logs)}


@contextmanager
def _standard_output_in(file: Any) -> Iterator[None]:
    """Whoever writes there, however early he has looked it up."""
    sys.stdout.flush()
    retained = os.dup(1)
    os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(retained, 1)
        os.close(retained)


def _metrics(line: Mapping[str, Any]) -> Iterator[str]:
    for group in line["_aws"]["CloudWatchMetrics"]:
        dimensions = " by ".join(["", *(name for names in group["Dimensions"] for name in names)])
        for metric in group["Metrics"]:
            yield f"{group['Namespace']} {metric['Name']} in {metric['Unit']}{dimensions}"


_OF_EVERY_LINE = ("location", "timestamp", "xray_trace_id", "function_arn", "cold_start")


def _log(line: Mapping[str, Any]) -> Any:
    words = {"level": line.get("level"), "message": scrubbed(str(line.get("message")))}
    others = {name: each for name, each in line.items() if name not in (*words, *_OF_EVERY_LINE)}
    return {**words, "fields": shape_of(others)}


def _each_once(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if each not in found:
            found.append(each)
    return sorted(found, key=lambda each: json.dumps(each, sort_keys=True))


def _items(account: Account) -> dict[str, Any]:
    """The attributes of the case store's items and their types, by the kinds of their keys."""
    found: dict[str, Any] = {}
    for (pk, sk), item in sorted(account.case_store_items().items()):
        kind = f"{_kind(pk)} / {_kind(sk)}"
        shape = {name: _typed(each) for name, each in item.items() if name not in ("pk", "sk")}
        found.setdefault(kind, {}).update(shape)
    return found


def _kind(key: str) -> str:
    """The first part of a key, and how the others look."""
    first, *others = re.split(r"([#:])", scrubbed(key))
    return "".join([_DIGITS.sub("<n>", first), *others[:2]])


def _typed(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "S" and content[:1] == "{":
        return {"JSON": shape_of(json.loads(content))}
    return kind


def _objects(account: Account) -> dict[str, Any]:
    """The shapes of what the case bucket holds, by key."""
    s3 = account.clients.s3
    found: dict[str, Any] = {}
    for each in s3.list_objects_v2(Bucket=account.settings.case_bucket).get("Contents", []):
        body = s3.get_object(Bucket=account.settings.case_bucket, Key=each["Key"])["Body"].read()
        key = re.sub(r"/\d\d\.json", "/<hour>.json", scrubbed(each["Key"]))
        found.setdefault(key, []).append(shape_of(json.loads(body)))
    return {key: _each_once(shapes) for key, shapes in found.items()}
