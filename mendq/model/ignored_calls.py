"""Reasons to ignore a failed call without reading its queue.

The heal Lambda and the nightly job both use these reasons, so the weekly report counts an ignored
call under the same reason as heal. This file is in `mendq/model`, because the nightly job's package
does not contain `mendq/heal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mendq.model.account_and_region import AccountAndRegion
from mendq.model.failed_call import FailedCall


class SymptomOfCall(Protocol):
    """The two fields of a catalogue entry (`Symptom`) that decide if a failed call is ignored.

    `mendq/model` must not import the catalogue, so this protocol stands for `Symptom`.
    """

    @property
    def plan(self) -> object:
        """The function that plans a fix, or None if the symptom is only counted and reported."""

    @property
    def is_evidence(self) -> Callable[[FailedCall], bool]:
        """A function that returns True if the failed call is evidence of the symptom."""


def find_ignore_reason(
    call: FailedCall, symptom: SymptomOfCall | None, mendq_location: AccountAndRegion
) -> str | None:
    """Return the code of the first reason to ignore `call`, or None if Mendq must handle it.

    `docs/runbooks/README.md` explains each code. The code `may_be_a_race` means that the call alone
    proves no fault, because the consumer may have deleted the message a moment before. Mendq then
    measures the queue.

    Args:
        call: The failed call.
        symptom: The catalogue's entry for the call (`find_symptom_of`), or None if there is none.
        mendq_location: The account and region in which Mendq runs and manages queues.
    """
    may_be_consumer_race = call.may_be_a_race
    if mendq_location.purpose_of(call.principal_arn) is not None:
        return "own_call"
    if symptom is None:
        return "unknown_code"
    if symptom.plan is None and not may_be_consumer_race:
        return "count_only"
    if call.queue_arn is None:
        return "unresolved_queue"
    if not mendq_location.holds(call.queue_arn):
        return "elsewhere"
    if may_be_consumer_race:
        return "may_be_a_race"
    if not symptom.is_evidence(call):
        return "no_evidence"
    return None
