"""The stages of a drill, each timed, and its end: the fix taken back, the case nobody's work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cli.account import Account
from functions.aws.approving import DECISIONS
from functions.healing.case import Case

# A person's words that end a case without a change to the queue, the plainest first.
_ENDING = ("close", "decline")


@dataclass(frozen=True)
class Stage:
    """Something that was waited for, and when it was there."""

    name: str
    at: datetime

    def document(self, start: datetime) -> dict[str, Any]:
        seconds = round((self.at - start).total_seconds(), 1)
        return {"stage": self.name, "at": self.at.isoformat(), "seconds": seconds}


@dataclass
class Ending:
    """What became of the drill's case; `fault` is empty where it has ended."""

    account: Account
    case: Case
    stages: list[Stage] = field(default_factory=list)
    fault: str = ""

    def run(self, lease_seconds: Callable[[], int]) -> None:
        """Take the fix back, where one was made, then end the case, where that has not.

        `lease_seconds` reads what stands in the queue.
        """
        if self.case.has_written:
            self._ask("RollBackFunction", dry_run=False)
            self._stage(f"fix taken back: {lease_seconds()} s")
        self.case = self._newest()
        if word := self._ending_word():
            self._ask("ApproveFunction", decision=word)
            self.case = self._newest()
        if self.case.is_final:
            self._stage(f"case ended: {self.case.state}")
        else:
            because = self.fault or "its change could not be taken back"
            self.fault = f"{self.case.case_id} stays {self.case.state}: {because}"

    def _ending_word(self) -> str | None:
        return next((each for each in _ENDING if self.case.state in _out_of(each)), None)

    def _ask(self, output: str, **said: object) -> None:
        event = {"case_id": self.case.case_id, "actor": self.account.identity, **said}
        answer = self.account.invoke(output, event)
        self.fault = str(answer.get("reason") or answer["error"]) if "error" in answer else ""

    def _newest(self) -> Case:
        return self.account.open_cases.transitions(self.case.case_id)[-1]

    def _stage(self, name: str) -> None:
        if not self.fault:
            self.stages.append(Stage(name, datetime.now(UTC)))


def _out_of(word: str) -> tuple[str, ...]:
    return DECISIONS[word].move.out_of
