"""`python -m local_account`: an AWS account on this machine with the stack deployed."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import NoReturn


def run() -> NoReturn:
    """Serve the account. SIGINT or SIGTERM ends it silently, also during the imports."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _exit_silently)
    from local_account.command_line import main  # noqa: PLC0415  takes long to import

    try:
        exit_code = main()
    except Exception:  # noqa: BLE001  a bug of the account: print all of it
        traceback.print_exc()
        exit_code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # A normal exit would wait for MiniStack's worker threads, which may never end.
    os._exit(exit_code)


def _exit_silently(*_: object) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    run()
