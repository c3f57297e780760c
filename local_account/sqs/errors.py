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
from local_account.permissions import make_call_context

Queue = dict[str, Any]
# A queue that reuses its data key for less time calls KMS so often that KMS throttles it.
UNTHROTTLED_REUSE_SECONDS = 300
# Names of Mendq's own queues begin with this. Simulated errors never affect them.
OWN_QUEUE_PREFIX = "mendq-"
# MiniStack's error name -> AWS's error name in the JSON protocol.
_JSON_NAME_BY_ERROR = {
    "AccessDenied": "AccessDeniedException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
}
# End of MiniStack's message -> end of AWS's message, as it was recorded.
_RECORDED_END_BY_MESSAGE_END = {
    " does not exist for this wsdl version.": " does not exist.",
    " explicitly.": " explicitly",
}


def install_error_texts() -> None:
    """Make MiniStack use AWS's error names and messages, and decide denials as AWS does.

    Apply once per process.
    """
    _install_denials()
    sqs._QUERY_COMPAT_CODES.update(
        {json_name: error_name for error_name, json_name in _JSON_NAME_BY_ERROR.items()}
    )

    @around(sqs, "_json_err_resp")
    def respond_with_error(inner: Any, error_name: str, message: str, status: int = 400) -> Any:
        for message_end, recorded_end in _RECORDED_END_BY_MESSAGE_END.items():
            if message.endswith(message_end):
                message = message.removesuffix(message_end) + recorded_end
        return inner(_JSON_NAME_BY_ERROR.get(error_name, error_name), message, status)


def _install_denials() -> None:
    """Make MiniStack decide and word denials of SQS calls as AWS does."""

    @around(iam_actions, "extract_iam_action")
    def extract_action(inner: Any, service: str, *other_arguments: Any) -> Any:
        """Return the single call's action for a batch: IAM has no actions for batches."""
        action = inner(service, *other_arguments)
        return action.removesuffix("Batch") if action and service == "sqs" else action

    @around(iam_evaluator, "combine_resource_policy")
    def combine_decisions(
        inner: Any,
        identity_result: Any,
        call_context: Any,
        *other_arguments: Any,
        **keyword_arguments: Any,
    ) -> Any:
        """Name the queue's policy as the reason if the caller's own policy allowed the call."""
        final_result = inner(identity_result, call_context, *other_arguments, **keyword_arguments)
        is_about_queue = call_context.resource_arn.startswith("arn:aws:sqs:")
        if (
            is_about_queue
            and identity_result.decision == "Allow"
            and final_result.decision != "Allow"
        ):
            final_result.resource_policy_arn = call_context.resource_arn
        return final_result

    @around(iam_actions, "access_denied_response")
    def respond_to_denial(
        inner: Any,
        service: str,
        action: str,
        caller_arn: str,
        *other_arguments: Any,
        **keyword_arguments: Any,
    ) -> Any:
        """Use SQS's message for a denial that has no message of its own."""
        if (
            service == "sqs"
            and not keyword_arguments.get("error_code")
            and not keyword_arguments.get("message")
        ):
            keyword_arguments["message"] = make_denial_message(
                caller_arn,
                action,
                keyword_arguments.get("resource_arn", "*"),
                is_queue_policy=bool(keyword_arguments.get("resource_policy_arn")),
                is_explicit=bool(keyword_arguments.get("explicit_deny")),
            )
        return inner(service, action, caller_arn, *other_arguments, **keyword_arguments)

    @around(sqs, "_enforce_queue_policy")
    def enforce_queue_policy(inner: Any, queue: Queue, action: str) -> None:
        """Use SQS's message if MiniStack's own check of the queue's policy refuses a call.

        That check refuses calls of root users and of other accounts.
        """
        try:
            inner(queue, action)
        except sqs._Err as error:
            caller_arn = iam_evaluator.caller_arn()
            queue_arn = queue["attributes"]["QueueArn"]
            context = make_call_context(caller_arn, "Root", action, queue_arn)
            policy = queue["attributes"].get("Policy")
            final_result = iam_evaluator.evaluate_resource_policy(policy, context)
            message = make_denial_message(
                caller_arn,
                action,
                queue_arn,
                is_queue_policy=True,
                is_explicit=final_result.decision == "Deny",
            )
            raise sqs._Err("AccessDenied", message, 403) from error


def make_denial_message(
    caller_arn: str, action: str, resource_arn: str, *, is_queue_policy: bool, is_explicit: bool
) -> str:
    """Return SQS's message for a denied call.

    Args:
        caller_arn: ARN of the principal that called.
        action: IAM action, such as `sqs:SendMessage`.
        resource_arn: ARN of the queue.
        is_queue_policy: True if the queue's policy decided, false if the caller's own policy did.
        is_explicit: True if a Deny statement matched, false if no statement allowed the call.
    """
    action = action.lower()
    policy_kind = "resource-based" if is_queue_policy else "identity-based"
    reason = f"because no {policy_kind} policy allows the {action} action"
    if is_explicit:
        reason = f"with an explicit deny in {'a' if is_queue_policy else 'an'} {policy_kind} policy"
    denied_call = f"User: {caller_arn} is not authorized to perform: {action}"
    return f"{denied_call} on resource: {resource_arn} {reason}"


def _has_short_key_reuse(queue: Queue) -> bool:
    """Return True if the queue is encrypted with a KMS key and reuses a data key only briefly."""
    attributes = queue["attributes"]
    reuse_seconds = int(attributes.get("KmsDataKeyReusePeriodSeconds", "300"))
    return bool(attributes.get("KmsMasterKeyId")) and reuse_seconds < UNTHROTTLED_REUSE_SECONDS


def _lacks_high_throughput(queue: Queue) -> bool:
    """Return True for a FIFO queue that is not in high-throughput mode."""
    attribute_names = ("FifoThroughputLimit", "DeduplicationScope")
    values = tuple(queue["attributes"].get(name) for name in attribute_names)
    return queue["is_fifo"] and values != ("perMessageGroupId", "messageGroup")


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


SEND_ACTIONS = ("SendMessage", "SendMessageBatch")
RECEIVE_ACTIONS = ("ReceiveMessage",)
DELETE_ACTIONS = ("DeleteMessage", "DeleteMessageBatch")
MESSAGE_ACTIONS = (*SEND_ACTIONS, *RECEIVE_ACTIONS, *DELETE_ACTIONS)
_KMS_THROTTLED_MESSAGE = (
    "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls."
)
_KMS_THROTTLED_CODE = "KMS.ThrottlingException"
# Name in the JSON protocol -> the error. SQS answers both with status 400.
SIMULATED_ERRORS: Mapping[str, SimulatedError] = {
    "KmsThrottled": SimulatedError(
        query_code=_KMS_THROTTLED_CODE,
        is_caused_by=_has_short_key_reuse,
        calls=(*SEND_ACTIONS, *RECEIVE_ACTIONS),
        text=_KMS_THROTTLED_MESSAGE,
    ),
    "ThrottlingException": SimulatedError(
        query_code="ThrottlingException",
        is_caused_by=_lacks_high_throughput,
        calls=MESSAGE_ACTIONS,
        text="Rate exceeded",
    ),
}
QueueNamePattern = Annotated[
    str, Meta(min_length=1, pattern=rf"^(?!(?i:{OWN_QUEUE_PREFIX}))[^*]*\*?$")
]


class SwitchedError(Struct, frozen=True, forbid_unknown_fields=True):
    """An error that is switched on, and the names or prefixes of the queues that give it."""

    error: Annotated[str, Meta(pattern=f"^({'|'.join(SIMULATED_ERRORS)})$")]
    queues: Annotated[list[QueueNamePattern], Meta(min_length=1)]

    def fails(self, action: str, queue: Queue) -> bool:
        """Return True if the call must fail with this error.

        The queue must be chosen and must not be Mendq's own, the error must happen at this action,
        and the queue's configuration must cause it.
        """
        queue_name = queue["attributes"]["QueueArn"].rpartition(":")[2]
        if queue_name.lower().startswith(OWN_QUEUE_PREFIX):
            return False
        if not any(fnmatchcase(queue_name, pattern) for pattern in self.queues):
            return False
        simulated = SIMULATED_ERRORS[self.error]
        return action in simulated.calls and simulated.is_caused_by(queue)


class SwitchedErrors(Struct, frozen=True, forbid_unknown_fields=True):
    """All errors that are switched on."""

    errors: list[SwitchedError]


class ErrorSwitch:
    """Holds the errors that are switched on, at first none. Every call reads it."""

    def __init__(self) -> None:
        self._switched_errors = SwitchedErrors([])

    def page(self, request: Any) -> Mapping[str, Any]:
        """Replace all switched errors by the requested ones, and return what is switched on.

        If `request` is None, nothing changes. Raises SwitchRefused, and changes nothing, if the
        request is not understood.
        """
        if request is not None:
            example = '{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}'
            self._switched_errors = parse_request(
                request, SwitchedErrors, f"{example}, no queue of Mendq's"
            )
        return dict(msgspec.to_builtins(self._switched_errors))

    def install(self) -> None:
        """Make MiniStack's SQS give the errors that are switched on.

        Call this once per process, after all other hooks are installed.
        """
        query_code_by_error = {
            name: simulated.query_code for name, simulated in SIMULATED_ERRORS.items()
        }
        sqs._QUERY_COMPAT_CODES.update(query_code_by_error)
        for action in MESSAGE_ACTIONS:
            self._install_for_action(action)

    def _install_for_action(self, action: str) -> None:
        @around(sqs._HANDLERS, action)
        def raise_switched_error(inner: Any, data: Mapping[str, Any], endpoint_path: str) -> Any:
            """Raise the switched error, unless the queue is missing or its policy denies the call.

            `_get_q` raises those two errors first, as SQS does.
            """
            if self._switched_errors.errors:
                permission = f"sqs:{action.removesuffix('Batch')}"
                queue = sqs._get_q(data.get("QueueUrl") or endpoint_path, permission)
                for switched_error in self._switched_errors.errors:
                    if switched_error.fails(action, queue):
                        raise sqs._Err(
                            switched_error.error, SIMULATED_ERRORS[switched_error.error].text
                        )
            return inner(data, endpoint_path)
