"""What taking a case back would do now, by the rule of the Lambda that would do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cli.account import Account
from functions.aws.standing import standing
from functions.healing.case import Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.rollback import Undo, Written, records_after, undos, written_by


def undos_now(
    account: Account, history: Sequence[Case], undone_before: Iterable[Case] = ()
) -> tuple[Undo, ...]:
    """One an attribute that the case has written, once the cases `undone_before` are undone.

    Raises QueueGone, FactsUnavailable or LedgerUnavailable.
    """
    newest, written = history[-1], written_by(history)
    if not written:
        return ()
    names = [each.attribute for each in written]
    view = account.ledger.look(newest.queue_arn, newest.symptom, names)
    steps = [step for case in history for step in case.steps]
    facts = Facts(newest.queue_arn, standing(account.clients, newest.queue_arn, steps), {})
    for each in undone_before:
        facts, view = _after(each, facts, view)
    return undos(written, _snapshots(account, written), facts, view)


def _snapshots(account: Account, written: Iterable[Written]) -> dict[int, Mapping[str, str]]:
    """By the transition that they were taken for."""
    source = account.open_cases
    found = {each.first.n: source.snapshot_of(each.first) for each in written}
    return {n: snapshot for n, snapshot in found.items() if snapshot is not None}


def _after(undone: Case, facts: Facts, view: LedgerView) -> tuple[Facts, LedgerView]:
    """Queue and ledger once that case is undone."""
    values = {step["attribute"]: step["after"] for step in undone.steps}
    records = records_after(undone, view, facts.created_at)
    return (
        replace(facts, attributes={**facts.attributes, **values}),
        replace(view, attributes={**view.attributes, **records}),
    )
