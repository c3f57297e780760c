"""What Mendq remembers of a queue's configuration, so that a page can say what has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.healing.difference import configured
from functions.healing.queue_lines import Known

# So long a change is still the first thing to look at.
CHANGED_LATELY = timedelta(days=7)


@dataclass(frozen=True)
class Configuration:
    """How a queue stood when a case was last written down, and how it had stood before it changed.

    `since` is when it was first seen as it stands.
    """

    at: datetime
    attributes: Mapping[str, str]
    since: datetime
    earlier: Known | None = None

    def to_compare(self, attributes: Mapping[str, str], now: datetime) -> Known:
        """What to hold against the queue's attributes now.

        A case about something else may have noted a change already: then it is what stood before.
        """
        changed_lately = now - self.since < CHANGED_LATELY
        if self.stands_as(attributes) and self.earlier is not None and changed_lately:
            return self.earlier
        return Known(self.at, self.attributes)

    def stands_as(self, attributes: Mapping[str, str]) -> bool:
        """Whether the queue is configured so; counters and times are no configuration."""
        return configured(self.attributes) == configured(attributes)

    @classmethod
    def after(
        cls, last: Configuration | None, attributes: Mapping[str, str], now: datetime
    ) -> Configuration:
        """What is to be remembered from now on."""
        if last is None:
            return cls(now, attributes, now)
        if last.stands_as(attributes):
            return cls(now, attributes, last.since, last.earlier)
        return cls(now, attributes, now, Known(last.at, last.attributes))
