"""What a Lambda is told: its settings, in as much as its environment holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_

from functions.settings import LambdaSettings, variable_of
from infra.settings import Mistake, SettingsRefused

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ENVIRONMENT_CHARACTERS = 4_096
# What is known at deployment only, at its longest; a name or ARN that CloudFormation makes of ours
# is shorter than the last.
_LONGEST = {"AWS::Partition": len("aws-us-gov"), "AWS::AccountId": 12}
_LONGEST_NAME = 100
# The settings that grow with what a user names: as they are spelled, and what to do about them.
_GROWING = {
    variable_of("queues"): (
        "queues",
        "say the start of several names and a *, or tag the queues instead",
    ),
    variable_of("freeze_calendars"): ("freezeCalendars", "name fewer calendars"),
    variable_of("recipients"): ("report.recipients", "name a list's address instead of many"),
}


def hand_over(function: lambda_.Function, settings: LambdaSettings) -> None:
    """Set a Lambda's environment: its settings, under the names that it reads them by.

    Raises SettingsRefused where they are more than it holds.
    """
    variables = settings.to_environment()
    sizes = {
        name: len(name) + _longest(value)
        for name, value in Stack.of(function).resolve(variables).items()
    }
    if sum(sizes.values()) > ENVIRONMENT_CHARACTERS:
        raise SettingsRefused([_too_long(sizes)])
    for name, value in variables.items():
        function.add_environment(name, value)


def _too_long(sizes: Mapping[str, int]) -> Mistake:
    """Of the settings that grow, the one that takes most of it."""
    path, cure = _GROWING[max(_GROWING, key=lambda name: sizes.get(name, 0))]
    return Mistake(path, "more names than the 4 KB of a Lambda's environment hold", cure)


def _longest(resolved: Any) -> int:
    """How many characters a resolved value may have once it is deployed."""
    if isinstance(resolved, str):
        return len(resolved)
    ((function, of),) = resolved.items()
    if function == "Fn::Join":
        return sum(_longest(each) for each in of[1])
    return _LONGEST.get(of, _LONGEST_NAME) if function == "Ref" else _LONGEST_NAME
