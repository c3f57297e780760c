"""Which of our metrics exist all month: told by the Lambdas' own telemetry."""

from __future__ import annotations

from cli.cost.series import hours_a_month, sent
from functions.healing.night_watch import NightMetric
from functions.healing.own_metrics import WHEN_SOMETHING_HAPPENS, OwnMetric


def test_every_metric_is_either_always_there_or_comes_with_something() -> None:
    always = frozenset().union(*sent().values())
    assert always | WHEN_SOMETHING_HAPPENS == {*OwnMetric, *NightMetric}
    assert always & WHEN_SOMETHING_HAPPENS == set()


def test_what_is_sent_each_minute_exists_all_month() -> None:
    hours = hours_a_month({"follow_up": 43_200}, 720)
    assert hours["EscalatedCasesOpen"] == hours["AutoFixes"] == 720


def test_what_is_sent_once_a_night_is_billed_for_thirty_hours() -> None:
    hours = hours_a_month({"start_night": 30, "pulse": 720, "sweep": 4_320, "approve": 9}, 720)
    assert hours["NightsWritten"] == 30
    assert hours["PulsesLostInARow"] == 720
    assert not {"FailedCallsSeen", "SweptQueues"} & hours.keys()
    assert "EscalatedCasesOpen" not in hours
