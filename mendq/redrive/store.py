"""The stored progress of redrives: one item per DLQ in the case store.

A run claims the item before it receives messages, and stores its progress before each action.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mendq.aws.errors import CaseMoved, CaseStoreUnavailable, CaseStoreUnreadable
from mendq.aws.service_clock import read_service_time
from mendq.cases import items
from mendq.cases.transactions import Table, convert_case_store_errors
from mendq.redrive.progress import RedriveProgress

# How long a claim lasts: longer than a run, so that two runs never work on the same DLQ.
CLAIM_SECONDS = 90
_CLAIM_UPDATE = "SET claim_owner = :me, claim_until = :until"
_CLAIM_CONDITION = "attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me"
_SAVE_UPDATE = "SET progress_n = :n, document = :document"
_SAVE_CONDITION = (
    "claim_owner = :me AND (attribute_not_exists(progress_n) OR progress_n = :before "
    "OR (progress_n = :n AND document = :document))"
)


class RedriveClaim(Struct, frozen=True):
    """A claimed DLQ: no other run works on its messages.

    Attributes:
        progress: The stored progress; None if there is none or it cannot be read.
        unreadable_reason: The reason why the stored progress cannot be read; empty if it can.
        progress_number: The version number of the stored progress; 0 if there is none. A new
            progress for this DLQ must begin with this number, or `save` refuses it.
    """

    progress: RedriveProgress | None
    unreadable_reason: str = ""
    progress_number: int = 0


class RedriveStore(Table, frozen=True):
    """Reads and writes the redrives' items in the case store.

    All methods except `may_send_batch` raise CaseStoreUnavailable if the case store cannot be read
    or written. `read_newest_progress` raises CaseStoreUnreadable for an unreadable progress, and
    the claim methods raise it for an unreadable version number.
    """

    def read_newest_progress(self, dlq_arn: str) -> RedriveProgress | None:
        """Return the progress of the DLQ's newest redrive, running or ended; None without one."""
        return _read_progress(self.get(make_redrive_key(dlq_arn)), dlq_arn)

    @contextmanager
    def hold_claim(self, dlq_arn: str, owner: str, now: datetime) -> Iterator[RedriveClaim | None]:
        """Claim the DLQ for the `with` block, and release it afterwards.

        Yield the claim, or None if another run has claimed the DLQ.
        """
        claim = self.claim(dlq_arn, owner, now)
        try:
            yield claim
        finally:
            if claim is not None:
                with suppress(CaseStoreUnavailable):
                    self.release(dlq_arn, owner)

    def claim(self, dlq_arn: str, owner: str, now: datetime) -> RedriveClaim | None:
        """Claim the DLQ for CLAIM_SECONDS, or renew the owner's claim.

        Return None if another run holds a claim.
        """
        item = self.change_and_read(
            make_redrive_key(dlq_arn),
            _CLAIM_UPDATE,
            _CLAIM_CONDITION,
            me=owner,
            now=now,
            until=now + timedelta(seconds=CLAIM_SECONDS),
        )
        if item is None:
            return None
        try:
            return RedriveClaim(
                _read_progress(item, dlq_arn), progress_number=_read_progress_number(item)
            )
        except CaseStoreUnreadable as error:
            return RedriveClaim(None, str(error), _read_progress_number(item))

    def save(self, progress: RedriveProgress, owner: str) -> RedriveProgress:
        """Store the progress under the next version number, and return it with that number.

        If AWS's answer is lost and the SDK repeats the request, the repeated request succeeds.

        Raises:
            CaseMoved: Another run has claimed the DLQ or stored a progress since.
        """
        former_progress_number = progress.n
        progress = replace(progress, n=former_progress_number + 1)
        is_saved = self.change(
            make_redrive_key(progress.dlq_arn),
            _SAVE_UPDATE,
            _SAVE_CONDITION,
            me=owner,
            n=progress.n,
            before=former_progress_number,
            document=json.dumps(progress.document(), sort_keys=True),
        )
        if not is_saved:
            raise CaseMoved(f"another run redrives {progress.dlq_arn}")
        return progress

    def may_send_batch(self, _message_count: int) -> bool:
        """Return True if people have not frozen changes.

        Return False if the case store does not answer. The mover calls this method before each
        batch, so that a freeze stops a running tick.
        """
        with suppress(CaseStoreUnavailable):
            return not self.is_frozen()
        return False

    def is_frozen(self) -> bool:
        """Return True if people have frozen all changes. Change calendars are not read."""
        return bool(self.get(items.freeze_key()))

    def read_service_time(self, dlq_arn: str) -> datetime | None:
        """Return DynamoDB's time, rounded down to the second; None if its answer has no time.

        The answer is that to a read of the DLQ's item.
        """
        with convert_case_store_errors():
            response = self.client.get_item(TableName=self.table, Key=make_redrive_key(dlq_arn))
        return read_service_time(response)

    def release(self, dlq_arn: str, owner: str) -> None:
        """End the claim. Do nothing if another run has claimed the DLQ since."""
        release_update = "REMOVE claim_owner, claim_until"
        self.change(make_redrive_key(dlq_arn), release_update, "claim_owner = :me", me=owner)


def make_redrive_key(dlq_arn: str) -> items.Key:
    """Return the key of the DLQ's item in the case store."""
    return items.item_key(dlq_arn, "redrive")


def _read_progress(item: Mapping[str, Any], dlq_arn: str) -> RedriveProgress | None:
    if "document" not in item:
        return None
    with items.convert_decode_errors(f"the redrive of {dlq_arn}"):
        progress = RedriveProgress.from_document(json.loads(item["document"]["S"]))
        if progress.dlq_arn != dlq_arn:
            raise ValueError(f"it is of {progress.dlq_arn:.200}")
        return progress


def _read_progress_number(item: Mapping[str, Any]) -> int:
    with items.convert_decode_errors("the redrive's number"):
        return int(item["progress_n"]["N"]) if "progress_n" in item else 0
