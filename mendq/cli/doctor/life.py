"""Whether Mendq lives: heartbeat, probe, freeze and calendars, and the scan's last round.

The heartbeat's own metric proves nothing, for anybody who may put metrics can send that: what it
misses beside a run that ended well, `mendq-heartbeat-missing` tells.
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

from mendq.aws.clients import is_closed
from mendq.aws.errors import PASSING, code_of, is_denied
from mendq.cases import items
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import Scanned
from mendq.cases.transactions import Table
from mendq.cli.account import Account
from mendq.cli.decide.freeze import read_freeze_item
from mendq.cli.doctor.check import Check, Status, guarded, judged
from mendq.cli.output import format_age, format_minute
from mendq.probe.probe import SEEN_WITHIN
from mendq.probe.send import ProbeRecord
from mendq.scan.store import findings_of

OK, _, WARN, FAIL = Status
# CloudWatch shows it within a few minutes.
BEATS_WITHIN = timedelta(minutes=10)
LOOKED_BACK = timedelta(hours=6)
PERIOD = timedelta(minutes=1)
# A round is made each hour, in stretches; the bucket has it once its first stretch has ended.
AN_HOUR = timedelta(hours=1)
ROUNDS_WITHIN = 2 * AN_HOUR


def calendars(account: Account) -> Iterator[Check]:
    """One check a calendar, each by itself."""
    for arn in account.settings.freeze_calendars:
        name = f"calendar {arn.rpartition('/')[2]}"
        yield from guarded(name, partial(_calendar, account, name, arn))


def heartbeat(account: Account, now: datetime) -> Iterator[Check]:
    """One check by AWS's own count of the follow-up's runs; raises ClientError or CommandError."""
    service, made_at = account.output("FollowUpFunction"), account.created_at
    runs, errors = (_minutes(account, service, now, each) for each in ("Invocations", "Errors"))
    good = [each for each in runs if runs[each] > errors.get(each, 0)]
    # A datapoint bears the time at which its period begins.
    last = min(max(good) + PERIOD, now) if good else now - 2 * LOOKED_BACK
    lately, failed = (sum(n for at, n in each.items() if at >= last) for each in (runs, errors))
    well = f"the follow-up ran well {format_age(last, now)} ago"
    says = f"{well}; since then" if good else "the follow-up did not run well in 6 hours:"
    failing = f"it failed in {failed:.0f} of {lately:.0f} runs"
    silent = "it was not started: is its schedule enabled, and was it throttled?"
    fault = f"{says} {failing if failed else silent}"
    young = f"none yet: the stack was made {format_age(made_at, now)} ago"
    remedy = f"docs/runbooks/heartbeat_missing.md, and the log of {service}"
    yield judged(
        "heartbeat",
        (not good and now - made_at < BEATS_WITHIN, WARN, young, "ask again in ten minutes"),
        (now - last >= BEATS_WITHIN, FAIL, fault, remedy),
        (failed, WARN, fault, remedy),
        (True, OK, well, ""),
    )


def _minutes(
    account: Account, service: str, now: datetime, metric: Literal["Invocations", "Errors"]
) -> dict[datetime, float]:
    """What Lambda counted of the follow-up, by the minute."""
    answer = account.clients.cloudwatch.get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName=metric,
        Dimensions=[{"Name": "FunctionName", "Value": service}],
        Statistics=["Sum"],
        # By whole minutes, so that those of both are the same.
        StartTime=(now - LOOKED_BACK).replace(second=0, microsecond=0),
        EndTime=now + PERIOD,
        Period=int(PERIOD.total_seconds()),
    )
    return {each["Timestamp"]: each["Sum"] for each in answer["Datapoints"]}


def probe(account: Account, now: datetime) -> Iterator[Check]:
    """One check of the newest probe."""
    found = account.open_store(ProbeRecord).read()
    if found is None:
        says = "none was sent yet: the first comes within the hour after a deployment"
        yield Check("probe", WARN, says, "ask again in an hour")
        return
    sent, page = f"sent {format_age(found.sent_at, now)} ago", "docs/runbooks/probe_lost.md"
    if found.was_seen and found.seen_at is not None:
        late_seconds = int((found.seen_at - found.sent_at).total_seconds())
        says = f"{sent}, seen after {late_seconds} s, spelled {found.spelled}"
        blind = f"{says}, but it came without a queue: Mendq cannot tell of which such a call is"
        yield judged("probe", (found.without_queue, WARN, blind, page), (True, OK, says, ""))
        return
    lost = found.lost_in_a_row
    is_lost = now - found.sent_at > SEEN_WITHIN
    how = " and not seen" if is_lost else ", still on its way"
    status = FAIL if is_lost else WARN if lost else OK
    yield Check("probe", status, f"{sent}{how}; {lost} before it lost in a row", page)


def freeze(account: Account) -> Iterator[Check]:
    """One check: whether somebody has frozen changes by hand."""
    found = "; ".join(map(str, items.freezes_in(read_freeze_item(account))))
    frozen = (found, WARN, found, "mendq thaw")
    yield judged("freeze", frozen, (True, OK, "not frozen by hand", ""))


def _calendar(account: Account, name: str, arn: str) -> Iterator[Check]:
    """One that is closed is somebody's word, one that heal cannot read a fault.

    Asked with the operator's rights, which are not heal's: who of the two is denied is told apart
    by whose calendar it is. Raises what does not say that heal cannot read it either.
    https://docs.aws.amazon.com/systems-manager/latest/userguide/change-calendar-getstate.html
    """
    here, owner = account.settings.account, arn.split(":")[4]
    closed, code = None, ""
    try:
        closed = is_closed(account.clients, [arn])
    except ClientError as error:
        code = code_of(error)
        if code in PASSING or (owner == here and is_denied(error)):
            raise
    unread = f"{arn} cannot be read ({code}), so Mendq is frozen until it can"
    share = "" if owner == here else f"share it with account {here} from {owner}, or "
    yield judged(
        name,
        (code, FAIL, unread, f"{share}take it out of freezeCalendars and deploy"),
        (closed, WARN, f"{arn} is closed: nothing is changed", "nothing, if it is meant so"),
        (True, OK, f"{arn} is open", ""),
    )


class LastRound(Struct, frozen=True, dict=True):
    """Numbers of queues, as the case bucket holds them.

    At `failed` something could not be looked at, in queues or the listing of them; `unseen` are
    those of which nothing was seen, and not because they are `gone`: a version before did not
    write these.
    """

    at: datetime
    queues_scanned: int
    suspects: int
    measured: int
    skipped_for_budget: int
    findings: list[dict[str, Any]]
    gone: int = 0
    unseen: int = 0
    failed: int = 0
    managed: frozenset[str] = frozenset()
    not_looked_at: dict[str, str] = {}
    skipped: frozenset[str] = frozenset()

    @cached_property
    def by_queue(self) -> Mapping[str, list[str]]:
        """The symptoms that were found of each."""
        found = defaultdict[str, list[str]](list)
        for each in self.findings:
            found[str(each.get("queue_arn"))].append(str(each.get("symptom")))
        return found

    @property
    def says(self) -> str:
        """In one line, without how long ago it was."""
        skipped = self.skipped_for_budget
        left_out = f"{skipped:,} skipped for the budget" if skipped else "none skipped"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return (
            f"{format_minute(self.at)}, {self.queues_scanned:,} queues, "
            f"{self.suspects:,} suspects, "
            f"{self.measured:,} measured, {left_out}{failed}, {len(self.findings):,} findings"
        )


def last_round(account: Account) -> LastRound | None:
    """None where none was made, or none can be read; raises ClientError or CaseStoreUnavailable."""
    return next((found for found, _ in rounds(account)), None)


def rounds(account: Account) -> Iterator[tuple[LastRound, str | None]]:
    """The last two that can be read, the newest first, each with the name of the queue that it has
    come to, None where to all; raises ClientError or CaseStoreUnavailable.
    """
    item = account.open_store(Table).get(items.key(items.ACCOUNT, "scan"))
    if "round" not in item:
        return
    bucket = CaseBucket(account.clients.s3, account.output("CaseBucket"))
    begun = datetime.fromisoformat(item["round"]["S"])
    for hour in (begun, begun - AN_HOUR):
        # The first stretch of the newest may be under way.
        with suppress(account.clients.s3.exceptions.NoSuchKey, ValidationError, *items.NOT_OURS):
            reached = items.text_in(item, "after") if hour == begun and "done" not in item else None
            yield convert(findings_of(hour, bucket), LastRound), reached


def round_check(found: LastRound | None, account: Account, now: datetime) -> Check:
    """How the last round went: whether what only the scan finds is found at all."""
    log = f"see the log of {account.output('ScanFunction')}"
    if found is None:
        says = "none was made yet: the first comes within the hour after a deployment"
        is_young = now - account.created_at < ROUNDS_WITHIN
        young = (is_young, WARN, says, "ask again in an hour")
        return judged("scan", young, (True, FAIL, says, log))
    says = f"the last round was {format_age(found.at, now)} ago: {found.says}"
    scanned = Scanned(found.queues_scanned, found.gone, found.unseen)
    return judged(
        "scan",
        (scanned.is_blind, FAIL, f"{says}; nothing could be seen of any queue", log),
        (now - found.at >= ROUNDS_WITHIN, FAIL, says, log),
        (found.failed, WARN, says, log),
        (found.skipped_for_budget, WARN, says, "raise limits.scanMetricsPerDay, and deploy"),
        (True, OK, says, ""),
    )
