"""A week as it goes out: what the topic is told, and what each recipient is mailed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from functions.report.mail import Mail, mail, subject, text
from functions.report.mail_message import message
from functions.report.summary import Summary


@dataclass(frozen=True)
class Outgoing:
    """`place` is where the page lies, `command` how to read it; drawn when it is asked for."""

    summary: Summary
    place: str
    command: str
    sender: str

    @property
    def subject(self) -> str:
        return subject(self.summary)

    @property
    def text(self) -> str:
        return text(self.summary, self.place, self.command)

    def message_to(self, recipient: str) -> bytes:
        """Raises ValueError where sender or recipient are no address."""
        return message(self._mail, self.sender, recipient)

    @cached_property
    def _mail(self) -> Mail:
        return mail(self.summary, self.place, self.command)


def outgoing(summary: Summary, place: str, region: str, sender: str) -> Outgoing:
    """The report of a week whose page lies at `place`."""
    command = f"mendq report --week {summary.week} --open --region {region}"
    return Outgoing(summary, place, command, sender)
