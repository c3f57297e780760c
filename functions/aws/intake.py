"""Reads a batch of intake messages and collapses it: one group per queue and symptom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.aws.run import Group
from functions.catalogue import match
from functions.catalogue.symptom import Symptom
from functions.healing import guardrails
from functions.healing.error_codes import KNOWN_CODES
from functions.healing.failed_call import FailedCall, Unreadable, read
from functions.healing.plan import Refusal
from functions.healing.pulse import PulseSource

# Records that are no failed call of SQS are not faults of the batch.
NOT_OURS = frozenset({"not_failed", "not_sqs"})


@dataclass
class Intake:
    """A batch, read: groups with the messages behind each, and what was counted on the way.

    `pulses`, by message id, are our own: they count for nothing else.
    """

    groups: dict[Group, list[str]] = field(default_factory=dict)
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    unknown_codes: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    pulses: dict[str, FailedCall] = field(default_factory=dict)
    failed_calls: int = 0


def read_batch(
    bodies: Mapping[str, str], home: guardrails.Home, pulse_source: PulseSource
) -> Intake:
    """`bodies` by message id. An event delivered twice counts once; nothing is raised."""
    intake = Intake()
    seen: dict[tuple[str, Symptom], dict[str, FailedCall]] = defaultdict(dict)
    messages: dict[tuple[str, Symptom], list[str]] = defaultdict(list)
    for message_id, body in bodies.items():
        call = read(body)
        if isinstance(call, Unreadable):
            if call.reason not in NOT_OURS:
                intake.unreadable[message_id] = call
            continue
        if pulse_source.made(call):
            intake.pulses[message_id] = call
            continue
        intake.failed_calls += 1
        symptom = _symptom_of(call, home, intake)
        if symptom is not None and call.queue_arn is not None:
            key = (call.queue_arn, symptom)
            seen[key].setdefault(call.event_id, call)
            messages[key].append(message_id)
    intake.groups = {
        Group(queue_arn, symptom, tuple(calls.values())): messages[queue_arn, symptom]
        for (queue_arn, symptom), calls in seen.items()
    }
    return intake


def _symptom_of(call: FailedCall, home: guardrails.Home, intake: Intake) -> Symptom | None:
    if call.error_code not in KNOWN_CODES:
        intake.unknown_codes.append(call.raw_error_code)
    symptom = match(call)
    if symptom is None or symptom.plan is None:
        return None
    refusal = guardrails.first_refusal_of_call(call, home)
    if refusal:
        intake.refusals.append(refusal)
        return None
    return symptom
