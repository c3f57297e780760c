"""How alarms are called and worded: what they are made with, and what `mendq doctor` reads them by.

It imports nothing, so that a command of seconds needs no CDK.
"""

from __future__ import annotations

import re

# How the name of every alarm of Mendq's begins: others of the account may not publish here.
ALARM_PREFIX = "mendq-"
FIRES, FIRST, RUNBOOK = "Fires: ", "First, in account ", "Runbook: "
# What Mendq's own doctor sees of most causes.
DOCTOR = "mendq doctor"

_WORDS = re.compile(
    rf"^{FIRES}(?P<when>.{{1,500}})\.\n"
    rf"{FIRST}\S{{1,40}}: (?P<command>.{{1,200}})\n"
    rf"{RUNBOOK}(?P<page>docs/runbooks/[a-z_]{{1,64}}\.md)$",
    re.MULTILINE,
)


def worded(impact: str, when: str, account: str, command: str, page: str) -> str:
    """What CloudWatch sends to people with an alarm."""
    return f"{impact}\n{FIRES}{when}.\n{FIRST}{account}: {command}\n{RUNBOOK}{page}"


def read(description: str) -> tuple[str, str, str] | None:
    """When it fires, what to type first and its runbook; None where it is not of our wording."""
    found = _WORDS.search(description)
    return (found["when"], found["command"], found["page"]) if found else None
