"""The settings that the account deploys with, and what stands behind its `ready` line.

The settings are its own defaults and the user's file on them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.settings.deployment import DeploymentSettings, FileRefused, merge, object_in, read
from infra.settings.reading import SettingsRefused
from local_account.cannot_start import CannotStart
from local_account.where import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY

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


_TO_TRY = (
    ".venv/bin/mendq doctor       # is it alive, and what can its trail show",
    ".venv/bin/mendq drill --yes  # calls that fail for real, each stage timed",
    ".venv/bin/mendq cases        # what became of it",
)


def first_steps(url: str, settings: DeploymentSettings | None) -> str:
    """A few lines for people; without settings it is somebody else's stack that was deployed."""
    exports = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }
    lines = ["", "In another shell:"]
    lines += [f"  export {name}={text}" for name, text in exports.items()]
    if settings is not None:
        lines += ["", "Settings in force:", *(f"  {each}" for each in _in_force(settings))]
        lines += ["", "To try there, in this folder:", *(f"  {each}" for each in _TO_TRY)]
    return "\n".join((*lines, ""))


def _in_force(settings: DeploymentSettings) -> list[str]:
    lowered = settings.floors_lowered()
    return [
        f"mode {settings.mode}, tagMayRaiseTo {settings.tag_may_raise_to}",
        *(f"floor lowered: {each}" for each in lowered or ("none",)),
    ]


def print_if_read(text: str) -> None:
    """Whoever waited for `ready` may have stopped reading: that is no fault of the account."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), f"{text}\n".encode())
