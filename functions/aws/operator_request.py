"""What operators ask of a case, and how they are answered: a document, or an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.errors import (
    FactsUnavailable,
    LedgerUnavailable,
    LedgerUnreadable,
    PageNotSent,
    QueueGone,
    QueueRefusesUs,
    StepFailed,
)
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.plain_text import plain
from functions.healing.plan import Refusal

Document = dict[str, Any]
# A case once more, where another run came in between.
TRIES = 3
LONGEST_CASE_ID = 200
NOBODY = "an operator who gave no name"


@dataclass(frozen=True)
class OperatorRequest:
    """`actor` is what the operator's side says of itself, cleaned; IAM alone says who may call."""

    case_id: str
    actor: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> OperatorRequest | Refusal:
        """The refusal of an event that names no case."""
        case_id, actor = event.get("case_id"), event.get("actor")
        if not isinstance(case_id, str) or not 0 < len(case_id) <= LONGEST_CASE_ID:
            return refused("bad_request", 'give "case_id", the id of a case, as a text')
        named = plain(actor) if isinstance(actor, str) else ""
        return cls(case_id, named or NOBODY)

    @property
    def not_found(self) -> Refusal:
        return refused("not_found", f"there is no case {plain(self.case_id)}; `mendq cases` lists")


def refused(code: str, reason: str, *, again: bool = False) -> Refusal:
    """A refusal that nothing is written down for."""
    return Refusal(code, reason, becomes=None, again=again)


def symptom_named(name: str) -> Symptom | Refusal:
    """The refusal of a case from a Mendq that knew more symptoms."""
    found = next((each for each in CATALOGUE if each.name == name), None)
    reason = f"this Mendq knows no symptom {plain(name)}: `mendq close` ends its case"
    return found or refused("unknown_symptom", reason)


def until_unmoved(once: Callable[[], Document | Refusal]) -> Document | Refusal:
    """Try again where another run came in between."""
    done = once()
    for _ in range(TRIES - 1):
        if not isinstance(done, Refusal) or not done.again:
            break
        done = once()
    return done


def answer(act: Callable[[], Document | Refusal]) -> Document:
    """What the operator gets: never an exception for what AWS or a queue's owner says."""
    try:
        done = act()
    except QueueGone as gone:
        done = refused("queue_gone", f"there is no queue {gone} any more")
    except QueueRefusesUs as refusing:
        done = refused("queue_refuses_us", str(refusing))
    except LedgerUnreadable as unreadable:
        done = refused("ledger_unreadable", str(unreadable))
    except (
        BotoCoreError,
        ClientError,
        FactsUnavailable,
        LedgerUnavailable,
        PageNotSent,
        StepFailed,
    ) as error:
        reason = f"{error}; ask again in two minutes: what was begun is finished then"
        done = refused("unavailable", reason)
    return said(done) if isinstance(done, Refusal) else done


def said(refusal: Refusal) -> Document:
    """A refusal as the operator gets it."""
    return {"error": refusal.code, "reason": refusal.reason}
