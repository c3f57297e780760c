"""A redrive's case: what has to fit before it begins, who goes on with it, who stops it; and the
quarantine that its source gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mendq.aws.dlqs import list_source_arns
from mendq.aws.errors import FactsUnavailable
from mendq.follow_up.follow_up import follow_up
from mendq.heal.owners import make_owner_request
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
from tests.heal.operators import OWNERS, make_context, outcomes_by_attribute, roll_back
from tests.redrive.world import LONGEST, Redriving, redriving

DAYS_4 = 345_600


@pytest.fixture
def world() -> Iterator[Redriving]:
    with redriving("orders", MessageRetentionPeriod=str(DAYS_4)) as made:
        yield made


def seen(world: Redriving) -> Facts:
    tags = world.account.clients.sqs.list_queue_tags(QueueUrl=world.account.url(world.dlq))
    return Facts(world.dlq, world.account.attributes(world.dlq), tags["Tags"])


def start(world: Redriving, *steps: AttributeStep, at: Facts | None = None) -> Refusal | None:
    write = RedriveStart(world.account.settings.consent).write
    given = steps or (
        RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, world.source),
        SetMessageRetention(DAYS_4, LONGEST),
    )
    return write(world.account.clients, at or seen(world), given)


def retention(world: Redriving) -> int:
    return int(world.account.attributes(world.dlq)["MessageRetentionPeriod"])


def test_redrive_start_with_valid_queues_raises_dlq_retention_and_moves_no_message(
    world: Redriving,
) -> None:
    before = {
        queue_arn: world.account.attributes(queue_arn) for queue_arn in (world.source, world.dlq)
    }
    world.tasks[:] = [{"Status": status} for status in ("COMPLETED", "CANCELLED", "FAILED")]
    assert start(world, world.back()) is None
    assert {queue_arn: world.account.attributes(queue_arn) for queue_arn in before} == before
    assert start(world) is None
    assert retention(world) == LONGEST


def _shared(world: Redriving) -> None:
    world.account.queue("second", RedrivePolicy=RedrivePolicy(world.dlq, 3).text)
    assert len(list_source_arns(world.account.clients, world.dlq)) == 2


def _behind_another(world: Redriving) -> None:
    world.configure(world.dlq, RedrivePolicy=RedrivePolicy(world.account.queue("last"), 3).text)


def _of_another_type(world: Redriving) -> None:
    world.source = world.account.queue("payments.fifo")


FAULTS: dict[str, Callable[[Redriving], object]] = {
    "does not name it": lambda w: w.configure(w.source, RedrivePolicy=""),
    "DLQ of 2 queues": _shared,
    "has a DLQ itself": _behind_another,
    "no queue": lambda w: w.account.clients.sqs.delete_queue(QueueUrl=w.account.url(w.source)),
    "does not name it as": _of_another_type,
    "not managed": lambda w: w.account.tag(w.source, mendq="off"),
    "only observed": lambda w: w.account.tag(w.source, mendq="observe"),
    "mendq:redrive of": lambda w: w.account.tag(w.source, **{"mendq:redrive": "off"}),
    "mendq:redrive of arn": lambda w: w.account.tag(w.dlq, **{"mendq:redrive": "off"}),
    "a message movement task runs on": lambda w: w.tasks.append({"Status": "WHATEVER-COMES"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_redrive_start_with_unfit_queues_is_refused_and_changes_nothing(
    world: Redriving, fault: str
) -> None:
    FAULTS[fault](world)
    refusal = start(world)
    assert refusal is not None
    assert refusal.code == "redrive_unfit"
    assert fault in refusal.reason
    assert retention(world) == DAYS_4


def test_redrive_start_is_refused_if_the_dlq_changed_since_the_plan_or_no_message_moves(
    world: Redriving,
) -> None:
    looked = seen(world)
    assert start(world, SetMessageRetention(DAYS_4, LONGEST)) is not None
    assert retention(world) == DAYS_4
    world.configure(world.dlq, MessageRetentionPeriod="1000000")
    refusal = start(world, at=looked)
    assert refusal is not None
    assert refusal.code == "changed_meanwhile"
    assert retention(world) == 1_000_000


def follow(here: Redriving, **later: float) -> None:
    here.account.later(**later)
    assert follow_up(make_context(here.account), OWNERS, lambda: 60).errors == {}


def test_follow_up_calls_the_redrive_each_minute_and_leaves_its_case_applied(
    here: Redriving,
) -> None:
    case = here.case(State.APPLIED)
    for minute in range(1, 6):
        follow(here, minutes=1)
        assert len(here.asked) == minute
    here.account.tag(here.dlq, mendq="off")
    follow(here, days=20)
    assert here.asked[-1] == make_owner_request(case)
    assert len(here.asked) == 6
    assert here.newest() == case


def test_follow_up_calls_the_redrive_even_if_the_case_bucket_takes_no_writes(
    here: Redriving,
) -> None:
    """Nor does a bucket that takes nothing."""

    def fail(**_: Any) -> None:
        raise ConnectionError

    here.case(State.APPLIED)
    here.account.clients.s3.meta.events.register("before-call.s3.PutObject", fail)
    for _ in range(2):
        here.account.later(minutes=1)
        follow_up(make_context(here.account), OWNERS, lambda: 60)
    assert len(here.asked) == 2


def test_rollback_of_a_redrive_cancels_its_run_and_blocks_new_ones_for_7_days(
    here: Redriving,
) -> None:
    case = here.case(State.APPLIED)
    here.freeze()
    assert outcomes_by_attribute(roll_back(here.account, case.case_id, dry_run=True)) == {
        "Dlq": "undone"
    }
    assert (here.asked, here.newest()) == ([], case), "a dry run says so and stops nothing"
    answered = roll_back(here.account, case.case_id)
    assert (answered["state"], outcomes_by_attribute(answered)) == (
        "rolled_back",
        {"Dlq": "undone"},
    )
    assert here.newest().state is State.ROLLED_BACK
    assert roll_back(here.account, case.case_id) == answered, "done twice it answers the same"
    assert here.asked == [{**make_owner_request(case), "cancel": True}]
    view = make_context(here.account).case_store.look(here.dlq, case.symptom, ("Dlq",))
    until = view.record_of("Dlq").overridden_until
    assert until is not None
    assert (until - here.account.now).days == 7


@pytest.mark.parametrize("code", ["claimed", "not_cancelled"])
def test_rollback_of_a_redrive_that_could_not_be_cancelled_keeps_the_case_open(
    here: Redriving, code: str
) -> None:
    case = here.case(State.APPLIED)
    here.answers = {"state": None, "code": code, "reason": "another run is at work"}
    answered = roll_back(here.account, case.case_id)
    assert answered["error"] == "claimed"
    assert here.answers["reason"] in answered["reason"]
    assert here.newest() == case


def facts(account: Account, queue_arn: str) -> Facts:
    return Facts(queue_arn, account.attributes(queue_arn), {"mendq": "heal", "team": "orders"})


@pytest.mark.parametrize(
    ("name", "quarantine"),
    [("orders", "orders-quarantine"), ("orders.fifo", "orders-quarantine.fifo")],
)
def test_new_quarantine_is_encrypted_keeps_14_days_and_is_refused_if_a_lambda_consumes_it(
    account: Account, monkeypatch: pytest.MonkeyPatch, name: str, quarantine: str
) -> None:
    source = facts(account, account.queue(name))
    made = prepare_quarantine(account.clients, source)
    assert made == f"arn:aws:sqs:{REGION}:{ACCOUNT}:{quarantine}"
    attributes = account.attributes(made)
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert attributes["SqsManagedSseEnabled"] == "true"
    assert attributes.get("FifoQueue", "false") == str(name.endswith(".fifo")).lower()
    assert "Policy" not in attributes
    tags = account.clients.sqs.list_queue_tags(QueueUrl=account.url(made))
    assert tags.get("Tags", {}) == {}
    assert prepare_quarantine(account.clients, source) == made
    mapping = {"FunctionArn": "arn:aws:lambda:us-east-1:1:function:tidy", "State": "Enabled"}
    monkeypatch.setattr("mendq.redrive.redrive.list_mappings", lambda *_: [mapping])
    assert "tidy consumes it" in str(prepare_quarantine(account.clients, source))


def test_existing_queue_with_short_retention_is_refused_as_quarantine_and_not_changed(
    account: Account,
) -> None:
    source = facts(account, account.queue("orders"))
    theirs = account.queue("orders-quarantine", tag=None, MessageRetentionPeriod="60")
    before = account.attributes(theirs)
    refusal = prepare_quarantine(account.clients, source)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "name_taken"
    assert "less than 1209600 seconds" in refusal.reason
    assert account.attributes(theirs) == before


def test_quarantine_creation_raises_facts_unavailable_if_sqs_is_unavailable(
    here: Redriving,
) -> None:
    here.refuse("CreateQueue", "ServiceUnavailable")
    source = facts(here.account, here.source)
    with pytest.raises(FactsUnavailable, match="orders-quarantine"):
        prepare_quarantine(here.account.clients, source)
