"""Whether the follow-up runs: as `mendq-heartbeat-missing` judges it, and what is wrong if not.

Its own metric alone proves nothing, for anybody who may put metrics can send that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Status
from mendq.cli.output import age
from mendq.model.names import HEARTBEAT, NAMESPACE

# CloudWatch shows it within a few minutes.
BEATS_WITHIN = timedelta(minutes=10)
LOOKED_BACK = timedelta(hours=6)
PERIOD = timedelta(minutes=1)
Counts = Mapping[datetime, float]


@dataclass(frozen=True)
class Minutes:
    """Runs, errors and figures of the follow-up, by the minute."""

    runs: Counts
    errors: Counts
    beats: Counts

    @property
    def good(self) -> list[datetime]:
        """Those in which a run both ended well and told its figures."""
        return [
            each
            for each in self.runs
            if self.runs[each] > self.errors.get(each, 0) and self.beats.get(each)
        ]

    def since(self, start: datetime) -> Minutes:
        parts = (self.runs, self.errors, self.beats)
        return Minutes(*({t: n for t, n in each.items() if t >= start} for each in parts))

    @property
    def fault(self) -> str:
        """What is wrong where none is good, in the words of the runbook."""
        runs, errors = int(sum(self.runs.values())), int(sum(self.errors.values()))
        if not runs:
            forged = ", and somebody else sends its metric" if self.beats else ""
            return f"it was not started{forged}: is its schedule enabled, and was it throttled?"
        if errors:
            return f"it failed in {errors} of {runs} runs"
        return "it ran without an error, and no metric came: may it write its log?"


def look(account: Account, now: datetime) -> list[Check]:
    """One check; raises ClientError or Stopped."""
    service = account.output("FollowUpFunction")
    minutes = _minutes(account, service, now)
    remedy = f"docs/runbooks/heartbeat_missing.md, and the log of {service}"
    if not minutes.good:
        if now - account.created_at < BEATS_WITHIN:
            says = f"none yet: the stack was made {age(account.created_at, now)} ago"
            return [Check("heartbeat", Status.WARN, says, "ask again in ten minutes")]
        says = f"the follow-up did not run well in 6 hours: {minutes.fault}"
        return [Check("heartbeat", Status.FAIL, says, remedy)]
    # A datapoint bears the time at which its period begins.
    last = min(max(minutes.good) + PERIOD, now)
    says = f"the follow-up ran well {age(last, now)} ago"
    after = minutes.since(last)
    is_silent = now - last >= BEATS_WITHIN
    if not is_silent and not any(after.errors.values()):
        return [Check("heartbeat", Status.OK, says)]
    status = Status.FAIL if is_silent else Status.WARN
    return [Check("heartbeat", status, f"{says}; since then {after.fault}", remedy)]


def _minutes(account: Account, service: str, now: datetime) -> Minutes:
    """Runs, errors and figures, asked of CloudWatch one after the other."""
    of_lambda: Any = {
        "Namespace": "AWS/Lambda",
        "Dimensions": [{"Name": "FunctionName", "Value": service}],
        "Statistics": ["Sum"],
    }
    of_ours: Any = {"Namespace": NAMESPACE, "Dimensions": [], "Statistics": ["SampleCount"]}
    asked = (("Invocations", of_lambda), ("Errors", of_lambda), (HEARTBEAT, of_ours))
    found: list[Counts] = []
    for metric, question in asked:
        answer = account.clients.cloudwatch.get_metric_statistics(
            MetricName=metric,
            # By whole minutes, so that those of all three are the same.
            StartTime=(now - LOOKED_BACK).replace(second=0, microsecond=0),
            EndTime=now + PERIOD,
            Period=int(PERIOD.total_seconds()),
            **question,
        )
        (statistic,) = question["Statistics"]
        points: Any = answer["Datapoints"]
        found.append({each["Timestamp"]: each[statistic] for each in points})
    return Minutes(*found)
