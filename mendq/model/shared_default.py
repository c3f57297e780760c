"""Shared defaults: one wrong setting that several queues have, with one approval for all of them.

Theory of operation
===================

On the first day, many queues often have the same wrong setting, because nobody chose it: for
example, DLQs keep messages for SQS's four days, as their sources do. Eight proposals about one
setting are eight approvals, and nobody reads the last of them. So Mendq proposes the change once.

A shared default is not a case. It joins the cases of its queues: each queue has a case of its own,
with its own plan, guardrails, snapshot and rollback. Each of these cases holds the same
`SharedDefault` in its evidence. The first queue's case is the one that people are asked about.

    proposed    The first case notifies people and lists the queues. The other cases are silent.
    approved    A person approves the first case. That approves the others, and they wait.
    first fix   Mendq fixes the first queue and verifies that fix, which takes hours.
    the rest    Then the others are written, each after its own plan and guardrails.
    stop        If a fix does harm, or is rolled back or overruled, the others end unwritten.

Rules, each with its reason:

1. Only a fault that the configuration alone shows can be a shared default, and the symptom's entry
   must say so (`FixedSymptom.shared_attribute`). Traffic that fails on many queues at once is a
   mass symptom: its cause lies elsewhere.

2. The queues must have the same value of that attribute. What each of them needs may differ, so
   each has its own plan.

3. It takes MINIMUM_QUEUES queues. Fewer are a coincidence, and are proposed one by one.

4. Only queues that Mendq would fix or propose to fix alone belong to it. A queue in mode `observe`,
   or whose value a person set, is left out and named.

5. A person always approves it, also in mode `heal`: one decision changes many queues.

6. The first queue must be fixed and verified before another one is written. The approval of the
   others lasts as long as that may take.

7. The first harm stops all. A queue that was changed meanwhile, deleted or declined is skipped, and
   the others go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.state import State

if TYPE_CHECKING:
    from mendq.model.case import Case

# Rule 3: up to this many queues with the same fault may be a coincidence, and more are not.
MINIMUM_QUEUES = 4
# A key in a case's evidence. The value is the document of the shared default to which it belongs.
SHARED_DEFAULT_KEY = "shared_default"
# In these states the fix of the first queue may still be verified.
_STATES_BEFORE_VERIFICATION = (State.PROPOSED, State.APPROVED, State.APPLIED, State.UNVERIFIED)
# In these states a written fix did not help, did harm or was rolled back.
_STATES_OF_HARM = (State.INEFFECTIVE, State.ESCALATED, State.ROLLED_BACK)

_ATTRIBUTE_PATTERN = re.compile(r"[A-Za-z]{1,64}")
# Limits of what is stored. A call of heal has fewer findings.
_MOST_QUEUES = 100
_MOST_REASON_CHARACTERS = 200
_MOST_CASE_ID_CHARACTERS = 200


@dataclass(frozen=True)
class LeftOutQueue:
    """A queue with the same value that does not belong to the shared default, and the reason."""

    queue_arn: str
    reason: str


@dataclass(frozen=True)
class SharedDefault:
    """The queues that share one wrong setting. Each of their cases holds the same value of it.

    Attributes:
        first_case_id: The case that people approve, and that is fixed first.
        attribute: The attribute that has the same value on all queues.
        queue_arns: The queues that belong to it, the first case's queue first.
        left_out: Queues with the same value that do not belong to it.
    """

    first_case_id: str
    attribute: str
    queue_arns: tuple[str, ...]
    left_out: tuple[LeftOutQueue, ...] = ()

    @property
    def first_queue_arn(self) -> str:
        """The queue that is fixed first."""
        return self.queue_arns[0]

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The names of the queues, in the order of `queue_arns`."""
        return tuple(parse_queue_arn(queue_arn).name for queue_arn in self.queue_arns)

    def describe(self, queue_arn: str) -> str:
        """Return a sentence for the reason of a queue's case."""
        queue_count = len(self.queue_arns)
        if queue_arn != self.first_queue_arn:
            return (
                f"{queue_count} queues share this value of {self.attribute}: case "
                f"{self.first_case_id} asks for all of them"
            )
        first_name = self.queue_names[0]
        return (
            f"{queue_count} queues share this value of {self.attribute}, and one approval is for "
            f"all of them: {first_name} is fixed and verified first, then the others follow"
        )

    def describe_left_out(self) -> str:
        """Return a sentence that names the queues that are left out; empty if there are none."""
        if not self.left_out:
            return ""
        names_with_reasons = [
            f"{parse_queue_arn(queue.queue_arn).name} ({queue.reason})" for queue in self.left_out
        ]
        return f"Left out: {', '.join(names_with_reasons)}"

    def document(self) -> dict[str, Any]:
        """Return the JSON object for the case's evidence."""
        return {
            "first_case_id": self.first_case_id,
            "attribute": self.attribute,
            "queue_arns": list(self.queue_arns),
            "left_out": [asdict(queue) for queue in self.left_out],
        }


def read_shared_default(evidence: Mapping[str, Any]) -> SharedDefault | None:
    """Return the shared default in a case's evidence; None if the case belongs to none.

    Raises:
        ValueError: The evidence has one that cannot be read.
    """
    document = evidence.get(SHARED_DEFAULT_KEY)
    if document is None:
        return None
    _require("document", isinstance(document, Mapping))
    first_case_id = document.get("first_case_id")
    _require("first_case_id", _is_text(first_case_id, _MOST_CASE_ID_CHARACTERS))
    attribute = document.get("attribute")
    is_attribute_name = isinstance(attribute, str) and _ATTRIBUTE_PATTERN.fullmatch(attribute)
    _require("attribute", bool(is_attribute_name))
    queue_arns = document.get("queue_arns")
    _require("queue_arns", _is_short_list(queue_arns) and all(map(_is_queue_arn, queue_arns)))
    _require("queue_arns", bool(queue_arns))
    left_out = document.get("left_out", ())
    _require("left_out", _is_short_list(left_out) and all(map(_is_left_out_queue, left_out)))
    return SharedDefault(
        first_case_id,
        attribute,
        tuple(queue_arns),
        tuple(LeftOutQueue(queue["queue_arn"], queue["reason"]) for queue in left_out),
    )


def _require(field: str, is_valid: bool) -> None:
    """Raise ValueError with the field's name if its value is not valid."""
    if not is_valid:
        raise ValueError(f"its shared default cannot be read: its {field} is not valid")


def _is_text(value: Any, most_characters: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most_characters


def _is_short_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) <= _MOST_QUEUES


def _is_queue_arn(value: Any) -> bool:
    return isinstance(value, str) and queue_arn_or_none(value) is not None


def _is_left_out_queue(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and _is_queue_arn(value.get("queue_arn"))
        and _is_text(value.get("reason"), _MOST_REASON_CHARACTERS)
    )


@dataclass(frozen=True)
class SharedCases:
    """The newest transitions of a shared default's cases, as one of the waiting cases sees them.

    Attributes:
        first: The first queue's case; None if the case store does not have it any more.
        others: The cases of the other queues. Empty if the first fix is not verified yet: nothing
            was written to the other queues then.
    """

    first: Case | None
    others: tuple[Case, ...] = ()

    @property
    def is_first_verified(self) -> bool:
        """True if the fix of the first queue was verified, and has not failed since (rule 6)."""
        first = self.first
        if first is None:
            return False
        was_watched = first.state is State.CLOSED and first.came_from is State.WATCHING
        return was_watched or first.state in (State.VERIFIED, State.WATCHING)

    def describe_stop(self, *, follows_first: bool) -> str:
        """Return why nothing more may be written; empty if more may be written (rule 7).

        `follows_first` is True if the waiting case is not the first one. It then also stops if the
        fix of the first queue can no longer be verified.
        """
        stopping_case = next((case for case in self.others if _is_stopped_by(case)), None)
        if stopping_case is None and follows_first and not self.is_first_verified:
            if self.first is None:
                return "the case that goes first is not there any more"
            if self.first.state not in _STATES_BEFORE_VERIFICATION:
                stopping_case = self.first
        if stopping_case is None:
            return ""
        return f"case {stopping_case.case_id} of {stopping_case.queue_arn} is {stopping_case.state}"


def _is_stopped_by(case: Case) -> bool:
    """Return True if a written fix did not help, did harm, was rolled back or was overruled."""
    was_overruled = case.state is State.OVERRIDDEN and case.came_from is not State.APPROVED
    return was_overruled or case.state in _STATES_OF_HARM


def select_members(cases: Iterable[Case], shared_default: SharedDefault) -> tuple[Case, ...]:
    """Return the cases that belong to this shared default."""
    return tuple(
        case
        for case in cases
        if case.shared_default is not None
        and case.shared_default.first_case_id == shared_default.first_case_id
    )
