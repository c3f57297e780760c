"""A redrive that is applied, whose ticks nobody but a test calls for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from local_account.process import LocalAccount
from mendq.cases.table import CaseStore
from mendq.cases.transactions import Entry
from mendq.model.case import Case, State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.steps import HELD, RedriveMessages
from mendq.redrive.progress import RedriveProgress
from mendq.redrive.store import RedriveStore, redrive_key
from tests.local_account.dlq import Pipe, naming
from tests.local_account.queues import new_queue

SYMPTOM = "dlq_messages_waiting"
HEAL = {"mendq": "heal"}
A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Redriven:
    """A case that says that messages go back, and the calls that follow_up would make."""

    account: LocalAccount
    pipe: Pipe
    case: Case

    @property
    def request(self) -> dict[str, str]:
        case = self.case
        return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}

    def tick(self, **more: Any) -> dict[str, Any]:
        response = self.account.client("lambda").invoke(
            FunctionName=self.account.outputs["RedriveFunction"],
            Payload=json.dumps({**self.request, **more}).encode(),
        )
        answer: dict[str, Any] = json.loads(response["Payload"].read())
        assert "FunctionError" not in response, answer
        return answer

    @property
    def progress(self) -> RedriveProgress:
        client, table = self.account.client("dynamodb"), self.account.outputs["CaseTable"]
        progress = RedriveStore(client, table).newest(self.pipe.dead.arn)
        assert progress is not None
        return progress

    def soaked(self) -> None:
        """As if the time had passed: nobody waits for it in a test."""
        now = self.progress
        over = now.with_stage(soak_ends_at=now.current.began_at)
        over = replace(over, moved_at=now.began_at - timedelta(hours=1))
        text = json.dumps(over.document(), sort_keys=True)
        self.account.client("dynamodb").update_item(
            TableName=self.account.outputs["CaseTable"],
            Key=redrive_key(self.pipe.dead.arn),
            UpdateExpression="SET document = :text",
            ExpressionAttributeValues={":text": {"S": text}},
        )


def redriven(account: LocalAccount, messages: int) -> Redriven:
    """Nobody else ticks it: it is due tomorrow."""
    dead = new_queue(account, tags=HEAL)
    source = new_queue(account, tags=HEAL, RedrivePolicy=naming(dead), VisibilityTimeout="1")
    pipe = Pipe(source, dead)
    for _ in range(30):
        source.send()
        source.delete(source.receive())
    account.put_back(source.arn, minutes=10)
    pipe.die(*(f"message {number}" for number in range(messages)))
    now = datetime.now(UTC)
    case = opened(
        State.APPLIED,
        queue_arn=dead.arn,
        symptom=SYMPTOM,
        reason="its cause is fixed",
        evidence=Evidence((Sighting.of_measurement(now),)),
        steps=(RedriveMessages(HELD, source.arn),),
        now=now,
        actor="redrive",
    )
    case_store = CaseStore(account.client("dynamodb"), account.outputs["CaseTable"])
    seen = case_store.look(dead.arn, SYMPTOM, ())
    case_store.record(Entry(case, seen, "a test", "a test", {}, {}, now + A_DAY))
    return Redriven(account, pipe, case)
