"""Gathers what is true of one queue now, no more than is needed; reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from functions.aws.looks import Looks
from functions.aws.pin_look import with_pin
from functions.aws.run import OwnerRun
from functions.healing.facts import Facts, Need


def gather(
    run: OwnerRun, queue_arn: str, tags: Mapping[str, str], needs: Collection[Need]
) -> Facts:
    """The facts that `needs` names, and no more.

    Raises FactsUnavailable, LedgerUnavailable or LedgerUnreadable.
    """
    looks = Looks(
        run.clients,
        run.now,
        run.settings.timing,
        run.open_cases.open_about,
        noted_moves=lambda: run.moves_by_name.into(run.now),
        newest_about=run.open_cases.newest_about,
        consent=run.consent,
    )
    facts = looks.facts(queue_arn, tags, needs)
    return with_pin(run, facts) if Need.PIN in needs else facts
