"""Mendq writes nothing while the change calendar is closed or unreadable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from mendq.cases.pins import Pins
from mendq.heal.batch import BatchResult, heal_findings
from mendq.model.queue import RedriveAllowPolicy
from mendq.model.state import State
from tests.account.account import Account
from tests.account.change_calendar import CLOSED_BECAUSE, NOT_OPEN, ChangeCalendar
from tests.account.faults import calls_of
from tests.heal.operators import (
    fail_calls,
    list_states,
    load_newest_case,
    make_failing_queue,
    move_case,
    outcomes_by_attribute,
    roll_back,
    send_decision,
)
from tests.heal.restoring import (
    EMPTIED,
    GRANTS,
    Analyzer,
    make_queue_with_emptied_policy,
    policy_of,
    restore_policy,
)
from tests.prove.openings import FOLLOWED_EVERY_MINUTES, approve, queue, waiting_case
from tests.prove.world import World, world

A_DAY_SECONDS = 86_400
FINDING = "dlq_retention_too_short"


@pytest.fixture
def world_with_lambdas() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def make_closed_calendar() -> Iterator[Callable[..., ChangeCalendar]]:
    """Return a function that gives an account a calendar that is not open."""
    calendars: list[ChangeCalendar] = []

    def make_calendar(account: Account, state: str = "CLOSED") -> ChangeCalendar:
        calendar = ChangeCalendar(account, state)
        calendars.append(calendar)
        return calendar

    yield make_calendar
    for calendar in calendars:
        calendar.leave()


def list_writes(calls: list[str]) -> list[str]:
    return [call for call in calls if call in ("SetQueueAttributes", "CreateQueue")]


@pytest.mark.parametrize("state", NOT_OPEN)
def test_failed_calls_in_heal_mode_write_nothing_until_the_change_calendar_opens(
    account: Account, make_closed_calendar: Callable[..., ChangeCalendar], state: str
) -> None:
    queue_arn = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    calendar = make_closed_calendar(account, state)
    calls = calls_of(account)
    fail_calls(account, queue_arn)
    assert account.visibility(queue_arn) == 30
    assert list_writes(calls) == []
    (refused,) = account.transitions()
    assert (refused["to"], refused["code"]) == ("refused", "frozen")
    assert NOT_OPEN[state] in refused["reason"]
    assert "writes" not in account.attribute_item(queue_arn), "no budget is spent"
    calendar.state = "OPEN"
    account.later(hours=1)
    fail_calls(account, queue_arn, "again-")
    assert account.visibility(queue_arn) == 45
    assert list_states(account) == ["refused", "applied"]


def make_dlq_with_short_retention(account: Account) -> str:
    """Make a DLQ with a shorter retention than its source. A person approved the source."""
    dlq = account.queue("orders-dlq", MessageRetentionPeriod=str(A_DAY_SECONDS))
    source = dlq.removesuffix("-dlq")
    account.set(dlq, RedriveAllowPolicy=RedriveAllowPolicy("byQueue", (source,)).text)
    Pins(account.clients.dynamodb, account.settings.case_table).approve_source(dlq, source)
    policy = json.dumps({"deadLetterTargetArn": dlq, "maxReceiveCount": 5})
    account.queue("orders", None, MessageRetentionPeriod="345600", RedrivePolicy=policy)
    account.later(minutes=5)
    return dlq


def heal_finding(account: Account, queue_arn: str) -> BatchResult:
    """Let heal handle the finding of a scan."""
    request = {"found": [{"queue_arn": queue_arn, "symptom": FINDING}]}
    healed = heal_findings(request, account.run())
    assert healed.error_by_message_id == {}
    return healed


@pytest.mark.parametrize("state", NOT_OPEN)
def test_finding_in_heal_mode_writes_nothing_until_the_change_calendar_opens(
    world_with_lambdas: World, make_closed_calendar: Callable[..., ChangeCalendar], state: str
) -> None:
    account = world_with_lambdas.account
    dlq = make_dlq_with_short_retention(account)
    calendar = make_closed_calendar(account, state)
    calls = calls_of(account)
    heal_finding(account, dlq)
    assert account.attributes(dlq)["MessageRetentionPeriod"] == str(A_DAY_SECONDS)
    assert list_writes(calls) == []
    assert [(transition["to"], transition["code"]) for transition in account.transitions()] == [
        ("refused", "frozen")
    ]
    calendar.state = "OPEN"
    account.later(hours=25)
    heal_finding(account, dlq)
    assert int(account.attributes(dlq)["MessageRetentionPeriod"]) > A_DAY_SECONDS
    assert list_states(account) == ["refused", "applied"]


@pytest.mark.parametrize(("tag", "opens"), [("propose", "proposed"), ("observe", "observed")])
def test_closed_change_calendar_is_not_read_and_does_not_stop_a_proposal_or_an_observed_case(
    account: Account, make_closed_calendar: Callable[..., ChangeCalendar], tag: str, opens: str
) -> None:
    calendar = make_closed_calendar(account)
    make_failing_queue(account, tag)
    assert list_states(account) == [opens]
    assert calendar.asked == 0


@pytest.mark.parametrize(("tag", "opens"), [("propose", "proposed"), ("observe", "observed")])
def test_freeze_does_not_stop_a_proposal_or_an_observed_case(
    account: Account, tag: str, opens: str
) -> None:
    account.freeze()
    make_failing_queue(account, tag)
    assert list_states(account) == [opens]


@pytest.mark.parametrize("state", NOT_OPEN)
def test_approved_case_is_written_when_the_change_calendar_opens_and_not_before(
    world_with_lambdas: World, make_closed_calendar: Callable[..., ChangeCalendar], state: str
) -> None:
    account = world_with_lambdas.account
    case_id = waiting_case(world_with_lambdas)
    queue_arn = load_newest_case(account).queue_arn
    calendar = make_closed_calendar(account, state)
    calls = calls_of(account)
    answered = send_decision(account, "approve", case_id)
    assert (answered["state"], answered["code"]) == ("approved", "frozen")
    assert NOT_OPEN[state] in answered["reason"]
    for _ in range(3):
        account.later(minutes=FOLLOWED_EVERY_MINUTES)
        assert world_with_lambdas.minute()
    assert list_states(account) == ["proposed", "approved"]
    assert account.visibility(queue_arn) == 30
    assert list_writes(calls) == []
    calendar.state = "OPEN"
    account.later(minutes=FOLLOWED_EVERY_MINUTES)
    assert world_with_lambdas.minute()
    assert list_states(account) == ["proposed", "approved", "applied"]
    assert account.visibility(queue_arn) == 45
    assert list_writes(calls) == ["SetQueueAttributes"]


def test_approval_expires_with_the_reason_after_a_day_of_closed_calendar_and_is_never_written(
    world_with_lambdas: World, make_closed_calendar: Callable[..., ChangeCalendar]
) -> None:
    account = world_with_lambdas.account
    approve(world_with_lambdas, waiting_case(world_with_lambdas))
    calendar = make_closed_calendar(account)
    assert world_with_lambdas.minute()
    account.later(hours=25)
    assert world_with_lambdas.minute()
    ended = load_newest_case(account)
    assert ended.state is State.EXPIRED
    assert CLOSED_BECAUSE in ended.reason
    calendar.state = "OPEN"
    account.later(hours=1)
    assert world_with_lambdas.minute()
    assert account.visibility(ended.queue_arn) == 30, "what has expired is not written any more"


def test_next_step_of_an_ineffective_fix_waits_for_the_change_calendar(
    world_with_lambdas: World, make_closed_calendar: Callable[..., ChangeCalendar]
) -> None:
    account = world_with_lambdas.account
    queue_arn = queue(world_with_lambdas)
    fail_calls(account, queue_arn)
    account.later(minutes=40)
    calendar = make_closed_calendar(account)
    fail_calls(account, queue_arn, "again-")
    account.later(minutes=1)
    assert world_with_lambdas.minute()
    assert list_states(account) == ["applied", "ineffective"]
    assert account.visibility(queue_arn) == 45
    calendar.state = "OPEN"
    account.later(minutes=FOLLOWED_EVERY_MINUTES)
    assert world_with_lambdas.minute()
    assert account.visibility(queue_arn) == 68


def test_approved_policy_is_restored_only_after_the_change_calendar_opens(
    account: Account, make_closed_calendar: Callable[..., ChangeCalendar]
) -> None:
    """Every Lambda that writes reads the calendar, here restore_policy."""
    Analyzer(account)
    queue_arn = make_queue_with_emptied_policy(account)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=1)
    calendar = make_closed_calendar(account)
    outcome = restore_policy(account)
    assert outcome.refusal is not None
    assert outcome.refusal.code == "frozen"
    assert policy_of(account, queue_arn) == EMPTIED
    assert load_newest_case(account).state is State.APPROVED
    calendar.state = "OPEN"
    account.later(minutes=6)
    restore_policy(account)
    assert policy_of(account, queue_arn) == GRANTS


def test_closed_change_calendar_is_not_read_and_does_not_stop_a_rollback(
    account: Account, make_closed_calendar: Callable[..., ChangeCalendar]
) -> None:
    queue_arn = make_failing_queue(account)
    calendar = make_closed_calendar(account)
    answered = roll_back(account, load_newest_case(account).case_id)
    assert outcomes_by_attribute(answered) == {"VisibilityTimeout": "undone"}
    assert account.visibility(queue_arn) == 30
    assert calendar.asked == 0
