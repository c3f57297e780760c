"""How long a lease the consumers of a queue need, as far as anything names it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from functions.healing.facts import Facts
from functions.healing.limits import Limits
from functions.healing.tags import seconds_tag

MAX_PROCESSING_TAG = "mendq:max-processing-seconds"
MAX_VISIBILITY_TAG = "mendq:max-visibility-seconds"


@dataclass(frozen=True)
class LeaseNeed:
    """A lease to go to, and why; from `enough_seconds` on the one that stands will do."""

    seconds: int
    enough_seconds: int
    because: str
    recommended_seconds: int | None = None

    def recommended_beyond(self, seconds: int) -> str:
        """AWS's advice as the end of a sentence, where it asks for more than `seconds`."""
        recommended = self.recommended_seconds
        return f"; AWS recommends {recommended} s" if (recommended or 0) > seconds else ""


def named(facts: Facts) -> list[LeaseNeed]:
    """What its Lambda consumers and its tag ask for; raises TagUnreadable."""
    return [*_lambda_needs(facts), *_tagged_need(facts)]


def ceiling_seconds(facts: Facts, limits: Limits) -> int:
    """What no lease may go over: the queue's tag, else the account's; raises TagUnreadable."""
    return seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or limits.visibility_ceiling_seconds


def largest_unmet(facts: Facts, needs: list[LeaseNeed]) -> LeaseNeed | None:
    """A met one only where all are met; None where nothing names a need."""
    return max(unmet(facts, needs) or needs, key=lambda each: each.seconds, default=None)


def unmet(facts: Facts, needs: list[LeaseNeed]) -> list[LeaseNeed]:
    """Those that the lease which stands does not cover."""
    return [each for each in needs if facts.visibility_seconds < each.enough_seconds]


def guess(facts: Facts) -> LeaseNeed:
    """Half as much again, for a queue whose consumers nothing is known of."""
    seconds = max(facts.visibility_seconds + 1, ceil(1.5 * facts.visibility_seconds))
    return LeaseNeed(
        seconds, seconds, "nothing names what its consumers need, so half as much again"
    )


def _lambda_needs(facts: Facts) -> list[LeaseNeed]:
    """AWS asks for six times the timeout plus the window; 1.2 times stops the race now.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    return [
        LeaseNeed(
            seconds=ceil(1.2 * each.timeout_seconds) + each.batching_window_seconds,
            enough_seconds=each.timeout_seconds + each.batching_window_seconds,
            because=f"its Lambda consumer may run {each.timeout_seconds} s "
            f"and waits {each.batching_window_seconds} s for a batch",
            recommended_seconds=6 * each.timeout_seconds + each.batching_window_seconds,
        )
        for each in facts.lambda_consumers
    ]


def _tagged_need(facts: Facts) -> list[LeaseNeed]:
    tagged = seconds_tag(facts.tags, MAX_PROCESSING_TAG)
    if tagged is None:
        return []
    seconds = ceil(1.5 * tagged)
    return [LeaseNeed(seconds, seconds, f"the tag {MAX_PROCESSING_TAG} says {tagged} s")]
