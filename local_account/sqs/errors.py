"""SQS's errors: AWS's names and words for them, denied calls, and errors that are switched on.

PUT /_mendq/sqs-errors `{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}` switches on
what cannot arise here by itself: `queues` are names or prefixes ending in `*`. An error arises
until the attribute is right that it is about. A call that fails is recorded like any other.
No text was recorded from SQS; KmsThrottled's is the one that KMS documents.
Denials: SQS writes the action in lower case and names the queue; what stands behind them says which
kind of policy refused. The forms are documented, SQS's spelling of them is seen in public reports.
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, NamedTuple

import msgspec
from ministack.core import iam_actions, iam_evaluator
from ministack.services import sqs
from msgspec import Meta, Struct

from local_account.account_page import sent
from local_account.hooks import around
from local_account.permissions import context_of

Queue = dict[str, Any]
# A shorter reuse of the data key earns KMS's throttling.
ENOUGH_SECONDS = 300
# The stack's queues come with its name, the probe's with this one; what they do is nobody's test.
OWN_PREFIX = "mendq-"
# MiniStack's name of an error -> the name in the JSON protocol of AWS.
_JSON_NAMES = {
    "AccessDenied": "AccessDeniedException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
}
# How MiniStack's words end -> how those end that AWS was recorded to use.
_TAILS = {
    " does not exist for this wsdl version.": " does not exist.",
    " explicitly.": " explicitly",
}


def install_words() -> None:
    """Hook what names and words an error, and what decides a denial; once per process."""
    _install_denials()
    sqs._QUERY_COMPAT_CODES.update({name: code for code, name in _JSON_NAMES.items()})

    @around(sqs, "_json_err_resp")
    def in_json(inner: Any, code: str, message: str, status: int = 400) -> Any:
        for tail, recorded in _TAILS.items():
            if message.endswith(tail):
                message = message.removesuffix(tail) + recorded
        return inner(_JSON_NAMES.get(code, code), message, status)


def _install_denials() -> None:
    @around(iam_actions, "extract_iam_action")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        """Batches have no action of their own."""
        action = inner(service, *rest)
        return action.removesuffix("Batch") if action and service == "sqs" else action

    @around(iam_evaluator, "combine_resource_policy")
    def combine(inner: Any, identity: Any, ctx: Any, *rest: Any, **named: Any) -> Any:
        """Say that the queue's policy decided where the identity's allow and it is silent."""
        result = inner(identity, ctx, *rest, **named)
        is_queue = ctx.resource_arn.startswith("arn:aws:sqs:")
        if is_queue and identity.decision == "Allow" and result.decision != "Allow":
            result.resource_policy_arn = ctx.resource_arn
        return result

    @around(iam_actions, "access_denied_response")
    def respond(inner: Any, service: str, action: str, who: str, *rest: Any, **named: Any) -> Any:
        if service == "sqs" and not named.get("error_code") and not named.get("message"):
            by_queue, explicit = named.get("resource_policy_arn"), named.get("explicit_deny")
            arn = named.get("resource_arn", "*")
            named["message"] = denial(who, action, arn, bool(by_queue), bool(explicit))
        return inner(service, action, who, *rest, **named)

    @around(sqs, "_enforce_queue_policy")
    def enforce(inner: Any, queue: Queue, action: str) -> None:
        """Word what MiniStack's own look at the policy refuses: a root user, another account."""
        try:
            inner(queue, action)
        except sqs._Err as refused:
            attributes, caller = queue["attributes"], iam_evaluator.caller_arn()
            arn, policy = attributes["QueueArn"], attributes.get("Policy")
            context = context_of(caller, "Root", action, arn)
            decided = iam_evaluator.evaluate_resource_policy(policy, context)
            said = denial(caller, action, arn, True, decided.decision == "Deny")
            raise sqs._Err("AccessDenied", said, 403) from refused


def denial(caller_arn: str, action: str, resource_arn: str, by_queue: bool, explicit: bool) -> str:
    """The message; `by_queue` says that the queue's policy decided, not the caller's."""
    action = action.lower()
    policy = "resource-based" if by_queue else "identity-based"
    reason = f"because no {policy} policy allows the {action} action"
    if explicit:
        reason = f"with an explicit deny in {'a' if by_queue else 'an'} {policy} policy"
    who = f"User: {caller_arn} is not authorized to perform: {action}"
    return f"{who} on resource: {resource_arn} {reason}"


def _asks_key_often(queue: Queue) -> bool:
    attributes = queue["attributes"]
    reused_seconds = int(attributes.get("KmsDataKeyReusePeriodSeconds", "300"))
    return bool(attributes.get("KmsMasterKeyId")) and reused_seconds < ENOUGH_SECONDS


def _calls_often(queue: Queue) -> bool:
    """Any call of a FIFO queue without high throughput."""
    names = ("FifoThroughputLimit", "DeduplicationScope")
    pair = tuple(queue["attributes"].get(name) for name in names)
    return queue["is_fifo"] and pair != ("perMessageGroupId", "messageGroup")


class Kind(NamedTuple):
    """One error: its code in the query protocol, what earns it, at which calls, what it says."""

    query_code: str
    earned: Callable[[Queue], bool]
    calls: tuple[str, ...]
    text: str


SENDING, RECEIVING = ("SendMessage", "SendMessageBatch"), ("ReceiveMessage",)
DELETING = ("DeleteMessage", "DeleteMessageBatch")
CALLS = (*SENDING, *RECEIVING, *DELETING)
_OFTEN = "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls."
_KMS_CODE = "KMS.ThrottlingException"
# By the name in the JSON protocol; both are answered 400.
KINDS: Mapping[str, Kind] = {
    "KmsThrottled": Kind(_KMS_CODE, _asks_key_often, (*SENDING, *RECEIVING), _OFTEN),
    "ThrottlingException": Kind("ThrottlingException", _calls_often, CALLS, "Rate exceeded"),
}
Pattern = Annotated[str, Meta(min_length=1, pattern=rf"^(?!(?i:{OWN_PREFIX}))[^*]*\*?$")]


class SwitchedError(Struct, frozen=True, forbid_unknown_fields=True):
    """One error and the queues that give it."""

    error: Annotated[str, Meta(pattern=f"^({'|'.join(KINDS)})$")]
    queues: Annotated[list[Pattern], Meta(min_length=1)]

    def applies(self, action: str, queue: Queue) -> bool:
        """Tell whether a call fails: while the configuration of a chosen queue earns it."""
        name, kind = queue["attributes"]["QueueArn"].rpartition(":")[2], KINDS[self.error]
        is_theirs = not name.lower().startswith(OWN_PREFIX)
        chosen = is_theirs and any(fnmatchcase(name, each) for each in self.queues)
        return chosen and action in kind.calls and kind.earned(queue)


class SwitchedErrors(Struct, frozen=True, forbid_unknown_fields=True):
    """What is switched on at one time."""

    errors: list[SwitchedError]


class ErrorSwitch:
    """What is on now: nothing at first. Read by every call, replaced as a whole."""

    def __init__(self) -> None:
        self._on = SwitchedErrors([])

    def page(self, asked: Any) -> Mapping[str, Any]:
        """Have exactly the errors that were asked for; raises SwitchRefused and changes nothing."""
        if asked is not None:
            example = '{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}'
            self._on = sent(asked, SwitchedErrors, f"{example}, no queue of Mendq's")
        return dict(msgspec.to_builtins(self._on))

    def install(self) -> None:
        """Hook the calls that may fail, after everything else is hooked; once per process."""
        sqs._QUERY_COMPAT_CODES.update({name: kind.query_code for name, kind in KINDS.items()})
        for action in CALLS:
            self._install(action)

    def _install(self, action: str) -> None:
        @around(sqs._HANDLERS, action)
        def handle(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            """Fail first as the call itself does where there is no queue or its policy refuses."""
            if self._on.errors:
                permission = f"sqs:{action.removesuffix('Batch')}"
                queue = sqs._get_q(data.get("QueueUrl") or url, permission)
                for each in self._on.errors:
                    if each.applies(action, queue):
                        raise sqs._Err(each.error, KINDS[each.error].text)
            return inner(data, url)
