"""SQS's errors: AWS's error names and messages, access denials, and simulated errors.

Simulated errors: some errors cannot happen on the local account. PUT /_mendq/sqs-errors with
`{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}` switches them on. `queues` has
queue names, or prefixes that end in `*`. Calls about messages of such a queue fail with the error
as long as the queue's attributes cause it, and work when these are corrected; `SIMULATED_ERRORS`
has the calls and causes. CloudTrail records these failed calls like any other.
The error messages were not recorded from the real SQS; the message of KmsThrottled is the one that
KMS documents.

Denials: SQS's message has the action in lower case, the queue, and the kind of policy that refused
the call. AWS documents the form of these messages; SQS's spelling was seen in public reports.
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
from local_account.hooks import replace_functions
from local_account.permissions import make_call_context

Queue = dict[str, Any]
# A queue that reuses its data key for less time calls KMS so often that KMS throttles it.
MINIMUM_UNTHROTTLED_KEY_REUSE_SECONDS = 300
# Names of Mendq's own queues begin with this. Simulated errors never affect them.
OWN_QUEUE_PREFIX = "mendq-"
# MiniStack's error name -> AWS's error name in the JSON protocol.
_JSON_NAME_BY_ERROR = {
    "AccessDenied": "AccessDeniedException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
}
# End of MiniStack's message -> end of AWS's message, as it was recorded.
_RECORDED_ENDING_BY_MESSAGE_ENDING = {
    " does not exist for this wsdl version.": " does not exist.",
    " explicitly.": " explicitly",
}


def install_error_texts() -> None:
    """Make MiniStack use AWS's error names and messages, and decide denials as AWS does.

    Call this once per process.
    """
    _install_denials()
    sqs._QUERY_COMPAT_CODES.update(
        {json_name: error_name for error_name, json_name in _JSON_NAME_BY_ERROR.items()}
    )

    @replace_functions(sqs, "_json_err_resp")
    def respond_with_error(
        original_function: Any, error_name: str, message: str, status: int = 400
    ) -> Any:
        for message_end, recorded_message_end in _RECORDED_ENDING_BY_MESSAGE_ENDING.items():
            if message.endswith(message_end):
                message = message.removesuffix(message_end) + recorded_message_end
        return original_function(_JSON_NAME_BY_ERROR.get(error_name, error_name), message, status)


def _install_denials() -> None:
    """Make MiniStack decide denials of SQS calls, and write their messages, as AWS does."""

    @replace_functions(iam_actions, "extract_iam_action")
    def extract_action(original_function: Any, service: str, *other_arguments: Any) -> Any:
        """Return a call's IAM action. For a batch, return the single call's action."""
        action = original_function(service, *other_arguments)
        return action.removesuffix("Batch") if action and service == "sqs" else action

    @replace_functions(iam_evaluator, "combine_resource_policy")
    def combine_decisions(
        original_function: Any,
        identity_policy_result: Any,
        call_context: Any,
        *other_arguments: Any,
        **keyword_arguments: Any,
    ) -> Any:
        """Return the decision. If only the queue's policy denies the call, name that policy."""
        final_result = original_function(
            identity_policy_result, call_context, *other_arguments, **keyword_arguments
        )
        is_about_queue = call_context.resource_arn.startswith("arn:aws:sqs:")
        if (
            is_about_queue
            and identity_policy_result.decision == "Allow"
            and final_result.decision != "Allow"
        ):
            final_result.resource_policy_arn = call_context.resource_arn
        return final_result

    @replace_functions(iam_actions, "access_denied_response")
    def respond_to_denial(
        original_function: Any,
        service: str,
        action: str,
        caller_arn: str,
        *other_arguments: Any,
        **keyword_arguments: Any,
    ) -> Any:
        """Return the response to a denied call.

        For SQS, use SQS's message if the denial has neither a message nor an error code.
        """
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
                is_explicit_deny=bool(keyword_arguments.get("explicit_deny")),
            )
        return original_function(service, action, caller_arn, *other_arguments, **keyword_arguments)

    @replace_functions(sqs, "_enforce_queue_policy")
    def enforce_queue_policy(original_function: Any, queue: Queue, action: str) -> None:
        """Check the queue's policy as MiniStack does, but raise the error with SQS's message.

        This check applies to calls of root users and of other accounts.
        """
        try:
            original_function(queue, action)
        except sqs._Err as error:
            caller_arn = iam_evaluator.caller_arn()
            queue_arn = queue["attributes"]["QueueArn"]
            call_context = make_call_context(caller_arn, "Root", action, queue_arn)
            policy = queue["attributes"].get("Policy")
            policy_result = iam_evaluator.evaluate_resource_policy(policy, call_context)
            message = make_denial_message(
                caller_arn,
                action,
                queue_arn,
                is_queue_policy=True,
                is_explicit_deny=policy_result.decision == "Deny",
            )
            raise sqs._Err("AccessDenied", message, 403) from error


def make_denial_message(
    caller_arn: str,
    action: str,
    resource_arn: str,
    *,
    is_queue_policy: bool,
    is_explicit_deny: bool,
) -> str:
    """Return SQS's message for a denied call.

    Args:
        caller_arn: ARN of the principal that called.
        action: IAM action, such as `sqs:SendMessage`.
        resource_arn: ARN of the queue.
        is_queue_policy: True if the queue's policy refused the call, False if the caller's did.
        is_explicit_deny: True if a Deny statement matched, False if no statement allowed the call.
    """
    action = action.lower()
    policy_kind = "resource-based" if is_queue_policy else "identity-based"
    reason = f"because no {policy_kind} policy allows the {action} action"
    if is_explicit_deny:
        reason = f"with an explicit deny in {'a' if is_queue_policy else 'an'} {policy_kind} policy"
    denied_call_text = f"User: {caller_arn} is not authorized to perform: {action}"
    return f"{denied_call_text} on resource: {resource_arn} {reason}"


def _has_short_key_reuse(queue: Queue) -> bool:
    """Return True if a queue with a KMS key reuses a data key for less than 300 seconds."""
    attributes = queue["attributes"]
    key_reuse_seconds = int(attributes.get("KmsDataKeyReusePeriodSeconds", "300"))
    return (
        bool(attributes.get("KmsMasterKeyId"))
        and key_reuse_seconds < MINIMUM_UNTHROTTLED_KEY_REUSE_SECONDS
    )


def _lacks_high_throughput(queue: Queue) -> bool:
    """Return True for a FIFO queue that is not in high-throughput mode."""
    attribute_names = ("FifoThroughputLimit", "DeduplicationScope")
    attribute_values = tuple(queue["attributes"].get(name) for name in attribute_names)
    return queue["is_fifo"] and attribute_values != ("perMessageGroupId", "messageGroup")


class SimulatedError(NamedTuple):
    """An error that can be switched on.

    Attributes:
        query_code: Code of the error in the query protocol.
        is_caused_by: Returns True if the queue's configuration causes the error.
        failing_actions: Actions that fail with the error.
        message: Message of the error.
    """

    query_code: str
    is_caused_by: Callable[[Queue], bool]
    failing_actions: tuple[str, ...]
    message: str


SEND_ACTIONS = ("SendMessage", "SendMessageBatch")
RECEIVE_ACTIONS = ("ReceiveMessage",)
DELETE_ACTIONS = ("DeleteMessage", "DeleteMessageBatch")
MESSAGE_ACTIONS = (*SEND_ACTIONS, *RECEIVE_ACTIONS, *DELETE_ACTIONS)
_KMS_THROTTLED_MESSAGE = (
    "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls."
)
_KMS_THROTTLED_CODE = "KMS.ThrottlingException"
# Name in the JSON protocol -> the error. Both have status 400.
SIMULATED_ERRORS: Mapping[str, SimulatedError] = {
    "KmsThrottled": SimulatedError(
        query_code=_KMS_THROTTLED_CODE,
        is_caused_by=_has_short_key_reuse,
        failing_actions=(*SEND_ACTIONS, *RECEIVE_ACTIONS),
        message=_KMS_THROTTLED_MESSAGE,
    ),
    "ThrottlingException": SimulatedError(
        query_code="ThrottlingException",
        is_caused_by=_lacks_high_throughput,
        failing_actions=MESSAGE_ACTIONS,
        message="Rate exceeded",
    ),
}
QueueNamePattern = Annotated[
    str, Meta(min_length=1, pattern=rf"^(?!(?i:{OWN_QUEUE_PREFIX}))[^*]*\*?$")
]


class SwitchedError(Struct, frozen=True, forbid_unknown_fields=True):
    """A simulated error that is switched on, and the names or prefixes of its queues."""

    error: Annotated[str, Meta(pattern=f"^({'|'.join(SIMULATED_ERRORS)})$")]
    queues: Annotated[list[QueueNamePattern], Meta(min_length=1)]

    def must_fail(self, action: str, queue: Queue) -> bool:
        """Return True if the call must fail with this error.

        `queues` must name the queue, which must not be one of Mendq's own queues. The error must be
        one with which this action fails, and the queue's configuration must cause it.
        """
        queue_name = queue["attributes"]["QueueArn"].rpartition(":")[2]
        if queue_name.lower().startswith(OWN_QUEUE_PREFIX):
            return False
        if not any(
            fnmatchcase(queue_name, queue_name_pattern) for queue_name_pattern in self.queues
        ):
            return False
        simulated_error = SIMULATED_ERRORS[self.error]
        return action in simulated_error.failing_actions and simulated_error.is_caused_by(queue)


class SwitchedErrors(Struct, frozen=True, forbid_unknown_fields=True):
    """All simulated errors that are switched on. Also the request that sets them."""

    errors: list[SwitchedError]


class ErrorSwitch:
    """The simulated errors that are switched on. At first, none is switched on."""

    def __init__(self) -> None:
        self._switched_errors = SwitchedErrors([])

    def page(self, request: Any) -> Mapping[str, Any]:
        """Switch on the requested errors and no others, and return the errors that are switched on.

        If `request` is None, nothing changes. If the request is not valid, change nothing and raise
        SwitchRefused.
        """
        if request is not None:
            request_example = '{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}'
            self._switched_errors = parse_request(
                request, SwitchedErrors, f"{request_example}, no queue of Mendq's"
            )
        return dict(msgspec.to_builtins(self._switched_errors))

    def install(self) -> None:
        """Make calls to MiniStack's SQS fail with the errors that are switched on.

        Call this once per process, after all other hooks are installed.
        """
        query_code_by_error = {
            name: simulated_error.query_code for name, simulated_error in SIMULATED_ERRORS.items()
        }
        sqs._QUERY_COMPAT_CODES.update(query_code_by_error)
        for action in MESSAGE_ACTIONS:
            self._install_for_action(action)

    def _install_for_action(self, action: str) -> None:
        @replace_functions(sqs._HANDLERS, action)
        def raise_switched_error(
            original_function: Any, parameters: Mapping[str, Any], endpoint_path: str
        ) -> Any:
            """Raise an error that is switched on for this call, otherwise make the call.

            If the queue does not exist or its policy denies the call, that error is raised first,
            as SQS does.
            """
            if self._switched_errors.errors:
                iam_action = f"sqs:{action.removesuffix('Batch')}"
                queue = sqs._get_q(parameters.get("QueueUrl") or endpoint_path, iam_action)
                for switched_error in self._switched_errors.errors:
                    if switched_error.must_fail(action, queue):
                        raise sqs._Err(
                            switched_error.error, SIMULATED_ERRORS[switched_error.error].message
                        )
            return original_function(parameters, endpoint_path)
