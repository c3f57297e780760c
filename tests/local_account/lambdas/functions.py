"""Lambda functions for tests: each with a name and a role of its own."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from dataclasses import dataclass
from typing import Any

from local_account.process import LocalAccount
from tests.local_account.roles import new_role

# Does what its event says.
HANDLER = """
import boto3
import json
import time


class Odd(Exception):
    pass


def handler(event, context):
    if "raise" in event:
        raise Odd(event["raise"])
    if "sleep" in event:
        time.sleep(event["sleep"])
    if "publish" in event:
        boto3.client("sns").publish(TopicArn=event["publish"], Message="hello")
    return {"got": event}
"""


@dataclass(frozen=True)
class Function:
    """A function and how to call it."""

    client: Any
    arn: str

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    def invoke(self, event: object, **options: str) -> tuple[int, str | None, Any]:
        """Its answer: status, FunctionError, payload."""
        answer = self.client.invoke(
            FunctionName=self.name, Payload=json.dumps(event).encode(), **options
        )
        payload = json.loads(answer["Payload"].read() or "null")
        return answer["StatusCode"], answer.get("FunctionError"), payload


def new_function(account: LocalAccount, *statements: dict[str, Any], **settings: Any) -> Function:
    """A function that does what its event says, with a role that may do this much."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", HANDLER)
    client = account.client("lambda")
    created = client.create_function(
        FunctionName=f"test-{uuid.uuid4().hex[:8]}",
        Runtime="python3.13",
        Handler="index.handler",
        Role=new_role(account, "lambda.amazonaws.com", *statements),
        Code={"ZipFile": code.getvalue()},
        **{"Timeout": 20, **settings},
    )
    return Function(client, created["FunctionArn"])
