"""A redrive in the account: the deployed Lambda under its own role, and letters that did die."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.aws.course_ledger import CourseLedger, course_key
from functions.aws.ledger import Ledger
from functions.aws.ledger_writes import Entry
from functions.healing.case import Case, opened
from functions.healing.evidence import Evidence, Sighting
from functions.healing.letters import HOPS
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.states import State
from local_account.process import LocalAccount
from tests.local_account.dead_letters import Pipe, bodies, naming, received
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account
SYMPTOM = "dead_letters_waiting"
HEAL = {"mendq": "heal"}
A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Redriven:
    """A case that says that letters go back, and the calls that follow_up would make."""

    account: LocalAccount
    pipe: Pipe
    case: Case

    def tick(self, **more: Any) -> dict[str, Any]:
        request = {"case_id": self.case.case_id, "queue_arn": self.case.queue_arn}
        response = self.account.client("lambda").invoke(
            FunctionName=self.account.outputs["RedriveFunction"],
            Payload=json.dumps({**request, "symptom": SYMPTOM, **more}).encode(),
        )
        answer: dict[str, Any] = json.loads(response["Payload"].read())
        assert "FunctionError" not in response, answer
        return answer

    @property
    def course(self) -> Course:
        client, table = self.account.client("dynamodb"), self.account.outputs["LedgerTable"]
        course = CourseLedger(client, table).course_of(self.pipe.dead.arn)
        assert course is not None
        return course

    def soaked(self) -> None:
        """As if the time had passed: nobody waits for it in a test."""
        now = self.course
        over = replace(now, soak_ends_at=now.stage_at, moved_at=now.began_at - timedelta(hours=1))
        text = json.dumps(over.document(), sort_keys=True)
        self.account.client("dynamodb").update_item(
            TableName=self.account.outputs["LedgerTable"],
            Key=course_key(self.pipe.dead.arn),
            UpdateExpression="SET document = :text",
            ExpressionAttributeValues={":text": {"S": text}},
        )


def redriven(account: LocalAccount, letters: int) -> Redriven:
    """Nobody else ticks it: it is due tomorrow."""
    dead = new_queue(account, tags=HEAL)
    source = new_queue(account, tags=HEAL, RedrivePolicy=naming(dead), VisibilityTimeout="1")
    pipe = Pipe(source, dead)
    for _ in range(30):
        source.send()
        source.delete(source.receive())
    account.put_back(source.arn, minutes=10)
    pipe.die(*(f"letter {number}" for number in range(letters)))
    now = datetime.now(UTC)
    case = opened(
        State.APPLIED,
        queue_arn=dead.arn,
        symptom=SYMPTOM,
        reason="its cause is mended",
        evidence=Evidence((Sighting.of_measurement(now),)),
        steps=(RedriveDeadLetters(HELD, source.arn),),
        now=now,
        actor="redrive",
    )
    ledger = Ledger(account.client("dynamodb"), account.outputs["LedgerTable"])
    seen = ledger.look(dead.arn, SYMPTOM, ())
    ledger.record(Entry(case, seen, "a test", "a test", {}, {}, now + A_DAY))
    return Redriven(account, pipe, case)


def test_letters_go_back_a_few_at_first_and_what_returns_is_kept_apart(
    account: LocalAccount,
) -> None:
    here = redriven(account, letters=7)
    first = here.tick()
    assert (first["stage"], first["moved"]) == ("soak", 5), first
    went = received(here.pipe.source, 5)
    assert {each["MessageAttributes"][HOPS]["StringValue"] for each in went} == {"1"}
    for moved in (6, 7):
        here.soaked()
        ramp = here.tick()
        assert (ramp["stage"], ramp["moved"]) == ("ramp", moved), ramp
    _die_again(here.pipe)
    last = here.tick()
    assert (last["state"], last["stage"], last["returned"]) == ("escalated", "halted", 2), last
    sqs = account.client("sqs")
    name = f"{here.pipe.source.arn.rpartition(':')[2]}-quarantine"
    kept = Queue(sqs, sqs.get_queue_url(QueueName=name)["QueueUrl"], is_fifo=False)
    back = received(kept, 2)
    assert set(bodies(went)) | set(bodies(back)) == {f"letter {number}" for number in range(7)}
    assert kept.attributes("MessageRetentionPeriod") == {"MessageRetentionPeriod": "1209600"}
    assert here.pipe.dead.count() == 0


def test_taken_back_nothing_goes_on(account: LocalAccount) -> None:
    here = redriven(account, letters=7)
    here.tick()
    off = here.tick(cancel=True)
    assert (off["stage"], off["code"]) == ("halted", "")
    here.soaked()
    assert here.course.stage is Stage.HALTED
    assert here.tick()["state"] == "escalated"
    assert here.pipe.dead.count() == 2


def _die_again(pipe: Pipe) -> None:
    """What stands in the source, which takes no more than one failed receive."""
    before = pipe.dead.count()
    for _ in range(20):
        pipe.source.sqs.receive_message(
            QueueUrl=pipe.source.url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        if pipe.dead.count() >= before + 2:
            return
    raise AssertionError("nothing died")
