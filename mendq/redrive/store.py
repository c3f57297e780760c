"""How far redrives have come, in the case store: one item per DLQ.

A run claims it before it looks, and writes down what it is about to do before it does it.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mendq.aws.errors import CaseMoved, CaseStoreUnreadable
from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.redrive.progress import RedriveProgress

# Longer than a run may last, so that no two ever work on one queue's messages.
CLAIM_SECONDS = 90
_CLAIMED = "SET claim_owner = :me, claim_until = :until, seal_key = if_not_exists(seal_key, :new)"
_IS_FREE = "attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me"
_IS_NEXT = (
    "claim_owner = :me AND (attribute_not_exists(progress_n) OR progress_n = :before "
    "OR (progress_n = :n AND document = :document))"
)


class Claimed(Struct, frozen=True):
    """A claim: nobody else works on it. `progress` is None where there is none that can be read.

    `damage` says why not, where there is one; what is written in its place is to have its `n`.
    `seal_key` seals the marks of what goes back out of this DLQ; its first claim makes it.
    """

    progress: RedriveProgress | None
    seal_key: bytes
    damage: str = ""
    n: int = 0


class RedriveStore(Table, frozen=True):
    """All methods raise CaseStoreUnavailable; `newest` raises CaseStoreUnreadable as well."""

    def newest(self, dlq_arn: str) -> RedriveProgress | None:
        """The newest redrive of a DLQ, over or not."""
        return _progress_in(self.get(redrive_key(dlq_arn)), dlq_arn)

    def claim(self, dlq_arn: str, owner: str, now: datetime) -> Claimed | None:
        """Claim the DLQ; None where another run holds it."""
        key, until = redrive_key(dlq_arn), now + timedelta(seconds=CLAIM_SECONDS)
        values: Any = {"me": owner, "now": now, "until": until, "new": token_hex()}
        item = self.changed(key, _CLAIMED, _IS_FREE, **values)
        if item is None:
            return None
        seal_key = items.text_in(item, "seal_key").encode()
        try:
            return Claimed(_progress_in(item, dlq_arn), seal_key, n=_n_in(item))
        except CaseStoreUnreadable as error:
            return Claimed(None, seal_key, str(error), _n_in(item))

    def save(self, progress: RedriveProgress, owner: str) -> RedriveProgress:
        """The progress as it stands there now, one `n` later; raises CaseMoved where it has moved.

        An answer lost on the way does no harm: sent again, it finds its own text.
        """
        saved = replace(progress, n=progress.n + 1)
        values = {"me": owner, "n": saved.n, "before": progress.n}
        document = json.dumps(saved.document(), sort_keys=True)
        key, update = redrive_key(progress.dlq_arn), "SET progress_n = :n, document = :document"
        if not self.change(key, update, _IS_NEXT, **values, document=document):
            raise CaseMoved(f"another run redrives {progress.dlq_arn}")
        return saved

    def is_frozen(self) -> bool:
        """True where somebody has frozen every change by now."""
        return bool(self.get(items.freeze_key()))

    def release(self, dlq_arn: str, owner: str) -> None:
        """Let go of the claim; nothing happens where it is another's by now."""
        ended = "REMOVE claim_owner, claim_until"
        self.change(redrive_key(dlq_arn), ended, "claim_owner = :me", me=owner)


def redrive_key(dlq_arn: str) -> items.Key:
    return items.key(dlq_arn, "redrive")


def _progress_in(item: Mapping[str, Any], dlq_arn: str) -> RedriveProgress | None:
    if "document" not in item:
        return None
    with items.reading(f"the redrive of {dlq_arn}"):
        progress = RedriveProgress.from_document(json.loads(item["document"]["S"]))
        if progress.dlq_arn != dlq_arn:
            raise ValueError(f"it is of {progress.dlq_arn:.200}")
        return progress


def _n_in(item: Mapping[str, Any]) -> int:
    with items.reading("the redrive's number"):
        return int(item["progress_n"]["N"]) if "progress_n" in item else 0
