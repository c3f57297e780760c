"""Redrive ticks against queues and a case store: what stops a redrive; it loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mendq.heal.owners import make_owner_request
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.redrive.messages import read_quarantine_mark
from mendq.redrive.progress import Stage
from mendq.redrive.redrive import TickOutcome, redrive
from mendq.redrive.store import make_redrive_key
from tests.redrive.world import LATE, RedriveWorld, make_bodies

BY_THE_QUEUE = (
    "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: "
    "sqs:receivemessage with an explicit deny in a resource-based policy"
)
BY_IAM = "no identity-based policy allows it"


def run_to_end(world: RedriveWorld, most: int = 30) -> State:
    """Run ticks until the case ends. Return its state."""
    assert world.run_minutes(most).case is not None, world.progress
    return world.state


def return_three_to_dlq(world: RedriveWorld) -> frozenset[str]:
    """Let three of the first sent messages return to the DLQ."""
    poison = frozenset(sorted(world.read_bodies(world.source))[:3])
    world.consume(poison)
    return poison


def test_first_redrive_tick_sends_five_marked_canary_messages_and_begins_a_soak_of_60_seconds(
    world: RedriveWorld,
) -> None:
    outcome = world.begin(*make_bodies(9)).tick()
    assert (outcome.case, outcome.sent_back_count, outcome.quarantined_count) == (None, 5, 0)
    assert {message.redrive_count for message in world.read_messages(world.source)} == {1}
    assert len(world.read_bodies(world.dlq)) == 4
    assert world.progress.stage is Stage.SOAK
    # 1.2 x 3 receives x 10 s is less than the least.
    assert world.progress.current.soak_ends_at == world.account.now + timedelta(seconds=60)


def test_one_returned_canary_message_goes_to_quarantine_and_all_others_go_back(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(100)).tick()
    (poison, *_) = sorted(world.read_bodies(world.source))
    sent_counts = list[int]()
    for _ in range(12):
        world.consume(frozenset({poison}))
        world.account.later(minutes=1)
        outcome = world.tick()
        sent_counts.append(outcome.sent_back_count)
        if outcome.case is not None:
            break
    assert (world.state, world.progress.stage) == (State.VERIFIED, Stage.DONE)
    assert [count for count in sent_counts if count] == [30, 60, 5]
    assert world.read_bodies(world.quarantine_arn) == {poison}
    assert (world.read_bodies(world.dlq), world.progress.returned) == (set(), 1)
    assert world.progress.because == (
        "100 messages went back, 1 of them came back and is in orders-quarantine"
    )


def test_second_message_that_returns_in_the_second_canary_halts_the_redrive(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(100)).tick()
    (first, *_) = sorted(world.read_bodies(world.source))
    world.consume(frozenset({first}))
    world.account.later(minutes=1)
    assert world.tick().sent_back_count == 30
    (second, *_) = sorted(world.read_bodies(world.source))
    outcome = world.run_minutes(5, frozenset({second}))
    assert outcome.case is not None
    assert outcome.case.reason.startswith(
        "of 35 messages that went back 2 came back. The limit is 2"
    )
    assert world.read_bodies(world.quarantine_arn) == {first, second}
    assert len(world.read_bodies(world.dlq)) == 65


def halt_by_two_returned_messages(world: RedriveWorld) -> frozenset[str]:
    """Send a canary of five messages, of which two return to the DLQ. Return their bodies."""
    world.begin(*make_bodies(9)).tick()
    poison = frozenset(sorted(world.read_bodies(world.source))[:2])
    assert world.run_minutes(5, poison).case is not None
    return poison


def test_two_returned_canary_messages_halt_the_redrive_and_the_rest_stays(
    world: RedriveWorld,
) -> None:
    halt_by_two_returned_messages(world)
    assert (world.state, world.progress.stage) == (State.ESCALATED, Stage.HALTED)
    reason = world.read_newest_case().reason
    assert reason.startswith("of 5 messages that went back 2 came back")
    assert len(world.read_bodies(world.dlq)) == 4


def test_returned_messages_go_to_quarantine_with_their_source_and_case(
    world: RedriveWorld,
) -> None:
    poison = halt_by_two_returned_messages(world)
    quarantined = world.read_messages(world.quarantine_arn)
    assert {message.body for message in quarantined} == poison
    for message in quarantined:
        mark = read_quarantine_mark(message)
        assert mark is not None
        assert (mark.source, mark.redrive_count) == (world.source, 1)
        assert mark.case == world.read_newest_case().case_id


def test_notification_of_a_halted_redrive_says_why_where_the_message_is_and_what_to_do(
    world: RedriveWorld,
) -> None:
    halt_by_two_returned_messages(world)
    ((_, page),) = world.notifications
    assert "Escalated (redrive_halted): of 5 messages" in page
    assert "what came back is in orders-quarantine" in page
    assert "mendq quarantine peek orders --region us-east-1" in page
    assert "the cause is not fixed" in page
    assert "is fixed" not in page


def test_tick_of_a_halted_redrive_is_refused_and_changes_nothing(world: RedriveWorld) -> None:
    halt_by_two_returned_messages(world)
    before = world.progress
    request = make_owner_request(world.read_newest_case())
    assert redrive(request, world.make_run()).refusal is not None
    assert world.progress == before
    assert len(world.read_bodies(world.dlq)) == 4


ENDS_REDRIVE: dict[str, Callable[[RedriveWorld], object]] = {
    "tag": lambda world: world.account.tag(world.source, **{"mendq:redrive": "off"}),
    "gone": lambda world: world.account.clients.sqs.delete_queue(
        QueueUrl=world.account.url(world.source)
    ),
    "cause": lambda world: world.record_case(
        State.ESCALATED, queue_arn=world.source, symptom="visibility_timeout_too_short"
    ),
    "keeps Mendq out": lambda world: world.refuse(
        "GetQueueAttributes", "AccessDenied", BY_THE_QUEUE
    ),
}


@pytest.mark.parametrize("how", ENDS_REDRIVE)
def test_redrive_that_may_not_begin_escalates_and_moves_nothing(
    world: RedriveWorld, how: str
) -> None:
    world.begin(*make_bodies(9))
    ENDS_REDRIVE[how](world)
    answer = world.tick()
    assert (answer.sent_back_count, world.progress.moved) == (0, 0)
    assert world.state is State.ESCALATED
    world.refusals.clear()
    assert len(world.read_bodies(world.dlq)) == 9


def test_redrive_moves_nothing_during_a_freeze_and_finishes_after_it(world: RedriveWorld) -> None:
    world.begin(*make_bodies(9))
    world.freeze()
    answer = world.tick()
    assert (answer.sent_back_count, world.progress.moved) == (0, 0)
    assert "an incident" in answer.document()["reason"]
    assert world.state is State.APPLIED
    assert len(world.read_bodies(world.dlq)) == 9
    world.freeze(thaw=True)
    assert run_to_end(world) is State.VERIFIED
    assert world.progress.moved == 9


def test_queue_of_another_owner_that_names_the_dlq_does_not_halt_the_redrive(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(9))
    world.account.queue("anybody", tag=None, RedrivePolicy=RedrivePolicy(world.dlq, 3).text)
    world.refuse("ListQueueTags", "AccessDenied", BY_THE_QUEUE, about="anybody")
    assert run_to_end(world) is State.VERIFIED
    assert world.progress.moved == 9


def test_redrive_is_halted_by_cancel_true_even_during_a_freeze_but_not_by_another_value(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(9)).tick(cancel="true")
    assert not world.progress.is_over
    world.freeze()
    for _ in range(2):
        assert world.tick(cancel=True).refusal is None
    assert world.progress.because == "a person took it back"
    assert (world.progress.stage, len(world.read_bodies(world.dlq))) == (Stage.HALTED, 4)


def test_redrive_tick_is_refused_while_another_tick_holds_the_claim(world: RedriveWorld) -> None:
    world.begin(*make_bodies(10))
    assert world.redrive_store.claim(world.dlq, "another", world.account.now) is not None
    for more in ({}, {"cancel": True}):
        refusal = world.tick(**more).refusal
        assert refusal is not None
        assert (refusal.code, refusal.is_retried) == ("claimed", True)
    assert len(world.read_bodies(world.dlq)) == 10
    world.account.later(seconds=91)
    assert world.tick().sent_back_count == 5


def test_redrive_tick_with_too_little_time_sends_nothing_and_hides_no_message(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(10))
    outcome = redrive(
        make_owner_request(world.read_newest_case()), world.make_run(remaining_seconds=20)
    )
    assert isinstance(outcome, TickOutcome)
    assert (outcome.sent_back_count, len(world.read_bodies(world.dlq))) == (0, 10)


@pytest.mark.parametrize("call", ["GetQueueAttributes", "ReceiveMessage", "ListMessageMoveTasks"])
def test_redrive_waits_then_escalates_if_an_sqs_read_stays_denied(
    world: RedriveWorld, call: str
) -> None:
    world.begin(*make_bodies(9)).tick()
    world.refuse(call, "AccessDenied", BY_IAM)
    world.account.later(minutes=5)
    for _ in range(4):
        assert world.tick().case is None
        world.account.later(minutes=1)
    while world.tick().case is None:
        world.account.later(minutes=1)
    assert (world.state, len(world.notifications)) == (State.ESCALATED, 1)
    assert BY_IAM in world.progress.because
    assert world.progress.moved == 5


def return_three_while_quarantine_is_denied(world: RedriveWorld, error_message: str) -> None:
    """Let three of five sent messages return while Mendq may not read the quarantine."""
    world.begin(*make_bodies(9), bounds=LATE).tick()
    world.account.queue("orders-quarantine", tag=None)
    world.refuse("GetQueueAttributes", "AccessDenied", error_message, about="quarantine")
    world.account.later(minutes=2)
    return_three_to_dlq(world)


def test_redrive_escalates_within_two_minutes_if_the_policy_of_the_quarantine_denies_mendq(
    world: RedriveWorld,
) -> None:
    return_three_while_quarantine_is_denied(world, BY_THE_QUEUE)
    assert run_to_end(world) is State.ESCALATED
    assert world.minutes_taken <= 2
    assert (len(world.notifications), world.progress.moved) == (1, 5)


def test_redrive_waits_then_escalates_if_iam_denies_the_quarantine(world: RedriveWorld) -> None:
    """IAM's answer can be wrong for some minutes after a change of a role."""
    return_three_while_quarantine_is_denied(world, BY_IAM)
    assert run_to_end(world) is State.ESCALATED
    assert world.minutes_taken > 2
    assert (len(world.notifications), world.progress.moved) == (1, 5)


def test_returned_messages_that_cannot_be_quarantined_are_not_counted_again_at_every_tick(
    world: RedriveWorld,
) -> None:
    return_three_while_quarantine_is_denied(world, BY_IAM)
    for _ in range(4):
        world.tick()
        world.account.later(minutes=1)
    assert world.progress.returned <= 3
    assert world.progress.quarantined == 0


def test_redrive_escalates_if_sqs_always_refuses_one_message_and_moves_the_others(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(10), "bad")
    world.refuse("SendMessageBatch", "InvalidMessageContents", "U+FFFE", about="'bad'")
    assert run_to_end(world) is State.ESCALATED
    assert (world.progress.moved, world.read_bodies(world.dlq)) == (10, {"bad"})
    assert "U+FFFE" in world.progress.because


def test_redrive_whose_source_was_deleted_escalates_and_says_where_messages_are(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(30)).tick()
    arrived = world.consume()
    url = world.account.url(world.source)
    sends = list[str]()

    def deleting(call: str, _: Any) -> None:
        if call == "SendMessageBatch":
            world.account.clients.sqs.delete_queue(QueueUrl=url)
            sends.append(call)

    world.refusals.append(deleting)
    while world.tick().case is None:
        world.account.later(minutes=1)
    assert (world.state, len(sends)) == (State.ESCALATED, 1)
    assert world.read_bodies(world.dlq) == set(make_bodies(30)) - arrived
    assert "is gone, and with it what nobody took of 5 messages" in world.progress.because
    assert "25 are in orders-dlq: `mendq redrive orders-dlq --to OTHER" in world.progress.because


@pytest.mark.parametrize("name", ["orders-dlq", "orders"])
def test_redrive_escalates_if_the_dlq_or_source_was_deleted_and_made_again(
    world: RedriveWorld, name: str
) -> None:
    world.begin(*make_bodies(9)).tick()
    queue_arn = world.dlq if name.endswith("dlq") else world.source
    attributes = world.account.attributes(queue_arn)
    world.account.clients.sqs.delete_queue(QueueUrl=world.account.url(queue_arn))
    retained = attributes.keys() & {"VisibilityTimeout", "RedrivePolicy"}
    world.account.queue(
        name, **{name_of_attribute: attributes[name_of_attribute] for name_of_attribute in retained}
    )
    world.account.later(minutes=1)
    assert run_to_end(world, 1) is State.ESCALATED
    assert "made again" in world.progress.because


VICTIM = "arn:aws:sqs:us-east-1:123456789012:victim"


@pytest.mark.parametrize(
    "over",
    [
        {"current": {"size": "5"}},
        {"queues": {"dlq_arn": f"{VICTIM}-dlq"}},
        {"queues": {"source_arn": VICTIM}},
        "{",
    ],
)
def test_redrive_whose_stored_progress_is_damaged_or_names_other_queues_escalates_and_notifies_once(
    world: RedriveWorld, over: dict[str, Any] | str
) -> None:
    world.begin(*make_bodies(9)).tick()
    text = over
    if isinstance(over, dict):
        document = world.progress.document()
        for name, value in over.items():
            document[name] = {**document[name], **value} if isinstance(value, dict) else value
        text = json.dumps(document)
    world.account.clients.dynamodb.update_item(
        TableName="case_store",
        Key=make_redrive_key(world.dlq),
        UpdateExpression="SET document = :d",
        ExpressionAttributeValues={":d": {"S": str(text)}},
    )
    world.account.later(minutes=1)
    assert run_to_end(world, 3) is State.ESCALATED
    assert len(world.notifications) == 1
    assert "case store" in world.progress.because
    assert len(world.read_bodies(world.dlq)) == 4


@pytest.mark.parametrize("states", [(State.PROPOSED,), (State.APPLIED, State.ROLLED_BACK)])
def test_redrive_of_a_case_that_is_not_applied_moves_no_message(
    world: RedriveWorld, states: tuple[State, ...]
) -> None:
    world.send("a")
    case = world.record_case(*states)
    for more in ({}, {"cancel": True}):
        assert redrive({**make_owner_request(case), **more}, world.make_run()).case is None
    assert (world.count_visible_messages(world.source), world.read_newest_case()) == (0, case)
