"""Functions that keep a vague name because users call them.

The measure of function names leaves them out: code outside this repository uses the name, and a
better name would break that code. A function that only this repository calls is no exception:
rename it.

An exception that nothing needs any more fails `make check` (`describe_unneeded_exceptions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.architecture.style.names import is_vague_function_name
from tests.architecture.style.source import SourceFile

THIS_FILE = "tests/architecture/style/exceptions.py"


@dataclass(frozen=True)
class NameException:
    """A function, method or property that may keep a vague name.

    Attributes:
        path: Its file, from the root of the repository.
        name: Its name, after the names of the classes and functions around it:
            `VisibilityHeartbeat.held`.
        reason: Who uses the name, and why it stays.
    """

    path: str
    name: str
    reason: str


NAME_EXCEPTIONS = (
    NameException(
        "mendq/consumer/__init__.py",
        "VisibilityHeartbeat.held",
        "Public API of mendq.consumer: consumers read which messages they still hold.",
    ),
    NameException(
        "mendq/consumer/__init__.py",
        "VisibilityHeartbeat.lost",
        "Public API of mendq.consumer: consumers read which messages they lost.",
    ),
)


def describe_unneeded_exceptions(
    exceptions: Sequence[NameException], files: Sequence[SourceFile]
) -> Iterator[str]:
    """Yield a sentence for each exception whose function was renamed, moved or deleted."""
    for exception in exceptions:
        names = [
            function.text
            for file in files
            if file.path == exception.path
            for function in file.functions
        ]
        if exception.name in names and is_vague_function_name(exception.name):
            continue
        yield (
            f"style: {exception.path} has no function `{exception.name}` with a vague name: delete"
            f" this exception from {THIS_FILE}, or correct its path and name there"
        )
