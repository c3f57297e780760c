"""Lambda functions for tests: each with a name and a role of its own."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from dataclasses import dataclass
from typing import Any

from local_account.process import LocalAccount
from tests.local_account.assemblies import TINY
from tests.local_account.roles import new_role


@dataclass(frozen=True)
class Function:
    """A function and how to call it."""

    client: Any
    name: str

    def invoke(self, event: object, **options: str) -> tuple[int, str | None, Any]:
        """Its answer: status, FunctionError, payload."""
        answer = self.client.invoke(
            FunctionName=self.name, Payload=json.dumps(event).encode(), **options
        )
        payload = json.loads(answer["Payload"].read() or "null")
        return answer["StatusCode"], answer.get("FunctionError"), payload


def new_function(account: LocalAccount, *statements: dict[str, Any], **settings: Any) -> Function:
    """A function that does what its event says, with a role that may do this much."""
    code, name = io.BytesIO(), f"test-{uuid.uuid4().hex[:8]}"
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(TINY / "asset_code" / "index.py", "index.py")
    client = account.client("lambda")
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="index.handler",
        Role=new_role(account, "lambda.amazonaws.com", *statements),
        Code={"ZipFile": code.getvalue()},
        **{"Timeout": 20, **settings},
    )
    return Function(client, name)
