"""One thing looked at, how it is, and one line on what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.errors import CaseStoreUnavailable, FactsUnavailable, is_denied
from mendq.cli.exit_codes import CommandError
from mendq.cli.invocation import describe_error, find_aws_cause

# A log group's name has slashes in it where the account's own deployment put some.
_WORD = re.compile(r"[\w/-]+")
_ACTION = re.compile(r"not authorized to perform: ([A-Za-z0-9-]{1,64}:[A-Za-z0-9]{1,64})")


class Status(StrEnum):
    """Worst last."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    FAIL = "fail"


class Command(str):
    """A remedy to be typed as it stands: shown without a line's end, a cut or a broken link in
    it.
    """

    __slots__ = ()

    @classmethod
    def aws(cls, region: str, service: str, operation: str, *options: str) -> Self:
        """Of the AWS CLI; each word is quoted where a shell wants it."""
        return cls(shlex.join(("aws", service, operation, "--region", region, *options)))


class Log(Struct, frozen=True):
    """Of one Lambda: its log group, and what reads it."""

    group: str
    read: Command


class Check(Struct, frozen=True):
    """`remedy` is empty where there is nothing to do."""

    name: str
    status: Status
    says: str
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        return {"check": self.name, "status": self.status, "says": self.says, "remedy": self.remedy}

    def commands(self, logs: Mapping[str, Log]) -> Iterator[Command]:
        """What there is to type: the remedy, else what reads each log that it names.

        `logs` are by the Lambda's name; a remedy may name the Lambda or the log group.
        """
        if isinstance(self.remedy, Command):
            yield self.remedy
        else:
            words = set(_WORD.findall(self.remedy))
            yield from (log.read for name, log in logs.items() if words & {name, log.group})


# A condition, and what is said where it is the first that holds: status, words, remedy.
Row = tuple[object, Status, str, str]


def judged(name: str, *rows: Row) -> Check:
    """The check by the first row that holds, as the last one always does."""
    _, status, says, remedy = next(row for row in rows if row[0])
    return Check(name, status, says, remedy)


def failing(name: str, fault: str, says: str, remedy: str = "") -> Check:
    """A check that fails where there is a fault, and else says how it is."""
    return judged(name, (fault, Status.FAIL, fault, remedy), (True, Status.OK, says, ""))


def guarded(name: str, look: Callable[[], Iterable[Check] | None]) -> Iterator[Check]:
    """The checks of `look`; where AWS does not let it look, one that says which action it takes."""
    try:
        yield from look() or ()
    except CommandError as stopped:
        yield Check(name, Status.UNKNOWN, str(stopped), "deploy this version of Mendq")
    except (ClientError, BotoCoreError, FactsUnavailable, CaseStoreUnavailable) as error:
        cause, action = find_aws_cause(error), ""
        if isinstance(cause, ClientError) and is_denied(cause):
            found = _ACTION.search(str(cause))
            action = found.group(1) if found else f"the action of {cause.operation_name}"
        yield judged(
            name,
            (action, Status.UNKNOWN, f"may not be read: {action} is missing", f"allow {action}"),
            (True, Status.UNKNOWN, describe_error(cause), "ask again in a minute"),
        )
