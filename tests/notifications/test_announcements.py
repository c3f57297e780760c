"""Rules for announcing news about a case."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mendq.model.case import Severity
from mendq.model.evidence import Evidence, Sighting
from mendq.model.mode import Mode
from mendq.model.plan import Refusal, Refuse
from mendq.model.state import State
from mendq.notifications.announcements import (
    ACCOUNT_NEWS_PAUSE,
    CHECK_NOTIFICATION_SENT_AFTER,
    EXCLUSIVE_SENDING_TIME,
    NEW_CALLERS_REPORT_PAUSE,
    NOTIFICATIONS_PER_HOUR,
    NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS,
    REPORT_WAITING_CASE_AFTER,
    RETRY_HELD_BACK_NOTIFICATION_AFTER,
    Announcement,
    Announcements,
    HourlyBudget,
    News,
    choose_pause_between_summaries,
    choose_severity,
    find_first_check_time,
    make_transition_news,
    make_waiting_case_news,
    must_report_mass_symptom,
    must_report_new_callers,
    must_report_waiting_case,
)
from mendq.notifications.sent import MOST_REMEMBERED_NEWS, NotificationRecord, NotificationText
from tests.notifications.pages import CASE, NOW

MOMENT = timedelta(seconds=1)
DAY = timedelta(hours=24)
TEXT = NotificationText("subject", "body")
PROPOSED = replace(CASE, state=State.PROPOSED)
NEWS = make_transition_news(PROPOSED, Severity.INFO)


def make_stored_record(age: timedelta, key: str = NEWS.key, **over: Any) -> NotificationRecord:
    """Return a notification that was stored at this age and not sent."""
    record = NotificationRecord.create(
        None, key, TEXT, urgent=False, at=NOW - age, about=CASE.transition
    )
    return structs.replace(record, **over)


def make_sent_record(age: timedelta, key: str = NEWS.key) -> NotificationRecord:
    """Return a notification that people got at this age."""
    return make_stored_record(age, key).mark_sent()


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (make_sent_record(DAY - MOMENT), Announcement.ALREADY_ANNOUNCED),
        (make_sent_record(timedelta()), Announcement.ALREADY_ANNOUNCED),
        (make_sent_record(DAY), Announcement.ANNOUNCE_NOW),
        (make_sent_record(MOMENT, "other news"), Announcement.ANNOUNCE_NOW),
        (make_stored_record(MOMENT), Announcement.ANNOUNCE_NOW),
        (make_stored_record(MOMENT).mark_dropped(), Announcement.ANNOUNCE_NOW),
        (None, Announcement.ANNOUNCE_NOW),
    ],
)
def test_news_is_announced_unless_people_had_it_within_a_day(
    last: NotificationRecord | None, expected: Announcement
) -> None:
    assert Announcements(last, NOW).decide_case_news(NEWS) is expected


@pytest.mark.parametrize("last", [None, make_sent_record(DAY), make_stored_record(MOMENT)])
@pytest.mark.parametrize(
    "news",
    [
        make_transition_news(PROPOSED, None),
        make_transition_news(PROPOSED, Severity.URGENT, is_drill=True),
        make_transition_news(replace(CASE, state=State.ESCALATED), Severity.URGENT, is_drill=True),
    ],
)
def test_drill_or_news_without_severity_is_never_announced(
    news: News, last: NotificationRecord | None
) -> None:
    assert Announcements(last, NOW).decide_case_news(news) is Announcement.NOTHING_TO_ANNOUNCE


@pytest.mark.parametrize("state", list(State))
def test_only_escalated_and_expired_news_keys_differ_between_cases(state: State) -> None:
    one = replace(CASE, state=state)
    another = replace(one, case_id="another")
    same_key = make_transition_news(one, None).key == make_transition_news(another, None).key
    assert same_key is (state not in (State.ESCALATED, State.EXPIRED))


def test_news_key_depends_on_code_and_distinction_but_not_on_the_reason() -> None:
    def key(distinction: str = "", **over: Any) -> str:
        return make_transition_news(replace(CASE, **over), None, distinction=distinction).key

    assert key(reason="41 of 60 queues") == key(reason="42 of 60 queues")
    assert key(code="frozen") != key()
    assert key("role/a") != key("role/b")


def test_two_kinds_of_news_that_alternate_are_each_announced_once_a_day() -> None:
    record: NotificationRecord | None = None
    announced: list[tuple[str, int]] = []
    for hour in range(30):
        now = NOW + timedelta(hours=hour)
        key = ("one", "two")[hour % 2]
        if Announcements(record, now).decide_case_news(News(key, Severity.INFO)) is (
            Announcement.ANNOUNCE_NOW
        ):
            announced.append((key, hour))
            record = NotificationRecord.create(record, key, TEXT, urgent=False, at=now).mark_sent()
    assert announced == [("one", 0), ("two", 1), ("one", 24), ("two", 25)]


WAIT = make_waiting_case_news(CASE, Severity.INFO)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (make_sent_record(MOMENT, WAIT.key), Announcement.ALREADY_ANNOUNCED),
        (make_stored_record(MOMENT, WAIT.key), Announcement.ALREADY_STORED),
        (make_stored_record(2 * DAY, WAIT.key), Announcement.ALREADY_STORED),
        (make_sent_record(DAY, WAIT.key), Announcement.ANNOUNCE_NOW),
        (make_stored_record(MOMENT), Announcement.ANNOUNCE_NOW),
        (make_sent_record(MOMENT), Announcement.ANNOUNCE_NOW),
    ],
)
def test_waiting_case_is_reported_once_and_a_stored_report_counts(
    last: NotificationRecord, expected: Announcement
) -> None:
    assert Announcements(last, NOW).decide_case_news(WAIT) is expected


def test_waiting_case_is_reported_after_one_hour() -> None:
    assert not must_report_waiting_case(NOW - REPORT_WAITING_CASE_AFTER + MOMENT, NOW)
    assert must_report_waiting_case(NOW - REPORT_WAITING_CASE_AFTER, NOW)


MASS_SYMPTOM = Refuse("mass_symptom", "many queues show it", silent_in_observe=True)


@pytest.mark.parametrize(
    ("refusal", "mode", "is_drill"),
    [
        (None, Mode.HEAL, False),
        (Refuse("frozen", "a change freeze"), Mode.HEAL, False),
        (MASS_SYMPTOM, Mode.OBSERVE, False),
        (MASS_SYMPTOM, Mode.HEAL, True),
    ],
)
def test_no_mass_symptom_is_reported_for_other_refusals_drills_and_observed_queues(
    refusal: Refusal | None, mode: Mode, is_drill: bool
) -> None:
    assert not must_report_mass_symptom(refusal, mode, is_drill=is_drill)


def test_mass_symptom_of_a_managed_queue_is_reported() -> None:
    assert must_report_mass_symptom(MASS_SYMPTOM, Mode.PROPOSE, is_drill=False)


def test_escalation_that_another_notification_reports_has_no_severity() -> None:
    escalated_case = replace(CASE, state=State.ESCALATED)
    severity = choose_severity(escalated_case, Mode.HEAL, is_about_plan=True)
    assert severity is Severity.URGENT
    severity = choose_severity(
        escalated_case, Mode.HEAL, is_about_plan=True, is_reported_elsewhere=True
    )
    assert severity is None


def test_new_callers_are_reported_an_hour_after_the_case_moved_if_their_calls_suffice() -> None:
    one_call = Evidence((Sighting.from_scan(NOW),))
    assert one_call.is_sufficient
    moved_case = replace(CASE, at=NOW - NEW_CALLERS_REPORT_PAUSE + MOMENT)
    assert not must_report_new_callers(moved_case, one_call, NOW)
    moved_case = replace(CASE, at=NOW - NEW_CALLERS_REPORT_PAUSE)
    assert not must_report_new_callers(moved_case, Evidence(), NOW)
    assert must_report_new_callers(moved_case, one_call, NOW)


LATE = EXCLUSIVE_SENDING_TIME + MOMENT
MOVED = replace(CASE, n=CASE.n + 1)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, Announcement.NOTHING_TO_ANNOUNCE),
        (make_sent_record(LATE), Announcement.NOTHING_TO_ANNOUNCE),
        (make_stored_record(LATE).mark_dropped(), Announcement.NOTHING_TO_ANNOUNCE),
        (make_stored_record(timedelta()), Announcement.BEING_SENT),
        (make_stored_record(EXCLUSIVE_SENDING_TIME), Announcement.BEING_SENT),
        (make_stored_record(EXCLUSIVE_SENDING_TIME, since=NOW - DAY), Announcement.BEING_SENT),
        (make_stored_record(LATE, since=NOW - DAY), Announcement.NOTHING_TO_ANNOUNCE),
        (make_stored_record(DAY, since=None), Announcement.NOTHING_TO_ANNOUNCE),
        (make_stored_record(LATE, since=NOW - DAY + MOMENT), Announcement.SEND_STORED),
        (make_stored_record(DAY - MOMENT, since=None), Announcement.SEND_STORED),
        (make_stored_record(LATE), Announcement.SEND_STORED),
        (make_stored_record(LATE, about=""), Announcement.SEND_STORED),
        (make_stored_record(LATE, about=MOVED.transition), Announcement.DROP_STORED),
    ],
)
def test_stored_notification_is_sent_if_its_run_is_over_and_its_news_is_young(
    last: NotificationRecord | None, expected: Announcement
) -> None:
    assert Announcements(last, NOW).decide_stored_notification(CASE) is expected


@pytest.mark.parametrize("case", [None, MOVED, replace(CASE, case_id="another")])
def test_stored_notification_is_dropped_if_its_case_moved_or_is_gone(case: Any) -> None:
    assert (
        Announcements(make_stored_record(LATE), NOW).decide_stored_notification(case)
        is Announcement.DROP_STORED
    )
    about_none = Announcements(make_stored_record(LATE, about=""), NOW)
    assert about_none.decide_stored_notification(case) is Announcement.SEND_STORED


def test_only_a_notification_being_sent_or_held_back_keeps_a_final_case_in_the_index() -> None:
    pending = [announcement for announcement in Announcement if announcement.is_pending]
    assert pending == [Announcement.BEING_SENT, Announcement.HELD_BACK]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (make_sent_record(DAY - MOMENT), Announcement.ALREADY_ANNOUNCED),
        (make_sent_record(ACCOUNT_NEWS_PAUSE - MOMENT, "other"), Announcement.TOO_SOON),
        (make_stored_record(EXCLUSIVE_SENDING_TIME, about=""), Announcement.TOO_SOON),
        (make_stored_record(LATE, about=""), Announcement.SEND_STORED),
        (make_stored_record(2 * DAY, about=""), Announcement.ANNOUNCE_NOW),
        (make_sent_record(ACCOUNT_NEWS_PAUSE, "other"), Announcement.ANNOUNCE_NOW),
        (make_sent_record(DAY), Announcement.ANNOUNCE_NOW),
        (None, Announcement.ANNOUNCE_NOW),
    ],
)
def test_account_news_is_announced_once_a_day_and_other_news_once_an_hour(
    last: NotificationRecord | None, expected: Announcement
) -> None:
    decided = Announcements(last, NOW).decide_account_news(NEWS.key, ACCOUNT_NEWS_PAUSE)
    assert decided is expected


@pytest.mark.parametrize(
    ("urgent", "announced", "expected"),
    [
        (False, {}, (NOTIFICATIONS_PER_HOUR, NOTIFICATIONS_PER_HOUR)),
        (False, {"old": NOW}, (NOTIFICATIONS_PER_HOUR, 0)),
        (
            True,
            {},
            (
                NOTIFICATIONS_PER_HOUR - NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS,
                NOTIFICATIONS_PER_HOUR,
            ),
        ),
        (True, {"old": NOW}, (NOTIFICATIONS_PER_HOUR - NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS, 0)),
    ],
)
def test_budget_reserves_urgent_notifications_for_new_callers_and_unknown_queues(
    urgent: bool, announced: dict[str, datetime], expected: tuple[int, int]
) -> None:
    budget = HourlyBudget.of(make_stored_record(MOMENT, urgent=urgent, announced=announced))
    assert (budget.most_for_all_callers, budget.most_for_new_callers) == expected


@pytest.mark.parametrize("state", list(State))
def test_summary_pause_is_ten_minutes_only_if_an_escalation_is_held_back(state: State) -> None:
    expected = (
        RETRY_HELD_BACK_NOTIFICATION_AFTER if state is State.ESCALATED else ACCOUNT_NEWS_PAUSE
    )
    assert choose_pause_between_summaries(replace(CASE, state=state)) == expected


@pytest.mark.parametrize("hours", [0, 7])
@pytest.mark.parametrize("state", list(State))
def test_notified_case_is_checked_after_two_minutes_and_a_silent_final_case_never(
    state: State, hours: int
) -> None:
    silent = replace(CASE, state=state, notified=False)
    due_at = CASE.at + timedelta(hours=hours)
    assert find_first_check_time(silent, due_at) == (None if silent.is_final else due_at)
    notified = replace(silent, notified=True)
    assert find_first_check_time(notified, due_at) == min(
        due_at, CASE.at + CHECK_NOTIFICATION_SENT_AFTER
    )


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=60))
def test_same_news_is_never_announced_twice_within_a_day(steps: list[tuple[int, int]]) -> None:
    """For any order of at most ten kinds of news."""
    record: NotificationRecord | None = None
    now = NOW
    announced_at: dict[str, datetime] = {}
    for hours, kind in steps:
        now += timedelta(hours=hours)
        key = f"kind {kind % MOST_REMEMBERED_NEWS}"
        news = News(key, Severity.INFO)
        if Announcements(record, now).decide_case_news(news) is Announcement.ANNOUNCE_NOW:
            assert now - announced_at.get(key, now - DAY) >= DAY
            announced_at[key] = now
            record = NotificationRecord.create(record, key, TEXT, urgent=False, at=now).mark_sent()
