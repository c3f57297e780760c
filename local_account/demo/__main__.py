"""`python -m local_account.demo`: exits with 0 only if every claim of the demo holds."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the demo and return its exit code. Ctrl-C during the imports ends it silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from local_account.demo import run  # noqa: PLC0415 - Ctrl-C may come while it is imported

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run.main()


if __name__ == "__main__":
    sys.exit(main())
