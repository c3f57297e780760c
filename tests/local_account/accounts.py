"""Assembly, addresses and settings of the local accounts that the tests start."""

from __future__ import annotations

from pathlib import Path

# A stack written by hand with a resource of every kind that the local account deploys.
TINY_ASSEMBLY = Path(__file__).parent / "tiny_assembly"
REPORT_SENDER = "reports@example.com"
REPORT_RECIPIENTS = ["ada@example.com", "grace@example.org"]
# Many tests make queues that show the same symptom within an hour. Without these limits Mendq would
# suspect a common cause and change none of them.
SETTINGS = {
    "limits": {"massSymptomShare": 1, "writesPerMinute": 100},
    "report": {"sender": REPORT_SENDER, "recipients": REPORT_RECIPIENTS},
}
