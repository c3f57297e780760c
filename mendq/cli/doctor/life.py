"""Checks of the parts that must always run: heartbeat, probe, freeze, calendars, and the scan.

The heartbeat check does not use Mendq's own heartbeat metric, because everybody who may put
metrics could fake the metric. The check uses the runs and errors that Lambda itself counts. If
follow_up runs well but the metric is missing, the alarm `mendq-heartbeat-missing` reports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, Literal

from botocore.exceptions import ClientError
from msgspec import Struct, ValidationError, convert

from mendq.aws.clients import is_any_calendar_closed
from mendq.aws.errors import TRANSIENT_ERROR_CODES, error_code_of, is_access_denied
from mendq.cases import items
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import ScanResult
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.transactions import Table
from mendq.cli.account import Account
from mendq.cli.decide.freeze import read_freeze_item
from mendq.cli.doctor.check import Check, Status, run_checks
from mendq.cli.output import format_age, format_minute
from mendq.model.mutes import MuteUse
from mendq.notifications.text import format_count, to_terminal_text
from mendq.probe.probe import PROBE_ARRIVAL_TIMEOUT
from mendq.probe.send import ProbeRecord
from mendq.scan.mutes import describe_muted_harm
from mendq.scan.store import SCAN_SUMMARY_KEY, read_findings_document

# follow_up must have run well within this time. CloudWatch shows a run within a few minutes.
MAXIMUM_HEARTBEAT_AGE = timedelta(minutes=10)
HEARTBEAT_HISTORY_DURATION = timedelta(hours=6)
LAMBDA_METRIC_PERIOD = timedelta(minutes=1)
# A scan starts each hour and may need several runs of its Lambda. The case bucket has its findings
# after the first run.
SCAN_INTERVAL = timedelta(hours=1)
MAXIMUM_SCAN_AGE = 2 * SCAN_INTERVAL
_MOST_MUTE_CHARACTERS = 600
# The scan leaves a symptom out only if it may not read the state of KMS keys.
_UNCHECKED_SYMPTOMS_REMEDY = (
    "deploy this version of Mendq, which grants the scan's role kms:DescribeKey. If that is done, "
    "the key policy must allow kms:DescribeKey to the root of the key's account "
    "(arn:aws:iam::ACCOUNT:root): docs/runbooks/kms_key_unusable.md"
)


def check_calendars(account: Account) -> Iterator[Check]:
    """Yield one check for each change calendar in the settings, even if one cannot be read."""
    for calendar_arn in account.settings.freeze_calendars:
        check_name = f"calendar {calendar_arn.rpartition('/')[2]}"
        yield from run_checks(
            check_name, partial(_check_calendar, account, check_name, calendar_arn)
        )


def check_heartbeat(account: Account, now: datetime) -> Iterator[Check]:
    """Yield one check: when did follow_up last run without an error, by Lambda's own metrics?

    Raises ClientError if CloudWatch cannot be read, CommandError if the stack has no follow_up.
    """
    function_name = account.output("FollowUpFunction")
    created_at = account.created_at
    run_count_by_minute = _read_counts_by_minute(account, function_name, now, "Invocations")
    error_count_by_minute = _read_counts_by_minute(account, function_name, now, "Errors")
    minutes_of_good_runs = [
        minute
        for minute, count in run_count_by_minute.items()
        if count > error_count_by_minute.get(minute, 0)
    ]
    last_good_run_at = now - 2 * HEARTBEAT_HISTORY_DURATION
    if minutes_of_good_runs:
        # CloudWatch gives the time at which a period begins.
        last_good_run_at = min(max(minutes_of_good_runs) + LAMBDA_METRIC_PERIOD, now)
    is_heartbeat_late = now - last_good_run_at >= MAXIMUM_HEARTBEAT_AGE
    run_count_since_good_run = sum(
        count for minute, count in run_count_by_minute.items() if minute >= last_good_run_at
    )
    error_count_since_good_run = sum(
        count for minute, count in error_count_by_minute.items() if minute >= last_good_run_at
    )
    if not minutes_of_good_runs and now - created_at < MAXIMUM_HEARTBEAT_AGE:
        sentence = f"none yet: the stack was made {format_age(created_at, now)} ago"
        yield Check("heartbeat", Status.WARN, sentence, "ask again in ten minutes")
        return
    ok_text = f"the follow-up ran well {format_age(last_good_run_at, now)} ago"
    if not is_heartbeat_late and not error_count_since_good_run:
        yield Check("heartbeat", Status.OK, ok_text)
        return
    sentence_beginning = "the follow-up did not run well in 6 hours:"
    if minutes_of_good_runs:
        sentence_beginning = f"{ok_text}; since then"
    fault = "it was not started: is its schedule enabled, and was it throttled?"
    if error_count_since_good_run:
        fault = (
            f"it failed in {error_count_since_good_run:.0f} of {run_count_since_good_run:.0f} runs"
        )
    status = Status.FAIL if is_heartbeat_late else Status.WARN
    remedy = f"docs/runbooks/heartbeat_missing.md, and the log of {function_name}"
    yield Check("heartbeat", status, f"{sentence_beginning} {fault}", remedy)


def _read_counts_by_minute(
    account: Account,
    function_name: str,
    now: datetime,
    metric_name: Literal["Invocations", "Errors"],
) -> dict[datetime, float]:
    """Return Lambda's count of the function's runs or errors, by the start of the minute."""
    answer = account.clients.cloudwatch.get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName=metric_name,
        Dimensions=[{"Name": "FunctionName", "Value": function_name}],
        Statistics=["Sum"],
        # A whole minute, so that both metrics have the same periods.
        StartTime=(now - HEARTBEAT_HISTORY_DURATION).replace(second=0, microsecond=0),
        EndTime=now + LAMBDA_METRIC_PERIOD,
        Period=int(LAMBDA_METRIC_PERIOD.total_seconds()),
    )
    return {datapoint["Timestamp"]: datapoint["Sum"] for datapoint in answer["Datapoints"]}


def check_probe(account: Account, now: datetime) -> Iterator[Check]:
    """Yield one check of the newest probe: did Mendq receive its failed call?"""
    probe = account.open_store(ProbeRecord).read()
    if probe is None:
        sentence = "none was sent yet: the first comes within the hour after a deployment"
        yield Check("probe", Status.WARN, sentence, "ask again in an hour")
        return
    sent_text = f"sent {format_age(probe.sent_at, now)} ago"
    runbook_path = "docs/runbooks/probe_lost.md"
    if probe.was_seen and probe.seen_at is not None:
        arrival_delay_seconds = int((probe.seen_at - probe.sent_at).total_seconds())
        sentence = f"{sent_text}, seen after {arrival_delay_seconds} s, spelled {probe.spelled}"
        if probe.without_queue:
            sentence += ", but it came without a queue: Mendq cannot tell of which such a call is"
            yield Check("probe", Status.WARN, sentence, runbook_path)
        else:
            yield Check("probe", Status.OK, sentence)
        return
    lost_probe_count = probe.lost_in_a_row
    if now - probe.sent_at > PROBE_ARRIVAL_TIMEOUT:
        status = Status.FAIL
        probe_outcome_text = " and not seen"
    else:
        status = Status.WARN if lost_probe_count else Status.OK
        probe_outcome_text = ", still on its way"
    yield Check(
        "probe",
        status,
        f"{sent_text}{probe_outcome_text}; {lost_probe_count} before it lost in a row",
        runbook_path,
    )


def check_freeze(account: Account) -> Iterator[Check]:
    """Yield one check: has an operator frozen all changes?"""
    freezes_text = "; ".join(
        str(freeze) for freeze in items.read_freezes(read_freeze_item(account))
    )
    if freezes_text:
        yield Check("freeze", Status.WARN, freezes_text, "mendq thaw")
    else:
        yield Check("freeze", Status.OK, "not frozen by hand")


def _check_calendar(account: Account, check_name: str, calendar_arn: str) -> Iterator[Check]:
    """Yield the check of one change calendar: OK if it is open, a warning if it is closed.

    It is a fault if the calendar does not exist or cannot be read. But temporary errors are raised
    as ClientError. So is a denial for a calendar of the stack's own account: the operator's rights
    are used here, and heal's rights may be wider.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/change-calendar-getstate.html
    """
    stack_account = account.settings.account
    owner_account = calendar_arn.split(":")[4]
    try:
        is_calendar_closed = is_any_calendar_closed(account.clients, [calendar_arn])
    except ClientError as error:
        error_code = error_code_of(error)
        if error_code in TRANSIENT_ERROR_CODES or (
            owner_account == stack_account and is_access_denied(error)
        ):
            raise
        remedy = "take it out of freezeCalendars and deploy"
        if owner_account != stack_account:
            remedy = f"share it with account {stack_account} from {owner_account}, or {remedy}"
        sentence = f"{calendar_arn} cannot be read ({error_code}), so Mendq is frozen until it can"
        yield Check(check_name, Status.FAIL, sentence, remedy)
        return
    if is_calendar_closed:
        sentence = f"{calendar_arn} is closed: nothing is changed"
        yield Check(check_name, Status.WARN, sentence, "nothing, if it is meant so")
    else:
        yield Check(check_name, Status.OK, f"{calendar_arn} is open")


class HourlyScan(Struct, frozen=True, dict=True):
    """One hourly scan, as the case bucket stores it. Numbers count queues if no comment differs."""

    at: datetime
    queues_scanned: int
    # Queues that may have a symptom, so that their metrics had to be read.
    suspects: int
    measured: int
    # Suspects that were not measured, because the day's budget for metrics was spent.
    skipped_for_budget: int
    findings: list[dict[str, Any]]
    # Queues that were deleted meanwhile. Earlier versions did not store this and the next number.
    gone: int = 0
    # Queues that still exist and of which nothing could be read.
    unseen: int = 0
    # Queues that could not be read or not completely, and lists of queues that could not be read.
    failed: int = 0
    managed: frozenset[str] = frozenset()
    not_looked_at: dict[str, str] = {}
    # Symptoms that could not be judged on some queues, with the reason.
    not_judged: dict[str, str] = {}
    skipped: frozenset[str] = frozenset()
    # By ARN, why a queue was not measured, although CloudWatch was asked.
    metric_gaps: dict[str, str] = {}
    # Findings that the document only counts. The summary of a scan-only stack names none.
    findings_left_out: int = 0
    # Findings that a mute of the settings hides.
    muted: list[dict[str, Any]] = []
    # What the scan says of each mute. Empty if it did not reach all queues.
    mutes: list[MuteUse] = []

    @cached_property
    def symptoms_by_queue(self) -> Mapping[str, list[str]]:
        """The symptoms that the scan found, by queue ARN."""
        symptoms_by_queue = defaultdict[str, list[str]](list)
        for finding in self.findings:
            queue_arn = str(finding.get("queue_arn"))
            symptoms_by_queue[queue_arn].append(str(finding.get("symptom")))
        return symptoms_by_queue

    @property
    def summary(self) -> str:
        """The time and the numbers of the scan, in one line."""
        skipped_count = self.skipped_for_budget
        skipped_text = (
            f"{skipped_count:,} skipped for the budget" if skipped_count else "none skipped"
        )
        if self.metric_gaps:
            skipped_text += f", {len(self.metric_gaps):,} without complete metrics"
        failed_text = f", {self.failed:,} failed" if self.failed else ""
        return (
            f"{format_minute(self.at)}, {self.queues_scanned:,} queues, "
            f"{self.suspects:,} suspects, "
            f"{self.measured:,} measured, {skipped_text}{failed_text}, "
            f"{len(self.findings) + self.findings_left_out:,} findings{self._muted_text}"
        )

    @property
    def _muted_text(self) -> str:
        """The number of muted findings, and the harm that they do. Empty if no finding is muted."""
        if not self.muted:
            return ""
        harm_text = describe_muted_harm(str(finding.get("class")) for finding in self.muted)
        return f", {len(self.muted):,} muted" + (f" ({harm_text})" if harm_text else "")


def read_scan_only_summary(account: Account) -> HourlyScan | None:
    """Return the numbers of the newest run of a scan-only stack. None if there are none to read.

    Raises CaseStoreUnavailable if the case table does not answer.
    """
    summary_item = account.open_store(Table).get(SCAN_SUMMARY_KEY)
    with suppress(ValidationError, *items.DECODE_ERRORS):
        return convert(items.read_json(summary_item, "summary", Any), HourlyScan)
    return None


def read_last_scan(account: Account) -> HourlyScan | None:
    """Return the newest scan that `read_last_scans` can read, or None if there is none.

    Raises ClientError or CaseStoreUnavailable if the case store or the case bucket does not answer.
    """
    for scan, _ in read_last_scans(account):
        return scan
    return None


def read_last_complete_scan(account: Account) -> HourlyScan | None:
    """Return the newest complete scan that `read_last_scans` can read. None if it finds none.

    Raises ClientError or CaseStoreUnavailable if the case store or the case bucket does not answer.
    """
    for scan, last_scanned_queue_name in read_last_scans(account):
        if last_scanned_queue_name is None:
            return scan
    return None


def read_last_scans(account: Account) -> Iterator[tuple[HourlyScan, str | None]]:
    """Yield the scans of the newest hour and of the hour before it, the newest first.

    A scan that cannot be read is left out. Each scan comes with the name of the last queue that it
    has checked (empty if there is none yet), or with None if the scan is complete. The earlier one
    counts as complete. Raises ClientError or CaseStoreUnavailable if the case store or the case
    bucket does not answer.
    """
    scan_item = account.open_store(Table).get(items.item_key(ACCOUNT_PARTITION, "scan"))
    if "round" not in scan_item:
        return
    bucket = CaseBucket(account.clients.s3, account.output("CaseBucket"))
    newest_hour = datetime.fromisoformat(scan_item["round"]["S"])
    for scan_hour in (newest_hour, newest_hour - SCAN_INTERVAL):
        # The newest scan has no findings in the bucket before its first run has ended.
        with suppress(
            account.clients.s3.exceptions.NoSuchKey, ValidationError, *items.DECODE_ERRORS
        ):
            last_scanned_queue_name = None
            if scan_hour == newest_hour and "done" not in scan_item:
                last_scanned_queue_name = items.read_text(scan_item, "after")
            yield (
                convert(read_findings_document(scan_hour, bucket), HourlyScan),
                last_scanned_queue_name,
            )


def check_mutes(account: Account, scan: HourlyScan | None, now: datetime) -> Iterator[Check]:
    """Yield a warning for each mute of the settings that has ended or is not needed.

    If there is none of these, yield one check that counts the mutes. Without mutes, yield nothing.

    Args:
        account: The account, with the settings of the stack.
        scan: The last complete scan; None if there is none to read.
        now: The time.
    """
    mutes = account.settings.mutes
    reason_by_mute = {mute: mute.ended_text for mute in mutes if mute.has_ended(now.date())}
    use_by_mute = {(use.queue, use.symptom, use.until): use for use in scan.mutes} if scan else {}
    for mute in mutes:
        use = use_by_mute.get((mute.queue, mute.symptom, mute.until))
        if mute not in reason_by_mute and use is not None and use.stale_reason:
            reason_by_mute[mute] = use.stale_reason
    remedy = "change the setting mutes, and deploy"
    for mute, reason in reason_by_mute.items():
        sentence = to_terminal_text(f"{mute.symptom}: {reason}", _MOST_MUTE_CHARACTERS)
        yield Check("mutes", Status.WARN, sentence, remedy)
    if mutes and not reason_by_mute:
        yield Check("mutes", Status.OK, f"{format_count(len(mutes), 'mute')} in the settings")


def check_scan(scan: HourlyScan | None, account: Account, now: datetime) -> Check:
    """Return the check of the last hourly scan. `scan` is None if no scan could be read.

    The scan matters because many symptoms cause no failed call: only the scan finds them.
    """
    log_remedy = f"see the log of {account.output('ScanFunction')}"
    if scan is None:
        sentence = "none was made yet: the first comes within the hour after a deployment"
        if now - account.created_at < MAXIMUM_SCAN_AGE:
            return Check("scan", Status.WARN, sentence, "ask again in an hour")
        return Check("scan", Status.FAIL, sentence, log_remedy)
    sentence = f"the last round was {format_age(scan.at, now)} ago: {scan.summary}"
    if ScanResult(scan.queues_scanned, scan.gone, scan.unseen).is_blind:
        sentence += "; nothing could be seen of any queue"
        return Check("scan", Status.FAIL, sentence, log_remedy)
    if now - scan.at >= MAXIMUM_SCAN_AGE:
        return Check("scan", Status.FAIL, sentence, log_remedy)
    if scan.failed:
        return Check("scan", Status.WARN, sentence, log_remedy)
    if scan.skipped_for_budget:
        return Check("scan", Status.WARN, sentence, "raise limits.scanMetricsPerDay, and deploy")
    if scan.metric_gaps:
        remedy = "nothing to do unless it repeats: the next scan asks CloudWatch again"
        return Check("scan", Status.WARN, sentence, remedy)
    if scan.not_judged:
        unjudged_texts = [f"{symptom}, because {why}" for symptom, why in scan.not_judged.items()]
        sentence += f"; not judged: {'; '.join(unjudged_texts)}"
        return Check("scan", Status.WARN, sentence, _UNCHECKED_SYMPTOMS_REMEDY)
    return Check("scan", Status.OK, sentence)
