"""The previous version's stack template and case store items, recorded in files.

The files let a clone without history deploy over the previous version. After a release, run
`python -m tests.infra.previous_version` to record that release for the next one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("previous")
TEMPLATE = FOLDER / "template.json"
CASE_STORE = FOLDER / "case_store.json"
QUEUE = "orders.fifo"
VISIBILITY_SECONDS = 2
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1"
STUB = "def handler(event, context):\n    return {}\n"


def read_template() -> dict[str, Any]:
    """Return the template for the default settings."""
    template: dict[str, Any] = json.loads(TEMPLATE.read_text())
    return template


def read_case_store_items() -> list[dict[str, Any]]:
    """Return the DynamoDB items after one queue was fixed."""
    items: list[dict[str, Any]] = json.loads(CASE_STORE.read_text())
    return items


def write_assembly(folder: Path) -> Path:
    """Write the template as a cloud assembly for the local account, with stubs for all code."""
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


def record_version() -> None:
    """Write both files from this tree. The local account takes a minute."""
    from local_account.process import LocalAccount  # noqa: PLC0415 - readers need none of it
    from tests.infra.synthesized import template_of  # noqa: PLC0415
    from tests.local_account import queues  # noqa: PLC0415

    FOLDER.mkdir(exist_ok=True)
    TEMPLATE.write_text(_format_json(template_of("default").raw))
    with LocalAccount() as account:
        attributes = {"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY_SECONDS)}
        sqs = account.client("sqs")
        tags = {"mendq": "heal"}
        made = sqs.create_queue(QueueName=QUEUE, Attributes=attributes, tags=tags)
        queue = queues.Queue(sqs, made["QueueUrl"], is_fifo=True)
        queues.fail_late(queue, times=4)
        queues.eventually(lambda: int(queue.attributes()["VisibilityTimeout"]) > VISIBILITY_SECONDS)
        items = account.client("dynamodb").scan(TableName=account.outputs["CaseTable"])["Items"]
    CASE_STORE.write_text(_format_json([item for item in items if QUEUE in json.dumps(item)]))


def _format_json(value: Any) -> str:
    return f"{json.dumps(value, indent=1, sort_keys=True)}\n"


if __name__ == "__main__":
    record_version()
