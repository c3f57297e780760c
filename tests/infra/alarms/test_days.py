"""Simulated days of an account: which alarms fire, and whom they notify and when.

The alarms come from the synthesized template. CloudWatch's anomaly model is not known here. If it
matters, a story in days.toml assumes the upper edge of its band, and the title says which.
days.toml lists what happens, the expected notifications and the alarms that fire.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mendq.model.state import State
from tests.infra.alarms.simulated import DAY, HOUR, Days, SimulatedCase, make_fixed_case

STORIES = tomllib.loads(Path(__file__).with_name("days.toml").read_text())
_TIME = r"(?:(-?\d+)d)?(\d\d):(\d\d)"
_SPAN = re.compile(rf"({_TIME})(?:-({_TIME}))?(?:/(\d+))?(?:\*(\d+))?")


def _parse_minute(text: str) -> int:
    match = re.fullmatch(_TIME, text)
    assert match, text
    days, hours, minutes = match.groups("0")
    return int(days) * DAY + int(hours) * HOUR + int(minutes)


def _parse_minutes(said: str | list[str]) -> Iterator[int]:
    for span in [said] if isinstance(said, str) else said:
        match = _SPAN.fullmatch(span)
        assert match, span
        first, last, step, times = match.group(1, 5, 9, 10)
        begins = _parse_minute(first)
        for minute in range(begins, _parse_minute(last) if last else begins + 1, int(step or 1)):
            yield from [minute] * int(times or 1)


def _parse_keys(said: Mapping[str, Any]) -> dict[int, Any]:
    return {_parse_minute(text): value for text, value in said.items()}


def _make_case(states: Mapping[int, str]) -> SimulatedCase:
    return SimulatedCase({minute: State(state) for minute, state in states.items()})


def _make_days(said: dict[str, Any]) -> Days:
    opened = [_parse_keys(states) for states in said.pop("lives", [])]
    lives = [_make_case(states) for states in opened]
    lives += [make_fixed_case(minute) for minute in _parse_minutes(said.pop("healed", []))]
    given: dict[str, Any] = {"lives": lives}
    for name, value in said.items():
        given[name] = _parse_field(name, value)
    return Days(**given)


def _parse_field(name: str, value: Any) -> Any:
    if name in ("sent", "messages", "errors"):
        return {key: [*_parse_minutes(times)] for key, times in value.items()}
    if name in ("weeks", "nightly_runs"):
        return {int(day): outcome for day, outcome in value.items()}
    if name == "deliveries":
        return _parse_keys(value)
    if name == "starts":
        return _parse_minute(value)
    return value if name == "settings" else {*_parse_minutes(value)}


@pytest.mark.parametrize("title", STORIES)
def test_simulated_days_give_exactly_the_notifications_and_alarms_of_days_toml(title: str) -> None:
    story = dict(STORIES[title])
    expected = story.pop("told")
    days = story.pop("days")
    edge = story.pop("edge", 1e9)
    evaluator = _make_days(story).run(days, edge)
    fired = f"rang: {', '.join(sorted(evaluator.rang)) or 'none'}"
    heard = [*map(str, evaluator.notices), fired]
    lines = "".join(f'\n  "{line}",' for line in heard)
    assert heard == expected, (
        f"Notifications differ from days.toml below `{title}`. If they are right, write there:\n"
        f"told = [{lines}\n]"
    )
