"""Who may call the account, and permissions of services and roles in calls made inside MiniStack.

Every call is signed, with AUTH=false as well, which allows everything to whoever can sign. IAM
Access Analyzer answers as it is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    joined,
    replayed,
    respond,
    whole_body,
)
from local_account.hooks import around, serve
from local_account.where import ACCOUNT, ORGANIZATION, PROFILES, credentials

ANALYZER = "access-analyzer"
CHECKS = ("/policy/check-no-public-access", "/policy/check-no-new-access")
RESULTS = ("PASS", "FAIL", None)
HOW = "/_mendq/access-analyzer has both checks answer as it is told"
# Of a body: DynamoDB takes 16 MB in one call, SQS 1 MiB; files of S3 and zips of Lambda are larger.
MOST_BYTES, MOST_FILE_BYTES = 32 * 1024**2, 512 * 1024**2

# The session of a role, as a call's principal; policies name the role.
_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*")
_CALLERS = "${aws:PrincipalAccount}"
Failure = tuple[str, str]  # code and message
TOO_LONG: Failure = ("RequestEntityTooLarge", "No call of this service is as long here")


def issue_root_credentials(url: str) -> None:
    """Have MiniStack know the root users whose keys the account's credentials file holds."""
    for profile, account in PROFILES.items():
        access_key, secret = credentials(url, profile).values()
        root = {"Arn": f"arn:aws:iam::{account}:root", "UserId": account}
        sts.register_session(access_key, {**root, "SecretAccessKey": secret})


def install_organization() -> None:
    """Have buckets let in other accounts' roles as their policies say; once per process.

    MiniStack asks such a policy about the caller's root user, gives each account an organization of
    its own, takes a policy's variables for text, and copies within one account alone.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """

    iam_evaluator._principal_org_id = lambda _: ORGANIZATION

    @around(iam_evaluator, "evaluate_resource_policy")
    def evaluate(inner: Any, document: Any, context: Any, *rest: Any, **named: Any) -> Any:
        caller = iam_evaluator.caller_arn()
        if context.principal_arn.endswith(":root") and context.principal_account in caller:
            context = replace(context, principal_arn=caller)
        return inner(document, context, *rest, **named)

    @around(iam_evaluator, "_resolve_condition_key")
    def value(inner: Any, key: str, context: Any) -> Any:
        found = inner(key, context)
        is_role = key.lower() == "aws:principalarn"
        return _SESSION.sub(r"arn:\1:iam::\2:role/\3", found) if is_role else found

    @around(iam_evaluator, "_first_match")
    def match(inner: Any, context: Any, statements: Any, effect: str) -> Any:
        account = context.principal_account
        named = [
            replace(each, resources=[it.replace(_CALLERS, account) for it in each.resources])
            for each in statements
        ]
        return inner(context, named, effect)

    @around(s3, "_copy_object")
    def copy(inner: Any, bucket: str, key: str, headers: dict[str, str]) -> Any:
        """That the caller may read it, and write here, has been asked."""
        source = headers["x-amz-copy-source"].lstrip("/").partition("/")[0]
        owner, here = s3._bucket_owner_account(source), s3._buckets._data
        if owner in (None, get_account_id()):
            return inner(bucket, key, headers)
        alias = get_account_id(), source
        here[alias] = here[owner, source]
        try:
            return inner(bucket, key, headers)
        finally:
            del here[alias]


def install_resource_arns() -> None:
    """Have IAM asked for a role with its path, and for a rule of the default bus without the bus.

    MiniStack leaves the path out, names the bus, and asks for no rule in calls on its targets.
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
    """The account that an access key belongs to; this one for a key that is nobody's."""
    of_session = _account_from_sts_session(access_key)
    return of_session or iam_evaluator.find_iam_access_key_account(access_key) or ACCOUNT


@dataclass(frozen=True)
class SignedCalls:
    """An ASGI application around another, which gets no call but those that the account may take.

    A browser says by Origin whose page it asks for, and by Host which name it looked up: nothing
    of that is taken, whatever else is in it. What is left has to be signed with a key that this
    account issued, or nothing of its body is read. MiniStack would let in without a signature who
    calls himself `test`, twelve digits or nothing at all.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
    """

    inner: Application
    host: str

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            headers = joined(scope["headers"])
            service = getattr(parse_header_signature(headers), "service", "")
            if "origin" in headers or headers.get("host") != self.host:
                failure: Failure | None = ("AccessDenied", f"Call {self.host}, from no web page")
            elif (failure := _failure_of(scope, headers, None)) is None:
                most = MOST_FILE_BYTES if service in ("s3", "lambda") else MOST_BYTES
                body = await whole_body(receive, most)
                failure = TOO_LONG if len(body) > most else _failure_of(scope, headers, body)
                receive = replayed(body, receive)
            if failure is not None:
                # In the protocol of the service that was called.
                why: Any = {"error_code": failure[0], "message": failure[1], "headers": headers}
                await respond(send, *access_denied_response(service, "", "", new_uuid(), **why))
                return
        await self.inner(scope, receive, send)


def _failure_of(scope: Message, headers: dict[str, str], body: bytes | None) -> Failure | None:
    """What is wrong where a call is not signed, now, with the secret of a key issued here.

    Before its body is read, all that does not turn on the body.
    """
    signature = parse_header_signature(headers)
    if isinstance(signature, tuple):
        return signature
    key = router.extract_access_key_id(headers)  # whom MiniStack takes it for
    if key != signature.access_key_id or iam_evaluator.is_root_access_key(key):
        return "UnrecognizedClientException", "This account did not issue that access key."
    known = resolve_credential(key, account_of(key), headers.get("x-amz-security-token"))
    if isinstance(known, CredentialResolutionError):
        return known.code, known.message
    failure: Failure | None = request_time_failure(signature)
    if failure is None and body is not None:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        path, secret = scope["raw_path"].decode("latin-1"), known.secret_access_key
        call = (signature, secret, scope["method"], path, query, headers, body)
        failure = header_signature_failure(*call)
    return failure


def refusal_to_assume(role_arn: str, service: str) -> str | None:
    """Tell why `service` (e.g. scheduler.amazonaws.com) cannot take on the role, or None."""
    role = iam._roles.get(role_arn.rpartition("/")[2])
    if role is None:
        return f"The role {role_arn} does not exist"
    if not ministack.app.AUTH:
        return None
    context = context_of(service, "Service", "sts:AssumeRole", role_arn)
    context.service_context = {"aws:sourceaccount": get_account_id()}
    trust = _with_resources(role["AssumeRolePolicyDocument"])
    decided = iam_evaluator.evaluate_resource_policy(trust, context, service=service)
    if decided.decision == "Allow":
        return None
    return f"The role {role_arn} does not let {service} assume it"


def refusal_to_act(role_arn: str, action: str, resource_arn: str) -> str | None:
    """Tell why the role may not do `action` on a resource, or None; resource policies aside."""
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
    """What MiniStack's evaluator is told of a call that a service makes."""
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
    """A trust policy names no resource, which is the role; the evaluator wants one."""
    document = json.loads(trust) if isinstance(trust, str) else trust
    statements = document["Statement"]
    listed = [statements] if isinstance(statements, dict) else statements
    return {**document, "Statement": [{"Resource": "*", **each} for each in listed]}


class AccessAnalyzer:
    """IAM Access Analyzer's checks of a policy: `result` is what both answer, None: refused.

    Nothing here reads a policy as it does: {"result": "PASS"} or {"result": "FAIL"} at
    /_mendq/access-analyzer has both checks answer so.
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoPublicAccess.html
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoNewAccess.html
    """

    def __init__(self) -> None:
        self.result: str | None = None

    def install(self) -> None:
        """Hook MiniStack, once per process."""
        serve(ANALYZER, "accessanalyzer", self._handle)

    def page(self, asked: Any) -> dict[str, Any]:
        """Have both checks answer so from now on, null: refuse them; raises SwitchRefused."""
        if asked is not None:
            if asked not in [{"result": each} for each in RESULTS]:
                raise SwitchRefused('send {"result": "PASS"}, "FAIL" or null')
            self.result = asked["result"]
        return {"result": self.result}

    async def _handle(self, _method: str, path: str, *_: Any) -> tuple[int, dict[str, str], bytes]:
        if path.rstrip("/") not in CHECKS or self.result is None:
            status, message = 400, f"{path} is not emulated here; {HOW}"
            said: dict[str, Any] = {"__type": "NotEmulated", "message": message}
        else:
            status, message = 200, f"{path} answers as it was told to."
            reasons = [{"description": "It was told to fail."}] * (self.result == "FAIL")
            said = {"result": self.result, "message": message, "reasons": reasons}
        return status, {"Content-Type": "application/json"}, json.dumps(said).encode()
