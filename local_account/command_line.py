"""What `python -m local_account` takes, the settings that it deploys with, and what it says.

The settings are its own defaults and the user's file on them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from infra.settings.reading import SettingsRefused, object_in, parse
from local_account.deployment import read_assembly
from local_account.emulator_environment import (
    emulator_environment,
    enter,
    folders,
    listen,
    port_of,
)
from local_account.launcher import Launcher, checked
from local_account.where import ACCOUNT, REGION, CannotStart

ABOUT = "An AWS account on this machine with the stack deployed, until SIGINT or SIGTERM."
# Contracts, `make account`: nothing is healed until a tag says so, and every call is seen.
DEFAULTS: Mapping[str, Any] = {
    "mode": "observe",
    "tagMayRaiseTo": "heal",
    "trail": {"queueArnPrefixes": [f"arn:aws:sqs:{REGION}:{ACCOUNT}:"], "managementEvents": True},
    # A change arrives at once here; at AWS it takes up to a minute.
    "timing": {"propagationSeconds": 0},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; 2 and one line on standard error when that cannot be."""
    try:
        _start(_parser().parse_args(arguments))
    except CannotStart as refused:
        print(f"make account: {refused}", file=sys.stderr, flush=True)
        return refused.exit_code
    return 0


def raw_settings(said: str) -> dict[str, Any]:
    """The object of context key `mendq`, from JSON or the path of a file with it, on the defaults.

    Raises CannotStart when it cannot be used.
    """
    try:
        given = parse(said or "{}") if said[:1] in {"", "{"} else object_in(Path(said))
    except SettingsRefused as refused:
        raise CannotStart(str(refused)) from refused
    except ValueError as error:
        raise CannotStart(f"SETTINGS is not JSON: {error}") from error
    defaults, trail = dict(DEFAULTS), given.get("trail")
    if isinstance(trail, Mapping) and trail.get("create") is False:
        del defaults["trail"]  # of somebody else's nothing is selected
    raw = merge(defaults, given)
    checked(raw)
    return raw


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`: objects merge deeply, all else and lists replace."""
    both = {
        key: merge(base[key], over[key])
        for key in base.keys() & over.keys()
        if isinstance(base[key], Mapping) and isinstance(over[key], Mapping)
    }
    return {**base, **over, **both}


def _start(options: argparse.Namespace) -> None:
    settings = raw_settings(options.settings)
    stack = read_assembly(options.assembly.resolve()) if options.assembly else None
    with listen(options.port) as listening:
        port = listening.getsockname()[1]
        with folders(port) as scratch:
            enter(emulator_environment(dict(os.environ), scratch, port))
            launcher = Launcher(settings, stack, listening, scratch, options.stop_with_parent)
            asyncio.new_event_loop().run_until_complete(launcher.run())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as for every other mistake."""
        raise CannotStart(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m local_account", description=ABOUT)
    parser.add_argument("--port", type=port_of, default=0, help="0 (the default): a free one")
    parser.add_argument("--settings", default="", help="JSON or its file: context mendq")
    parser.add_argument("--assembly", type=Path, help="a cloud assembly to deploy instead")
    parser.add_argument("--stop-with-parent", action="store_true", help="end with standard input")
    return parser
