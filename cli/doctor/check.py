"""One thing looked at, how it is, and one line on what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.exit_codes import Stopped
from cli.invocation import in_one_line
from functions.aws.errors import FactsUnavailable, LedgerUnavailable, code_of

_ACTION = re.compile(r"not authorized to perform: ([A-Za-z0-9-]{1,64}:[A-Za-z0-9]{1,64})")


class Status(StrEnum):
    """Worst last."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """`cure` is empty where there is nothing to do."""

    name: str
    status: Status
    says: str
    cure: str = ""

    def document(self) -> dict[str, Any]:
        return {"check": self.name, "status": self.status, "says": self.says, "cure": self.cure}


def guarded(name: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """The checks of `look`; where AWS does not let it look, one that says which action it takes."""
    try:
        yield from look()
    except (ClientError, BotoCoreError) as error:
        yield _unknown(name, error)
    except (FactsUnavailable, LedgerUnavailable) as error:
        cause = error.__cause__
        if isinstance(cause, ClientError | BotoCoreError):
            yield _unknown(name, cause)
        else:
            yield Check(name, Status.UNKNOWN, str(error), "ask again in a minute")
    except Stopped as stopped:
        yield Check(name, Status.UNKNOWN, str(stopped), "deploy this version of Mendq")


def _unknown(name: str, error: ClientError | BotoCoreError) -> Check:
    if not isinstance(error, ClientError) or "Denied" not in code_of(error):
        return Check(name, Status.UNKNOWN, in_one_line(error), "ask again in a minute")
    found = _ACTION.search(str(error))
    action = found.group(1) if found else f"the action of {error.operation_name}"
    return Check(name, Status.UNKNOWN, f"may not be read: {action} is missing", f"allow {action}")
