"""What whoever is paged runs next: `mendq` commands and `aws` commands, whole or not at all."""

from __future__ import annotations

from datetime import timedelta
from shlex import quote

from functions.healing.case import Case
from functions.healing.look_commands import get_attributes
from functions.healing.paging import TOLD_AGAIN_AFTER
from functions.healing.plain_text import command_line, plain
from functions.healing.queue_names import parts_of
from functions.healing.states import State

# What waits until a person says that it is over.
_SETTLED_BY_A_PERSON = frozenset({State.ESCALATED, State.CONTESTED})
# Told of where the owner of the write does not take it up.
_WAITING_FOR_MENDQ = frozenset({State.APPROVED, State.INEFFECTIVE})


def mendq_command(verb: str, case: Case) -> str:
    """The operator's own command for a case, where its queue is."""
    region = parts_of(case.queue_arn).region
    return command_line(f"mendq {verb} {quote(case.case_id)} --region {region}")


def next_lines(case: Case, runbook: str, next_command: str) -> tuple[str, ...]:
    """The commands, the one to begin with first; then where to read on and what the case is called.

    An empty `next_command` means: look at the queue.
    """
    arn = parts_of(case.queue_arn)
    command = command_line(next_command or get_attributes(case.queue_arn, "All"))
    return (
        *_with_a_decision(case, command),
        f"runbook: {plain(runbook)}",
        f"case: {plain(case.case_id, 80)} in {plain(arn.account, 12)} {plain(arn.region, 32)}",
    )


def _with_a_decision(case: Case, command: str) -> tuple[str, ...]:
    if case.state is State.PROPOSED:
        hours = TOLD_AGAIN_AFTER // timedelta(hours=1)
        turn_down = f"or, to turn it down (it pages no sooner than {hours} hours from now again):"
        decline = (turn_down, mendq_command("decline", case))
        return (mendq_command("approve", case), *decline, "to look first:", command)
    if case.state in _WAITING_FOR_MENDQ:
        return (mendq_command("show", case), "the queue as it is now:", command)
    if case.state is State.EXPIRED:
        seen_again = "where it still shows, Mendq proposes anew what the queue needs then"
        return (mendq_command("show", case), "the queue as it is now:", command, seen_again)
    if case.state in _SETTLED_BY_A_PERSON:
        return (command, "when it is settled:", mendq_command("close", case))
    return (command,)
