"""The settings that the account deploys with: its own defaults and the user's file on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.settings import (
    DeploymentSettings,
    FileRefused,
    SettingsRefused,
    merge,
    object_in,
    read,
)
from local_account.cannot_start import CannotStart
from local_account.where import ACCOUNT, REGION

# Contracts, `make account`: nothing is healed until a tag says so, and every call is seen.
DEFAULTS: Mapping[str, Any] = {
    "mode": "observe",
    "tagMayRaiseTo": "heal",
    "trail": {
        "queueArnPrefixes": [f"arn:aws:sqs:{REGION}:{ACCOUNT}:"],
        "managementEvents": True,
    },
    # A change arrives at once here; at AWS it takes up to a minute.
    "timing": {"propagationSeconds": 0},
}


def raw_settings(path: Path | None) -> dict[str, Any]:
    """The object of context key `mendq`; raise CannotStart when the file cannot be used."""
    given = {} if path is None else _object_in(path)
    raw = merge(_defaults(given), given)
    checked(raw)
    return raw


def _defaults(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without those of the trail where it is somebody else's: nothing is selected there."""
    trail = given.get("trail")
    if isinstance(trail, Mapping) and trail.get("create") is False:
        return {name: value for name, value in DEFAULTS.items() if name != "trail"}
    return DEFAULTS


def checked(raw: Mapping[str, Any]) -> DeploymentSettings:
    """Read the settings with the floors of `timing` lifted; raise CannotStart for mistakes."""
    try:
        return read(raw, floors=False)
    except SettingsRefused as refused:
        mistakes = "; ".join(str(each) for each in refused.mistakes)
        raise CannotStart(f"the settings cannot be deployed: {mistakes}") from refused


def _object_in(path: Path) -> Mapping[str, Any]:
    try:
        return object_in(path)
    except FileRefused as refused:
        raise CannotStart(str(refused)) from refused
