"""An alarm in words: what it means for people, what to type first, where to read on."""

from __future__ import annotations

from dataclasses import dataclass

from functions.healing.paging import Severity
from infra.topics import ALARM_PREFIX

# What Mendq's own doctor sees of most causes.
DOCTOR = "mendq doctor"
OPEN_CASES = "mendq cases --open"


@dataclass(frozen=True)
class Told:
    """What a person reads of one alarm; `command` is the first to type.

    `when` says when it fires. `runbook` is the name of the page where it shares another's.
    """

    name: str
    when: str
    impact: str
    command: str = DOCTOR
    runbook: str = ""

    @property
    def page(self) -> str:
        """Its runbook, from the root of the repository."""
        return f"docs/runbooks/{self.runbook or self.name}.md"

    @property
    def description(self) -> str:
        """What CloudWatch sends to people with the alarm."""
        return f"{self.impact}\nFires: {self.when}.\nFirst: {self.command}\nRunbook: {self.page}"

    def called(self, of: str = "") -> str:
        """The alarm's name, with what it watches where there are several of them."""
        return ALARM_PREFIX + "-".join(filter(None, (self.name.replace("_", "-"), of)))


@dataclass(frozen=True)
class Paged(Told):
    """A composite: it alone reaches people, by the topic of its severity, when it ends as well."""

    severity: Severity = Severity.URGENT
