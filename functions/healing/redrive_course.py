"""How far a redrive has come: all of it that outlives one look, as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r:.99}")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"neither true nor false: {value!r:.99}")
    return value


def _number(value: object) -> float:
    """Nothing is counted below nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"no number: {value!r:.99}")
    if not 0 <= value < _MOST:
        raise ValueError(f"no number of letters: {value!r:.99}")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"no count: {value!r:.99}")
    return int(_number(value))


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError(f"a time of no zone: {value!r:.99}")
    return moment


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"no list: {value!r:.99}")
    return tuple(map(_text, value))


# Of no queue's counts, and no rate, is any number larger.
_MOST = 10**12
# How a document's values are read, by the types below.
_READ: Mapping[str, Callable[[Any], object]] = {
    "str": _text,
    "bool": _truth,
    "int": _count,
    "float": _number,
    "datetime": _moment,
    "datetime | None": lambda value: None if value is None else _moment(value),
    "tuple[str, ...]": _texts,
    "Stage": Stage,
}


@dataclass(frozen=True)
class Course:
    """One redrive of one dead-letter queue; `n` counts how often its item was written.

    `size` is what this stage may move at most and `moved_in_stage` what it may have moved: what a
    run that died had in hand (`in_hand`) counts here as `unsure_in_stage`, and not in `moved`,
    which is known to be gone.
    `by_task`: the stage is moved by a move task, asked for at `intent_at`, known by `task_handle`
    once it was seen. `first_task_at`: from then on letters may be back that bear no mark.
    `expected` are the letters that should be left while none is back, `stood` the messages that
    stood in the source when the stage had gone, its own among them, `waits_since` when nobody was
    seen any more to handle the source's messages, `refused_since` when SQS took no letter any more
    (`is_refused`: in this stage too), `hindered_since` when it could not see what it has to.
    `fingerprints` are of letters that went without a mark, one for each that did. A queue that was
    made at another time than `dead_letters_made_at` or `source_made_at` is another queue.
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
    task_started_at: datetime | None = None
    first_task_at: datetime | None = None
    waits_since: datetime | None = None
    refused_since: datetime | None = None
    is_refused: bool = False
    hindered_since: datetime | None = None
    dead_letters_made_at: datetime | None = None
    source_made_at: datetime | None = None
    expected: int = 0
    stood: int = 0
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
        """Raise TypeError or ValueError where it is none of ours."""
        read = {each.name: _READ[str(each.type)] for each in fields(cls)}
        values: dict[str, Any] = {
            name: read[name](document[name]) for name in document if name in read
        }
        course = cls(**values)
        if course.stage is Stage.SOAK and course.soak_ends_at is None:
            raise ValueError("a soak that never ends")
        return course

    def now_in(self, stage: Stage, now: datetime, **over: Any) -> Course:
        """In another stage, since now."""
        return replace(self, **{"stage": stage, "stage_at": now, "because": "", **over})


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
