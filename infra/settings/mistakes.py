"""A user's mistakes in the settings: all of them at once, each with its field and its cure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Mistake:
    """One field that cannot stay as it is; `path` as the user wrote it."""

    path: str
    fault: str
    cure: str

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}; {self.cure}"


class SettingsRefused(Exception):
    """The settings are not deployed; `str` gives one line per mistake."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


def nearest(word: str, known: Iterable[str]) -> str:
    """The cure for a word that is none of the known ones."""
    names = sorted(known)
    lowered = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]}?" if close else f"say one of {', '.join(names)}"
