"""The two minutes between which the change of a backlog is set against what was counted.

SQS does not say when within its minute a backlog is measured. So that no order of things within a
minute looks like deletes beyond the messages that went, what was sent in either of them counts, and
what was deleted in either does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

Points = Sequence[tuple[datetime, float]]
BACKLOG = ("visible", "in_flight", "delayed")
# A burst of sends may be in the first backlog or not: one of these minutes is quieter.
FIRST_MINUTES = timedelta(minutes=5)
# SQS may need so long to report a queue that nobody has used for hours.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
SLOW_TO_BEGIN = timedelta(minutes=15)


@dataclass(frozen=True)
class BacklogEnds:
    """The first minutes of both; None where no backlog was measured."""

    first: datetime | None
    last: datetime | None
    began_silent: bool

    @classmethod
    def of(cls, series: Mapping[str, Points], since: datetime) -> BacklogEnds:
        """From what was measured since; the first is where the fewest were sent, early on."""
        gauged = sorted({at for key in BACKLOG for at, _ in series.get(key, ())})
        if not gauged:
            return cls(None, None, began_silent=False)
        earliest, last = gauged[0], gauged[-1]
        if earliest - since > SLOW_TO_BEGIN:
            return cls(earliest, last, began_silent=True)
        sent = dict(series.get("sent", ()))
        early = [at for at in gauged if at < min(earliest + FIRST_MINUTES, last)] or [earliest]
        first = min(early, key=lambda at: (sent.get(at, 0.0), at))
        return cls(first, last, began_silent=False)

    def before(self, points: Points) -> int:
        """A gauge's value at the first, or the next that it has."""
        return _rounded(value for at, value in points if self.first is None or at >= self.first)

    def now(self, points: Points) -> int:
        """A gauge's value at the last, or the one before."""
        return _rounded(value for _, value in reversed(points))

    def sent(self, points: Points) -> int:
        """After silence all of them: the queue was empty."""
        counts_all = self.first is None or self.began_silent
        return int(sum(value for at, value in points if counts_all or self._since_first(at)))

    def counted(self, points: Points) -> int:
        """After the first; all where that is the only minute in which a backlog was measured."""
        return int(sum(value for at, value in points if not self._has_both or self._is_after(at)))

    def unsure(self, points: Points) -> int:
        """Of what `counted` counts, what the last backlog may not show yet."""
        return int(sum(value for at, value in points if not self._has_both or self._is_late(at)))

    @property
    def _has_both(self) -> bool:
        return self.first != self.last

    def _since_first(self, at: datetime) -> bool:
        return self.first is None or at >= self.first

    def _is_after(self, at: datetime) -> bool:
        return self.first is None or at > self.first

    def _is_late(self, at: datetime) -> bool:
        return self.last is None or at >= self.last


def _rounded(values: Iterable[float]) -> int:
    """The first of them; 0 where there is none."""
    return round(next(iter(values), 0.0))
