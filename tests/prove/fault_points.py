"""Every AWS call of a case's life, struck: queue, case store and case bucket end the same."""

from __future__ import annotations

import gc
import os
import pickle
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar, cast
from unittest.mock import patch

from mendq.cases.table import OpenCases
from tests.account.account import ACCOUNT, REGION
from tests.account.faults import KINDS, AtCall, Killed, fault_of
from tests.heal.operators import make_context
from tests.prove.endings import Ending, ending_of
from tests.prove.openings import Scene, Turn
from tests.prove.proof import Proof, Proving
from tests.prove.scenes import SCENES
from tests.prove.world import World, world

PAIRS_A_SCENE = 15
QUICK_PAIRS_A_SCENE = 5
QUICK_SHARE_OF_POINTS = 1 / 8
# Turns that the longest scene needs without a fault. Each fault adds one turn.
TURNS = 2
# Longer than whoever wrote a transition down is left to file it.
FILED_EVERY_MINUTES = 3
A_DAY = timedelta(days=1)
# What the case store does on a condition alone.
CONDITIONAL = frozenset({"dynamodb.TransactWriteItems", "dynamodb.UpdateItem"})

# A conflict is tried again at once; throttled, DynamoDB is left alone until somebody comes again.
BUSY_KINDS = ("TransactionConflict", "ThrottlingError")

T = TypeVar("T")
Point = tuple[str, int]


@dataclass(frozen=True)
class Struck:
    """One scene with its faults: the calls that they came to, and how it ended."""

    scene: Scene
    points: tuple[Point, ...]
    calls: tuple[str, ...]
    ending: Ending


@dataclass(frozen=True)
class UndisturbedLife:
    """One scene without a fault, and every point at which it can be struck."""

    ending: Ending
    begun_as: Ending
    points: tuple[Point, ...]


class Begun:
    """A scene at its beginning, in its own account."""

    def __init__(self, scene: Scene, made: World) -> None:
        self._scene = scene
        self._made = made
        self._turn = scene.begin(made)
        self._queue_arn = _queue_of(made)

    def live_undisturbed(self) -> UndisturbedLife:
        begun_as = ending_of(self._made.account, self._queue_arn, over=False)
        counted, ending = self._live([(kind, 0) for kind in (*KINDS, *BUSY_KINDS)])
        points = ((counter.kind, n) for counter in counted for n in range(1, counter.calls + 1))
        return UndisturbedLife(ending, begun_as, tuple(points))

    def struck(self, *points: Point) -> Struck:
        """In a fork, so that the next one begins as this one did."""
        calls, ending = _run_in_fork(partial(self._struck, points))
        # The second of a pair need not come by: the first may have cut the way short.
        assert any(calls), f"nothing was struck in {self._scene.name} at {points}"
        return Struck(self._scene, points, calls, ending)

    def _struck(self, points: Sequence[Point]) -> tuple[tuple[str, ...], Ending]:
        faults, ending = self._live(points)
        return tuple(fault.call for fault in faults), ending

    def _live(self, points: Sequence[Point]) -> tuple[list[AtCall], Ending]:
        made = self._made
        queue_arn = self._queue_arn
        faults: list[AtCall] = [
            fault_of(made.account, kind, strike_at) for kind, strike_at in points
        ]
        over = _come_again(made, queue_arn, self._scene, self._turn, faults)
        over = _file_transitions(made, faults) and over
        for fault in faults:
            fault.leave()
        return faults, ending_of(made.account, queue_arn, over=over)


@contextmanager
def _begun(scene: Scene) -> Iterator[tuple[UndisturbedLife, Begun]]:
    """How it ends without a fault, and the scene at its beginning."""
    with world() as made:
        undisturbed = Begun(scene, made).live_undisturbed()
    with world() as made:
        begun = Begun(scene, made)
        gc.freeze()  # a fork copies what its collector touches
        yield undisturbed, begun


def _run_in_fork(live: Callable[[], T]) -> T:
    """Call the function in a fork of this process and return its result."""
    receiving, sending = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            answer = pickle.dumps(live())
        except BaseException:  # noqa: BLE001 - said by the process that asked
            answer = pickle.dumps(AssertionError(traceback.format_exc()))
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        answered = pickle.load(pipe)  # noqa: S301 - our own fork's
    os.waitpid(pid, 0)
    if isinstance(answered, AssertionError):
        raise answered
    return cast("T", answered)


@dataclass
class EndingCounts:
    """Statistics over many endings."""

    same: int = 0
    overridden: list[Struck] = field(default_factory=list)
    otherwise: list[tuple[Struck, list[str]]] = field(default_factory=list)
    torn: int = 0
    not_over: list[Struck] = field(default_factory=list)
    mistold: list[Struck] = field(default_factory=list)
    unlisted: set[str] = field(default_factory=set)

    def add(self, struck: Struck, undisturbed: UndisturbedLife) -> None:
        ending = struck.ending
        wanted = undisturbed.ending
        differs = ending.differs_from(wanted)
        self.same += not differs
        if differs and ending.is_overridden:
            self.overridden.append(struck)
        elif differs:
            self.otherwise.append((struck, differs))
        self.torn += ending.queue not in (wanted.queue, undisturbed.begun_as.queue)
        if not ending.over:
            self.not_over.append(struck)
        if not ending.is_overridden and set(ending.pages) != set(wanted.pages):
            self.mistold.append(struck)
        self.unlisted.update(ending.unlisted)


def singly(
    proving: Proving,
    share: float = 1,
    scenes: Sequence[Scene] = SCENES,
    kinds: Sequence[str] = (*KINDS, *BUSY_KINDS),
) -> None:
    """`share` of the points of each scene, evenly spread, of these kinds of faults."""
    judged = EndingCounts()
    calls = 0
    points = 0
    lost_answers: Counter[str] = Counter()
    for n, scene in enumerate(scenes):
        with _begun(scene) as (undisturbed, begun):
            of_kinds = [point for point in undisturbed.points if point[0] in kinds]
            for point in of_kinds[:: round(1 / share)]:
                struck = begun.struck(point)
                judged.add(struck, undisturbed)
                points += 1
                lost_answers.update(call for call in struck.calls if point[0] == "answer_lost")
        here = sum(kind == "killed_before" for kind, _ in undisturbed.points)
        calls += here
        proving.figure(f"{scene.name}: aws_calls", here)
        proving.progress((n + 1) / len(scenes))
    proving.note({"scenes": len(scenes), "aws_calls": calls, "fault_points": points})
    conditional = sum(lost_answers[operation] for operation in CONDITIONAL)
    proving.figure("lost_answers_of_conditional_writes", conditional)
    if "answer_lost" in kinds:
        proving.holds("a conditional write's answer was lost among them", whether=conditional > 0)
    _tell(proving, judged)


def strike_pairs(
    proving: Proving, pairs_a_scene: int = PAIRS_A_SCENE, scenes: Sequence[Scene] = SCENES
) -> None:
    """Try pairs of faults that are drawn from all of each scene; the same seed draws the same."""
    draw = random.Random(4 + proving.seed)  # noqa: S311 - an order, no secret
    judged = EndingCounts()
    pairs = 0
    tried = 0
    for n, scene in enumerate(scenes):
        with _begun(scene) as (undisturbed, begun):
            points = undisturbed.points
            pairs += len(points) ** 2
            for position in draw.sample(range(len(points) ** 2), pairs_a_scene):
                pair = points[position // len(points)], points[position % len(points)]
                judged.add(begun.struck(*pair), undisturbed)
                tried += 1
        proving.progress((n + 1) / len(scenes))
    proving.figure("pairs_of_fault_points", pairs)
    proving.figure("pairs_tried", tried)
    _tell(proving, judged)


def _come_again(
    made: World, queue_arn: str, scene: Scene, turn: Turn, faults: Sequence[AtCall]
) -> bool:
    """One turn more for every fault; whether the last led where the scene goes."""
    for _ in range(TURNS + len(faults)):
        try:
            if turn() and _state_of(made, queue_arn, faults) == scene.goal:
                return True
        except Killed:
            pass
        except Exception:  # noqa: BLE001, S110 - whoever called calls again
            pass
        made.account.later(minutes=scene.minutes)
    return False


def _file_transitions(made: World, faults: Sequence[AtCall]) -> bool:
    """follow_up files what is left, struck as the turns are; whether nothing is left.

    It looks at no case meanwhile: time that passes until it is filed would move one on.
    """
    for _ in range(TURNS + len(faults)):
        made.account.later(minutes=FILED_EVERY_MINUTES)
        with suppress(Killed), patch.object(OpenCases, "list_unsettled_cases", return_value=[]):
            if made.minute() and not _has_unfiled_transitions(made, faults):
                return True
    return False


def _has_unfiled_transitions(made: World, faults: Sequence[AtCall]) -> bool:
    """Return True if a transition is not filed yet, even if its next try is not due."""
    with _without_strikes(faults):
        open_cases = make_context(made.account).open_cases
        return bool(open_cases.list_unfiled_transitions(made.account.now + A_DAY))


@contextmanager
def _without_strikes(faults: Sequence[AtCall]) -> Iterator[None]:
    """The faults do not hear a question of ours."""
    for fault in faults:
        fault.is_deaf = True
    yield
    for fault in faults:
        fault.is_deaf = False


def _state_of(made: World, queue_arn: str, faults: Sequence[AtCall]) -> str:
    """As the case store says."""
    with _without_strikes(faults):
        items = made.account.case_store_items()
    cases = (items[pk, sk] for pk, sk in items if pk == queue_arn and sk[:5] == "case#")
    return next((case["state"]["S"] for case in cases), "")


def _queue_of(made: World) -> str:
    """The one that the newest case is about; before there is one, the only one."""
    cases = made.account.transitions()
    if cases:
        return str(cases[-1]["queue_arn"])
    (url,) = made.account.clients.sqs.list_queues()["QueueUrls"]
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{url.rpartition('/')[2]}"


def _tell(proving: Proving, judged: EndingCounts) -> None:
    proving.note(
        {
            "ended_the_same": judged.same,
            "ended_overridden": len(judged.overridden),
            "ended_otherwise": len(judged.otherwise),
        }
    )
    for what in ("overridden", "not_over", "mistold"):
        for struck in getattr(judged, what)[:3]:
            proving.figure(f"{what}: {struck.scene.name}", _where(struck))
    for struck, places in judged.otherwise[:3]:
        proving.figure(f"otherwise: {struck.scene.name}, {_where(struck)}", ", ".join(places))
    proving.holding(
        {
            "each ends as without a fault, or overridden": not judged.otherwise,
            "each is over in the turns that come by themselves": not judged.not_over,
            "the queue is as before or as after, never between": judged.torn == 0,
            "docs/states.md lists every transition": not judged.unlisted,
            "no page is lost, and none says another thing": not judged.mistold,
        }
    )


def _where(struck: Struck) -> str:
    return "; ".join(
        f"{kind} {n} {call}" for (kind, n), call in zip(struck.points, struck.calls, strict=True)
    )


FAULT_POINTS = (
    Proof(
        "faults",
        "A fault before, after or in any AWS call of a case's life changes nothing of its end.",
        singly,
        prove_quickly=partial(singly, share=QUICK_SHARE_OF_POINTS),
    ),
    Proof(
        "faults_in_pairs",
        "Two faults in one such life change nothing of its end, or it ends overridden.",
        partial(strike_pairs, pairs_a_scene=3 * PAIRS_A_SCENE),
        prove_quickly=partial(strike_pairs, pairs_a_scene=QUICK_PAIRS_A_SCENE),
    ),
)
