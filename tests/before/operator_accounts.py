"""Accounts in moto to call `mendq` in, and what one call of it came to."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from unittest.mock import patch

import boto3
from typer.testing import CliRunner

from mendq.cli import account as cli_account
from mendq.cli.__main__ import app
from mendq.cli.redrive import route
from mendq.redrive import mover
from mendq.redrive.mover import MessageMover
from tests.cli.conftest import Operator, StandIn
from tests.cli.redrive.dlq import Dlq, _message_of, dlq
from tests.heal.conftest import moto_account
from tests.heal.operators import Heal, say, undo
from tests.infra.synthesized import template_of

WIDE = 500
_ANSWERED = frozenset(
    {"sqs", "dynamodb", "s3", "sns", "sts", "cloudwatch", "resourcegroupstaggingapi"}
)
# Ids, times and whatever else is of this run alone.
_OF_THIS_RUN = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b([a-z_]+)-[0-9a-f]{12}\b"), r"\1-<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( ?UTC|Z|\+00:00)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"\b\d+ (s|min)(?= (ago|old)\b)"), "<age>"),
    (re.compile(r"^\d+ (s|min)(?= )", re.MULTILINE), "<age>"),
    (re.compile(r"\b\d{10}(\.\d+)?\b"), "<epoch>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(rf"{re.escape(tempfile.gettempdir())}/[^\s'\",]+"), "<folder>"),
    (re.compile(r"mendq-drill-[0-9a-z-]+"), "mendq-drill-<id>"),
)


def scrubbed(text: str) -> str:
    """A text without what is of this run alone."""
    for pattern, instead in _OF_THIS_RUN:
        text = pattern.sub(instead, text)
    return text


def lines_of(text: str) -> list[str]:
    """What people read, line by line, however wide and in whatever columns."""
    lines = (" ".join(each.split()) for each in scrubbed(text).splitlines())
    return [each for each in lines if each]


def called(*arguments: str, given: str | bytes | None = None) -> dict[str, Any]:
    """The exit of a call without a terminal, and what it printed."""
    width = {"max_content_width": WIDE, "terminal_width": WIDE}
    runner = CliRunner(env={"COLUMNS": f"{WIDE}", "NO_COLOR": "1", "TERM": "dumb"})
    result = runner.invoke(app, list(arguments), input=given, **cast("Any", width))
    unexpected = result.exception if not isinstance(result.exception, SystemExit) else None
    if unexpected is not None:
        return {"raises": type(unexpected).__name__}
    out: Any = lines_of(result.stdout)
    if "--json" in arguments:
        out = _document(result.stdout)
    return {"exit": int(result.exit_code), "stdout": out, "stderr": lines_of(result.stderr)}


def _document(text: str) -> Any:
    """The shape of what scripts get; its lines where that is no JSON document."""
    try:
        return shape_of(json.loads(text)) if text else None
    except ValueError:
        return {"no document": lines_of(text)}


def shape_of(document: Any) -> Any:
    """The names and types of a document; of an array the types that its parts have."""
    if isinstance(document, dict):
        if set(document) == {"error"}:
            return {"error": {**shape_of(document["error"]), "code": document["error"]["code"]}}
        return {scrubbed(name): shape_of(each) for name, each in document.items()}
    if isinstance(document, list):
        shapes: list[Any] = []
        for each in map(shape_of, document):
            if each not in shapes:
                shapes.append(each)
        return shapes
    kind = "null" if document is None else type(document).__name__
    return "number" if kind in ("int", "float") else kind


@contextmanager
def operator_account() -> Iterator[Operator]:
    """Somebody at a shell without a terminal, whose Lambdas answer as the real ones do."""
    with moto_account() as made, ExitStack() as stack:
        session = boto3.Session(region_name="us-east-1")
        account = StandIn(session, "Mendq", made.settings)
        stack.enter_context(patch.object(cli_account.Account, "of", lambda *_: account))
        # moto knows no list of message movement tasks.
        none = cast("Any", lambda **_: (_Answer(), {"Results": []}))
        for events in (session.events, made.clients.sqs.meta.events):
            events.register("before-call.sqs.ListMessageMoveTasks", none)
        session.events.register_first("before-call", cast("Any", _refused))
        Heal(made)
        account.lambdas["ApproveFunction"] = lambda event: say(
            made, event["decision"], event["case_id"]
        )
        account.lambdas["RollbackFunction"] = lambda event: undo(
            made, event["case_id"], dry_run=bool(event.get("dry_run"))
        )
        yield Operator(made, account)


@contextmanager
def dlq_account() -> Iterator[Dlq]:
    """A source whose DLQ holds five messages, and a quarantine beside them."""
    at_once = partial(MessageMover, wait_seconds=0)
    with (
        operator_account() as operator,
        patch.object(mover, "message_of", _message_of),
        patch.object(route, "MessageMover", at_once),
    ):
        queues = dlq(operator)
        operator.aws.tag(queues.source, mendq="observe")
        for number in range(4):
            queues.write({"error": {"code": "X"}, "n": number}, type="order")
        queues.write("no json", type="refund")
        yield queues


def _refused(model: Any, **_: Any) -> Any:
    """What SQS, the tables and the buckets do not answer is refused: nothing leaves moto."""
    service = model.service_model.service_name
    if service == "cloudformation" and model.name == "GetTemplate":
        return _Answer(), {"TemplateBody": template_of("default").raw}
    if service in _ANSWERED:
        return None
    denied = _Answer(403)
    error = {
        "Code": "AccessDenied",
        "Message": f"not authorized to perform: {service}:{model.name}",
    }
    return denied, {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}


@dataclass
class _Answer:
    status_code: int = 200
