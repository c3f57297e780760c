"""The reviewed list: guards that no test can reach, each with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from msgspec import convert

from tests.prove.guards.guard import Guard

LIST = Path(__file__).with_name("reviewed.yaml")
MOST_ENTRIES = 15
# A shorter text gives no reason.
SHORTEST_REASON = 40
# Where a refusal that is lost changes a queue, or deletes or moves messages. It has to be tested.
NEVER_LISTED = (
    "mendq.aws.dlqs",
    "mendq.aws.queue",
    "mendq.cli.deploy.drill",
    "mendq.cli.redrive",
    "mendq.consumer",
    "mendq.heal",
    "mendq.model.dlq",
    "mendq.model.policy",
    "mendq.model.queue",
    "mendq.model.steps",
    "mendq.redrive",
)


@dataclass(frozen=True)
class Entry:
    """One guard that is not asked for, by its name, and why no test can reach it."""

    guard: str
    reason: str


def load() -> tuple[Entry, ...]:
    """Load the list of reviewed guards from `reviewed.yaml`."""
    return convert(yaml.safe_load(LIST.read_text()) or [], tuple[Entry, ...])


def faults_in(entries: Sequence[Entry], guards: Iterable[Guard]) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with the list."""
    by_name = {guard.name: guard for guard in guards}
    if len(entries) > MOST_ENTRIES:
        yield (
            f"{LIST.name} has {len(entries)} entries, and at most {MOST_ENTRIES} are allowed: "
            "write tests for some of these guards"
        )
    for name, times in Counter(entry.guard for entry in entries).items():
        if times > 1:
            yield f"{LIST.name} names {name} {times} times: remove all but one"
    for entry in entries:
        guard = by_name.get(entry.guard)
        if guard is None:
            yield (
                f"{LIST.name} names {entry.guard}, which is not in the code: the guard has gone or "
                "has another name now. Remove the entry or correct it"
            )
        elif guard.is_refusal and _is_below(guard.module, NEVER_LISTED):
            yield (
                f"{LIST.name} names {entry.guard}, and without that refusal Mendq changes a queue "
                "or deletes messages. Write a test for it and remove the entry"
            )
        if len(entry.reason.strip()) < SHORTEST_REASON:
            yield f"{LIST.name} gives no reason for {entry.guard}: say why no test can reach it"


def _is_below(module: str, packages: Iterable[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)
