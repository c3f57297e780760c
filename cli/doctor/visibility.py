"""Which symptoms the trails can show on which queues, and which are blind and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cli.doctor.selectors import Trail, logged
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from infra.data_events import DATA_EVENT_NAMES

OUTSIDE = "no trail logs this queue's calls"
LATE_DELETES_PASS = "a late delete on a standard queue answers 200, so no error shows it"  # noqa: S105 - a sentence
# What no selector can change.
NEVER_SEEN = (
    "batch calls answer 200 and list what failed inside: those failures are in no errorCode",
    "whether CloudTrail logs the calls of Lambda's own pollers is not documented",
    "selectors that ask who calls are taken to let your callers in",
)


@dataclass(frozen=True)
class Sight:
    """One symptom over all managed queues; `blind` and `partly` give the reason by queue."""

    symptom: str
    visible: tuple[str, ...]
    partly: dict[str, str]
    blind: dict[str, str]

    def document(self) -> dict[str, Any]:
        return {
            "symptom": self.symptom,
            "visible": list(self.visible),
            "partly": self.partly,
            "blind": self.blind,
        }


def sights(trails: Sequence[Trail], queue_arns: Sequence[str]) -> Iterator[Sight]:
    """One for every symptom of the catalogue."""
    for symptom in CATALOGUE:
        visible: list[str] = []
        partly: dict[str, str] = {}
        blind: dict[str, str] = {}
        for arn in filter(symptom_can_be_on(symptom), queue_arns):
            why, is_blind = why_not(symptom, trails, arn)
            if why is None:
                visible.append(arn)
            else:
                (blind if is_blind else partly)[arn] = why
        yield Sight(symptom.name, tuple(visible), partly, blind)


def symptom_can_be_on(symptom: Symptom) -> Callable[[str], bool]:
    """Whether it is seen on a queue of that kind at all."""
    return lambda queue_arn: any(each.on(queue_arn) for each in symptom.seen_as)


def why_not(symptom: Symptom, trails: Sequence[Trail], queue_arn: str) -> tuple[str | None, bool]:
    """Why a symptom is not fully visible on a queue (None: it is), and whether it is blind."""
    seen = logged(trails, queue_arn, DATA_EVENT_NAMES)
    if not seen:
        return OUTSIDE, True
    ways = [
        names & frozenset(DATA_EVENT_NAMES)
        for each in symptom.seen_as
        if each.on(queue_arn) and (names := each.event_names or frozenset(DATA_EVENT_NAMES))
    ]
    wanted = frozenset().union(*ways)
    missing = sorted(wanted - seen)
    if missing:
        return f"not logged: {', '.join(missing)}", not wanted & seen
    if symptom.name == "lease_expired" and not queue_arn.endswith(".fifo"):
        return LATE_DELETES_PASS, False
    return None, False


def outside(trails: Sequence[Trail], queue_arns: Sequence[str]) -> list[str]:
    """The queues of which no call is logged."""
    return [each for each in queue_arns if not logged(trails, each, DATA_EVENT_NAMES)]
