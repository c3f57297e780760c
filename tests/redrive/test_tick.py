"""A redrive's ticks against queues and a case store: what stops it, and that nothing is lost."""

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
from tests.redrive.world import LATE, Redriving, texts

BY_THE_QUEUE = (
    "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: "
    "sqs:receivemessage with an explicit deny in a resource-based policy"
)
BY_IAM = "no identity-based policy allows it"


def ended(here: Redriving, most: int = 30) -> State:
    """Once the case is over."""
    assert here.minutes(most).case is not None, here.progress
    return here.state


def poisoned(here: Redriving) -> frozenset[str]:
    """Three of what went back first die again."""
    poison = frozenset(sorted(here.bodies(here.source))[:3])
    here.consume(poison)
    return poison


def test_first_redrive_tick_sends_a_canary_of_five_marked_messages(here: Redriving) -> None:
    outcome = here.begun(*texts(9)).tick()
    assert (outcome.case, outcome.sent_back_count, outcome.quarantined_count) == (None, 5, 0)
    assert {message.redrive_count for message in here.seen(here.source)} == {1}
    assert len(here.bodies(here.dlq)) == 4
    assert here.progress.stage is Stage.SOAK
    # 1.2 x 3 receives x 10 s is less than the least.
    assert here.progress.current.soak_ends_at == here.account.now + timedelta(seconds=60)


def test_one_returned_canary_message_halts_the_redrive_and_goes_to_quarantine(
    here: Redriving,
) -> None:
    here.begun(*texts(9)).tick()
    (poison, *_) = sorted(here.bodies(here.source))
    outcome = here.minutes(5, frozenset({poison}))
    assert (here.state, here.progress.stage) == (State.ESCALATED, Stage.HALTED)
    assert outcome.case is not None
    assert outcome.case.reason.startswith("of 5 messages that went back 1 came back")
    (retained,) = here.seen(here.quarantine)
    mark = read_quarantine_mark(retained)
    assert mark is not None
    assert (retained.body, mark.source, mark.redrive_count) == (poison, here.source, 1)
    assert mark.case == outcome.case.case_id
    assert len(here.bodies(here.dlq)) == 4
    ((_, page),) = here.pages
    assert "Escalated (redrive_halted): of 5 messages" in page
    assert "what came back is in orders-quarantine" in page
    assert "mendq quarantine peek orders --region us-east-1" in page
    assert "the cause is not fixed" in page
    assert "is fixed" not in page, "it halted because nothing is"
    before = here.progress
    assert redrive(make_owner_request(outcome.case), here.run()).refusal is not None
    assert here.progress == before


FORBIDS: dict[str, Callable[[Redriving], object]] = {
    "frozen": Redriving.freeze,
    "tag": lambda here: here.account.tag(here.source, **{"mendq:redrive": "off"}),
    "gone": lambda here: here.account.clients.sqs.delete_queue(
        QueueUrl=here.account.url(here.source)
    ),
    "cause": lambda here: here.case(
        State.ESCALATED, queue_arn=here.source, symptom="visibility_timeout_too_short"
    ),
    "keeps Mendq out": lambda here: here.refuse("GetQueueAttributes", "AccessDenied", BY_THE_QUEUE),
}


@pytest.mark.parametrize("how", FORBIDS)
def test_redrive_moves_nothing_if_frozen_tagged_off_source_gone_or_cause_unfixed(
    here: Redriving, how: str
) -> None:
    here.begun(*texts(9))
    FORBIDS[how](here)
    answer = here.tick()
    assert (answer.sent_back_count, here.progress.moved) == (0, 0)
    assert here.state is (State.APPLIED if how == "frozen" else State.ESCALATED)
    here.refusals.clear()
    assert len(here.bodies(here.dlq)) == 9
    if how == "frozen":
        assert "an incident" in answer.document()["reason"]
        here.freeze(thaw=True)
        assert ended(here) is State.VERIFIED


def test_queue_of_another_owner_that_names_the_dlq_does_not_halt_the_redrive(
    here: Redriving,
) -> None:
    here.begun(*texts(9))
    here.account.queue("anybody", tag=None, RedrivePolicy=RedrivePolicy(here.dlq, 3).text)
    here.refuse("ListQueueTags", "AccessDenied", BY_THE_QUEUE, about="anybody")
    assert ended(here) is State.VERIFIED
    assert here.progress.moved == 9


def test_cancel_true_and_no_other_value_halts_a_redrive_even_during_a_freeze(
    here: Redriving,
) -> None:
    here.begun(*texts(9)).tick(cancel="true")
    assert not here.progress.is_over
    here.freeze()
    for _ in range(2):
        assert here.tick(cancel=True).refusal is None
    assert here.progress.because == "a person took it back"
    assert (here.progress.stage, len(here.bodies(here.dlq))) == (Stage.HALTED, 4)


def test_redrive_tick_is_refused_while_another_tick_holds_the_claim(here: Redriving) -> None:
    here.begun(*texts(10))
    assert here.redrives.claim(here.dlq, "another", here.account.now) is not None
    for more in ({}, {"cancel": True}):
        refusal = here.tick(**more).refusal
        assert refusal is not None
        assert (refusal.code, refusal.is_retried) == ("claimed", True)
    assert len(here.bodies(here.dlq)) == 10
    here.account.later(seconds=91)
    assert here.tick().sent_back_count == 5


def test_redrive_tick_with_too_little_time_sends_nothing_and_hides_no_message(
    here: Redriving,
) -> None:
    here.begun(*texts(10))
    outcome = redrive(make_owner_request(here.newest()), here.run(remaining_seconds=20))
    assert isinstance(outcome, TickOutcome)
    assert (outcome.sent_back_count, len(here.bodies(here.dlq))) == (0, 10)


@pytest.mark.parametrize("call", ["GetQueueAttributes", "ReceiveMessage", "ListMessageMoveTasks"])
def test_redrive_waits_then_escalates_if_an_sqs_read_stays_denied(
    here: Redriving, call: str
) -> None:
    here.begun(*texts(9)).tick()
    here.refuse(call, "AccessDenied", BY_IAM)
    here.account.later(minutes=5)
    for _ in range(4):
        assert here.tick().case is None
        here.account.later(minutes=1)
    here.refusals.insert(0, lambda *_: None)
    while here.tick().case is None:
        here.account.later(minutes=1)
    assert (here.state, len(here.pages)) == (State.ESCALATED, 1)
    assert BY_IAM in here.progress.because
    assert here.progress.moved == 5


@pytest.mark.parametrize(("message", "is_soon"), [(BY_THE_QUEUE, True), (BY_IAM, False)])
def test_redrive_escalates_if_the_quarantine_belongs_to_another_owner_and_counts_returns_once(
    here: Redriving, message: str, is_soon: bool
) -> None:
    here.begun(*texts(9), bounds=LATE).tick()
    here.account.queue("orders-quarantine", tag=None)
    here.refuse("GetQueueAttributes", "AccessDenied", message, about="quarantine")
    here.account.later(minutes=2)
    poisoned(here)
    assert ended(here) is State.ESCALATED
    assert (here.taken < 3) is is_soon
    assert (len(here.pages), here.progress.moved) == (1, 5)
    assert here.progress.returned <= 3


def test_redrive_escalates_if_sqs_always_refuses_one_message_and_moves_the_others(
    here: Redriving,
) -> None:
    here.begun(*texts(10), "bad")
    here.refuse("SendMessageBatch", "InvalidMessageContents", "U+FFFE", about="'bad'")
    assert ended(here) is State.ESCALATED
    assert (here.progress.moved, here.bodies(here.dlq)) == (10, {"bad"})
    assert "U+FFFE" in here.progress.because


def test_redrive_escalates_after_one_send_if_the_source_was_deleted_and_lists_where_messages_are(
    here: Redriving,
) -> None:
    here.begun(*texts(30)).tick()
    arrived = here.consume()
    url = here.account.url(here.source)
    sends = list[str]()

    def deleting(call: str, _: Any) -> None:
        if call == "SendMessageBatch":
            here.account.clients.sqs.delete_queue(QueueUrl=url)
            sends.append(call)

    here.refusals.append(deleting)
    while here.tick().case is None:
        here.account.later(minutes=1)
    assert (here.state, len(sends)) == (State.ESCALATED, 1)
    assert here.bodies(here.dlq) == set(texts(30)) - arrived
    assert "is gone, and with it what nobody took of 5 messages" in here.progress.because
    assert "25 are in orders-dlq: `mendq redrive orders-dlq --to OTHER" in here.progress.because


@pytest.mark.parametrize("name", ["orders-dlq", "orders"])
def test_redrive_escalates_if_the_dlq_or_source_was_deleted_and_made_again(
    here: Redriving, name: str
) -> None:
    here.begun(*texts(9)).tick()
    queue_arn = here.dlq if name.endswith("dlq") else here.source
    attributes = here.account.attributes(queue_arn)
    here.account.clients.sqs.delete_queue(QueueUrl=here.account.url(queue_arn))
    retained = attributes.keys() & {"VisibilityTimeout", "RedrivePolicy"}
    here.account.queue(
        name, **{name_of_attribute: attributes[name_of_attribute] for name_of_attribute in retained}
    )
    here.account.later(minutes=1)
    assert ended(here, 1) is State.ESCALATED
    assert "made again" in here.progress.because


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
def test_redrive_with_damaged_progress_in_the_case_store_escalates_with_one_notification(
    here: Redriving, over: dict[str, Any] | str
) -> None:
    here.begun(*texts(9)).tick()
    text = over
    if isinstance(over, dict):
        document = here.progress.document()
        for name, value in over.items():
            document[name] = {**document[name], **value} if isinstance(value, dict) else value
        text = json.dumps(document)
    here.account.clients.dynamodb.update_item(
        TableName="case_store",
        Key=make_redrive_key(here.dlq),
        UpdateExpression="SET document = :d",
        ExpressionAttributeValues={":d": {"S": str(text)}},
    )
    here.account.later(minutes=1)
    assert ended(here, 3) is State.ESCALATED
    assert len(here.pages) == 1
    assert "case store" in here.progress.because
    assert len(here.bodies(here.dlq)) == 4


@pytest.mark.parametrize("states", [(State.PROPOSED,), (State.APPLIED, State.ROLLED_BACK)])
def test_redrive_of_a_case_that_is_not_applied_moves_no_message(
    here: Redriving, states: tuple[State, ...]
) -> None:
    here.send("a")
    case = here.case(*states)
    for more in ({}, {"cancel": True}):
        assert redrive({**make_owner_request(case), **more}, here.run()).case is None
    assert (here.waiting(here.source), here.newest()) == (0, case)
