"""The next step of a person for a case: a sentence, a command and a runbook, by refusal code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from mendq.model.case import NOTIFIED_AGAIN_AFTER, STATES_UNDER_VERIFICATION, Case, State
from mendq.model.plan import Refusal
from mendq.model.queue import parts_of
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.commands import (
    consumers_of,
    get_attributes,
    mendq_command,
    mendq_on,
    messages_of,
    quotas_command,
    redrive_preview,
    tag_command,
)
from mendq.notifications.text import command_line, plain

# A text is the `mendq` command for the case, such as "show". A function returns the command for the
# queue with this ARN. An empty text: no command.
Command = str | Callable[[str], str]
_SHOW = "show"
_APPROVE = "approve"
_REPORT = "support-bundle"
_LOOK = get_attributes
_MAPPINGS = consumers_of
_PREVIEW = redrive_preview
_MESSAGES = messages_of
_QUOTAS = partial(quotas_command, "sqs")
_KMS_QUOTAS = partial(quotas_command, "kms")
_HISTORY = partial(mendq_on, "history {queue}")
_PIN = partial(mendq_on, "policy show {queue}")
_THAW = partial(mendq_on, "thaw")
_OPEN = partial(mendq_on, "cases --open")
_PROCESSING = partial(tag_command, f"{MAX_PROCESSING.key}=SECONDS")
_CEILING = partial(tag_command, f"{MAX_VISIBILITY.key}=SECONDS")
_PROPOSE = partial(tag_command, "mendq=propose")
_WAIT = "Wait: Mendq looks again by itself."

# The sentence and the command for each code of a refusal, an escalation or an override. The command
# is used if the refusal itself names none.
BY_CODE: Mapping[str, tuple[str, Command]] = {
    # About any case.
    "another_owner": ("Wait for the Lambda that owns the next step, or approve it anew.", _SHOW),
    "another_queue": ("Look at the new queue of that name; the old proposal is over.", _LOOK),
    "aws_refused": ("Find which policy keeps Mendq's role from writing.", _SHOW),
    "frozen": ("Thaw when it is time; the next failed calls are looked at anew.", _THAW),
    "healthy": ("Do nothing: the queue has what it needs.", _SHOW),
    "keeps_changing": ("Find who changes the queue and stop that.", _HISTORY),
    "mass_symptom": ("Look for what these queues have in common.", _OPEN),
    "not_any_more": ("See how the queue stands: Mendq may change it no more.", _LOOK),
    "not_by_itself": ("Wait for the new proposal and approve that.", _OPEN),
    "out_of_bounds": ("Report it: this is a defect of Mendq's.", _REPORT),
    "own_change": ("Check if Mendq's own change is the cause; if so, take it back.", "rollback"),
    "overridden": ("Decide which value is right and write it into the queue's template.", _SHOW),
    "plan_changed": ("Wait for the new proposal: the queue has changed since.", _OPEN),
    "queue_deleted": ("Do nothing: the queue is gone, and the proposal with it.", ""),
    "too_often": ("Decide what the setting should be: see what was tried.", _HISTORY),
    "too_soon": ("Wait: whether the last write helped is not known yet.", _SHOW),
    # The visibility timeout.
    "guess_too_far": ("Tag the queue with the longest a message takes.", _PROCESSING),
    "need_already_met": ("Look at the consumer: the timeout covers what is named.", _MAPPINGS),
    "over_ceiling": ("Raise the queue's ceiling by its tag, or shorten the work.", _CEILING),
    "over_in_flight": ("Add consumers first: too many messages would be in flight.", _LOOK),
    "over_retention": ("Keep messages longer, or lower the queue's maxReceiveCount.", _LOOK),
    "race_or_retries": ("Tell retries from slow work; tag it if work is slow.", _PROCESSING),
    "race_without_named_need": ("Tag the queue with the longest a message takes.", _PROCESSING),
    "readers_set_their_own": ("Raise it in the consumer's own calls.", _MAPPINGS),
    "tag_unreadable": ("Correct the tag: whole seconds, 1 to 43200.", _PROCESSING),
    # Consumers.
    "already_long_polling": ("Ask AWS for a higher quota, or use fewer receivers.", _QUOTAS),
    "consumer_failing": ("Fix the consumer: its log says why it fails.", _MAPPINGS),
    "consumer_stopped": ("Enable its event source mapping, unless it rests on purpose.", _MAPPINGS),
    "consumer_throttled": ("Give the function more concurrency.", _MAPPINGS),
    "in_flight_full": ("Find the consumer that receives and does not delete.", _MAPPINGS),
    "quiet_groups_wait": ("Find the sender whose message group floods the queue.", _LOOK),
    "retention_at_its_longest": ("Get the consumer going: messages expire soon.", _MAPPINGS),
    "senders_throttled": ("Ask AWS for a higher quota, or send in batches.", _QUOTAS),
    "waits_for_dlq": ("See which groups its DLQ has; the runbook frees this one.", _MESSAGES),
    # Throughput.
    "high_throughput_already": ("Use more message groups, or ask for a higher quota.", _QUOTAS),
    "high_throughput_unknown": ("See which throughput the queue is set to.", _LOOK),
    # DLQs.
    "denied_to_all": ("Let the DLQ's redrive allow policy name this source.", _LOOK),
    "dlq_unfit": ("Name another DLQ: this one does not fit.", _LOOK),
    "no_safe_limit": ("Choose maxReceiveCount and attach a DLQ yourself; see the runbook.", _LOOK),
    "nothing_finished": ("Look at the consumer's log: it finishes hardly any message.", _MAPPINGS),
    "name_taken": ("Rename or remove the queue that has the name.", _LOOK),
    "names_a_quarantine": ("Name another DLQ: a quarantine is none.", _LOOK),
    "network_only_policy": ("Send them back from within that network.", _PREVIEW),
    "no_known_cause": ("Look at the messages that died, then at their consumer.", _MESSAGES),
    "redrive_halted": ("Fix what halted it before more goes back.", _MESSAGES),
    "redrive_too_slow": ("Send them back yourself: they would expire on the way.", _PREVIEW),
    "redrive_unfit": ("See why they may not go back: look at DLQ and source.", _MESSAGES),
    "sent_to": ("Pick which to send back: producers send here too.", _PREVIEW),
    "shared_dlq": ("Pick whose to send back: several queues share the DLQ.", _PREVIEW),
    "too_many_sources": ("Give some sources another DLQ: a policy names ten.", _LOOK),
    # Keys.
    "aws_managed_key": ("Use a key of your own: AWS's serves no other service.", _LOOK),
    "key_changed": ("Give receivers the old key until its messages are gone.", _HISTORY),
    "key_not_granted": ("Grant the callers the key.", _LOOK),
    "key_unusable": ("Enable the key, or cancel its deletion.", _LOOK),
    "not_encrypted_with_kms": ("Do nothing: the queue has no KMS key.", _LOOK),
    "reuse_at_maximum": ("Ask AWS for a higher KMS quota.", _KMS_QUOTAS),
    # Access.
    "access_check_failed": ("Check the pinned policy yourself, then set it by hand.", _PIN),
    "access_not_checked": ("Let Mendq ask Access Analyzer, or set it by hand.", _PIN),
    "boundary_refuses": ("Let the caller's permissions boundary allow the call.", _LOOK),
    "identity_policy_denies": ("Remove the deny from the caller's own policy.", _LOOK),
    "identity_policy_lacks_grant": ("Grant the call in the caller's policy.", _LOOK),
    "organization_refuses": ("Ask who keeps the organization's policies.", _LOOK),
    "pin_not_good": ("Pin the policy that is right by now.", _PIN),
    "policy_not_named": ("Find the policy that refuses: AWS does not name it.", _LOOK),
    "queue_gone": ("Find who deleted the queue; create it again or stop callers.", _HISTORY),
    "queue_policy_denies": ("Remove the deny from the queue's policy.", _LOOK),
    "queue_policy_lacks_grant": ("Grant the call in the queue's policy.", _LOOK),
    "session_policy_refuses": ("Let the caller's session policy allow the call.", _LOOK),
    "vpc_endpoint_refuses": ("Let the VPC endpoint's policy allow the call.", _LOOK),
}  # fmt: skip
# The sentence and the command for each state, if the code has none. A case that has ended needs no
# step.
BY_STATE: Mapping[State, tuple[str, Command]] = {
    State.OBSERVED: ("Raise the queue's mode if Mendq is to do this.", _PROPOSE),
    State.REFUSED: ("Look at the case.", _SHOW),
    State.PROPOSED: ("Read the change, then approve or decline it.", _APPROVE),
    State.EXPIRED: ("Look at the queue: it is proposed again if it shows again.", _SHOW),
    State.INEFFECTIVE: ("See why the fix did not help: Mendq tries its next step.", _SHOW),
    State.OVERRIDDEN: BY_CODE["overridden"],
    State.ESCALATED: ("Find what is wrong: Mendq has no further step.", _SHOW),
    **dict.fromkeys(
        (State.APPROVED, *STATES_UNDER_VERIFICATION, State.VERIFIED, State.WATCHING), (_WAIT, _SHOW)
    ),
    **dict.fromkeys((State.DECLINED, State.CLOSED, State.ROLLED_BACK), ("", "")),
}  # fmt: skip


def with_code(case: Case) -> str:
    """Return the case's reason. If it has a refusal code, the state and the code come first."""
    if not case.code:
        return case.reason
    state = "Not changed" if case.state is State.REFUSED else case.state.capitalize()
    return f"{state} ({case.code}): {case.reason}"


def runbook_of(symptom: str) -> str:
    """Return the path of a symptom's runbook."""
    return f"docs/runbooks/{symptom}.md"


def next_step(case: Case, command: str = "") -> dict[str, str]:
    """Return the next step for a case, with the keys `sentence`, `command` and `runbook`.

    `command` is the command that the refusal itself names, empty if it names none. It is not used
    for a proposal, whose next step is always to approve or decline it.
    """
    sentence, usual = BY_CODE.get(case.code) or BY_STATE[case.state]
    to_type = "" if case.state is State.PROPOSED else command
    if not to_type and usual:
        to_type = mendq_command(usual, case) if isinstance(usual, str) else usual(case.queue_arn)
    return {
        "sentence": sentence,
        "command": command_line(to_type) if to_type else "",
        "runbook": runbook_of(case.symptom),
    }


def command_without_case(refusal: Refusal, queue_arn: str) -> str:
    """Return the command for a refusal about a queue that has no case.

    Return an empty text if the code only has a command about a case.
    """
    if refusal.next_command:
        return command_line(refusal.next_command)
    _, usual = BY_CODE.get(refusal.code, ("", ""))
    if isinstance(usual, str):
        return ""
    return command_line(usual(queue_arn))


# A case in these states stays open until a person closes it, or the symptom does not show for long.
_SETTLED_BY_A_PERSON = frozenset({State.ESCALATED, State.OVERRIDDEN})
# A notification about a case in these states says that Mendq's own next write is late.
_WAITED_FOR_MENDQ = frozenset({State.APPROVED, State.INEFFECTIVE, State.EXPIRED})


def next_lines(case: Case, command: str) -> tuple[str, ...]:
    """Return the lines about the next step: sentence, commands, runbook, and the case's id.

    `command` is the command that the refusal itself names, empty if it names none.
    """
    queue = parts_of(case.queue_arn)
    step = next_step(case, command)
    lines: list[str] = []
    if step["sentence"]:
        lines.append(step["sentence"])
    # A step without a command is about a deleted queue, so further commands would fail.
    if step["command"]:
        lines.append(step["command"])
        lines.extend(_more_commands(case, command))
    lines.append(f"runbook: {plain(step['runbook'])}")
    where = f"{plain(queue.account, 12)} {plain(queue.region, 32)}"
    lines.append(f"case: {plain(case.case_id, 80)} in {where}")
    return tuple(lines)


def _more_commands(case: Case, command: str) -> tuple[str, ...]:
    """Return lines with further commands, besides the one of the next step."""
    look = get_attributes(case.queue_arn)
    if case.state is State.PROPOSED:
        hours = NOTIFIED_AGAIN_AFTER // timedelta(hours=1)
        turn_down = f"or, to turn it down (it pages no sooner than {hours} hours from now again):"
        return (
            turn_down,
            mendq_command("decline", case),
            "to look first:",
            command_line(command or look),
        )
    if case.state in _WAITED_FOR_MENDQ:
        return ("the queue as it is now:", look)
    if case.state in _SETTLED_BY_A_PERSON:
        return ("when it is settled:", mendq_command("close", case))
    return ()
