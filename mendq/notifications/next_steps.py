"""The next step for a person to take in a case: a sentence, a command and a runbook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial

from mendq.model.case import REPEAT_NOTIFICATION_AFTER, Case
from mendq.model.plan import Refusal
from mendq.model.queue import parse_queue_arn
from mendq.model.state import STATES_UNDER_VERIFICATION, State
from mendq.model.tags import MAX_PROCESSING
from mendq.notifications.commands import (
    dlq_messages_command,
    get_attributes_command,
    list_consumers_command,
    list_quotas_command,
    mendq_case_command,
    mendq_queue_command,
    redrive_preview_command,
    tag_queue_command,
)
from mendq.notifications.text import command_or_note, to_plain_text

# A text is the `mendq` command for the case, such as "show". A function returns the command for the
# queue with this ARN. An empty text: no command.
CommandSource = str | Callable[[str], str]
_SHOW_CASE_COMMAND = "show"
_APPROVE_CASE_COMMAND = "approve"
_SUPPORT_BUNDLE_COMMAND = "support-bundle"
_SHOW_QUEUE_COMMAND = get_attributes_command
_LIST_CONSUMERS_COMMAND = list_consumers_command
_PREVIEW_REDRIVE_COMMAND = redrive_preview_command
_SHOW_DLQ_MESSAGES_COMMAND = dlq_messages_command
_LIST_SQS_QUOTAS_COMMAND = partial(list_quotas_command, "sqs")
_LIST_KMS_QUOTAS_COMMAND = partial(list_quotas_command, "kms")
_SHOW_HISTORY_COMMAND = partial(mendq_queue_command, "history {queue}")
_SHOW_PIN_COMMAND = partial(mendq_queue_command, "policy show {queue}")
_END_FREEZE_COMMAND = partial(mendq_queue_command, "thaw")
_LIST_OPEN_CASES_COMMAND = partial(mendq_queue_command, "cases --open")
_TAG_LONGEST_WORK_COMMAND = partial(tag_queue_command, f"{MAX_PROCESSING.key}=SECONDS")
_TAG_PROPOSE_MODE_COMMAND = partial(tag_queue_command, "mendq=propose")


class QueueTrait(StrEnum):
    """A fact about a queue that the sentence of a next step takes for granted."""

    LAMBDA_MAPPING = "a Lambda function reads it, or did until its mapping was disabled"
    FAILING_FUNCTION = "a Lambda function reads it, and fails in at least half of its runs"
    FIFO = "it is a FIFO queue"
    HAS_DLQ = "it has a DLQ"
    NO_DLQ = "it has no DLQ"
    HAS_KEY = "it has a KMS key"
    NO_KEY = "it has no KMS key"
    NO_NAMED_TIME = "no tag names the longest processing time"
    UNREADABLE_TAG = "a tag that names a time cannot be read"
    IS_DLQ = "it is a DLQ"


@dataclass(frozen=True)
class OperatorStep:
    """A next step for a person.

    Attributes:
        sentence: What to do; empty if nothing is to be done.
        command: Where its command comes from. It is used if the refusal itself names none.
        needs: The facts that must be true, or the sentence would be untrue. The symptom or the
            refusal's code must guarantee them (`GUARANTEED_TRAITS_BY_SYMPTOM`,
            `GUARANTEED_TRAITS_BY_CODE`). There is no default, so that nobody forgets them.
    """

    sentence: str
    command: CommandSource
    needs: frozenset[QueueTrait]


# The needs of a sentence that is true of every queue.
_ANY_QUEUE: frozenset[QueueTrait] = frozenset()


# What is true of every queue with the symptom. Tests compare it with the catalogue's examples.
GUARANTEED_TRAITS_BY_SYMPTOM: Mapping[str, frozenset[QueueTrait]] = {
    "consumer_throttled": frozenset({QueueTrait.LAMBDA_MAPPING}),
    "dlq_messages_arriving": frozenset({QueueTrait.IS_DLQ}),
    "dlq_source_not_allowed": frozenset({QueueTrait.IS_DLQ}),
    "dlq_messages_waiting": frozenset({QueueTrait.IS_DLQ}),
    "fifo_group_blocked": frozenset({QueueTrait.FIFO}),
    "fifo_throttled": frozenset({QueueTrait.FIFO}),
    "function_errors": frozenset({QueueTrait.LAMBDA_MAPPING}),
    "function_times_out": frozenset({QueueTrait.LAMBDA_MAPPING}),
    "redrive_loop": frozenset({QueueTrait.HAS_DLQ}),
}
# What is true of every queue for which a symptom's plan refuses with the code.
GUARANTEED_TRAITS_BY_CODE: Mapping[tuple[str, str], frozenset[QueueTrait]] = {
    ("visibility_timeout_too_short", "consumer_failing"): frozenset({QueueTrait.FAILING_FUNCTION}),
    ("consumer_stopped", "consumer_stopped"): frozenset({QueueTrait.LAMBDA_MAPPING}),
    ("fifo_group_blocked", "waits_for_dlq"): frozenset({QueueTrait.HAS_DLQ}),
}
# What is true of every queue with the code, whatever the symptom.
GUARANTEED_TRAITS_BY_CODE_ALONE: Mapping[str, frozenset[QueueTrait]] = {
    "aws_managed_key": frozenset({QueueTrait.HAS_KEY}),
    "guess_too_far": frozenset({QueueTrait.NO_NAMED_TIME}),
    "key_not_granted": frozenset({QueueTrait.HAS_KEY}),
    "key_unusable": frozenset({QueueTrait.HAS_KEY}),
    "names_a_quarantine": frozenset({QueueTrait.HAS_DLQ}),
    "no_safe_limit": frozenset({QueueTrait.NO_DLQ}),
    "not_encrypted_with_kms": frozenset({QueueTrait.NO_KEY}),
    "race_without_named_need": frozenset({QueueTrait.NO_NAMED_TIME}),
    "reuse_at_maximum": frozenset({QueueTrait.HAS_KEY}),
    "tag_unreadable": frozenset({QueueTrait.UNREADABLE_TAG}),
}

_WAIT_SENTENCE = "No action needed: Mendq checks again automatically."

# The sentence and the command for each code of a refusal, an escalation or an override. The command
# is used if the refusal itself names none.
NEXT_STEP_BY_REFUSAL_CODE: Mapping[str, OperatorStep] = {
    # About any case.
    "another_owner": OperatorStep(
        "Wait for the Lambda that owns the next step, or approve the case again.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "another_queue": OperatorStep(
        "Look at the new queue of that name; the old proposal is over.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "aws_refused": OperatorStep(
        "Find which policy keeps Mendq's role from writing.", _SHOW_CASE_COMMAND, needs=_ANY_QUEUE
    ),
    "frozen": OperatorStep(
        "End the freeze when changes are safe, or wait for the change calendar.",
        _END_FREEZE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "healthy": OperatorStep(
        "Do nothing: the queue has what it needs.", _SHOW_CASE_COMMAND, needs=_ANY_QUEUE
    ),
    "keeps_changing": OperatorStep(
        "Find who changes the queue and stop that.", _SHOW_HISTORY_COMMAND, needs=_ANY_QUEUE
    ),
    "mass_symptom": OperatorStep(
        "Look for what these queues have in common.", _LIST_OPEN_CASES_COMMAND, needs=_ANY_QUEUE
    ),
    "not_any_more": OperatorStep(
        "Check the queue yourself: Mendq may no longer change it.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "not_by_itself": OperatorStep(
        "Wait for the new proposal and approve that.", _LIST_OPEN_CASES_COMMAND, needs=_ANY_QUEUE
    ),
    "out_of_bounds": OperatorStep(
        "Report it: this is a defect of Mendq's.", _SUPPORT_BUNDLE_COMMAND, needs=_ANY_QUEUE
    ),
    "own_change": OperatorStep(
        "Check if Mendq's own change is the cause; if so, take it back.",
        "rollback",
        needs=_ANY_QUEUE,
    ),
    "overridden": OperatorStep(
        "Decide which value is right and write it into the queue's template.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "plan_changed": OperatorStep(
        "Wait for the new proposal: the queue has changed since.",
        _LIST_OPEN_CASES_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "queue_deleted": OperatorStep(
        "Do nothing: the queue is gone, and the proposal with it.", "", needs=_ANY_QUEUE
    ),
    "shared_default_stopped": OperatorStep(
        "See which queue's fix failed: the same change was approved for all.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "too_often": OperatorStep(
        "Decide what the setting should be: see what was tried.",
        _SHOW_HISTORY_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "too_soon": OperatorStep(
        "Wait: whether the last write helped is not known yet.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    # The visibility timeout.
    "batch_too_long": OperatorStep(
        "Receive fewer messages at a time: no timeout covers a whole batch.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "guess_too_far": OperatorStep(
        "Tag the queue with the longest processing time of one message.",
        _TAG_LONGEST_WORK_COMMAND,
        needs=frozenset({QueueTrait.NO_NAMED_TIME}),
    ),
    "need_already_met": OperatorStep(
        "Check the queue: Mendq no longer finds the fault.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "over_ceiling": OperatorStep(
        "Shorten the work, or raise the ceiling by its tag: 43200 at most.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "over_in_flight": OperatorStep(
        "Receive fewer messages at a time: too many would be in flight.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "over_retention": OperatorStep(
        "Shorten the work, or keep messages longer: 14 days at most.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "race_or_retries": OperatorStep(
        "See if consumers fail first. If not, receive fewer messages at a time.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "race_without_named_need": OperatorStep(
        "Tag the queue with the longest processing time of one message.",
        _TAG_LONGEST_WORK_COMMAND,
        needs=frozenset({QueueTrait.NO_NAMED_TIME}),
    ),
    "race_despite_named_need": OperatorStep(
        "Tag the right time of one message, or receive fewer at a time.",
        _TAG_LONGEST_WORK_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "readers_set_their_own": OperatorStep(
        "Let the consumer extend earlier or longer: it sets the timeout.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "timeout_not_in_force": OperatorStep(
        "Set the consumer's own visibility timeout: the queue's is not in force.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "software_moves_failures": OperatorStep(
        "Read why the consumer failed; its framework moved the messages.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "tag_unreadable": OperatorStep(
        "Correct the tag: whole seconds, 1 to 43200.",
        _TAG_LONGEST_WORK_COMMAND,
        needs=frozenset({QueueTrait.UNREADABLE_TAG}),
    ),
    # Consumers.
    "already_long_polling": OperatorStep(
        "Ask AWS for a higher quota, or use fewer receivers.",
        _LIST_SQS_QUOTAS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "backlog_grows": OperatorStep(
        "Run more consumers at once, or make them faster.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "consumer_crashes": OperatorStep(
        "Find out why consumers end before their work is done.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "heartbeat_ends_early": OperatorStep(
        "Find how the consumers set the visibility timeout (heartbeat, or VisibilityTimeout in "
        "ReceiveMessage), and raise it above the longest work.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "messages_expire": OperatorStep(
        "Start the consumers or make them faster: messages are lost now.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "consumer_failing": OperatorStep(
        "Find out why consumers do not finish messages.", _LIST_CONSUMERS_COMMAND, needs=_ANY_QUEUE
    ),
    "consumer_ended": OperatorStep(
        "Start the queue's consumer, unless it is off on purpose.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "consumer_stopped": OperatorStep(
        "Enable the event source mapping, unless it is off on purpose.",
        _LIST_CONSUMERS_COMMAND,
        needs=frozenset({QueueTrait.LAMBDA_MAPPING}),
    ),
    "consumer_throttled": OperatorStep(
        "Give the function more concurrency.",
        _LIST_CONSUMERS_COMMAND,
        needs=frozenset({QueueTrait.LAMBDA_MAPPING}),
    ),
    "function_errors": OperatorStep(
        "Find the function that fails, and read the errors in its log.",
        _LIST_CONSUMERS_COMMAND,
        needs=frozenset({QueueTrait.LAMBDA_MAPPING}),
    ),
    "function_times_out": OperatorStep(
        "Find the function that Lambda stops, and see what it waits for.",
        _LIST_CONSUMERS_COMMAND,
        needs=frozenset({QueueTrait.LAMBDA_MAPPING}),
    ),
    "in_flight_full": OperatorStep(
        "Find the consumer that receives and does not delete.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "quiet_groups_wait": OperatorStep(
        "Find the sender whose message group floods the queue.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "retention_at_its_longest": OperatorStep(
        "Start the consumers or make them faster: messages expire soon.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "senders_throttled": OperatorStep(
        "Ask AWS for a higher quota, or send in batches.",
        _LIST_SQS_QUOTAS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "waits_for_dlq": OperatorStep(
        "See which groups its DLQ has; the runbook frees this one.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.FIFO, QueueTrait.HAS_DLQ}),
    ),
    # Throughput.
    "high_throughput_already": OperatorStep(
        "Use more message groups, or ask for a higher quota.",
        _LIST_SQS_QUOTAS_COMMAND,
        needs=frozenset({QueueTrait.FIFO}),
    ),
    "high_throughput_unknown": OperatorStep(
        "See which throughput the queue is set to.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.FIFO}),
    ),
    # DLQs.
    "denied_to_all": OperatorStep(
        "Let the queue's redrive allow policy name its source queues.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "dlq_unfit": OperatorStep(
        "See why the DLQ does not fit, then choose another.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "no_safe_limit": OperatorStep(
        "Choose maxReceiveCount and attach a DLQ yourself; see the runbook.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.NO_DLQ}),
    ),
    "nothing_finished": OperatorStep(
        "Find out why consumers finish hardly any message.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "name_taken": OperatorStep(
        "Ask its owner if the queue of that name may be used or changed.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "names_a_quarantine": OperatorStep(
        "Set another DLQ in RedrivePolicy: a quarantine cannot be one.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.HAS_DLQ}),
    ),
    "receiver_unconfirmed": OperatorStep(
        "See why Mendq does not use the existing queue, then ask its owner.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "network_only_policy": OperatorStep(
        "Send the messages back from a network that the policy allows.",
        _PREVIEW_REDRIVE_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "cause_at_source": OperatorStep(
        "Fix the fault of the source that the scan names, then send the messages back.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "source_not_measured": OperatorStep(
        "Look at the messages that died: no scan has measured their source.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "no_known_cause": OperatorStep(
        "Look at the messages that died, then at their consumer.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "redrive_loop": OperatorStep(
        "Stop what sends the DLQ's messages back, then find out why they fail.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.HAS_DLQ}),
    ),
    "redrive_halted": OperatorStep(
        "Fix what halted it before more goes back.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "redrive_too_slow": OperatorStep(
        "Send the messages back yourself: Mendq would be too slow.",
        _PREVIEW_REDRIVE_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "redrive_unfit": OperatorStep(
        "See why they may not go back: look at DLQ and source.",
        _SHOW_DLQ_MESSAGES_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "sent_to": OperatorStep(
        "Choose the messages to send back: producers send here too.",
        _PREVIEW_REDRIVE_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "shared_dlq": OperatorStep(
        "Choose the source to send back to: several share this DLQ.",
        _PREVIEW_REDRIVE_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    "too_many_sources": OperatorStep(
        "Give some sources another DLQ: the policy can name only ten.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.IS_DLQ}),
    ),
    # Credentials and keys.
    "credentials_invalid": OperatorStep(
        "Give the callers new credentials; see if their clock is right.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "aws_managed_key": OperatorStep(
        "Use a customer managed key: AWS's key serves no other service.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.HAS_KEY}),
    ),
    "key_changed": OperatorStep(
        "Give receivers the old key until its messages are gone.",
        _SHOW_HISTORY_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "key_not_granted": OperatorStep(
        "Allow the callers to use the KMS key.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.HAS_KEY}),
    ),
    "key_unusable": OperatorStep(
        "Enable the key, or cancel its deletion.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.HAS_KEY}),
    ),
    "not_encrypted_with_kms": OperatorStep(
        "Do nothing: the queue has no KMS key.",
        _SHOW_QUEUE_COMMAND,
        needs=frozenset({QueueTrait.NO_KEY}),
    ),
    "reuse_at_maximum": OperatorStep(
        "Ask AWS for a higher KMS quota.",
        _LIST_KMS_QUOTAS_COMMAND,
        needs=frozenset({QueueTrait.HAS_KEY}),
    ),
    # Access.
    "access_check_failed": OperatorStep(
        "Check the pinned policy yourself, then set it by hand.",
        _SHOW_PIN_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "access_not_checked": OperatorStep(
        "Allow Mendq to call Access Analyzer, or set the policy by hand.",
        _SHOW_PIN_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "boundary_refuses": OperatorStep(
        "Let the caller's permissions boundary allow the call.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "identity_policy_denies": OperatorStep(
        "Remove the deny from the caller's own policy.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "identity_policy_lacks_grant": OperatorStep(
        "Grant the call in the caller's policy.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "organization_refuses": OperatorStep(
        "Ask your organization's administrators: its policies deny it.",
        _SHOW_QUEUE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "pin_not_good": OperatorStep(
        "Pin the correct policy: Mendq may not restore the pinned one.",
        _SHOW_PIN_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "policy_not_named": OperatorStep(
        "Find the policy that refuses: AWS does not name it.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "queue_rolled_back": OperatorStep(
        "Raise VisibilityTimeout in the queue's template, then deploy again.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "queue_gone": OperatorStep(
        "Find who deleted the queue; create it again or stop callers.",
        _SHOW_HISTORY_COMMAND,
        needs=_ANY_QUEUE,
    ),
    "queue_policy_denies": OperatorStep(
        "Remove the deny from the queue's policy.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "queue_policy_lacks_grant": OperatorStep(
        "Grant the call in the queue's policy.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "session_policy_refuses": OperatorStep(
        "Let the caller's session policy allow the call.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
    "vpc_endpoint_refuses": OperatorStep(
        "Let the VPC endpoint's policy allow the call.", _SHOW_QUEUE_COMMAND, needs=_ANY_QUEUE
    ),
}
# The sentence and the command for each state, if the code has none. A case that has ended needs no
# step.
NEXT_STEP_BY_STATE: Mapping[State, OperatorStep] = {
    State.OBSERVED: OperatorStep(
        "If Mendq should make this change, raise the queue's mode.",
        _TAG_PROPOSE_MODE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    State.REFUSED: OperatorStep("Look at the case.", _SHOW_CASE_COMMAND, needs=_ANY_QUEUE),
    State.PROPOSED: OperatorStep(
        "Read the change, then approve or decline it.", _APPROVE_CASE_COMMAND, needs=_ANY_QUEUE
    ),
    State.EXPIRED: OperatorStep(
        "Check the queue: Mendq proposes it again if the fault is back.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    State.INEFFECTIVE: OperatorStep(
        "See why the fix did not help: Mendq tries its next step.",
        _SHOW_CASE_COMMAND,
        needs=_ANY_QUEUE,
    ),
    State.OVERRIDDEN: NEXT_STEP_BY_REFUSAL_CODE["overridden"],
    State.ESCALATED: OperatorStep(
        "Find what is wrong: Mendq has no further step.", _SHOW_CASE_COMMAND, needs=_ANY_QUEUE
    ),
    **dict.fromkeys(
        (State.APPROVED, *STATES_UNDER_VERIFICATION, State.VERIFIED, State.WATCHING),
        OperatorStep(_WAIT_SENTENCE, _SHOW_CASE_COMMAND, needs=_ANY_QUEUE),
    ),
    **dict.fromkeys(
        (State.DECLINED, State.CLOSED, State.ROLLED_BACK), OperatorStep("", "", needs=_ANY_QUEUE)
    ),
}


# The next step for a symptom and a code together, where the code's own sentence is not true or not
# specific enough.
NEXT_STEP_BY_SYMPTOM_AND_CODE: Mapping[tuple[str, str], OperatorStep] = {
    ("visibility_timeout_too_short", "need_already_met"): OperatorStep(
        "Find the consumer that holds messages, or a batch, longer than is named.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
    ("visibility_timeout_too_short", "consumer_failing"): OperatorStep(
        "Find the function that fails, and read its log.",
        _LIST_CONSUMERS_COMMAND,
        needs=frozenset({QueueTrait.FAILING_FUNCTION}),
    ),
    ("fifo_group_blocked", "need_already_met"): OperatorStep(
        "See if consumers still receive: messages may wait for them.",
        _LIST_CONSUMERS_COMMAND,
        needs=_ANY_QUEUE,
    ),
}


def find_next_step(symptom: str, code: str, state: State) -> OperatorStep:
    """Return the next step for a case: by symptom and code, by code alone, or by state."""
    next_step = NEXT_STEP_BY_SYMPTOM_AND_CODE.get((symptom, code))
    return next_step or NEXT_STEP_BY_REFUSAL_CODE.get(code) or NEXT_STEP_BY_STATE[state]


def describe_reason(case: Case) -> str:
    """Return the case's reason. If it has a refusal code, the state and the code come first."""
    if not case.code:
        return case.reason
    state_text = "Not changed"
    if case.state is not State.REFUSED:
        state_text = case.state.replace("_", " ").capitalize()
    return f"{state_text} ({case.code}): {case.reason}"


def runbook_path(symptom: str) -> str:
    """Return the path of a symptom's runbook."""
    return f"docs/runbooks/{symptom}.md"


def choose_next_step(case: Case, refusal_command: str = "") -> dict[str, str]:
    """Return the next step for a case, with the keys `sentence`, `command` and `runbook`.

    `refusal_command` is the command that the refusal itself names; empty if it names no command. It
    is not used for a proposal: there, the next step is always to approve or decline it.
    """
    next_step = find_next_step(case.symptom, case.code, case.state)
    command_source = next_step.command
    command_text = "" if case.state is State.PROPOSED else refusal_command
    if not command_text and command_source:
        command_text = (
            mendq_case_command(command_source, case)
            if isinstance(command_source, str)
            else command_source(case.queue_arn)
        )
    return {
        "sentence": next_step.sentence,
        "command": command_or_note(command_text) if command_text else "",
        "runbook": runbook_path(case.symptom),
    }


def choose_command_without_case(refusal: Refusal, queue_arn: str) -> str:
    """Return the command for a person to type after a refusal that opened no case.

    Return an empty text if there is no command, or only a command that needs a case.
    """
    if refusal.next_command:
        return command_or_note(refusal.next_command)
    command_source = NEXT_STEP_BY_REFUSAL_CODE.get(
        refusal.code, OperatorStep("", "", needs=_ANY_QUEUE)
    ).command
    if isinstance(command_source, str):
        return ""
    return command_or_note(command_source(queue_arn))


# A case in these states stays open until a person closes it, or until the symptom has not shown for
# a long time.
_STATES_SETTLED_BY_PERSON = frozenset({State.ESCALATED, State.OVERRIDDEN})
# A notification about a case in these states says that Mendq's own next write is late.
_STATES_WAITING_FOR_MENDQ = frozenset({State.APPROVED, State.INEFFECTIVE, State.EXPIRED})


def list_next_step_lines(case: Case, refusal_command: str) -> tuple[str, ...]:
    """Return the lines about the next step: sentence, commands, runbook, and the case's id.

    `refusal_command` is the command that the refusal itself names; empty if it names no command.
    """
    queue = parse_queue_arn(case.queue_arn)
    next_step = choose_next_step(case, refusal_command)
    next_step_lines: list[str] = []
    if next_step["sentence"]:
        next_step_lines.append(next_step["sentence"])
    # A step without a command is about a deleted queue, so further commands would fail.
    if next_step["command"]:
        next_step_lines.append(next_step["command"])
        next_step_lines.extend(_list_further_command_lines(case, refusal_command))
    next_step_lines.append(f"runbook: {to_plain_text(next_step['runbook'])}")
    account_and_region_text = (
        f"{to_plain_text(queue.account, 12)} {to_plain_text(queue.region, 32)}"
    )
    next_step_lines.append(f"case: {to_plain_text(case.case_id, 80)} in {account_and_region_text}")
    return tuple(next_step_lines)


def _list_further_command_lines(case: Case, refusal_command: str) -> tuple[str, ...]:
    """Return lines with further commands, besides the command of the next step."""
    show_queue_command = get_attributes_command(case.queue_arn)
    if case.state is State.PROPOSED:
        repeat_hours = REPEAT_NOTIFICATION_AFTER // timedelta(hours=1)
        decline_heading = (
            f"or decline it (Mendq notifies you again after {repeat_hours} hours at the earliest):"
        )
        return (
            decline_heading,
            mendq_case_command("decline", case),
            "to look first:",
            command_or_note(refusal_command or show_queue_command),
        )
    if case.state in _STATES_WAITING_FOR_MENDQ:
        return ("the queue as it is now:", show_queue_command)
    if case.state in _STATES_SETTLED_BY_PERSON:
        return ("when the problem is solved, close the case:", mendq_case_command("close", case))
    return ()
