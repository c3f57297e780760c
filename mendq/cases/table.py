"""The case store: Mendq's memory about each queue, and the claims to change a queue.

Several Lambdas work on the same queues at the same time. Each may get an event twice, lose the
answer to a call, sleep for a minute, or die between two calls. SQS has no conditional write, so
this DynamoDB table is where the runs agree. It answers two questions about one symptom on one
queue: what happened so far, and may this run continue?

A case is one symptom on one queue. It moves by numbered transitions. A change of a queue takes
five steps:

- look: read everything that is stored about the symptom on the queue;
- decide what to do;
- claim: take the right to change some attributes of the queue, for 120 seconds from the start of
  the run;
- write to the queue;
- record: store the transition that the case has made.

This package does the look, the claim and the record.

    partition   sort key               expires after  content
    queue ARN   case#SYMPTOM           never          the newest case as it is now, its claim
    queue ARN   attribute#NAME         never          Mendq's writes to the attribute, its claim
    queue ARN   snapshot#CASE#N        never          the configuration before transition N
    queue ARN   evidence#SYMPTOM       2 hours        failed calls that may open a case
    queue ARN   changes#SYMPTOM        1 day          changes that explain failed calls
    queue ARN   page#SYMPTOM           never          the newest notification, its text until sent
    queue ARN   measured               1 hour         the queue was measured for failed calls
    queue ARN   redrive                never          a DLQ's redrive: progress, claim
    queue ARN   pin                    never          the queue policy that a person pinned
    queue ARN   approved               never          sources that a person approved for a DLQ
    queue ARN   receiver               never          a DLQ or quarantine that may get messages
    case#CASE   000001, 000002         400 days       each transition
    baselines#  baselines              400 days       configurations that were healthy, of the
                                                      queue whose ARN ends the partition's name
    account     freeze                 never          the freezes; a thaw deletes the item
    account     spread#WORD            2 hours        queues that show a symptom
    account     writes#MINUTE          1 hour         the budget of writes per minute
    account     page#SYMPTOM           never          the newest notification about the account
    account     pages#SEVERITY#HOUR    2 hours        the budget of notifications per hour
    account     scan                   never          the position of the hourly scan, its claim
    account     metrics#DAY            2 days         metrics that the scan has read
    account     said_of_configuration  30 days        configuration faults already notified
    account     baselines#SHARD        never          digests of the stored baselines
    account     history#SHARD          never          what the scan remembers about each queue
    account     moves#HOUR             1 day          queues that messages are moved into
    account     aws_health             7 days         events of AWS Health
    account     probe                  never          the newest probe

`CaseStore` serves a run that decides about one symptom on one queue. `OpenCases` serves runs that
go through many cases: follow-up, scan, command line. `transactions.py` has the conditions,
`items.py` the keys and the format of items, `view.py` the result of a look.

Each write of an item that expires makes it expire later. Items about redrives, scans, pins,
receivers, baselines, AWS Health and the probe are read and written in those modules, not in this
one.

Rules:

1. A look is one transaction. `look` reads freeze, case, evidence, notification and attribute
   records as of the same moment. Single reads could mix a case from before another run's record
   with attributes from after it, and Mendq would decide about a state that never existed.

2. A write names the state that it was decided on. If two runs look at the same queue at the same
   time, both may decide, but only one wins: the other's `claim` returns a refusal with code
   `claimed`, or its `record` raises CaseMoved. The loser has written nothing, and looks again when
   SQS delivers its event again. Newer failed calls noted on the case count as a change of state
   too.

3. A run recognizes its own writes. DynamoDB may carry out a write whose answer is lost; the SDK
   then sends it again. The conditions of a claim and of a record therefore also accept the run's
   own token. Otherwise a run would mistake its own claim for another run's, and lock itself out.

4. A claim is all or nothing. One transaction claims every attribute that the fix changes and the
   case, stores the snapshot, spends one of the account's writes per minute, and checks that there
   is no freeze. So a freeze set between look and claim still stops the write (one set after the
   claim stops the next), and no write is made that cannot be undone. The first condition that fails
   gives the refusal's code. A rollback only claims the attributes and the case: neither a freeze
   nor a spent budget may keep a person from undoing a change.

5. A snapshot is written once per transition. A run that claims again after a crash keeps the stored
   snapshot: a new one would hold Mendq's own value, and a rollback would do nothing.

6. A claim ends by `record`, by `release` if nothing was written to the queue, or 120 seconds after
   the start of the run that took it (`Claim.expires_at`). That is longer than a Lambda that writes
   may run. `release` also deletes the snapshot: nothing was written that could be undone, and the
   next claim must store the queue as it is then. The claim stores the intent: the transition that
   the run is about to make. If the run dies, the next one finds the intent and sees on the queue
   whether the write was made. A claimed case becomes due when its claim expires, so follow-up looks
   even if no event comes. The first case of a symptom on a queue has no item yet that could be
   claimed; if its run dies, the event that would open it comes again.

7. A record is all or nothing. One transaction moves the case, adds the transition, ends the claims
   and the evidence, and stores the notification. A run that dies right after it has lost nothing:
   follow-up sends the notification and copies the transition to the case bucket.

8. The index `open_cases` is a to-do list, not the truth. It lists a case while it is open and until
   people were notified of its end, and a transition until it is in the case bucket. It may lag by a
   moment. So a method that postpones, annotates or closes a case first checks that the case is
   still at the same transition, and changes nothing if it is not. `postpone_unreadable_case` cannot
   do that, because it knows a case only from the index; it checks that the due time is still the
   one listed. A case is never postponed past the end of a claim on it: follow-up must look then
   whether the claim's run has died.

9. Mendq does not guess the content of an item that it cannot read. A method about one case or queue
   raises CaseStoreUnreadable, since that item may decide. The list of open cases leaves it out, so
   that one bad item does not hide the others.

10. No answer, no change. If DynamoDB does not answer, or refuses, the method raises
    CaseStoreUnavailable, and callers then change nothing. A conflict with another transaction is
    tried 4 times in all, with short random pauses. A failed condition is an answer, so it is not
    tried again.

11. Items stay small, and what is temporary expires. Evidence and spread are sets, so a repeated
    event adds nothing; old entries are removed before new ones are added. They expire after 2
    hours, transitions after 400 days. Cases, attribute records and snapshots do not expire: a
    person may roll back much later.

The case store decides nothing and calls no other service. A claim keeps out other runs of Mendq,
not people: the caller reads the queue once more after claiming it.

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
from mendq.cases import items, open_case_index
from mendq.cases import transactions as writes
from mendq.cases.items import Item
from mendq.cases.open_case_index import PARTITION_ATTRIBUTE, SORT_ATTRIBUTE
from mendq.cases.spread import Spread
from mendq.cases.transactions import (
    Claim,
    NewTransition,
    Table,
    convert_case_store_errors,
    make_expression_parameters,
    retry_conflicts,
)
from mendq.cases.view import CHANGE_LIFETIME, CaseStoreView, HoldUp
from mendq.model.case import Case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.plan import Refusal, Retry
from mendq.model.state import FINAL_STATES, State
from mendq.model.time_text import format_time

# Stored failed calls, and notes that a queue shows a symptom, count for one hour. The second hour
# is a margin (rule 11).
TEMPORARY_ITEM_LIFETIME = timedelta(hours=2)


class CaseStore(Table, frozen=True):
    """The case store, with the reads and writes that a run needs to decide about a symptom.

    Raises:
        CaseStoreUnavailable: by every method (rule 10 of the module's docstring).
    """

    def look(
        self, queue_arn: str, symptom: str, attributes: Sequence[str], spread_subject: str = ""
    ) -> CaseStoreView:
        """Return everything stored about a symptom on a queue, as of one moment (rule 1).

        Args:
            queue_arn: The queue.
            symptom: The symptom's name.
            attributes: The names of the queue attributes whose records are needed.
            spread_subject: The subject (see `items.spread_key`) under which the queues with the
                symptom are listed. If it is empty, that list is not read.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read one of the items.
        """
        keys = items.list_view_keys(queue_arn, symptom, attributes, spread_subject)
        get_requests: Any = [{"Get": {"TableName": self.table, "Key": key}} for key in keys]
        with convert_case_store_errors():
            response = retry_conflicts(
                lambda: self.client.transact_get_items(TransactItems=get_requests)
            )
        with items.convert_decode_errors(f"an item about {queue_arn}"):
            view_items = [answer.get("Item", {}) for answer in response["Responses"]]
            return items.read_view(view_items, attributes)

    def store_evidence(
        self,
        queue_arn: str,
        symptom: str,
        *,
        sightings_to_add: Sequence[Sighting],
        sightings_to_drop: Sequence[Sighting],
        now: datetime,
    ) -> Evidence:
        """Store failed calls for a case that is not open yet. Return all that are stored now.

        The result includes failed calls that other runs stored meanwhile. If there is nothing to
        add or drop, nothing is read and the result is empty.

        Args:
            queue_arn: The queue.
            symptom: The symptom's name.
            sightings_to_add: The failed calls to add.
            sightings_to_drop: The failed calls to remove, because they do not count any more.
            now: The time of the run. The evidence expires TEMPORARY_ITEM_LIFETIME after it.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read the stored evidence.
        """
        key = items.evidence_key(queue_arn, symptom)
        dropped_texts = [sighting.to_text() for sighting in sightings_to_drop]
        added_texts = [sighting.to_text() for sighting in sightings_to_add]
        evidence_item = self.change_set(
            key, "sightings", now + TEMPORARY_ITEM_LIFETIME, dropped_texts, added_texts
        )
        with items.convert_decode_errors(f"the evidence about {queue_arn}"):
            return items.read_evidence(evidence_item)

    def note_spread(
        self,
        queue_arns: Iterable[str],
        spread_subject: str,
        now: datetime,
        spread_item: Item | None = None,
    ) -> frozenset[str]:
        """Note that these queues show a symptom. Return all queues that showed it in the last hour.

        Args:
            queue_arns: The queues that show it now.
            spread_subject: The symptom's name, or another subject of `items.spread_key`.
            now: The time of the note.
            spread_item: The item with the notes if `look` has just read it, or None to read it.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read the stored spread.
        """
        key = items.spread_key(spread_subject)
        with items.convert_decode_errors(f"the spread of {spread_subject}"):
            item = self.get(key) if spread_item is None else spread_item
            spread = Spread.from_texts(items.read_texts(item, "queues"))
        outdated_notes = spread.list_outdated_notes(now)
        new_notes = spread.make_new_notes(queue_arns, now)
        changed_item = self.change_set(
            key, "queues", now + TEMPORARY_ITEM_LIFETIME, outdated_notes, new_notes
        )
        if changed_item:
            spread = Spread.from_texts(items.read_texts(changed_item, "queues"))
        return spread.list_queue_arns(now)

    def note_change(
        self, queue_arn: str, symptom: str, changed_at: datetime, now: datetime
    ) -> list[datetime]:
        """Store the time of a change of the queue that explains failed calls.

        Return the times of all such changes of the last day, for this queue and symptom.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read the stored changes.
        """
        key = items.item_key(queue_arn, f"changes#{symptom}")
        expires_at = now + CHANGE_LIFETIME
        changes_item = self.change_set(key, "changes", expires_at, (), [format_time(changed_at)])
        with items.convert_decode_errors(f"the changes of {queue_arn}"):
            change_times = [
                datetime.fromisoformat(change_text) for change_text in changes_item["changes"]["SS"]
            ]
            expired_change_times = [
                change_time for change_time in change_times if now - change_time >= CHANGE_LIFETIME
            ]
        self.change_set(
            key,
            "changes",
            expires_at,
            [format_time(change_time) for change_time in expired_change_times],
            (),
        )
        return [
            change_time for change_time in change_times if change_time not in expired_change_times
        ]

    def claim(
        self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int
    ) -> Refusal | None:
        """Take a claim with its snapshot and one write of the budget, or nothing (rules 2 to 6).

        An operator's rollback takes only the claim; an automatic rollback takes no snapshot.

        Args:
            claim: The claim to take.
            snapshot: The queue's configuration before the write, as JSON values.
            writes_per_minute: How many writes to queues the account may make in a minute.

        Returns:
            None if the claim is taken; otherwise the refusal of the first condition that failed.
        """
        claim_parts = writes.make_claim_parts(claim, snapshot, writes_per_minute)
        failed_part_index = self.transact([claim_part.part for claim_part in claim_parts])
        if failed_part_index is None:
            return None
        return Retry(claim_parts[failed_part_index].code, claim_parts[failed_part_index].reason)

    def release(self, intent: Case, owner: str, view: CaseStoreView) -> None:
        """End a claim under which nothing was written to the queue, and delete its snapshot.

        Do nothing if `owner` no longer holds the claim.

        Args:
            intent: The transition that the claim was taken for.
            owner: The token of the run that took the claim.
            view: The view that the claim was taken on.
        """
        self.transact(writes.make_release_parts(intent, owner, view))

    def record(self, new_transition: NewTransition) -> None:
        """Move the case by one transition, with everything that belongs to it (rules 2, 3 and 7).

        Raises:
            CaseMoved: if another run has moved the case since it was looked at.
        """
        if self.transact(writes.make_record_parts(new_transition)) is not None:
            raise CaseMoved(f"another run has moved case {new_transition.case.case_id}")


class OpenCase(Struct, frozen=True):
    """A case as the index lists it: open, or ended and not announced yet (rule 8).

    Args:
        key: The key of the case's item.
        due_at: When follow-up must look at the case.
    """

    key: items.Key
    case_id: str
    queue_arn: str
    symptom: str
    state: State
    opened_at: datetime
    due_at: datetime


class OpenCases(Table, frozen=True):
    """The case store, with the reads and writes that a run needs to go through many cases.

    Raises:
        CaseStoreUnavailable: by every method (rule 10 of the module's docstring).
    """

    def list_open_cases(self) -> list[OpenCase]:
        """Return every open case, sorted by due time, the earliest first.

        Unreadable items are left out (rule 9).
        """
        return [case for case in self.list_unsettled_cases() if case.state not in FINAL_STATES]

    def list_unsettled_cases(self) -> list[OpenCase]:
        """Return every open case, and every ended case whose end may not be announced yet.

        The cases are sorted by due time, the earliest first. Unreadable items are left out
        (rule 9).
        """
        request = make_expression_parameters(
            {"every": open_case_index.CASE_PARTITION},
            KeyConditionExpression=f"#{PARTITION_ATTRIBUTE} = :every",
        )
        cases = [_read_open_case(item) for item in self._query_index(request)]
        return [case for case in cases if case is not None]

    def list_unfiled_transitions(self, now: datetime) -> list[items.Key]:
        """Return the keys of transitions that must be put into the case bucket now."""
        request = make_expression_parameters(
            {"unfiled": open_case_index.UNFILED_TRANSITION_PARTITION, "now": now},
            KeyConditionExpression=(
                f"#{PARTITION_ATTRIBUTE} = :unfiled AND {SORT_ATTRIBUTE} <= :now"
            ),
        )
        listed_items = self._query_index(request)
        return [items.item_key(item["pk"]["S"], item["sk"]["S"]) for item in listed_items]

    def list_transitions(self, case_id: str) -> tuple[Case, ...]:
        """Return a case's transitions of the last 400 days, the oldest first.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read one of them.
        """
        partition = items.transition_key(case_id, 0)["pk"]
        request = make_expression_parameters(
            {"case": partition}, KeyConditionExpression="pk = :case"
        )
        return tuple(read_cases(self.read_pages("query", {**request, "ConsistentRead": True})))

    def load_transition(self, key: items.Key) -> Case | None:
        """Return the transition at `key`, or None if it has expired.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read it.
        """
        return next(read_cases([self.get(key)]), None)

    def scan_all_transitions(self) -> Iterator[Case]:
        """Yield every stored transition in no particular order. This reads the whole table.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read one of them.
        """
        request = make_expression_parameters(
            {"case": "case#"}, FilterExpression="begins_with(pk, :case)"
        )
        return read_cases(self.read_pages("scan", request))

    def load_snapshot(self, case: Case) -> Mapping[str, str] | None:
        """Return the queue's attributes before this transition; None if there is no snapshot.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read the snapshot.
        """
        snapshot_item = self.get(items.snapshot_key(case))
        if not snapshot_item:
            return None
        with items.convert_decode_errors(f"the snapshot of {case.case_id}"):
            attributes: Mapping[str, str] = json.loads(snapshot_item["configuration"]["S"])[
                "attributes"
            ]
        return attributes

    def list_open_symptoms(self, queue_arns: Iterable[str]) -> frozenset[str]:
        """Return the symptoms that have an open case on any of these queues.

        A case that ended is left out, also if the index still lists it (rule 8): a case that only
        records a fault ends at once, and must not explain what other symptoms would page about.
        An item whose state cannot be read counts as open.
        """
        open_condition = f"attribute_exists(#{PARTITION_ATTRIBUTE})"
        symptoms: set[str] = set()
        for queue_arn in queue_arns:
            for item in self._query_cases(queue_arn, open_condition):
                if item.get("state", {}).get("S") not in FINAL_STATES:
                    symptoms.add(item["symptom"]["S"])
        return frozenset(symptoms)

    def list_newest_cases(self, queue_arns: Iterable[str]) -> tuple[Case, ...]:
        """Return the newest case of each symptom on any of these queues, open or ended.

        Raises:
            CaseStoreUnreadable: if Mendq cannot read one of them.
        """
        cases: list[Case] = []
        for queue_arn in queue_arns:
            cases.extend(read_cases(self._query_cases(queue_arn)))
        return tuple(cases)

    def note_failures(
        self, case: Case, stored_failures: Evidence, failures: Evidence, due_at: datetime | None
    ) -> bool:
        """Store newer failed calls in the item of an open case.

        Args:
            case: The case as `look` returned it.
            stored_failures: The failed calls that `look` returned.
            failures: The failed calls to store in their place.
            due_at: When follow-up must look at the case; None to keep the stored time.

        Returns:
            True if the calls were stored. False, with nothing changed, if the case has moved or
            another run has stored calls meanwhile.
        """
        value_by_placeholder: dict[str, Any] = {"now_known": items.format_failures(failures)}
        update_expression = "SET failures = :now_known"
        if due_at is not None:
            value_by_placeholder["due"] = due_at
            update_expression += f", {SORT_ATTRIBUTE} = :due"
        unchanged_condition = "(attribute_not_exists(failures) OR failures = :known)"
        stored_failures_text = items.format_failures(stored_failures)
        return self._change_unmoved_case(
            case,
            update_expression,
            unchanged_condition,
            **value_by_placeholder,
            known=stored_failures_text,
        )

    def store_hold_up(self, case: Case, hold_up: HoldUp) -> None:
        """Store in a case's item why its next write waits. Do nothing if the case has moved."""
        self._change_unmoved_case(
            case, "SET held_up = :held_up", held_up=items.encode_json(hold_up)
        )

    def postpone(self, case: Case, postponed_until: datetime) -> None:
        """Make a case due at `postponed_until`, when follow-up will look at it next.

        Do nothing if the case has moved, or if a claim on it ends earlier (rule 8).
        """
        unclaimed_condition = "(attribute_not_exists(claim_until) OR claim_until >= :due)"
        self._change_unmoved_case(
            case, f"SET {SORT_ATTRIBUTE} = :due", unclaimed_condition, due=postponed_until
        )

    def postpone_unreadable_case(self, listed_case: OpenCase, postponed_until: datetime) -> None:
        """Make a case due at `postponed_until`, if only its entry in the index is known.

        Do nothing if the case's due time is no longer the listed one.
        """
        unchanged_condition = f"{SORT_ATTRIBUTE} = :due"
        self.change(
            listed_case.key,
            f"SET {SORT_ATTRIBUTE} = :until",
            unchanged_condition,
            until=postponed_until,
            due=listed_case.due_at,
        )

    def mark_case_announced(self, case: Case, now: datetime) -> None:
        """Remove an ended case from the index after people were notified.

        Do nothing if the case has moved, or if a claim on it has not expired yet.
        """
        unclaimed_condition = "(attribute_not_exists(claim_until) OR claim_until <= :now)"
        self._change_unmoved_case(
            case, f"REMOVE #{PARTITION_ATTRIBUTE}, {SORT_ATTRIBUTE}", unclaimed_condition, now=now
        )

    def mark_transition_filed(self, key: items.Key) -> None:
        """Remove a transition from the index after it was filed (`record.file_transition`)."""
        self.change(
            key,
            f"REMOVE #{PARTITION_ATTRIBUTE}, {SORT_ATTRIBUTE}",
            f"attribute_exists({SORT_ATTRIBUTE})",
        )

    def postpone_filing(self, key: items.Key, postponed_until: datetime) -> None:
        """Make a transition due at `postponed_until`, when follow-up will try to file it again."""
        self.change(
            key,
            f"SET {SORT_ATTRIBUTE} = :until",
            f"attribute_exists({SORT_ATTRIBUTE})",
            until=postponed_until,
        )

    def _change_unmoved_case(
        self, case: Case, update_expression: str, condition: str = "", **values: Any
    ) -> bool:
        """Change a case's item if the case is still at the same transition (rule 8).

        Change nothing and return False if the case has moved or `condition` is not met.
        """
        unmoved_condition = (
            f"case_id = :case AND n = :n AND attribute_exists(#{PARTITION_ATTRIBUTE})"
        )
        full_condition = f"{unmoved_condition} AND {condition}" if condition else unmoved_condition
        key = items.case_key(case.queue_arn, case.symptom)
        return self.change(
            key, update_expression, full_condition, **values, case=case.case_id, n=case.n
        )

    def _query_index(self, request: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the items that the index lists. The index may lag behind the table by a moment."""
        return self.read_pages("query", {**request, "IndexName": open_case_index.OPEN_CASES})

    def _query_cases(self, queue_arn: str, condition: str = "") -> Iterator[Item]:
        """Yield the case items of a queue, or only those that meet a condition."""
        key_prefix = items.case_key(queue_arn, "")
        request = make_expression_parameters(
            {"queue": key_prefix["pk"], "case": key_prefix["sk"]},
            KeyConditionExpression="pk = :queue AND begins_with(sk, :case)",
            FilterExpression=condition,
        )
        return self.read_pages("query", {**request, "ConsistentRead": True})


def read_cases(case_items: Iterable[Item]) -> Iterator[Case]:
    """Yield the cases in items of the case store. Items without a transition are left out.

    Raises:
        CaseStoreUnreadable: if Mendq cannot read a transition.
    """
    for case_item in case_items:
        with items.convert_decode_errors(f"a transition in {case_item.get('pk')}"):
            case = items.read_case(case_item)
        if case is not None:
            yield case


def _read_open_case(item: Item) -> OpenCase | None:
    """Read an item of the index. Return None if Mendq cannot read it (rule 9)."""
    with suppress(CaseStoreUnreadable), items.convert_decode_errors("an open case"):
        queue_arn = item["pk"]["S"]
        key = items.item_key(queue_arn, item["sk"]["S"])
        state = State(item["state"]["S"])
        return items.read_record(OpenCase, item, key=key, queue_arn=queue_arn, state=state)
    return None
