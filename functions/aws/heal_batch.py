"""Mends group by group; one that fails costs itself and comes again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.aws.errors import ComeAgain, EventUnreadable
from functions.aws.intake import Intake, read_batch
from functions.aws.mend import mend
from functions.aws.run import Group, Outcome, Run


@dataclass
class Healed:
    """A batch, done: what became of each group, and the error behind each message that failed."""

    intake: Intake
    mended: list[tuple[Group, Outcome]] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)


def heal_batch(bodies: Mapping[str, str], run: Run) -> Healed:
    """`bodies` by message id; never raises: every error is kept for the handler to raise."""
    healed = Healed(read_batch(bodies, run.home))
    for message_id, unreadable in healed.intake.unreadable.items():
        healed.errors[message_id] = EventUnreadable(unreadable.reason)
    for group, message_ids in healed.intake.groups.items():
        error = _mended(group, run, healed)
        if error is not None:
            healed.errors.update(dict.fromkeys(message_ids, error))
    return healed


def _mended(group: Group, run: Run, healed: Healed) -> Exception | None:
    try:
        outcome = mend(group, run)
    except Exception as error:  # noqa: BLE001 - kept whole for the handler, which raises it
        return error
    healed.mended.append((group, outcome))
    if outcome.refusal and outcome.refusal.again:
        return ComeAgain(outcome.refusal.reason)
    return None
