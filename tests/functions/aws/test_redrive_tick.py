"""A redrive's ticks against queues, a ledger, and move tasks as SQS answers them."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from functions.aws.errors import CaseMoved, FactsUnavailable, LedgerUnavailable
from functions.aws.letters_look import letter_of
from functions.aws.redrive_tick import tick
from functions.healing.case import opened
from functions.healing.evidence import Evidence, Sighting
from functions.healing.letters import HOPS
from functions.healing.marks import kept_because
from functions.healing.redrive_course import Stage
from functions.healing.states import State
from tests.functions.aws.conftest import Account
from tests.functions.aws.faults import KINDS, Fault, Killed
from tests.functions.aws.letters import timed
from tests.functions.aws.ticking import LATE, Redriven, at_its_task, redriven, texts, ticked

__all__ = ["timed"]


def test_the_first_tick_sends_a_canary_of_five_marked_letters(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    outcome = ticked(here.tick())
    assert (outcome.case, outcome.redriven, outcome.quarantined) == (None, 5, 0)
    sent = here.letters(here.source)
    assert {each["MessageAttributes"][HOPS]["StringValue"] for each in sent} == {"1"}
    assert len(here.bodies(here.dead)) == 25
    assert here.course.stage is Stage.SOAK
    # 1.2 x 3 receives x 10 s is less than the least.
    assert here.course.soak_ends_at == timed.now + timedelta(seconds=60)


def test_good_letters_all_go_back_and_the_case_is_verified(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    assert here.minutes(20).case is not None
    assert here.state is State.VERIFIED
    assert here.letters(here.dead) == []
    assert here.course.because == "30 letters went back, and none of them came back"
    assert here.tasks.calls == []


def test_one_of_five_that_comes_back_halts_it_and_lies_in_quarantine(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    (poison, *_) = sorted(here.bodies(here.source))
    outcome = here.minutes(5, frozenset({poison}))
    assert (here.state, here.course.stage) == (State.ESCALATED, Stage.HALTED)
    assert outcome.case is not None
    assert outcome.case.reason.startswith("of 5 letters that went back 1 came back")
    (kept,) = here.letters(f"{here.source}-quarantine")
    mark = kept_because(letter_of(kept))
    assert mark is not None
    assert (kept["Body"], mark.source, mark.case, mark.hops) == (
        poison,
        here.source,
        here.case.case_id,
        1,
    )
    assert len(here.bodies(here.dead)) == 25
    ((_, page),) = timed.pages("urgent") + timed.pages()
    assert "what came back is in orders-quarantine" in page
    assert "mendq quarantine peek orders --region us-east-1" in page
    before = here.course
    assert here.tick().refusal is not None
    assert here.course == before


def test_poison_ends_in_quarantine_and_the_rest_is_handled(timed: Account) -> None:
    poison = frozenset(texts(60)[::7])
    here = redriven(timed, *texts(60), bounds=LATE)
    here.minutes(30, poison)
    assert here.state is State.VERIFIED
    assert here.bodies(f"{here.source}-quarantine") == poison
    assert here.letters(here.dead) == []
    assert (here.course.moved, here.course.returned) == (60, len(poison))


def test_what_somebody_put_there_stays_and_the_rest_goes(timed: Account) -> None:
    here = redriven(timed, *texts(4), "stranger")
    here.minutes(20)
    assert here.state is State.VERIFIED
    assert here.bodies(here.dead) == {"stranger"}
    assert "1 cannot go back there" in here.course.because


def test_letters_of_an_earlier_redrive_are_kept_apart_and_halt_nothing(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.write(here.dead, "again", {HOPS: {"DataType": "Number", "StringValue": "3"}})
    outcome = ticked(here.tick())
    assert (outcome.redriven, outcome.quarantined) == (5, 1)
    here.minutes(20)
    assert here.state is State.VERIFIED
    assert here.bodies(f"{here.source}-quarantine") == {"again"}


def test_a_letter_that_can_bear_no_mark_is_known_by_its_fingerprint(timed: Account) -> None:
    here = redriven(timed)
    ten = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(10)}
    here.write(here.dead, "full", ten)
    timed.later(minutes=1)
    here.tick()
    assert len(here.course.fingerprints) == 1
    here.minutes(5, frozenset({"full"}))
    assert here.state is State.ESCALATED
    assert here.bodies(f"{here.source}-quarantine") == {"full"}
    assert not here.course.fingerprints, "it is back"


@pytest.mark.parametrize("how", ["frozen", "tag", "off", "unmanaged", "gone", "cause"])
def test_whatever_forbids_it_nothing_is_moved(timed: Account, how: str) -> None:
    here = redriven(timed, *texts(30))
    if how == "frozen":
        timed.clients.dynamodb.put_item(
            TableName="ledger",
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
    timed.clients.dynamodb.put_item(TableName="ledger", Item=item)
    assert "an incident" in ticked(here.tick()).document()["reason"]
    key = {"pk": item["pk"], "sk": item["sk"]}
    timed.clients.dynamodb.delete_item(TableName="ledger", Key=key)
    here.minutes(20)
    assert here.state is State.VERIFIED


def test_nobody_deletes_so_it_waits_and_halts_after_an_hour(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.deletes = 0
    here.minutes(59)
    assert (here.state, len(here.bodies(here.dead))) == (State.APPLIED, 10)
    here.minutes(3)
    assert (here.state, len(here.bodies(here.dead))) == (State.ESCALATED, 10)


def test_a_stage_by_task_is_started_cancelled_and_recounted(timed: Account) -> None:
    here = at_its_task(timed)
    ((name, asked),) = here.tasks.calls
    assert (name, asked["SourceArn"]) == ("StartMessageMoveTask", here.dead)
    assert "DestinationArn" not in asked
    here.tasks.known[-1]["ApproximateNumberOfMessagesMoved"] = 25
    timed.later(minutes=1)
    here.tick()
    assert (here.tasks.calls[-1][0], here.course.stage) == (
        "CancelMessageMoveTask",
        Stage.CANCELLING,
    )
    here.tasks.known[-1].update(Status="CANCELLED", ApproximateNumberOfMessagesMoved=27)
    here.tasks.known[-1].pop("TaskHandle")
    before = here.course.moved
    timed.later(minutes=1)
    here.tick()
    assert (here.course.stage, here.course.moved) == (Stage.SOAK, before + 2)
    assert len(here.tasks.calls) == 2


def test_a_start_whose_answer_was_lost_is_found_again(timed: Account) -> None:
    here = at_its_task(timed, answer_lost=True)
    assert here.course.task_handle == ""
    timed.later(minutes=1)
    here.tick()
    assert here.course.task_handle == "handle 0"
    assert [name for name, _ in here.tasks.calls] == ["StartMessageMoveTask"]


def test_a_start_that_sqs_refuses_is_tried_again_and_then_told(timed: Account) -> None:
    here = at_its_task(timed, refuses="There is already a task running.")
    assert "There is already a task running." in here.course.because
    timed.later(minutes=1)
    here.tick()
    assert (len(here.tasks.known), here.course.refused_since) == (1, None)


def test_a_failed_task_halts_it_with_its_reason(timed: Account) -> None:
    here = at_its_task(timed)
    failure = "AWS.SimpleQueueService.NonExistentQueue"
    here.tasks.known[-1].update(Status="FAILED", FailureReason=failure)
    timed.later(minutes=1)
    here.tick()
    assert (here.state, here.course.because) == (
        State.ESCALATED,
        f"the move task failed: {failure}",
    )


def test_a_freeze_cancels_the_task(timed: Account) -> None:
    here = at_its_task(timed)
    item = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "an incident"}}
    timed.clients.dynamodb.put_item(TableName="ledger", Item=item)
    timed.later(minutes=1)
    here.tick()
    assert (here.tasks.calls[-1][0], here.state) == ("CancelMessageMoveTask", State.APPLIED)


def test_a_queue_that_keeps_us_out_has_its_task_cancelled_and_then_halts(timed: Account) -> None:
    here = at_its_task(timed)
    denied = (
        "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: "
        f"sqs:getqueueattributes on resource: {here.source} with an explicit deny in a "
        "resource-based policy"
    )
    timed.later(minutes=1)
    here.tasks.denies = denied
    here.tick()
    assert (here.tasks.calls[-1][0], here.state) == ("CancelMessageMoveTask", State.APPLIED)
    here.tasks.known[-1]["Status"] = "CANCELLED"
    here.tick()
    assert here.state is State.ESCALATED
    assert "keeps Mendq out" in here.course.because


def test_taken_back_its_task_is_cancelled_even_in_a_freeze(timed: Account) -> None:
    here = at_its_task(timed)
    item = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "an incident"}}
    timed.clients.dynamodb.put_item(TableName="ledger", Item=item)
    here.tasks.refuses["CancelMessageMoveTask"] = "Task does not exist."
    refused = here.tick(cancel=True).refusal
    assert refused is not None
    assert (refused.code, refused.again) == ("not_cancelled", True)
    assert here.tick(cancel=True).refusal is None
    assert here.tasks.known[-1]["Status"] == "CANCELLING"
    assert here.course.stage is Stage.HALTED


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
    before = here.course
    with pytest.raises(CaseMoved):
        slow.courses.save(claimed.course, slow.owner)
    slow.courses.release(here.dead, slow.owner)
    assert here.course == before
    assert slow.courses.claim(here.dead, slow.owner, later) is None


def test_too_little_time_sends_nothing_and_leaves_nothing_hidden(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    hurried = here.run(remaining_seconds=20)
    assert tick(here.request, hurried).redriven == 0
    assert len(here.bodies(here.dead)) == 10


def test_where_sqs_does_not_say_what_runs_nothing_is_done(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    here.tasks.refuses["ListMessageMoveTasks"] = "no"
    assert ticked(here.tick()).redriven == 0
    assert len(here.bodies(here.dead)) == 10
    assert ticked(here.tick()).redriven == 5


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_call_no_letter_is_lost(timed: Account, kind: str) -> None:
    """At later and later calls of tick after tick, through canary, soak and ramp."""
    here = redriven(timed, *texts(60), bounds=LATE)
    handled, struck = set[str](), set[str]()
    for strike_at in range(9, 30, 2):
        fault = Fault(timed, kind, strike_at)
        with suppress(Killed, FactsUnavailable, LedgerUnavailable):
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
        symptom="lease_expired",
        reason="it is back",
        evidence=Evidence((Sighting.of_measurement(at),)),
        steps=(),
        now=at,
        actor="heal",
    )
    here.open_case(cause)
