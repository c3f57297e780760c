"""Names that a Lambda's environment cannot hold: refused before anything is deployed."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from infra.lambdas.lambda_function import ENVIRONMENT_CHARACTERS, deliver
from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused
from infra.synthesis import new_app, synthesize
from mendq.model import settings as every_settings
from mendq.model.settings import ConsentSettings, FollowUpSettings, LambdaSettings, OwnerSettings

KINDS = [
    each
    for each in vars(every_settings).values()
    if isinstance(each, type) and issubclass(each, ConsentSettings)
]


def _settings(kind: type[LambdaSettings], **over: Any) -> Any:
    """One with every field that has no default filled in."""
    filled: dict[str, Any] = {
        each.name: {} if each.name == "owners" else () if each.name == "own_roles" else "any"
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    }
    return kind(**filled | over)


def _function() -> lambda_.Function:
    return lambda_.Function(
        cdk.Stack(),
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="any.handler",
        code=lambda_.Code.from_inline("any"),
    )


def _characters(settings: LambdaSettings) -> int:
    return sum(len(name) + len(value) for name, value in settings.to_environment().items())


def _as_long_as(kind: type[LambdaSettings], characters: int) -> Any:
    """One whose environment is exactly so long."""
    short = _settings(kind, queues=("q",))
    return replace(short, queues=("q" * (1 + characters - _characters(short)),))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_lambda_that_knows_the_queues_holds_as_much_and_no_more(
    kind: type[LambdaSettings],
) -> None:
    deliver(_function(), _as_long_as(kind, ENVIRONMENT_CHARACTERS))
    with pytest.raises(SettingsRefused, match=r"^queues: more names than the 4 KB"):
        deliver(_function(), _as_long_as(kind, ENVIRONMENT_CHARACTERS + 1))


def test_a_name_that_only_the_deployment_knows_counts_at_its_longest() -> None:
    stack = cdk.Stack()
    topic = cdk.CfnResource(stack, "Topic", type="AWS::SNS::Topic")
    settings = _as_long_as(FollowUpSettings, ENVIRONMENT_CHARACTERS)
    with pytest.raises(SettingsRefused):
        deliver(_function(), replace(settings, case_table=topic.ref))


def test_it_names_the_setting_that_takes_most() -> None:
    calendars = tuple(f"{'c' * 400}{number}" for number in range(10))
    settings = _settings(OwnerSettings, queues=("q" * 100,), freeze_calendars=calendars)
    with pytest.raises(SettingsRefused, match=r"^freezeCalendars: .*; name fewer calendars"):
        deliver(_function(), settings)


@pytest.mark.usefixtures("light_code")
def test_it_is_one_mistake_of_the_whole_deployment(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    names = [f"{'q' * 70}{number}" for number in range(ENVIRONMENT_CHARACTERS // 70)]
    with pytest.raises(SettingsRefused) as refused:
        synthesize(read({"queues": names}), new_app(tmp_path_factory.mktemp("large")))
    (mistake,) = refused.value.mistakes
    assert mistake.path == "queues"
    assert "tag the queues instead" in mistake.remedy
