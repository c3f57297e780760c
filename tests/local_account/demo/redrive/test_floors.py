"""What the story lowers, it says; what keeps a redrive safe it leaves as it ships."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from functions.healing.mode import Mode
from functions.healing.redrive_bounds import LOWEST_SOAK_FACTOR, Bounds
from functions.settings import RedriveSettings
from local_account.demo.redrive import floors

DEPLOYED = RedriveSettings(
    account="000000000000",
    ledger_table="ledger",
    case_bucket="cases",
    urgent_topic_arn="urgent",
    info_topic_arn="info",
    tag_may_raise_to=Mode.HEAL,
)


class Account:
    """One with the redrive Lambda deployed; `environment` is the Lambda's."""

    outputs = {"RedriveFunction": "mendq-redrive"}  # noqa: RUF012

    def __init__(self) -> None:
        self.environment = {**DEPLOYED.to_environment(), "POWERTOOLS_LOG_LEVEL": "INFO"}

    def client(self, _service: str) -> Any:
        return self

    def get_function_configuration(self, **_: str) -> dict[str, Any]:
        return {"Environment": {"Variables": self.environment}}

    def update_function_configuration(self, **given: Any) -> None:
        assert given["FunctionName"] == "mendq-redrive"
        self.environment = given["Environment"]["Variables"]


def _differ() -> set[str]:
    shipped = asdict(Bounds())
    return {name for name, value in asdict(floors.LOWERED).items() if value != shipped[name]}


def test_each_bound_that_is_lowered_has_a_line() -> None:
    lines = floors.lines()
    assert {each.partition(":")[0] for each in lines} == {f"redrive.{each}" for each in _differ()}
    assert "redrive.halt_share: 0.25 instead of 0.05" in lines


def test_the_soak_s_length_is_the_queue_s_own() -> None:
    """1.2 times as long as a poison letter takes: only the minute below which none ends is."""
    assert floors.LOWERED.soak_factor == LOWEST_SOAK_FACTOR
    soak = floors.LOWERED.soak(receives=2, lease_seconds=3, delay_seconds=0)
    assert soak == timedelta(seconds=7.2)
    assert soak > timedelta(seconds=floors.LOWERED.least_soak_seconds)


def test_a_tenth_that_is_poison_halts_as_shipped_and_passes_here() -> None:
    for moved in (25, 105, 200):
        assert Bounds().halts_at(moved) <= moved // 10 < floors.LOWERED.halts_at(moved)


def test_they_are_all_that_changes_in_the_deployed_lambda() -> None:
    account: Any = Account()
    assert floors.lower(account) == floors.lines()
    settings = RedriveSettings.from_environment(account.environment)
    assert settings == replace(DEPLOYED, bounds=floors.LOWERED)
    assert account.environment["POWERTOOLS_LOG_LEVEL"] == "INFO"
