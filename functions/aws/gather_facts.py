"""Gathers what is true of one queue now, no more than is needed; reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from functions.aws.looks import Looks
from functions.aws.pin_look import with_pin
from functions.aws.run import OwnerRun
from functions.healing.facts import Facts, Need

Needs = Collection[Need]


def gather(run: OwnerRun, queue_arn: str, tags: Mapping[str, str], needs: Needs) -> Facts:
    """The facts that `needs` names, and no more.

    Raises FactsUnavailable, LedgerUnavailable or LedgerUnreadable.
    """
    return gather_more(run, gather_queue(run, queue_arn, tags, needs), needs)


def gather_queue(run: OwnerRun, queue_arn: str, tags: Mapping[str, str], needs: Needs) -> Facts:
    """The queue's own attributes, before what else `needs` names. Raises FactsUnavailable."""
    return _looks(run).queue(queue_arn, tags, needs)


def gather_more(run: OwnerRun, facts: Facts, needs: Needs) -> Facts:
    """The facts with what else `needs` names; raises as `gather`."""
    facts = _looks(run).with_more(facts, needs)
    return with_pin(run, facts) if Need.PIN in needs else facts


def _looks(run: OwnerRun) -> Looks:
    return Looks(
        run.clients,
        run.now,
        run.settings.timing,
        run.open_cases.open_about,
        noted_moves=lambda: run.moves_by_name.into(run.now),
        newest_about=run.open_cases.newest_about,
        consent=run.consent,
    )
