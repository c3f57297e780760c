"""Join the queues of one scan that share a wrong setting, and read the cases of a shared default.

`mendq/model/shared_default.py` has the theory and the rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from msgspec import Struct, structs

from mendq.cases.context import FixContext
from mendq.cases.spread import Reach
from mendq.heal.decide import Decision, RecordTransition, WriteFix, decide
from mendq.heal.situation import Situation
from mendq.model.case import Case
from mendq.model.mode import Mode
from mendq.model.plan import Refusal
from mendq.model.shared_default import (
    MINIMUM_QUEUES,
    LeftOutQueue,
    SharedCases,
    SharedDefault,
    select_members,
)
from mendq.model.state import State
from mendq.model.tags import DRILL_TAG

# The states in which a case opens that Mendq would fix, or propose to fix, alone.
_STATES_OF_MEMBERS = frozenset({State.PROPOSED, State.APPROVED, State.APPLIED})
_OVERRIDDEN_TEXT = "someone else set its value"
_OBSERVED_TEXT = "Mendq may only observe it"

Key = TypeVar("Key")


class _Candidate(Struct, frozen=True):
    """A queue that may belong to a shared default, and what Mendq would do about it alone."""

    situation: Situation
    decision: Decision

    @property
    def case(self) -> Case | None:
        """The case that would be opened; None if none would be."""
        match self.decision:
            case WriteFix() | RecordTransition():
                return self.decision.case
        return None

    def is_member(self, attribute: str) -> bool:
        """Return True if Mendq would change the attribute, or propose that."""
        case = self.case
        if case is None or case.state not in _STATES_OF_MEMBERS:
            return False
        return any(step["attribute"] == attribute for step in case.steps)

    @property
    def left_out(self) -> LeftOutQueue | None:
        """The queue with the reason to leave it out; None if people need not hear of it."""
        refusal: Refusal | None = getattr(self.decision, "refusal", None)
        queue_arn = self.situation.facts.queue_arn
        if refusal is not None and refusal.code == "overridden":
            return LeftOutQueue(queue_arn, _OVERRIDDEN_TEXT)
        if self.situation.mode is Mode.OBSERVE and self.case is not None:
            return LeftOutQueue(queue_arn, _OBSERVED_TEXT)
        return None

    @property
    def rank(self) -> tuple[bool, int, str]:
        """The order in which the queues are chosen as the first one.

        A queue in use comes first, because only its traffic can verify a fix. Of these, the queue
        with the fewest messages comes first, because the least is at stake there.
        """
        facts = self.situation.facts
        measurement = facts.measurement
        is_in_use = measurement is not None and measurement.received > 0
        return not is_in_use, facts.visible + facts.in_flight, facts.queue_arn


def join_shared_defaults(situations: Mapping[Key, Situation]) -> dict[Key, Situation]:
    """Return the situations of one symptom, with those joined that share a wrong setting.

    The first queue of a shared default comes before its other queues. If the symptom names no
    attribute that can be shared, or too few queues share a value, nothing is changed. Drills are
    never joined.

    Args:
        situations: The situations with the queues' facts, each with evidence of a scan alone.
    """
    situation_by_key = dict(situations)
    keys_by_value = defaultdict[str, list[Key]](list)
    for key, situation in situations.items():
        attribute = situation.symptom.shared_attribute
        if attribute and situation.facts.exists and DRILL_TAG not in situation.facts.tags:
            keys_by_value[situation.facts.attributes.get(attribute, "")].append(key)
    for keys in keys_by_value.values():
        if len(keys) >= MINIMUM_QUEUES:
            situation_by_key = _join(keys, situation_by_key)
    return situation_by_key


def _join(keys: Sequence[Key], situations: Mapping[Key, Situation]) -> dict[Key, Situation]:
    """Return the situations with a shared default of the queues that Mendq would fix alone."""
    candidates = {key: _make_candidate(situations[key]) for key in keys}
    attribute = situations[keys[0]].symptom.shared_attribute
    member_keys = sorted(
        (key for key in keys if candidates[key].is_member(attribute)),
        key=lambda key: candidates[key].rank,
    )
    if len(member_keys) < MINIMUM_QUEUES:
        return dict(situations)
    first_case = candidates[member_keys[0]].case
    assert first_case is not None  # noqa: S101 - a member has a case
    left_out = [candidate.left_out for candidate in candidates.values()]
    shared_default = SharedDefault(
        first_case.case_id,
        attribute,
        tuple(situations[key].facts.queue_arn for key in member_keys),
        tuple(queue for queue in left_out if queue is not None),
    )
    joined_situations = {
        key: structs.replace(situations[key], shared_default=shared_default) for key in member_keys
    }
    other_situations = {
        key: situation for key, situation in situations.items() if key not in joined_situations
    }
    return {**joined_situations, **other_situations}


def _make_candidate(situation: Situation) -> _Candidate:
    """Decide about a queue alone. Faults in configurations are not counted as a mass symptom."""
    counted_situation = situation.with_reach(Reach(), situation.remaining_seconds)
    return _Candidate(situation, decide(counted_situation))


def leave_shared_default_without_first(
    situation: Situation, opened_case_ids: Collection[str]
) -> Situation:
    """Return the situation without its shared default if the first case could not be opened.

    Otherwise, the case would wait for an approval that nobody can give.

    Args:
        situation: The symptom and the queue.
        opened_case_ids: The cases that this run has opened so far.
    """
    shared_default = situation.shared_default
    if shared_default is None or shared_default.first_queue_arn == situation.facts.queue_arn:
        return situation
    if shared_default.first_case_id in opened_case_ids:
        return situation
    return structs.replace(situation, shared_default=None)


def read_shared_cases(case: Case, run: FixContext) -> SharedCases | None:
    """Return the other cases of a waiting case's shared default; None if it belongs to none.

    If the case follows a first case that is not verified yet, only that is read.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable: The cases could not be read.
    """
    shared_default = case.shared_default
    if shared_default is None:
        return None
    first_cases = _load_members(shared_default, [shared_default.first_queue_arn], case, run)
    shared_cases = SharedCases(next(iter(first_cases), None))
    if case.follows_first_case and not shared_cases.is_first_verified:
        return shared_cases
    other_queue_arns = [
        queue_arn for queue_arn in shared_default.queue_arns[1:] if queue_arn != case.queue_arn
    ]
    other_cases = _load_members(shared_default, other_queue_arns, case, run)
    return replace(shared_cases, others=other_cases)


def _load_members(
    shared_default: SharedDefault, queue_arns: Iterable[str], case: Case, run: FixContext
) -> tuple[Case, ...]:
    """Return the cases of these queues that belong to the shared default of `case`.

    A case that a newer one of its queue and symptom has followed is left out.
    """
    views = [run.case_store.look(queue_arn, case.symptom, ()) for queue_arn in queue_arns]
    newest_cases = [view.case for view in views if view.case is not None]
    return select_members(newest_cases, shared_default)
