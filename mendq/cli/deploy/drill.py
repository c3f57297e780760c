"""`mendq drill`: real failing calls on a queue made for it, and how long each stage takes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, TypeVar

import typer
from rich.text import Text

from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT
from mendq.cli.deploy.drill_queue import (
    LATE_CALL,
    LATE_CALLS,
    VISIBILITY_SECONDS,
    DrillQueue,
    Ending,
    Stage,
    drill_queue,
)
from mendq.cli.doctor.check import Status, guarded
from mendq.cli.doctor.visibility import Trail, logged, trails_of
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.interrupts import as_interrupts
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.output import Yes, confirm, table
from mendq.model.case import Case, State
from mendq.model.limits import DRILL_QUEUE, MODE_TAG, MODES, Mode
from mendq.model.queue import arn_of_name

EVERY_SECONDS = 0.5
DEFAULT_MINUTES = 20.0
T = TypeVar("T")
# How far Mendq goes with this account's settings, and the state of the case that comes of it.
_EXPECTED = {
    Mode.HEAL: ("changes the queue: timed until the change is read back", State.APPLIED),
    Mode.PROPOSE: ("only proposes: timed until the case is proposed", State.PROPOSED),
    Mode.OBSERVE: ("only observes: timed until the case is observed", State.OBSERVED),
}
_QUEUE = "A name that the trail's selectors cover; .fifo at its end."


@with_invocation
def drill(
    call: Invocation,
    queue: Annotated[str | None, typer.Option(help=_QUEUE)] = None,
    mode: Annotated[str, typer.Option(help="The tag mendq of the drill's queue.")] = "heal",
    minutes: Annotated[float, typer.Option(help="How long to wait.", min=0.1)] = DEFAULT_MINUTES,
    yes: Yes = False,
) -> Exit:
    """Let calls fail on a queue made for it; time Mendq."""
    arn = _arn(call, queue)
    reached = _reached(call, arn, mode)
    _require_situation(call, arn)
    name = arn.rpartition(":")[2]
    call.out.say(
        f"makes queue {name} (tag {MODE_TAG}={mode}, visibility timeout {VISIBILITY_SECONDS} s), "
        f"lets {LATE_CALLS} deletes on it fail for real, waits for Mendq; then takes back what it "
        "changed, ends the case and removes the queue"
    )
    call.out.say(f"with this account's settings Mendq {_EXPECTED[reached][0]}")
    call.out.say("a real account takes minutes: CloudTrail delivers in about 5, with no promise")
    confirm("Start the drill?", yes=yes)
    sqs = call.account.clients.sqs
    with as_interrupts(), drill_queue(sqs, name, {MODE_TAG: mode}) as made:
        try:
            stages, case = _timed(call, made, arn, reached, minutes * 60)
            ending = _ended(call, made, case)
        except KeyboardInterrupt:
            raise _interrupted(call, made, arn) from None
    return _announced(call, Drilled(arn, reached, stages, case, ending))


def drill_queue_name() -> str:
    """A new one, which Mendq's own trail logs."""
    return f"{DRILL_QUEUE}{uuid.uuid4().hex[:8]}.fifo"


def _arn(call: Invocation, queue: str | None) -> str:
    name = queue or drill_queue_name()
    arn = arn_of_name(name, call.account.region, call.account.account_id)
    if arn is None or not name.endswith(".fifo"):
        raise Stopped(f"--queue {name!r} is no name of a FIFO queue (it ends in .fifo)", Exit.USAGE)
    return arn


def _reached(call: Invocation, arn: str, tag: str) -> Mode:
    """How far Mendq goes on a queue with that tag."""
    if tag not in MODES:
        raise Stopped(f"--mode {tag!r} is none of {', '.join(MODES)}", Exit.USAGE)
    mode = call.account.consent.mode_of(arn.rpartition(":")[2], {MODE_TAG: tag})
    autonomy = call.account.settings.autonomy.get(TOO_SHORT.name, TOO_SHORT.autonomy)
    return min(mode or Mode.OBSERVE, Mode.HEAL if autonomy is None else autonomy)


def _require_situation(call: Invocation, arn: str) -> None:
    """Stopped where the trails that can be read do not log the call that is going to fail."""
    trails: list[Trail] = []
    with call.out.waiting("looking whether a trail logs the queue"):
        readable = all(
            each.status is not Status.UNKNOWN
            for each in guarded("trails", partial(trails_of, call.account, trails))
        )
    if readable and not logged(trails, arn, [LATE_CALL]):
        line = f"no trail logs {LATE_CALL} of {arn.rpartition(':')[2]}: give a name with --queue"
        raise Stopped(f"{line} that trail.queueArnPrefixes covers, or add this one's start")


def _timed(
    call: Invocation, made: DrillQueue, arn: str, reached: Mode, patience_seconds: float
) -> tuple[list[Stage], Case | None]:
    until = time.monotonic() + patience_seconds
    with call.out.waiting("calling the queue too late"):
        stages = [Stage("calls failed", made.fail(call.out.say))]
    with call.out.waiting("waiting for heal to see them"):
        case = _eventually(lambda: _case_of(call, arn), until)
    if case is None:
        return stages, None
    stages += [Stage("case opened", case.at), Stage("case read by this drill", datetime.now(UTC))]
    if case.state is State.APPLIED and reached is Mode.HEAL:
        wanted = int(case.steps[0]["after"])
        with call.out.waiting("reading the change back"):
            read = _eventually(lambda: made.needed_seconds == wanted or None, until)
        if read:
            stages.append(Stage(f"read back: {wanted} s", datetime.now(UTC)))
    return stages, case


def _ended(call: Invocation, made: DrillQueue, case: Case | None) -> Ending | None:
    if case is None:
        return None
    ending = Ending(call.account, case)
    with call.out.waiting("taking the change back, ending the case"):
        ending.run(lambda: made.needed_seconds)
    return ending


def _interrupted(call: Invocation, made: DrillQueue, arn: str) -> Stopped:
    """What is left to say once the case has ended, as it would have without the interrupt."""
    ending = _ended(call, made, _case_of(call, arn))
    said = "no case was opened yet"
    if ending is not None:
        said = ending.fault or f"{ending.case.case_id} is {ending.case.state}"
    return Stopped(f"interrupted: {said}; queue {arn.rpartition(':')[2]} is removed")


def _case_of(call: Invocation, arn: str) -> Case | None:
    return call.account.case_store.look(arn, TOO_SHORT.name, ()).case


def _eventually(look: Callable[[], T | None], until: float) -> T | None:
    while True:
        found = look()
        if found is not None or time.monotonic() > until:
            return found
        time.sleep(EVERY_SECONDS)


@dataclass(frozen=True)
class Drilled:
    """What a drill has found; `case` as Mendq left it, None where none came in time."""

    arn: str
    reached: Mode
    stages: list[Stage]
    case: Case | None
    ending: Ending | None

    @property
    def fixed(self) -> bool:
        """Whether Mendq did what the settings let it do."""
        if self.case is None or self.case.state is not _EXPECTED[self.reached][1]:
            return False
        return self.reached is not Mode.HEAL or self.stages[-1].name.startswith("read back")

    @property
    def done(self) -> bool:
        return self.fixed and self.ending is not None and not self.ending.fault

    @property
    def all_stages(self) -> list[dict[str, Any]]:
        """As scripts read them: when each was there, and how long after the calls had failed."""
        every = [*self.stages, *(self.ending.stages if self.ending else ())]
        return [each.document(self.stages[0].at) for each in every]

    def document(self) -> dict[str, Any]:
        case = self.case
        return {
            "queue_arn": self.arn,
            "case_id": case and case.case_id,
            "state": case and str(case.state),
            "reason": case and case.reason,
            "ended_as": self.ending and str(self.ending.case.state),
            "stages": self.all_stages,
            "done": self.done,
        }


def _announced(call: Invocation, found: Drilled) -> Exit:
    call.out.document(found.document())
    shown = table("STAGE", "AT (UTC)", "AFTER THE CALLS FAILED")
    for each in found.all_stages:
        shown.add_row(Text(each["stage"]), each["at"][11:19], f"{each['seconds']} s")
    call.out.show(shown)
    case = found.case
    if case is None:
        line = "no case in time: `mendq doctor` says whether this account's trails can show it"
        call.out.say(line, "red")
        return Exit.FAILED
    style = "green" if found.fixed else "red"
    call.out.say(f"{case.case_id} was {case.state}: {case.reason}", style)
    if found.ending is not None and found.ending.fault:
        call.out.say(found.ending.fault, "red")
    return Exit.DONE if found.done else Exit.FAILED
