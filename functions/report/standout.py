"""The one queue that stands out, where there is one, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from functions.report.outcomes import why_in_words
from functions.report.summary import UNRESOLVED, Incident, Summary
from functions.report.visible import visible
from functions.report.words import counted, queue_name

# All healed, so it takes a habit to stand out.
FEWEST_HEALED = 3


@dataclass(frozen=True)
class Standout:
    """`queue` `says` and, in a second sentence that may be empty, `because`."""

    queue: str
    says: str
    because: str

    @property
    def sentence(self) -> str:
        return f"{self.queue} {self.says}"


def standout(summary: Summary) -> Standout | None:
    """The queue with most incidents not healed, or, all healed, with most of all incidents.

    A caller's mistakes do not count; a tie in incidents and in failed calls names nobody.
    """
    named = [each for each in summary.cases if each.queue_arn != UNRESOLVED]
    open_ones = [each for each in named if not each.is_healed and not each.is_count_only]
    among = " among the listed incidents" if summary.cases_left_out else ""
    if open_ones:
        return _not_healed(named, open_ones, among)
    return _often_healed([each for each in named if each.is_healed], among)


def _not_healed(named: list[Incident], open_ones: list[Incident], among: str) -> Standout | None:
    queue_arn = _leader(open_ones)
    mine = [each for each in open_ones if each.queue_arn == queue_arn]
    if queue_arn is None or (len(mine) == 1 and len(open_ones) > 1):
        return None
    all_mine = sum(each.queue_arn == queue_arn for each in named)
    # A list that was cut has lost healed ones first, so it cannot say of how many.
    how_many = f"{counted(len(mine), 'incident')} not healed" if among else ""
    says = f"stands out{among}: {how_many or _how_many(len(mine), all_mine)}."
    return Standout(queue_name(queue_arn), says, _because(mine))


def _how_many(open_count: int, count: int) -> str:
    if count == 1:
        return "its one incident was not healed"
    if open_count == count:
        return f"{'neither' if count == 2 else 'none'} of its {count} incidents was healed"
    were = "was" if open_count == 1 else "were"
    return f"{open_count} of its {count} incidents {were} not healed"


def _often_healed(healed: list[Incident], among: str) -> Standout | None:
    queue_arn = _leader(healed)
    mine = [each for each in healed if each.queue_arn == queue_arn]
    if queue_arn is None or len(mine) < FEWEST_HEALED or 2 * len(mine) <= len(healed):
        return None
    says = f"stands out{among}: it had {len(mine)} of the {len(healed)}, all healed."
    return Standout(queue_name(queue_arn), says, _because(mine))


def _leader(incidents: Iterable[Incident]) -> str | None:
    """Most incidents, then most failed calls; None where two have the same of both."""
    weights: dict[str, tuple[int, int]] = {}
    for each in incidents:
        count, failed_calls = weights.get(each.queue_arn, (0, 0))
        weights[each.queue_arn] = (count + 1, failed_calls + each.failed_calls)
    most = max(weights.values(), default=(0, 0))
    leaders = [queue_arn for queue_arn, weight in weights.items() if weight == most]
    return leaders[0] if len(leaders) == 1 else None


def _because(mine: list[Incident]) -> str:
    """The commonest label and, where it was not healed, the commonest reason for that label."""
    label, count = _commonest(each.label for each in mine)
    often = "" if count == len(mine) else f" ({count} of {len(mine)})"
    reasons = [why_in_words(each) for each in mine if each.label == label and not each.is_healed]
    calls = counted(sum(each.failed_calls for each in mine), "failed call")
    reason, _ = _commonest(each for each in reasons if each)
    return f"{visible(label)}{often}, {calls}" + (f": {reason}" if reason else "")


def _commonest(texts: Iterable[str]) -> tuple[str, int]:
    """The text that occurs most, the first in the alphabet of several; empty where none is."""
    counts = Counter(texts)
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
