"""Test that settings survive the way from infra through a Lambda's environment variables."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from mendq.model.consent import Consent
from mendq.model.limits import Limits, Timing
from mendq.model.mode import Mode
from mendq.model.mutes import Mute
from mendq.model.settings import (
    DEFAULT_SPARK_WORKER,
    DeliverReportSettings,
    LambdaSettings,
    OperatorSettings,
    OwnerSettings,
    SettingsUnreadable,
    count_executors_within,
    count_workers_within,
)
from mendq.model.steps import Owner

REQUIRED: dict[str, Any] = {
    "account": "123456789012",
    "case_table": "case_store",
    "case_bucket": "cases",
    "urgent_topic_arn": "arn:aws:sns:us-east-1:123456789012:urgent",
    "info_topic_arn": "arn:aws:sns:us-east-1:123456789012:info",
}
LEAST = OwnerSettings(**REQUIRED)
FULL = replace(
    LEAST,
    consent=Consent(Mode.PROPOSE, Mode.HEAL, ("orders", "bills-*")),
    autonomy={"visibility_timeout_too_short": Mode.OBSERVE},
    limits=Limits(writes_per_minute=3, mass_symptom_share=0.1),
    timing=Timing(cooldown_minutes=5),
    freeze_calendars=("arn:aws:ssm:us-east-1:123456789012:document/Peak",),
    mutes=(Mute("orders-*", "dlq_missing", "kept by hand, n\u00f6tig", date(2027, 6, 30)),),
)
OWNERS = {Owner.HEAL: "mendq-heal", Owner.ATTACH_DLQ: "mendq-attach"}
APPROVING = OperatorSettings(**REQUIRED, owners=OWNERS)
SILENT = DeliverReportSettings("123456789012", "reports", "arn:topic")


@pytest.mark.parametrize(
    "written",
    [FULL, LEAST, APPROVING, SILENT, replace(SILENT, sender="a@example.com", recipients=("b@x",))],
)
def test_settings_round_trip_through_environment_variables(written: LambdaSettings) -> None:
    assert type(written).from_environment(written.to_environment()) == written


def test_setting_without_a_value_has_no_environment_variable() -> None:
    assert "MENDQ_SENDER" not in SILENT.to_environment()


REQUIRED_VARIABLES = {
    name: LEAST.to_environment()[name] for name in [f"MENDQ_{name.upper()}" for name in REQUIRED]
}


def test_settings_with_only_the_required_variables_observe_all_queues_and_change_none() -> None:
    settings = OwnerSettings.from_environment(REQUIRED_VARIABLES)
    assert settings.consent == Consent(Mode.OBSERVE, Mode.OBSERVE, ())


def test_settings_of_an_empty_environment_name_every_missing_variable() -> None:
    with pytest.raises(SettingsUnreadable) as refused:
        OwnerSettings.from_environment({})
    for name in REQUIRED_VARIABLES:
        assert f"{name} is missing" in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "texts"),
    [
        ("CONSENT", ('{"mode": "HEAL"}', '{"mode": 2}', '{"modes": "heal"}', '"heal"')),
        (
            "MUTES",
            (
                '[["orders", "dlq_missing", "why"]]',
                '[["orders", "dlq_missing", "why", "soon"]]',
                '[["orders", "dlq_missing", 5, "2027-06-30"]]',
                '{"orders": "dlq_missing"}',
            ),
        ),
        ("AUTONOMY", ('{"visibility_timeout_too_short": 1}', "[]")),
        ("CONSENT", ('{"queues": 3}', '{"queues": "orders*"}', '{"queues": [1, null]}')),
        ("CONSENT", ('{"mode": "heal", "mode": "observe"}', '{"queues": [""]}', "[" * 100_000)),
        *((name, ('{"a":' * 100_000,)) for name in ("AUTONOMY", "LIMITS", "FREEZE_CALENDARS")),
        ("AUTONOMY", ('{"access_denied": "heal", "access_denied": "observe"}',)),
        ("LIMITS", ('{"writesPerMinute": 1}', '{"writes_per_minute": "x"}', "3")),
        ("LIMITS", ('{"writes_per_minute": NaN}', '{"writes_per_minute": -1}')),
        ("FREEZE_CALENDARS", ('"arn"',)),
        *((name, ("",)) for name in ("ACCOUNT", "CASE_TABLE", "URGENT_TOPIC_ARN")),
        ("OWNERS", ('{"rollback": "f"}', '{"heal": ""}', '{"heal": 3}', '["heal"]')),
    ],
)
def test_environment_variable_with_an_invalid_value_is_named_in_the_error(
    variable: str, texts: tuple[str, ...]
) -> None:
    whole = APPROVING if variable == "OWNERS" else FULL
    for text in texts:
        with pytest.raises(SettingsUnreadable, match=f"MENDQ_{variable} is not readable"):
            type(whole).from_environment({**whole.to_environment(), f"MENDQ_{variable}": text})


def test_duplicate_key_in_a_settings_variable_is_named_in_the_error() -> None:
    twice = '{"mode": "heal", "queues": [], "mode": "observe"}'
    with pytest.raises(SettingsUnreadable, match="MENDQ_CONSENT is not readable: 'mode' is there"):
        OwnerSettings.from_environment({**FULL.to_environment(), "MENDQ_CONSENT": twice})


# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
MEMORY_OF_TWO_VCPU = range(4, 17)


@pytest.mark.parametrize(
    ("vcpu", "memory_gb", "workers"),
    [(16, 64, 8), (4, 3_000, 2), (400, 16, 2), (5, 21, 2), (16, 48, 6), (400, 3_000, 200)],
)
def test_worker_count_is_bounded_by_vcpu_or_memory_and_one_worker_is_the_spark_driver(
    vcpu: int, memory_gb: int, workers: int
) -> None:
    assert count_workers_within(vcpu, memory_gb) == workers
    assert count_executors_within(vcpu, memory_gb) == workers - 1


def test_default_spark_worker_has_a_size_that_emr_serverless_accepts() -> None:
    worker = DEFAULT_SPARK_WORKER
    assert worker.vcpu == 2
    assert worker.memory_gb in MEMORY_OF_TWO_VCPU
    assert worker.heap_gb * (1 + worker.overhead_factor) == pytest.approx(worker.memory_gb)
    assert 20 <= worker.disk_gb <= 200
