"""Whose value stands where a rollback kept it: a person's, or that of a later case of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cli.account import Account
from functions.healing.case import Case
from functions.healing.rollback import Outcome, Written, written_by
from functions.healing.states import State

Answer = dict[str, Any]


def kept_of(answer: Answer) -> list[Answer]:
    """The attributes at which somebody else's value stands."""
    return [each for each in answer.get("attributes", ()) if each["outcome"] == Outcome.KEPT]


def name_later_cases(account: Account, answers: Iterable[Answer]) -> None:
    """Put into what was kept the case of ours whose value that is; the ledger is read for that."""
    kept = [(answer["case_id"], each) for answer in answers for each in kept_of(answer)]
    if not kept:
        return
    later = LaterWrites.among(account.open_cases.all_transitions())
    for case_id, each in kept:
        each["later_case"] = later.case_that_wrote(each["now"], each["attribute"], case_id)


@dataclass(frozen=True)
class LaterWrites:
    """Every case of the ledger, its transitions in order."""

    cases: Mapping[str, tuple[Case, ...]]

    @classmethod
    def among(cls, transitions: Iterable[Case]) -> LaterWrites:
        """Of transitions in no order."""
        cases: dict[str, tuple[Case, ...]] = {}
        for each in sorted(transitions, key=lambda each: each.n):
            cases[each.case_id] = (*cases.get(each.case_id, ()), each)
        return cls(cases)

    def case_that_wrote(self, value: object, attribute: str, after_case: str) -> str | None:
        """The case that wrote `value` there after the last write of `after_case`; None if nobody's.

        What was contested since, or taken back, is not ours.
        """
        written = self._written(after_case, attribute)
        if written is None:
            return None
        queue_arn = self.cases[after_case][-1].queue_arn
        for case_id, transitions in self.cases.items():
            newest = transitions[-1]
            if newest.queue_arn != queue_arn or newest.state is State.ROLLED_BACK:
                continue
            other = self._written(case_id, attribute)
            if other is None or other.last.at <= written.last.at or other.was_contested:
                continue
            if other.after == value:
                return case_id
        return None

    def _written(self, case_id: str, attribute: str) -> Written | None:
        every = written_by(self.cases.get(case_id, ()))
        return next((each for each in every if each.attribute == attribute), None)
