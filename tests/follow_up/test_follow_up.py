"""follow_up verifies, watches, continues and closes cases after their write."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.stub import Stubber
from msgspec.structs import replace

from mendq.aws.errors import NotificationNotSent, OwnerUnavailable
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.batch import heal_failed_calls
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from tests.account.account import Account
from tests.account.calm_metrics import CalmMetrics
from tests.heal.operators import (
    OWNERS,
    fail_calls,
    list_states,
    load_newest_case,
    make_context,
    move_case,
)

SYMPTOM = "visibility_timeout_too_short"


@pytest.fixture
def world(account: Account) -> FollowUpWorld:
    return FollowUpWorld(account)


class FollowUpWorld:
    """An account with follow_up, a heal that it can call, and CloudWatch's count of deletes."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.heal_is_up = True
        self.heal_requests: list[dict[str, str]] = []
        events: Any = account.clients.functions.meta.events
        events.register("before-call.lambda.Invoke", self._invoke)
        self.metrics = CalmMetrics(account.clients)

    def _invoke(self, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        request = json.loads(params["body"])
        self.heal_requests.append(request)
        if self.heal_is_up:
            continue_case(request, self.account.run())
        return SimpleNamespace(status_code=202), {"StatusCode": 202}

    def make_fixed_queue(self, name: str = "orders.fifo", tag: str = "heal") -> str:
        """Make a queue whose calls failed. Heal raised it from 30 to 45, or proposed that."""
        queue = self.account.queue(name, tag, VisibilityTimeout="30")
        fail_calls(self.account, queue, name)
        return queue

    def fail_again(self, queue: str, after_minutes: float = 40) -> None:
        self.account.later(minutes=after_minutes)
        fail_calls(self.account, queue, f"{self.account.now}")

    def run_follow_up(self) -> FollowUpResult:
        return follow_up(make_context(self.account), OWNERS, lambda: 60)

    def follow_up_minutes(self, count: int) -> None:
        for _ in range(count):
            self.account.later(minutes=1)
            assert self.run_follow_up().errors == {}

    def follow_up_after_hours(self, count: float) -> None:
        self.account.later(hours=count)
        assert self.run_follow_up().errors == {}

    def list_states(self) -> list[str]:
        return list_states(self.account)

    def read_hold_up(self, queue: str) -> tuple[str, str] | None:
        found = make_context(self.account).case_store.look(queue, SYMPTOM, ()).hold_up
        return (found.code, found.reason) if found else None


def test_fix_that_helps_is_verified_watched_and_closed_without_a_notification(
    world: FollowUpWorld,
) -> None:
    world.make_fixed_queue()
    world.metrics.delete_count = 7
    world.follow_up_minutes(15)
    assert world.list_states() == ["applied"]
    world.follow_up_minutes(4)
    assert world.list_states() == ["applied", "verified", "watching"]
    world.follow_up_after_hours(48)
    assert world.list_states() == ["applied", "verified", "watching", "closed"]
    assert world.heal_requests == []
    assert world.account.pages("info") == world.account.pages("urgent") == []
    assert world.run_follow_up().open_cases == []


NO_HARM_DATA_REASONS = (
    (
        "the fault did not show again, and CloudWatch has too little data to tell whether the fix "
        "does harm"
    ),
    (
        "the fix stays and was never verified: in a week CloudWatch had too little data to tell "
        "whether it does harm. Check that the queue's consumers work"
    ),
)


def test_fix_is_verified_only_once_cloudwatch_has_data_that_could_show_its_harm(
    world: FollowUpWorld,
) -> None:
    """Deletes alone do not show that nothing is handled twice or held longer."""
    queue = world.make_fixed_queue()
    world.metrics.delete_count = 7
    world.metrics.has_data = False
    world.follow_up_minutes(25)
    assert world.list_states() == ["applied", "unverified"]
    assert load_newest_case(world.account).reason == NO_HARM_DATA_REASONS[0]
    world.metrics.has_data = True
    world.follow_up_after_hours(1)
    assert world.list_states()[:3] == ["applied", "unverified", "verified"]
    assert world.account.visibility(queue) == 45


def test_fix_without_data_about_its_harm_ends_unverified_after_a_week_and_keeps_its_value(
    world: FollowUpWorld,
) -> None:
    queue = world.make_fixed_queue()
    world.metrics.delete_count = 7
    world.metrics.has_data = False
    world.follow_up_minutes(25)
    for _ in range(8 * 4):
        world.follow_up_after_hours(6)
    assert world.list_states() == ["applied", "unverified", "closed"]
    assert load_newest_case(world.account).reason == NO_HARM_DATA_REASONS[1]
    assert world.account.visibility(queue) == 45


def test_fix_that_does_not_help_is_followed_by_the_next_step_of_the_same_case(
    world: FollowUpWorld,
) -> None:
    queue = world.make_fixed_queue()
    world.fail_again(queue)
    assert world.account.visibility(queue) == 45
    world.follow_up_minutes(1)
    assert world.account.visibility(queue) == 68
    assert world.list_states() == ["applied", "ineffective", "applied"]
    first, _, again = world.account.transitions()
    assert (again["case_id"], again["n"]) == (first["case_id"], 3)
    assert again["evidence"]["failed_calls"] == 6


def test_persons_value_is_remembered_through_two_steps_of_mendq(world: FollowUpWorld) -> None:
    """A rollback restores it, and not the value of the first step."""
    queue = world.make_fixed_queue()
    world.fail_again(queue)
    world.follow_up_minutes(1)
    assert world.account.visibility(queue) == 68
    assert world.account.attribute_item(queue)["person_value"] == {"S": "30"}


def test_failed_calls_from_before_a_late_write_do_not_make_the_fix_ineffective(
    world: FollowUpWorld,
) -> None:
    """A batch of many queues can take most of a minute. The change counts from its write, not from
    the start of the run.
    """
    queue = world.account.queue(VisibilityTimeout="30")
    begun = world.account.now
    written = world.account.now + timedelta(seconds=55)
    slow = replace(world.account.run(), clock=lambda: written)
    assert not heal_failed_calls(
        world.account.late_deletes(queue, "a", "b", "c"), slow
    ).error_by_message_id
    (applied,) = world.account.transitions()
    assert datetime.fromisoformat(applied["at"]) == written
    until_it_arrived = world.account.settings.timing.propagation_seconds + 45
    for seconds in (0, 30, until_it_arrived + 55 - 1):
        world.account.now = begun + timedelta(seconds=seconds)
        world.fail_again(queue, 0)
        world.follow_up_minutes(1)
    assert world.list_states() == ["applied"]
    assert world.account.visibility(queue) == 45
    world.fail_again(queue, 0)
    world.fail_again(queue)
    world.follow_up_minutes(1)
    assert world.list_states()[:2] == ["applied", "ineffective"]


def test_next_step_of_an_ineffective_fix_is_written_only_once_the_cooldown_is_over(
    world: FollowUpWorld,
) -> None:
    queue = world.make_fixed_queue()
    world.fail_again(queue, 5)
    world.follow_up_minutes(20)
    assert world.account.visibility(queue) == 45
    assert world.list_states() == ["applied", "ineffective"]
    assert 1 < len(world.heal_requests) <= 5
    hold_up = world.read_hold_up(queue)
    assert hold_up is not None
    assert hold_up[0] == "too_soon"
    world.follow_up_minutes(10)
    assert world.account.visibility(queue) == 68
    assert world.read_hold_up(queue) is None


def test_value_that_a_person_set_after_a_fix_is_kept_and_the_case_is_overridden(
    world: FollowUpWorld,
) -> None:
    queue = world.make_fixed_queue()
    world.account.set_visibility(queue, 40)
    world.fail_again(queue, 45)
    world.follow_up_minutes(1)
    assert world.account.visibility(queue) == 40
    assert world.list_states() == ["applied", "overridden"]


@pytest.mark.parametrize(
    ("tag", "ends"), [("off", "closed"), ("observe", "escalated"), ("propose", "escalated")]
)
def test_next_step_is_not_written_outside_heal_mode_and_the_case_closes_or_escalates(
    world: FollowUpWorld, tag: str, ends: str
) -> None:
    queue = world.make_fixed_queue()
    world.fail_again(queue)
    world.account.tag(queue, mendq=tag)
    world.follow_up_minutes(1)
    assert world.account.visibility(queue) == 45
    assert world.list_states()[-1] == ends


def test_expired_approval_is_reported_once_sns_accepts_the_notification(
    world: FollowUpWorld,
) -> None:
    """The person who approved believes that the change is made. No later event corrects this."""
    world.make_fixed_queue(tag="propose")
    world.heal_is_up = False
    move_case(world.account, load_newest_case(world.account), "approved")
    world.account.later(hours=25)
    with Stubber(world.account.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        assert [type(error) for error in world.run_follow_up().errors.values()] == [
            NotificationNotSent
        ]
    assert world.list_states() == ["proposed", "approved", "expired"]
    assert len(world.account.pages("info")) == 1
    world.follow_up_after_hours(0.1)
    _, (subject, body) = world.account.pages("info")
    assert subject.startswith("Mendq expired: visibility timeout too short on orders.fifo in ")
    assert "Why: it was approved and could not be done in time" in body
    assert world.account.pages("urgent") == []
    assert make_context(world.account).open_cases.list_unsettled_cases() == []


def test_follow_up_of_a_case_of_an_unknown_symptom_waits_without_an_error(
    world: FollowUpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an error, the alarm on failing follow-ups would ring until a person closes the case."""
    world.make_fixed_queue()
    world.metrics.delete_count = 1
    world.account.later(minutes=20)
    known = SYMPTOM_BY_NAME[SYMPTOM]
    monkeypatch.delitem(SYMPTOM_BY_NAME, SYMPTOM)
    result = world.run_follow_up()
    assert result.errors == {}
    assert [case.symptom for case in result.cases_of_unknown_symptoms] == [SYMPTOM]
    assert [case.state for case in result.open_cases] == ["applied"]
    assert world.run_follow_up().cases_of_unknown_symptoms == [], (
        "it is not due again within the minute"
    )
    monkeypatch.setitem(SYMPTOM_BY_NAME, SYMPTOM, known)
    world.follow_up_after_hours(1.1)
    assert world.list_states() == ["applied", "verified"]


def test_request_to_continue_a_case_that_is_not_approved_is_refused_and_changes_nothing(
    world: FollowUpWorld,
) -> None:
    queue = world.make_fixed_queue()
    request = make_owner_request(load_newest_case(world.account))
    before = world.account.case_store_items()
    refusal = continue_case(request, world.account.run()).refusal
    assert refusal is not None
    assert refusal.code == "moved_on"
    assert world.account.case_store_items() == before
    assert world.account.visibility(queue) == 45


@pytest.mark.parametrize(
    ("part", "other"),
    [("us-east-1", "eu-west-1"), ("123456789012", "210987654321")],
    ids=["region", "account"],
)
def test_request_to_continue_a_case_of_another_region_or_account_is_refused_and_changes_nothing(
    world: FollowUpWorld, part: str, other: str
) -> None:
    queue = world.make_fixed_queue()
    request = make_owner_request(load_newest_case(world.account))
    before = world.account.case_store_items()
    request["queue_arn"] = queue.replace(part, other)
    assert request["queue_arn"] != queue
    refusal = continue_case(request, world.account.run()).refusal
    assert refusal is not None
    assert refusal.code == "elsewhere"
    assert world.account.case_store_items() == before


def test_ineffective_case_waits_with_an_error_if_its_next_lambda_is_not_deployed(
    world: FollowUpWorld,
) -> None:
    queue = world.make_fixed_queue()
    world.fail_again(queue)
    (error,) = follow_up(make_context(world.account), {}, lambda: 60).errors.values()
    assert isinstance(error, OwnerUnavailable)
    assert world.list_states() == ["applied", "ineffective"]


UNMANAGED = "the queue is not managed any more"
GONE = "the queue is gone, or another one of its name"


def take_away(account: Account, queue: str, how: str) -> str:
    """Take the queue away from Mendq. Return the reason with which its case ends."""
    if how == "off":
        account.tag(queue, mendq="off")
    elif how == "gone":
        account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
    else:
        account.clients.sqs.untag_queue(QueueUrl=account.url(queue), TagKeys=["mendq"])
    return GONE if how == "gone" else UNMANAGED


@pytest.mark.parametrize("how", ["off", "untagged", "gone"])
@pytest.mark.parametrize("state", ["applied", "watching"])
def test_fix_on_a_deleted_or_unmanaged_queue_is_closed_and_never_verified(
    world: FollowUpWorld, state: str, how: str
) -> None:
    queue = world.make_fixed_queue()
    world.metrics.delete_count = 7
    world.follow_up_minutes(19 if state == "watching" else 1)
    why = take_away(world.account, queue, how)
    before = world.list_states()
    assert before[-1] == state
    for _ in range(5):
        if how != "gone":
            world.fail_again(queue, 1)
        world.follow_up_after_hours(10)
    closed = load_newest_case(world.account)
    assert (closed.came_from, closed.state, closed.reason) == (state, "closed", why)
    assert "verified" not in world.list_states()[len(before) :]


@pytest.mark.parametrize("how", ["off", "untagged", "gone"])
def test_escalated_case_is_closed_if_its_queue_is_deleted_or_unmanaged(
    world: FollowUpWorld, how: str
) -> None:
    account = world.account
    queue = account.queue(KmsMasterKeyId="alias/orders")
    fail_calls(account, queue, eventName="SendMessage", errorCode="KMS.AccessDeniedException")
    world.follow_up_after_hours(2)
    assert world.list_states() == ["escalated"]
    why = take_away(account, queue, how)
    world.follow_up_after_hours(1)
    assert world.list_states() == ["escalated", "closed"]
    assert load_newest_case(account).reason == why
    assert len(account.pages("urgent")) == 1


def test_at_most_three_of_five_queues_get_a_next_step_if_all_fixes_fail_within_an_hour(
    world: FollowUpWorld,
) -> None:
    """That many failures at once have a common cause."""
    queues = []
    for n in range(5):
        queues.append(world.make_fixed_queue(f"q{n}.fifo"))
        world.follow_up_after_hours(1.1)
    for queue in queues:
        world.fail_again(queue, 0)
    world.follow_up_minutes(3)
    assert sum(world.account.visibility(queue) > 45 for queue in queues) <= 3


def test_next_step_that_waits_longer_than_an_hour_for_a_freeze_is_reported_once(
    world: FollowUpWorld,
) -> None:
    """A cooldown ends automatically. A forgotten freeze does not."""
    account = world.account
    queue = world.make_fixed_queue()
    account.freeze()
    world.fail_again(queue)
    for _ in range(6):
        world.follow_up_after_hours(1 / 6)
    assert world.list_states()[-1] == "ineffective"
    assert account.pages("info") == []
    assert world.read_hold_up(queue) == ("frozen", "changes are frozen: Black Friday")
    for _ in range(12):
        world.follow_up_after_hours(1 / 6)
    ((subject, body),) = account.pages("info")
    assert subject.startswith("Mendq ineffective: visibility timeout too short on orders.fifo in ")
    assert "changes are frozen: Black Friday" in body
