"""How far one redrive has come, as the case store keeps it, and what a sample of messages says.

All of it outlives the look that it was written down by: redrive_machine.py moves it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self, cast, get_type_hints

from mendq.model.evidence import to_text
from mendq.redrive.messages import Message

# Clocks differ by so much between us and SQS.
SKEW = timedelta(seconds=5)
# Of no queue's counts, and no rate, is any number larger.
_MOST = 10**12


class Stage(StrEnum):
    """What a redrive is at; the last two are its ends."""

    CANARY = "canary"
    SOAK = "soak"
    RAMP = "ramp"
    DONE = "done"
    HALTED = "halted"


SENDING = (Stage.CANARY, Stage.RAMP)
GOING_ON = (Stage.CANARY, Stage.SOAK, Stage.RAMP)
ENDED = (Stage.DONE, Stage.HALTED)


@dataclass(frozen=True)
class RedriveQueues:
    """From where to where; a queue that was made at another time is another queue."""

    dlq_arn: str
    source_arn: str
    dlq_made_at: datetime | None = None
    source_made_at: datetime | None = None


@dataclass(frozen=True)
class StageProgress:
    """`size` is what this stage may move at most and `moved` what it may have moved: what a run
    that died had in flight (`in_flight`) counts here as `unsure` too, and proves nothing.

    `expected` are the messages that should be left in the DLQ while none is back,
    `stood` those that stood in the source when the stage had gone, its own among them.
    """

    began_at: datetime
    size: int
    number: int = 0
    moved: int = 0
    unsure: int = 0
    in_flight: int = 0
    expected: int = 0
    stood: int = 0
    soak_ends_at: datetime | None = None

    @property
    def left(self) -> int:
        return max(0, self.size - self.moved)


@dataclass(frozen=True)
class Waits:
    """Since when nobody was seen to handle the source's messages, SQS took no message any more
    (`is_refused`: in this stage too), or what it has to see could not be seen."""

    consumers_since: datetime | None = None
    refused_since: datetime | None = None
    is_refused: bool = False
    blocked_since: datetime | None = None


@dataclass(frozen=True)
class RedriveProgress:
    """How far one redrive has come, as the case store keeps it; `n` counts how often it was
    written.

    `moved` is known to be gone. `fingerprints` are of messages that went without a mark, one for
    each that did. `is_opened`: what came back before the first went is in quarantine.
    """

    case_id: str
    queues: RedriveQueues
    stage: Stage
    began_at: datetime
    current: StageProgress
    n: int = 0
    moved: int = 0
    moved_at: datetime | None = None
    returned: int = 0
    quarantined: int = 0
    rate_per_second: float = 0
    waits: Waits = field(default_factory=Waits)
    is_opened: bool = False
    fingerprints: tuple[str, ...] = ()
    because: str = ""

    @classmethod
    def begun(cls, case_id: str, queues: RedriveQueues, *, size: int, now: datetime) -> Self:
        """One that nothing was moved in yet."""
        return cls(case_id, queues, Stage.CANARY, now, StageProgress(now, size))

    @property
    def dlq_arn(self) -> str:
        return self.queues.dlq_arn

    @property
    def source_arn(self) -> str:
        return self.queues.source_arn

    @property
    def is_over(self) -> bool:
        return self.stage in ENDED

    def document(self) -> dict[str, Any]:
        """The document that the case store holds."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Raise TypeError or ValueError where it is none of ours."""
        progress: Self = _read(cls, document)
        if progress.stage is Stage.SOAK and progress.current.soak_ends_at is None:
            raise ValueError("a soak that never ends")
        return progress

    def now_in(self, stage: Stage, now: datetime, because: str = "") -> Self:
        """The progress in another stage, since now."""
        current = replace(self.current, began_at=now)
        return replace(self, stage=stage, current=current, because=because)

    def with_stage(self, **over: Any) -> Self:
        return replace(self, current=replace(self.current, **over))

    def with_waits(self, **over: Any) -> Self:
        return replace(self, waits=replace(self.waits, **over))

    def halted(self, now: datetime, because: str) -> Self:
        """The progress of a case that a person takes back; one that is over stays as it is."""
        return self if self.is_over else self.now_in(Stage.HALTED, now, because)


def _one_of(*kinds: type) -> Callable[[Any], Any]:
    """Read a value of these very types; nothing is counted below nothing, and true is no number."""

    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"no {kinds[-1].__name__}: {value!r:.99}")
        if kinds[-1] in (int, float) and not 0 <= value < _MOST:
            raise ValueError(f"no number of messages: {value!r:.99}")
        return value

    return read


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(_one_of(str)(value))
    if moment.tzinfo is None:
        raise ValueError(f"a time of no zone: {value!r:.99}")
    return moment


# How a document's values are read, by their types.
_READ: Mapping[Any, Callable[[Any], object]] = {
    str: _one_of(str),
    bool: _one_of(bool),
    int: _one_of(int),
    float: _one_of(int, float),
    datetime: _moment,
    datetime | None: lambda value: None if value is None else _moment(value),
    tuple[str, ...]: lambda value: tuple(map(_one_of(str), _one_of(list)(value))),
    Stage: Stage,
}


def _read(kind: Any, value: Any) -> Any:
    if not is_dataclass(kind):
        return _READ[kind](value)
    if not isinstance(value, Mapping):
        raise TypeError(f"no document: {value!r:.99}")
    kinds = get_type_hints(kind).items()
    return cast("Any", kind)(
        **{name: _read(each, value[name]) for name, each in kinds if name in value}
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, datetime):
        return to_text(value)
    return list(value) if isinstance(value, tuple) else value


class DlqStanding(StrEnum):
    """What a message in the DLQ is to a redrive."""

    WAITS = "waits"
    RETURNED = "returned"
    NEWLY_DEAD = "newly_dead"
    STUCK = "stuck"


@dataclass(frozen=True)
class DlqSample:
    """What was seen of the messages in the DLQ, in the order they were received in.

    `newly_dead` were sent since it began and never sent back by us. `stuck` are not ours to send
    back: they did not die in this source, or are too long for it. `is_whole`: there were no more.
    `known` are the fingerprints that messages which bear no mark were known by.
    """

    returned: tuple[Message, ...] = ()
    waiting: tuple[Message, ...] = ()
    newly_dead: int = 0
    stuck: int = 0
    known: tuple[str, ...] = ()
    is_whole: bool = True
    quarantined: int = 0

    @property
    def seen(self) -> int:
        return len(self.returned) + len(self.waiting) + self.stuck

    @property
    def still_back(self) -> int:
        """Those that came back and did not go to quarantine."""
        return len(self.returned) - self.quarantined


def sample_of(
    messages: Iterable[Message],
    progress: RedriveProgress,
    *,
    is_fifo: bool,
    most_bytes: int,
    is_whole: bool,
) -> DlqSample:
    """Sort them out; what stands behind a stuck one of its FIFO group is stuck: order is theirs."""
    returned, waiting, known = list[Message](), list[Message](), list[str]()
    newly_dead = stuck = 0
    blocked, unmarked = set[str](), Counter(progress.fingerprints)
    for each in messages:
        standing = _standing(each, progress, unmarked, most_bytes)
        if standing is DlqStanding.RETURNED:
            returned.append(each)
            if not each.redrive_count:
                known.append(each.fingerprint)
        elif standing is DlqStanding.STUCK or each.group_id in blocked:
            stuck += 1
            blocked |= {each.group_id} if is_fifo else set()
        else:
            waiting.append(each)
            newly_dead += standing is DlqStanding.NEWLY_DEAD
    return DlqSample(tuple(returned), tuple(waiting), newly_dead, stuck, tuple(known), is_whole)


def _standing(
    message: Message, progress: RedriveProgress, unmarked: Counter[str], most_bytes: int
) -> DlqStanding:
    """What bears no mark is known by its fingerprint, once for each that went, where it was sent
    since: what waited all along was not."""
    if message.source_arn != progress.source_arn:
        return DlqStanding.STUCK
    if message.redrive_count:
        return DlqStanding.RETURNED
    if unmarked and message.sent_at >= progress.began_at - SKEW and unmarked[message.fingerprint]:
        unmarked[message.fingerprint] -= 1
        return DlqStanding.RETURNED
    if message.size_bytes > most_bytes:
        return DlqStanding.STUCK
    return DlqStanding.NEWLY_DEAD if message.sent_at > progress.began_at else DlqStanding.WAITS
