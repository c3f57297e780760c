"""What rolling several cases back would do: each is asked once those before it are undone.

The Lambda answers for a queue as it stands now. What a later case wrote hides what an earlier one
wrote, until the later one is undone: from there on the answer is worked out here, by its own rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cli.account import Account
from functions.aws.queue_look import attributes_of
from functions.healing.case import Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.rollback import Outcome, Written, records_after, undos, written_by
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
        newest, written = history[-1], written_by(history)
        names = [each.attribute for each in written]
        view = self.account.ledger.look(newest.queue_arn, newest.symptom, names)
        facts = Facts(newest.queue_arn, attributes_of(self.account.clients, newest.queue_arn), {})
        for each in before:
            facts, view = _after(each, facts, view)
        found = undos(written, self._snapshots(written), facts, view)
        return {
            "case_id": newest.case_id,
            "state": str(newest.state),
            "attributes": [each.document() for each in found],
            "once_undone": [each.case_id for each in before],
        }

    def _snapshots(self, written: Sequence[Written]) -> dict[int, Mapping[str, str]]:
        """By the transition that they were taken for."""
        source = self.account.open_cases
        found = {each.first.n: source.snapshot_of(each.first) for each in written}
        return {n: snapshot for n, snapshot in found.items() if snapshot is not None}


def _writes(answer: Answer) -> tuple[dict[str, str], ...]:
    """What would be written; nothing where the case was rolled back before."""
    if answer.get("state") == State.ROLLED_BACK:
        return ()
    return tuple(
        {"attribute": each["attribute"], "before": each["now"], "after": each["before"]}
        for each in answer.get("attributes", ())
        if each["outcome"] == Outcome.UNDONE
    )


def _after(undone: Case, facts: Facts, view: LedgerView) -> tuple[Facts, LedgerView]:
    """Queue and ledger once that case is undone."""
    values = {step["attribute"]: step["after"] for step in undone.steps}
    records = records_after(undone, view, facts.created_at)
    return (
        replace(facts, attributes={**facts.attributes, **values}),
        replace(view, attributes={**view.attributes, **records}),
    )
