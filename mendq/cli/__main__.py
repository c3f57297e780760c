"""The entry point of the command `mendq`: run one command, and exit with its code."""

from __future__ import annotations

import signal


def main() -> None:
    """Run one command and exit with its code. Until it runs, Ctrl-C ends the process silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mendq.cli.app import app  # noqa: PLC0415 - Ctrl-C may come during the import
    from mendq.cli.output import report_write_errors  # noqa: PLC0415

    with report_write_errors():
        app(prog_name="mendq")


if __name__ == "__main__":
    main()
