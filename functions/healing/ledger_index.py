"""The ledger's index of open cases by when they are due: what infra makes and the Lambdas ask."""

from __future__ import annotations

OPEN_CASES = "open_cases"
# The partition key is there while a case is open, and until its end is filed and told.
PARTITION = "open"
SORT = "due_at"
INCLUDED = ("case_id", "symptom", "state", "opened_at")
EVERY_CASE = "case"
