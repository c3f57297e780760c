"""Result of one check of `mendq doctor`: its status, a sentence, and a remedy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.errors import CaseStoreUnavailable, FactsUnavailable, is_access_denied
from mendq.cli.exit_codes import CommandError
from mendq.cli.invocation import describe_error, find_aws_cause

# The name of a Lambda or of a log group in a remedy. A log group's name may contain slashes.
_LAMBDA_OR_LOG_GROUP_NAME_PATTERN = re.compile(r"[\w/-]+")
_DENIED_ACTION_PATTERN = re.compile(
    r"not authorized to perform: ([A-Za-z0-9-]{1,64}:[A-Za-z0-9]{1,64})"
)


class Status(StrEnum):
    """Status of a check, from the best to the worst."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    FAIL = "fail"


class Command(str):
    """A command for people to copy. It is printed on one line and never cut."""

    __slots__ = ()

    @classmethod
    def aws(cls, region: str, service: str, operation: str, *options: str) -> Self:
        """Return a command of the AWS CLI. Words are quoted where the shell needs it."""
        return cls(shlex.join(("aws", service, operation, "--region", region, *options)))


class Log(Struct, frozen=True):
    """The log of one Lambda."""

    # Name of the log group.
    group: str
    # Command that prints the log's newest lines.
    read: Command


class Check(Struct, frozen=True):
    """Result of one check."""

    name: str
    status: Status
    # A sentence for people about what was found.
    sentence: str
    # A sentence or a command; empty if there is nothing to do.
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        """Return the check as `mendq doctor --json` prints it."""
        return {
            "check": self.name,
            "status": self.status,
            "says": self.sentence,
            "remedy": self.remedy,
        }

    def commands(self, logs: Mapping[str, Log]) -> Iterator[Command]:
        """Yield the commands of the remedy.

        If the remedy is itself a command, yield it. Otherwise yield the command that reads the log
        of each Lambda that the remedy names.

        Args:
            logs: the logs by the name of their Lambda. A remedy may contain the Lambda's name or
                the name of the log group.
        """
        if isinstance(self.remedy, Command):
            yield self.remedy
            return
        names_in_remedy = set(_LAMBDA_OR_LOG_GROUP_NAME_PATTERN.findall(self.remedy))
        for function_name, log in logs.items():
            if function_name in names_in_remedy or log.group in names_in_remedy:
                yield log.read


def make_fault_check(name: str, fault: str, ok_text: str, remedy: str = "") -> Check:
    """Return a failed check that reports `fault`. If `fault` is empty, the check is OK."""
    if fault:
        return Check(name, Status.FAIL, fault, remedy)
    return Check(name, Status.OK, ok_text)


def run_checks(name: str, make_checks: Callable[[], Iterable[Check] | None]) -> Iterator[Check]:
    """Yield the checks that `make_checks` returns.

    If AWS or the case store does not answer, or `make_checks` raises CommandError (for example
    because the stack is too old), the last check is called `name` and has the status UNKNOWN. If
    AWS denied a call, it says which IAM action is missing.
    """
    try:
        yield from make_checks() or ()
    except CommandError as error:
        yield Check(name, Status.UNKNOWN, str(error), "deploy this version of Mendq")
    except (ClientError, BotoCoreError, FactsUnavailable, CaseStoreUnavailable) as error:
        yield _make_unreadable_check(name, find_aws_cause(error))


def _make_unreadable_check(name: str, cause: Exception) -> Check:
    if not (isinstance(cause, ClientError) and is_access_denied(cause)):
        return Check(name, Status.UNKNOWN, describe_error(cause), "ask again in a minute")
    action_match = _DENIED_ACTION_PATTERN.search(str(cause))
    denied_action = (
        action_match.group(1) if action_match else f"the action of {cause.operation_name}"
    )
    sentence = f"may not be read: {denied_action} is missing"
    return Check(name, Status.UNKNOWN, sentence, f"allow {denied_action}")
