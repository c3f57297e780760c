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
    create_folders,
    enter_environment,
    make_emulator_environment,
    open_listening_socket,
    parse_port,
)
from local_account.launcher import Launcher, read_settings
from local_account.where import ACCOUNT, REGION, CannotStart

COMMAND_DESCRIPTION = (
    "An AWS account on this machine with the stack deployed, until SIGINT or SIGTERM."
)
# docs/local-account.md promises: no queue is healed until its tag allows it, and every call on a
# queue is recorded.
DEFAULT_SETTINGS: Mapping[str, Any] = {
    "mode": "observe",
    "tagMayRaiseTo": "heal",
    "trail": {"queueArnPrefixes": [f"arn:aws:sqs:{REGION}:{ACCOUNT}:"], "managementEvents": True},
    # A changed attribute takes effect at once here. On AWS it takes up to a minute.
    "timing": {"propagationSeconds": 0},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the account until it is stopped, as `Launcher` describes. Return the exit code.

    If the account cannot start, one line on standard error says why.
    """
    try:
        _serve_account(_make_parser().parse_args(arguments))
    except CannotStart as error:
        print(f"make account: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def merge_default_settings(settings_option: str) -> dict[str, Any]:
    """Return the settings to deploy: the option's settings, merged over DEFAULT_SETTINGS.

    If the option has `trail.create` false, the defaults of `trail` are left out. If it has
    `scanOnly` true, only the defaults are merged that a scan-only stack uses.

    Args:
        settings_option: JSON object of the CDK context key `mendq`, or the path of a file with such
            an object. Empty for the defaults alone.

    Raises:
        CannotStart: The settings cannot be read or deployed.
    """
    try:
        settings = (
            parse_json(settings_option or "{}")
            if settings_option[:1] in {"", "{"}
            else load_object(Path(settings_option))
        )
    except SettingsRefused as error:
        raise CannotStart(str(error)) from error
    except ValueError as error:
        raise CannotStart(f"SETTINGS is not JSON: {error}") from error
    defaults = dict(DEFAULT_SETTINGS)
    trail_settings = settings.get("trail")
    if isinstance(trail_settings, Mapping) and trail_settings.get("create") is False:
        del defaults["trail"]  # Mendq sets no selectors on a trail that it does not create
    if settings.get("scanOnly") is True:
        defaults = {"timing": DEFAULT_SETTINGS["timing"]}
    merged_settings = merge_objects(defaults, settings)
    read_settings(merged_settings)
    return merged_settings


def merge_objects(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return one JSON object merged from two, at every depth.

    If both have an object under the same key, these two are merged. Otherwise, the value of
    `overrides` replaces the value of `base`.
    """
    merged_objects = {
        key: merge_objects(base[key], overrides[key])
        for key in base.keys() & overrides.keys()
        if isinstance(base[key], Mapping) and isinstance(overrides[key], Mapping)
    }
    return {**base, **overrides, **merged_objects}


def _serve_account(options: argparse.Namespace) -> None:
    """Prepare the port, the folders and the environment, and serve the account.

    Return after the account has been stopped.
    """
    settings = merge_default_settings(options.settings)
    stack_artifact = read_assembly(options.assembly.resolve()) if options.assembly else None
    with open_listening_socket(options.port) as server_socket:
        port = server_socket.getsockname()[1]
        with create_folders(port) as temporary_folder:
            enter_environment(make_emulator_environment(dict(os.environ), temporary_folder, port))
            launcher = Launcher(
                settings, stack_artifact, server_socket, temporary_folder, options.stop_with_parent
            )
            asyncio.new_event_loop().run_until_complete(launcher.run())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise CannotStart, so that a wrong option is reported in one line."""
        raise CannotStart(message)


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m local_account", description=COMMAND_DESCRIPTION)
    parser.add_argument("--port", type=parse_port, default=0, help="0 (the default): a free one")
    parser.add_argument("--settings", default="", help="JSON or its file: context mendq")
    parser.add_argument("--assembly", type=Path, help="a cloud assembly to deploy instead")
    parser.add_argument("--stop-with-parent", action="store_true", help="end with standard input")
    return parser
