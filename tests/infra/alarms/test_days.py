"""Days of an account, minute by minute: who is paged of what, when, and for how long.

The alarms are read from the synthesized template. What CloudWatch's anomaly model would learn is
not known here: where it counts, the upper edge of its band is assumed, and the title says as what.
What people are told, and which alarms rang, stands in days.txt, which
`python -m tests.infra.alarms.test_days` writes anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import pytest

from mendq.model.case import State
from mendq.model.names import HEARTBEAT, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from tests.infra.alarms.simulated import (
    DAY,
    HOUR,
    SCAN_ENDS,
    SCANNED_EACH,
    Days,
    Life,
    Minutes,
    healed,
    own,
)

TOLD = Path(__file__).with_name("days.txt")
NOON = 12 * HOUR
FROM_NOON = NOON + SCAN_ENDS
SCANS = range(FROM_NOON, DAY, SCANNED_EACH)
# Where fixes are rare, the band lies below one.
NOTHING_IS_USUAL, EVERYTHING_IS = 0.5, 1e9
DRIP = [healed(NOON + 3 * n) for n in range(60)]
STORM = [healed(NOON + n // 10) for n in range(100)]


def _sent(metric: OwnMetric | NightlyMetric, minutes: Minutes, value: float = 1.0) -> Days:
    return Days(more={own(metric.value): dict.fromkeys(minutes, value)})


def _forged(metric: OwnMetric | NightlyMetric, minutes: Minutes, days: Days) -> Days:
    days.more = {own(metric.value): dict.fromkeys(minutes, 1.0)}
    return days


def _failing(function: str, minutes: Minutes) -> Days:
    return Days(errors={f"{function}Function": minutes})


# By their titles: what happens, for how many days, and where it counts the band's edge.
STORIES: Mapping[str, tuple[Days, int] | tuple[Days, int, float]] = {
    "quiet days": (Days(), 3, NOTHING_IS_USUAL),
    "a healed fault": (Days(lives=[healed(NOON)]), 3, NOTHING_IS_USUAL),
    "one fault on many queues that is healed, wherever quarters of an hour part its fixes": (
        Days(lives=[healed(NOON + n // 2) for n in range(8)]),
        1,
        NOTHING_IS_USUAL,
    ),
    "an escalation lasts as long as its case, though the follow-up is silent in between": (
        Days(
            lives=[Life({NOON: State.ESCALATED, 2 * DAY + 17 * HOUR: State.CLOSED})],
            follow_up_down=range(DAY, DAY + 8),
        ),
        4,
    ),
    "a second escalation is not paged again and keeps the first one's alarm": (
        Days(
            lives=[
                Life({NOON: State.ESCALATED, NOON + 90: State.CLOSED}),
                Life({NOON + 60: State.ESCALATED, NOON + 300: State.CLOSED}),
            ]
        ),
        1,
    ),
    "a proposal": (Days(lives=[Life({NOON: State.PROPOSED, NOON + DAY: State.EXPIRED})]), 3),
    "a storm of ten fixes a minute meets the ceiling, and nothing holds that back": (
        Days(lives=STORM),
        1,
    ),
    "the ceiling pages whatever is being verified": (
        _forged(
            OwnMetric.FIXES_BEING_VERIFIED, range(NOON - 5, NOON + 400), Days(lives=list(STORM))
        ),
        1,
    ),
    "five fixes a quarter of an hour that go on, where two are usual": (Days(lives=DRIP), 1, 2),
    "as many fixes as usual: the edge is six": (Days(lives=DRIP), 1, 6),
    "a follow-up that is down": (Days(follow_up_down=range(NOON, NOON + 90)), 1),
    "a follow-up that misses nine minutes": (Days(follow_up_down=range(NOON, NOON + 9)), 1),
    "forged signs of life hide no follow-up that is not started": (
        _forged(HEARTBEAT, range(-DAY, DAY), Days(follow_up_down=range(NOON, NOON + 90))),
        1,
    ),
    "forged signs of life hide no follow-up that fails": (
        _forged(HEARTBEAT, range(-DAY, DAY), Days(follow_up_failing=range(NOON, NOON + 90))),
        1,
    ),
    "nothing is sent all day: an open case's alarm stays": (
        Days(
            lives=[Life({HOUR: State.ESCALATED, 3 * DAY: State.CLOSED})],
            silent=range(NOON, NOON + DAY),
        ),
        2,
    ),
    "probes that are lost until one is seen": (Days(probes_unseen=range(NOON, NOON + 5 * HOUR)), 1),
    "one probe that is lost": (Days(probes_unseen=range(NOON, NOON + HOUR)), 1),
    "probes that are not made any more": (Days(probe_down=range(NOON, 2 * DAY)), 1),
    "a failed nightly run rings until one is written": (Days(nightly_runs={0: "failed"}), 2),
    "a nightly run that does not come": (Days(nightly_runs={0: "none"}), 2),
    "a nightly run that read nothing": (Days(nightly_runs={1: "little"}), 3),
    "forged nightly runs hide that none was written, as the threat model says": (
        _forged(
            NightlyMetric.WRITTEN,
            range(0, 3 * DAY, HOUR),
            Days(nightly_runs={0: "none", 1: "none", 2: "none"}),
        ),
        3,
    ),
    "an undelivered report rings until one is delivered": (
        Days(deliveries={NOON: False, NOON + 2: False, NOON + 5: False, DAY + NOON: True}),
        3,
    ),
    "without a sender no report is missed": (
        Days(settings="default", deliveries={NOON: False}),
        1,
    ),
    "a report that was not delivered hides no nightly run": (
        Days(deliveries={NOON: False}, nightly_runs={1: "none", 2: "failed"}),
        3,
    ),
    "a failed week rings at once and a missing report two days later": (
        Days(weeks={-14: True, -7: True, 0: False, 7: True}),
        9,
    ),
    "a DLQ of ours rings until it is emptied": (
        Days(messages={"StartNightlyDlq": range(NOON, NOON + 3 * DAY)}),
        5,
    ),
    "failed calls that cannot be handed over": (
        Days(messages={"IntakeUndelivered": range(NOON, NOON + HOUR)}),
        1,
    ),
    "a message that lies for days hides no follow-up that dies, no probe and no heal": (
        Days(
            messages={"IntakeUndelivered": range(HOUR, 3 * DAY)},
            follow_up_down=range(DAY, 2 * DAY),
            probes_unseen=range(DAY, 2 * DAY),
            errors={"HealFunction": range(DAY, DAY + 30)},
        ),
        3,
    ),
    "one odd message hides neither another queue's nor a Lambda that fails": (
        Days(
            messages={"IntakeDlq": range(HOUR, 3 * DAY), "StartNightlyDlq": range(DAY, 3 * DAY)},
            errors={"RedriveFunction": range(DAY + HOUR, 2 * DAY, 5)},
        ),
        3,
    ),
    "heal fails once": (_failing("Heal", [NOON]), 1),
    "heal fails for a quarter of an hour": (_failing("Heal", range(NOON, NOON + 15)), 1),
    "redrive fails twice": (_failing("Redrive", [NOON, NOON + 5]), 1),
    "a failed call that heal can never handle comes again five times before it is parked": (
        _sent(OwnMetric.HEAL_ERRORS, range(NOON, NOON + 30, 6)),
        1,
    ),
    "what the third try of heal does": (_sent(OwnMetric.HEAL_ERRORS, [NOON, NOON + 6]), 1),
    "what fails every few minutes is one alarm": (
        _sent(OwnMetric.HEAL_ERRORS, range(NOON, DAY - 2 * HOUR, 8)),
        1,
    ),
    "what fails now and then and goes well after": (
        _sent(OwnMetric.HEAL_ERRORS, range(NOON, DAY, 40)),
        1,
    ),
    "one queue that heal can do nothing for hides no heal that is gone": (
        Days(
            more={own(OwnMetric.HEAL_ERRORS.value): dict.fromkeys(range(HOUR, NOON, 6), 1.0)},
            errors={"HealFunction": range(NOON, DAY)},
        ),
        1,
    ),
    "a follow-up that moves nothing": (
        _sent(OwnMetric.FOLLOW_UP_ERRORS, range(NOON, DAY - 2 * HOUR, 6)),
        1,
    ),
    "scans that fail for an hour": (_failing("Scan", range(FROM_NOON, FROM_NOON + 80, 10)), 1),
    "one scan in three that ends well is enough": (
        _failing("Scan", [each for n, each in enumerate(SCANS) if n % 3]),
        1,
    ),
    "two scans that fail at a queue": (
        _sent(OwnMetric.SCAN_ERRORS, [FROM_NOON, FROM_NOON + HOUR]),
        1,
    ),
    "no scan is run": (Days(scan_down=range(NOON, NOON + 6 * HOUR)), 1),
    "every scan fails": (
        _failing("Scan", range(FROM_NOON, FROM_NOON + 6 * HOUR, SCANNED_EACH)),
        1,
    ),
    "some queues that the scan may not look at, each hour": (
        _sent(OwnMetric.SCAN_ERRORS, range(FROM_NOON, FROM_NOON + 6 * HOUR, HOUR)),
        1,
    ),
    "a queue that fails for days hides no scan that is not run": (
        Days(
            more={own(OwnMetric.SCAN_ERRORS.value): dict.fromkeys(range(5, 2 * DAY, HOUR), 1.0)},
            scan_down=range(DAY, DAY + 6 * HOUR),
        ),
        2,
    ),
    "forged findings hide no scan that is dead": (
        _forged(OwnMetric.SCANNED_QUEUES, range(-DAY, DAY), Days(scan_down=range(NOON, 2 * DAY))),
        1,
    ),
    "a first deployment says what is true, until the first scan, probe and nightly run": (
        Days(starts=NOON, nightly_runs=dict.fromkeys(range(-20, 1), "none")),
        2,
    ),
}


def _told(title: str) -> list[str]:
    days, number, *edge = STORIES[title]
    notices = days.run(number, *edge)
    lines = [
        f"{each} ({'urgent' if each.topic.startswith('TopicsUrgent') else 'info'})"
        for each in notices
    ]
    return [*lines, f"rang: {', '.join(sorted(days.rang)) or 'none'}"]


def _expected() -> Iterator[tuple[str, list[str]]]:
    title = ""
    for is_title, lines in groupby(TOLD.read_text().splitlines(), lambda e: e.startswith("# ")):
        if is_title:
            (title,) = (each.removeprefix("# ") for each in lines)
        else:
            yield title, list(lines)


@pytest.mark.parametrize(("title", "lines"), [*_expected()] if TOLD.exists() else [])
def test_people_are_told_what_happens(title: str, lines: list[str]) -> None:
    assert _told(title) == lines


def test_every_day_is_looked_at() -> None:
    assert [title for title, _ in _expected()] == list(STORIES)


if __name__ == "__main__":
    TOLD.write_text("".join(f"# {each}\n" + "\n".join(_told(each)) + "\n" for each in STORIES))
