"""The nightly job and the weekly report."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from infra.alarms.description import AlarmDescription
from infra.alarms.watching import A_FAULT, AN_HOUR, AS_BEFORE, BELOW, Firing, Ringing, own, watch
from mendq.model.case import Severity
from mendq.model.names import OwnMetric
from mendq.nightly.outcome import REPORT_WITHIN, NightlyMetric

# A day, and what nightly runs differ in length.
MISSING_HOURS = 27
# Three tries of one delivery, with what lies between them.
DELIVERY_PERIOD = Duration.minutes(15)
IMPACT = "The week's report lacks this nightly run; queues are fixed all the same."
RUNBOOK = "nightly_and_report"
FAILED = AlarmDescription(
    "nightly_failed", "the newest nightly run ended and wrote nothing", IMPACT, runbook=RUNBOOK
)
MISSING = AlarmDescription(
    "nightly_missing",
    f"no nightly run wrote anything for {MISSING_HOURS} hours, or none ever has",
    IMPACT,
    runbook=RUNBOOK,
)
DOUBTFUL = AlarmDescription(
    "nightly_doubtful",
    "the newest nightly run read nothing, or far less than is usual",
    IMPACT,
    runbook=RUNBOOK,
)
NO_REPORT = "There is no new weekly report; queues are fixed all the same."
WEEK_FAILED = AlarmDescription(
    "week_failed",
    "the newest weekly run ended and summed nothing up",
    NO_REPORT,
    runbook=RUNBOOK,
    severity=Severity.INFO,
)
REPORT_MISSING = AlarmDescription(
    "report_missing",
    f"no week was summed up for {REPORT_WITHIN.days} days; checked after each nightly run",
    NO_REPORT,
    runbook=RUNBOOK,
    severity=Severity.INFO,
)
NOT_DELIVERED = AlarmDescription(
    "report_not_delivered",
    "the newest report was not delivered; only where report.sender and report.recipients are set",
    "Somebody has not got the weekly report. Its page lies in the report bucket.",
    "mendq report",
    "report_not_mailed",
    Severity.INFO,
)
ANNOUNCED = (FAILED, MISSING, DOUBTFUL, WEEK_FAILED, REPORT_MISSING, NOT_DELIVERED)


class NightlyRuns(Construct):
    """What the newest nightly run, week or report said holds until the next one."""

    def __init__(self, scope: Construct, name: str, *, mails: bool) -> None:
        super().__init__(scope, name)
        missing = Firing(1, A_FAULT, MISSING_HOURS, MISSING_HOURS, BELOW)
        written = own(NightlyMetric.WRITTEN, "Maximum", AN_HOUR)
        self.alarms = [
            self._newest(FAILED, NightlyMetric.FAILED),
            watch(self, MISSING, written, missing),
            self._newest(DOUBTFUL, NightlyMetric.DOUBTFUL),
            self._newest(WEEK_FAILED, OwnMetric.WEEKS_FAILED),
            self._newest(REPORT_MISSING, NightlyMetric.REPORT_MISSING),
        ]
        if mails:
            # The least of the tries: one that got through is no alarm.
            tries = own(OwnMetric.REPORTS_NOT_DELIVERED, "Minimum", DELIVERY_PERIOD)
            self.alarms.append(watch(self, NOT_DELIVERED, tries, Firing(1, AS_BEFORE)))

    def _newest(self, announced: AlarmDescription, metric: OwnMetric | NightlyMetric) -> Ringing:
        return watch(self, announced, own(metric, "Maximum", AN_HOUR), Firing(1, AS_BEFORE))
