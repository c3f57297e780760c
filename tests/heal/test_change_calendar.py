"""A change calendar that is closed or unreadable: nothing is written until it opens."""

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
def lambdas() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def close() -> Iterator[Callable[..., ChangeCalendar]]:
    """Give an account a calendar that is not open."""
    made: list[ChangeCalendar] = []

    def calendar(account: Account, state: str = "CLOSED") -> ChangeCalendar:
        made.append(ChangeCalendar(account, state))
        return made[-1]

    yield calendar
    for each in made:
        each.leave()


def writes(calls: list[str]) -> list[str]:
    return [call for call in calls if call in ("SetQueueAttributes", "CreateQueue")]


@pytest.mark.parametrize("state", NOT_OPEN)
def test_failed_calls_in_heal_mode_write_nothing_until_the_change_calendar_opens(
    account: Account, close: Callable[..., ChangeCalendar], state: str
) -> None:
    queue_arn = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    calendar = close(account, state)
    calls = calls_of(account)
    fail_calls(account, queue_arn)
    assert account.visibility(queue_arn) == 30
    assert writes(calls) == []
    (refused,) = account.transitions()
    assert (refused["to"], refused["code"]) == ("refused", "frozen")
    assert NOT_OPEN[state] in refused["reason"]
    assert "writes" not in account.attribute_item(queue_arn), "no budget is spent"
    calendar.state = "OPEN"
    account.later(hours=1)
    fail_calls(account, queue_arn, "again-")
    assert account.visibility(queue_arn) == 45
    assert list_states(account) == ["refused", "applied"]


def short_dlq(account: Account) -> str:
    """A DLQ that keeps messages for a shorter time than its source; a person approved that pair."""
    dlq = account.queue("orders-dlq", MessageRetentionPeriod=str(A_DAY_SECONDS))
    source = dlq.removesuffix("-dlq")
    account.set(dlq, RedriveAllowPolicy=RedriveAllowPolicy("byQueue", (source,)).text)
    Pins(account.clients.dynamodb, account.settings.case_table).approve_source(dlq, source)
    policy = json.dumps({"deadLetterTargetArn": dlq, "maxReceiveCount": 5})
    account.queue("orders", None, MessageRetentionPeriod="345600", RedrivePolicy=policy)
    account.later(minutes=5)
    return dlq


def find(account: Account, queue_arn: str) -> BatchResult:
    """Heal is told of what a scan found."""
    request = {"found": [{"queue_arn": queue_arn, "symptom": FINDING}]}
    healed = heal_findings(request, account.run())
    assert healed.error_by_message_id == {}
    return healed


@pytest.mark.parametrize("state", NOT_OPEN)
def test_finding_in_heal_mode_writes_nothing_until_the_change_calendar_opens(
    lambdas: World, close: Callable[..., ChangeCalendar], state: str
) -> None:
    account = lambdas.account
    dlq = short_dlq(account)
    calendar = close(account, state)
    calls = calls_of(account)
    find(account, dlq)
    assert account.attributes(dlq)["MessageRetentionPeriod"] == str(A_DAY_SECONDS)
    assert writes(calls) == []
    assert [(each["to"], each["code"]) for each in account.transitions()] == [("refused", "frozen")]
    calendar.state = "OPEN"
    account.later(hours=25)
    find(account, dlq)
    assert int(account.attributes(dlq)["MessageRetentionPeriod"]) > A_DAY_SECONDS
    assert list_states(account) == ["refused", "applied"]


@pytest.mark.parametrize(("tag", "opens"), [("propose", "proposed"), ("observe", "observed")])
def test_closed_change_calendar_is_not_read_for_a_proposal_and_does_not_stop_it(
    account: Account, close: Callable[..., ChangeCalendar], tag: str, opens: str
) -> None:
    """Only writes wait; people still hear what is wrong."""
    calendar = close(account)
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
def test_approved_case_is_written_only_once_the_change_calendar_opens(
    lambdas: World, close: Callable[..., ChangeCalendar], state: str
) -> None:
    account = lambdas.account
    case_id = waiting_case(lambdas)
    queue_arn = load_newest_case(account).queue_arn
    calendar = close(account, state)
    calls = calls_of(account)
    answered = send_decision(account, "approve", case_id)
    assert (answered["state"], answered["code"]) == ("approved", "frozen")
    assert NOT_OPEN[state] in answered["reason"]
    for _ in range(3):
        account.later(minutes=FOLLOWED_EVERY_MINUTES)
        assert lambdas.minute()
    assert list_states(account) == ["proposed", "approved"]
    assert account.visibility(queue_arn) == 30
    assert writes(calls) == []
    calendar.state = "OPEN"
    account.later(minutes=FOLLOWED_EVERY_MINUTES)
    assert lambdas.minute()
    assert list_states(account) == ["proposed", "approved", "applied"]
    assert account.visibility(queue_arn) == 45
    assert writes(calls) == ["SetQueueAttributes"]


def test_approval_expires_with_the_reason_after_a_day_of_a_closed_change_calendar(
    lambdas: World, close: Callable[..., ChangeCalendar]
) -> None:
    account = lambdas.account
    approve(lambdas, waiting_case(lambdas))
    calendar = close(account)
    assert lambdas.minute()
    account.later(hours=25)
    assert lambdas.minute()
    ended = load_newest_case(account)
    assert ended.state is State.EXPIRED
    assert CLOSED_BECAUSE in ended.reason
    calendar.state = "OPEN"
    account.later(hours=1)
    assert lambdas.minute()
    assert account.visibility(ended.queue_arn) == 30, "what has expired is not written any more"


def test_next_step_of_an_ineffective_fix_waits_for_the_change_calendar(
    lambdas: World, close: Callable[..., ChangeCalendar]
) -> None:
    account = lambdas.account
    queue_arn = queue(lambdas)
    fail_calls(account, queue_arn)
    account.later(minutes=40)
    calendar = close(account)
    fail_calls(account, queue_arn, "again-")
    account.later(minutes=1)
    assert lambdas.minute()
    assert list_states(account) == ["applied", "ineffective"]
    assert account.visibility(queue_arn) == 45
    calendar.state = "OPEN"
    account.later(minutes=FOLLOWED_EVERY_MINUTES)
    assert lambdas.minute()
    assert account.visibility(queue_arn) == 68


def test_approved_policy_is_not_restored_while_the_change_calendar_is_closed(
    account: Account, close: Callable[..., ChangeCalendar]
) -> None:
    """Every owner of a write asks: here the one that restores policies."""
    Analyzer(account)
    queue_arn = make_queue_with_emptied_policy(account)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=1)
    calendar = close(account)
    outcome = restore_policy(account)
    assert outcome.refusal is not None
    assert outcome.refusal.code == "frozen"
    assert policy_of(account, queue_arn) == EMPTIED
    assert load_newest_case(account).state is State.APPROVED
    calendar.state = "OPEN"
    account.later(minutes=6)
    restore_policy(account)
    assert policy_of(account, queue_arn) == GRANTS


def test_closed_change_calendar_does_not_stop_a_rollback(
    account: Account, close: Callable[..., ChangeCalendar]
) -> None:
    queue_arn = make_failing_queue(account)
    calendar = close(account)
    answered = roll_back(account, load_newest_case(account).case_id)
    assert outcomes_by_attribute(answered) == {"VisibilityTimeout": "undone"}
    assert account.visibility(queue_arn) == 30
    assert calendar.asked == 0
