"""What the version that landed before this one left in an account: its stack, and a healed queue.

Kept as files, so that a clone without history can deploy over it. Whoever lands a version runs
`python -m tests.infra.previous_version` on it afterwards, for the next one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("previous")
TEMPLATE, CASE_STORE, CASES = (
    FOLDER / f"{each}.json" for each in ("template", "case_store", "cases")
)
QUEUE = "orders.fifo"
VISIBILITY_SECONDS = 2


def template() -> dict[str, Any]:
    """The default's, with code that does nothing."""
    found: dict[str, Any] = json.loads(TEMPLATE.read_text())
    return found


def case_store_items() -> list[dict[str, Any]]:
    """As DynamoDB holds them, after one queue was healed."""
    found: list[dict[str, Any]] = json.loads(CASE_STORE.read_text())
    return found


def case_objects() -> dict[str, Any]:
    """The case bucket's objects by key."""
    found: dict[str, Any] = json.loads(CASES.read_text())
    return found


def remember() -> None:
    """Write all three from this tree; takes the local account a minute."""
    from local_account.process import LocalAccount  # noqa: PLC0415 - readers need none of it
    from tests.infra.synthesized import template_of  # noqa: PLC0415
    from tests.local_account import queues  # noqa: PLC0415

    FOLDER.mkdir(exist_ok=True)
    TEMPLATE.write_text(_lines(template_of("default").raw))
    with LocalAccount() as account:
        sqs, s3 = account.client("sqs"), account.client("s3")
        attributes = {"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY_SECONDS)}
        made = sqs.create_queue(QueueName=QUEUE, Attributes=attributes, tags={"mendq": "heal"})
        queue = queues.Queue(sqs, made["QueueUrl"], is_fifo=True)
        queues.fail_late(queue, times=4)
        queues.eventually(lambda: int(queue.attributes()["VisibilityTimeout"]) > VISIBILITY_SECONDS)
        bucket, table = account.outputs["CaseBucket"], account.outputs["CaseTable"]
        dynamodb = account.client("dynamodb")
        keys: list[str] = []
        while not keys:
            listed = s3.list_objects_v2(Bucket=bucket, Prefix="cases/").get("Contents", [])
            keys = [each["Key"] for each in listed]
        cases = {
            each: json.loads(s3.get_object(Bucket=bucket, Key=each)["Body"].read()) for each in keys
        }
        items = [
            each for each in dynamodb.scan(TableName=table)["Items"] if QUEUE in json.dumps(each)
        ]
    CASE_STORE.write_text(_lines(items))
    CASES.write_text(_lines(cases))


def _lines(value: Any) -> str:
    return f"{json.dumps(value, indent=1, sort_keys=True)}\n"


if __name__ == "__main__":
    remember()
