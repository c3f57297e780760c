"""The deployed schedule of the follow-up, fired for now or for a time that lies ahead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from local_account.process import LocalAccount


@dataclass(frozen=True)
class FollowUp:
    """Its schedule fires each minute by itself as well."""

    account: LocalAccount
    schedule: str

    @classmethod
    def of(cls, account: LocalAccount) -> Self:
        """Find the schedule by the function that it starts."""
        function = account.outputs["FollowUpFunction"]
        scheduler = account.client("scheduler")
        (name,) = (
            each["Name"]
            for each in scheduler.list_schedules()["Schedules"]
            if each["Target"]["Arn"].endswith(f":{function}")
        )
        return cls(account, name)

    def fire(self, at: datetime | None) -> None:
        """Have it look after the cases that are due then; None: that are due now."""
        self.account.fire(self.schedule, at or datetime.now(UTC))
