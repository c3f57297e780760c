"""Keep Mendq's own redrives away from a DLQ while an operator's command works on its messages.

The command takes the same claim (a lock in the case store) on the DLQ that each run of Mendq's
redrive Lambda takes. If the Lambda finds the DLQ claimed, it tries again a minute later. If a
command dies, its claim ends after CLAIM_SECONDS. Nothing is claimed if Mendq is not deployed.

Rules:

1. A thread renews the claim. No error ends the thread before the claim counts as lost.
2. Before each write of the claim, this machine's clock is compared with the case store's, because
   the claim's end is compared with the time of the run that wants the DLQ. A command may run for
   hours, so one comparison at the beginning is not enough.
3. Before each batch, the command asks if the claim was renewed in time. The thread cannot answer
   that: it sleeps while the machine sleeps. The age of the claim is measured with a clock that
   counts that sleep (`mendq/consumer/clock.py` says what holds on macOS). A claim that is too old
   is renewed before the batch, and the batch does not go if another run has the DLQ.
4. If the claim is lost, no further batch goes, and the command says why.

The module also reads and describes the progress of Mendq's own redrives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, RLock, Thread
from uuid import uuid4

from msgspec import Struct, field

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError
from mendq.cli.output import LabelledLine, format_minute
from mendq.consumer.clock import read_sleep_counting_clock
from mendq.model.case import Case
from mendq.model.plan import owner_of_case
from mendq.model.queue import parse_queue_arn
from mendq.model.steps import Owner
from mendq.notifications.commands import mendq_case_id_command
from mendq.notifications.text import format_count
from mendq.redrive.progress import RedriveProgress, Stage
from mendq.redrive.store import CLAIM_SECONDS, RedriveStore

_LOG = logging.getLogger(__name__)
# Time between renewals. After two that fail, there is still time to finish the current batch.
CLAIM_RENEWAL_SECONDS = CLAIM_SECONDS / 3
# The case store compares the end of a claim with the time of the run that wants the DLQ. A clock
# that is wrong by more than this could end another run's claim too early.
LARGEST_CLOCK_DIFFERENCE = timedelta(seconds=30)


class DlqHold(Struct):
    """A command's hold on a DLQ. This base class claims nothing, so its hold is never lost."""

    def may_send_batch(self) -> bool:
        """Return True if the command still holds the DLQ. Otherwise say why, and stop the work."""
        return True


@contextmanager
def hold_dlq(
    account: Account, dlq_arn: str, stop_event: Event, faults: list[str]
) -> Iterator[DlqHold]:
    """Claim a DLQ for as long as the block lasts. A thread renews the claim.

    Ask the result before each batch. If the claim is lost, the reason is appended to `faults` and
    `stop_event` is set. Nothing is claimed if `dlq_arn` is empty or Mendq is not deployed. Raises
    CommandError if another redrive is at work on the DLQ or this machine's clock is wrong, and
    CaseStoreUnavailable or CaseStoreUnreadable.
    """
    redrive_store = account.open_store_if_deployed(RedriveStore) if dlq_arn else None
    if redrive_store is None:
        yield DlqHold()
        return
    require_right_clock(account.clock_difference)
    owner = f"a person's {uuid4().hex}"
    claim = _DlqClaim(
        redrive_store,
        dlq_arn,
        owner,
        stop_event,
        faults,
        read_sleep_counting_clock,
        is_scan_only=account.is_scan_only,
    )
    try:
        claim.take_or_renew()
        renewal_end_event = Event()
        renewal_thread = Thread(
            target=claim.renew_until, args=(renewal_end_event,), name="hold", daemon=True
        )
        renewal_thread.start()
        try:
            yield claim
        finally:
            renewal_end_event.set()
            renewal_thread.join()
    finally:
        claim.release()


def require_right_clock(clock_difference: timedelta | None, consequence: str = "") -> None:
    """Raise CommandError if this machine's clock and AWS's differ by more than 30 seconds.

    Args:
        clock_difference: How far this machine's clock is ahead of AWS's. None if AWS's answer had
            no Date header. That proves nothing and is not refused: AWS always sends one.
        consequence: What the command did, for the message. By default: nothing was changed.
    """
    if clock_difference is None or abs(clock_difference) <= LARGEST_CLOCK_DIFFERENCE:
        return
    seconds = round(abs(clock_difference).total_seconds())
    direction = "ahead of" if clock_difference > timedelta() else "behind"
    problem = f"this machine's clock is {seconds:,} s {direction} AWS's"
    consequence = consequence or "Nothing was changed"
    reason = "with a wrong time, two runs could work on the same messages"
    remedy = "set the clock (Linux: `sudo timedatectl set-ntp true`), then run the command again"
    raise CommandError(f"{problem}. {consequence}: {reason}; {remedy}", error_code="clock_wrong")


class _DlqClaim(DlqHold):
    """A command's claim on a DLQ, which keeps Mendq's own redrives away from its messages."""

    redrive_store: RedriveStore
    dlq_arn: str
    # Text that identifies the command in the case store.
    owner: str
    # Set if the claim is lost. The reason is then appended to `faults`.
    stop_event: Event
    faults: list[str]
    # Returns seconds. It counts the time while the machine sleeps.
    read_clock: Callable[[], float]
    # True if the stack is scan-only. It has no redrives: a stored progress is one that a whole
    # stack left behind, and nothing continues it.
    is_scan_only: bool = False
    # What the clock returned just before the last write of the claim.
    renewed_at: float | None = None
    # True once the claim is lost. It is never taken back.
    is_lost: bool = False
    # Held during every write: the thread and the work itself may renew the claim.
    lock: RLock = field(default_factory=RLock)

    def take_or_renew(self) -> None:
        """Claim the DLQ for CLAIM_SECONDS from now, or renew the claim.

        Raises CommandError if this machine's clock is wrong or another redrive is at work on the
        DLQ, CaseStoreUnavailable, or CaseStoreUnreadable.
        """
        with self.lock:
            started_at = self.read_clock()
            self._require_right_clock()
            redrive_claim = self.redrive_store.claim(self.dlq_arn, self.owner, datetime.now(UTC))
            if redrive_claim is None:
                problem = "another run is at work on the messages of "
                problem += parse_queue_arn(self.dlq_arn).name
                raise CommandError(
                    f"{problem}. Wait; if that run died, its claim ends within {CLAIM_SECONDS} s. "
                    "Then run the command again",
                    error_code="redrive_running",
                )
            if not self.is_scan_only:
                if redrive_claim.unreadable_reason:
                    raise CaseStoreUnreadable(redrive_claim.unreadable_reason)
                require_no_redrive(redrive_claim.progress)
            self.renewed_at = started_at

    def _require_right_clock(self) -> None:
        """Raise CommandError if this machine's clock and the case store's differ too much."""
        service_time = self.redrive_store.read_service_time(self.dlq_arn)
        clock_difference = None if service_time is None else datetime.now(UTC) - service_time
        consequence = "" if self.renewed_at is None else "The claim was not renewed"
        require_right_clock(clock_difference, consequence)

    def may_send_batch(self) -> bool:
        """Return True if the claim was renewed in time; if it was not, try to renew it first.

        If the claim is lost, stop the work and say why.
        """
        with self.lock:
            if not self._is_fresh():
                self._renew_or_report()
            if not self._is_fresh():
                self._report_lost_claim("the claim on the DLQ could not be renewed in time")
            return not self.is_lost

    def renew_until(self, renewal_end_event: Event) -> None:
        """Renew the claim regularly until `renewal_end_event` is set or the claim is lost.

        This is the work of the thread. No error ends it before the claim counts as lost.
        """
        while not renewal_end_event.wait(CLAIM_RENEWAL_SECONDS) and not self.is_lost:
            self._renew_or_report()

    def _is_fresh(self) -> bool:
        """Return True if the claim lasts for CLAIM_RENEWAL_SECONDS more: enough for a batch."""
        return (
            self.renewed_at is not None
            and self.read_clock() - self.renewed_at <= CLAIM_SECONDS - CLAIM_RENEWAL_SECONDS
        )

    def _renew_or_report(self) -> None:
        """Renew the claim once, or report it as lost.

        It is lost if another run or redrive has it, its record is unreadable, or the clock is
        wrong. After any other error the claim counts as lost only if it is too old. Otherwise the
        next renewal tries again.
        """
        with self.lock:
            if self.is_lost:
                return
            try:
                self.take_or_renew()
            except (CommandError, CaseStoreUnreadable) as error:
                self._report_lost_claim(error)
            except Exception as error:  # noqa: BLE001 - a client's hooks may raise anything
                if not self._is_fresh():
                    self._report_lost_claim(error)

    def _report_lost_claim(self, reason: object) -> None:
        """Set `stop_event`, and append to `faults` why the claim was lost, once."""
        with self.lock:
            if not self.is_lost:
                self.is_lost = True
                self.faults.append(
                    f"stopped, and messages not yet sent are visible again: {reason}"
                )
                self.stop_event.set()

    def release(self) -> None:
        """End the claim. If that fails, log it: the claim ends after CLAIM_SECONDS.

        No error is raised, because the operator must hear what was moved.
        """
        try:
            self.redrive_store.release(self.dlq_arn, self.owner)
        except Exception as error:  # noqa: BLE001 - a client's hooks may raise anything
            dlq_name = parse_queue_arn(self.dlq_arn).name
            _LOG.warning(
                "the claim on %s was not released, and ends in %d s: %s",
                dlq_name,
                CLAIM_SECONDS,
                error,
            )


def require_no_redrive(progress: RedriveProgress | None) -> None:
    """Raise CommandError if Mendq itself is sending back the DLQ's messages."""
    if progress is not None and not progress.is_over:
        dlq_name = parse_queue_arn(progress.dlq_arn).name
        show_command = mendq_case_id_command("show", progress.case_id, progress.dlq_arn)
        rollback_command = mendq_case_id_command("rollback", progress.case_id, progress.dlq_arn)
        problem = f"Mendq is sending back the messages of {dlq_name} itself ({progress.stage})"
        remedy = f"wait until `{show_command}` says it is over, or `{rollback_command}`"
        raise CommandError(f"{problem}: {remedy}", error_code="redrive_running")


def read_progress(account: Account, case: Case) -> RedriveProgress | None:
    """Return the progress of the case's redrive.

    None if the case redrives nothing, if no progress is stored yet, or if another case's redrive of
    the DLQ is newer. Raises CaseStoreUnavailable or CaseStoreUnreadable.
    """
    if owner_of_case(case.steps) is not Owner.REDRIVE:
        return None
    redrive_store = account.open_store(RedriveStore)
    newest_progress = redrive_store.read_newest_progress(case.queue_arn)
    return (
        newest_progress
        if newest_progress is not None and newest_progress.case_id == case.case_id
        else None
    )


def list_progress_lines(progress: RedriveProgress) -> Iterator[LabelledLine]:
    """Yield the lines that describe a redrive: label, style and text of each.

    The current stage is counted only if one of its messages was sent back.
    """
    current_stage = progress.current
    stage = progress.stage
    dlq_name = parse_queue_arn(progress.dlq_arn).name
    yield "way", "dim", f"{dlq_name} -> {parse_queue_arn(progress.source_arn).name}"
    stage_times_text = (
        f"{format_minute(current_stage.began_at)}, begun {format_minute(progress.began_at)}"
    )
    yield "stage", "cyan", f"{stage} since {stage_times_text}"
    if stage is Stage.SOAK and current_stage.soak_ends_at is not None:
        yield "soak", "dim", f"until {format_minute(current_stage.soak_ends_at)}"
    stage_count = current_stage.number + 1 if current_stage.moved else current_stage.number
    stage_count_text = format_count(stage_count, "stage")
    sent_messages_text = (
        f"{format_count(progress.moved, 'message')} sent back in {stage_count_text}"
    )
    yield (
        "sent",
        "dim",
        f"{sent_messages_text}, {current_stage.moved:,} of at most {current_stage.size:,} in this",
    )
    yield "came back", "dim", f"{progress.returned:,}, {progress.quarantined:,} are in quarantine"
    if progress.rate_per_second:
        yield "rate", "dim", f"{progress.rate_per_second:,.2f} a second"
    if progress.because:
        yield "because", "dim", progress.because
