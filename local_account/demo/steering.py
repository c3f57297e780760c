"""What moves the account on beside the calls: its deployed schedules, and an operator's shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, REGION, REPOSITORY, SECRET_KEY

FOLLOW_UP, SCAN = "FollowUpFunction", "ScanFunction"
PATIENCE_SECONDS = 120
DONE = 0  # the exit code


@dataclass(frozen=True)
class DeployedSchedule:
    """A schedule of the deployed stack; it fires by itself as well."""

    account: LocalAccount
    name: str

    @classmethod
    def of(cls, account: LocalAccount, output: str) -> Self:
        """Find the schedule by the function that it starts, which an output of the stack names."""
        function, scheduler = account.outputs[output], account.client("scheduler")
        (name,) = (
            each["Name"]
            for each in scheduler.list_schedules()["Schedules"]
            if each["Target"]["Arn"].endswith(f":{function}")
        )
        return cls(account, name)

    def fire(self, at: datetime | None = None) -> None:
        """Have its function look after what is due then; None: what is due now."""
        self.account.fire(self.name, at or datetime.now(UTC))


@dataclass(frozen=True)
class Done:
    """A command that has ended: as it was typed, its exit code, both of its outputs."""

    line: str
    code: int
    text: str

    def shown(self) -> RenderableType:
        """The command at full width, as a terminal would have it."""
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
        own = {
            "AWS_ENDPOINT_URL": self.account.endpoint_url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "COLUMNS": f"{self.columns}",
        }
        done = subprocess.run(
            [sys.executable, "-m", "mendq.cli", *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Done(shlex.join(["mendq", *arguments]), done.returncode, done.stdout)
