"""The label of a failed call: THE place where a call gets its word in every table of the night."""

from __future__ import annotations

from functions.catalogue import CATALOGUE, match
from functions.healing.failed_call import FailedCall

UNLABELLED = "unlabelled:"
# Labels that never open a case; what only a sweep sees labels no call.
COUNT_ONLY = tuple(each.name for each in CATALOGUE if each.plan is None and each.seen_as)


def label_of(call: FailedCall) -> str:
    """The symptom's name; `unlabelled:<canonical code>` where the catalogue has none."""
    symptom = match(call)
    return symptom.name if symptom else f"{UNLABELLED}{call.error_code}"
