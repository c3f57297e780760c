"""The command `mendq`: its help, its exits, what people read and what scripts get."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mendq.catalogue import CATALOGUE
from mendq.cli.__main__ import COMMANDS
from mendq.redrive.messages import QUARANTINED
from tests.before.operator_accounts import called, dlq_account, operator_account
from tests.cli.conftest import Operator
from tests.heal.operators import case_of, move

_SUBCOMMANDS = {
    "policy": ("pin", "unpin", "show"),
    "quarantine": ("list", "peek", "return", "drop"),
}
_CASE = "no-such-case"
# What each command is called with where nobody sits there to say yes.
_UNASKED: Mapping[str, tuple[str, ...]] = {
    "freeze": ("freeze", "deploying"),
    "thaw": ("thaw",),
    "drill": ("drill",),
    "policy pin": ("policy", "pin", "orders.fifo"),
    "redrive": ("redrive", "orders", "--all"),
    "scan": ("scan",),
}
RECORD = {
    "eventVersion": "1.11",
    "eventSource": "sqs.amazonaws.com",
    "eventName": "DeleteMessage",
    "eventID": "event-1",
    "eventTime": "2026-11-16T09:30:00Z",
    "awsRegion": "us-east-1",
    "errorCode": "InvalidParameterValueException",
    "errorMessage": "Value AQEB for parameter ReceiptHandle is invalid. "
    "Reason: The receipt handle has expired.",
    "resources": [{"ARN": "arn:aws:sqs:us-east-1:123456789012:orders.fifo"}],
}
TEMPLATE = """\
Parameters:
  Seconds: {Type: Number, Default: 20}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: !Ref Seconds
      RedrivePolicy:
        deadLetterTargetArn: !ImportValue orders-dead
        maxReceiveCount: 5
  Plain:
    Type: AWS::SQS::Queue
    Properties: {SqsManagedSseEnabled: false, MessageRetentionPeriod: 1209600}
  Dead:
    Type: AWS::SQS::Queue
    Properties: {MessageRetentionPeriod: 345600}
  Fifo:
    Type: AWS::SQS::Queue
    Properties:
      FifoQueue: true
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 1}
  Bill:
    Type: AWS::Lambda::Function
    Properties: {Timeout: 30}
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Ref Bill}
"""


def record() -> Any:
    """All of it, by what is needed for it."""
    every: list[tuple[str, ...]] = [(name,) for name in COMMANDS]
    every += [(name, each) for name, several in _SUBCOMMANDS.items() for each in several]
    every += [(name,) for name in _SUBCOMMANDS]
    with _folder():
        return {
            "help": {" ".join(each): called(*each, "--help") for each in [(), *every]},
            "no_arguments": {" ".join(each): called(*each) for each in every if _takes_one(each)},
            "unknown_option": {
                " ".join(each): called(*each, "--nonsense")["exit"] for each in every
            },
            "usage": _usage(),
            "offline": {**_explain(), **_lint()},
            "cases": _cases(),
            "operating": _operating(),
            "redrive": _redrive(),
        }


def _takes_one(command: tuple[str, ...]) -> bool:
    """Whether it ends without an account where it is called without an argument."""
    return command[0] in ("show", "approve", "decline", "close", "redrive", "export") or (
        command[-1]
        in ("explain", "lint", "peek", "return", "drop", "quarantine", "policy", "pin", "unpin")
    )


@contextmanager
def _folder() -> Iterator[None]:
    """A folder of its own to write to."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="mendq-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _calls(*several: tuple[str, ...]) -> dict[str, Any]:
    return {" ".join(each): called(*each) for each in several}


def _both(*several: tuple[str, ...]) -> dict[str, Any]:
    """As people read it and as scripts get it."""
    return _calls(*(way for each in several for way in (each, (*each, "--json"))))


def _usage() -> dict[str, Any]:
    without = {name: text for name, text in os.environ.items() if not name.endswith("_REGION")}
    with patch.dict(os.environ, without, clear=True):
        nowhere = _both(("cases",))
    return {
        "nowhere": nowhere,
        **_both(
            ("nonsense",),
            ("cases", "--profile", "nobody"),
            ("explain", "/nonexistent/record.json"),
            ("lint", "/nonexistent/template.yaml"),
        ),
    }


def _explain() -> dict[str, Any]:
    succeeded = {name: text for name, text in RECORD.items() if not name.startswith("error")}
    samples = {
        "a record": json.dumps(RECORD),
        "an event": json.dumps({"detail": RECORD}),
        "several": json.dumps({"Records": [RECORD, succeeded]}),
        "did not fail": json.dumps(succeeded),
        "unknown code": json.dumps({**RECORD, "errorCode": "Surprise"}),
        "denied": json.dumps({**RECORD, "errorCode": "AccessDenied", "errorMessage": "no"}),
        "of another service": json.dumps({**RECORD, "eventSource": "s3.amazonaws.com"}),
        "no JSON": "{",
        "nothing": "",
    }
    return {
        f"explain {name}{more}": called("explain", "-", *more.split(), given=text)
        for name, text in samples.items()
        for more in ("", " --json")
    }


def _lint() -> dict[str, Any]:
    sound = TEMPLATE.replace("Default: 20", "Default: 180")
    samples = {"faulty": TEMPLATE, "sounder": sound, "none": "a: [", "empty": "{}"}
    ways = ("", " --json", " --format github")
    return {
        f"lint {name}{more}": called("lint", "-", *more.split(), given=text)
        for name, text in samples.items()
        for more in ways
    }


def _cases() -> dict[str, Any]:
    """One that is proposed, one that was applied, and one of no queue any more."""
    with operator_account() as operator:
        empty = _both(("cases",), ("cases", "--open"))
    with operator_account() as operator:
        case_id = operator.proposed()
        unasked = {word: called(word, case_id) for word in ("approve", "decline", "close")}
        proposed = _named(case_id, ("cases",), ("show", case_id), ("close", case_id, "--yes"))
        declined = _named(case_id, ("decline", case_id, "--yes"), ("approve", case_id, "--yes"))
    with operator_account() as operator:
        case_id = operator.proposed()
        approved = _named(case_id, ("freeze", "deploying", "--yes"), ("approve", case_id, "--yes"))
        move(operator.aws, case_of(operator.aws), "escalated")
        approved |= _named(case_id, ("show", case_id), ("close", case_id, "--yes"))
    with operator_account() as operator:
        case_id = operator.applied()
        applied = _named(
            case_id,
            ("cases",),
            ("cases", "--open"),
            ("show", case_id),
            ("rollback", case_id),
            ("rollback", case_id, "--dry-run"),
            ("rollback", "--since", "3h", "--dry-run"),
            ("rollback", "--since", "soon"),
            ("rollback", case_id, "--since", "2h"),
            ("rollback", case_id, "--yes"),
        )
        applied |= {"then shown": _named(case_id, ("show", case_id), ("cases",))}
    with operator_account() as operator:
        gone = _gone(operator)
    done = {}
    for word in ("approve", "decline", "rollback"):
        with operator_account() as operator:
            case_id = operator.applied() if word == "rollback" else operator.proposed()
            called("freeze", "deploying", "--yes")
            done[word] = called(word, case_id, "--yes", "--json")
    with operator_account() as operator:
        words = ("show", "approve", "decline", "close", "rollback")
        yes = {"show": ()}
        missing = _both(*((word, _CASE, *yes.get(word, ("--yes",))) for word in words))
    return {
        "none": empty,
        "unasked": unasked,
        "proposed": proposed,
        "declined": declined,
        "approved while frozen": approved,
        "applied": applied,
        "gone": gone,
        "done": done,
        "no such case": missing,
    }


def _named(case_id: str, *several: tuple[str, ...]) -> dict[str, Any]:
    """People's form first, scripts' after it; the case under a name that is always the same."""
    found = _both(*several)
    return {name.replace(case_id, "CASE"): each for name, each in found.items()}


def _gone(operator: Operator) -> dict[str, Any]:
    case_id = operator.applied()
    arn = case_of(operator.aws).queue_arn
    operator.aws.set_visibility(arn, 77)
    changed = _named(case_id, ("show", case_id), ("rollback", case_id, "--yes"))
    operator.aws.clients.sqs.delete_queue(QueueUrl=operator.aws.url(arn))
    return {"a person's value": changed, "no queue": _named(case_id, ("show", case_id))}


def _operating() -> dict[str, Any]:
    grants = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::123456789012:role/orders-worker"},
        "Action": "sqs:SendMessage",
        "Resource": "arn:aws:sqs:us-east-1:123456789012:orders.fifo",
    }
    policy = {"Version": "2012-10-17", "Statement": [grants]}
    with operator_account() as operator:
        aws = operator.aws
        aws.later(hours=-1)
        aws.queue("orders.fifo", Policy=json.dumps(policy), VisibilityTimeout="30")
        dead = aws.queue("bills-dlq", MessageRetentionPeriod="345600")
        redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "5"})
        aws.queue("bills", RedrivePolicy=redrive)
        aws.later(hours=1)
        unasked = {name: called(*arguments) for name, arguments in _UNASKED.items()}
        found = _both(
            ("freeze", "deploying", "--yes"),
            ("cases",),
            ("thaw",),
            ("thaw", "--yes"),
            ("export", "exported"),
            ("policy", "show", "orders.fifo"),
            ("policy", "pin", "orders.fifo", "--yes"),
            ("policy", "unpin", "orders.fifo", "--yes"),
            ("policy", "pin", "nobodys", "--yes"),
            ("scan", "--dry-run"),
            ("scan", "--dry-run", "--metrics", "0"),
            ("cost", "--all"),
            ("doctor",),
            ("drill", "--mode", "nonsense", "--yes"),
            ("report", "--week", "2026-W99"),
        )
        found["then pinned"] = {
            "yes": called("policy", "pin", "orders.fifo", "--yes", "--json"),
            "show": _both(("policy", "show", "orders.fifo")),
            "remove": called("policy", "unpin", "orders.fifo", "--json"),
        }
    return {"unasked": unasked, "asked": found, "symptoms": len(CATALOGUE)}


def _redrive() -> dict[str, Any]:
    where = "body.error.code == 'X'"
    with dlq_account() as queues:
        found = _both(
            ("redrive", "orders"),
            ("redrive", "orders", "--all"),
            ("redrive", "orders", "--all", "--dry-run"),
            ("redrive", "orders", "--where", where, "--dry-run"),
            ("redrive", "orders", "--where", "nonsense ?"),
            ("redrive", "orders", "--all", "--rate", "fast", "--yes"),
            ("redrive", "nobodys", "--all", "--yes"),
            ("redrive", "orders-dlq", "--all", "--yes"),
        )
        limited = called("redrive", "orders", "--all", "--limit", "2", "--yes", "--json")
        rest = called("redrive", "orders", "--where", where, "--yes")
        none = called("redrive", "orders", "--where", where, "--yes", "--json")
    with dlq_account() as queues:
        queues.operator.aws.queue("orders-quarantine", tag=None, VisibilityTimeout="600")
        queues.messages = queues.messages.replace("orders-dlq", "orders-quarantine")
        said = {
            "why": "came back",
            "at": "2026-11-21T20:00:00+00:00",
            "case": "case-7",
            "redrive_count": 1,
        }
        mark = json.dumps({**said, "source": queues.source})
        for body in ("one", "two"):
            queues.write(body, died_in="", type="order", **{QUARANTINED: mark})
        retained = _both(
            ("quarantine", "list"),
            ("quarantine", "peek", "orders"),
            ("quarantine", "peek", "orders", "--bodies"),
            ("quarantine", "return", "orders"),
            ("quarantine", "return", "orders", "--all"),
            ("quarantine", "return", "orders", "--all", "--dry-run"),
            ("quarantine", "drop", "orders", "--all"),
            ("quarantine", "drop", "orders", "--all", "--file", "dropped.jsonl"),
            ("quarantine", "peek", "nobodys"),
        )
        drops = ("quarantine", "drop", "orders", "--all", "--limit", "1")
        retained["drop"] = called(*drops, "--file", "dropped.jsonl", "--yes", "--json")
        retained["return"] = called("quarantine", "return", "orders", "--all", "--yes", "--json")
    return {
        "asked": found,
        "limited": limited,
        "rest": rest,
        "none left": none,
        "quarantine": retained,
    }
