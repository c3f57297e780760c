"""An alarm in words: what it means for people, what to type first, where to read on."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Stack
from constructs import Construct

from mendq.model.case import Severity
from mendq.notifications.commands import ALARM_PREFIX, DOCTOR, worded

OPEN_CASES = "mendq cases --open"


def in_region(command: str, region: str) -> str:
    """What to type: whoever is paged has another region as the default."""
    return f"{command} --region {region}"


@dataclass(frozen=True)
class AlarmDescription:
    """What a person reads of one alarm; `command` is the first to type.

    `when` says when it fires. `runbook` is the name of the page where it shares another's.
    `severity` says whom it reaches by itself; None is nobody: a composite joins it to others.
    """

    name: str
    when: str
    impact: str
    command: str = DOCTOR
    runbook: str = ""
    severity: Severity | None = None

    @property
    def page(self) -> str:
        """Its runbook, from the root of the repository."""
        return f"docs/runbooks/{self.runbook or self.name}.md"

    def command_in(self, region: str) -> str:
        """The first to type."""
        return in_region(self.command, region)

    def description(self, scope: Construct) -> str:
        """What CloudWatch sends to people with the alarm, of the stack that `scope` is in."""
        stack = Stack.of(scope)
        command = self.command_in(stack.region)
        return worded(self.impact, self.when, stack.account, command, self.page)

    def called(self, of: str = "") -> str:
        """The alarm's name, with what it watches where there are several of them."""
        return ALARM_PREFIX + "-".join(filter(None, (self.name.replace("_", "-"), of)))
