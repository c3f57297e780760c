"""Keeps what was answered, so that many threads ask for the same thing once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class AskedOnce:
    """Answers by what was asked; an error is an answer too."""

    _answers: dict[Hashable, Future[Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def about(self, asked: Hashable, ask: Callable[[], Answer]) -> Answer:
        """What `ask` answered the first time, or raised."""
        with self._lock:
            known = self._answers.get(asked)
            answer = self._answers.setdefault(asked, Future()) if known is None else known
        if known is None:
            try:
                answer.set_result(ask())
            except Exception as error:  # noqa: BLE001 - raised below, to whoever asked
                answer.set_exception(error)
        found: Answer = answer.result()
        return found

    def knows(self, asked: Hashable) -> bool:
        return asked in self._answers
