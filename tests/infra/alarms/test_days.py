"""Days of an account, minute by minute: who is paged of what, when, and for how long.

The alarms are read from the synthesized template. What CloudWatch's anomaly model would learn is
not known here: where it counts, the upper edge of its band is assumed, and the title says as what.
What happens, what people are told, and which alarms rang stands in days.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mendq.model.state import State
from tests.infra.alarms.simulated import DAY, HOUR, Days, Life, healed

STORIES = tomllib.loads(Path(__file__).with_name("days.toml").read_text())
_TIME = r"(?:(-?\d+)d)?(\d\d):(\d\d)"
_SPAN = re.compile(rf"({_TIME})(?:-({_TIME}))?(?:/(\d+))?(?:\*(\d+))?")


def _minute(text: str) -> int:
    found = re.fullmatch(_TIME, text)
    assert found, text
    days, hours, minutes = found.groups("0")
    return int(days) * DAY + int(hours) * HOUR + int(minutes)


def _minutes(said: str | list[str]) -> Iterator[int]:
    for span in [said] if isinstance(said, str) else said:
        found = _SPAN.fullmatch(span)
        assert found, span
        first, last, step, times = found.group(1, 5, 9, 10)
        begins = _minute(first)
        for minute in range(begins, _minute(last) if last else begins + 1, int(step or 1)):
            yield from [minute] * int(times or 1)


def _by_minute(said: Mapping[str, Any]) -> dict[int, Any]:
    return {_minute(each): value for each, value in said.items()}


def _days(said: dict[str, Any]) -> Days:
    opened = [_by_minute(each) for each in said.pop("lives", [])]
    lives = [Life({at: State(to) for at, to in each.items()}) for each in opened]
    lives += [healed(each) for each in _minutes(said.pop("healed", []))]
    given: dict[str, Any] = {"lives": lives}
    for name, value in said.items():
        if name in ("sent", "messages", "errors"):
            given[name] = {key: [*_minutes(each)] for key, each in value.items()}
        elif name in ("weeks", "nightly_runs"):
            given[name] = {int(day): each for day, each in value.items()}
        elif name == "deliveries":
            given[name] = _by_minute(value)
        elif name == "starts":
            given[name] = _minute(value)
        else:
            given[name] = value if name == "settings" else {*_minutes(value)}
    return Days(**given)


@pytest.mark.parametrize("title", STORIES)
def test_simulated_days_give_exactly_the_notifications_and_alarms_of_days_toml(title: str) -> None:
    said = dict(STORIES[title])
    told, days, edge = said.pop("told"), said.pop("days"), said.pop("edge", 1e9)
    found = _days(said).run(days, edge)
    rang = f"rang: {', '.join(sorted(found.rang)) or 'none'}"
    heard = [*map(str, found.notices), rang]
    lines = "".join(f'\n  "{line}",' for line in heard)
    assert heard == told, (
        f"What days.toml tells below `{title}` is not what people hear. If this is right, write it "
        f"there:\ntold = [{lines}\n]"
    )
