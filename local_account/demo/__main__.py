"""`python -m local_account.demo`: exits with 0 only if the queues really are as it says."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the demo and return its exit code; until it runs, Ctrl-C ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from local_account.demo import run  # noqa: PLC0415 - Ctrl-C may come while it is imported

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run.main()


if __name__ == "__main__":
    sys.exit(main())
