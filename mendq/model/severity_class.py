"""The scale of severity that scans and lint share.

A class says what a fault does to the messages of a queue. A symptom declares its class once for
each kind of evidence, in its entry of the catalogue. So a scan and lint rate the same fault alike,
and both list the worst class first.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class SeverityClass(StrEnum):
    """The class of a finding's severity, the worst class first.

    The value is the name in JSON and in the options `--class` and `--fail-on`.
    """

    EXPOSED = "exposed"
    LOSING = "losing"
    STANDING_STILL = "standing_still"
    FAILING_IN_PART = "failing_in_part"
    WILL_LOSE = "will_lose"
    MAY_LOSE = "may_lose"
    HYGIENE = "hygiene"

    @property
    def rank(self) -> int:
        """The position on the scale. 0 is the worst."""
        return _RANK_BY_CLASS[self]

    @property
    def title(self) -> str:  # type: ignore[override] # a heading, not the method of str
        """The class as a heading for people, in lower case."""
        return _TITLE_BY_CLASS.get(self, self.value.replace("_", " "))

    @property
    def meaning(self) -> str:
        """A sentence that says which faults belong to the class."""
        return _MEANING_BY_CLASS[self]


_RANK_BY_CLASS = {severity_class: position for position, severity_class in enumerate(SeverityClass)}
_TITLE_BY_CLASS = {
    SeverityClass.LOSING: "losing or duplicating messages",
    SeverityClass.WILL_LOSE: "will lose messages",
    SeverityClass.MAY_LOSE: "may lose messages",
}
_MEANING_BY_CLASS = {
    SeverityClass.EXPOSED: "Anyone can send, receive or delete.",
    SeverityClass.LOSING: "Right now messages are lost, expire, or are handled twice.",
    SeverityClass.STANDING_STILL: (
        "Nothing is finished, nothing reads the queue, or AWS refuses a producer or the use of the "
        "key. In a template: AWS refuses to deploy it, or its function cannot run."
    ),
    SeverityClass.FAILING_IN_PART: (
        "Some messages fail or reach the DLQ, retries wait for hours, the backlog grows, one "
        "message group holds up others, or some calls are throttled."
    ),
    SeverityClass.WILL_LOSE: (
        "Messages will be lost in normal operation: one message that cannot be handled is enough."
    ),
    SeverityClass.MAY_LOSE: "Messages can be lost or handled twice under load or after a failure.",
    SeverityClass.HYGIENE: (
        "No message is in danger because of it: encryption, alarms, tags, cost, and messages that "
        "may expire on purpose."
    ),
}


def find_worst_class(severity_classes: Iterable[SeverityClass]) -> SeverityClass:
    """Return the worst of these classes. There must be at least one."""
    return min(severity_classes, key=_get_rank)


def _get_rank(severity_class: SeverityClass) -> int:
    return severity_class.rank
