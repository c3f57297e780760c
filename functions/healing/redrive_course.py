"""How far a redrive has come: all of it that outlives one look, as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from functions.healing.evidence import to_text


class Stage(StrEnum):
    """What a redrive is at; the last two are its ends."""

    CANARY = "canary"
    SOAK = "soak"
    RAMP = "ramp"
    CANCELLING = "cancelling"
    DONE = "done"
    HALTED = "halted"


ENDED = frozenset({Stage.DONE, Stage.HALTED})


@dataclass(frozen=True)
class Course:
    """One redrive of one dead-letter queue; `n` counts how often its item was written.

    `size` is what this stage may move at most and `moved_in_stage` what it may have moved: what a
    run that died had in hand (`in_hand`) counts here as `unsure_in_stage`, and not in `moved`,
    which is known to be gone.
    `by_task`: the stage is moved by a move task, asked for at `intent_at`, known by `task_handle`
    once it was seen. `first_task_at`: from then on letters may be back that bear no mark.
    `expected` are the letters that should be left while none is back, `waits_since` when nobody was
    seen any more to handle the source's messages, `refused_since` when SQS took no letter any more.
    `because` says why it stands as it does, `halts_for` why it will halt when its task is over.
    """

    case_id: str
    dead_letter_arn: str
    source_arn: str
    stage: Stage
    began_at: datetime
    stage_at: datetime
    size: int
    n: int = 0
    number: int = 0
    soak_ends_at: datetime | None = None
    moved: int = 0
    moved_in_stage: int = 0
    unsure_in_stage: int = 0
    moved_at: datetime | None = None
    in_hand: int = 0
    returned: int = 0
    quarantined: int = 0
    rate_per_second: float = 0
    by_task: bool = False
    intent_at: datetime | None = None
    task_handle: str = ""
    first_task_at: datetime | None = None
    waits_since: datetime | None = None
    refused_since: datetime | None = None
    expected: int = 0
    is_opened: bool = False
    fingerprints: tuple[str, ...] = ()
    because: str = ""
    halts_for: str = ""

    @property
    def is_over(self) -> bool:
        return self.stage in ENDED

    @property
    def left_in_stage(self) -> int:
        return max(0, self.size - self.moved_in_stage)

    def document(self) -> dict[str, Any]:
        """As the ledger holds it."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Raise KeyError, TypeError or ValueError where it is none of ours."""
        known = {each.name: each for each in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        for name in _MOMENTS & set(values):
            values[name] = datetime.fromisoformat(values[name]) if values[name] else None
        values["stage"] = Stage(document["stage"])
        values["fingerprints"] = tuple(document.get("fingerprints", ()))
        return cls(**values)

    def now_in(self, stage: Stage, now: datetime, **over: Any) -> Course:
        """In another stage, since now."""
        return replace(self, **{"stage": stage, "stage_at": now, "because": "", **over})


_MOMENTS = {each.name for each in fields(Course) if "datetime" in str(each.type)}


def begun(  # noqa: PLR0913 - each is where a redrive begins
    case_id: str, *, dead_letter_arn: str, source_arn: str, canary: int, now: datetime, n: int = 0
) -> Course:
    """A course that nothing was moved in yet; `n` of the one whose place it takes."""
    return Course(
        case_id,
        dead_letter_arn,
        source_arn,
        Stage.CANARY,
        began_at=now,
        stage_at=now,
        size=canary,
        n=n,
    )


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_text(value)
    return list(value) if isinstance(value, tuple) else value
