"""A queue of the quarantine's name that Mendq did not make, or that was changed since."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mendq.aws.errors import CaseStoreUnavailable, FactsUnavailable, QueueRefusesUs
from mendq.cases.seal_keys import SealUse
from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.plan import Refusal
from mendq.model.queue import RedriveAllowPolicy
from mendq.model.receiver import Receiver
from mendq.model.state import State
from mendq.redrive.messages import Message, is_quarantine_mark_sealed
from mendq.redrive.redrive import QuarantineGate
from tests.account.receivers import confirm_receiver, open_receivers, open_seal_keys
from tests.redrive.world import LATE, RedriveWorld, make_bodies, read_queue
from tests.waiting import replace_sleep

FIT = {
    "MessageRetentionPeriod": "1209600",
    "SqsManagedSseEnabled": "true",
    "RedriveAllowPolicy": RedriveAllowPolicy("denyAll").text,
}
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


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_sleep(monkeypatch)


MANY = Bounds(halt_returned=1_000, halt_share=1.0, patience_seconds=300, canary=15)


def send_canary(world: RedriveWorld, bounds: Bounds = LATE) -> list[Message]:
    """Send a canary back and let consumers receive it. Return its messages, sorted by body."""
    world.begin(*make_bodies(19), bounds=bounds).tick()
    return sorted(world.take_messages(world.source), key=lambda message: message.body)


def return_messages(world: RedriveWorld, *messages: Message) -> set[str]:
    """Let messages that went back fail again and reach the DLQ. Return their bodies."""
    for message in messages:
        attributes = {
            name: attribute.to_request() for name, attribute in message.attributes.items()
        }
        world.send(message.body, **attributes)
    world.account.later(minutes=1)
    return {message.body for message in messages}


def make_quarantine(world: RedriveWorld, **attributes: str) -> None:
    world.account.queue("orders-quarantine", tag=None, **{**FIT, **attributes})


def assert_nothing_leaked(world: RedriveWorld, poison: set[str]) -> None:
    assert world.state is State.ESCALATED
    assert "mendq confirm orders-quarantine --region us-east-1" in world.progress.because
    assert world.count_visible_messages(world.quarantine_arn) == 0
    assert poison <= world.read_bodies(world.dlq)


def test_redrive_seals_quarantined_messages_with_the_quarantines_key_also_after_a_confirmation(
    world: RedriveWorld,
) -> None:
    """The key is the quarantine's own, and stays if a person confirms the queue again."""
    seal_keys = open_seal_keys(world.account)
    first, second, *_ = send_canary(world)
    assert seal_keys.load(world.quarantine_arn, SealUse.QUARANTINE) is None
    return_messages(world, first)
    world.tick()
    confirm_receiver(world.account, world.quarantine_arn)
    return_messages(world, second)
    world.tick()
    seal_key = seal_keys.load(world.quarantine_arn, SealUse.QUARANTINE)
    assert seal_key
    assert seal_keys.load(world.dlq, SealUse.QUARANTINE) is None
    messages = world.read_messages(world.quarantine_arn)
    assert len(messages) == 2
    assert all(is_quarantine_mark_sealed(message, seal_key) for message in messages)


@pytest.mark.parametrize("attributes", [{}, {"Policy": ROLE_POLICY}, {"KmsMasterKeyId": "alias/x"}])
def test_existing_queue_of_the_quarantines_name_gets_no_message_until_a_person_confirms_it(
    world: RedriveWorld, attributes: dict[str, str]
) -> None:
    first, *_ = send_canary(world)
    poison = return_messages(world, first)
    make_quarantine(world, **attributes)
    assert world.tick().case is not None
    assert_nothing_leaked(world, poison)
    assert "nothing records that Mendq made it" in world.progress.because


def test_quarantine_that_a_person_confirmed_is_used(world: RedriveWorld) -> None:
    first, *_ = send_canary(world)
    poison = return_messages(world, first)
    make_quarantine(world)
    confirm_receiver(world.account, world.quarantine_arn)
    assert world.tick().quarantined_count == 1
    assert world.read_bodies(world.quarantine_arn) == poison


def set_policy(world: RedriveWorld) -> None:
    world.configure(world.quarantine_arn, Policy=ROLE_POLICY)


def set_key(world: RedriveWorld) -> None:
    world.configure(world.quarantine_arn, KmsMasterKeyId="alias/theirs")


def set_dlq(world: RedriveWorld) -> None:
    theirs = world.account.queue("theirs", tag=None)
    policy = json.dumps({"deadLetterTargetArn": theirs, "maxReceiveCount": 1})
    world.configure(world.quarantine_arn, RedrivePolicy=policy)


def allow_other_sources(world: RedriveWorld) -> None:
    world.configure(world.quarantine_arn, RedriveAllowPolicy='{"redrivePermission":"allowAll"}')


def set_tag(world: RedriveWorld) -> None:
    world.account.tag(world.quarantine_arn, team="others")


def make_again(world: RedriveWorld) -> None:
    """Delete the quarantine and create one that differs only in its creation time."""
    url = world.account.url(world.quarantine_arn)
    world.account.clients.sqs.delete_queue(QueueUrl=url)
    world.account.later(minutes=2)
    make_quarantine(world)


def delete_quarantine(world: RedriveWorld) -> None:
    url = world.account.url(world.quarantine_arn)
    world.account.clients.sqs.delete_queue(QueueUrl=url)


CHANGES: dict[str, tuple[Callable[[RedriveWorld], object], str]] = {
    "policy": (set_policy, "its policy changed since Mendq made it"),
    "key": (set_key, "its KMS key and encryption changed since Mendq made it"),
    "dlq": (set_dlq, "its RedrivePolicy changed since Mendq made it"),
    "sources": (allow_other_sources, "its RedriveAllowPolicy changed since Mendq made it"),
    "tags": (set_tag, "its tags changed since Mendq made it"),
    "made again": (make_again, "it was deleted and created again since Mendq made it"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_quarantine_that_changed_since_mendq_made_it_gets_no_further_message(
    world: RedriveWorld, change: str
) -> None:
    first, second, *_ = send_canary(world)
    return_messages(world, first)
    assert world.tick().quarantined_count == 1
    read_queue(world.account, world.quarantine_arn)
    change_quarantine, reason = CHANGES[change]
    change_quarantine(world)
    poison = return_messages(world, second)
    assert world.tick().case is not None
    assert reason in world.progress.because
    assert_nothing_leaked(world, poison)


def test_unchanged_quarantine_gets_messages_at_every_tick(world: RedriveWorld) -> None:
    first, second, *_ = send_canary(world)
    return_messages(world, first)
    assert world.tick().quarantined_count == 1
    return_messages(world, second)
    assert world.tick().quarantined_count == 1
    assert not world.progress.is_over, world.progress.because


CHANGES_DURING_A_TICK = {
    **{name: CHANGES[name] for name in ("policy", "key", "tags", "made again")},
    "deleted": (delete_quarantine, "was deleted during the redrive"),
}


@pytest.mark.parametrize("change", CHANGES_DURING_A_TICK)
def test_change_of_the_quarantine_between_two_batches_halts_the_redrive_before_the_second(
    world: RedriveWorld, change: str
) -> None:
    canary = send_canary(world, MANY)
    assert len(canary) == 15
    poison = return_messages(world, *canary)
    change_quarantine, reason = CHANGES_DURING_A_TICK[change]
    batches = list[int]()

    def change_after_first_batch(params: dict[str, Any], **_: Any) -> None:
        if "quarantine" in str(params.get("body")):
            batches.append(len(json.loads(params["body"])["Entries"]))

    def act_once(**_: Any) -> None:
        if len(batches) == 1:
            batches.append(0)
            change_quarantine(world)

    events = world.account.clients.sqs.meta.events
    events.register("before-call.sqs.SendMessageBatch", change_after_first_batch)
    events.register("after-call.sqs.DeleteMessageBatch", act_once)
    outcome = world.tick()
    assert batches == [10, 0], "no batch after the change"
    assert outcome.quarantined_count == 10
    assert outcome.case is not None
    assert world.state is State.ESCALATED
    assert reason in world.progress.because
    assert len(poison & world.read_bodies(world.dlq)) == 5


def test_quarantine_that_appears_while_mendq_makes_it_is_refused_if_it_has_a_policy(
    world: RedriveWorld,
) -> None:
    """CreateQueue succeeds for an existing queue with the same attributes, whatever its policy."""
    first, *_ = send_canary(world)
    poison = return_messages(world, first)
    events = world.account.clients.sqs_for_writing.meta.events

    def make_first(params: dict[str, Any], **_: Any) -> None:
        events.unregister("before-call.sqs.CreateQueue", make_first)
        make_quarantine(world, Policy=ROLE_POLICY)

    events.register("before-call.sqs.CreateQueue", make_first)
    assert world.tick().case is not None
    assert "its policy is not what Mendq sets on a new queue" in world.progress.because
    assert_nothing_leaked(world, poison)


def test_quarantine_made_but_not_recorded_because_sqs_was_unavailable_is_used_by_the_next_tick(
    world: RedriveWorld,
) -> None:
    first, *_ = send_canary(world)
    poison = return_messages(world, first)
    world.refuse("ListQueueTags", "ServiceUnavailable", about="quarantine")
    assert world.tick().quarantined_count == 0
    assert not world.progress.is_over, world.progress.because
    world.refusals.clear()
    world.account.later(minutes=1)
    assert world.tick().quarantined_count == 1
    assert world.read_bodies(world.quarantine_arn) == poison


def test_queue_that_appears_an_hour_after_its_creation_was_noted_gets_no_message(
    world: RedriveWorld,
) -> None:
    first, *_ = send_canary(world)
    poison = return_messages(world, first)
    noted = Receiver(world.quarantine_arn, world.account.now, "redrive")
    open_receivers(world.account).put(noted)
    world.account.later(hours=1)
    make_quarantine(world)
    assert world.tick().case is not None
    assert_nothing_leaked(world, poison)


def test_redrive_does_not_start_until_a_person_confirms_the_existing_quarantine(
    world: RedriveWorld,
) -> None:
    world.send(*make_bodies(3))
    make_quarantine(world)
    run = world.make_run()
    dlq = Facts(world.dlq, world.account.attributes(world.dlq), {"mendq": "heal"})
    refusal = run.write_steps(run.clients, dlq, (world.redrive_step(),))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "receiver_unconfirmed"
    assert refusal.next_command == "mendq confirm orders-quarantine --region us-east-1"
    confirm_receiver(world.account, world.quarantine_arn)
    assert run.write_steps(run.clients, dlq, (world.redrive_step(),)) is None


class UnreadableMaker:
    """A maker that cannot read the quarantine or its record."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def find_objection(self, _queue_arn: str, _source_arn: str) -> str | None:
        raise self._error


@pytest.mark.parametrize(
    ("error_class", "is_for_good"),
    [(FactsUnavailable, False), (CaseStoreUnavailable, False), (QueueRefusesUs, True)],
)
def test_no_batch_goes_to_an_unreadable_quarantine_and_only_a_denial_by_its_policy_is_for_good(
    error_class: type[Exception], *, is_for_good: bool
) -> None:
    maker: Any = UnreadableMaker(error_class("not now"))
    gate = QuarantineGate(maker, "orders-quarantine", "orders", lambda _count: True)
    assert not gate.may_send_batch(10)
    assert "not now" in gate.blocker.reason
    assert gate.blocker.is_for_good == is_for_good
