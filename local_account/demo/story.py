"""What a story sets up, and what it claims about the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BadQueue:
    """A queue whose lease is too short for its consumers, and how it is to end.

    `works_seconds` is what a consumer takes for one message; `ends_with_seconds` the visibility
    timeout that the queue has to have at the end, `state` the state of its case.
    """

    name: str
    why: str
    visibility_seconds: int
    works_seconds: float
    tags: Mapping[str, str]
    state: str
    ends_with_seconds: int

    @property
    def is_to_be_mended(self) -> bool:
        return self.ends_with_seconds != self.visibility_seconds


LEASE = (
    BadQueue(
        name="invoices.fifo",
        why="may be healed; its tag says that a message takes up to 4 s",
        visibility_seconds=2,
        works_seconds=3.2,
        tags={"mendq": "heal", "mendq:max-processing-seconds": "4"},
        state="applied",
        ends_with_seconds=6,
    ),
    BadQueue(
        name="mails.fifo",
        why="may only be observed",
        visibility_seconds=2,
        works_seconds=3.2,
        tags={"mendq": "observe"},
        state="observed",
        ends_with_seconds=2,
    ),
    BadQueue(
        name="exports.fifo",
        why="may be healed, but its tag asks for more than the ceiling",
        visibility_seconds=2,
        works_seconds=3.2,
        tags={"mendq": "heal", "mendq:max-processing-seconds": "1200"},
        state="refused",
        ends_with_seconds=2,
    ),
)

STORIES = {"lease": LEASE}
