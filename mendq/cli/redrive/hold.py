"""Keep Mendq's own redrives away from a DLQ while an operator's command works on its messages.

The command takes the same claim (a lock in the case store) on the DLQ that each run of Mendq's
redrive Lambda takes. If the Lambda finds the DLQ claimed, it tries again a minute later. If a
command dies, its claim ends after CLAIM_SECONDS. Nothing is claimed if Mendq is not deployed.

The module also reads and describes the progress of Mendq's own redrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from threading import Event, Thread
from time import monotonic
from uuid import uuid4

from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError
from mendq.cli.output import LabelledLine, format_minute
from mendq.model.case import Case
from mendq.model.plan import owner_of_case
from mendq.model.queue import parts_of
from mendq.model.steps import Owner
from mendq.notifications.text import format_count
from mendq.redrive.progress import RedriveProgress, Stage
from mendq.redrive.store import CLAIM_SECONDS, RedriveStore

# Time between renewals. After two that fail, there is still time to finish the current batch.
BEAT_SECONDS = CLAIM_SECONDS / 3


@contextmanager
def hold_dlq(account: Account, dlq_arn: str, stop: Event, faults: list[str]) -> Iterator[None]:
    """Claim a DLQ for as long as the block lasts. A thread renews the claim.

    If the claim is lost, the reason is appended to `faults` and `stop` is set. Nothing is claimed
    if `dlq_arn` is empty or Mendq is not deployed. Raises CommandError if another redrive is at
    work on the DLQ, and CaseStoreUnavailable or CaseStoreUnreadable.
    """
    redrives = account.open_store_if_deployed(RedriveStore) if dlq_arn else None
    if redrives is None:
        yield
        return
    owner = f"a person's {uuid4().hex}"
    over = Event()

    def lose(fault: object) -> None:
        faults.append(f"stopped, and what was in hand is visible again: {fault}")
        stop.set()

    claim = partial(_claim, redrives, dlq_arn, owner)
    try:
        claim()
        renewing = Thread(target=_renew_claim, args=(claim, over, lose), name="hold", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            over.set()
            renewing.join()
    finally:
        with suppress(CaseStoreUnavailable):
            redrives.release(dlq_arn, owner)


def _claim(redrives: RedriveStore, dlq_arn: str, owner: str) -> None:
    """Claim the DLQ for CLAIM_SECONDS from now.

    Raises CommandError if another redrive is at work on it.
    """
    claimed = redrives.claim(dlq_arn, owner, datetime.now(UTC))
    if claimed is None:
        line = f"another run is at work on the messages of {parts_of(dlq_arn).name}"
        raise CommandError(
            f"{line}; one that died ends in {CLAIM_SECONDS} s", error_code="redrive_running"
        )
    if claimed.unreadable_reason:
        raise CaseStoreUnreadable(claimed.unreadable_reason)
    require_no_redrive(claimed.progress)


def _renew_claim(claim: Callable[[], None], over: Event, lose: Callable[[object], None]) -> None:
    """Renew the claim every BEAT_SECONDS until `over` is set.

    If the case store does not answer, try again as long as the claim still lasts. If the claim is
    lost, call `lose` with the error and return.
    """
    answered_at = monotonic()
    while not over.wait(BEAT_SECONDS):
        try:
            claim()
            answered_at = monotonic()
        except (CommandError, CaseStoreUnreadable) as error:
            return lose(error)
        except CaseStoreUnavailable as error:
            if monotonic() - answered_at > CLAIM_SECONDS - BEAT_SECONDS:
                return lose(error)
    return None


def require_no_redrive(progress: RedriveProgress | None) -> None:
    """Raise CommandError if Mendq itself is sending back the DLQ's messages."""
    if progress is not None and not progress.is_over:
        name = parts_of(progress.dlq_arn).name
        case_id = progress.case_id
        line = f"Mendq is sending back the messages of {name} itself ({progress.stage})"
        until = f"wait until `mendq show {case_id}` says it is over, or `mendq rollback {case_id}`"
        raise CommandError(f"{line}: {until}", error_code="redrive_running")


def read_progress(account: Account, case: Case) -> RedriveProgress | None:
    """Return the progress of the case's redrive.

    None if the case redrives nothing, or if a later case's redrive has replaced it. Raises
    CaseStoreUnavailable or CaseStoreUnreadable.
    """
    if owner_of_case(case.steps) is not Owner.REDRIVE:
        return None
    redrives = account.open_store(RedriveStore)
    newest = redrives.read_newest_progress(case.queue_arn)
    return newest if newest is not None and newest.case_id == case.case_id else None


def progress_lines(progress: RedriveProgress) -> Iterator[LabelledLine]:
    """Yield the lines that describe a redrive: label, style and text of each.

    A stage is counted once one of its messages was sent back.
    """
    current = progress.current
    stage = progress.stage
    dlq = parts_of(progress.dlq_arn).name
    yield "way", "dim", f"{dlq} -> {parts_of(progress.source_arn).name}"
    since = f"{format_minute(current.began_at)}, begun {format_minute(progress.began_at)}"
    yield "stage", "cyan", f"{stage} since {since}"
    if stage is Stage.SOAK and current.soak_ends_at is not None:
        yield "soak", "dim", f"until {format_minute(current.soak_ends_at)}"
    stage_count = current.number + 1 if current.moved else current.number
    stages = format_count(stage_count, "stage")
    sent = f"{format_count(progress.moved, 'message')} sent back in {stages}"
    yield "sent", "dim", f"{sent}, {current.moved:,} of at most {current.size:,} in this"
    yield "came back", "dim", f"{progress.returned:,}, {progress.quarantined:,} are in quarantine"
    if progress.rate_per_second:
        yield "rate", "dim", f"{progress.rate_per_second:,.2f} a second"
    if progress.because:
        yield "because", "dim", progress.because
