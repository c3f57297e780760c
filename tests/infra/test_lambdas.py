"""The settings of each Lambda in its environment variables, and their size limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from infra.lambdas import environment
from infra.lambdas.lambda_function import MAXIMUM_ENVIRONMENT_BYTES, set_environment
from infra.lambdas.rows import LAMBDA_ROWS, TEMPLATE_HOOK_HANDLER_NAME
from infra.settings.reading import SettingsRefused
from mendq.model import settings as settings_classes
from mendq.model.consent import Consent
from mendq.model.settings import OwnerSettings, environment_variable_of
from tests.infra.synthesized import SETTINGS, template_of, template_with


def _read_function(name: str, settings: str = "default") -> Any:
    return template_of(settings).only("AWS::Lambda::Function", f"{name}Function")


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_lambda_reads_back_exactly_the_settings_in_its_environment(settings: str) -> None:
    has_hook = "templateHook" in SETTINGS[settings]
    for row in LAMBDA_ROWS:
        if row.handler.name == TEMPLATE_HOOK_HANDLER_NAME and not has_hook:
            continue
        variables = _read_function(row.handler.construct_id, settings)["Environment"]["Variables"]
        reader = import_module(f"functions.{row.handler.name}").handler.settings_class
        assert variables == reader.from_environment(variables).to_environment()


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_stack_lets_follow_up_believe_a_time_in_the_future(settings: str) -> None:
    """With most_days_ahead, a caller who may invoke follow_up could end cases days early."""
    for function in template_of(settings).all("AWS::Lambda::Function").values():
        variables = function["Properties"].get("Environment", {}).get("Variables", {})
        assert environment_variable_of("most_days_ahead") not in variables


def test_stack_gives_each_lambda_every_field_of_its_settings_class_except_most_days_ahead() -> None:
    """A field with a default that the stack forgets would silently keep its default."""
    source = Path(environment.__file__).read_text()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    given = {
        call.func.id: set(_argument_names(call))
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id.endswith("Settings")
    }
    makers = {row.make_settings for row in LAMBDA_ROWS} | {environment.make_scan_only_settings}
    assert len(given) == len(makers)
    for name, arguments in given.items():
        fields = set(getattr(settings_classes, name).__struct_fields__)
        assert arguments == fields - {"most_days_ahead"}, name


def _argument_names(call: ast.Call) -> Iterator[str]:
    """Yield the names of a call's arguments. mypy checks that `**` unpacks every shared one."""
    shared = {
        "_make_case_arguments": environment.CaseArguments.__required_keys__,
        "_make_owner_arguments": environment.OwnerArguments.__required_keys__,
    }
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg
        else:
            assert isinstance(keyword.value, ast.Call)
            yield from shared[ast.unparse(keyword.value.func)]


def test_approve_and_rollback_time_out_15_seconds_after_the_lambdas_they_invoke() -> None:
    for caller, owners in (
        ("Approve", ("Heal", "AttachDlq", "RestorePolicy", "Redrive")),
        ("Rollback", ("Redrive",)),
    ):
        for owner in owners:
            assert _read_function(caller)["Timeout"] >= _read_function(owner)["Timeout"] + 15


def _make_owner_settings(queues: tuple[str, ...], **chosen: Any) -> OwnerSettings:
    topics = {"urgent_topic_arn": "u", "info_topic_arn": "i"}
    return OwnerSettings(
        "a",
        **{"case_table": "t", "case_bucket": "b", **topics, **chosen},
        consent=Consent(queues=queues),
    )


def _set_function_environment(settings: OwnerSettings) -> None:
    function = lambda_.Function(
        cdk.Stack(),
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="any.handler",
        code=lambda_.Code.from_inline("any"),
    )
    set_environment(function, settings)


def test_lambda_environment_at_exactly_4_kb_is_accepted_and_one_character_more_is_refused() -> None:
    short = _make_owner_settings(queues=("q",)).to_environment()
    room = 1 + MAXIMUM_ENVIRONMENT_BYTES - sum(len(name + value) for name, value in short.items())
    _set_function_environment(_make_owner_settings(queues=("q" * room,)))
    with pytest.raises(SettingsRefused, match=r"^queues: more names than the 4 KB"):
        _set_function_environment(_make_owner_settings(queues=("q" * (room + 1),)))


def test_value_known_only_at_deployment_counts_with_its_greatest_length_for_the_4_kb() -> None:
    topic = cdk.CfnResource(cdk.Stack(), "Topic", type="AWS::SNS::Topic")
    _set_function_environment(_make_owner_settings(queues=(topic.ref,)))
    with pytest.raises(SettingsRefused):
        _set_function_environment(_make_owner_settings(queues=(topic.ref,) * 41))


def test_settings_above_a_lambdas_environment_limit_are_refused_naming_the_largest_one() -> None:
    calendars = tuple(f"{'c' * 400}{number}" for number in range(10))
    with pytest.raises(SettingsRefused, match=r"^freezeCalendars: .*; name fewer"):
        _set_function_environment(
            _make_owner_settings(queues=("q" * 100,), freeze_calendars=calendars)
        )
    names = [f"{'q' * 70}{number}" for number in range(MAXIMUM_ENVIRONMENT_BYTES // 70)]
    with pytest.raises(SettingsRefused, match=r"^queues: .*; .*or tag them\Z"):
        template_with({"queues": names})


def test_mutes_above_a_lambdas_environment_limit_are_refused_with_what_to_shorten() -> None:
    mute = {"symptom": "dlq_missing", "reason": "\u00e4" * 100, "until": "2027-06-30"}
    mutes = [{"queue": f"orders-{number}", **mute} for number in range(20)]
    with pytest.raises(SettingsRefused) as refused:
        template_with({"mutes": mutes})
    assert str(refused.value) == (
        "mutes: more text than the 4 KB of a Lambda's environment hold; keep fewer: give shorter "
        "reasons, mute several queues with the start of their names and a *, remove mutes that "
        "have ended, or tag a queue mendq=off"
    )


def test_mutes_reach_the_scan_and_heal_and_not_the_probe() -> None:
    mute = {"queue": "o-*", "symptom": "dlq_missing", "reason": "why", "until": "2027-06-30"}
    template = template_with({"mutes": [mute]})
    text_by_name = {
        name: template.only("AWS::Lambda::Function", f"{name}Function")["Environment"][
            "Variables"
        ].get("MENDQ_MUTES")
        for name in ("Scan", "Heal", "Probe")
    }
    text = '[["o-*","dlq_missing","why","2027-06-30"]]'
    assert text_by_name == {"Scan": text, "Heal": text, "Probe": None}
