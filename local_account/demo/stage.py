"""What an act of a story works with: the account, its queues and calls, the clock, the command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from rich.console import Console, RenderableType

from functions.healing.states import State
from local_account.demo import picture
from local_account.demo.deployed_schedule import DeployedSchedule
from local_account.demo.operator_shell import OperatorShell
from local_account.demo.traffic import Running
from local_account.demo.watching import Seen, Watch
from local_account.process import LocalAccount
from local_account.where import ACCOUNT, REGION

PATIENCE_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.25
FIRE_AGAIN_SECONDS = 3.0
Shown = Callable[[], RenderableType]


class ActFailed(Exception):
    """What did not come in time, or ended otherwise than the act claims."""


@dataclass(frozen=True)
class Stage:
    """`look` shows what is new since the last look.

    `clock_put_forward` and `floors_lowered` collect what the story is not to keep to itself, `also`
    what is drawn below the queues, `letters` what became of letters, for machines.
    """

    account: LocalAccount
    watch: Watch
    console: Console
    running: Mapping[str, Running]
    look: Callable[[], None]
    follow_up: DeployedSchedule
    shell: OperatorShell
    clock_put_forward: list[str] = field(default_factory=list)
    floors_lowered: list[str] = field(default_factory=list)
    also: list[Shown] = field(default_factory=list)
    letters: dict[str, Any] = field(default_factory=dict)

    def say(self, who: str, what: str, style: str = "cyan") -> None:
        self.console.print(picture.event(self.watch, who, what, style))

    def seen(self, name: str) -> Seen:
        return self.watch.queues[name]

    def arn_of(self, name: str) -> str:
        """Of a queue of this account that is none of the story's."""
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"

    def states(self, name: str) -> list[State]:
        """Those that its case has been in, first to last."""
        return [State(each["to"]) for each in self.watch.transitions(name)]

    def case_id(self, name: str) -> str:
        return str(self.watch.transitions(name)[-1]["case_id"])

    def begin(self, names: Iterable[str]) -> None:
        for name in names:
            self.running[name].start()

    def end(self, names: Iterable[str]) -> None:
        """Return when nobody calls them any more."""
        ending = [self.running[name] for name in names]
        for each in ending:
            each.put_down()
        for each in ending:
            each.stop()
        self.look()

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Look until it has happened; raise ActFailed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if time.monotonic() > deadline:
                raise ActFailed(f"{what} did not come within {PATIENCE_SECONDS:.0f} s")
            time.sleep(LOOK_EVERY_SECONDS)
            self.look()

    def until_in(self, names: Iterable[str], state: State) -> None:
        """Until every one's case has come to that state."""
        waited = tuple(names)
        what = f"{state} of {', '.join(waited)}"
        self.until(lambda: all(state in self.states(each) for each in waited), what)

    def follow_up_until(self, names: Iterable[str], state: State, at: datetime | None) -> None:
        """Fire the follow-up for `at`, or for now, until their cases come to that state.

        Level-triggered: fired again it does no harm.
        """
        waited, fired_at = tuple(names), float("-inf")

        def happened() -> bool:
            nonlocal fired_at
            if all(state in self.states(each) for each in waited):
                return True
            if time.monotonic() >= fired_at + FIRE_AGAIN_SECONDS:
                fired_at = time.monotonic()
                self.follow_up.fire(at)
            return False

        self.until(happened, f"{state} of {', '.join(waited)}")

    def mendq(self, *arguments: str, code: int) -> None:
        """Run the command as an operator would and show it; raise ActFailed for another code."""
        done = self.shell.mendq(*arguments)
        self.console.print(done.shown())
        if done.code != code:
            raise ActFailed(f"{done.line} exited with {done.code}, expected {code}")
        self.look()


class Act(Protocol):
    """One thing that happens to cases after they were opened."""

    def tell(self, stage: Stage) -> None:
        """Have it happen and show it; raise ActFailed."""
