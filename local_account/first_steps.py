"""What stands behind the `ready` line: credentials to paste, the settings in force, what to try."""

from __future__ import annotations

import contextlib
import os
import sys

from infra.settings import DeploymentSettings
from local_account.where import ACCESS_KEY, REGION, SECRET_KEY

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
