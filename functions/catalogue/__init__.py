"""THE place to add a symptom: one file, one line here, one runbook. The first match holds."""

from functions.catalogue.lease_expired import LEASE_EXPIRED
from functions.catalogue.symptom import Symptom
from functions.healing.failed_call import FailedCall

CATALOGUE: tuple[Symptom, ...] = (LEASE_EXPIRED,)


def match(failed_call: FailedCall) -> Symptom | None:
    """The symptom that a failed call points to; None where the catalogue has none."""
    return next((symptom for symptom in CATALOGUE if symptom.matches(failed_call)), None)
