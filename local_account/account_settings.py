"""The settings that the account deploys with, and what stands behind its `ready` line.

The settings are its own defaults and the user's file on them.
"""

from __future__ import annotations

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
_TO_TRY = """
To try there, in this folder:
  .venv/bin/mendq doctor       # is it alive, and what can its trail show
  .venv/bin/mendq drill --yes  # calls that fail for real, each stage timed
  .venv/bin/mendq cases        # what became of it
"""


def raw_settings(path: Path | None) -> dict[str, Any]:
    """The object of context key `mendq`; raise CannotStart when the file cannot be used."""
    try:
        given = {} if path is None else object_in(path)
    except FileRefused as refused:
        raise CannotStart(str(refused)) from refused
    defaults, trail = dict(DEFAULTS), given.get("trail")
    if isinstance(trail, Mapping) and trail.get("create") is False:
        del defaults["trail"]  # of somebody else's nothing is selected
    raw = merge(defaults, given)
    checked(raw)
    return raw


def checked(raw: Mapping[str, Any]) -> DeploymentSettings:
    """Read the settings with the floors of `timing` lifted; raise CannotStart for mistakes."""
    try:
        return read(raw, floors=False)
    except SettingsRefused as refused:
        mistakes = "; ".join(str(each) for each in refused.mistakes)
        raise CannotStart(f"the settings cannot be deployed: {mistakes}") from refused


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
        mode = f"mode {settings.mode}, tagMayRaiseTo {settings.tag_may_raise_to}"
        lowered = settings.floors_lowered() or ("none",)
        lines += ["", "Settings in force:", f"  {mode}"]
        lines += [f"  floor lowered: {each}" for each in lowered]
        lines.append(_TO_TRY)
    return "\n".join((*lines, ""))
