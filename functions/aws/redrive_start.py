"""Takes up the redrive of a dead-letter queue: asks whether all fits, and moves nothing.

From then on each tick of the case asks again, and moves a little. What is written here is at most
the dead-letter queue's retention, where letters would otherwise expire on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from functions.aws.clients import Clients
from functions.aws.dead_letters_look import source_arns_of
from functions.aws.errors import QueueGone
from functions.aws.move_tasks import newest_task
from functions.aws.queue_look import attributes_of, tags_of
from functions.aws.write_steps import changed_meanwhile, write
from functions.healing.facts import Facts
from functions.healing.managed import Consent
from functions.healing.plan import Refusal
from functions.healing.redrive_consent import why_not_between
from functions.healing.redrive_step import RedriveDeadLetters
from functions.healing.steps import AttributeStep


@dataclass(frozen=True)
class RedriveStart:
    """`consent` says of both queues whether letters may be moved between them."""

    consent: Consent

    def write(
        self, clients: Clients, seen: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """None when the letters may go back; refuses and raises as `write_steps.write` does."""
        now = Facts(seen.queue_arn, attributes_of(clients, seen.queue_arn), seen.tags)
        refusal = changed_meanwhile(now, seen, steps) or self._misfit(clients, now, steps)
        to_set = [step for step in steps if step.leaves_a_value]
        return refusal or (write(clients, seen, to_set) if to_set else None)

    def _misfit(
        self, clients: Clients, now: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        redrives = [step for step in steps if isinstance(step, RedriveDeadLetters)]
        if len(redrives) != 1:
            return _unfit("the plan does not send letters back to one queue")
        source = _look(clients, redrives[0].after)
        sources = source_arns_of(clients, now.queue_arn)
        fault = why_not_between(now, source, sources, self.consent)
        task = newest_task(clients, now.queue_arn)
        if fault is None and task is not None and task.is_active:
            fault = "a move task runs on it already"
        return _unfit(fault) if fault else None


def _look(clients: Clients, queue_arn: str) -> Facts:
    """A queue that is gone has no attributes."""
    try:
        attributes = attributes_of(clients, queue_arn)
    except QueueGone:
        attributes = {}
    return Facts(queue_arn, attributes, tags_of(clients, queue_arn) or {})


def _unfit(fault: str) -> Refusal:
    return Refusal("redrive_unfit", f"no letter goes back: {fault}")
