"""Gathers what is true of one queue now, no more than is needed; reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from functions.aws.desk import Desk
from functions.aws.looks import Looks
from functions.aws.pin_look import with_pin
from functions.healing.facts import Facts, Need


def gather(desk: Desk, queue_arn: str, tags: Mapping[str, str], needs: Collection[Need]) -> Facts:
    """The facts that `needs` names, and no more. Raises FactsUnavailable or LedgerUnavailable."""
    looks = Looks(
        desk.clients,
        desk.now,
        desk.settings.timing,
        desk.open_cases.open_about,
        noted_moves=lambda: desk.moves_by_name.into(desk.now),
    )
    facts = looks.facts(queue_arn, tags, needs)
    return with_pin(desk, facts) if Need.PIN in needs else facts
