"""Lives of cases, and the bursts that they join or just miss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ENDINGS = (
    "observed",
    "refused",
    "proposed!",
    "proposed! declined",
    "proposed! expired",
    "proposed! approved",
    "proposed! approved applied verified",
    "proposed! approved applied verified watching closed",
    "proposed! approved applied ineffective",
    "approved applied",
    "approved applied! verified",
    "applied",
    "applied unverified",
    "applied verified",
    "applied verified watching",
    "applied verified watching closed",
    "applied verified watching ineffective applied verified watching closed",
    "applied ineffective",
    "applied ineffective escalated!",
    "applied! rolled_back",
    "applied verified watching closed rolled_back",
    "escalated!",
    "overridden!",
    "applied overridden!",
)
SYMPTOM = "visibility_timeout_too_short"


@dataclass(frozen=True)
class Plan:
    """A burst on a queue of its own, and its cases: endings, and when the evidence was taken."""

    burst: tuple[float, ...]
    cases: tuple[tuple[str, float, float], ...]
    symptom: str = SYMPTOM
    queue: str | None = None
    hours_apart: float = 1.05
    evidence_grows: bool = False


def plans() -> Iterator[Plan]:
    """Times are seconds from the burst's beginning."""
    burst = (0, 60, 120)
    for ending in ENDINGS:
        yield Plan(burst, ((ending, 0, 120),))
    for first, last in OVERLAPS:
        yield Plan(burst, (("applied verified", first, last),))
    yield Plan(burst, (("observed", 0, 60), ("applied! verified", 60, 121)))
    yield Plan(burst, (("escalated!", 100, 120), ("applied verified watching", 0, 1)))
    yield Plan((*burst, 2000, 2060, 2120), (("applied verified", 100, 2010),))
    yield Plan(burst, (("applied verified", 0, 120),), symptom="kms_throttled")
    yield Plan(burst, (("applied verified", 0, 120),), queue="another")
    yield Plan(burst, (("applied! ineffective applied", -9_500, -9_400),), evidence_grows=True)
    life = "proposed! approved applied ineffective applied verified watching"
    yield Plan(burst, ((life, -9.5 * DAY, -9.4 * DAY),), hours_apart=48, evidence_grows=True)
    yield from UNSEEN


OVERLAPS = (
    (-600, 0), (-600, -0.001), (120, 600), (120.001, 600), (30, 31), (-600, 600), (120, 120),
)  # fmt: skip
DAY = 86_400.0
UNSEEN = (
    Plan((0, 60), ()),
    Plan((0, 60, 601), ()),
    Plan((0, 60, 120), ()),
    Plan((0, 60, 120), (("applied", -DAY, -DAY + 60),)),
    Plan((0, 60, 120), (("applied", -6.5 * DAY, -6.5 * DAY + 60),)),
    Plan((0, 60, 120), (("escalated!", -7.5 * DAY, -7.5 * DAY + 60),)),
    Plan((0, 60, 120), (("observed", -DAY, -DAY + 60), ("observed", DAY, DAY + 60))),
    Plan((0, 60, 120), (("observed", -DAY, -DAY + 60),)),
    Plan((0, 60, 120), (("observed", DAY, DAY + 60),)),
    Plan((0, 60, 120), (("observed", -8 * DAY, -8 * DAY + 60), ("observed", DAY, DAY + 60))),
    Plan((0, 60), (("observed", -DAY, -DAY + 60), ("observed", DAY, DAY + 60))),
    Plan((0, 60, 120), (("applied ineffective", -9.5 * DAY, -9.5 * DAY),), hours_apart=108),
    Plan((0, 60, 120), (("applied verified watching closed rolled_back", -13_200, -13_100),)),
)
