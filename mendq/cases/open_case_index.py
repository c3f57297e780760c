"""The names of the case store's index: open cases, and transitions that are not filed yet.

An item is in the index while it has the attributes `PARTITION` and `SORT`. A case has them while it
is open, and until its last notification is sent. A transition has them until it is in the case
bucket and its event is on the bus.
"""

from __future__ import annotations

OPEN_CASES = "open_cases"
PARTITION = "open"
SORT = "due_at"
INCLUDED = ("case_id", "symptom", "state", "opened_at")
# The values of PARTITION: of a case, and of a transition.
EVERY_CASE = "case"
UNFILED = "transition"
