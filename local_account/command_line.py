"""What `python -m local_account` takes, and how it says that it cannot start."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from local_account.account_settings import raw_settings
from local_account.cannot_start import CannotStart
from local_account.deployment import read_assembly
from local_account.emulator_environment import (
    emulator_environment,
    enter,
    listen,
    new_scratch_folder,
    port_of,
    remove,
)
from local_account.launcher import Launcher, StartOptions

ABOUT = "An AWS account on this machine with the stack deployed, until SIGINT or SIGTERM."


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; 2 and one line on standard error when that cannot be."""
    try:
        _start(_parser().parse_args(arguments))
    except CannotStart as refused:
        print(f"make account: {refused}", file=sys.stderr, flush=True)
        return refused.exit_code
    return 0


def _start(options: argparse.Namespace) -> None:
    start_options = StartOptions(
        settings=raw_settings(options.settings),
        stack=read_assembly(options.assembly.resolve()) if options.assembly else None,
        stop_with_parent=options.stop_with_parent,
    )
    with listen(options.port) as listening:
        scratch = new_scratch_folder()
        try:
            port = listening.getsockname()[1]
            enter(emulator_environment(dict(os.environ), scratch, port))
            loop = asyncio.new_event_loop()
            loop.run_until_complete(Launcher(start_options, listening, scratch).run())
        finally:
            remove(scratch)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as for every other mistake."""
        raise CannotStart(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m local_account", description=ABOUT)
    parser.add_argument(
        "--port", type=port_of, default=0, help="a free one if it is 0 (the default)"
    )
    parser.add_argument("--settings", type=_path, help="JSON: the inner object of context mendq")
    parser.add_argument("--assembly", type=Path, help="a cloud assembly to deploy instead")
    parser.add_argument("--stop-with-parent", action="store_true", help="end with standard input")
    return parser


def _path(text: str) -> Path | None:
    """An empty SETTINGS in make is none."""
    return Path(text) if text else None
