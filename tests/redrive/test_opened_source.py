"""A redrive whose source gets another policy, key or creation time while messages go back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mendq.cases.record import Notification, record_transition
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.model.case import start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.queue import RedrivePolicy
from mendq.model.receiver import make_access_digest
from mendq.model.state import State
from mendq.model.steps import RestorePolicy
from mendq.redrive.redrive import SourceAccessGate
from tests.account.receivers import confirm_receiver
from tests.heal.operators import make_context
from tests.redrive.world import RedriveWorld, make_bodies
from tests.waiting import replace_sleep

TWO_BATCHES = Bounds(canary=15, halt_returned=1_000, halt_share=1.0, patience_seconds=300)
ROLE_POLICY = json.dumps(
    {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::123456789012:role/other-team"},
                "Action": "sqs:*",
                "Resource": "*",
            }
        ]
    }
)
OTHER_POLICY = ROLE_POLICY.replace("other-team", "third-team")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_sleep(monkeypatch)


def set_policy(world: RedriveWorld) -> None:
    world.configure(world.source, Policy=ROLE_POLICY)


def set_key(world: RedriveWorld) -> None:
    world.configure(world.source, KmsMasterKeyId="alias/theirs")


def set_tag(world: RedriveWorld) -> None:
    world.account.tag(world.source, team="others")


def set_max_receive_count(world: RedriveWorld) -> None:
    world.configure(world.source, RedrivePolicy=RedrivePolicy(world.dlq, 7).text)


def act_after_first_batch(world: RedriveWorld, act: Callable[[RedriveWorld], None]) -> list[int]:
    """Change something after the first batch of a tick. Return the list of the batches' sizes."""
    batches = list[int]()

    def count_batch(params: dict[str, Any], **_: Any) -> None:
        batches.append(len(json.loads(params["body"])["Entries"]))

    def act_once(**_: Any) -> None:
        if len(batches) == 1:
            act(world)

    events = world.account.clients.sqs.meta.events
    events.register("before-call.sqs.SendMessageBatch", count_batch)
    events.register("after-call.sqs.DeleteMessageBatch", act_once)
    return batches


@pytest.mark.parametrize(
    ("change", "reason"), [(set_policy, "its policy changed"), (set_key, "its KMS key changed")]
)
def test_change_of_the_source_between_two_batches_stops_the_tick_and_the_next_one_halts(
    world: RedriveWorld, change: Callable[[RedriveWorld], None], reason: str
) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, change)
    outcome = world.tick()
    assert batches == [10], "no batch after the change"
    assert outcome.case is None
    assert reason in world.progress.because
    assert not world.progress.is_over, "the tick only stops"
    assert world.tick().case is not None
    assert world.state is State.ESCALATED
    assert "changed since this redrive was planned" in world.progress.because
    assert batches == [10]
    assert world.count_visible_messages(world.dlq) == 9


def make_source_digest(world: RedriveWorld) -> str:
    return make_access_digest(world.account.attributes(world.source))


@pytest.mark.parametrize("change", [set_policy, set_key])
def test_source_that_changed_between_plan_and_first_tick_halts_the_redrive_before_any_message(
    world: RedriveWorld, change: Callable[[RedriveWorld], None]
) -> None:
    world.source_access = make_source_digest(world)
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    change(world)
    outcome = world.tick()
    assert outcome.sent_back_count == 0
    assert world.state is State.ESCALATED
    assert "changed since this redrive was planned" in world.progress.because
    assert world.count_visible_messages(world.dlq) == 19
    assert world.count_visible_messages(world.source) == 0


def test_source_that_was_open_before_the_plan_is_as_approved_and_does_not_halt_the_redrive(
    world: RedriveWorld,
) -> None:
    set_policy(world)
    world.source_access = make_source_digest(world)
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    assert world.tick().sent_back_count == 15


def test_source_that_was_opened_after_the_plan_and_confirmed_by_a_person_gets_its_messages(
    world: RedriveWorld,
) -> None:
    world.source_access = make_source_digest(world)
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    set_policy(world)
    confirm_receiver(world.account, world.source)
    assert world.tick().sent_back_count == 15


def test_redrive_of_a_case_without_a_digest_compares_with_the_first_tick(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    set_policy(world)
    assert world.tick().sent_back_count == 15
    set_key(world)
    assert world.tick().sent_back_count == 0
    assert world.state is State.ESCALATED


@pytest.mark.parametrize("change", [set_tag, set_max_receive_count])
def test_tags_and_redrive_policy_of_the_source_do_not_stop_a_redrive(
    world: RedriveWorld, change: Callable[[RedriveWorld], None]
) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, change)
    assert world.tick().sent_back_count == 15
    assert batches == [10, 5]
    assert world.tick().case is None


def test_change_of_the_source_that_a_person_confirmed_does_not_halt_the_redrive(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, set_policy)
    world.tick()
    confirm_receiver(world.account, world.source)
    assert world.tick().sent_back_count == 5
    assert batches == [10, 5]


def record_restored_policy(world: RedriveWorld, policy_before: str = "") -> None:
    """Record that Mendq replaced this policy by ROLE_POLICY, and verified it."""
    context = make_context(world.account)
    source = Facts(world.source, world.account.attributes(world.source), {})
    view = context.case_store.look(world.source, ACCESS_DENIED.name, ACCESS_DENIED.attributes)
    case = start_case(
        State.APPLIED,
        queue_arn=world.source,
        symptom=ACCESS_DENIED.name,
        reason="calls were refused",
        evidence=Evidence.of([Sighting.from_scan(world.account.now)]),
        steps=(RestorePolicy(policy_before, ROLE_POLICY),),
        now=world.account.now,
        actor="restore_policy",
        previous=view.case,
    )
    new_records = view.make_records_after_write(case, source.created_at)
    notification = Notification(ACCESS_DENIED, source, new_records=new_records)
    case = record_transition(case, view, notification, context)
    view = context.case_store.look(world.source, ACCESS_DENIED.name, ACCESS_DENIED.attributes)
    verified_case = case.move_to(State.VERIFIED, "calls are let in again", world.account.now)
    record_transition(verified_case, view, Notification(ACCESS_DENIED, source), context)


def restore_and_record_policy(world: RedriveWorld) -> None:
    set_policy(world)
    record_restored_policy(world)


def test_pinned_policy_that_mendq_put_back_does_not_halt_the_redrive(world: RedriveWorld) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, restore_and_record_policy)
    world.tick()
    assert world.tick().sent_back_count == 5
    assert batches == [10, 5]


def test_change_of_the_source_after_mendq_put_the_pinned_policy_back_halts_the_redrive(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, restore_and_record_policy)
    world.tick()
    world.configure(world.source, Policy=OTHER_POLICY)
    assert world.tick().case is not None
    assert "changed since this redrive was planned" in world.progress.because
    assert batches == [10]


def test_key_that_changed_while_mendq_put_the_pinned_policy_back_halts_the_redrive(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, restore_and_record_policy)
    world.tick()
    set_key(world)
    assert world.tick().case is not None
    assert batches == [10]


def test_policy_that_mendq_put_back_before_the_redrive_began_halts_it_if_others_set_it_again(
    world: RedriveWorld,
) -> None:
    record_restored_policy(world)
    world.account.later(minutes=1)
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, set_policy)
    world.tick()
    assert world.tick().case is not None
    assert batches == [10]


def test_policy_that_mendq_put_back_over_another_change_halts_the_redrive(
    world: RedriveWorld,
) -> None:
    """Somebody else had changed the policy, and messages may have gone back meanwhile."""

    def restore_over_other_policy(world: RedriveWorld) -> None:
        set_policy(world)
        record_restored_policy(world, policy_before=OTHER_POLICY)

    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, restore_over_other_policy)
    world.tick()
    assert world.tick().case is not None
    assert batches == [10]


def test_confirmation_of_the_source_ends_with_the_next_change(world: RedriveWorld) -> None:
    world.begin(*make_bodies(19), bounds=TWO_BATCHES)
    batches = act_after_first_batch(world, set_policy)
    world.tick()
    confirm_receiver(world.account, world.source)
    set_key(world)
    assert world.tick().case is not None
    assert batches == [10]


@pytest.mark.parametrize("code", ["ServiceUnavailable", "AccessDenied"])
def test_no_batch_goes_back_to_a_source_that_cannot_be_read_now(
    world: RedriveWorld, code: str
) -> None:
    source = Facts(world.source, world.account.attributes(world.source), {})
    world.refuse("GetQueueAttributes", code, about="orders")
    gate = SourceAccessGate(world.make_run().clients, source, lambda _count: True)
    assert not gate.may_send_batch(10)
    assert code in gate.stop_reason
