"""Calls the Lambda that owns a write, with the case that waits for it.

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
from functions.healing.owners import owner_of_case
from functions.healing.steps import Owner

Functions = Mapping[Owner, str]


def request_about(case: Case) -> dict[str, str]:
    """What an owner takes a case up by."""
    return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}


def call_owner(clients: Clients, functions: Functions, case: Case) -> None:
    """Asynchronous: what becomes of it stands in the case. Raises OwnerUnavailable."""
    owner, function = _whose(case, functions)
    try:
        clients.functions.invoke(
            FunctionName=function,
            InvocationType="Event",
            Payload=json.dumps(request_about(case)).encode(),
        )
    except (ClientError, BotoCoreError) as error:
        raise OwnerUnavailable(f"{owner} could not be called: {error}") from error


def ask_owner(
    clients: Clients, functions: Functions, case: Case, **more: bool
) -> Mapping[str, Any]:
    """Synchronous: what became of the case, as its owner answers it. Raises OwnerUnavailable.

    `more` is what is asked beside taking it up.
    """
    owner, function = _whose(case, functions)
    try:
        response = clients.functions_that_answer.invoke(
            FunctionName=function,
            InvocationType="RequestResponse",
            Payload=json.dumps({**request_about(case), **more}).encode(),
        )
        answer = json.loads(response["Payload"].read())
    except (ClientError, BotoCoreError, ValueError) as error:
        raise OwnerUnavailable(f"{owner} could not be asked: {error}") from error
    if "FunctionError" in response or not isinstance(answer, dict):
        failed = answer.get("errorMessage", "") if isinstance(answer, dict) else ""
        raise OwnerUnavailable(f"{owner} could not do it now: {failed or 'it gave no reason'}")
    return answer


def _whose(case: Case, functions: Functions) -> tuple[Owner, str]:
    owner = owner_of_case(case.steps)
    if owner not in functions:
        raise OwnerUnavailable(f"this deployment has no {owner}: deploy the stack again")
    return owner, functions[owner]
