"""Permissions: who may call the account, and what services and roles may do inside MiniStack.

Every call must be signed. With AUTH=false every signed call is allowed. The checks of IAM Access
Analyzer return the result that was set on the page `access-analyzer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs

import ministack.app
from ministack.core import iam_actions, iam_evaluator, router
from ministack.core.iam_actions import access_denied_response
from ministack.core.iam_evaluator import CredentialResolutionError, resolve_credential
from ministack.core.responses import _account_from_sts_session, get_account_id, get_region, new_uuid
from ministack.core.sigv4 import (
    header_signature_failure,
    parse_header_signature,
    request_time_failure,
)
from ministack.services import dynamodb, iam, s3, sts

from local_account.account_page import (
    AsgiApplication,
    AsgiMessage,
    AsgiReceive,
    AsgiSend,
    SwitchRefused,
    join_headers,
    read_body,
    replay_body,
    send_response,
)
from local_account.hooks import add_service, replace_functions
from local_account.where import ACCOUNT, ACCOUNT_BY_PROFILE, ORGANIZATION_ID, read_credentials

ANALYZER_SERVICE = "access-analyzer"
POLICY_CHECK_PATHS = ("/policy/check-no-public-access", "/policy/check-no-new-access")
SETTABLE_RESULTS = ("PASS", "FAIL", None)
ANALYZER_REMEDY = "/_mendq/access-analyzer has both checks answer as it is told"
# Limits of a request's body. DynamoDB takes 16 MB in one call and SQS 1 MiB.
MAXIMUM_BODY_BYTES = 32 * 1024**2
MAXIMUM_FILE_BYTES = 512 * 1024**2  # for S3 objects and Lambda zips

# ARN of a role session, which is the principal of a call. Policies name the role instead.
_ROLE_SESSION_ARN = re.compile(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*")
# An equality in a KeyConditionExpression: the attribute's name or alias, and the placeholder.
_EQUALITY = re.compile(r"(#?[\w.-]+)\s*=\s*(:\w+)")
# A root user has no policies of its own, and is allowed everything that no other policy denies.
_ANY_CALL = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
_ROOT_POLICIES = [iam_evaluator.parse_policy_document(_ANY_CALL)]
_CALLER_ACCOUNT_VARIABLE = "${aws:PrincipalAccount}"
CallFailure = tuple[str, str]  # code and message
BODY_TOO_LONG_FAILURE: CallFailure = (
    "RequestEntityTooLarge",
    "No call of this service is as long here",
)


def issue_root_credentials(url: str) -> None:
    """Register the access keys of the credentials file with MiniStack, as root users."""
    for profile, account in ACCOUNT_BY_PROFILE.items():
        access_key, secret_key = read_credentials(url, profile).values()
        root_session = {"Arn": f"arn:aws:iam::{account}:root", "UserId": account}
        sts.register_session(access_key, {**root_session, "SecretAccessKey": secret_key})


def install_organization() -> None:
    """Make bucket policies admit roles of other accounts, as on AWS. Call this once per process.

    MiniStack itself evaluates such a policy for the root user of the caller's account, gives each
    account its own organization, does not replace policy variables, and copies objects only within
    one account.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """

    iam_evaluator._principal_org_id = lambda _: ORGANIZATION_ID

    @replace_functions(iam_evaluator, "evaluate_resource_policy")
    def evaluate_policy(
        original_function: Any,
        document: Any,
        call_context: Any,
        *other_arguments: Any,
        **keyword_arguments: Any,
    ) -> Any:
        caller_arn = iam_evaluator.caller_arn()
        if (
            call_context.principal_arn.endswith(":root")
            and call_context.principal_account in caller_arn
        ):
            call_context = replace(call_context, principal_arn=caller_arn)
        return original_function(document, call_context, *other_arguments, **keyword_arguments)

    @replace_functions(iam_evaluator, "_resolve_condition_key")
    def resolve_condition_key(original_function: Any, key: str, call_context: Any) -> Any:
        """Return a condition key's value. A session's aws:PrincipalArn is the role's ARN."""
        value = original_function(key, call_context)
        if key.lower() == "aws:principalarn":
            return _ROLE_SESSION_ARN.sub(r"arn:\1:iam::\2:role/\3", value)
        return value

    @replace_functions(iam_evaluator, "_first_match")
    def find_first_match(
        original_function: Any, call_context: Any, statements: Any, effect: str
    ) -> Any:
        """Replace ${aws:PrincipalAccount} in the statements' resources by the caller's account."""
        resolved_statements = []
        for statement in statements:
            resources = [
                resource.replace(_CALLER_ACCOUNT_VARIABLE, call_context.principal_account)
                for resource in statement.resources
            ]
            resolved_statements.append(replace(statement, resources=resources))
        return original_function(call_context, resolved_statements, effect)

    @replace_functions(s3, "_copy_object")
    def copy_object(original_function: Any, bucket: str, key: str, headers: dict[str, str]) -> Any:
        """Copy an object, also from a bucket of another account.

        During the copy, the other account's bucket is also listed as a bucket of this account.
        MiniStack has already checked the caller's permissions on both objects.
        """
        source_bucket = headers["x-amz-copy-source"].lstrip("/").partition("/")[0]
        owner_account = s3._bucket_owner_account(source_bucket)
        if owner_account in (None, get_account_id()):
            return original_function(bucket, key, headers)
        buckets = s3._buckets._data
        alias_key = get_account_id(), source_bucket
        buckets[alias_key] = buckets[owner_account, source_bucket]
        try:
            return original_function(bucket, key, headers)
        finally:
            del buckets[alias_key]


def install_resource_arns() -> None:
    """Make MiniStack check permissions on the ARNs that AWS uses for roles and EventBridge rules.

    In AWS a role's ARN includes its path, and the ARN of a rule on the default bus has no bus name.
    MiniStack leaves out the path, adds the bus name, and in calls about the targets of a rule does
    not use the rule's ARN.
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoneventbridge.html
    """

    @replace_functions(iam_actions, "extract_resource_arn")
    def extract_arn(original_function: Any, service: str, *other_arguments: Any) -> Any:
        resource_arn = original_function(service, *other_arguments)
        if service == "iam" and ":role/" in resource_arn:
            role_record = iam._roles.get(resource_arn.rpartition("/")[2])
            return role_record["Arn"] if role_record else resource_arn
        if service == "events":
            _method, _path, _headers, body, *_ = other_arguments
            rule_name = iam_actions._safe_json_field(body, "Rule")
            bus_name = iam_actions._safe_json_field(body, "EventBusName") or "default"
            if rule_name and resource_arn == "*":
                resource_arn = (
                    f"arn:aws:events:{get_region()}:{get_account_id()}:rule/{bus_name}/{rule_name}"
                )
            return resource_arn.replace(":rule/default/", ":rule/")
        return resource_arn


def install_wildcards() -> None:
    """Make the wildcards of a policy match only a whole text, and any character, as on AWS.

    MiniStack also allows a text with a line break behind what a pattern allows, and its `*` stands
    for no line break, so that a denial would not match.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html
    """

    @replace_functions(iam_evaluator, "_fnmatch_compile")
    def compile_pattern(_: Any, pattern: str, ignore_case: bool) -> re.Pattern[str]:
        return _compile_wildcards(pattern, ignore_case=ignore_case)


@lru_cache(maxsize=4_096)
def _compile_wildcards(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    """Return the regular expression for a policy's pattern, to be used with `match`."""
    regex_by_wildcard = {"*": ".*", "?": "."}
    parts = [regex_by_wildcard.get(character, re.escape(character)) for character in pattern]
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG)
    return re.compile("".join(parts) + r"\Z", flags)


def install_partition_keys() -> None:
    """Make MiniStack know dynamodb:LeadingKeys, the partition keys of the items of a call.

    A transaction is checked item by item, each with its own partition key. A call that names no
    item, such as Scan, has no such condition key. In a call of PartiQL, AWS finds the partition key
    in the statement's WHERE clause; here such a call has none.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
    """

    @replace_functions(iam_actions, "dynamodb_service_context")
    def make_service_context(original_function: Any, body: bytes) -> dict[str, Any]:
        service_context: dict[str, Any] = original_function(body)
        partition_keys = _list_partition_keys(_read_json_object(body))
        if partition_keys:
            service_context["dynamodb:LeadingKeys"] = partition_keys
        return service_context

    @replace_functions(iam_actions, "dynamodb_transaction_checks")
    def list_transaction_checks(
        original_function: Any, iam_action: str, body: bytes, *other_arguments: Any
    ) -> list[tuple[str, str]]:
        """Return the checks of a transaction. Each resource knows its item's partition key."""
        checks = original_function(iam_action, body, *other_arguments)
        if not checks:
            return []
        parts = [
            part
            for transaction_item in _read_json_object(body)["TransactItems"]
            for part in _list_transaction_parts(transaction_item)
        ]
        return [
            (action, _ItemResource(table_arn, _list_partition_keys(part)))
            for (action, table_arn), part in zip(checks, parts, strict=True)
        ]

    @replace_functions(iam_evaluator, "_resolve_condition_key")
    def resolve_condition_key(original_function: Any, key: str, call_context: Any) -> Any:
        if key.lower() == "dynamodb:leadingkeys" and isinstance(
            call_context.resource_arn, _ItemResource
        ):
            return call_context.resource_arn.partition_keys or None
        return original_function(key, call_context)


class _ItemResource(str):  # noqa: SLOT000 - it has an attribute of its own
    """The ARN of the table of one item of a transaction, and the item's partition key."""

    partition_keys: list[str]

    def __new__(cls, table_arn: str, partition_keys: Sequence[str]) -> Self:
        """Return the ARN with the partition key; `partition_keys` is empty if there is none."""
        resource = super().__new__(cls, table_arn)
        resource.partition_keys = list(partition_keys)
        return resource


def _read_json_object(body: bytes) -> dict[str, Any]:
    """Return the object in a call's body; an empty one if the body has none."""
    try:
        parameters = json.loads(body or b"{}")
    except ValueError:
        return {}
    return parameters if isinstance(parameters, dict) else {}


def _list_transaction_parts(transaction_item: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of an item of a transaction that MiniStack checks, in MiniStack's order."""
    for part_name in iam_actions._DYNAMODB_TRANSACT_ITEM_ACTIONS:
        part = transaction_item.get(part_name) if isinstance(transaction_item, dict) else None
        if isinstance(part, dict) and isinstance(part.get("TableName"), str) and part["TableName"]:
            yield part


def _list_partition_keys(parameters: Mapping[str, Any]) -> list[str]:
    """Return the partition keys that a call, or a part of a transaction, names."""
    table_name = str(parameters.get("TableName", "")).rpartition("/")[2]
    partition_keys = [
        *_find_partition_key(table_name, parameters.get("Key")),
        *_find_partition_key(table_name, parameters.get("Item")),
        *_find_queried_partition_key(table_name, parameters),
    ]
    requests_by_table = parameters.get("RequestItems")
    if isinstance(requests_by_table, dict):
        for batch_table_name, batch in requests_by_table.items():
            for item in _list_batch_items(batch):
                partition_keys += _find_partition_key(batch_table_name.rpartition("/")[2], item)
    return partition_keys


def _list_batch_items(batch: Any) -> Iterator[Any]:
    """Yield the keys and items that BatchGetItem or BatchWriteItem names for one table."""
    if isinstance(batch, dict):
        yield from batch.get("Keys", [])
        return
    for write_request in batch:
        for part in write_request.values():
            yield part.get("Key", part.get("Item"))


def _find_partition_key(table_name: str, item: Any) -> Iterator[str]:
    """Yield the partition key of an item, or of a key, if it has one."""
    table = dynamodb._tables.get(table_name)
    attribute = item.get(table["pk_name"]) if table and isinstance(item, dict) else None
    if isinstance(attribute, dict) and len(attribute) == 1:
        yield str(*attribute.values())


def _find_queried_partition_key(table_name: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the partition key that a Query asks for, in the table or in an index of the table."""
    table = dynamodb._tables.get(table_name)
    condition = parameters.get("KeyConditionExpression")
    if table is None or not isinstance(condition, str):
        return
    key_schema = table["KeySchema"]
    for index in table.get("GlobalSecondaryIndexes", []):
        if index["IndexName"] == parameters.get("IndexName"):
            key_schema = index["KeySchema"]
    (partition_attribute,) = (
        key["AttributeName"] for key in key_schema if key["KeyType"] == "HASH"
    )
    attribute_by_alias = parameters.get("ExpressionAttributeNames") or {}
    value_by_placeholder = parameters.get("ExpressionAttributeValues") or {}
    for name, placeholder in _EQUALITY.findall(condition):
        value = value_by_placeholder.get(placeholder)
        is_partition_attribute = attribute_by_alias.get(name, name) == partition_attribute
        if is_partition_attribute and isinstance(value, dict) and len(value) == 1:
            yield str(*value.values())


def find_account_of_access_key(access_key: str) -> str:
    """Return the account that an access key belongs to; ACCOUNT if the key is unknown."""
    session_account = _account_from_sts_session(access_key)
    user_account = iam_evaluator.find_iam_access_key_account(access_key)
    return session_account or user_account or ACCOUNT


@dataclass(frozen=True)
class SignedCalls:
    """ASGI application that passes only correctly signed HTTP calls to `application`.

    A call is refused if it has the header Origin, which browsers send for web pages, or if its
    header Host is not `host`. Every other call must be signed with a key that this account issued.
    The key is checked before the body is read. A body that is longer than MAXIMUM_FILE_BYTES (S3
    and Lambda) or MAXIMUM_BODY_BYTES (other services) is refused too. (MiniStack itself also
    accepts unsigned calls without a key, with the access key `test`, or with any twelve digits as
    the key.)
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
    """

    application: AsgiApplication
    host: str

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """Pass the call to `application`, or answer with the error that refuses the call.

        A websocket is closed. ASGI's events about the server itself are passed on.
        """
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        headers = join_headers(scope["headers"])
        signature = parse_header_signature(headers)
        service = "" if isinstance(signature, tuple) else signature.service
        failure = self._find_sender_fault(headers) or _find_signature_fault(scope, headers, None)
        if failure is None:
            is_file_service = service in ("s3", "lambda")
            maximum_bytes = MAXIMUM_FILE_BYTES if is_file_service else MAXIMUM_BODY_BYTES
            body = await read_body(receive, maximum_bytes)
            receive = replay_body(body, receive)
            if len(body) > maximum_bytes:
                failure = BODY_TOO_LONG_FAILURE
            else:
                failure = _find_signature_fault(scope, headers, body)
        if failure is None:
            await self.application(scope, receive, send)
            return
        # The answer is in the protocol of the service that was called.
        code, message = failure
        response = access_denied_response(
            service, "", "", new_uuid(), error_code=code, message=message, headers=headers
        )
        await send_response(send, *response)

    def _find_sender_fault(self, headers: Mapping[str, str]) -> CallFailure | None:
        """Return the error of a call from a web page or with a wrong header Host, or None."""
        if "origin" in headers or headers.get("host") != self.host:
            return "AccessDenied", f"Call {self.host}, from no web page"
        return None


def _find_signature_fault(
    scope: AsgiMessage, headers: dict[str, str], body: bytes | None
) -> CallFailure | None:
    """Return the error of a call whose signature is missing, old or wrong; None if it is valid.

    An access key that this account did not issue is an error too. If `body` is None, only the
    access key and the time of the signature are checked.
    """
    signature = parse_header_signature(headers)
    if isinstance(signature, tuple):
        return signature
    # The key that MiniStack takes as the caller's.
    access_key = router.extract_access_key_id(headers)
    if access_key != signature.access_key_id or iam_evaluator.is_root_access_key(access_key):
        return "UnrecognizedClientException", "This account did not issue that access key."
    credential = resolve_credential(
        access_key, find_account_of_access_key(access_key), headers.get("x-amz-security-token")
    )
    if isinstance(credential, CredentialResolutionError):
        return credential.code, credential.message
    failure: CallFailure | None = request_time_failure(signature)
    if failure is None and body is not None:
        query_parameters = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        failure = header_signature_failure(
            signature,
            credential.secret_access_key,
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            query_parameters,
            headers,
            body,
        )
    return failure


def find_assume_refusal(role_arn: str, service: str) -> str | None:
    """Return why `service`, such as scheduler.amazonaws.com, cannot assume the role, or None.

    With AUTH=false, the role must only exist.
    """
    role_record = iam._roles.get(role_arn.rpartition("/")[2])
    if role_record is None:
        return f"The role {role_arn} does not exist"
    if not ministack.app.AUTH:
        return None
    call_context = make_call_context(service, "Service", "sts:AssumeRole", role_arn)
    call_context.service_context = {"aws:sourceaccount": get_account_id()}
    trust_policy = _add_any_resource_to_statements(role_record["AssumeRolePolicyDocument"])
    evaluation = iam_evaluator.evaluate_resource_policy(trust_policy, call_context, service=service)
    if evaluation.decision == "Allow":
        return None
    return f"The role {role_arn} does not let {service} assume it"


def find_action_refusal(role_arn: str, action: str, resource_arn: str) -> str | None:
    """Return why the role's own policies do not allow `action` on the resource; None if they do.

    Always None with AUTH=false.
    """
    if not ministack.app.AUTH:
        return None
    role_name = role_arn.rpartition("/")[2]
    session_arn = f"arn:aws:sts::{get_account_id()}:assumed-role/{role_name}/service"
    policies = iam_evaluator._gather_role_policies(role_name, get_account_id())
    call_context = make_call_context(session_arn, "AssumedRole", action, resource_arn)
    if iam_evaluator.evaluate(call_context, policies).decision == "Allow":
        return None
    return f"{session_arn} is not authorized to perform: {action} on resource: {resource_arn}"


class ResourceCall(NamedTuple):
    """A call about one resource.

    Attributes:
        action: IAM action.
        resource_arn: ARN of the resource.
        resource_policy: The resource's own policy; empty if it has none.
        is_policy_required: True if the resource's policy must allow the call too, as for KMS keys.
            A root user then needs it as well.
        condition_keys: Values of the service's condition keys; the keys are in lower case.
    """

    action: str
    resource_arn: str
    resource_policy: str
    is_policy_required: bool = False
    condition_keys: Mapping[str, Any] = {}


def is_allowed(principal: Any, call: ResourceCall) -> bool:
    """Return True if a principal may make a call. With AUTH=false it always may.

    `principal` is MiniStack's principal. A credential error is allowed nothing.
    """
    if not ministack.app.AUTH:
        return True
    if isinstance(principal, iam_evaluator.AuthError):
        return False
    context = make_call_context(principal.arn, principal.type, call.action, call.resource_arn)
    context.principal_account = principal.account
    context.principal_keys = principal.keys
    context.service_context = dict(call.condition_keys)
    policies = _ROOT_POLICIES if principal.policies is None else principal.policies
    evaluation = iam_evaluator.combine_resource_policy(
        iam_evaluator.evaluate(context, policies, *principal.limits),
        context,
        call.resource_policy,
        call.resource_arn.split(":")[4],
        required=call.is_policy_required,
        limits=principal.limits,
    )
    return bool(evaluation.decision == "Allow")


def make_call_context(principal: str, principal_type: str, action: str, resource_arn: str) -> Any:
    """Return a call as MiniStack's policy evaluator expects it.

    Args:
        principal: ARN of the caller, or the name of an AWS service.
        principal_type: MiniStack's type of principal, such as `AssumedRole`.
        action: IAM action.
        resource_arn: ARN of the resource.
    """
    return iam_evaluator.EvalContext(
        principal_arn=principal,
        principal_type=principal_type,
        principal_account=get_account_id(),
        action=action,
        resource_arn=resource_arn,
        region=get_region(),
        secure_transport=True,
    )


def _add_any_resource_to_statements(trust_policy: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a trust policy in which each statement has a resource.

    A trust policy names no resource, because its resource is the role. MiniStack's evaluator needs
    a resource.
    """
    document = json.loads(trust_policy) if isinstance(trust_policy, str) else trust_policy
    statements = document["Statement"]
    if isinstance(statements, dict):
        statements = [statements]
    return {
        **document,
        "Statement": [{"Resource": "*", **statement} for statement in statements],
    }


class AccessAnalyzer:
    """A simulation of CheckNoPublicAccess and CheckNoNewAccess of IAM Access Analyzer.

    It reads no policy: both checks answer with `result`. Send {"result": "PASS"} or
    {"result": "FAIL"} to /_mendq/access-analyzer to set `result`. At first, and after
    {"result": null}, `result` is None: both checks then fail with NotEmulated (status 400).
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoPublicAccess.html
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoNewAccess.html
    """

    def __init__(self) -> None:
        self.result: str | None = None

    def install(self) -> None:
        """Add the two checks to MiniStack. Call this once per process."""
        add_service(ANALYZER_SERVICE, "accessanalyzer", self._handle_check)

    def page(self, request_body: Any) -> dict[str, Any]:
        """Set `result` to the request's value, and return the current one as {"result": ..}.

        If `request_body` is None, nothing changes. Raises SwitchRefused if the body is not
        {"result": "PASS"}, {"result": "FAIL"} or {"result": null}.
        """
        if request_body is not None:
            if request_body not in [
                {"result": allowed_result} for allowed_result in SETTABLE_RESULTS
            ]:
                raise SwitchRefused('send {"result": "PASS"}, "FAIL" or null')
            self.result = request_body["result"]
        return {"result": self.result}

    async def _handle_check(
        self, _method: str, path: str, *_: Any
    ) -> tuple[int, dict[str, str], bytes]:
        if path.rstrip("/") not in POLICY_CHECK_PATHS or self.result is None:
            status = HTTPStatus.BAD_REQUEST
            response: dict[str, Any] = {
                "__type": "NotEmulated",
                "message": f"{path} is not emulated here; {ANALYZER_REMEDY}",
            }
        else:
            status = HTTPStatus.OK
            response = {
                "result": self.result,
                "message": f"{path} answers as it was told to.",
                "reasons": [],
            }
            if self.result == "FAIL":
                response["reasons"] = [{"description": "It was told to fail."}]
        return status, {"Content-Type": "application/json"}, json.dumps(response).encode()
