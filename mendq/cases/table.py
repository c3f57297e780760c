"""The case store: one DynamoDB table of cases, claims, snapshots, evidence and budgets.

Items of a queue lie under its ARN, those of the account under `account`. Every write is a
transaction whose conditions name our own token, so that an answer lost on the way does not lock us
out of our own claim:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mendq.aws.errors import CaseMoved
from mendq.cases import items, view
from mendq.cases import transactions as writes
from mendq.cases.transactions import Claim, Entry, Table, case_store_errors, unconflicted
from mendq.cases.view import CaseStoreView
from mendq.model.case import Case
from mendq.model.evidence import Evidence, Sighting, to_text
from mendq.model.plan import Refusal

# What speaks for a case, or of how far a symptom has spread, is fresh for an hour.
RETAINED = timedelta(hours=2)


@dataclass(frozen=True)
class CaseStore(Table):
    """All methods raise CaseStoreUnavailable: without the case store nothing is changed."""

    def look(self, queue_arn: str, symptom: str, attributes: Sequence[str]) -> CaseStoreView:
        """One consistent look at everything that decides; CaseStoreUnreadable for bad items."""
        keys = items.look_keys(queue_arn, symptom, attributes)
        parts: Any = [{"Get": {"TableName": self.table, "Key": key}} for key in keys]
        with case_store_errors():
            answer = unconflicted(lambda: self.client.transact_get_items(TransactItems=parts))
        with items.reading(f"an item about {queue_arn}"):
            return items.view_of([each.get("Item", {}) for each in answer["Responses"]], attributes)

    def remember(
        self,
        queue_arn: str,
        symptom: str,
        *,
        add: Sequence[Sighting],
        drop: Sequence[Sighting],
        now: datetime,
    ) -> Evidence:
        """Keep what speaks for a case that has not opened yet; all that is kept now, others' too.

        A set, so repeats add nothing; dropped first, so that it never outgrows its item.
        """
        key, until = items.evidence_key(queue_arn, symptom), now + RETAINED
        if drop:
            self._change_set(key, "DELETE", "sightings", [each.to_text() for each in drop], until)
        if not add:
            return Evidence()
        texts = [each.to_text() for each in add]
        retained = self._change_set(key, "ADD", "sightings", texts, until)
        with items.reading(f"the evidence about {queue_arn}"):
            return items.evidence_of(retained)

    def spread_to(self, queue_arns: Iterable[str], symptom: str, now: datetime) -> frozenset[str]:
        """Note that these queues show a symptom; all queues that showed it within the hour."""
        key, until = items.key(items.ACCOUNT, f"spread#{symptom}"), now + RETAINED
        found = self.get(key)
        with items.reading(f"the spread of {symptom}"):
            spread = items.spread_of(found)
        if outdated := spread.outdated(now):
            self._change_set(key, "DELETE", "queues", outdated, until)
        if missing := spread.missing(queue_arns, now):
            spread = items.spread_of(self._change_set(key, "ADD", "queues", missing, until))
        return spread.queues(now)

    def note_change(
        self, queue_arn: str, symptom: str, changed_at: datetime, now: datetime
    ) -> list[datetime]:
        """Note a change that excuses failed calls; all those of the last day."""
        key, until = items.key(queue_arn, f"changes#{symptom}"), now + view.CHANGES_REMEMBERED
        retained = self._change_set(key, "ADD", "changes", [to_text(changed_at)], until)
        with items.reading(f"the changes of {queue_arn}"):
            changes = [datetime.fromisoformat(each) for each in retained["changes"]["SS"]]
            gone = view.outdated(changes, now)
        if gone:
            self._change_set(key, "DELETE", "changes", [to_text(each) for each in gone], until)
        return [each for each in changes if each not in gone]

    def _change_set(
        self, key: items.Key, verb: str, name: str, texts: Sequence[str], until: datetime
    ) -> Mapping[str, Any]:
        update = f"{verb} {name} :texts SET expires_at = :expires"
        changed = writes.asked({"texts": texts, "expires": until}, UpdateExpression=update)
        with case_store_errors():
            answer = self.client.update_item(
                TableName=self.table, Key=key, ReturnValues="ALL_NEW", **changed
            )
        return answer["Attributes"]

    def claim(
        self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int
    ) -> Refusal | None:
        """Take the claim, the snapshot and one write of the account's budget, all or none."""
        parts = writes.claim_parts(claim, snapshot, writes_per_minute)
        failed = self.transact([part for part, _ in parts])
        return None if failed is None else parts[failed][1]

    def release(self, intent: Case, owner: str, seen: CaseStoreView) -> None:
        """Let go of a claim that nothing was written under."""
        self.transact(writes.release_parts(intent, owner, seen))

    def record(self, entry: Entry) -> None:
        """Move the case, and with `changes` the attributes' records; ends the evidence.

        Silently the same when this run has written it already; raises CaseMoved where another has.
        """
        if self.transact(writes.record_parts(entry)) is not None:
            raise CaseMoved(f"another run has moved case {entry.case.case_id}")
