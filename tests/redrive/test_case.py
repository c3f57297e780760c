"""A redrive's case from start to rollback, and the quarantine queue of its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mendq.aws.dlqs import list_source_arns
from mendq.aws.errors import FactsUnavailable
from mendq.cases.receivers import ReceiverMaker, Receivers
from mendq.follow_up.follow_up import follow_up
from mendq.heal.owners import make_owner_request
from mendq.model.dlq import make_quarantine_attributes
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    AttributeStep,
    RedriveMessages,
    SetMessageRetention,
)
from mendq.redrive.reads import RedriveStart
from mendq.redrive.redrive import prepare_quarantine
from tests.account.account import ACCOUNT, REGION, Account
from tests.account.receivers import confirm_receiver, open_receivers
from tests.heal.operators import OWNERS, make_context, outcomes_by_attribute, roll_back
from tests.redrive.world import LONGEST, RedriveWorld, make_redrive_world

DAYS_4 = 345_600


@pytest.fixture
def short_world() -> Iterator[RedriveWorld]:
    with make_redrive_world("orders", MessageRetentionPeriod=str(DAYS_4)) as made:
        yield made


def read_dlq_facts(short_world: RedriveWorld) -> Facts:
    tags = short_world.account.clients.sqs.list_queue_tags(
        QueueUrl=short_world.account.url(short_world.dlq)
    )
    return Facts(short_world.dlq, short_world.account.attributes(short_world.dlq), tags["Tags"])


def start_redrive(
    short_world: RedriveWorld, *steps: AttributeStep, at: Facts | None = None
) -> Refusal | None:
    run = short_world.make_run()
    write = RedriveStart(run.settings.consent, run.open_store(Receivers), run.now).write
    given = steps or (
        RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, short_world.source),
        SetMessageRetention(DAYS_4, LONGEST),
    )
    return write(short_world.account.clients, at or read_dlq_facts(short_world), given)


def read_dlq_retention(short_world: RedriveWorld) -> int:
    return int(short_world.account.attributes(short_world.dlq)["MessageRetentionPeriod"])


def test_redrive_start_moves_no_message_and_changes_no_queue(short_world: RedriveWorld) -> None:
    short_world.send("one", "two")
    before = {
        queue_arn: short_world.account.attributes(queue_arn)
        for queue_arn in (short_world.source, short_world.dlq)
    }
    assert start_redrive(short_world, short_world.redrive_step()) is None
    assert {queue_arn: short_world.account.attributes(queue_arn) for queue_arn in before} == before


def test_redrive_start_with_a_retention_step_raises_the_retention_of_the_dlq(
    short_world: RedriveWorld,
) -> None:
    assert start_redrive(short_world) is None
    assert read_dlq_retention(short_world) == LONGEST


@pytest.mark.parametrize("status", ["COMPLETED", "CANCELLED", "FAILED"])
def test_redrive_start_is_not_refused_after_a_message_movement_task_ended(
    short_world: RedriveWorld, status: str
) -> None:
    short_world.move_tasks.append({"Status": status})
    assert start_redrive(short_world) is None


def share_dlq_with_second_source(world: RedriveWorld) -> None:
    ending = ".fifo" if world.dlq.endswith(".fifo") else ""
    world.account.queue(f"second{ending}", RedrivePolicy=RedrivePolicy(world.dlq, 3).text)
    assert len(list_source_arns(world.account.clients, world.dlq)) == 2


def give_dlq_its_own_dlq(short_world: RedriveWorld) -> None:
    short_world.configure(
        short_world.dlq, RedrivePolicy=RedrivePolicy(short_world.account.queue("last"), 3).text
    )


def use_fifo_source(short_world: RedriveWorld) -> None:
    short_world.source = short_world.account.queue("payments.fifo")


FAULTS: dict[str, Callable[[RedriveWorld], object]] = {
    "does not name it": lambda w: w.configure(w.source, RedrivePolicy=""),
    "has a DLQ itself": give_dlq_its_own_dlq,
    "no queue": lambda w: w.account.clients.sqs.delete_queue(QueueUrl=w.account.url(w.source)),
    "does not name it as": use_fifo_source,
    "not managed": lambda w: w.account.tag(w.source, mendq="off"),
    "only observed": lambda w: w.account.tag(w.source, mendq="observe"),
    "mendq:redrive of": lambda w: w.account.tag(w.source, **{"mendq:redrive": "off"}),
    "mendq:redrive of arn": lambda w: w.account.tag(w.dlq, **{"mendq:redrive": "off"}),
    "a message movement task runs on": lambda w: w.move_tasks.append({"Status": "WHATEVER-COMES"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_redrive_start_with_unfit_queues_is_refused_and_changes_nothing(
    short_world: RedriveWorld, fault: str
) -> None:
    FAULTS[fault](short_world)
    refusal = start_redrive(short_world)
    assert refusal is not None
    assert refusal.code == "redrive_unfit"
    assert fault in refusal.reason
    assert read_dlq_retention(short_world) == DAYS_4


def test_redrive_start_is_accepted_if_a_second_source_shares_the_standard_dlq(
    short_world: RedriveWorld,
) -> None:
    share_dlq_with_second_source(short_world)
    assert start_redrive(short_world, short_world.redrive_step()) is None


def test_redrive_start_is_refused_if_a_second_source_shares_the_fifo_dlq(
    fifo_world: RedriveWorld,
) -> None:
    share_dlq_with_second_source(fifo_world)
    refusal = start_redrive(fifo_world, fifo_world.redrive_step())
    assert refusal is not None
    assert refusal.code == "redrive_unfit"
    assert "it is now the DLQ of 2 queues" in refusal.reason


def test_redrive_start_without_a_redrive_step_is_refused_and_changes_nothing(
    short_world: RedriveWorld,
) -> None:
    assert start_redrive(short_world, SetMessageRetention(DAYS_4, LONGEST)) is not None
    assert read_dlq_retention(short_world) == DAYS_4


def test_redrive_start_is_refused_and_keeps_a_retention_that_a_person_set_since_the_plan(
    short_world: RedriveWorld,
) -> None:
    looked = read_dlq_facts(short_world)
    short_world.configure(short_world.dlq, MessageRetentionPeriod="1000000")
    refusal = start_redrive(short_world, at=looked)
    assert refusal is not None
    assert refusal.code == "changed_meanwhile"
    assert read_dlq_retention(short_world) == 1_000_000


def follow_up_after(world: RedriveWorld, **later: float) -> None:
    world.account.later(**later)
    assert follow_up(make_context(world.account), OWNERS, lambda: 60).errors == {}


def test_follow_up_calls_the_redrive_each_minute_and_never_ends_its_case_itself(
    world: RedriveWorld,
) -> None:
    case = world.record_case(State.APPLIED)
    for minute in range(1, 6):
        follow_up_after(world, minutes=1)
        assert len(world.owner_requests) == minute
    world.account.tag(world.dlq, mendq="off")
    follow_up_after(world, days=20)
    assert world.owner_requests[-1] == make_owner_request(case)
    assert len(world.owner_requests) == 6
    assert world.read_newest_case() == case


def test_follow_up_calls_the_redrive_even_if_the_case_bucket_takes_no_writes(
    world: RedriveWorld,
) -> None:
    def fail(**_: Any) -> None:
        raise ConnectionError

    world.record_case(State.APPLIED)
    world.account.clients.s3.meta.events.register("before-call.s3.PutObject", fail)
    for _ in range(2):
        world.account.later(minutes=1)
        follow_up(make_context(world.account), OWNERS, lambda: 60)
    assert len(world.owner_requests) == 2


def test_rollback_of_a_redrive_cancels_its_run_even_in_a_freeze(world: RedriveWorld) -> None:
    case = world.record_case(State.APPLIED)
    world.freeze()
    answered = roll_back(world.account, case.case_id)
    assert answered["state"] == "rolled_back"
    assert outcomes_by_attribute(answered) == {"Dlq": "undone"}
    assert world.read_newest_case().state is State.ROLLED_BACK
    assert world.owner_requests == [{**make_owner_request(case), "cancel": True}]


def test_second_rollback_of_a_redrive_answers_the_same_and_cancels_nothing_again(
    world: RedriveWorld,
) -> None:
    case = world.record_case(State.APPLIED)
    first = roll_back(world.account, case.case_id)
    assert first["state"] == "rolled_back"
    world.owner_requests.clear()
    assert roll_back(world.account, case.case_id) == first
    assert world.owner_requests == []


def test_rollback_of_a_redrive_blocks_new_ones_of_the_dlq_for_7_days(world: RedriveWorld) -> None:
    case = world.record_case(State.APPLIED)
    roll_back(world.account, case.case_id)
    view = make_context(world.account).case_store.look(world.dlq, case.symptom, ("Dlq",))
    until = view.record_of("Dlq").overridden_until
    assert until is not None
    assert (until - world.account.now).days == 7


@pytest.mark.parametrize("code", ["claimed", "not_cancelled"])
def test_rollback_of_a_redrive_that_could_not_be_cancelled_keeps_the_case_open(
    world: RedriveWorld, code: str
) -> None:
    case = world.record_case(State.APPLIED)
    world.owner_answer = {"state": None, "code": code, "reason": "another run is at work"}
    answered = roll_back(world.account, case.case_id)
    assert answered["error"] == "claimed"
    assert world.owner_answer["reason"] in answered["reason"]
    assert world.read_newest_case() == case


def make_facts(account: Account, queue_arn: str) -> Facts:
    return Facts(queue_arn, account.attributes(queue_arn), {"mendq": "heal", "team": "orders"})


def prepare(account: Account, source: Facts) -> str | Refusal:
    maker = ReceiverMaker(account.clients, open_receivers(account), account.now, "redrive")
    return prepare_quarantine(maker, source)


@pytest.mark.parametrize(
    ("name", "quarantine"),
    [("orders", "orders-quarantine"), ("orders.fifo", "orders-quarantine.fifo")],
)
def test_new_quarantine_has_the_sources_type_is_encrypted_and_keeps_messages_for_14_days(
    account: Account, name: str, quarantine: str
) -> None:
    source = make_facts(account, account.queue(name))
    made = prepare(account, source)
    assert made == f"arn:aws:sqs:{REGION}:{ACCOUNT}:{quarantine}"
    attributes = account.attributes(made)
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert attributes["SqsManagedSseEnabled"] == "true"
    assert attributes.get("FifoQueue", "false") == str(name.endswith(".fifo")).lower()


def test_new_quarantine_has_no_policy_and_none_of_the_sources_tags(account: Account) -> None:
    made = prepare(account, make_facts(account, account.queue("orders")))
    assert isinstance(made, str)
    assert "Policy" not in account.attributes(made)
    tags = account.clients.sqs.list_queue_tags(QueueUrl=account.url(made))
    assert tags.get("Tags", {}) == {}


def test_existing_quarantine_of_the_source_is_used_again(account: Account) -> None:
    source = make_facts(account, account.queue("orders"))
    assert prepare(account, source) == prepare(account, source)


def test_quarantine_that_a_lambda_consumes_is_refused(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_facts(account, account.queue("orders"))
    prepare(account, source)
    mapping = {"FunctionArn": "arn:aws:lambda:us-east-1:1:function:tidy", "State": "Enabled"}
    monkeypatch.setattr("mendq.redrive.redrive.list_mappings", lambda *_: [mapping])
    assert "tidy consumes it" in str(prepare(account, source))


@pytest.mark.parametrize("ending", ["", ".fifo"])
def test_existing_queue_like_a_new_quarantine_is_refused_until_a_person_confirms_it(
    account: Account, ending: str
) -> None:
    source = make_facts(account, account.queue(f"orders{ending}"))
    attributes = make_quarantine_attributes(source)
    theirs = account.queue(f"orders-quarantine{ending}", tag=None, **attributes)
    refusal = prepare(account, source)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "receiver_unconfirmed"
    confirm_receiver(account, theirs)
    assert prepare(account, source) == theirs


def test_existing_queue_with_short_retention_is_refused_as_quarantine_and_not_changed(
    account: Account,
) -> None:
    source = make_facts(account, account.queue("orders"))
    theirs = account.queue("orders-quarantine", tag=None, MessageRetentionPeriod="60")
    confirm_receiver(account, theirs)
    before = account.attributes(theirs)
    refusal = prepare(account, source)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "name_taken"
    assert "less than 1209600 seconds" in refusal.reason
    assert account.attributes(theirs) == before


def test_quarantine_creation_raises_facts_unavailable_if_sqs_is_unavailable(
    world: RedriveWorld,
) -> None:
    world.refuse("CreateQueue", "ServiceUnavailable")
    source = make_facts(world.account, world.source)
    with pytest.raises(FactsUnavailable, match="orders-quarantine"):
        prepare(world.account, source)
