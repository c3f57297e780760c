"""Decide whether people must still hear about a case.

The module is pure. `Announcements` holds the last notification about one symptom of one queue, and
the time. Each of its methods returns an `Announcement`, and the caller acts on it:

- `decide_case_news`: a case has moved, or has waited for an hour. `mendq.cases.record` stores the
  notification and sends it.
- `decide_stored_notification`: a run looks at a case whose notification is stored.
  `mendq.cases.outbox` sends or drops it, and `mendq.follow_up` looks at the case again or takes it
  out of the index of open cases.
- `decide_account_news`: the news is about the account, not about one queue (a mass symptom, a
  flood, held back notifications, a lost probe). `mendq.cases.outbox` sends it.

The rules:

1. News without a severity is only recorded. `choose_severity` gives a severity to the states that a
   person may have to act on. A queue with the drill tag notifies nobody, because nobody may be
   woken for a drill. The exception is the report of rule 10, which does not read the tag.

2. The same news is announced once within 24 hours, also if two kinds of news alternate. A consumer
   that keeps failing repeats its news every minute, and a person who gets the same text again
   stops reading. State, refusal code and the caller's own distinction say what is the same. The
   numbers in a reason do not.

3. An escalation and an expired approval are news of their own for each case. Each waits for a
   person, and an earlier case that ended the same way does not tell them about this one.

4. A notification is stored before it is sent; the notification of a transition is stored in the
   transaction that records it. So a run that dies cannot lose it. For 90 seconds only the run that
   stored it sends it; after that, any run may. People get it twice if SNS took it and this could
   not be stored, for example because the run died. A team gets it twice also if its topic took it
   and the other topic did not.

5. A stored notification is dropped if its case has moved since. What it asks for may not be
   possible any more, and the new transition has news of its own. If that news is announced, it
   takes the place of the stored notification.

6. A stored notification that could not be sent for 24 hours is not sent any more. The queue may
   have changed since, and the case is still in `mendq cases` and in the weekly report.

7. Each severity has 20 notifications an hour, because people do not read more. Of the urgent
   ones, 10 are reserved: for the first notification about a symptom on a queue, and only if it
   names a caller that had none in this hour. So one caller with many queues cannot keep back
   another team's first notification.

8. A notification for which the hour has no budget left is held back, and tried again every 10
   minutes until it is sent. A summary names the callers whose notifications wait. It is sent every
   10 minutes if an escalation waits, else every hour.

9. follow_up looks at a case until its notification is sent, even if the case has ended. It looks
   first after 2 minutes, because the run that recorded the transition may have died.

10. A case that has waited for an hour for its next step is reported, and again after 24 hours if
    it still waits (rule 2). Shorter waits end without a person: a cooldown passes, a freeze ends.
    If the report is stored and not sent yet, no second one is stored: the case has not moved, so
    the first one is still right.

11. The same news about the account is announced once within 24 hours. Different news of one
    subject, such as a symptom, is announced at most once an hour; the summary of rule 8 may come
    every 10 minutes. The 20 an hour do not limit it, because it may say that others are held back.

12. Lost probes are announced once, when two in a row were lost, and not again before a probe has
    arrived. Until then nothing is new, and the alarm on lost probes stays on. Rule 11 would repeat
    the news after 24 hours. So the probe's item stores that this loss was announced, and
    `must_report_lost_probes` asks for it.

13. A case sends no notification if another notification tells people the same. A mass symptom has
    one notification that names all its queues (`must_report_mass_symptom`). The open case of a DLQ
    names a change by Mendq that may do harm there.

14. New callers of an open case are reported at most once an hour (`must_report_new_callers`), so
    that a caller that changes its name in each call cannot flood people.

15. If a person rolled a change back and the symptom shows again, people hear it once. The record of
    the attribute stores that this reminder is due (`AttributeRecord.owes_a_notification`).
    `guardrails.refuse_if_overridden` reads it, because it also decides if a case opens.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Self

from msgspec import Struct

from mendq.model.case import REPEAT_NOTIFICATION_AFTER, Case, Severity
from mendq.model.evidence import Evidence
from mendq.model.mode import Mode
from mendq.model.plan import Refusal
from mendq.model.state import State
from mendq.notifications.sent import NotificationRecord

# Rule 4: for this long, only the run that stored a notification sends it.
EXCLUSIVE_SENDING_TIME = timedelta(seconds=90)
# Rule 7: the notifications of each severity in one hour, and how many of the urgent ones are
# reserved for a first notification that names a new caller.
NOTIFICATIONS_PER_HOUR = 20
NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS = 10
# Rule 8: held back notifications are tried again after this.
RETRY_HELD_BACK_NOTIFICATION_AFTER = timedelta(minutes=10)
# Rule 9: follow_up looks this long after a transition whether its notification was sent.
CHECK_NOTIFICATION_SENT_AFTER = timedelta(minutes=2)
# Rule 10: a case that waits this long for its next step is reported.
REPORT_WAITING_CASE_AFTER = timedelta(hours=1)
# Rule 11: the least time between two different news about the account.
ACCOUNT_NEWS_PAUSE = timedelta(hours=1)
# Rule 12: one lost probe may only be late.
LOST_PROBES_TO_REPORT = 2
# Rule 14: the least time between two reports of new callers of one case.
NEW_CALLERS_REPORT_PAUSE = timedelta(hours=1)

# Rule 3: a notification about an earlier case in one of these states does not announce a later one.
_STATES_ANNOUNCED_PER_CASE = frozenset({State.ESCALATED, State.EXPIRED})


def choose_severity(
    case: Case, mode: Mode, *, is_about_plan: bool, is_reported_elsewhere: bool = False
) -> Severity | None:
    """Return the urgency of a case's notification; None if people are not notified.

    Args:
        case: The case with its new transition.
        mode: How far Mendq may go on the queue. In mode `observe`, people are not notified of a
            refused case.
        is_about_plan: True if the plan was refused because of the queue's own facts, and not
            because of a freeze, a budget or a mass symptom.
        is_reported_elsewhere: True if another notification tells people the same (rule 13).
    """
    if is_reported_elsewhere:
        return None
    if case.state is State.ESCALATED:
        return Severity.URGENT
    if case.state in (State.OVERRIDDEN, State.PROPOSED):
        return Severity.INFO
    # A person who approved a plan waits for it. A proposal that nobody answered only expires.
    if case.state is State.EXPIRED and case.came_from is State.APPROVED:
        return Severity.INFO
    if case.state is State.REFUSED and is_about_plan and mode >= Mode.PROPOSE:
        return Severity.INFO
    return None


class Announcement(Enum):
    """A decision about news, or about a stored notification."""

    # Do nothing: the news is only recorded, or no notification is stored, or it is a day old.
    NOTHING_TO_ANNOUNCE = "nothing to announce"
    # Do nothing: people had the same news within the last day.
    ALREADY_ANNOUNCED = "already announced"
    # Do nothing: the same news is stored and will be sent.
    ALREADY_STORED = "already stored"
    # Do nothing: other news about the account was announced shortly before.
    TOO_SOON = "too soon"
    # Store a notification and send it.
    ANNOUNCE_NOW = "announce now"
    # Take over the stored notification and send it: the run that stored it did not send it in time.
    SEND_STORED = "send the stored notification"
    # Another run may be sending it at this moment: look again.
    BEING_SENT = "being sent"
    # Drop the stored notification: its case has moved.
    DROP_STORED = "drop the stored notification"
    # The budget of this hour is spent: try again after RETRY_HELD_BACK_NOTIFICATION_AFTER.
    HELD_BACK = "held back"

    @property
    def is_pending(self) -> bool:
        """True if follow_up must look at the case again, even if the case has ended."""
        return self in (Announcement.BEING_SENT, Announcement.HELD_BACK)


class News(Struct, frozen=True):
    """News about a case, which people may have to hear.

    Args:
        key: A text that is equal for two news that say the same.
        severity: How urgent the news is; None if people are not notified.
        is_drill: True if the queue has the drill tag.
        replaces_stored: True if the news takes the place of a stored notification with the same
            key that was not sent, because the case has moved since.
    """

    key: str
    severity: Severity | None
    is_drill: bool = False
    replaces_stored: bool = True


def make_transition_news(
    case: Case, severity: Severity | None, *, distinction: str = "", is_drill: bool = False
) -> News:
    """Return the news of a case's newest transition.

    Args:
        case: The case with its new transition.
        severity: How urgent the news is. None if the transition is only recorded.
        distinction: A text that distinguishes the news from others with the same state and code.
        is_drill: True if the queue has the drill tag.
    """
    case_id_if_news_per_case = case.case_id if case.state in _STATES_ANNOUNCED_PER_CASE else ""
    return News(f"{case.news}:{distinction}:{case_id_if_news_per_case}", severity, is_drill)


def make_waiting_case_news(case: Case, severity: Severity | None) -> News:
    """Return the news that a case waits for its next step."""
    return News(f"held_up:{case.case_id}", severity, replaces_stored=False)


class Announcements(Struct, frozen=True):
    """Decides what to announce about one symptom of one queue, or about the account.

    Args:
        last: The newest stored notification about the symptom or the account; None if there was
            never a notification.
        now: The time of the decision.
    """

    last: NotificationRecord | None
    now: datetime

    def decide_case_news(self, news: News) -> Announcement:
        """Decide whether to announce news about a case: rules 1, 2, 3, 5 and 10."""
        if news.severity is None or news.is_drill:
            return Announcement.NOTHING_TO_ANNOUNCE
        if self._is_announced(news.key):
            return Announcement.ALREADY_ANNOUNCED
        if self._is_stored(news.key) and not news.replaces_stored:
            return Announcement.ALREADY_STORED
        return Announcement.ANNOUNCE_NOW

    def decide_stored_notification(self, case: Case | None) -> Announcement:
        """Decide what to do about the stored notification: rules 4, 5 and 6.

        `case` is the case as it is now; None if there is no case.
        """
        if self.last is None or self.last.is_sent:
            return Announcement.NOTHING_TO_ANNOUNCE
        if self.now - self.last.at <= EXCLUSIVE_SENDING_TIME:
            return Announcement.BEING_SENT
        if self._is_a_day_old:
            return Announcement.NOTHING_TO_ANNOUNCE
        if self.last.about not in ("", case.transition if case else ""):
            return Announcement.DROP_STORED
        return Announcement.SEND_STORED

    def decide_account_news(self, key: str, least_pause: timedelta) -> Announcement:
        """Decide whether to announce news about the account: rule 11.

        `key` is the key of the news, `least_pause` the least time between two different news.
        """
        if self.decide_stored_notification(None) is Announcement.SEND_STORED:
            return Announcement.SEND_STORED
        if self._is_announced(key):
            return Announcement.ALREADY_ANNOUNCED
        if self.last is not None and self.now - self.last.at < least_pause:
            return Announcement.TOO_SOON
        return Announcement.ANNOUNCE_NOW

    def _is_announced(self, key: str) -> bool:
        """Return True if people had this news within the last day."""
        announced_at = self.last.announced.get(key) if self.last else None
        return announced_at is not None and self.now - announced_at < REPEAT_NOTIFICATION_AFTER

    def _is_stored(self, key: str) -> bool:
        """Return True if a notification with this news is stored and not sent."""
        return self.last is not None and not self.last.is_sent and self.last.news == key

    @property
    def _is_a_day_old(self) -> bool:
        """True if a day has passed since a run first tried to send the stored notification."""
        assert self.last is not None  # noqa: S101 - asked about a stored notification only
        first_sending_at = self.last.since or self.last.at
        return self.now - first_sending_at >= REPEAT_NOTIFICATION_AFTER


class HourlyBudget(Struct, frozen=True):
    """The number of notifications of one severity that may be sent in one hour: rule 7.

    Args:
        most_for_all_callers: While fewer notifications than this were sent, any notification may be
            sent.
        most_for_new_callers: After that, while fewer than this were sent, a notification may be
            sent only if it names a caller that no other notification named in this hour.
    """

    most_for_all_callers: int
    most_for_new_callers: int

    @classmethod
    def of(cls, notification: NotificationRecord) -> Self:
        """Return the budget that a notification counts against."""
        reserved_count = NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS if notification.urgent else 0
        is_known_queue = bool(notification.announced)
        return cls(
            most_for_all_callers=NOTIFICATIONS_PER_HOUR - reserved_count,
            most_for_new_callers=0 if is_known_queue else NOTIFICATIONS_PER_HOUR,
        )


def choose_pause_between_summaries(case: Case) -> timedelta:
    """Return the least time between two summaries of held back notifications: rule 8.

    `case` is a case whose notification is held back.
    """
    return (
        RETRY_HELD_BACK_NOTIFICATION_AFTER if case.state is State.ESCALATED else ACCOUNT_NEWS_PAUSE
    )


def must_report_waiting_case(waiting_since: datetime, now: datetime) -> bool:
    """Return True if a case has waited long enough for its next step to report it: rule 10."""
    return now - waiting_since >= REPORT_WAITING_CASE_AFTER


def must_report_mass_symptom(refusal: Refusal | None, mode: Mode, *, is_drill: bool) -> bool:
    """Return True if the refusal is about a mass symptom that people must hear about: rule 13.

    Args:
        refusal: Why Mendq did not change one of the queues. None if it refused nothing.
        mode: How far Mendq may go on that queue.
        is_drill: True if the queue has the drill tag. People are never notified of drills.
    """
    if refusal is None or refusal.code != "mass_symptom":
        return False
    return refusal.is_reported_in(mode) and not is_drill


def must_report_new_callers(open_case: Case, new_callers: Evidence, now: datetime) -> bool:
    """Return True if people must hear that other callers fail too: rule 14.

    `new_callers` is the evidence of the callers that `open_case` does not name.
    """
    return now - open_case.at >= NEW_CALLERS_REPORT_PAUSE and new_callers.is_sufficient


def must_report_lost_probes(lost_probe_count: int, *, is_announced: bool) -> bool:
    """Return True if people must hear that probes are lost: rule 12.

    `lost_probe_count` is the number of probes lost since one arrived. `is_announced` is True if
    people were notified since then.
    """
    return lost_probe_count >= LOST_PROBES_TO_REPORT and not is_announced


def find_first_check_time(case: Case, due_at: datetime) -> datetime | None:
    """Return when follow_up must look at a case after its transition, None if never: rule 9.

    `due_at` is the time at which the case's state makes it due (`lifecycle.due_at`).
    """
    if case.notified:
        return min(due_at, case.at + CHECK_NOTIFICATION_SENT_AFTER)
    return None if case.is_final else due_at
