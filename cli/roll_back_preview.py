"""What rolling several cases back would do: each is asked once those before it are undone.

The Lambda answers for a queue as it stands now. What a later case wrote hides what an earlier one
wrote, until the later one is undone: from there on the answer is worked out here, by its own rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cli.account import Account
from cli.undoing import undos_now
from functions.healing.case import Case
from functions.healing.rollback import Outcome
from functions.healing.states import State

Answer = dict[str, Any]


@dataclass
class Preview:
    """The cases that would be undone so far, in that order, as they would be then."""

    account: Account
    now: datetime
    undone: list[Case] = field(default_factory=list)

    def then(self, history: Sequence[Case], answer: Answer) -> Answer:
        """The next case's answer, where `answer` is the Lambda's for the queue as it is now."""
        newest = history[-1]
        before = [each for each in self.undone if each.queue_arn == newest.queue_arn]
        if before and self._stands_behind(before, newest, answer):
            answer = self._answer_behind(before, history)
        if steps := _writes(answer):
            self.undone.append(
                newest.moved(State.ROLLED_BACK, "it would be", self.now, steps=steps)
            )
        return answer

    def _stands_behind(self, before: Sequence[Case], newest: Case, answer: Answer) -> bool:
        """Whether the answer speaks of what will not be so any more once its turn has come."""
        if "error" not in answer:
            return True
        if answer["error"]["code"] != "wrong_state":
            return False
        in_the_way = self.account.ledger.look(newest.queue_arn, newest.symptom, ()).case
        return in_the_way is not None and in_the_way.case_id in {each.case_id for each in before}

    def _answer_behind(self, before: Sequence[Case], history: Sequence[Case]) -> Answer:
        newest = history[-1]
        return {
            "case_id": newest.case_id,
            "state": str(newest.state),
            "attributes": [each.document() for each in undos_now(self.account, history, before)],
            "once_undone": [each.case_id for each in before],
        }


def _writes(answer: Answer) -> tuple[dict[str, str], ...]:
    """What would be written; nothing where the case was rolled back before."""
    if answer.get("state") == State.ROLLED_BACK:
        return ()
    return tuple(
        {"attribute": each["attribute"], "before": each["now"], "after": each["before"]}
        for each in answer.get("attributes", ())
        if each["outcome"] == Outcome.UNDONE
    )
