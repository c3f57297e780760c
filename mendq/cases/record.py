"""Record a transition: case store, case bucket, then the notification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field, structs

from mendq.aws.clients import put_event
from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable
from mendq.cases.aws_health import HealthEvents, health_lines
from mendq.cases.items import Key, notification_key
from mendq.cases.outbox import AGAIN_AFTER, HELD_BACK
from mendq.cases.transactions import NewTransition
from mendq.cases.view import LOOK_AFTER, AttributeRecord, CaseStoreView
from mendq.catalogue.visibility.needed_timeout import spans_of
from mendq.model.case import TRANSITION_EVENT, Case, Severity, State
from mendq.model.lifecycle import VerificationEvidence, due_at, time_line
from mendq.model.limits import DRILL_TAG, TEAM_TAG
from mendq.notifications import notification
from mendq.notifications.next_steps import next_step
from mendq.notifications.sent import NotificationRecord
from mendq.notifications.text import moment

if TYPE_CHECKING:
    from mendq.cases.context import CaseContext
    from mendq.catalogue.symptom import Symptom
    from mendq.model.facts import Facts


# That another case came to the same before is not this one's news.
_NEWS_OF_ITS_OWN = frozenset({State.ESCALATED, State.EXPIRED})


class Notification(Struct, frozen=True):
    """What there is to say about a queue's case, beyond the case itself.

    `news` tells apart what state and refusal alone would not. Without a symptom nobody is paged.
    """

    symptom: Symptom | None
    facts: Facts
    severity: Severity | None = None
    next_command: str = ""
    first: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    changes: Mapping[str, AttributeRecord] = field(default_factory=dict)
    news: str = ""


def file(case: Case, key: Key, context: CaseContext) -> None:
    """See that the transition at `key` lies in the case bucket, and put an event of it on the bus.

    What was put may be put again. Raises the error of either, CaseStoreUnavailable, or what a
    transition that is none of ours does.
    """
    document = case.document()
    context.case_bucket.put(case.key(), document)
    put_event(context.clients, TRANSITION_EVENT, document)
    context.open_cases.mark_filed(key)


def record_transition(
    case: Case, seen: CaseStoreView, notice: Notification, context: CaseContext, owner: str = ""
) -> Case:
    """The case as it was written down; the claim of `owner`, else our own, ends with it.

    Raises CaseMoved, CaseStoreUnavailable or NotificationNotSent: then the events are to come
    again.
    """
    case = replace(case, next_step=next_step(case, notice.next_command))
    page = _notification_of(case, seen, notice, context)
    announced = replace(case, notified=page is not None, urgent=bool(page and page.urgent))
    due, whose = _due_at(announced, context), owner or context.owner
    written = (context.owner, notice.changes, due, page, context.real_now)
    context.case_store.record(NewTransition(announced, seen, whose, *written))
    with suppress(BotoCoreError, ClientError):  # follow_up puts it there again, and the event
        context.case_bucket.put(announced.key(), announced.document())
    if page and not context.notifier.send(case.queue_arn, case.symptom, page, announced):
        hold_back(announced, context)
    return announced


def _due_at(case: Case, context: CaseContext) -> datetime | None:
    """When it is looked at; soon where people are to be told, for the run may die before."""
    if case.is_final and not case.notified:
        return None
    due = due_at(case, VerificationEvidence(context.settings.timing), case.at)
    return min(due, case.at + LOOK_AFTER) if case.notified else due


def notify_held_up(
    case: Case, seen: CaseStoreView, notice: Notification, context: CaseContext
) -> None:
    """Once, that a case waits to be taken up; raises CaseStoreUnavailable or
    NotificationNotSent.
    """
    if notice.symptom is None or seen.hold_up is None:
        return
    news = f"held_up:{case.case_id}"
    if seen.page and seen.page.says_or_said(news, context.now):
        return
    reason = f"it waits since {moment(seen.hold_up.since)}: {seen.hold_up.reason}"
    waits = replace(case, reason=f"{case.reason}; {reason}")
    record = _record(waits, seen, notice, news, context)
    key = notification_key(case.queue_arn, case.symptom)
    if context.notifier.put(key, record, seen.page):
        context.notifier.send(case.queue_arn, case.symptom, record, case)


def hold_back(case: Case, context: CaseContext) -> None:
    """Say in sum whose pages wait: there are more than people can read; they are tried later.

    First whose page this was: however many others wait, each sum names another.
    """
    context.open_cases.postpone(case, context.now + HELD_BACK)
    callers = context.case_store.spread_to(case.callers, "held_back", context.now)
    account, region = context.settings.account, context.clients.region
    named = dict.fromkeys((*case.callers, *sorted(callers)))
    text = notification.of_held_back(named, account, region)
    news = f"{context.now:%Y-%m-%dT%H:%M}"
    after = HELD_BACK if case.state is State.ESCALATED else AGAIN_AFTER
    context.notifier.send_about_account("held_back", news, text, after)


def _notification_of(
    case: Case, seen: CaseStoreView, notice: Notification, context: CaseContext
) -> NotificationRecord | None:
    """None where nobody is to be paged, or people have had this news; a drill pages nobody."""
    one_case = case.case_id if case.state in _NEWS_OF_ITS_OWN else ""
    news = f"{case.news}:{notice.news}:{one_case}"
    if notice.symptom is None or notice.severity is None or DRILL_TAG in notice.facts.tags:
        return None
    if seen.page and seen.page.has_said(news, context.now):
        return None
    return _record(case, seen, notice, news, context)


def _record(
    case: Case, seen: CaseStoreView, notice: Notification, news: str, context: CaseContext
) -> NotificationRecord:
    symptom, facts = notice.symptom, notice.facts
    assert symptom is not None  # noqa: S101 - without one nobody is paged
    # Those between the opening and the last two are not read for it.
    last_two = [each for each in (seen.case, case) if each and each.case_id == case.case_id]
    details = notification.CaseDetails(
        sentence=symptom.sentence,
        facts=facts,
        last_change=context.recent_changes.last_of(case.queue_arn),
        baselines=context.baselines.of(case.queue_arn),
        next_command=notice.next_command,
        first=notice.first,
        beyond=notice.beyond,
        shown=symptom.shows,
        beside=symptom.beside(facts),
        so_far=time_line(last_two, context.settings.timing),
        spans=spans_of(last_two),
        aws_health=() if symptom.is_of_configuration else aws_health(context, facts),
    )
    text = notification.of_case(replace(case, notified=True), details)
    urgent, at = notice.severity is Severity.URGENT, context.now
    record = NotificationRecord.after(
        seen.page, news, text, urgent=urgent, at=at, about=case.transition
    )
    return structs.replace(record, team=facts.tags.get(TEAM_TAG, ""))


def aws_health(context: CaseContext, facts: Facts | None = None) -> Sequence[str]:
    """Lines for one queue, or for many; a notification goes out without rather than not at all."""
    with suppress(CaseStoreUnavailable, CaseStoreUnreadable):
        events = context.stored(HealthEvents)
        return health_lines(events.open_at(context.now), facts)
    return ()
