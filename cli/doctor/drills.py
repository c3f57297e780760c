"""Queues that are marked as a drill's: nobody is paged about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cli.doctor.check import Check, Command, Status
from functions.aws.managed_queues import ManagedQueue
from functions.healing.managed import DRILL_TAG
from functions.healing.queue_names import parts_of

_MOST_NAMED = 3


def look(queues: Iterable[ManagedQueue]) -> Iterator[Check]:
    """A warning that names some, where there are any."""
    marked = [each for each in queues if DRILL_TAG in each.tags]
    if marked:
        more = f" and {len(marked) - _MOST_NAMED} more" if len(marked) > _MOST_NAMED else ""
        named = [each.name for each in marked[:_MOST_NAMED]]
        silent = f"tag {DRILL_TAG}, so nobody is paged; untag it where it is no drill"
        region = parts_of(marked[0].queue_arn).region
        untag = ("--queue-url", "URL", "--tag-keys", DRILL_TAG)
        cure = Command.aws(region, "sqs", "untag-queue", *untag)
        yield Check("drills", Status.WARN, f"{silent}: {', '.join(named)}{more}", cure)
