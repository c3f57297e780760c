"""Call the Lambda that owns a write, so that it continues a case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import OwnerUnavailable
from mendq.model.case import Case
from mendq.model.plan import owner_of_case
from mendq.model.steps import Owner

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

# The name of the Lambda function of each owner (the Lambda that writes a kind of step).
FunctionNameByOwner = Mapping[Owner, str]


def make_owner_request(case: Case) -> dict[str, str]:
    """Return the event that asks an owner's Lambda to continue a case."""
    return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}


def call_owner(clients: Clients, function_name_by_owner: FunctionNameByOwner, case: Case) -> None:
    """Call the owner of the case's next write without waiting. The owner records the outcome.

    Raises:
        OwnerUnavailable: The owner could not be called.
    """
    _invoke_owner(clients.functions, "Event", function_name_by_owner, case)


def ask_owner(
    clients: Clients, function_name_by_owner: FunctionNameByOwner, case: Case, **extra_fields: bool
) -> Mapping[str, Any]:
    """Call the owner of the case's next write, wait, and return its answer.

    Args:
        clients: The clients of this invocation.
        function_name_by_owner: The name of the Lambda function of each owner.
        case: The case to continue.
        extra_fields: Fields to add to the event, such as `cancel=True`.

    Raises:
        OwnerUnavailable: The owner could not be called, failed, or gave no answer.
    """
    client = clients.functions_with_long_timeout
    answer = _invoke_owner(client, "RequestResponse", function_name_by_owner, case, **extra_fields)
    if not isinstance(answer, dict):
        raise OwnerUnavailable(f"{owner_of_case(case.steps)} gave no answer")
    return answer


def _invoke_owner(
    lambda_client: LambdaClient,
    invocation_type: Literal["Event", "RequestResponse"],
    function_name_by_owner: FunctionNameByOwner,
    case: Case,
    **extra_fields: bool,
) -> object:
    owner = owner_of_case(case.steps)
    payload = json.dumps({**make_owner_request(case), **extra_fields})
    if owner not in function_name_by_owner:
        raise OwnerUnavailable(f"this deployment has no {owner}: deploy the stack again")
    function_name = function_name_by_owner[owner]
    try:
        response = lambda_client.invoke(
            FunctionName=function_name, InvocationType=invocation_type, Payload=payload.encode()
        )
        answer = (
            json.loads(response["Payload"].read()) if invocation_type == "RequestResponse" else None
        )
    except (ClientError, BotoCoreError, ValueError) as error:
        raise OwnerUnavailable(f"{owner} could not be called: {error}") from error
    if "FunctionError" in response:
        error_message = answer.get("errorMessage") if isinstance(answer, dict) else None
        raise OwnerUnavailable(
            f"{owner} could not do it now: {error_message or 'it gave no reason'}"
        )
    return answer
