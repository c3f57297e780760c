"""The command line of `python -m local_account`: its options and the settings that it deploys.

The user's settings are merged over the local account's defaults.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from infra.settings.reading import SettingsRefused, load_object, parse_json
from local_account.deployment import read_assembly
from local_account.emulator_environment import (
    emulator_environment,
    enter,
    folders,
    listen,
    port_of,
)
from local_account.launcher import Launcher, read_settings
from local_account.where import ACCOUNT, REGION, CannotStart

ABOUT = "An AWS account on this machine with the stack deployed, until SIGINT or SIGTERM."
# docs/local-account.md promises: no queue is healed until its tag allows it, and every call on a
# queue is recorded.
DEFAULTS: Mapping[str, Any] = {
    "mode": "observe",
    "tagMayRaiseTo": "heal",
    "trail": {"queueArnPrefixes": [f"arn:aws:sqs:{REGION}:{ACCOUNT}:"], "managementEvents": True},
    # A changed attribute takes effect at once here. On AWS it takes up to a minute.
    "timing": {"propagationSeconds": 0},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the account until SIGINT or SIGTERM. Return the exit code.

    If the account cannot start, one line on standard error says why.
    """
    try:
        _start(_parser().parse_args(arguments))
    except CannotStart as refused:
        print(f"make account: {refused}", file=sys.stderr, flush=True)
        return refused.exit_code
    return 0


def raw_settings(option: str) -> dict[str, Any]:
    """Return the settings to deploy: the option's settings merged over the defaults.

    Args:
        option: JSON object of the CDK context key `mendq`, or the path of a file with it. Empty for
            the defaults alone.

    Raises:
        CannotStart: The settings cannot be read or deployed.
    """
    try:
        settings = (
            parse_json(option or "{}") if option[:1] in {"", "{"} else load_object(Path(option))
        )
    except SettingsRefused as refused:
        raise CannotStart(str(refused)) from refused
    except ValueError as error:
        raise CannotStart(f"SETTINGS is not JSON: {error}") from error
    defaults = dict(DEFAULTS)
    trail = settings.get("trail")
    if isinstance(trail, Mapping) and trail.get("create") is False:
        del defaults["trail"]  # Mendq sets no selectors on a trail that it does not create
    raw = merge(defaults, settings)
    read_settings(raw)
    return raw


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two JSON objects, and the objects in them. Other values of `over` replace `base`'s."""
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
        """Report a wrong option in one line, like every other mistake."""
        raise CannotStart(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m local_account", description=ABOUT)
    parser.add_argument("--port", type=port_of, default=0, help="0 (the default): a free one")
    parser.add_argument("--settings", default="", help="JSON or its file: context mendq")
    parser.add_argument("--assembly", type=Path, help="a cloud assembly to deploy instead")
    parser.add_argument("--stop-with-parent", action="store_true", help="end with standard input")
    return parser
