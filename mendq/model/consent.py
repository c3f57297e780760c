"""The queues that Mendq may manage, by the account's settings and by tags, and their modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mendq.model.mode import MODE_BY_TEXT, Mode
from mendq.model.queue import is_quarantine
from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG, TEAM_TAG


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
        """Return the tags, without the team tag if the settings contain its team."""
        is_known_team = tags.get(TEAM_TAG) in self.teams
        return {
            key: tag_value
            for key, tag_value in tags.items()
            if key != TEAM_TAG or not is_known_team
        }

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        """Return the queue's mode; None if Mendq does not manage the queue.

        - Without a `mendq` tag, a queue that settings name has the account's mode. Mendq does not
          manage other queues.
        - With the tag `off`, Mendq does not manage the queue.
        - With any other tag, the mode is the tag's value; an unknown value means `observe`. It is
          at most `tag_may_raise_to` or, if settings name the queue and it is higher, the account's
          mode. The IAM policies of Mendq's roles have the same limit.
        - Mendq never manages a quarantine, whatever its name or tag, because only people take
          messages out of a quarantine.
        """
        if is_quarantine(queue_name):
            return None
        mode_of_settings = self.mode if self.is_queue_named(queue_name) else None
        tag_value = tags.get(MODE_TAG)
        if tag_value is None:
            return mode_of_settings
        if tag_value == MODE_OFF_VALUE:
            return None
        mode_of_tag = MODE_BY_TEXT.get(tag_value, Mode.OBSERVE)
        return min(mode_of_tag, max(mode_of_settings or Mode.OBSERVE, self.tag_may_raise_to))

    def explain_mode(self, queue_name: str, tags: Mapping[str, str]) -> str:
        """Return a sentence for people that explains the result of `mode_of` for this queue.

        Do not call this for a quarantine, for which `mode_of` ignores settings and tags.
        """
        matching_patterns = [
            pattern for pattern in self.queues if _matches_pattern(queue_name, pattern)
        ]
        settings_reason = "no setting names it"
        if matching_patterns:
            settings_reason = f"settings name it ({matching_patterns[0]}): {self.mode}"
        tag_value = tags.get(MODE_TAG)
        mode = self.mode_of(queue_name, tags)
        mode_of_tag = MODE_BY_TEXT.get(tag_value or "", Mode.OBSERVE)
        if tag_value is None:
            return settings_reason
        if mode is not None and mode_of_tag > mode:
            limit_text = f"tagMayRaiseTo ({self.tag_may_raise_to}) caps it at {mode}"
            return f"{settings_reason}; its tag says {mode_of_tag}, and {limit_text}"
        if tag_value in (MODE_OFF_VALUE, *MODE_BY_TEXT):
            return f"{settings_reason}; its tag says {tag_value}"
        return f"{settings_reason}; its tag says nothing that Mendq knows, so {mode}"

    def has_exact_name(self, queue_name: str) -> bool:
        """Return True if settings contain the queue's full name.

        A prefix with `*` does not count, because it also matches names that no queue ever had.
        """
        return queue_name in self.queues

    def is_queue_named(self, queue_name: str) -> bool:
        """Return True if settings contain the queue's name, or a prefix of the name with `*`."""
        return any(_matches_pattern(queue_name, pattern) for pattern in self.queues)


def _matches_pattern(queue_name: str, pattern: str) -> bool:
    """Return True if the pattern is the queue's name, or a prefix of the name with `*` at its end.

    The pattern `*` alone matches no queue: to manage all queues, people must tag each queue.
    """
    prefix = pattern.removesuffix("*")
    return queue_name == pattern or (prefix not in ("", pattern) and queue_name.startswith(prefix))
