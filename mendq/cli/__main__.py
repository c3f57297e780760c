"""The command as a process of its own."""

from __future__ import annotations

import signal


def main() -> None:
    """Run one command and exit with its number; until it runs, Ctrl-C ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mendq.cli.app import app  # noqa: PLC0415 - Ctrl-C may come while it is imported
    from mendq.cli.output import report_write_errors  # noqa: PLC0415

    with report_write_errors():
        app(prog_name="mendq")


if __name__ == "__main__":
    main()
