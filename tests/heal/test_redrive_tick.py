"""A redrive's ticks against queues and a case store."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from mendq.aws.errors import CaseMoved, CaseStoreUnavailable, FactsUnavailable
from mendq.model.case import State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.redrive.messages import REDRIVE_COUNT, quarantine_reason
from mendq.redrive.mover import message_of
from mendq.redrive.progress import Stage
from mendq.redrive.redrive import redrive
from tests.heal.conftest import Account
from tests.heal.faults import KINDS, Fault, Killed
from tests.heal.messages import timed
from tests.heal.ticking import LATE, Redriven, redriven, texts, ticked

__all__ = ["timed"]


def test_the_first_tick_sends_a_canary_of_five_marked_messages(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    outcome = ticked(here.tick())
    assert (outcome.case, outcome.redriven, outcome.quarantined) == (None, 5, 0)
    sent = here.messages(here.source)
    assert {each["MessageAttributes"][REDRIVE_COUNT]["StringValue"] for each in sent} == {"1"}
    assert len(here.bodies(here.dead)) == 25
    assert here.progress.stage is Stage.SOAK
    # 1.2 x 3 receives x 10 s is less than the least.
    assert here.progress.current.soak_ends_at == timed.now + timedelta(seconds=60)


def test_good_messages_all_go_back_and_the_case_is_verified(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    assert here.minutes(20).case is not None
    assert here.state is State.VERIFIED
    assert here.messages(here.dead) == []
    assert here.progress.because == "30 messages went back, and none of them came back"


def test_one_of_five_that_comes_back_halts_it_and_lies_in_quarantine(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    (poison, *_) = sorted(here.bodies(here.source))
    outcome = here.minutes(5, frozenset({poison}))
    assert (here.state, here.progress.stage) == (State.ESCALATED, Stage.HALTED)
    assert outcome.case is not None
    assert outcome.case.reason.startswith("of 5 messages that went back 1 came back")
    (retained,) = here.messages(f"{here.source}-quarantine")
    mark = quarantine_reason(message_of(retained))
    assert mark is not None
    assert (retained["Body"], mark.source, mark.case, mark.redrive_count) == (
        poison,
        here.source,
        here.case.case_id,
        1,
    )
    assert len(here.bodies(here.dead)) == 25
    ((_, page),) = timed.pages("urgent") + timed.pages()
    assert "what came back is in orders-quarantine" in page
    assert "mendq quarantine peek orders --region us-east-1" in page
    before = here.progress
    assert here.tick().refusal is not None
    assert here.progress == before


def test_poison_ends_in_quarantine_and_the_rest_is_handled(timed: Account) -> None:
    poison = frozenset(texts(60)[::7])
    here = redriven(timed, *texts(60), bounds=LATE)
    here.minutes(30, poison)
    assert here.state is State.VERIFIED
    assert here.bodies(f"{here.source}-quarantine") == poison
    assert here.messages(here.dead) == []
    assert (here.progress.moved, here.progress.returned) == (60, len(poison))


def test_what_somebody_put_there_stays_and_the_rest_goes(timed: Account) -> None:
    here = redriven(timed, *texts(4), "stranger")
    here.minutes(20)
    assert here.state is State.VERIFIED
    assert here.bodies(here.dead) == {"stranger"}
    assert "1 cannot go back there" in here.progress.because


def test_messages_of_an_earlier_redrive_are_quarantined_and_halt_nothing(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.write(here.dead, "again", {REDRIVE_COUNT: {"DataType": "Number", "StringValue": "3"}})
    outcome = ticked(here.tick())
    assert (outcome.redriven, outcome.quarantined) == (5, 1)
    here.minutes(20)
    assert here.state is State.VERIFIED
    assert here.bodies(f"{here.source}-quarantine") == {"again"}


def test_a_message_that_can_bear_no_mark_is_known_by_its_fingerprint(timed: Account) -> None:
    here = redriven(timed)
    ten = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(10)}
    here.write(here.dead, "full", ten)
    timed.later(minutes=1)
    here.tick()
    assert len(here.progress.fingerprints) == 1
    here.minutes(5, frozenset({"full"}))
    assert here.state is State.ESCALATED
    assert here.bodies(f"{here.source}-quarantine") == {"full"}
    assert not here.progress.fingerprints, "it is back"


@pytest.mark.parametrize("how", ["frozen", "tag", "off", "unmanaged", "gone", "cause"])
def test_whatever_forbids_it_nothing_is_moved(timed: Account, how: str) -> None:
    here = redriven(timed, *texts(30))
    if how == "frozen":
        timed.clients.dynamodb.put_item(
            TableName="case_store",
            Item={"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "an incident"}},
        )
    elif how == "tag":
        timed.tag(here.source, **{"mendq:redrive": "off"})
    elif how == "off":
        timed.tag(here.dead, mendq="observe")
    elif how == "unmanaged":
        timed.clients.sqs.untag_queue(QueueUrl=timed.url(here.source), TagKeys=["mendq"])
    elif how == "gone":
        timed.clients.sqs.delete_queue(QueueUrl=timed.url(here.source))
    else:
        _open_cause(here)
    outcome = ticked(here.tick())
    assert outcome.redriven == 0
    assert len(here.bodies(here.dead)) == 30
    assert here.state is (State.APPLIED if how == "frozen" else State.ESCALATED)


def test_after_the_thaw_it_goes_on(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    item = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "an incident"}}
    timed.clients.dynamodb.put_item(TableName="case_store", Item=item)
    assert "an incident" in ticked(here.tick()).document()["reason"]
    key = {"pk": item["pk"], "sk": item["sk"]}
    timed.clients.dynamodb.delete_item(TableName="case_store", Key=key)
    here.minutes(20)
    assert here.state is State.VERIFIED


def test_nobody_deletes_so_it_waits_and_halts_when_patience_is_over(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.deletes = 0
    here.minutes(5)
    assert (here.state, len(here.bodies(here.dead))) == (State.APPLIED, 10)
    here.minutes(3)
    assert (here.state, len(here.bodies(here.dead))) == (State.ESCALATED, 10)


@pytest.mark.parametrize("status", ["RUNNING", "CANCELLING", "SOMETHING_NEW"])
def test_somebody_else_s_task_is_waited_for_and_left_alone(timed: Account, status: str) -> None:
    here = redriven(timed, *texts(30))
    here.tasks.run(timed, status)
    for _ in range(8):
        assert ticked(here.tick()).redriven == 0
        timed.later(minutes=1)
    assert (here.state, here.pages, len(here.bodies(here.dead))) == (State.APPLIED, 0, 30)
    assert "somebody else's message movement task" in here.progress.because
    here.tasks.run(timed, "COMPLETED")
    here.minutes(20)
    assert here.state is State.VERIFIED


def test_taken_back_it_halts_even_in_a_freeze(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    item = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "an incident"}}
    timed.clients.dynamodb.put_item(TableName="case_store", Item=item)
    assert here.tick(cancel=True).refusal is None
    assert here.progress.because == "a person took it back"
    assert here.tick(cancel=True).refusal is None, "said twice"
    assert (here.stage, len(here.bodies(here.dead))) == (Stage.HALTED, 25)


def test_a_queue_that_keeps_us_out_halts_it(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    denied = (
        "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: "
        f"sqs:getqueueattributes on resource: {here.source} with an explicit deny in a "
        "resource-based policy"
    )
    here.denies("get_queue_attributes", "AccessDenied", denied)
    timed.later(minutes=1)
    here.tick()
    assert here.state is State.ESCALATED
    assert "keeps Mendq out" in here.progress.because


def test_a_tick_beside_another_does_nothing(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    other = here.run()
    assert other.courses.claim(here.dead, other.owner, timed.now) is not None
    for more in ({}, {"cancel": True}):
        refusal = here.tick(**more).refusal
        assert refusal is not None
        assert (refusal.code, refusal.again) == ("claimed", True)
    assert len(here.bodies(here.dead)) == 10
    timed.later(seconds=91)
    assert ticked(here.tick()).redriven == 5


def test_a_run_that_lost_its_claim_writes_nothing(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.tick()
    slow, quick = here.run(), here.run()
    claimed = slow.courses.claim(here.dead, slow.owner, timed.now)
    later = timed.now + timedelta(seconds=91)
    assert quick.courses.claim(here.dead, quick.owner, later) is not None
    assert claimed is not None
    assert claimed.course is not None
    before = here.progress
    with pytest.raises(CaseMoved):
        slow.courses.save(claimed.course, slow.owner)
    slow.courses.release(here.dead, slow.owner)
    assert here.progress == before
    assert slow.courses.claim(here.dead, slow.owner, later) is None


def test_too_little_time_sends_nothing_and_leaves_nothing_hidden(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    hurried = here.run(remaining_seconds=20)
    assert ticked(redrive(here.request, hurried)).redriven == 0
    assert len(here.bodies(here.dead)) == 10


def test_where_sqs_does_not_say_what_runs_nothing_is_done(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.tasks.refuses = "no"
    assert ticked(here.tick()).redriven == 0
    assert len(here.bodies(here.dead)) == 10
    assert ticked(here.tick()).redriven == 5


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_call_no_message_is_lost(timed: Account, kind: str) -> None:
    """At later and later calls of tick after tick, through canary, soak and ramp."""
    here = redriven(timed, *texts(60), bounds=LATE)
    handled, struck = set[str](), set[str]()
    for strike_at in range(9, 30, 2):
        fault = Fault(timed, kind, strike_at)
        with suppress(Killed, FactsUnavailable, CaseStoreUnavailable):
            here.tick()
        fault.leave()
        timed.later(minutes=4)
        handled |= set(here.consume())
        assert set(texts(60)) <= handled | here.bodies(here.dead), (strike_at, fault.call)
        struck.add(fault.call)
    assert len(struck - {""}) > 2
    here.minutes(60)
    assert here.state in {State.VERIFIED, State.ESCALATED}


def _open_cause(here: Redriven) -> None:
    at = here.account.now
    cause = opened(
        State.ESCALATED,
        queue_arn=here.source,
        symptom="visibility_timeout_too_short",
        reason="it is back",
        evidence=Evidence((Sighting.of_measurement(at),)),
        steps=(),
        now=at,
        actor="heal",
    )
    here.open_case(cause)
