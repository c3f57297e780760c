from __future__ import annotations

from typing import Any

from mendq.model.limits import Mode
from mendq.model.settings import HealSettings
from tests.infra.synthesized import ACCOUNT, CALENDAR, OWN_ROLES, PROBE_ROLE, template_of


def _function(name: str = "default") -> Any:
    return template_of(name).only("AWS::Lambda::Function", "Heal")


def _mapping() -> Any:
    return template_of("default").only("AWS::Lambda::EventSourceMapping")


def test_no_concurrency_is_taken_from_the_accounts_other_functions() -> None:
    assert "ReservedConcurrentExecutions" not in _function()


def test_it_runs_what_the_zip_was_built_for() -> None:
    assert _function()["Runtime"] == "python3.13"
    assert _function()["Architectures"] == ["arm64"]
    assert _function()["Handler"] == "functions.heal.handler"


def test_it_logs_json_to_a_group_that_forgets() -> None:
    log_group = template_of("default").only("AWS::Logs::LogGroup", "Heal")
    assert _function()["LoggingConfig"]["LogFormat"] == "JSON"
    assert _function()["LoggingConfig"]["LogGroup"].startswith("HealLog")
    assert log_group["RetentionInDays"] == 90


def test_it_gets_large_batches_soon_and_gives_back_what_failed() -> None:
    mapping = _mapping()
    assert 100 <= mapping["BatchSize"] <= 1_000
    assert 1 <= mapping["MaximumBatchingWindowInSeconds"] <= 5
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_a_queue_knows_no_on_failure_destination() -> None:
    assert "DestinationConfig" not in _mapping()


def test_it_reads_its_settings_back_as_they_were_set() -> None:
    variables = _function("named")["Environment"]["Variables"]
    settings = HealSettings.from_environment(variables)
    assert settings.account == ACCOUNT
    assert settings.own_roles == tuple(each.rpartition("/")[2] for each in OWN_ROLES)
    assert settings.probe_role == PROBE_ROLE
    assert settings.mode is Mode.HEAL
    assert settings.tag_may_raise_to is Mode.OBSERVE
    assert settings.queues == ("orders", "billing-*")
    assert settings.freeze_calendars == (CALENDAR,)
    assert settings.case_table.startswith("CaseStoreTable")
    assert settings.case_bucket.startswith("CasesBucket")
    assert settings.urgent_topic_arn.startswith("TopicsUrgentTopic")
    assert settings.info_topic_arn.startswith("TopicsInfoTopic")
    assert variables == settings.to_environment(), "and it gets nothing beside them"
