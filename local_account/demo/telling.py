"""Tells a story while it happens: calls, decisions and pages as they come, until all is shown."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live

from functions.healing.states import State
from local_account.demo import picture
from local_account.demo.deployed_schedule import FOLLOW_UP, DeployedSchedule
from local_account.demo.mailbox import Mailbox
from local_account.demo.operator_shell import OperatorShell
from local_account.demo.stage import ActFailed, Shown, Stage
from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import Running
from local_account.demo.watching import Watch
from local_account.process import LocalAccount

PATIENCE_SECONDS = 60
LOOK_EVERY_SECONDS = 0.25


class Telling:
    """One story in one account; `tell` returns when all of it was shown, or patience ends.

    Then `faults` are the acts that did not end as they claim, `clock_put_forward` how far the
    follow-up's clock was put forward, and why, `floors_lowered` which bounds the story lowered, and
    `letters` what became of letters, where some went back.
    """

    def __init__(
        self,
        story: Story,
        account: LocalAccount,
        watch: Watch,
        mailbox: Mailbox,
        console: Console,
    ) -> None:
        self.faults: list[str] = []
        self.clock_put_forward: list[str] = []
        self.floors_lowered: list[str] = []
        self.letters: dict[str, Any] = {}
        self._also: list[Shown] = []
        self._story = story
        self._account = account
        self._watch = watch
        self._mailbox = mailbox
        self._console = console
        self._said: set[tuple[str, str | None]] = set()

    def tell(self, running: Sequence[Running]) -> None:
        """Start the calls, show what comes of them, and end them."""
        self._watch.begin()
        with self._live():
            try:
                for bad, each in zip(self._story.queues, running, strict=True):
                    if not bad.begins_in_an_act:
                        each.start()
                self._until_told(running)
                self._until_acted(running)
            finally:
                for each in running:
                    each.put_down()
                for each in running:
                    each.stop()
            self._look()

    @contextmanager
    def _live(self) -> Iterator[None]:
        """The table below the events; what follows begins on a line of its own."""
        try:
            with Live(
                console=self._console,
                get_renderable=self._standing,
                refresh_per_second=4,
            ):
                yield
        finally:
            if not self._console.is_terminal:
                self._console.line()  # Live does that on terminals alone

    def _standing(self) -> RenderableType:
        below = (each() for each in self._also)
        return Group(picture.standing(self._story, self._watch), *below)

    def _until_told(self, running: Sequence[Running]) -> None:
        while self._watch.seconds() < PATIENCE_SECONDS:
            self._look()
            shown = [self._is_shown(bad) for bad in self._story.queues]
            for bad, calls, is_shown in zip(self._story.queues, running, shown, strict=True):
                if is_shown and not bad.ends_in_an_act:
                    calls.put_down()
            if all(shown) and (self._story.acts or self._all_pages_came()):
                return
            time.sleep(LOOK_EVERY_SECONDS)

    def _all_pages_came(self) -> bool:
        return len(self._mailbox.messages) >= self._story.pages

    def _until_acted(self, running: Sequence[Running]) -> None:
        """One act after the other; the first that fails is the last."""
        if not self._story.acts:
            return
        stage = Stage(
            account=self._account,
            watch=self._watch,
            console=self._console,
            running=dict(zip(self._watch.queues, running, strict=True)),
            look=self._look,
            follow_up=DeployedSchedule.of(self._account, FOLLOW_UP),
            shell=OperatorShell(self._account, self._console.width),
            clock_put_forward=self.clock_put_forward,
            floors_lowered=self.floors_lowered,
            also=self._also,
            letters=self.letters,
        )
        try:
            for act in self._story.acts:
                act.tell(stage)
            stage.until(self._all_pages_came, f"{self._story.pages} pages")
        except ActFailed as failed:
            self.faults.append(f"{failed}")

    def _look(self) -> None:
        """Look once and print what is new; how often a call ended alike, the table counts."""
        for (name, fault), times in self._watch.outcomes_since().items():
            if (name, fault) not in self._said:
                self._said.add((name, fault))
                bad = next(each for each in self._story.queues if each.name == name)
                self._console.print(picture.calls_event(self._watch, bad, fault, times))
        new_pages = self._mailbox.look()  # first: a case is written down before it pages
        for case in self._watch.look():
            self._console.print(picture.case_event(self._watch, case))
        for page in new_pages:
            self._console.print(picture.page_event(self._watch, page))

    def _is_shown(self, bad: BadQueue) -> bool:
        """A queue that is mended at once has to work again, too; what begins in an act can wait."""
        seen = self._watch.queues[bad.name]
        is_mended = bad.state is State.APPLIED and bad.is_to_be_mended
        works = not is_mended or seen.calls_well >= bad.traffic.convincing
        return bad.begins_in_an_act or (seen.case is not None and works)
