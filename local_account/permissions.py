"""Permissions: who may call the account, and what services and roles may do inside MiniStack.

Every call must be signed. With AUTH=false every signed call is allowed. IAM Access Analyzer gives
the answer that was set on its page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
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
from ministack.services import iam, s3, sts

from local_account.account_page import (
    Application,
    Message,
    Receive,
    Send,
    SwitchRefused,
    join_headers,
    read_body,
    replay_body,
    respond,
)
from local_account.hooks import around, serve
from local_account.where import ACCOUNT, ORGANIZATION, PROFILES, credentials

ANALYZER = "access-analyzer"
CHECKS = ("/policy/check-no-public-access", "/policy/check-no-new-access")
RESULTS = ("PASS", "FAIL", None)
REMEDY = "/_mendq/access-analyzer has both checks answer as it is told"
# Limits of a request's body. DynamoDB takes 16 MB in one call and SQS 1 MiB.
MOST_BYTES = 32 * 1024**2
MOST_FILE_BYTES = 512 * 1024**2  # for S3 objects and Lambda zips

# ARN of a role session, which is the principal of a call. Policies name the role instead.
_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*")
_CALLER_ACCOUNT = "${aws:PrincipalAccount}"
Failure = tuple[str, str]  # code and message
TOO_LONG: Failure = ("RequestEntityTooLarge", "No call of this service is as long here")


def issue_root_credentials(url: str) -> None:
    """Register the root users of the credentials file with MiniStack."""
    for profile, account in PROFILES.items():
        access_key, secret = credentials(url, profile).values()
        root = {"Arn": f"arn:aws:iam::{account}:root", "UserId": account}
        sts.register_session(access_key, {**root, "SecretAccessKey": secret})


def install_organization() -> None:
    """Let bucket policies admit roles of other accounts, as on AWS; once per process.

    MiniStack alone evaluates such a policy for the caller's root user, gives each account its own
    organization, does not replace policy variables, and copies objects only within one account.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """

    iam_evaluator._principal_org_id = lambda _: ORGANIZATION

    @around(iam_evaluator, "evaluate_resource_policy")
    def evaluate(inner: Any, document: Any, context: Any, *rest: Any, **keywords: Any) -> Any:
        caller = iam_evaluator.caller_arn()
        if context.principal_arn.endswith(":root") and context.principal_account in caller:
            context = replace(context, principal_arn=caller)
        return inner(document, context, *rest, **keywords)

    @around(iam_evaluator, "_resolve_condition_key")
    def resolve(inner: Any, key: str, context: Any) -> Any:
        """Give the ARN of the role instead of the ARN of its session."""
        value = inner(key, context)
        if key.lower() == "aws:principalarn":
            return _SESSION.sub(r"arn:\1:iam::\2:role/\3", value)
        return value

    @around(iam_evaluator, "_first_match")
    def match(inner: Any, context: Any, statements: Any, effect: str) -> Any:
        """Replace the policy variable of the caller's account in the statements' resources."""
        resolved = []
        for statement in statements:
            resources = [
                resource.replace(_CALLER_ACCOUNT, context.principal_account)
                for resource in statement.resources
            ]
            resolved.append(replace(statement, resources=resources))
        return inner(context, resolved, effect)

    @around(s3, "_copy_object")
    def copy(inner: Any, bucket: str, key: str, headers: dict[str, str]) -> Any:
        """Copy from another account's bucket: make the bucket known in this account meanwhile.

        The caller's permissions to read the source and to write the copy were checked before.
        """
        source = headers["x-amz-copy-source"].lstrip("/").partition("/")[0]
        owner = s3._bucket_owner_account(source)
        if owner in (None, get_account_id()):
            return inner(bucket, key, headers)
        buckets = s3._buckets._data
        alias = get_account_id(), source
        buckets[alias] = buckets[owner, source]
        try:
            return inner(bucket, key, headers)
        finally:
            del buckets[alias]


def install_resource_arns() -> None:
    """Check permissions on the ARNs that AWS uses for roles and EventBridge rules.

    AWS's ARN of a role has its path, and the ARN of a rule on the default bus does not name the
    bus. MiniStack leaves the path out, names the bus, and does not name the rule in calls about its
    targets.
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoneventbridge.html
    """

    @around(iam_actions, "extract_resource_arn")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        arn = inner(service, *rest)
        if service == "iam" and ":role/" in arn:
            role = iam._roles.get(arn.rpartition("/")[2])
            return role["Arn"] if role else arn
        if service == "events":
            _method, _path, _headers, body, *_ = rest
            rule = iam_actions._safe_json_field(body, "Rule")
            bus = iam_actions._safe_json_field(body, "EventBusName") or "default"
            if rule and arn == "*":
                arn = f"arn:aws:events:{get_region()}:{get_account_id()}:rule/{bus}/{rule}"
            return arn.replace(":rule/default/", ":rule/")
        return arn


def account_of(access_key: str) -> str:
    """Return the account that an access key belongs to, or this account if the key is unknown."""
    session_account = _account_from_sts_session(access_key)
    user_account = iam_evaluator.find_iam_access_key_account(access_key)
    return session_account or user_account or ACCOUNT


@dataclass(frozen=True)
class SignedCalls:
    """ASGI application that passes only correctly signed calls to `inner`.

    It refuses a call with the header Origin, which browsers send for web pages, or with another
    header Host than `host`. All other calls must be signed with a key that this account issued. The
    key is checked before the body is read. (MiniStack alone accepts unsigned calls from the access
    key `test`, from any twelve digits, and without a key.)
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
    """

    inner: Application
    host: str

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            headers = join_headers(scope["headers"])
            service = getattr(parse_header_signature(headers), "service", "")
            failure: Failure | None
            if "origin" in headers or headers.get("host") != self.host:
                failure = ("AccessDenied", f"Call {self.host}, from no web page")
            else:
                failure = _signature_fault(scope, headers, None)
            if failure is None:
                most = MOST_FILE_BYTES if service in ("s3", "lambda") else MOST_BYTES
                body = await read_body(receive, most)
                if len(body) > most:
                    failure = TOO_LONG
                else:
                    failure = _signature_fault(scope, headers, body)
                receive = replay_body(body, receive)
            if failure is not None:
                # The answer is in the protocol of the service that was called.
                code, message = failure
                answer = access_denied_response(
                    service, "", "", new_uuid(), error_code=code, message=message, headers=headers
                )
                await respond(send, *answer)
                return
        await self.inner(scope, receive, send)


def _signature_fault(scope: Message, headers: dict[str, str], body: bytes | None) -> Failure | None:
    """Return the error of a call whose signature is missing, old or wrong; None if it is valid.

    If `body` is None, only the access key and the time of the signature are checked.
    """
    signature = parse_header_signature(headers)
    if isinstance(signature, tuple):
        return signature
    key = router.extract_access_key_id(headers)  # the key that MiniStack takes as the caller's
    if key != signature.access_key_id or iam_evaluator.is_root_access_key(key):
        return "UnrecognizedClientException", "This account did not issue that access key."
    credential = resolve_credential(key, account_of(key), headers.get("x-amz-security-token"))
    if isinstance(credential, CredentialResolutionError):
        return credential.code, credential.message
    failure: Failure | None = request_time_failure(signature)
    if failure is None and body is not None:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        failure = header_signature_failure(
            signature,
            credential.secret_access_key,
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            query,
            headers,
            body,
        )
    return failure


def refusal_to_assume(role_arn: str, service: str) -> str | None:
    """Return why `service`, such as scheduler.amazonaws.com, cannot assume the role, or None."""
    role = iam._roles.get(role_arn.rpartition("/")[2])
    if role is None:
        return f"The role {role_arn} does not exist"
    if not ministack.app.AUTH:
        return None
    context = context_of(service, "Service", "sts:AssumeRole", role_arn)
    context.service_context = {"aws:sourceaccount": get_account_id()}
    trust = _with_resources(role["AssumeRolePolicyDocument"])
    result = iam_evaluator.evaluate_resource_policy(trust, context, service=service)
    if result.decision == "Allow":
        return None
    return f"The role {role_arn} does not let {service} assume it"


def refusal_to_act(role_arn: str, action: str, resource_arn: str) -> str | None:
    """Return why the role's own policies do not allow `action` on the resource, or None."""
    if not ministack.app.AUTH:
        return None
    name = role_arn.rpartition("/")[2]
    session = f"arn:aws:sts::{get_account_id()}:assumed-role/{name}/service"
    policies = iam_evaluator._gather_role_policies(name, get_account_id())
    context = context_of(session, "AssumedRole", action, resource_arn)
    if iam_evaluator.evaluate(context, policies).decision == "Allow":
        return None
    return f"{session} is not authorized to perform: {action} on resource: {resource_arn}"


def context_of(principal: str, kind: str, action: str, resource_arn: str) -> Any:
    """Return a call in the form in which MiniStack's policy evaluator takes it.

    Args:
        principal: ARN of the caller, or the name of an AWS service.
        kind: MiniStack's type of principal, such as `AssumedRole`.
        action: IAM action.
        resource_arn: ARN of the resource.
    """
    return iam_evaluator.EvalContext(
        principal_arn=principal,
        principal_type=kind,
        principal_account=get_account_id(),
        action=action,
        resource_arn=resource_arn,
        region=get_region(),
        secure_transport=True,
    )


def _with_resources(trust: str | Mapping[str, Any]) -> dict[str, Any]:
    """Add a resource to each statement of a trust policy.

    A trust policy names no resource, because its resource is the role. The evaluator needs one.
    """
    document = json.loads(trust) if isinstance(trust, str) else trust
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
    {"result": "FAIL"} to /_mendq/access-analyzer to set `result`. While it is None, as at first,
    both checks fail with NotEmulated (status 400).
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoPublicAccess.html
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoNewAccess.html
    """

    def __init__(self) -> None:
        self.result: str | None = None

    def install(self) -> None:
        """Add the two checks to MiniStack. Call this once per process."""
        serve(ANALYZER, "accessanalyzer", self._handle)

    def page(self, body: Any) -> dict[str, Any]:
        """Set the answer of both checks; with null they are refused. Return the answer.

        If `body` is None, nothing changes. Raises SwitchRefused for any other value.
        """
        if body is not None:
            if body not in [{"result": result} for result in RESULTS]:
                raise SwitchRefused('send {"result": "PASS"}, "FAIL" or null')
            self.result = body["result"]
        return {"result": self.result}

    async def _handle(self, _method: str, path: str, *_: Any) -> tuple[int, dict[str, str], bytes]:
        if path.rstrip("/") not in CHECKS or self.result is None:
            status = HTTPStatus.BAD_REQUEST
            answer: dict[str, Any] = {
                "__type": "NotEmulated",
                "message": f"{path} is not emulated here; {REMEDY}",
            }
        else:
            status = HTTPStatus.OK
            answer = {
                "result": self.result,
                "message": f"{path} answers as it was told to.",
                "reasons": [],
            }
            if self.result == "FAIL":
                answer["reasons"] = [{"description": "It was told to fail."}]
        return status, {"Content-Type": "application/json"}, json.dumps(answer).encode()
