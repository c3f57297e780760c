"""Why messages die, and whether that is mended: what the cases about their source say.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from functions.healing.advance import GONE, UNMANAGED
from functions.healing.case import Case
from functions.healing.states import State

# A case of these, at the source, says why its messages die.
CAUSES = frozenset(
    {
        "lease_expired",
        "consumer_failing",
        "consumer_throttled",
        "access_denied",
        "kms_denied",
        "kms_key_unusable",
        "kms_throttled",
    }
)
# Proven mended, though the case is not over yet.
PROVEN = frozenset({State.VERIFIED, State.WATCHING})
_BY_ITSELF = "follow_up"


@dataclass(frozen=True)
class Explained:
    """The cases that may explain letters, by what has become of the cause.

    `proven` mended; `said`: a person closed it, or it merely stayed away; `standing`: it still
    shows, or nobody mended it.
    """

    proven: tuple[Case, ...] = ()
    said: tuple[Case, ...] = ()
    standing: tuple[Case, ...] = ()

    @property
    def mended(self) -> tuple[Case, ...]:
        return (*self.proven, *self.said)


def explained_by(cases: Iterable[Case], first_letter_at: datetime) -> Explained:
    """What explains letters of which the first came then, from the newest cases at their source.

    What was over before the first of them died did not kill it.
    """
    found: dict[str, list[Case]] = {"proven": [], "said": [], "standing": []}
    for case in cases:
        if case.symptom in CAUSES and (still_shows(case) or case.at >= first_letter_at):
            found[_became(case)].append(case)
    return Explained(**{name: tuple(each) for name, each in found.items()})


def still_shows(case: Case) -> bool:
    """Whether it is open, and not only watched after it was proven mended."""
    return not case.is_final and case.state not in PROVEN


def _became(case: Case) -> str:
    if case.state in PROVEN:
        return "proven"
    if case.state is not State.CLOSED or case.reason in (GONE, UNMANAGED):
        return "standing"
    watched = case.came_from is State.WATCHING and case.actor == _BY_ITSELF
    return "proven" if watched else "said"
