"""Looks after open cases: each that is due is moved on by what was seen since, or by time.

Level-triggered: what the last minute missed, this one finds. Two at once do no harm, because a
transition goes into the ledger only where the case has not moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.call_owner import Functions, call_owner
from functions.aws.case_look import CaseLook
from functions.aws.clients import SECONDS_OF_A_HUNG_CALL
from functions.aws.desk import Desk, ManagingDesk
from functions.aws.errors import CaseMoved, LedgerUnavailable, LedgerUnreadable
from functions.aws.filing import file_owed
from functions.aws.open_cases import OpenCase
from functions.aws.run import Outcome
from functions.aws.telling import Telling, hold_back, tell, tell_held_up
from functions.aws.unfinished import look_at, settle_whosever, symptom_known_as
from functions.catalogue.symptom import Symptom
from functions.healing.advance import CALLING, advance, due_at
from functions.healing.case import Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.limits import Limits
from functions.healing.mode import Mode
from functions.healing.paging import Severity, severity_of
from functions.healing.spike import fixes_being_verified
from functions.healing.states import FINAL, State

# A case that cannot be looked at now is looked at again then, behind those that can.
TRY_AGAIN = timedelta(minutes=5)
# The version that knows it may be deployed again.
UNKNOWN_AGAIN = timedelta(hours=1)
# Where one service hangs, a case calls it twice before it is given up.
SECONDS_FOR_A_CASE = 2 * SECONDS_OF_A_HUNG_CALL


@dataclass
class Followed:
    """What became of the cases that were due, and how many are open.

    The `unknown` are of symptoms that another version of Mendq knows: they wait for it, or for a
    person who closes them.
    `bucket_error` is why nothing more is filed in this run: one case has waited for the bucket.
    """

    open_cases: list[OpenCase]
    moved: list[Case] = field(default_factory=list)
    called: list[Case] = field(default_factory=list)
    unknown: list[OpenCase] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    bucket_error: Exception | None = None

    @property
    def by_state(self) -> Counter[str]:
        return Counter(each.state for each in self.open_cases)

    def fixes_being_verified(self, now: datetime, limits: Limits) -> int:
        return fixes_being_verified(
            ((each.state, each.opened_at) for each in self.open_cases), now, limits
        )

    def oldest_age_seconds(self, now: datetime) -> float:
        return max(((now - each.opened_at).total_seconds() for each in self.open_cases), default=0)


def follow_up(
    desk: ManagingDesk, functions: Functions, remaining_seconds: Callable[[], float]
) -> Followed:
    """Raises LedgerUnavailable where the open cases cannot be listed; a case costs only itself."""
    listed = desk.open_cases.listed()
    followed = Followed([each for each in listed if each.state not in FINAL])
    for each in _due(listed, desk.now):
        if remaining_seconds() < SECONDS_FOR_A_CASE:
            break
        try:
            _follow(each, desk, functions, followed)
        except CaseMoved:
            continue
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
            followed.errors[each.case_id] = error
        if each.case_id in followed.errors:
            _try_again(each, desk)
    return followed


def _due(cases: Iterable[OpenCase], now: datetime) -> list[OpenCase]:
    return [each for each in cases if each.due_at <= now]


def _follow(due: OpenCase, desk: ManagingDesk, functions: Functions, followed: Followed) -> None:
    symptom = symptom_known_as(due.symptom)
    view = look_at(due.queue_arn, due.symptom, symptom, desk)
    sent = desk.pager.send_left_unsent(due.queue_arn, due.symptom, view.page, view.case)
    view = _filed(view, due, desk, followed)
    if view.held_by_another(desk.owner, desk.claims_now):
        return
    if view.intent is not None:
        settled = settle_whosever(view, view.intent, symptom, desk)
        if isinstance(settled, Outcome):
            followed.moved += [settled.case] if settled.case else []
            return
        view = settled
    if view.case is not None and view.case.is_final:
        _end(view.case, view, desk, sent=sent)
        return
    if symptom is None:
        followed.unknown.append(due)
        desk.open_cases.postpone_unread(due, desk.now + UNKNOWN_AGAIN)
    elif view.case is not None:
        _OpenCase(symptom, view.case, view, desk).go_on(functions, followed)
        if not sent and not view.case.goes_on:
            hold_back(view.case, desk)


def _filed(view: LedgerView, due: OpenCase, desk: Desk, followed: Followed) -> LedgerView:
    """What cannot be filed keeps nobody from settling and moving the case; it stays owed."""
    if not view.unfiled:
        return view
    error = followed.bucket_error
    if error is None:
        try:
            return file_owed(view, desk)
        except (BotoCoreError, ClientError) as failed:
            error = followed.bucket_error = failed
        except LedgerUnreadable as unreadable:
            error = unreadable
    followed.errors[due.case_id] = error
    return view


def _end(case: Case, view: LedgerView, desk: Desk, *, sent: bool) -> None:
    """Look no more at what has ended, once people have had the page about it."""
    if not sent:
        hold_back(case, desk)
    elif view.page is None or not view.page.is_on_its_way(desk.now):
        desk.open_cases.told(case, desk.claims_now)


@dataclass(frozen=True)
class _OpenCase:
    """One open case and what the ledger says of it."""

    symptom: Symptom
    case: Case
    view: LedgerView
    desk: ManagingDesk

    def go_on(self, functions: Functions, followed: Followed) -> None:
        """Move it where there is reason to; call the owner of the write that it waits for."""
        signs = self._seen.signs()
        moved = advance(self.case, signs, self.desk.now)
        if moved is not None:
            followed.moved.append(self._tell(moved))
        case = moved or self.case
        if case.state in CALLING or case.goes_on:
            call_owner(self.desk.clients, functions, case)
            followed.called.append(case)
        if moved is None:
            self._postpone(due_at(case, signs, self.desk.now))
            self._tell_what_holds_it_up()

    @property
    def _seen(self) -> CaseLook:
        return CaseLook(self.symptom, self.case, self.view, self.desk)

    def _tell(self, moved: Case) -> Case:
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        contested = moved.state is State.CONTESTED
        telling = Telling(
            self.symptom,
            self._seen.facts() if severity else Facts(self.case.queue_arn, {}, {}),
            severity,
            changes=self.view.contested(moved, moved.at) if contested else {},
        )
        return tell(moved, self.view, telling, self.desk, self.desk.owner)

    def _postpone(self, until: datetime) -> None:
        """What goes on is not kept waiting, whatever else is owed."""
        is_late = until <= self.desk.now or (self.view.unfiled and not self.case.goes_on)
        later = self.desk.now + TRY_AGAIN if is_late else until
        self.desk.open_cases.postpone(self.case, later)

    def _tell_what_holds_it_up(self) -> None:
        held_up = self.view.hold_up
        if self.case.state in CALLING and held_up and held_up.is_to_be_told(self.desk.now):
            telling = Telling(self.symptom, self._seen.facts(), Severity.INFO)
            tell_held_up(self.case, self.view, telling, self.desk)


def _try_again(due: OpenCase, desk: Desk) -> None:
    """Where even that fails, the next minute finds it where it was."""
    with suppress(LedgerUnavailable):
        desk.open_cases.postpone_unread(due, desk.now + TRY_AGAIN)
