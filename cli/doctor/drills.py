"""Queues that are marked as a drill's: nobody is paged about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cli.doctor.check import Check, Status
from functions.aws.managed_queues import ManagedQueue
from functions.healing.managed import DRILL_TAG

_MOST_NAMED = 3


def look(queues: Iterable[ManagedQueue]) -> Iterator[Check]:
    """A warning that names some, where there are any."""
    marked = [each.name for each in queues if DRILL_TAG in each.tags]
    if marked:
        more = f" and {len(marked) - _MOST_NAMED} more" if len(marked) > _MOST_NAMED else ""
        says = f"tag {DRILL_TAG}, so nobody is paged: {', '.join(marked[:_MOST_NAMED])}{more}"
        cure = f"unless it is a drill: aws sqs untag-queue --queue-url URL --tag-keys {DRILL_TAG}"
        yield Check("drills", Status.WARN, says, cure)
