"""Read the mute list `mendq.toml`, and apply it to the findings of a run."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.mutes import Mute, MutesUnreadable, explain_stale_mute, read_mutes

FILE_NAME = "mendq.toml"
_MOST_BYTES = 1024 * 1024
# Python's TOML parser takes a time that grows with the square of the dots in one key: with so many
# about a second. 500 mutes with ten dots each are below it.
_MOST_DOTS = 10_000
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The mute list to use.",
        show_default=f"{FILE_NAME} of the current folder, if there is one",
    ),
]


@dataclass
class MuteList:
    """The mutes of a file, and what a run found out about each.

    Attributes:
        file: The file's name. Empty without a file.
        mutes: The mutes.
        today: The day of the run, in UTC.
    """

    file: str = ""
    mutes: tuple[Mute, ...] = ()
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    def __post_init__(self) -> None:
        self._used_counts = Counter[int]()
        self._checked_counts = Counter[int]()
        self._unchecked_counts = Counter[int]()
        self._listed_patterns: tuple[str, ...] | None = None

    def find(self, symptom: str, *queue_names: str) -> Mute | None:
        """Return the mute that leaves a finding out, and remember that it is needed.

        A mute that has ended leaves nothing out.

        Args:
            symptom: The finding's symptom.
            queue_names: The names that the queue has, such as its logical ID in a template.
        """
        found_mute = None
        for number, mute in enumerate(self.mutes):
            if mute.symptom != symptom or not mute.names_queue(*queue_names):
                continue
            self._used_counts[number] += 1
            if not mute.has_ended(self.today):
                found_mute = found_mute or mute
        return found_mute

    def note_checked(self, symptoms: Iterable[str], *queue_names: str) -> None:
        """Remember that a queue was checked for these symptoms, whatever was found."""
        checked_symptoms = frozenset(symptoms)
        for number, mute in enumerate(self.mutes):
            if mute.symptom in checked_symptoms and mute.names_queue(*queue_names):
                self._checked_counts[number] += 1

    def note_unchecked(self, symptoms: Iterable[str], *queue_names: str) -> None:
        """Remember that a queue could not be checked for these symptoms.

        A mute that names this queue is not stale, because the queue may have the symptom.
        """
        unchecked_symptoms = frozenset(symptoms)
        for number, mute in enumerate(self.mutes):
            if mute.symptom in unchecked_symptoms and mute.names_queue(*queue_names):
                self._unchecked_counts[number] += 1

    def note_listed(self, patterns: Iterable[str]) -> None:
        """Remember which queues the run listed: names, or the start of names and a `*`.

        A mute with a `*` is stale only if a pattern covers all of its queues.
        """
        self._listed_patterns = tuple(patterns)

    def _is_checked_everywhere(self, number: int, mute: Mute) -> bool:
        """Return True if the run checked at least one queue of a mute, and missed none."""
        if not self._checked_counts[number] or self._unchecked_counts[number]:
            return False
        if self._listed_patterns is None or not mute.is_of_several_queues:
            return True
        return any(
            pattern.endswith("*") and mute.queue.startswith(pattern[:-1])
            for pattern in self._listed_patterns
        )

    def list_stale(self) -> Iterator[tuple[str, Mute, str]]:
        """Yield the place of each stale or ended mute, the mute, and what to do about it."""
        for number, mute in enumerate(self.mutes):
            because = ""
            if mute.has_ended(self.today):
                because = mute.ended_text
            elif self._is_checked_everywhere(number, mute) and not self._used_counts[number]:
                because = explain_stale_mute(mute.queue, self._checked_counts[number])
            if because:
                yield f"{self.file}, mute {number + 1}", mute, because


def _find_cure_of_bad_line(content: bytes, error_text: str) -> str:
    """Return how to write a day, if the line that the error names should have one; else nothing."""
    line_number = re.search(r"at line (\d+)", error_text)
    lines = content.splitlines()
    if line_number is None or int(line_number[1]) > len(lines):
        return ""
    is_about_day = lines[int(line_number[1]) - 1].lstrip().startswith(b"until")
    return "; write a day that exists, such as until = 2027-06-30" if is_about_day else ""


def read_mute_list(config: Path | None) -> MuteList:
    """Read the mute list: the file that the operator names, or that of the current folder.

    Raises CommandError if a named file is missing, or if a file has mistakes. The text has a line
    for each mistake, with the field and the cure.
    """
    path = config or Path(FILE_NAME)
    try:
        # Only a file that the operator names may be a pipe, as in `--config <(...)`.
        is_pipe_or_device = path.exists() and not (path.is_file() or path.is_dir())
        if config is None and is_pipe_or_device:
            raise CommandError(
                f"{path} is not a regular file (a pipe or a device): remove it, or name the mute "
                "list with --config",
                Exit.USAGE,
            )
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        if config is None:
            return MuteList()
        raise CommandError(f"--config: there is no {config}", Exit.USAGE) from error
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", Exit.USAGE) from error
    if len(content) > _MOST_BYTES:
        raise CommandError(f"{path} is longer than {_MOST_BYTES:,} bytes", Exit.USAGE)
    if content.count(b".") > _MOST_DOTS:
        raise CommandError(
            f"{path} is too large to read (more than {_MOST_DOTS:,} dots): mute several queues "
            "with one *, or delete mutes that have ended",
            Exit.USAGE,
        )
    try:
        document = tomllib.loads(content.decode())
        mutes = read_mutes(document, SYMPTOM_BY_NAME.keys())
    # ValueError: no UTF-8, no TOML, or a number with more digits than Python converts.
    except (ValueError, RecursionError) as error:
        cure = _find_cure_of_bad_line(content, str(error))
        message = f"{path} is not valid TOML: {str(error)[:200]}{cure}"
        raise CommandError(message, Exit.USAGE) from error
    except MutesUnreadable as error:
        raise CommandError(f"{path} has mistakes:\n{error}", Exit.USAGE) from error
    return MuteList(str(path), mutes)
