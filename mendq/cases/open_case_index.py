"""Names of the case store's index of open cases and of transitions that are not filed yet.

An item is in the index while it has the attributes `PARTITION_ATTRIBUTE` and `SORT_ATTRIBUTE`. A
case has them until it has ended and its last notification is sent. A transition has them until it
is in the case bucket and its event is on the bus.
"""

from __future__ import annotations

# The name of the index.
OPEN_CASES = "open_cases"
# The attributes that are the index's partition key and its sort key.
PARTITION_ATTRIBUTE = "open"
SORT_ATTRIBUTE = "due_at"
# The other attributes that the index holds for each item.
INCLUDED_ATTRIBUTES = ("case_id", "symptom", "state", "opened_at")
# The values of PARTITION_ATTRIBUTE for a case and for a transition.
CASE_PARTITION = "case"
UNFILED_TRANSITION_PARTITION = "transition"
