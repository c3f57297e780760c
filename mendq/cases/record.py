"""Record a case's transition in the case store and the case bucket, then notify people."""

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
from mendq.cases.aws_health import HealthEvents, describe_health_events
from mendq.cases.items import Key, notification_key
from mendq.cases.transactions import NewTransition
from mendq.cases.view import CaseStoreView
from mendq.catalogue.visibility.needed_timeout import list_need_spans
from mendq.model.case import TRANSITION_EVENT, Case, Severity
from mendq.model.lifecycle import VerificationEvidence, due_at
from mendq.model.tags import DRILL_TAG, TEAM_TAG
from mendq.model.timeline import build_timeline
from mendq.notifications.announcements import (
    RETRY_HELD_BACK_NOTIFICATION_AFTER,
    Announcement,
    Announcements,
    News,
    choose_pause_between_summaries,
    find_first_check_time,
    make_transition_news,
    make_waiting_case_news,
)
from mendq.notifications.next_steps import choose_next_step
from mendq.notifications.notification import (
    CaseDetails,
    describe_case,
    describe_held_back_notifications,
)
from mendq.notifications.sent import NotificationRecord
from mendq.notifications.text import format_utc_time

if TYPE_CHECKING:
    from mendq.cases.context import CaseContext
    from mendq.catalogue.symptom import Symptom
    from mendq.model.facts import Facts


class Notification(Struct, frozen=True):
    """The content of a notification about a case, besides the case itself.

    Args:
        symptom: The case's symptom. None if this version of Mendq does not know it; then `severity`
            must be None as well.
        facts: The queue's facts. They may be empty if `severity` is None.
        severity: How urgent the notification is. None to record the transition without notifying
            people.
        next_command: The command that the refusal itself names. If it is empty, `choose_next_step`
            chooses a step by the case's code or state.
        advice_before_change: Commands or sentences to show before the plan.
        advice_after_change: Commands or sentences to show after the plan, about what else a person
            can do.
        new_records: The records of attributes to store with the transition, by attribute name. They
            are stored even without a notification.
        news_distinction: Extra part of the key that recognizes repeats. Two notifications with the
            same state and refusal code are both sent if this text differs.
    """

    symptom: Symptom | None
    facts: Facts
    severity: Severity | None = None
    next_command: str = ""
    advice_before_change: tuple[str, ...] = ()
    advice_after_change: tuple[str, ...] = ()
    new_records: Mapping[str, AttributeRecord] = field(default_factory=dict)
    news_distinction: str = ""

    def __post_init__(self) -> None:
        if self.severity is not None and self.symptom is None:
            raise ValueError("a notification with a severity needs the symptom that it describes")


def record_transition(
    case: Case,
    view: CaseStoreView,
    notification: Notification,
    context: CaseContext,
    owner: str = "",
) -> Case:
    """Record a transition and notify people. Return the case as it was recorded.

    Args:
        case: The case with its new transition.
        view: The view that the transition was decided on.
        notification: The content of the notification, and how urgent it is.
        context: The invocation.
        owner: The token whose claim ends with the transition. By default, the invocation's own.

    Raises:
        CaseMoved: Another run has moved the case since `view` was read. Nothing was recorded.
        CaseStoreUnavailable: The case store does not answer. The transition may be recorded
            already, and people may have its notification.
        NotificationNotSent: The transition was recorded, but SNS or EventBridge did not accept its
            notification, or the summary of postponed notifications. The subclass EventNotPut means
            that people have it, and only the event is missing.
        CaseStoreUnreadable: The transition was recorded and its notification postponed, but the
            stored summary of postponed notifications could not be read.
    """
    case = replace(case, next_step=choose_next_step(case, notification.next_command))
    notification_record = _make_notification_to_store(case, view, notification, context)
    announced_case = replace(
        case,
        notified=notification_record is not None,
        urgent=notification_record is not None and notification_record.urgent,
    )
    lifecycle_due_at = due_at(
        announced_case, VerificationEvidence(context.settings.timing), case.at
    )
    new_transition = NewTransition(
        case=announced_case,
        view=view,
        owner=owner or context.owner,
        written_by=context.owner,
        new_records=notification.new_records,
        due_at=find_first_check_time(announced_case, lifecycle_due_at),
        notification=notification_record,
        # `now` may be set to a later time, but claims end by the real time.
        now_for_claims=context.real_now,
    )
    context.case_store.record(new_transition)
    # If this fails, follow_up copies the transition to the bucket later. It also sends the event.
    with suppress(BotoCoreError, ClientError):
        context.case_bucket.put(announced_case.key(), announced_case.document())
    if notification_record is not None:
        is_sent = context.notifier.send(
            case.queue_arn, case.symptom, notification_record, announced_case
        )
        if not is_sent:
            hold_back_notification(announced_case, context)
    return announced_case


def file_transition(case: Case, item_key: Key, context: CaseContext) -> None:
    """Copy a transition to the case bucket, put an event about it on the bus, and mark it as filed.

    Filing a transition again writes the same object and sends the event again.

    Args:
        case: The transition.
        item_key: The key of the transition's item in the case store.
        context: The invocation.

    Raises:
        ClientError, BotoCoreError: S3 or EventBridge did not accept it.
        CaseStoreUnavailable: The case store does not answer.
        ValueError: The transition names no queue ARN.
    """
    document = case.document()
    context.case_bucket.put(case.key(), document)
    put_event(context.clients, TRANSITION_EVENT, document)
    context.open_cases.mark_transition_filed(item_key)


def report_wait(
    case: Case, view: CaseStoreView, notification: Notification, context: CaseContext
) -> None:
    """Notify people that a case waits for its next write, and why.

    Do nothing if the case does not wait, if `notification` has no severity, if people were notified
    of the wait within the last 24 hours, or if that notification is stored and will be sent.

    Raises:
        CaseStoreUnavailable: The case store does not answer.
        NotificationNotSent: SNS did not accept the notification.
    """
    if view.hold_up is None:
        return
    news = make_waiting_case_news(case, notification.severity)
    if (
        Announcements(view.notification, context.now).decide_case_news(news)
        is not Announcement.ANNOUNCE_NOW
    ):
        return
    wait_text = (
        f"it waits since {format_utc_time(view.hold_up.waiting_since)}: {view.hold_up.reason}"
    )
    waiting_case = replace(case, reason=f"{case.reason}; {wait_text}")
    notification_record = _make_notification_record(waiting_case, view, notification, news, context)
    item_key = notification_key(case.queue_arn, case.symptom)
    if context.notifier.store(item_key, notification_record, view.notification):
        context.notifier.send(case.queue_arn, case.symptom, notification_record, case)


def hold_back_notification(case: Case, context: CaseContext) -> None:
    """Postpone the case's notification, and send one summary of all postponed notifications.

    The summary names the callers whose notifications were postponed within the last hour. The
    number of names is limited, so the callers of this case come first. A summary is sent only if
    the last one is older than `choose_pause_between_summaries` says.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable: The case store does not answer, or one of its
            items cannot be read.
        NotificationNotSent: SNS did not accept the summary.
    """
    context.open_cases.postpone(case, context.now + RETRY_HELD_BACK_NOTIFICATION_AFTER)
    held_back_callers = context.case_store.note_spread(case.callers, "held_back", context.now)
    callers_own_first = dict.fromkeys((*case.callers, *sorted(held_back_callers)))
    summary = describe_held_back_notifications(
        callers_own_first, context.settings.account, context.clients.region
    )
    news_key = f"{context.now:%Y-%m-%dT%H:%M}"
    context.notifier.send_about_account(
        "held_back", news_key, summary, choose_pause_between_summaries(case)
    )


def _make_notification_to_store(
    case: Case, view: CaseStoreView, notification: Notification, context: CaseContext
) -> NotificationRecord | None:
    """Return the notification to store with a transition; None if people need not be notified."""
    is_drill = DRILL_TAG in notification.facts.tags
    news = make_transition_news(
        case, notification.severity, distinction=notification.news_distinction, is_drill=is_drill
    )
    if (
        Announcements(view.notification, context.now).decide_case_news(news)
        is not Announcement.ANNOUNCE_NOW
    ):
        return None
    return _make_notification_record(case, view, notification, news, context)


def _make_notification_record(
    case: Case, view: CaseStoreView, notification: Notification, news: News, context: CaseContext
) -> NotificationRecord:
    """Return the record of a notification about a case, with its text."""
    symptom = notification.symptom
    assert symptom is not None  # noqa: S101 - Notification refuses a severity without a symptom
    facts = notification.facts
    # The timeline shows this transition and the one before. Earlier ones are not read for it.
    last_two_transitions = [case]
    if view.case is not None and view.case.case_id == case.case_id:
        last_two_transitions = [view.case, case]
    case_details = CaseDetails(
        sentence=symptom.sentence,
        facts=facts,
        last_change=context.recent_change_reader.find_last_change(case.queue_arn),
        baselines=context.baselines.load(case.queue_arn),
        refusal_command=notification.next_command,
        advice_before_change=notification.advice_before_change,
        advice_after_change=notification.advice_after_change,
        always_shown_attributes=symptom.shown_attributes,
        symptom_sections=symptom.extra_sections(facts),
        timeline=build_timeline(last_two_transitions, context.settings.timing),
        named_time_spans=list_need_spans(last_two_transitions),
        aws_health=() if symptom.is_of_configuration else list_aws_health_lines(context, facts),
    )
    notification_record = NotificationRecord.create(
        view.notification,
        news.key,
        describe_case(replace(case, notified=True), case_details),
        urgent=notification.severity is Severity.URGENT,
        at=context.now,
        about=case.transition,
    )
    return structs.replace(notification_record, team=facts.tags.get(TEAM_TAG, ""))


def list_aws_health_lines(context: CaseContext, facts: Facts | None = None) -> Sequence[str]:
    """Return lines about open events of AWS Health, for a notification.

    `facts` is None for a notification about many queues. The result is empty if there are no open
    events. It is empty also if they cannot be read, so that the notification is sent without them.
    """
    with suppress(CaseStoreUnavailable, CaseStoreUnreadable):
        health_events = context.open_store(HealthEvents)
        return describe_health_events(health_events.list_open_events(context.now), facts)
    return ()
