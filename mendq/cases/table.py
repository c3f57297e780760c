"""The case store: one DynamoDB table of cases, claims, snapshots, evidence and budgets.

Items of a queue lie under its ARN, those of the account under `account`. Every write is a
transaction whose conditions name our own token, so that an answer lost on the way does not lock us
out of our own claim:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from mendq.aws.errors import CaseMoved, CaseStoreUnreadable
from mendq.cases import items, view
from mendq.cases import transactions as writes
from mendq.cases.items import Item
from mendq.cases.transactions import Claim, Entry, Table, asked, case_store_errors, unconflicted
from mendq.cases.view import PARTITION, SORT, CaseStoreView, HoldUp
from mendq.model.case import FINAL, Case, State
from mendq.model.evidence import Evidence, Sighting, to_text
from mendq.model.plan import Refusal, Retry

# What speaks for a case, or of how far a symptom has spread, is fresh for an hour.
RETAINED = timedelta(hours=2)


class CaseStore(Table, frozen=True):
    """All methods raise CaseStoreUnavailable: without the case store nothing is changed."""

    def look(
        self, queue_arn: str, symptom: str, attributes: Sequence[str], spread: str = ""
    ) -> CaseStoreView:
        """One consistent look at everything that decides; CaseStoreUnreadable for bad items.

        `spread` is the word under which it is noted how far the symptom has spread, where one look
        is to see that too: it is then tried again where another queue is just being noted.
        """
        keys = items.look_keys(queue_arn, symptom, attributes, spread)
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
        texts = ([each.to_text() for each in some] for some in (drop, add))
        retained = self.change_set(key, "sightings", until, *texts)
        with items.reading(f"the evidence about {queue_arn}"):
            return items.evidence_of(retained)

    def spread_to(
        self, queue_arns: Iterable[str], symptom: str, now: datetime, known: Item | None = None
    ) -> frozenset[str]:
        """Note that these queues show a symptom; all queues that showed it within the hour.

        `known` is its item where a look has just seen it.
        """
        key, until = items.spread_key(symptom), now + RETAINED
        with items.reading(f"the spread of {symptom}"):
            found = self.get(key) if known is None else known
            spread = view.Spread.from_texts(items.texts_in(found, "queues"))
        changes = (spread.outdated(now), spread.missing(queue_arns, now))
        if changed := self.change_set(key, "queues", until, *changes):
            spread = view.Spread.from_texts(items.texts_in(changed, "queues"))
        return spread.queues(now)

    def note_change(
        self, queue_arn: str, symptom: str, changed_at: datetime, now: datetime
    ) -> list[datetime]:
        """Note a change that excuses failed calls; all those of the last day."""
        key, until = items.key(queue_arn, f"changes#{symptom}"), now + view.CHANGES_REMEMBERED
        retained = self.change_set(key, "changes", until, (), [to_text(changed_at)])
        with items.reading(f"the changes of {queue_arn}"):
            changes = [datetime.fromisoformat(each) for each in retained["changes"]["SS"]]
            gone = [each for each in changes if now - each >= view.CHANGES_REMEMBERED]
        self.change_set(key, "changes", until, [to_text(each) for each in gone], ())
        return [each for each in changes if each not in gone]

    def claim(
        self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int
    ) -> Refusal | None:
        """Take the claim, the snapshot and one write of the account's budget, all or none."""
        parts = writes.claim_parts(claim, snapshot, writes_per_minute)
        failed = self.transact([each.part for each in parts])
        return None if failed is None else Retry(parts[failed].code, parts[failed].reason)

    def release(self, intent: Case, owner: str, seen: CaseStoreView) -> None:
        """Let go of a claim that nothing was written under."""
        self.transact(writes.release_parts(intent, owner, seen))

    def record(self, entry: Entry) -> None:
        """Move the case, and with `changes` the attributes' records; ends the evidence.

        Silently the same when this run has written it already; raises CaseMoved where another has.
        """
        if self.transact(writes.record_parts(entry)) is not None:
            raise CaseMoved(f"another run has moved case {entry.case.case_id}")


def cases_in(found: Iterable[Item]) -> Iterator[Case]:
    """Those among items of the case store; raises CaseStoreUnreadable at one that is none."""
    for item in found:
        with items.reading(f"a transition in {item.get('pk')}"):
            case = items.case_of(item)
        if case is not None:
            yield case


class OpenCase(Struct, frozen=True):
    """What the index says of an open case, whose item has this `key`; it may lag by a moment."""

    key: items.Key
    case_id: str
    queue_arn: str
    symptom: str
    state: State
    opened_at: datetime
    due_at: datetime


class OpenCases(Table, frozen=True):
    """All methods raise CaseStoreUnavailable."""

    def transitions(self, case_id: str) -> tuple[Case, ...]:
        """A case's transitions in order, those of the last 400 days; CaseStoreUnreadable."""
        of_case = asked(
            {"case": items.transition_key(case_id, 0)["pk"]}, KeyConditionExpression="pk = :case"
        )
        return tuple(cases_in(self.found("query", {**of_case, "ConsistentRead": True})))

    def transition(self, key: items.Key) -> Case | None:
        """The transition there, or None where it is kept no more; CaseStoreUnreadable."""
        return next(cases_in([self.get(key)]), None)

    def snapshot_of(self, case: Case) -> Mapping[str, str] | None:
        """The queue's attributes from before this transition wrote; None where none were kept."""
        found = self.get(items.snapshot_key(case))
        if not found:
            return None
        with items.reading(f"the snapshot of {case.case_id}"):
            attributes: Mapping[str, str] = json.loads(found["configuration"]["S"])["attributes"]
        return attributes

    def all_transitions(self) -> Iterator[Case]:
        """Every transition that the case store keeps, in no order: it reads the whole table."""
        of_cases = asked({"case": "case#"}, FilterExpression="begins_with(pk, :case)")
        return cases_in(self.found("scan", of_cases))

    def by_due(self) -> list[OpenCase]:
        """Every open case, the one that is due first at the front."""
        return [each for each in self.listed() if each.state not in FINAL]

    def listed(self) -> list[OpenCase]:
        """As `by_due`, with those whose end people may not have been told of yet."""
        every = asked({"every": view.EVERY_CASE}, KeyConditionExpression=f"#{PARTITION} = :every")
        return [each for each in map(_open_case_of, self._indexed(every)) if each is not None]

    def unfiled(self, now: datetime) -> list[items.Key]:
        """The transitions that whoever wrote them down has not filed."""
        due = asked(
            {"unfiled": view.UNFILED, "now": now},
            KeyConditionExpression=f"#{PARTITION} = :unfiled AND {SORT} <= :now",
        )
        return [items.key(each["pk"]["S"], each["sk"]["S"]) for each in self._indexed(due)]

    def _indexed(self, request: Mapping[str, Any]) -> Iterator[Item]:
        return self.found("query", {**request, "IndexName": view.OPEN_CASES})

    def open_about(self, queue_arns: Iterable[str]) -> frozenset[str]:
        """The symptoms whose cases are open about any of these queues."""
        is_open = f"attribute_exists(#{PARTITION})"
        return frozenset(
            item["symptom"]["S"] for each in queue_arns for item in self._about(each, is_open)
        )

    def newest_about(self, queue_arns: Iterable[str]) -> tuple[Case, ...]:
        """The newest case of each symptom about any of these queues, over or not.

        Raises CaseStoreUnreadable where one of them is none of ours: it might be the one that
        counts.
        """
        return tuple(case for each in queue_arns for case in cases_in(self._about(each)))

    def _about(self, queue_arn: str, only: str = "") -> Iterator[Item]:
        about = items.case_key(queue_arn, "")
        request = asked(
            {"queue": about["pk"], "case": about["sk"]},
            KeyConditionExpression="pk = :queue AND begins_with(sk, :case)",
            FilterExpression=only,
        )
        return self.found("query", {**request, "ConsistentRead": True})

    def note_failures(
        self, case: Case, known: Evidence, now_known: Evidence, due_at: datetime | None
    ) -> bool:
        """Keep newer failed calls beside an open case; with `due_at` it is looked at then.

        False, and nothing happens, where the case has moved or another run has noted some.
        """
        values: dict[str, Any] = {"now_known": items.failures_text(now_known)}
        change = "SET failures = :now_known"
        if due_at is not None:
            values["due"] = due_at
            change += f", {SORT} = :due"
        unchanged = "(attribute_not_exists(failures) OR failures = :known)"
        return self._move(case, change, unchanged, **values, known=items.failures_text(known))

    def hold_up(self, case: Case, hold_up: HoldUp) -> None:
        """Keep beside it why it waits; nothing happens where the case has moved."""
        self._move(case, "SET held_up = :held_up", held_up=items.as_json(hold_up))

    def postpone(self, case: Case, until: datetime) -> None:
        """Look at it again then; nothing happens where it has moved, or is claimed until before."""
        unclaimed = "(attribute_not_exists(claim_until) OR claim_until >= :due)"
        self._move(case, f"SET {SORT} = :due", unclaimed, due=until)

    def postpone_unread(self, listed: OpenCase, until: datetime) -> None:
        """As `postpone`, of a case that cannot be read; only while it is due as it was listed."""
        as_listed = f"{SORT} = :due"
        self.change(listed.key, f"SET {SORT} = :until", as_listed, until=until, due=listed.due_at)

    def filed(self, key: items.Key) -> None:
        """The transition there lies in the case bucket."""
        self.change(key, f"REMOVE #{PARTITION}, {SORT}", f"attribute_exists({SORT})")

    def file_later(self, key: items.Key, until: datetime) -> None:
        """The transition there could not be filed now."""
        self.change(key, f"SET {SORT} = :until", f"attribute_exists({SORT})", until=until)

    def announced(self, case: Case, now: datetime) -> None:
        """What has ended leaves the index once people were told, and nobody claims it."""
        unclaimed = "(attribute_not_exists(claim_until) OR claim_until <= :now)"
        self._move(case, f"REMOVE #{PARTITION}, {SORT}", unclaimed, now=now)

    def _move(self, case: Case, change: str, condition: str = "", **values: Any) -> bool:
        """False where the case has moved, or is not as `condition` wants it."""
        same = f"case_id = :case AND n = :n AND attribute_exists(#{PARTITION})"
        condition = f"{same} AND {condition}" if condition else same
        key = items.case_key(case.queue_arn, case.symptom)
        return self.change(key, change, condition, **values, case=case.case_id, n=case.n)


def _open_case_of(item: Item) -> OpenCase | None:
    """None for an item that is none of ours: one bad item must not hide the others."""
    with suppress(CaseStoreUnreadable), items.reading("an open case"):
        queue_arn, state = item["pk"]["S"], State(item["state"]["S"])
        key = items.key(queue_arn, item["sk"]["S"])
        return items.record_in(OpenCase, item, key=key, queue_arn=queue_arn, state=state)
    return None
