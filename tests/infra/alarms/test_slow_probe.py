"""The alarm on lost probes stays within what CloudWatch takes, however seldom a probe is made."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from infra.settings.deployment import TimingBounds
from infra.settings.reading import words_of
from tests.infra.alarms.evaluator import Data, MetricAlarm, State
from tests.infra.synthesized import template_with
from tests.infra.template_rules import RULES

A_DAY_SECONDS = 86_400


def _alarm(probe_minutes: int) -> dict[str, Any]:
    """After asking the rule that every alarm of the template has to keep."""
    template = template_with({"timing": {"probeMinutes": probe_minutes}})
    assert list(RULES["alarms_can_fire"].findings(template)) == []
    (found,) = (
        each["Properties"]
        for each in template.all("AWS::CloudWatch::Alarm").values()
        if each["Properties"]["AlarmName"] == "mendq-probe-lost"
    )
    return dict(found)


def test_the_ends_of_what_is_legal_are_those_that_are_tried() -> None:
    kind = get_type_hints(TimingBounds, include_extras=True)["probe_minutes"]
    assert words_of(kind) == "whole number from 20 to 1440"


@pytest.mark.parametrize("probe_minutes", [20, 1_430, 1_431, 1_440])
def test_a_probe_is_always_in_situation_and_no_period_is_too_long(probe_minutes: int) -> None:
    alarm = _alarm(probe_minutes)
    seconds = alarm["Period"] * alarm["EvaluationPeriods"]
    assert alarm["Period"] <= A_DAY_SECONDS
    assert alarm["Period"] % 60 == 0
    assert seconds >= (probe_minutes + 10) * 60, "a probe that comes late is still seen"
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]


@pytest.mark.parametrize("late_minutes", [0, 9])
@pytest.mark.parametrize(("lost", "rings"), [((0, 0, 0, 0), False), ((0, 1, 2, 3), True)])
def test_a_probe_a_day_rings_where_it_is_lost_alone(
    lost: tuple[int, ...], rings: bool, late_minutes: int
) -> None:
    alarm = MetricAlarm.read(_alarm(1_440))
    data = Data()
    for day, value in enumerate(lost):
        data.put(alarm.series, day * 1_440 + late_minutes * (day % 2), value)
    states = set()
    for minute in range(1_440, 4 * 1_440):
        alarm.look(data, minute, lambda _: 0.0)
        states.add(alarm.state)
    assert (State.ALARM in states) is rings
