"""Rules for announcing news about a case."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mendq.model.case import Case, Severity
from mendq.model.evidence import Evidence, Sighting
from mendq.model.mode import Mode
from mendq.model.plan import Refusal, Refuse
from mendq.model.state import FINAL_STATES, State
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


@pytest.mark.parametrize("age", [timedelta(), DAY - MOMENT], ids=["now", "nearly a day"])
def test_news_that_people_had_within_a_day_is_not_announced_again(age: timedelta) -> None:
    announcements = Announcements(make_sent_record(age), NOW)
    assert announcements.decide_case_news(NEWS) is Announcement.ALREADY_ANNOUNCED


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(None, id="nothing"),
        pytest.param(make_sent_record(DAY), id="sent a day ago"),
        pytest.param(make_sent_record(MOMENT, "other news"), id="other news was sent"),
        pytest.param(make_stored_record(MOMENT), id="stored but not sent"),
        pytest.param(make_stored_record(MOMENT).mark_dropped(), id="dropped"),
    ],
)
def test_news_that_people_did_not_have_within_a_day_is_announced(
    last: NotificationRecord | None,
) -> None:
    assert Announcements(last, NOW).decide_case_news(NEWS) is Announcement.ANNOUNCE_NOW


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


def make_news_key(*, distinction: str = "", **over: Any) -> str:
    """Return the key that is the same for news that people already had. `over` changes the case."""
    return make_transition_news(replace(CASE, **over), None, distinction=distinction).key


STATES_ANNOUNCED_FOR_EACH_CASE = (State.ESCALATED, State.EXPIRED)


@pytest.mark.parametrize("state", STATES_ANNOUNCED_FOR_EACH_CASE)
def test_escalated_or_expired_case_is_news_even_after_news_of_another_case_in_that_state(
    state: State,
) -> None:
    assert make_news_key(state=state) != make_news_key(state=state, case_id="another")


@pytest.mark.parametrize("state", sorted({*State} - {*STATES_ANNOUNCED_FOR_EACH_CASE}))
def test_case_in_any_other_state_is_the_same_news_as_an_earlier_case_in_that_state(
    state: State,
) -> None:
    assert make_news_key(state=state) == make_news_key(state=state, case_id="another")


def test_transition_with_another_code_or_other_callers_is_other_news() -> None:
    assert make_news_key(code="frozen") != make_news_key()
    assert make_news_key(distinction="role/a") != make_news_key(distinction="role/b")


def test_transition_with_other_numbers_in_its_reason_is_the_same_news() -> None:
    reasons = ("41 of 60 queues", "42 of 60 queues")
    first, second = (make_news_key(reason=reason) for reason in reasons)
    assert first == second


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
    ],
    ids=["sent", "stored", "stored long ago"],
)
def test_waiting_case_is_not_reported_again_within_a_day_or_while_its_report_is_unsent(
    last: NotificationRecord, expected: Announcement
) -> None:
    assert Announcements(last, NOW).decide_case_news(WAIT) is expected


@pytest.mark.parametrize(
    "last",
    [make_sent_record(DAY, WAIT.key), make_stored_record(MOMENT), make_sent_record(MOMENT)],
    ids=["sent a day ago", "other stored", "other sent"],
)
def test_waiting_case_is_reported_again_after_a_day_and_whatever_other_news_there_was(
    last: NotificationRecord,
) -> None:
    assert Announcements(last, NOW).decide_case_news(WAIT) is Announcement.ANNOUNCE_NOW


def test_waiting_case_is_reported_after_one_hour_and_not_before() -> None:
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


def decide_stored(record: NotificationRecord | None, case: Case | None = CASE) -> Announcement:
    """Decide what happens to a stored notification, whose case is in this state now."""
    return Announcements(record, NOW).decide_stored_notification(case)


@pytest.mark.parametrize(
    "record",
    [None, make_sent_record(LATE), make_stored_record(LATE).mark_dropped()],
    ids=["none", "sent", "dropped"],
)
def test_notification_that_was_sent_or_dropped_or_never_stored_is_not_sent(
    record: NotificationRecord | None,
) -> None:
    assert decide_stored(record) is Announcement.NOTHING_TO_ANNOUNCE


@pytest.mark.parametrize(
    "record",
    [
        make_stored_record(timedelta()),
        make_stored_record(EXCLUSIVE_SENDING_TIME),
        make_stored_record(EXCLUSIVE_SENDING_TIME, since=NOW - DAY),
    ],
    ids=["just stored", "two minutes ago", "two minutes ago, of news a day old"],
)
def test_stored_notification_is_left_to_the_run_that_sends_it_for_its_exclusive_time(
    record: NotificationRecord,
) -> None:
    assert decide_stored(record) is Announcement.BEING_SENT


@pytest.mark.parametrize(
    "record",
    [make_stored_record(LATE, since=NOW - DAY), make_stored_record(DAY, since=None)],
    ids=["first try a day ago", "stored a day ago"],
)
def test_stored_notification_about_news_a_day_old_is_not_sent(record: NotificationRecord) -> None:
    assert decide_stored(record) is Announcement.NOTHING_TO_ANNOUNCE


@pytest.mark.parametrize(
    "record",
    [
        make_stored_record(LATE, since=NOW - DAY + MOMENT),
        make_stored_record(DAY - MOMENT, since=None),
        make_stored_record(LATE),
    ],
    ids=["first try nearly a day ago", "stored nearly a day ago", "stored by a run that died"],
)
def test_stored_notification_about_news_under_a_day_old_is_sent_once_its_exclusive_time_is_over(
    record: NotificationRecord,
) -> None:
    assert decide_stored(record) is Announcement.SEND_STORED


ANOTHER_CASE = replace(CASE, case_id="another")


@pytest.mark.parametrize("case", [None, MOVED, ANOTHER_CASE], ids=["gone", "moved", "another"])
def test_stored_notification_is_dropped_if_its_case_moved_or_is_gone(case: Case | None) -> None:
    assert decide_stored(make_stored_record(LATE), case) is Announcement.DROP_STORED


@pytest.mark.parametrize("case", [None, MOVED, ANOTHER_CASE], ids=["gone", "moved", "another"])
def test_stored_notification_about_no_case_is_sent_whatever_happened_to_cases(
    case: Case | None,
) -> None:
    assert decide_stored(make_stored_record(LATE, about=""), case) is Announcement.SEND_STORED


def test_only_a_notification_that_is_being_sent_or_held_back_is_pending() -> None:
    """A pending notification keeps a final case in the index of cases to follow up."""
    pending = [announcement for announcement in Announcement if announcement.is_pending]
    assert pending == [Announcement.BEING_SENT, Announcement.HELD_BACK]


def decide_account_news(last: NotificationRecord | None) -> Announcement:
    return Announcements(last, NOW).decide_account_news(NEWS.key, ACCOUNT_NEWS_PAUSE)


def test_account_news_that_people_had_within_a_day_is_not_announced_again() -> None:
    assert decide_account_news(make_sent_record(DAY - MOMENT)) is Announcement.ALREADY_ANNOUNCED


@pytest.mark.parametrize(
    "last",
    [
        make_sent_record(ACCOUNT_NEWS_PAUSE - MOMENT, "other"),
        make_stored_record(EXCLUSIVE_SENDING_TIME, about=""),
    ],
    ids=["other news was sent within the hour", "another run is sending"],
)
def test_account_news_waits_an_hour_after_other_news_and_while_another_run_is_sending(
    last: NotificationRecord,
) -> None:
    assert decide_account_news(last) is Announcement.TOO_SOON


def test_stored_account_news_is_sent_once_the_exclusive_time_of_its_run_is_over() -> None:
    assert decide_account_news(make_stored_record(LATE, about="")) is Announcement.SEND_STORED


@pytest.mark.parametrize(
    "last",
    [
        None,
        make_sent_record(DAY),
        make_sent_record(ACCOUNT_NEWS_PAUSE, "other"),
        make_stored_record(2 * DAY, about=""),
    ],
    ids=["nothing", "sent a day ago", "other news an hour ago", "stored two days ago"],
)
def test_account_news_is_announced_a_day_after_the_same_news_or_an_hour_after_other_news(
    last: NotificationRecord | None,
) -> None:
    assert decide_account_news(last) is Announcement.ANNOUNCE_NOW


QUEUE_THAT_PEOPLE_HEARD_OF = {"old": NOW}


@pytest.mark.parametrize("announced", [{}, QUEUE_THAT_PEOPLE_HEARD_OF], ids=["new", "known"])
def test_urgent_notifications_leave_a_reserve_of_the_hourly_budget_for_new_callers(
    announced: dict[str, datetime],
) -> None:
    budget = HourlyBudget.of(make_stored_record(MOMENT, urgent=True, announced=announced))
    expected = NOTIFICATIONS_PER_HOUR - NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS
    assert budget.most_for_all_callers == expected


@pytest.mark.parametrize("announced", [{}, QUEUE_THAT_PEOPLE_HEARD_OF], ids=["new", "known"])
def test_notifications_that_are_not_urgent_may_use_the_whole_hourly_budget(
    announced: dict[str, datetime],
) -> None:
    budget = HourlyBudget.of(make_stored_record(MOMENT, urgent=False, announced=announced))
    assert budget.most_for_all_callers == NOTIFICATIONS_PER_HOUR


@pytest.mark.parametrize(
    ("announced", "most"), [({}, NOTIFICATIONS_PER_HOUR), (QUEUE_THAT_PEOPLE_HEARD_OF, 0)]
)
@pytest.mark.parametrize("urgent", [False, True])
def test_reserve_for_new_callers_is_only_for_queues_that_people_have_not_heard_of(
    urgent: bool, announced: dict[str, datetime], most: int
) -> None:
    budget = HourlyBudget.of(make_stored_record(MOMENT, urgent=urgent, announced=announced))
    assert budget.most_for_new_callers == most


@pytest.mark.parametrize("state", list(State))
def test_summary_pause_is_ten_minutes_if_an_escalation_is_held_back_and_an_hour_otherwise(
    state: State,
) -> None:
    expected = (
        RETRY_HELD_BACK_NOTIFICATION_AFTER if state is State.ESCALATED else ACCOUNT_NEWS_PAUSE
    )
    assert choose_pause_between_summaries(replace(CASE, state=state)) == expected


DUE_TIMES = pytest.mark.parametrize(
    "due_at", [CASE.at, CASE.at + timedelta(hours=7)], ids=["at once", "in 7 hours"]
)


@DUE_TIMES
@pytest.mark.parametrize("state", list(State))
def test_case_with_a_notification_is_checked_after_two_minutes_at_the_latest(
    state: State, due_at: datetime
) -> None:
    """The run may have died before it sent the notification."""
    notified = replace(CASE, state=state, notified=True)
    expected = min(due_at, CASE.at + CHECK_NOTIFICATION_SENT_AFTER)
    assert find_first_check_time(notified, due_at) == expected


@DUE_TIMES
@pytest.mark.parametrize("state", sorted({*State} - FINAL_STATES))
def test_open_case_without_a_notification_is_checked_when_it_is_due(
    state: State, due_at: datetime
) -> None:
    silent = replace(CASE, state=state, notified=False)
    assert find_first_check_time(silent, due_at) == due_at


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_final_case_without_a_notification_is_never_checked(state: State) -> None:
    assert find_first_check_time(replace(CASE, state=state, notified=False), CASE.at) is None


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
