"""What the version that landed before this one left in an account: its stack, and a healed queue.

Kept as files, so that a clone without history can deploy over it. Whoever lands a version runs
`python -m tests.infra.previous_version` on it afterwards, for the next one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("previous")
TEMPLATE, CASE_STORE = (FOLDER / f"{each}.json" for each in ("template", "case_store"))
QUEUE = "orders.fifo"
VISIBILITY_SECONDS = 2
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1"
STUB = "def handler(event, context):\n    return {}\n"


def template() -> dict[str, Any]:
    """The default's, with code that does nothing."""
    found: dict[str, Any] = json.loads(TEMPLATE.read_text())
    return found


def case_store_items() -> list[dict[str, Any]]:
    """As DynamoDB holds them, after one queue was healed."""
    found: list[dict[str, Any]] = json.loads(CASE_STORE.read_text())
    return found


def assembly(folder: Path) -> Path:
    """The template as a cloud assembly that the local account deploys, with stubs for all code."""
    text = TEMPLATE.read_text()
    code = folder / "asset.stub" / "functions"
    code.mkdir(parents=True)
    for handler in set(re.findall(r"functions\.(\w+)\.handler", text)):
        (code / f"{handler}.py").write_text(STUB)
    source = {"path": "asset.stub", "packaging": "zip"}
    files = {
        key: {"source": source, "destinations": {"here": {"bucketName": BUCKET, "objectKey": key}}}
        for key in sorted(set(re.findall(r'"S3Key": "(.+?)"', text)))
    }
    stack = {"templateFile": "template.json", "stackName": "Mendq"}
    artifacts = {
        "Mendq.assets": {"type": "cdk:asset-manifest", "properties": {"file": "assets.json"}},
        "Mendq": {"type": "aws:cloudformation:stack", "properties": stack},
    }
    (folder / "template.json").write_text(text)
    (folder / "assets.json").write_text(json.dumps({"files": files}))
    (folder / "manifest.json").write_text(json.dumps({"version": "38.0.0", "artifacts": artifacts}))
    return folder


def remember() -> None:
    """Write both from this tree; takes the local account a minute."""
    from local_account.process import LocalAccount  # noqa: PLC0415 - readers need none of it
    from tests.infra.synthesized import template_of  # noqa: PLC0415
    from tests.local_account import queues  # noqa: PLC0415

    FOLDER.mkdir(exist_ok=True)
    TEMPLATE.write_text(_lines(template_of("default").raw))
    with LocalAccount() as account:
        attributes = {"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY_SECONDS)}
        sqs, tags = account.client("sqs"), {"mendq": "heal"}
        made = sqs.create_queue(QueueName=QUEUE, Attributes=attributes, tags=tags)
        queue = queues.Queue(sqs, made["QueueUrl"], is_fifo=True)
        queues.fail_late(queue, times=4)
        queues.eventually(lambda: int(queue.attributes()["VisibilityTimeout"]) > VISIBILITY_SECONDS)
        items = account.client("dynamodb").scan(TableName=account.outputs["CaseTable"])["Items"]
    CASE_STORE.write_text(_lines([each for each in items if QUEUE in json.dumps(each)]))


def _lines(value: Any) -> str:
    return f"{json.dumps(value, indent=1, sort_keys=True)}\n"


if __name__ == "__main__":
    remember()
