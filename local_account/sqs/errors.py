"""SQS's errors: AWS's error names and messages, access denials, and simulated errors.

Simulated errors: some errors cannot happen on the local account. PUT /_mendq/sqs-errors with
`{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}` switches them on. `queues` has
queue names, or prefixes that end in `*`. A queue gives the error until the attribute that causes it
is corrected. A failed call is recorded by CloudTrail like any other. The messages were not recorded
from the real SQS; KmsThrottled's message is the one that KMS documents.

Denials: SQS writes the action in lower case, names the queue, and then says which kind of policy
refused. The forms are documented; SQS's spelling of them was seen in public reports.
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

from local_account.account_page import parse_request
from local_account.hooks import around
from local_account.permissions import context_of

Queue = dict[str, Any]
# A queue that reuses its data key for less time calls KMS so often that KMS throttles it.
ENOUGH_SECONDS = 300
# Names of Mendq's own queues begin with this. Simulated errors never affect them.
OWN_PREFIX = "mendq-"
# MiniStack's error name -> AWS's error name in the JSON protocol.
_JSON_NAMES = {
    "AccessDenied": "AccessDeniedException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
}
# End of MiniStack's message -> end of AWS's message, as it was recorded.
_MESSAGE_ENDS = {
    " does not exist for this wsdl version.": " does not exist.",
    " explicitly.": " explicitly",
}


def install_words() -> None:
    """Make MiniStack use AWS's error names and messages, and decide denials as AWS does.

    Apply once per process.
    """
    _install_denials()
    sqs._QUERY_COMPAT_CODES.update({name: code for code, name in _JSON_NAMES.items()})

    @around(sqs, "_json_err_resp")
    def respond_with_error(inner: Any, code: str, message: str, status: int = 400) -> Any:
        for end, recorded_end in _MESSAGE_ENDS.items():
            if message.endswith(end):
                message = message.removesuffix(end) + recorded_end
        return inner(_JSON_NAMES.get(code, code), message, status)


def _install_denials() -> None:
    @around(iam_actions, "extract_iam_action")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        """Return the single call's action for a batch: IAM has no actions for batches."""
        action = inner(service, *rest)
        return action.removesuffix("Batch") if action and service == "sqs" else action

    @around(iam_evaluator, "combine_resource_policy")
    def combine(inner: Any, identity: Any, ctx: Any, *rest: Any, **keywords: Any) -> Any:
        """Name the queue's policy as the reason if the caller's own policy allowed the call."""
        result = inner(identity, ctx, *rest, **keywords)
        is_queue = ctx.resource_arn.startswith("arn:aws:sqs:")
        if is_queue and identity.decision == "Allow" and result.decision != "Allow":
            result.resource_policy_arn = ctx.resource_arn
        return result

    @around(iam_actions, "access_denied_response")
    def respond(
        inner: Any, service: str, action: str, caller_arn: str, *rest: Any, **keywords: Any
    ) -> Any:
        """Use SQS's message for a denial that has no message of its own."""
        if service == "sqs" and not keywords.get("error_code") and not keywords.get("message"):
            keywords["message"] = denial(
                caller_arn,
                action,
                keywords.get("resource_arn", "*"),
                by_queue=bool(keywords.get("resource_policy_arn")),
                explicit=bool(keywords.get("explicit_deny")),
            )
        return inner(service, action, caller_arn, *rest, **keywords)

    @around(sqs, "_enforce_queue_policy")
    def enforce(inner: Any, queue: Queue, action: str) -> None:
        """Use SQS's message if MiniStack's own check of the queue's policy refuses a call.

        That check refuses calls of root users and of other accounts.
        """
        try:
            inner(queue, action)
        except sqs._Err as error:
            caller_arn = iam_evaluator.caller_arn()
            queue_arn = queue["attributes"]["QueueArn"]
            context = context_of(caller_arn, "Root", action, queue_arn)
            policy = queue["attributes"].get("Policy")
            result = iam_evaluator.evaluate_resource_policy(policy, context)
            message = denial(
                caller_arn, action, queue_arn, by_queue=True, explicit=result.decision == "Deny"
            )
            raise sqs._Err("AccessDenied", message, 403) from error


def denial(
    caller_arn: str, action: str, resource_arn: str, *, by_queue: bool, explicit: bool
) -> str:
    """Return SQS's message for a denied call.

    Args:
        caller_arn: ARN of the principal that called.
        action: IAM action, such as `sqs:SendMessage`.
        resource_arn: ARN of the queue.
        by_queue: True if the queue's policy decided, false if the caller's own policy did.
        explicit: True if a Deny statement matched, false if no statement allowed the call.
    """
    action = action.lower()
    policy = "resource-based" if by_queue else "identity-based"
    reason = f"because no {policy} policy allows the {action} action"
    if explicit:
        reason = f"with an explicit deny in {'a' if by_queue else 'an'} {policy} policy"
    who = f"User: {caller_arn} is not authorized to perform: {action}"
    return f"{who} on resource: {resource_arn} {reason}"


def _calls_kms_often(queue: Queue) -> bool:
    """Return True if the queue is encrypted with a KMS key and reuses a data key only briefly."""
    attributes = queue["attributes"]
    reuse_seconds = int(attributes.get("KmsDataKeyReusePeriodSeconds", "300"))
    return bool(attributes.get("KmsMasterKeyId")) and reuse_seconds < ENOUGH_SECONDS


def _lacks_high_throughput(queue: Queue) -> bool:
    """Return True for a FIFO queue that is not in high-throughput mode."""
    names = ("FifoThroughputLimit", "DeduplicationScope")
    pair = tuple(queue["attributes"].get(name) for name in names)
    return queue["is_fifo"] and pair != ("perMessageGroupId", "messageGroup")


class SimulatedError(NamedTuple):
    """An error that can be switched on.

    Attributes:
        query_code: Its code in the query protocol.
        is_caused_by: Returns True if the queue's configuration causes the error.
        calls: The actions that fail with it.
        text: Its message.
    """

    query_code: str
    is_caused_by: Callable[[Queue], bool]
    calls: tuple[str, ...]
    text: str


SENDING = ("SendMessage", "SendMessageBatch")
RECEIVING = ("ReceiveMessage",)
DELETING = ("DeleteMessage", "DeleteMessageBatch")
CALLS = (*SENDING, *RECEIVING, *DELETING)
_OFTEN = "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls."
_KMS_CODE = "KMS.ThrottlingException"
# Name in the JSON protocol -> the error. SQS answers both with status 400.
SIMULATED_ERRORS: Mapping[str, SimulatedError] = {
    "KmsThrottled": SimulatedError(
        query_code=_KMS_CODE,
        is_caused_by=_calls_kms_often,
        calls=(*SENDING, *RECEIVING),
        text=_OFTEN,
    ),
    "ThrottlingException": SimulatedError(
        query_code="ThrottlingException",
        is_caused_by=_lacks_high_throughput,
        calls=CALLS,
        text="Rate exceeded",
    ),
}
Pattern = Annotated[str, Meta(min_length=1, pattern=rf"^(?!(?i:{OWN_PREFIX}))[^*]*\*?$")]


class SwitchedError(Struct, frozen=True, forbid_unknown_fields=True):
    """An error that is switched on, and the names or prefixes of the queues that give it."""

    error: Annotated[str, Meta(pattern=f"^({'|'.join(SIMULATED_ERRORS)})$")]
    queues: Annotated[list[Pattern], Meta(min_length=1)]

    def fails(self, action: str, queue: Queue) -> bool:
        """Return True if the call must fail with this error.

        The queue must be chosen and must not be Mendq's own, the error must happen at this action,
        and the queue's configuration must cause it.
        """
        name = queue["attributes"]["QueueArn"].rpartition(":")[2]
        if name.lower().startswith(OWN_PREFIX):
            return False
        if not any(fnmatchcase(name, pattern) for pattern in self.queues):
            return False
        simulated = SIMULATED_ERRORS[self.error]
        return action in simulated.calls and simulated.is_caused_by(queue)


class SwitchedErrors(Struct, frozen=True, forbid_unknown_fields=True):
    """All errors that are switched on."""

    errors: list[SwitchedError]


class ErrorSwitch:
    """Holds the errors that are switched on, at first none. Every call reads it."""

    def __init__(self) -> None:
        self._on = SwitchedErrors([])

    def page(self, request: Any) -> Mapping[str, Any]:
        """Replace all switched errors by the requested ones, and return what is switched on.

        If `request` is None, nothing changes. Raises SwitchRefused, and changes nothing, if the
        request is not understood.
        """
        if request is not None:
            example = '{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}'
            self._on = parse_request(request, SwitchedErrors, f"{example}, no queue of Mendq's")
        return dict(msgspec.to_builtins(self._on))

    def install(self) -> None:
        """Make MiniStack's SQS give the errors that are switched on.

        Call this once per process, after all other hooks are installed.
        """
        codes = {name: simulated.query_code for name, simulated in SIMULATED_ERRORS.items()}
        sqs._QUERY_COMPAT_CODES.update(codes)
        for action in CALLS:
            self._install(action)

    def _install(self, action: str) -> None:
        @around(sqs._HANDLERS, action)
        def handle(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            """Raise the switched error, unless the queue is missing or its policy denies the call.

            `_get_q` raises those two errors first, as SQS does.
            """
            if self._on.errors:
                permission = f"sqs:{action.removesuffix('Batch')}"
                queue = sqs._get_q(data.get("QueueUrl") or url, permission)
                for switched in self._on.errors:
                    if switched.fails(action, queue):
                        raise sqs._Err(switched.error, SIMULATED_ERRORS[switched.error].text)
            return inner(data, url)
