"""Recommend what people should do this week, the most useful first.

Recommendations come from three sources: cases that need people, callers that are refused again and
again or fail with an unknown error code, and findings of the last scan for which Mendq opens no
case. Each recommendation repeats only what a case, an incident or a finding says.

docs/to-do.md lists the kinds, and the reason for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from analytics.cases import MAXIMUM_NAME_CHARACTERS, CaseTimeline, Step, read_steps, shorten
from analytics.days import Days, to_microseconds
from analytics.week_parts import (
    IncidentCounts,
    Row,
    count_incidents_and_calls_by,
    format_time,
    rank_by_counts,
)
from mendq.catalogue.access.queue_missing import QUEUE_MISSING
from mendq.catalogue.configuration.alarm_missing import ALARM_MISSING
from mendq.catalogue.configuration.tag_not_understood import TAG_NOT_UNDERSTOOD
from mendq.model.case import Case
from mendq.model.lifecycle import QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON
from mendq.model.state import STATES_WITH_FIX_IN_PLACE, State
from mendq.model.steps import CreateDlq, has_value_in_queue

# The kinds of recommendations from cases.
WRITE_INTO_TEMPLATE_KIND = "write_into_template"
APPROVE_KIND = "approve"
DECIDE_KIND = "decide"
FIX_KIND = "fix"
WATCH_KIND = "watch"
# The kinds of recommendations from incidents without a case.
FIX_CALLER_KIND = "fix_caller"
NAME_CODE_KIND = "name_code"

# The reason for `write_into_template` if the change was made before the week.
VALUE_STILL_SET_REASON = "stands"
_VERIFIED_STATES = frozenset({State.VERIFIED, State.WATCHING})
_WHY_BY_TASK_KIND = {WRITE_INTO_TEMPLATE_KIND: "verified", WATCH_KIND: "applied"}
_KIND_BY_STATE = {
    State.APPLIED: WATCH_KIND,
    State.UNVERIFIED: WATCH_KIND,
    State.PROPOSED: APPROVE_KIND,
    State.OVERRIDDEN: DECIDE_KIND,
    State.OBSERVED: FIX_KIND,
    State.REFUSED: FIX_KIND,
    State.EXPIRED: FIX_KIND,
    State.INEFFECTIVE: FIX_KIND,
    State.ESCALATED: FIX_KIND,
}
# The states in which the case's next step is shown, because its change was refused or did not help.
_STATES_WITH_NEXT_STEP = frozenset({State.REFUSED, State.INEFFECTIVE, State.ESCALATED})
# Order of the kinds of tasks. Tasks about escalated cases come before all others.
_RANK_OF_ESCALATED_CASES = 0
_RANK_BY_KIND = {APPROVE_KIND: 1, DECIDE_KIND: 2, WATCH_KIND: 4}
_RANK_OF_OTHER_KINDS = 3
# The kinds that people decide for a whole plan. A plan for several attributes gives only one
# recommendation of such a kind.
_KINDS_FOR_WHOLE_PLANS = frozenset({APPROVE_KIND, FIX_KIND})
# The kind of recommendation for findings for which no case is opened, by symptom.
_TASK_KIND_BY_FINDING_SYMPTOM = {
    ALARM_MISSING.name: "add_alarms",
    TAG_NOT_UNDERSTOOD.name: "correct_tags",
}
# A caller or an unknown error code is recommended only if it reaches one of these numbers.
MINIMUM_INCIDENTS = 10
MINIMUM_FAILED_CALLS = 100
MAXIMUM_RECOMMENDATIONS = 10
MAXIMUM_VALUES_STILL_SET = 50
# The fields that the list `standing` shows of a recommendation.
_FIELDS_OF_VALUE_STILL_SET = frozenset(
    {"queue_arn", "symptom", "attribute", "before", "after", "owner", "case_id"}
)
# Up to this number of queues with the same change are listed separately. If there are more, only
# the worst queue is listed, with the number of all.
MAXIMUM_QUEUES_LISTED_FOR_SAME_CHANGE = 3
_get_change_key = attrgetter("kind", "why", "symptom", "attribute", "after", "owner")
_TEXT_FIELDS = ("before", "after", "reason", "next_step", "command")
_NAME_FIELDS = ("queue_arn", "symptom", "attribute", "owner", "case_id")


@dataclass(frozen=True)
class RecommendedTask:
    """A task that the report recommends to people.

    Texts are empty if there is nothing to say.

    Attributes:
        kind: What to do, such as `approve`.
        why: The reason in one word, usually the state of the case.
        queue_arn: The queue; of several queues, the one with the most incidents.
        symptom: The symptom.
        attribute: The queue attribute of the change.
        before: The value that the attribute had before the case.
        after: The value that Mendq set or proposes.
        owner: The CloudFormation stack that deploys the queue, or the caller that must be fixed.
        case_id: The case.
        reason: The case's last reason, the error codes of the calls, or the finding's sentence.
        next_step: A sentence that says what a person should do next.
        command: The command for the next step.
        incidents: The number of this week's incidents of the queues and the symptom.
        failed_calls: The number of failed calls of these incidents.
        queues: The number of queues.
    """

    kind: str
    why: str
    queue_arn: str
    symptom: str
    attribute: str = ""
    before: str = ""
    after: str = ""
    owner: str = ""
    case_id: str = ""
    reason: str = ""
    next_step: str = ""
    command: str = ""
    incidents: int = 0
    failed_calls: int = 0
    queues: int = 1

    def document(self) -> dict[str, Any]:
        """Return the recommendation as a JSON object for the summary, with long texts cut."""
        document = asdict(self)
        for name in _NAME_FIELDS:
            document[name] = shorten(document[name], MAXIMUM_NAME_CHARACTERS)
        for name in _TEXT_FIELDS:
            document[name] = shorten(document[name])
        return document

    @property
    def rank(self) -> tuple[int, int, int, str, str, str, str]:
        """The sorting key: escalated cases first, then by kind, then most incidents and calls."""
        kind_rank = _RANK_BY_KIND.get(self.kind, _RANK_OF_OTHER_KINDS)
        if self.why == State.ESCALATED:
            kind_rank = _RANK_OF_ESCALATED_CASES
        return (
            kind_rank,
            -self.incidents,
            -self.failed_calls,
            self.queue_arn.rpartition(":")[2],
            self.queue_arn,
            self.attribute,
            f"{self.symptom} {self.case_id}",
        )


def make_to_do_fields(
    recommendations: Iterable[RecommendedTask], incidents: Iterable[Row]
) -> dict[str, Any]:
    """Return the summary's fields `do_this_week` and `do_this_week_left_out`.

    Recommendations are merged by `merge_alike_recommendations`. `do_this_week` has at most
    MAXIMUM_RECOMMENDATIONS of them, the most useful first, and `do_this_week_left_out` is the
    number of the others. A recommendation without a number of incidents gets the number of this
    week's incidents of its queue and symptom.
    """
    counts_by_queue_and_symptom = count_incidents_and_calls_by(incidents, "queue_arn", "symptom")
    counted_recommendations = [
        _add_incident_counts(recommendation, counts_by_queue_and_symptom)
        for recommendation in recommendations
    ]
    ranked_recommendations = sorted(
        merge_alike_recommendations(counted_recommendations),
        key=lambda recommendation: recommendation.rank,
    )
    return {
        "do_this_week": [
            recommendation.document()
            for recommendation in ranked_recommendations[:MAXIMUM_RECOMMENDATIONS]
        ],
        "do_this_week_left_out": len(ranked_recommendations[MAXIMUM_RECOMMENDATIONS:]),
    }


def make_fields_of_values_still_set(
    recommendations: Iterable[RecommendedTask], timelines: Iterable[CaseTimeline]
) -> dict[str, Any]:
    """Return the summary's fields about values that Mendq set and that are still in the queues.

    `standing` has at most MAXIMUM_VALUES_STILL_SET values, the oldest first. `standing_left_out` is
    the number of the others. They are listed because the next deployment may overwrite them. Mendq
    cannot see if a template has a value by now. So a value is listed until its case is too old to
    be read, a newer case overrules it, or the queue is deleted.
    """
    standing_recommendations = [
        recommendation
        for recommendation in recommendations
        if recommendation.kind == WRITE_INTO_TEMPLATE_KIND and recommendation.attribute
    ]
    write_time_by_case = _find_write_times(timelines)
    standing_recommendations.sort(
        key=lambda recommendation: (
            write_time_by_case.get(recommendation.case_id, ""),
            recommendation.rank,
        )
    )
    standing_values: list[dict[str, Any]] = []
    for recommendation in standing_recommendations[:MAXIMUM_VALUES_STILL_SET]:
        document = recommendation.document()
        standing_value = {
            name: document[name] for name in document if name in _FIELDS_OF_VALUE_STILL_SET
        }
        standing_value["set_at"] = write_time_by_case.get(recommendation.case_id, "")
        standing_values.append(standing_value)
    return {
        "standing": standing_values,
        "standing_left_out": len(standing_recommendations[MAXIMUM_VALUES_STILL_SET:]),
    }


def _find_write_times(timelines: Iterable[CaseTimeline]) -> dict[str, str]:
    """Return the time at which each case first had a written fix, as a text by case id."""
    write_time_by_case: dict[str, str] = {}
    for timeline in timelines:
        for transition in timeline.transitions:
            if transition.state in STATES_WITH_FIX_IN_PLACE:
                write_time_by_case[timeline.newest_transition.case_id] = format_time(transition.at)
                break
    return write_time_by_case


def _add_incident_counts(
    recommendation: RecommendedTask,
    counts_by_queue_and_symptom: Mapping[tuple[str, str], IncidentCounts],
) -> RecommendedTask:
    """Return the recommendation with the number of incidents of its queue and symptom.

    A recommendation that already has a number is returned unchanged.
    """
    if recommendation.incidents:
        return recommendation
    incident_counts = counts_by_queue_and_symptom.get(
        (recommendation.queue_arn, recommendation.symptom), IncidentCounts()
    )
    return replace(
        recommendation,
        incidents=incident_counts.incidents,
        failed_calls=incident_counts.failed_calls,
    )


def merge_alike_recommendations(
    recommendations: Sequence[RecommendedTask],
) -> list[RecommendedTask]:
    """Return the recommendations, with those for the same change on many queues merged.

    If a change concerns more than MAXIMUM_QUEUES_LISTED_FOR_SAME_CHANGE queues, only the
    recommendation that ranks first stays, with the sums over all queues.
    """
    recommendations_by_change = defaultdict[tuple[str, ...], list[RecommendedTask]](list)
    for recommendation in recommendations:
        recommendations_by_change[_get_change_key(recommendation)].append(recommendation)
    merged_recommendations: list[RecommendedTask] = []
    for alike_recommendations in recommendations_by_change.values():
        queue_arns = {recommendation.queue_arn for recommendation in alike_recommendations}
        if len(queue_arns) <= MAXIMUM_QUEUES_LISTED_FOR_SAME_CHANGE:
            merged_recommendations.extend(alike_recommendations)
        else:
            merged_recommendations.append(_merge_alike_group(alike_recommendations))
    return merged_recommendations


def _merge_alike_group(alike_recommendations: Sequence[RecommendedTask]) -> RecommendedTask:
    """Return the recommendation that ranks first, with the sums over the whole group.

    Its value `before` is kept only if it is the same in all recommendations of the group.
    """
    first_recommendation = min(
        alike_recommendations, key=lambda recommendation: recommendation.rank
    )
    values_before = {recommendation.before for recommendation in alike_recommendations}
    return replace(
        first_recommendation,
        before=first_recommendation.before if len(values_before) == 1 else "",
        incidents=sum(recommendation.incidents for recommendation in alike_recommendations),
        failed_calls=sum(recommendation.failed_calls for recommendation in alike_recommendations),
        queues=sum(recommendation.queues for recommendation in alike_recommendations),
    )


def recommend_for_cases(days: Days, timelines: Sequence[CaseTimeline]) -> list[RecommendedTask]:
    """Return the tasks that cases leave to people: one recommendation for each queue and attribute.

    Cases that change no attribute give one recommendation for each queue and symptom. A plan for
    several attributes that people must approve or carry out as a whole gives one recommendation. A
    newer case about the same attribute or symptom overrules older cases, even if it asks for
    nothing, unless it was declined. A case counts if

    - it has a transition on `days`, and it is the newest case of its queue and symptom, or
    - it has a transition on `days`, and its fix was verified and not undone, or
    - its last transition was before `days`, and its fix was verified and not undone.

    Cases of deleted queues do not count, except those of the symptom `queue_missing`.
    """
    timelines_by_age = sorted(timelines, key=_rank_timeline_by_age)
    newest_timeline_by_queue_and_symptom: dict[tuple[str, str], CaseTimeline] = {}
    for timeline in timelines_by_age:
        newest_timeline_by_queue_and_symptom[
            timeline.newest_transition.queue_arn, timeline.newest_transition.symptom
        ] = timeline
    found_missing_at_by_queue = _find_missing_times(timelines_by_age)
    recommendation_by_queue_and_subject: dict[tuple[str, str], RecommendedTask | None] = {}
    for timeline in timelines_by_age:
        case = timeline.newest_transition
        newest_timeline = newest_timeline_by_queue_and_symptom[case.queue_arn, case.symptom]
        is_newest_case = newest_timeline is timeline
        is_queue_missing = _is_about_missing_queue(case, found_missing_at_by_queue)
        for subject, recommendation in _recommend_for_case(timeline):
            queue_and_subject = (case.queue_arn, subject)
            recommendation_by_queue_and_subject[queue_and_subject] = None
            if recommendation and not is_queue_missing:
                recommendation_by_queue_and_subject[queue_and_subject] = (
                    _keep_recommendation_if_due(
                        recommendation, timeline, days, is_newest_case=is_newest_case
                    )
                )
    return [
        recommendation
        for recommendation in recommendation_by_queue_and_subject.values()
        if recommendation
    ]


def _keep_recommendation_if_due(
    recommendation: RecommendedTask, timeline: CaseTimeline, days: Days, *, is_newest_case: bool
) -> RecommendedTask | None:
    """Return the recommendation if `recommend_for_cases` counts its case, else None.

    `is_newest_case` is True if the case is the newest of its queue and symptom. If the case's last
    transition was before `days`, the reason in the result is VALUE_STILL_SET_REASON.
    """
    has_verified_fix = recommendation.kind == WRITE_INTO_TEMPLATE_KIND
    if to_microseconds(timeline.newest_transition.at) < days.start_microseconds:
        return replace(recommendation, why=VALUE_STILL_SET_REASON) if has_verified_fix else None
    has_transition_on_days = bool(timeline.list_transitions(days))
    return (
        recommendation if has_transition_on_days and (is_newest_case or has_verified_fix) else None
    )


def _rank_timeline_by_age(timeline: CaseTimeline) -> tuple[datetime, datetime, str]:
    """Return a sorting key that puts the case that opened first at the beginning."""
    return timeline.opened_at, timeline.newest_transition.at, timeline.newest_transition.case_id


def _find_missing_times(timelines: Sequence[CaseTimeline]) -> dict[str, datetime]:
    """Return the last time at which Mendq found a queue missing, by queue ARN.

    Queues that Mendq never found missing are left out.
    """
    found_missing_at_by_queue: dict[str, datetime] = {}
    for timeline in timelines:
        case = timeline.newest_transition
        if case.symptom == QUEUE_MISSING.name:
            found_missing_at = timeline.opened_at
        elif case.state is State.CLOSED and case.reason == QUEUE_GONE_REASON:
            found_missing_at = case.at
        else:
            continue
        found_missing_at_by_queue[case.queue_arn] = max(
            found_missing_at, found_missing_at_by_queue.get(case.queue_arn, found_missing_at)
        )
    return found_missing_at_by_queue


def _is_about_missing_queue(case: Case, found_missing_at_by_queue: Mapping[str, datetime]) -> bool:
    """Return True if Mendq found the case's queue missing at or after the last transition.

    Return False for a case of the symptom `queue_missing`, whose subject is the missing queue.
    """
    if case.symptom == QUEUE_MISSING.name or case.queue_arn not in found_missing_at_by_queue:
        return False
    return case.at <= found_missing_at_by_queue[case.queue_arn]


def _recommend_for_case(
    timeline: CaseTimeline,
) -> Iterator[tuple[str, RecommendedTask | None]]:
    """Yield the recommendations of a case, each as a pair of its subject and the recommendation.

    The subject is an attribute, or the symptom if the case changes no attribute. The recommendation
    is None if the case leaves nothing to people about the subject; the case still overrules older
    cases then. A declined case yields no pair, so it overrules no case.
    """
    case = timeline.newest_transition
    if case.state is State.DECLINED:
        return
    task_kind = (
        WRITE_INTO_TEMPLATE_KIND if _has_verified_fix(case) else _KIND_BY_STATE.get(case.state)
    )
    steps = [step for step in read_steps(case) if _is_attribute_change(step)]
    if not steps:
        recommendation: RecommendedTask | None = None
        # Without a change there is nothing to write into a template, and nothing to watch.
        if task_kind and task_kind not in {WRITE_INTO_TEMPLATE_KIND, WATCH_KIND}:
            recommendation = _make_recommendation(task_kind, timeline, None)
        yield f"symptom {case.symptom}", recommendation
        return
    is_plan_one_task = task_kind in _KINDS_FOR_WHOLE_PLANS and len(steps) > 1
    for position, step in enumerate(steps):
        recommendation = None
        if task_kind and not is_plan_one_task:
            recommendation = _make_recommendation(task_kind, timeline, step)
        elif task_kind and position == 0:
            recommendation = _make_recommendation(task_kind, timeline, None)
        yield f"attribute {step.attribute}", recommendation


def _has_verified_fix(case: Case) -> bool:
    """Return True if the change was verified, and the case does not say that it was undone."""
    if case.state in _VERIFIED_STATES:
        return True
    was_watched = case.state is State.CLOSED and case.came_from is State.WATCHING
    return was_watched and case.reason not in {QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON}


def _is_attribute_change(step: Step) -> bool:
    """Return True if the step sets an attribute of the queue.

    Return False for a step that makes a DLQ or sends messages back.
    """
    return has_value_in_queue(step.attribute) and step.attribute != CreateDlq.attribute


def _make_recommendation(
    task_kind: str, timeline: CaseTimeline, step: Step | None
) -> RecommendedTask:
    """Return a recommendation about one step of a case, or about the case if `step` is None."""
    case = timeline.newest_transition
    attribute = ""
    value_before = ""
    value_after = ""
    if step:
        attribute = step.attribute
        value_after = step.after
        # If a person replaced a value that Mendq had written, no case has the person's value.
        is_value_replaced_by_person = case.state is State.OVERRIDDEN and case.came_from is not None
        if not is_value_replaced_by_person:
            value_before = _find_value_before(timeline, attribute)
    next_step: Mapping[str, Any] = {}
    if case.state in _STATES_WITH_NEXT_STEP:
        next_step = case.next_step
    return RecommendedTask(
        kind=task_kind,
        why=_WHY_BY_TASK_KIND.get(task_kind) or str(case.state),
        queue_arn=case.queue_arn,
        symptom=case.symptom,
        attribute=attribute,
        before=value_before,
        after=value_after,
        owner=_find_stack(case),
        case_id=case.case_id,
        reason=case.reason,
        next_step=next_step.get("sentence", ""),
        command=next_step.get("command", ""),
    )


def _find_stack(case: Case) -> str:
    """Return the CloudFormation stack of the case's queue, with the queue's logical id if known.

    Return an empty text if the case's evidence names no stack.
    """
    stack_name = case.evidence.get("stack")
    if not stack_name or not isinstance(stack_name, str):
        return ""
    resource = case.evidence.get("resource")
    if not resource or not isinstance(resource, str):
        return f"CloudFormation stack {stack_name}"
    return f"CloudFormation stack {stack_name}, {resource}"


def _find_value_before(timeline: CaseTimeline, attribute: str) -> str:
    """Return the attribute's value before the case's first step for it; empty if there is none.

    A template may still have this value.
    """
    for transition in timeline.transitions:
        for step in read_steps(transition):
            if step.attribute == attribute:
                return step.before
    return ""


def recommend_for_callers(incidents: Iterable[Row]) -> list[RecommendedTask]:
    """Return recommendations for incidents without a case.

    There is one only if they have many incidents or many failed calls.

    There is one recommendation for each caller and symptom whose calls are the caller's own
    mistake, and one for each error code that the catalogue does not know. Incidents with several
    callers give one recommendation for the symptom, which names no caller.
    """
    rows_by_task = defaultdict[tuple[str, str, str], list[Row]](list)
    for row in incidents:
        if row["why"] == "unknown_code":
            rows_by_task[NAME_CODE_KIND, row["symptom"], ""].append(row)
        elif row["why"] == "count_only":
            # If an incident has several callers, it does not say which caller made which calls.
            caller = row["principals"][0] if len(row["principals"]) == 1 else ""
            rows_by_task[FIX_CALLER_KIND, row["symptom"], caller].append(row)
    recommendations: list[RecommendedTask] = []
    for (task_kind, symptom, caller), rows in rows_by_task.items():
        recommendation = _make_caller_recommendation(task_kind, symptom, caller, rows)
        has_many_incidents = recommendation.incidents >= MINIMUM_INCIDENTS
        if has_many_incidents or recommendation.failed_calls >= MINIMUM_FAILED_CALLS:
            recommendations.append(recommendation)
    return recommendations


def recommend_for_findings(findings: Iterable[Sequence[str]]) -> list[RecommendedTask]:
    """Return recommendations for findings of a scan for which Mendq opens no case.

    Each finding is a queue ARN, a symptom and a sentence. Findings of symptoms that are not in
    _TASK_KIND_BY_FINDING_SYMPTOM are left out.
    """
    recommendations: list[RecommendedTask] = []
    for queue_arn, symptom, finding_sentence in findings:
        task_kind = _TASK_KIND_BY_FINDING_SYMPTOM.get(symptom)
        if task_kind:
            recommendation = RecommendedTask(
                task_kind, "found", queue_arn, symptom, reason=finding_sentence
            )
            recommendations.append(recommendation)
    return recommendations


def _make_caller_recommendation(
    task_kind: str, symptom: str, caller: str, rows: Sequence[Row]
) -> RecommendedTask:
    """Return one recommendation for these incidents. It names the queue with the most incidents."""
    counts_by_queue = count_incidents_and_calls_by(rows, "queue_arn")
    worst_queue_arn, _ = min(counts_by_queue.items(), key=rank_by_counts)
    error_codes = sorted({code for row in rows for code in row["error_codes"]})
    return RecommendedTask(
        kind=task_kind,
        why="unknown_code" if task_kind == NAME_CODE_KIND else "count_only",
        queue_arn=worst_queue_arn,
        symptom=symptom,
        owner=caller,
        reason=", ".join(error_codes),
        incidents=len(rows),
        failed_calls=sum(row["failed_calls"] for row in rows),
        queues=len(counts_by_queue),
    )
