"""A refusal as SQS words it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """Why SQS would not do something; `name` as in the JSON protocol."""

    name: str
    message: str
    status: int = 400


def invalid_parameter(value: object, parameter: str, reason: str) -> Refusal:
    """InvalidParameterValue, whose text repeats the caller's value."""
    return Refusal(
        "InvalidParameterValueException",
        f"Value {value} for parameter {parameter} is invalid. Reason: {reason}",
    )
