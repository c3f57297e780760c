"""Record a transition: in the case store, in the case bucket, then notify people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field, structs

from mendq.aws.clients import put_event
from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable
from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.aws_health import HealthEvents, health_lines
from mendq.cases.items import Key, notification_key
from mendq.cases.transactions import NewTransition
from mendq.cases.view import CaseStoreView
from mendq.catalogue.visibility.needed_timeout import list_need_spans
from mendq.model.case import TRANSITION_EVENT, Case, Severity
from mendq.model.lifecycle import VerificationEvidence, due_at
from mendq.model.limits import DRILL_TAG, TEAM_TAG
from mendq.model.timeline import build_timeline
from mendq.notifications import notification
from mendq.notifications.announcements import (
    RETRY_HELD_BACK_AFTER,
    Announcement,
    Announcements,
    News,
    first_look_at,
    news_of_transition,
    news_of_wait,
    pause_between_sums,
)
from mendq.notifications.next_steps import next_step
from mendq.notifications.sent import NotificationRecord
from mendq.notifications.text import moment

if TYPE_CHECKING:
    from mendq.cases.context import CaseContext
    from mendq.catalogue.symptom import Symptom
    from mendq.model.facts import Facts


class Notification(Struct, frozen=True):
    """What a notification says about a queue's case, in addition to the case itself.

    Args:
        symptom: The case's symptom. None if this version of Mendq does not know it; then `severity`
            must be None as well.
        facts: The queue's facts.
        severity: How urgent the notification is. None if the transition is only recorded and
            nobody is notified: this is the only way to say so.
        next_command: The command that a person types first.
        first: Commands or sentences to show before the plan.
        beyond: What a person may do beyond the plan.
        changes: The records of attributes to store with the transition.
        news: Tells it from other news with the same state and refusal code.
    """

    symptom: Symptom | None
    facts: Facts
    severity: Severity | None = None
    next_command: str = ""
    first: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    changes: Mapping[str, AttributeRecord] = field(default_factory=dict)
    news: str = ""

    def __post_init__(self) -> None:
        if self.severity is not None and self.symptom is None:
            raise ValueError("a notification with a severity needs the symptom that it describes")


def record_transition(
    case: Case, seen: CaseStoreView, notice: Notification, context: CaseContext, owner: str = ""
) -> Case:
    """Record a transition and notify people. Return the case as it was recorded.

    Args:
        case: The case with its new transition.
        seen: What the transition was decided on. Nothing is recorded if the case store differs.
        notice: What there is to say about it.
        context: The invocation.
        owner: Whose claim ends with the transition; by default, the invocation's own.

    Raises:
        CaseMoved: Another run has moved the case.
        CaseStoreUnavailable: The case store does not answer.
        NotificationNotSent: It was recorded, and SNS did not take the notification.
    """
    case = replace(case, next_step=next_step(case, notice.next_command))
    stored = _notification_to_store(case, seen, notice, context)
    announced = replace(
        case, notified=stored is not None, urgent=stored is not None and stored.urgent
    )
    lifecycle_due_at = due_at(announced, VerificationEvidence(context.settings.timing), case.at)
    entry = NewTransition(
        case=announced,
        seen=seen,
        owner=owner or context.owner,
        written_by=context.owner,
        changes=notice.changes,
        due_at=first_look_at(announced, lifecycle_due_at),
        notification=stored,
        claims_now=context.real_now,
    )
    context.case_store.record(entry)
    with suppress(BotoCoreError, ClientError):  # follow_up puts it there later, and the event
        context.case_bucket.put(announced.key(), announced.document())
    if stored is not None:
        is_sent = context.notifier.send(case.queue_arn, case.symptom, stored, announced)
        if not is_sent:
            hold_back_notification(announced, context)
    return announced


def file_transition(case: Case, key: Key, context: CaseContext) -> None:
    """Put the transition into the case bucket and an event of it on the bus, then mark it as filed.

    Filing twice changes nothing. `key` is the transition's item in the case store. Raises the error
    of the bucket or the bus, CaseStoreUnavailable, or the error of a transition that is not ours.
    """
    document = case.document()
    context.case_bucket.put(case.key(), document)
    put_event(context.clients, TRANSITION_EVENT, document)
    context.open_cases.mark_filed(key)


def report_wait(
    case: Case, seen: CaseStoreView, notice: Notification, context: CaseContext
) -> None:
    """Notify people once that a case waits for its next step, and why.

    Raises CaseStoreUnavailable or NotificationNotSent.
    """
    if seen.hold_up is None:
        return
    news = news_of_wait(case, notice.severity)
    if (
        Announcements(seen.notification, context.now).decide_news(news)
        is not Announcement.ANNOUNCE_NOW
    ):
        return
    why = f"it waits since {moment(seen.hold_up.since)}: {seen.hold_up.reason}"
    waiting = replace(case, reason=f"{case.reason}; {why}")
    record = _notification_about(waiting, seen, notice, news, context)
    key = notification_key(case.queue_arn, case.symptom)
    if context.notifier.put(key, record, seen.notification):
        context.notifier.send(case.queue_arn, case.symptom, record, case)


def hold_back_notification(case: Case, context: CaseContext) -> None:
    """Try the case's notification again later, and notify people whose notifications wait.

    The callers of this case come first in the list, so that each sum names others even if many
    wait.
    """
    context.open_cases.postpone(case, context.now + RETRY_HELD_BACK_AFTER)
    all_callers = context.case_store.note_spread(case.callers, "held_back", context.now)
    own_callers_first = dict.fromkeys((*case.callers, *sorted(all_callers)))
    text = notification.describe_held_back(
        own_callers_first, context.settings.account, context.clients.region
    )
    news = f"{context.now:%Y-%m-%dT%H:%M}"
    context.notifier.send_about_account("held_back", news, text, pause_between_sums(case))


def _notification_to_store(
    case: Case, seen: CaseStoreView, notice: Notification, context: CaseContext
) -> NotificationRecord | None:
    """Return the notification of a transition, None if there is nothing to announce."""
    is_drill = DRILL_TAG in notice.facts.tags
    news = news_of_transition(case, notice.severity, distinction=notice.news, is_drill=is_drill)
    if (
        Announcements(seen.notification, context.now).decide_news(news)
        is not Announcement.ANNOUNCE_NOW
    ):
        return None
    return _notification_about(case, seen, notice, news, context)


def _notification_about(
    case: Case, seen: CaseStoreView, notice: Notification, news: News, context: CaseContext
) -> NotificationRecord:
    """Write the notification, ready to be stored."""
    symptom = notice.symptom
    assert symptom is not None  # noqa: S101 - Notification refuses a severity without a symptom
    facts = notice.facts
    # Earlier transitions of the case are not read for a notification.
    last_two = [case]
    if seen.case is not None and seen.case.case_id == case.case_id:
        last_two = [seen.case, case]
    details = notification.CaseDetails(
        sentence=symptom.sentence,
        facts=facts,
        last_change=context.recent_changes.last_of(case.queue_arn),
        baselines=context.baselines.of(case.queue_arn),
        next_command=notice.next_command,
        first=notice.first,
        beyond=notice.beyond,
        shown=symptom.shown_attributes,
        beside=symptom.extra_sections(facts),
        so_far=build_timeline(last_two, context.settings.timing),
        spans=list_need_spans(last_two),
        aws_health=() if symptom.is_of_configuration else aws_health(context, facts),
    )
    record = NotificationRecord.create(
        seen.notification,
        news.key,
        notification.describe_case(replace(case, notified=True), details),
        urgent=notice.severity is Severity.URGENT,
        at=context.now,
        about=case.transition,
    )
    return structs.replace(record, team=facts.tags.get(TEAM_TAG, ""))


def aws_health(context: CaseContext, facts: Facts | None = None) -> Sequence[str]:
    """Return lines about open events of AWS Health, for one queue or for many.

    Return none if the events cannot be read: a notification is sent without them.
    """
    with suppress(CaseStoreUnavailable, CaseStoreUnreadable):
        events = context.stored(HealthEvents)
        return health_lines(events.open_at(context.now), facts)
    return ()
