"""Keep Mendq's own redrives off some messages for as long as a person's runs, and show theirs.

What is held is the claim that each of Mendq's ticks takes as well. One that finds it taken comes
again a minute later; of a command that died nothing is left when the claim is over.
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

# Twice in vain, and there is time left to end what is under way.
BEAT_SECONDS = CLAIM_SECONDS / 3


@contextmanager
def held(account: Account, dlq_arn: str, stop: Event, faults: list[str]) -> Iterator[None]:
    """Hold a DLQ's messages; nothing where there is no such queue (empty), or no Mendq.

    Once they are held no more, says why in `faults` and sets `stop`. Raises CommandError where
    another redrive is under way, and what the case store raises.
    """
    redrives = account.open_store_if_deployed(RedriveStore) if dlq_arn else None
    if redrives is None:
        yield
        return
    owner, over = f"a person's {uuid4().hex}", Event()

    def lose(fault: object) -> None:
        faults.append(f"stopped, and what was in hand is visible again: {fault}")
        stop.set()

    claim = partial(_claim, redrives, dlq_arn, owner)
    try:
        claim()
        heart = Thread(target=_beat, args=(claim, over, lose), name="hold", daemon=True)
        heart.start()
        try:
            yield
        finally:
            over.set()
            heart.join()
    finally:
        with suppress(CaseStoreUnavailable):
            redrives.release(dlq_arn, owner)


def _claim(redrives: RedriveStore, dlq_arn: str, owner: str) -> None:
    """Hold them for CLAIM_SECONDS from now; CommandError where another redrive is under way."""
    claimed = redrives.claim(dlq_arn, owner, datetime.now(UTC))
    if claimed is None:
        line = f"another run is at work on the messages of {parts_of(dlq_arn).name}"
        raise CommandError(
            f"{line}; one that died ends in {CLAIM_SECONDS} s", error_code="redrive_running"
        )
    if claimed.damage:
        raise CaseStoreUnreadable(claimed.damage)
    require_over(claimed.progress)


def _beat(claim: Callable[[], None], over: Event, lose: Callable[[object], None]) -> None:
    """Claim again and again; a case store that is silent for a beat or two is borne."""
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


def require_over(progress: RedriveProgress | None) -> None:
    """CommandError where Mendq sends these messages back itself."""
    if progress is not None and not progress.is_over:
        name, case_id = parts_of(progress.dlq_arn).name, progress.case_id
        line = f"Mendq is sending back the messages of {name} itself ({progress.stage})"
        until = f"wait until `mendq show {case_id}` says it is over, or `mendq rollback {case_id}`"
        raise CommandError(f"{line}: {until}", error_code="redrive_running")


def progress_of(account: Account, case: Case) -> RedriveProgress | None:
    """The case's own; None where it redrives nothing, or another case's came after it.

    Raises CaseStoreUnavailable or CaseStoreUnreadable.
    """
    if owner_of_case(case.steps) is not Owner.REDRIVE:
        return None
    redrives = account.open_store(RedriveStore)
    newest = redrives.newest(case.queue_arn)
    return newest if newest is not None and newest.case_id == case.case_id else None


def progress_lines(progress: RedriveProgress) -> Iterator[LabelledLine]:
    """A label, its style and what it says; a stage counts once something of it went."""
    current, stage = progress.current, progress.stage
    yield "way", "dim", f"{parts_of(progress.dlq_arn).name} -> {parts_of(progress.source_arn).name}"
    since = f"{format_minute(current.began_at)}, begun {format_minute(progress.began_at)}"
    yield "stage", "cyan", f"{stage} since {since}"
    if stage is Stage.SOAK and current.soak_ends_at is not None:
        yield "soak", "dim", f"until {format_minute(current.soak_ends_at)}"
    stages = format_count(current.number + (current.moved > 0), "stage")
    sent = f"{format_count(progress.moved, 'message')} sent back in {stages}"
    yield "sent", "dim", f"{sent}, {current.moved:,} of at most {current.size:,} in this"
    yield "came back", "dim", f"{progress.returned:,}, {progress.quarantined:,} are in quarantine"
    if progress.rate_per_second:
        yield "rate", "dim", f"{progress.rate_per_second:,.2f} a second"
    if progress.because:
        yield "because", "dim", progress.because
