from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.model.limits import Limits, Mode, Timing
from mendq.model.settings import (
    WORKER,
    ApproveSettings,
    DeliverReportSettings,
    HealSettings,
    SettingsUnreadable,
    executors_within,
    workers_within,
)
from mendq.model.steps import Owner

FULL = HealSettings(
    account="123456789012",
    case_table="case_store",
    case_bucket="cases",
    urgent_topic_arn="arn:aws:sns:us-east-1:123456789012:urgent",
    info_topic_arn="arn:aws:sns:us-east-1:123456789012:info",
    own_roles=("mendq-heal-us-east-1",),
    probe_role="arn:aws:iam::123456789012:role/mendq-probe-us-east-1",
    mode=Mode.PROPOSE,
    tag_may_raise_to=Mode.HEAL,
    queues=("orders", "bills-*"),
    autonomy={"visibility_timeout_too_short": Mode.OBSERVE},
    limits=Limits(writes_per_minute=3, mass_symptom_share=0.1),
    timing=Timing(cooldown_minutes=5),
    freeze_calendars=("arn:aws:ssm:us-east-1:123456789012:document/Peak",),
)

REQUIRED = (
    *("account", "case_table", "case_bucket", "urgent_topic_arn", "info_topic_arn"),
    *("own_roles", "probe_role"),
)


def test_an_empty_environment_names_everything_that_is_missing() -> None:
    with pytest.raises(SettingsUnreadable) as refused:
        HealSettings.from_environment({})
    for name in REQUIRED:
        assert f"MENDQ_{name.upper()} is missing" in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        *(("MENDQ_MODE", text) for text in ("heal", '"HEAL"')),
        *(("MENDQ_AUTONOMY", text) for text in ('{"visibility_timeout_too_short": 1}', "[]")),
        *(("MENDQ_QUEUES", text) for text in ("3", '"orders*"', "[1, null]")),
        *(
            ("MENDQ_LIMITS", f'{{"{name}": {value}}}')
            for name, value in (
                *(("writesPerMinute", 1), ("writes_per_minute", '"x"')),
                *(("writes_per_minute", "NaN"), ("writes_per_minute", -1)),
            )
        ),
        *(("MENDQ_OWN_ROLES", '"arn"'), ("MENDQ_TIMING", "3")),
        *((f"MENDQ_{name}", "") for name in ("ACCOUNT", "CASE_TABLE", "URGENT_TOPIC_ARN")),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variable: str, text: str) -> None:
    with pytest.raises(SettingsUnreadable, match=variable):
        HealSettings.from_environment({**FULL.to_environment(), variable: text})


def test_what_infra_writes_the_lambda_reads_back() -> None:
    assert HealSettings.from_environment(FULL.to_environment()) == FULL


def test_what_is_not_set_has_no_variable_and_is_read_back_as_none() -> None:
    silent = DeliverReportSettings("123456789012", "reports", "arn:topic")
    variables = silent.to_environment()
    assert "MENDQ_SENDER" not in variables
    assert DeliverReportSettings.from_environment(variables) == silent
    mailing = replace(silent, sender="a@example.com", recipients=("b@example.com",))
    assert DeliverReportSettings.from_environment(mailing.to_environment()) == mailing
    with pytest.raises(SettingsUnreadable, match="MENDQ_SENDER is not readable: it is empty"):
        DeliverReportSettings.from_environment({**variables, "MENDQ_SENDER": ""})


def test_observe_is_what_an_account_gets_that_says_nothing() -> None:
    full = FULL.to_environment()
    read = HealSettings.from_environment({(v := f"MENDQ_{e.upper()}"): full[v] for e in REQUIRED})
    assert (read.mode, read.tag_may_raise_to, read.queues) == (Mode.OBSERVE, Mode.OBSERVE, ())


APPROVING = ApproveSettings(
    **{name: getattr(FULL, name) for name in REQUIRED[:5]},
    owners={Owner.HEAL: "mendq-heal", Owner.ATTACH_DLQ: "mendq-attach"},
)


def test_whom_to_call_for_a_write_is_read_back() -> None:
    assert ApproveSettings.from_environment(APPROVING.to_environment()) == APPROVING


@pytest.mark.parametrize("text", ['{"rollback": "f"}', '{"heal": ""}', '{"heal": 3}', '["heal"]'])
def test_an_owner_that_is_none_or_has_no_name_is_refused(text: str) -> None:
    with pytest.raises(SettingsUnreadable, match="MENDQ_OWNERS"):
        ApproveSettings.from_environment({**APPROVING.to_environment(), "MENDQ_OWNERS": text})


# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
MEMORY_OF_TWO_VCPU = range(4, 17)


def test_a_worker_is_one_of_emrs_sizes() -> None:
    assert WORKER.vcpu == 2
    assert WORKER.memory_gb in MEMORY_OF_TWO_VCPU
    assert WORKER.heap_gb * (1 + WORKER.overhead_factor) == pytest.approx(WORKER.memory_gb)
    assert 20 <= WORKER.disk_gb <= 200


@pytest.mark.parametrize(
    ("vcpu", "memory_gb", "workers"),
    [(16, 64, 8), (4, 3_000, 2), (400, 16, 2), (5, 21, 2), (16, 48, 6), (400, 3_000, 200)],
)
def test_what_ends_first_bounds_them(vcpu: int, memory_gb: int, workers: int) -> None:
    assert workers_within(vcpu, memory_gb) == workers
    assert executors_within(vcpu, memory_gb) == workers - 1
    assert workers * WORKER.vcpu <= vcpu
    assert workers * WORKER.memory_gb <= memory_gb
