"""A schedule of the deployed stack, fired for now or for a time that lies ahead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from local_account.process import LocalAccount

FOLLOW_UP = "FollowUpFunction"
SWEEP = "SweepFunction"


@dataclass(frozen=True)
class DeployedSchedule:
    """It fires by itself as well."""

    account: LocalAccount
    name: str

    @classmethod
    def of(cls, account: LocalAccount, output: str) -> Self:
        """Find the schedule by the function that it starts, which an output of the stack names."""
        function = account.outputs[output]
        scheduler = account.client("scheduler")
        (name,) = (
            each["Name"]
            for each in scheduler.list_schedules()["Schedules"]
            if each["Target"]["Arn"].endswith(f":{function}")
        )
        return cls(account, name)

    def fire(self, at: datetime | None = None) -> None:
        """Have its function look after what is due then; None: what is due now."""
        self.account.fire(self.name, at or datetime.now(UTC))
