"""An operator's shell: `mendq` as it is installed, against the account, and what it printed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, REGION, REPOSITORY, SECRET_KEY

PATIENCE_SECONDS = 120
# As scripts know the command: done; a person's value was kept.
DONE = 0
KEPT = 3


@dataclass(frozen=True)
class Done:
    """A command that has ended: as it was typed, its exit code, both of its outputs."""

    line: str
    code: int
    text: str

    def shown(self) -> RenderableType:
        """At full width, as a terminal would have it."""
        return Group(
            Rule(Text(f"$ {self.line}", style="bold"), align="left", style="cyan"),
            Text(self.text.strip("\n")),
            Rule(Text(f"exit {self.code}", style="dim"), align="right", style="cyan"),
        )


@dataclass(frozen=True)
class OperatorShell:
    """Somebody with credentials for the account, at a terminal of so many columns."""

    account: LocalAccount
    columns: int

    def mendq(self, *arguments: str) -> Done:
        """Run `mendq` without a terminal; it never waits for an answer."""
        done = subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            cwd=REPOSITORY,
            env={
                **os.environ,
                "AWS_ENDPOINT_URL": self.account.endpoint_url,
                "AWS_ACCESS_KEY_ID": ACCESS_KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                "AWS_REGION": REGION,
                "COLUMNS": f"{self.columns}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Done(shlex.join(["mendq", *arguments]), done.returncode, done.stdout)
