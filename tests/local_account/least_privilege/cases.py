"""Cases to act on: some that heal opens of calls that failed, some that are put into the case
store.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.cases.table import CaseStore
from mendq.cases.transactions import Entry
from mendq.model.case import Case, State
from tests.local_account.least_privilege.enforced import Answer, Enforced
from tests.local_account.queues import Queue

EXPIRED = "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
LATE_DELETE = {
    "eventName": "DeleteMessage",
    "errorCode": "InvalidParameterValue",
    "errorMessage": EXPIRED,
}
VISIBILITY = "visibility_timeout_too_short"
A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class CaseStores:
    """The case store, by an operator's credentials."""

    here: Enforced

    @property
    def case_store(self) -> CaseStore:
        return CaseStore(self.here.account.client("dynamodb"), self.here.outputs["CaseTable"])

    def newest(self, queue_arn: str, symptom: str) -> Case | None:
        return self.case_store.look(queue_arn, symptom, ()).case

    def case(self, queue_arn: str, symptom: str) -> Case:
        case = self.newest(queue_arn, symptom)
        assert case is not None
        return case

    def put(self, case: Case, due_in: timedelta = A_DAY) -> Case:
        """As if some run had come to it; nobody looks at it before it is due."""
        seen = self.case_store.look(case.queue_arn, case.symptom, ())
        due = datetime.now(UTC) + due_in
        self.case_store.record(Entry(case, seen, "a test", "a test", {}, {}, due))
        return case

    def approved(self, case: Case, due_in: timedelta = A_DAY) -> Case:
        now = datetime.now(UTC)
        return self.put(case.moved(State.APPROVED, "as asked", now, actor="a test"), due_in)

    def spread(self, symptom: str) -> None:
        """More queues show it than are let pass without counting all that are managed."""
        arns = [new_queue_named(self.here, f"named-{n}").arn for n in range(4)]
        self.case_store.spread_to(arns, symptom, datetime.now(UTC))

    def wipe(self) -> None:
        """Nothing has ever happened."""
        client, table = self.here.account.client("dynamodb"), self.here.outputs["CaseTable"]
        for item in client.scan(TableName=table)["Items"]:
            client.delete_item(TableName=table, Key={name: item[name] for name in ("pk", "sk")})


def new_queue_named(here: Enforced, name: str, **attributes: str) -> Queue:
    """Made where it is not there yet; it has no tag."""
    sqs = here.account.client("sqs")
    return Queue(sqs, sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"], False)


def request_about(case: Case) -> dict[str, str]:
    """As follow_up and approve send it to the case's owner."""
    return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}


def is_filed(here: Enforced, case_id: str, state: str) -> bool:
    """Whether the case bucket tells that the case came to that state."""
    s3, bucket = here.account.client("s3"), here.outputs["CaseBucket"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="cases/")
    keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    texts = (s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys if case_id in key)
    return any(json.loads(text)["to"] == state for text in texts)


def queue_with_short_timeout(here: Enforced, tag: str) -> Queue:
    """A FIFO queue whose Lambda consumer needs more than its visibility timeout."""
    sqs, functions = here.account.client("sqs"), here.account.client("lambda")
    url = sqs.create_queue(
        QueueName=f"orders-{uuid.uuid4().hex[:8]}.fifo",
        Attributes={"FifoQueue": "true", "VisibilityTimeout": "900"},  # or Lambda refuses it
        tags={"mendq": tag},
    )["QueueUrl"]
    queue = Queue(sqs, url, is_fifo=True)
    (consumer,) = (name for role, name in here.functions.items() if "-heal-" in role)
    functions.create_event_source_mapping(
        EventSourceArn=queue.arn, FunctionName=consumer, BatchSize=1
    )
    queue.set(VisibilityTimeout="30")
    return queue


def hear_of(here: Enforced, queue_arn: str, call: Mapping[str, Any]) -> Answer:
    """Three such failed calls, told to heal as its mapping would, and no batching window."""
    # After the queue was changed, as far as heal can tell: earlier calls say nothing.
    at = datetime.now(UTC) + timedelta(seconds=60)
    record = {
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "sqs.amazonaws.com",
        "awsRegion": "us-east-1",
        "recipientAccountId": "000000000000",
        "resources": [{"type": "AWS::SQS::Queue", "ARN": queue_arn}],
        **call,
    }
    events = [{**record, "eventID": str(uuid.uuid4())} for _ in range(3)]
    messages = [
        {"messageId": each["eventID"], "body": json.dumps({"detail": each})} for each in events
    ]
    return here.call("heal", {"Records": messages})


def a_fixed_case(here: Enforced, tag: str = "heal") -> tuple[Queue, Case]:
    """A queue and the case that heal opened of it: a proposal where the tag says so."""
    queue = queue_with_short_timeout(here, tag)
    answer = hear_of(here, queue.arn, LATE_DELETE)
    assert answer.document == {"batchItemFailures": []}, answer
    return queue, CaseStores(here).case(queue.arn, VISIBILITY)
