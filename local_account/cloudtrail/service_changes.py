"""CloudTrail records of changes of Lambda functions, event source mappings and KMS keys.

LookupEvents returns these records, and trails that log management events deliver them. Calls that
only read, and calls that use a function or a key, have no record.

Lambda's event names have a date, such as UpdateFunctionConfiguration20150331v2; Lambda's page below
lists them. Environment variables and code are left out. A record of Lambda names no resources, but
LookupEvents finds it by the function's name (seen in public reports). Here it is the name or ARN
that the caller used. AWS does not document the resource by which LookupEvents finds the changes of
a mapping. Here it is the function that the call names, if it names one.

https://docs.aws.amazon.com/lambda/latest/dg/logging-using-cloudtrail.html
https://docs.aws.amazon.com/kms/latest/developerguide/logging-using-cloudtrail.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ministack.core.responses import request_scope
from ministack.services import kms

from local_account.cloudtrail.record import (
    HttpExchange,
    Record,
    make_change_record,
    parse_object,
)
from local_account.lambdas.routes import find_call

KMS_TARGET_PREFIX = "TrentService."
EVENT_NAME_BY_LAMBDA_OPERATION = {
    "AddPermission": "AddPermission20150331v2",
    "CreateAlias": "CreateAlias20150331",
    "CreateEventSourceMapping": "CreateEventSourceMapping20150331",
    "CreateFunction": "CreateFunction20150331",
    "DeleteAlias": "DeleteAlias20150331",
    "DeleteEventSourceMapping": "DeleteEventSourceMapping20150331",
    "DeleteFunction": "DeleteFunction20150331",
    "DeleteFunctionConcurrency": "DeleteFunctionConcurrency20171031",
    "DeleteProvisionedConcurrencyConfig": "DeleteProvisionedConcurrencyConfig",
    "PublishVersion": "PublishVersion20150331",
    "PutFunctionConcurrency": "PutFunctionConcurrency20171031",
    "PutFunctionEventInvokeConfig": "PutFunctionEventInvokeConfig",
    "PutProvisionedConcurrencyConfig": "PutProvisionedConcurrencyConfig",
    "RemovePermission": "RemovePermission20150331v2",
    "TagResource": "TagResource20170331v2",
    "UntagResource": "UntagResource20170331v2",
    "UpdateAlias": "UpdateAlias20150331",
    "UpdateEventSourceMapping": "UpdateEventSourceMapping20150331",
    "UpdateFunctionCode": "UpdateFunctionCode20150331v2",
    "UpdateFunctionConfiguration": "UpdateFunctionConfiguration20150331v2",
    "UpdateFunctionEventInvokeConfig": "UpdateFunctionEventInvokeConfig",
}
KMS_CHANGES = frozenset(
    {
        *("CreateKey", "ReplicateKey", "EnableKey", "DisableKey", "UpdateKeyDescription"),
        *("ScheduleKeyDeletion", "CancelKeyDeletion", "PutKeyPolicy"),
        *("CreateAlias", "UpdateAlias", "DeleteAlias"),
        *("CreateGrant", "RevokeGrant", "RetireGrant", "TagResource", "UntagResource"),
        *("EnableKeyRotation", "DisableKeyRotation"),
        *("ImportKeyMaterial", "DeleteImportedKeyMaterial"),
    }
)
# CloudTrail leaves out functions' environment variables and code, and imported key material.
OMITTED_PARAMETERS = frozenset({"Environment", "ZipFile", "EncryptedKeyMaterial", "ImportToken"})


class Change(NamedTuple):
    """A call that changes a function, a mapping or a key.

    Attributes:
        event_source: CloudTrail's name of the service.
        event_name: The event's name.
        path_parameters: The parameters in the call's path.
    """

    event_source: str
    event_name: str
    path_parameters: Mapping[str, str]


def find_change(service: str, method: str, path: str, headers: Mapping[str, str]) -> Change | None:
    """Return the change that an HTTP call requests, or None if it requests no recorded change.

    Args:
        service: The service that the call's signature names.
        method: The HTTP method.
        path: The HTTP path, as it was sent.
        headers: The HTTP headers, with names in lower case.
    """
    if service == "kms":
        action = headers.get("x-amz-target", "").removeprefix(KMS_TARGET_PREFIX)
        return Change("kms.amazonaws.com", action, {}) if action in KMS_CHANGES else None
    call = find_call(method, path) if service == "lambda" else None
    if call is None or call.operation not in EVENT_NAME_BY_LAMBDA_OPERATION:
        return None
    event_name = EVENT_NAME_BY_LAMBDA_OPERATION[call.operation]
    return Change("lambda.amazonaws.com", event_name, call.path_parameters)


def make_record_of_change(change: Change, exchange: HttpExchange) -> Record | None:
    """Return the record of a change.

    None if the call has no credential, or if its body is not empty and not a JSON object.
    """
    parameters = parse_object(exchange.body or b"{}")
    if parameters is None:
        return None
    parameters = _leave_out({**change.path_parameters, **parameters})
    answer_content = parse_object(exchange.answer_body or b"{}") or {}
    record = make_change_record(
        exchange, change.event_source, change.event_name, parameters, _leave_out(answer_content)
    )
    if record is None or change.event_source != "kms.amazonaws.com":
        return record
    account, region = record["recipientAccountId"], record["awsRegion"]
    record["resources"] = [
        {"accountId": account, "type": resource_type, "ARN": arn}
        for resource_type, arn in _list_key_arns(parameters, answer_content, account, region)
    ]
    return record


def _leave_out(value: Any) -> Any:
    """Return a copy of parameters without those that CloudTrail leaves out."""
    if isinstance(value, list):
        return [_leave_out(element) for element in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _leave_out(parameter)
        for name, parameter in value.items()
        if name not in OMITTED_PARAMETERS
    }


def _list_key_arns(
    parameters: Mapping[str, Any], answer: Mapping[str, Any], account: str, region: str
) -> Iterator[tuple[str, str]]:
    """Yield the type and ARN of each alias and key that a KMS call is about."""
    alias_name = parameters.get("AliasName")
    if alias_name:
        yield "AWS::KMS::Alias", f"arn:aws:kms:{region}:{account}:{alias_name}"
    new_key = answer.get("KeyMetadata") or answer.get("ReplicaKeyMetadata")
    if new_key:
        yield "AWS::KMS::Key", new_key["Arn"]
        return
    key_id = str(parameters.get("TargetKeyId") or parameters.get("KeyId") or "")
    with request_scope(account, region):
        key = kms._resolve_key(key_id)
    if key:
        yield "AWS::KMS::Key", key["Arn"]
