"""Settings as environment variables hold them: each type of a field, as text and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from typing import Any

from functions.healing.limits import Limits, Timing
from functions.healing.mode import Mode
from functions.healing.redrive_bounds import Bounds
from functions.healing.steps import Owner


def written(value: object) -> str:
    """Text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(_plain(value), separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, Mode):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


def read(text: str, kind: Any) -> Any:
    """The value of type `kind`; raise ValueError, TypeError or KeyError where it is none."""
    if kind in (str, str | None):
        if not text:
            raise ValueError("it is empty")
        return text
    value = json.loads(text)
    of_one_value = {Mode: _mode, int: _count, int | None: _count, tuple[str, ...]: _texts}
    if kind in of_one_value:
        return of_one_value[kind](value)
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no JSON object")
    if kind in (Limits, Timing, Bounds):
        return kind(**{name: _positive(name, each) for name, each in value.items()})
    if kind == Mapping[Owner, str]:
        return {Owner(name): _name(each) for name, each in value.items()}
    return {name: _mode(each) for name, each in value.items()}


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is no name")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise TypeError(f"{value!r} is no JSON list of texts")
    return tuple(value)


def _count(value: object) -> int:
    return int(_positive("it", value))


def _positive(name: str, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is no number: {value!r}")
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{name} is no number from 0 on: {value!r}")
    return value


def _mode(text: object) -> Mode:
    mode = Mode.read(text) if isinstance(text, str) else None
    if mode is None:
        raise ValueError(f"{text!r} is none of observe, propose, heal")
    return mode
