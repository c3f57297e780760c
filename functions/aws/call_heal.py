"""Calls the Lambda that owns the writes of attributes, with a case that waits for one.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import OwnerUnavailable
from functions.healing.case import Case


def request_about(case: Case) -> dict[str, str]:
    """What heal takes a case up by."""
    return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}


def call_heal(clients: Clients, heal_function: str, case: Case) -> None:
    """Asynchronous: what becomes of it stands in the case. Raises OwnerUnavailable."""
    try:
        clients.functions.invoke(
            FunctionName=heal_function,
            InvocationType="Event",
            Payload=json.dumps(request_about(case)).encode(),
        )
    except (ClientError, BotoCoreError) as error:
        raise OwnerUnavailable(f"heal could not be called: {error}") from error


def ask_heal(clients: Clients, heal_function: str, case: Case) -> Mapping[str, Any]:
    """Synchronous: what became of the case, as heal answers it. Raises OwnerUnavailable."""
    try:
        response = clients.functions_that_answer.invoke(
            FunctionName=heal_function,
            InvocationType="RequestResponse",
            Payload=json.dumps(request_about(case)).encode(),
        )
        answer = json.loads(response["Payload"].read())
    except (ClientError, BotoCoreError, ValueError) as error:
        raise OwnerUnavailable(f"heal could not be asked: {error}") from error
    if "FunctionError" in response or not isinstance(answer, dict):
        failed = answer.get("errorMessage", "") if isinstance(answer, dict) else ""
        raise OwnerUnavailable(f"heal could not do it now: {failed or 'it gave no reason'}")
    return answer
