"""Read cases from the case bucket, and find the outcome of each case.

Mendq stores each transition of a case as one JSON file: `dt=YYYY-MM-DD/CASE_ID-N.json`.
`load_case_files` reads these files and groups them into a `CaseTimeline` for each case. The
timelines give the nightly tables the outcomes of incidents, and the weekly summary the tasks for
people.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from analytics.days import Days, to_microseconds
from analytics.storage import Storage
from mendq.model.case import Case
from mendq.model.lifecycle import QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON
from mendq.model.state import FINAL_STATES, State

# The most days from the beginning of a case to an incident that the case can explain.
MAXIMUM_DAYS_FROM_CASE_TO_INCIDENT = 7
WEEK_MICROSECONDS = MAXIMUM_DAYS_FROM_CASE_TO_INCIDENT * 86_400 * 1_000_000
# The weekly summary covers the cases of the last 13 weeks. For this long it repeats each value that
# Mendq set, because Mendq cannot see if a template contains the value by now.
QUARTER_DAYS = 91
# Limits on content that another account may have written.
MAXIMUM_CASE_FILE_BYTES = 1_000_000
MAXIMUM_NAME_CHARACTERS = 200
MAXIMUM_ACCEPTED_COUNT = 10**12
MAXIMUM_TEXT_CHARACTERS = 1_000

# Outcomes of incidents. docs/incidents.md explains all of them.
NOT_SEEN_OUTCOME = "not_seen"  # no case
HEALED_OUTCOME = "healed"
APPROVED_OUTCOME = "approved"  # healed after a person approved the change
APPLIED_OUTCOME = "applied"
FIXED_OUTCOMES = frozenset({HEALED_OUTCOME, APPROVED_OUTCOME})

# The states in which the symptom stayed away, unless the case ended for a reason in
# _REASONS_TO_STOP_WATCHING.
_SYMPTOM_FREE_STATES = frozenset({State.CLOSED, State.WATCHING, State.VERIFIED})
# The reasons of cases that were closed because Mendq could no longer watch the queue.
_REASONS_TO_STOP_WATCHING = frozenset({QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON})
_STATES_OF_APPLIED_CHANGES = frozenset({State.APPLIED, State.UNVERIFIED})
# The states whose name is also the outcome.
_STATES_NAMED_AS_OUTCOMES = (
    frozenset(State) - _SYMPTOM_FREE_STATES - _STATES_OF_APPLIED_CHANGES - {State.APPROVED}
)
_OUTCOME_BY_STATE = {
    **{state: str(state) for state in _STATES_NAMED_AS_OUTCOMES},
    **dict.fromkeys(_STATES_OF_APPLIED_CHANGES, APPLIED_OUTCOME),
    # An approved change that is not carried out yet counts as a proposal, because nothing changed.
    State.APPROVED: str(State.PROPOSED),
}

# A transition in the case bucket has the fields of a case.
Transition = Case


def read_transition(content: bytes) -> Transition | None:
    """Return the transition in a file of the case bucket.

    Return None if the content is too large or not a transition. Never raise an error.
    """
    if len(content) > MAXIMUM_CASE_FILE_BYTES:
        return None
    try:
        document = json.loads(content)
        case = Transition.from_document(document)
        _read_evidence_span(case)
        to_microseconds(_to_utc(case.at))
        _require_valid_texts(case)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return case


def _read_evidence_span(case: Case) -> tuple[int, int]:
    """Return the times of a case's first and last failed call, in microseconds since 1970.

    If the evidence is broken, raise one of the exceptions that `read_transition` catches.
    """
    first_failure = datetime.fromisoformat(case.evidence["first_at"])
    last_failure = datetime.fromisoformat(case.evidence["last_at"])
    return to_microseconds(_to_utc(first_failure)), to_microseconds(_to_utc(last_failure))


def _to_utc(aware_time: datetime) -> datetime:
    """Return a time in UTC. Raise ValueError if it has no time zone."""
    if aware_time.tzinfo is None:
        raise ValueError(f"{aware_time} has no time zone")
    return aware_time.astimezone(UTC)


def _require_valid_texts(case: Case) -> None:
    """Raise an error if a name or the reason is not a text that Spark can store.

    The error is ValueError for a name that is not valid UTF-8, AttributeError for a name that is
    not a text, and TypeError for a reason that is not a text.
    """
    for name in (case.case_id, case.queue_arn, case.symptom):
        name.encode()
    if not isinstance(case.reason, str):
        raise TypeError(f"{case.reason!r} is not a text")


@dataclass(frozen=True)
class CaseTimeline:
    """The transitions of one case that were read, in order, one for each number.

    There is at least one. The first transitions are missing if their files were not read, for
    example because they were deleted.
    """

    transitions: tuple[Transition, ...]

    @classmethod
    def from_transitions(cls, transitions: Iterable[Transition]) -> CaseTimeline:
        """Return the timeline of one case's transitions, which may come in any order.

        If two transitions have the same number, the one with the later time is used.
        """
        sorted_transitions = sorted(
            transitions, key=lambda transition: (transition.n, transition.at)
        )
        transition_by_number = {transition.n: transition for transition in sorted_transitions}
        return cls(tuple(transition_by_number.values()))

    @property
    def newest_transition(self) -> Transition:
        """The last transition, which has the case's present state."""
        return self.transitions[-1]

    @property
    def transition_with_reported_reason(self) -> Transition:
        """The transition whose reason the report shows.

        It is normally the newest transition. But for a verified fix that is being watched, or was
        watched until the end of the case, it is the verification, whose reason names what was
        fixed.
        """
        newest_transition = self.newest_transition
        was_watched = State.WATCHING in (newest_transition.state, newest_transition.came_from)
        is_symptom_free = (
            newest_transition.state in _SYMPTOM_FREE_STATES
            and newest_transition.reason not in _REASONS_TO_STOP_WATCHING
        )
        if was_watched and is_symptom_free:
            for transition in reversed(self.transitions):
                if transition.state is State.VERIFIED:
                    return transition
        return newest_transition

    @cached_property
    def first_transition_microseconds(self) -> int:
        """The time of the first transition that was read, in microseconds since 1970."""
        return to_microseconds(self.transitions[0].at)

    @cached_property
    def evidence_spans(self) -> list[tuple[int, int]]:
        """The times of the first and the last failed call in each transition's evidence.

        The times are in microseconds since 1970.
        """
        return [_read_evidence_span(transition) for transition in self.transitions]

    @cached_property
    def outcome(self) -> str:
        """The outcome of the case's incidents, in the words of docs/incidents.md.

        The newest state decides, or the state before if the case was closed because Mendq could no
        longer watch the queue. If the symptom stayed away, the outcome is `approved` if a person
        approved the change, else `healed` if people were not notified. If people were notified, a
        person may have fixed the queue. The outcome is then the last state whose name is also an
        outcome, or `escalated` if there is none.
        """
        newest_transition = self.newest_transition
        # If Mendq stopped watching the queue, the state before says how the case went.
        has_stopped_watching = (
            newest_transition.state in _SYMPTOM_FREE_STATES
            and newest_transition.reason in _REASONS_TO_STOP_WATCHING
        )
        state = newest_transition.came_from if has_stopped_watching else newest_transition.state
        if state in _OUTCOME_BY_STATE:
            return _OUTCOME_BY_STATE[state]
        # A case that opens in the state `approved` was approved by the settings, not by a person.
        if any(case.state is State.APPROVED and case.n > 1 for case in self.transitions):
            return APPROVED_OUTCOME
        if not self.has_notified_people:
            return HEALED_OUTCOME
        for transition in reversed(self.transitions):
            if transition.state in _STATES_NAMED_AS_OUTCOMES:
                return str(transition.state)
        return str(State.ESCALATED)

    @property
    def seconds_to_heal(self) -> float | None:
        """The seconds from the first failed call to the first verification of the fix.

        None if no fix was verified. None also if the verification is before the failed call,
        because such a case contradicts itself.
        """
        for transition in self.transitions:
            if transition.state is State.VERIFIED:
                first_failure, _ = _read_evidence_span(transition)
                healing_seconds = (to_microseconds(transition.at) - first_failure) / 1_000_000
                return healing_seconds if healing_seconds >= 0 else None
        return None

    @property
    def opening_transition(self) -> Transition | None:
        """The transition that opened the case; None if it was not read."""
        return self.transitions[0] if self.transitions[0].n == 1 else None

    @property
    def opened_at(self) -> datetime:
        """The time at which the case opened; if unknown, that of its first failed call."""
        if self.opening_transition:
            return self.opening_transition.at
        return datetime.fromisoformat(self.transitions[0].evidence["first_at"]).astimezone(UTC)

    @property
    def state_began_at(self) -> datetime:
        """The time at which the case came into its present state."""
        state_began_at = self.newest_transition.at
        for transition in reversed(self.transitions):
            if transition.state is not self.newest_transition.state:
                break
            state_began_at = transition.at
        return state_began_at

    @cached_property
    def ended_at(self) -> datetime | None:
        """The time at which the case ended; None if it is still open.

        Failed calls after this time may open a new case. A case that was closed and later rolled
        back ended when it was closed.
        """
        end_time: datetime | None = None
        for transition in self.transitions:
            if transition.state not in FINAL_STATES:
                end_time = None
            elif end_time is None:
                end_time = transition.at
        return end_time

    @property
    def is_opened_without_calls(self) -> bool:
        """True if the first transition that was read has no failed calls in its evidence."""
        failed_calls = self.transitions[0].evidence.get("failed_calls")
        return failed_calls == 0 and not isinstance(failed_calls, bool)

    @property
    def is_opened_by_scan(self) -> bool:
        """True if a scan opened the case. False if its first transition was not read."""
        return self.opening_transition is not None and self.is_opened_without_calls

    @property
    def has_notified_people(self) -> bool:
        """True if people were ever notified about the case."""
        return any(transition.notified is True for transition in self.transitions)

    @property
    def is_urgent(self) -> bool:
        """True if a notification about the case was ever urgent."""
        return any(transition.urgent is True for transition in self.transitions)

    def has_evidence_between(
        self, first_call_microseconds: int, last_call_microseconds: int
    ) -> bool:
        """Return True if evidence of the case overlaps a span, in microseconds since 1970."""
        return any(
            span_begin <= last_call_microseconds and span_end >= first_call_microseconds
            for span_begin, span_end in self.evidence_spans
        )

    @cached_property
    def evidence_spans_near_opening(self) -> list[tuple[int, int]]:
        """The parts of `evidence_spans` within a week of `first_transition_microseconds`."""
        earliest_microseconds = self.first_transition_microseconds - WEEK_MICROSECONDS
        latest_microseconds = self.first_transition_microseconds + WEEK_MICROSECONDS
        spans_near_opening: list[tuple[int, int]] = []
        for span_begin, span_end in self.evidence_spans:
            clipped_begin = max(span_begin, earliest_microseconds)
            clipped_end = min(span_end, latest_microseconds)
            if clipped_begin <= clipped_end:
                spans_near_opening.append((clipped_begin, clipped_end))
        return spans_near_opening

    def list_notifications(self, days: Days) -> list[Transition]:
        """Return the transitions on these days that notified people, the oldest first."""
        transitions = self.list_transitions(days)
        return [transition for transition in transitions if transition.notified is True]

    def list_transitions(self, days: Days) -> list[Transition]:
        """Return the transitions on these days, the oldest first."""
        return [transition for transition in self.transitions if is_on_days(transition.at, days)]


def group_transitions_by_case(transitions: Iterable[Transition]) -> list[CaseTimeline]:
    """Return a timeline for each case, sorted by case id."""
    transitions_by_case = defaultdict[str, list[Transition]](list)
    for transition in transitions:
        transitions_by_case[transition.case_id].append(transition)
    return [
        CaseTimeline.from_transitions(transitions_by_case[case_id])
        for case_id in sorted(transitions_by_case)
    ]


class Step(NamedTuple):
    """A change of a queue attribute, with the values before and after the change."""

    attribute: str
    before: str
    after: str


def read_steps(case: Case) -> list[Step]:
    """Return the steps of a case's plan. Leave out broken steps: the file may contain anything."""
    steps: list[Step] = []
    for step_document in case.steps:
        if not isinstance(step_document, Mapping):
            continue
        step = Step._make(step_document.get(field_name) for field_name in Step._fields)
        if all(isinstance(field_value, str) for field_value in step):
            steps.append(step)
    return steps


def is_on_days(aware_time: datetime, days: Days) -> bool:
    """Return True if a time is on one of these days."""
    return days.start_microseconds <= to_microseconds(aware_time) < days.end_microseconds


def is_valid_count(value: object) -> bool:
    """Return True if `value` is an integer from 0 to MAXIMUM_ACCEPTED_COUNT.

    With this limit, sums of such numbers cannot overflow.
    """
    return type(value) is int and 0 <= value <= MAXIMUM_ACCEPTED_COUNT


def shorten(text: Any, maximum_characters: int = MAXIMUM_TEXT_CHARACTERS) -> str:
    """Return `text`, cut to at most `maximum_characters` characters.

    A text that is cut ends in `...`. Characters that UTF-8 cannot encode are escaped. Return an
    empty text if `text` is not a str.
    """
    if not isinstance(text, str):
        return ""
    encodable_text = text[: maximum_characters + 1].encode(errors="backslashreplace").decode()
    if len(encodable_text) <= maximum_characters:
        return encodable_text
    return f"{encodable_text[: maximum_characters - 3]}..."


@dataclass(frozen=True)
class CaseFiles:
    """The cases that were read from the case bucket.

    Attributes:
        first_fully_read_day: The first day whose files were all read. From earlier days, only the
            files of cases with a later transition were read.
        timelines: A timeline for each case.
        unreadable_file_count: The number of files without a readable transition.
        findings: The queue ARN, symptom and sentence of each finding of the last scan. Empty if the
            scans were not read.
        measured_figures_by_queue: The last measured figures of each queue, such as the backlog, by
            queue ARN and figure name. Empty if the scans were not read.
    """

    first_fully_read_day: date
    timelines: list[CaseTimeline]
    unreadable_file_count: int = 0
    findings: Sequence[tuple[str, str, str]] = ()
    measured_figures_by_queue: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def load_case_files(
    case_storage: Storage,
    days: Days,
    number_of_earlier_days: int = MAXIMUM_DAYS_FROM_CASE_TO_INCIDENT + 1,
) -> CaseFiles:
    """Read all cases with a transition from `number_of_earlier_days` before `days` until now.

    Each of these cases is read from its opening, if the files are there, because its first
    transitions say when it opened and if people were notified. So a nightly run and a backfill that
    starts earlier read the same transitions of a case.
    """
    first_fully_read_day = days.widen(number_of_earlier_days, 0).first_day
    folders = [name for name in case_storage.list_folders("") if name.startswith("dt=")]
    transitions: list[Transition] = []
    unreadable_file_count = 0
    # Read each folder right after it is listed. If a later folder of an account cannot be listed,
    # the account's files can no longer be read.
    for folder in folders:
        if folder >= f"dt={first_fully_read_day}":
            paths = list(case_storage.list_file_sizes(folder))
            transitions_of_day = _read_transitions(case_storage, paths)
            transitions.extend(transitions_of_day)
            unreadable_file_count += len(paths) - len(transitions_of_day)
    older_folders = [folder for folder in folders if folder < f"dt={first_fully_read_day}"]
    for folder in reversed(older_folders):
        case_ids_without_opening = _list_cases_without_opening(transitions)
        if not case_ids_without_opening:
            break
        older_paths = [
            path
            for path in case_storage.list_file_sizes(folder)
            if _parse_case_id(path) in case_ids_without_opening
        ]
        transitions.extend(_read_transitions(case_storage, older_paths))
    return CaseFiles(
        first_fully_read_day, group_transitions_by_case(transitions), unreadable_file_count
    )


def _list_cases_without_opening(transitions: Iterable[Transition]) -> set[str]:
    """Return the ids of the cases whose first transition is missing in `transitions`."""
    all_case_ids: set[str] = set()
    case_ids_with_opening: set[str] = set()
    for transition in transitions:
        all_case_ids.add(transition.case_id)
        if transition.n == 1:
            case_ids_with_opening.add(transition.case_id)
    return all_case_ids - case_ids_with_opening


def _read_transitions(case_storage: Storage, paths: Iterable[str]) -> list[Transition]:
    """Return the transitions in these files. Files without a transition are left out."""
    transitions: list[Transition] = []
    for path in paths:
        transition = read_transition(case_storage.read(path, MAXIMUM_CASE_FILE_BYTES + 1) or b"")
        if transition is not None:
            transitions.append(transition)
    return transitions


def _parse_case_id(path: str) -> str:
    """Return the case id in a path such as `dt=2026-11-16/CASE_ID-N.json`."""
    return PurePosixPath(path).stem.rpartition("-")[0]
