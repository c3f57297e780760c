"""The queues that the account's settings and tags let Mendq manage, and the mode of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mendq.model.mode import MODE_BY_TEXT, Mode
from mendq.model.queue import is_quarantine
from mendq.model.tags import MODE_OFF, MODE_TAG, TEAM_TAG


@dataclass(frozen=True)
class Consent:
    """The queues that the account's settings let Mendq manage, and how far it may go on them.

    Attributes:
        mode: The mode of queues that `queues` names.
        tag_may_raise_to: The highest mode that a queue's own tag can give.
        queues: Names, or prefixes that end with `*`. Empty: only tags make a queue managed.
        teams: The teams that have a topic.
    """

    mode: Mode = Mode.OBSERVE
    tag_may_raise_to: Mode = Mode.OBSERVE
    queues: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def without_team_tag(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return the tags. The team tag is left out if its team is in the settings."""
        is_known_team = tags.get(TEAM_TAG) in self.teams
        return {key: text for key, text in tags.items() if key != TEAM_TAG or not is_known_team}

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        """Return the queue's mode; None if Mendq does not manage the queue.

        A queue that settings name starts in the account's mode, any other queue in the lowest one.
        The queue's `mendq` tag may lower the mode freely, and raise it at most to
        `tag_may_raise_to`. The IAM policies of the roles have the same limit. A tag with an unknown
        value gives the lowest mode. A quarantine is never managed, not even if settings or a tag
        name it: only people take messages out of it.
        """
        if is_quarantine(queue_name):
            return None
        mode_by_name = self.mode if self.names(queue_name) else None
        tag = tags.get(MODE_TAG)
        if tag is None:
            return mode_by_name
        if tag == MODE_OFF:
            return None
        tagged_mode = MODE_BY_TEXT.get(tag, Mode.OBSERVE)
        return min(tagged_mode, max(mode_by_name or Mode.OBSERVE, self.tag_may_raise_to))

    def why(self, queue_name: str, tags: Mapping[str, str]) -> str:
        """Return a text that says why `mode_of` gives this mode, for people."""
        fitting_patterns = [pattern for pattern in self.queues if _fits(queue_name, pattern)]
        reason_by_name = "no setting names it"
        if fitting_patterns:
            reason_by_name = f"settings name it ({fitting_patterns[0]}): {self.mode}"
        tag = tags.get(MODE_TAG)
        mode = self.mode_of(queue_name, tags)
        tagged_mode = MODE_BY_TEXT.get(tag or "", Mode.OBSERVE)
        if tag is None:
            return reason_by_name
        if mode is not None and tagged_mode > mode:
            cap_text = f"tagMayRaiseTo ({self.tag_may_raise_to}) caps it at {mode}"
            return f"{reason_by_name}; its tag says {tagged_mode}, and {cap_text}"
        if tag in (MODE_OFF, *MODE_BY_TEXT):
            return f"{reason_by_name}; its tag says {tag}"
        return f"{reason_by_name}; its tag says nothing that Mendq knows, so {mode}"

    def has_exact_name(self, queue_name: str) -> bool:
        """Return True if settings contain exactly this name.

        A prefix with `*` does not count, because it also fits queues that never existed.
        """
        return queue_name in self.queues

    def names(self, queue_name: str) -> bool:
        """Return True if settings name the queue or a prefix of its name."""
        return any(_fits(queue_name, pattern) for pattern in self.queues)


def _fits(queue_name: str, pattern: str) -> bool:
    """Return True if the name is equal to the pattern, or begins with a pattern that ends with `*`.

    A bare `*` fits no queue: to manage all queues, people must tag each of them.
    """
    prefix = pattern.removesuffix("*")
    return queue_name == pattern or (prefix not in ("", pattern) and queue_name.startswith(prefix))
