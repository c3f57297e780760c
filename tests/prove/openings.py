"""Beginnings of a scene: a queue, its failed calls and a waiting case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.heal.owners import make_owner_request
from tests.catalogue.asking import call_examples_of
from tests.heal.operators import fail_calls, load_newest_case, send_decision
from tests.prove.world import World

Turn = Callable[[], bool]
# Longer than follow_up leaves a case alone that it could not look at.
FOLLOWED_EVERY_MINUTES = 6
ASKED_EVERY_MINUTES = 2


@dataclass(frozen=True)
class Scene:
    """A part of a case's life. `begin` prepares the account and returns the turn to strike.

    The turn is repeated every `minutes` until the case is in the state `goal`.
    """

    name: str
    begin: Callable[[World], Turn]
    goal: str
    minutes: float


def queue(world: World, tag: str = "heal", **attributes: str) -> str:
    """A queue that nobody has touched for a while."""
    queue_arn = world.account.queue(tag=tag, **{"VisibilityTimeout": "30", **attributes})
    world.account.later(minutes=5)
    return queue_arn


def make_delivery(world: World, queue_arn: str, **over: Any) -> Turn:
    bodies = world.account.late_deletes(queue_arn, "1", "2", "3", **over)
    world.account.later(minutes=1)
    return partial(world.deliver, bodies)


def call_of(symptom: str) -> Mapping[str, str]:
    entry = SYMPTOM_BY_NAME[symptom]
    call = call_examples_of(entry)[0].call
    return {
        "eventName": call.event_name,
        "errorCode": call.raw_error_code,
        "errorMessage": call.error_message,
    }


def asked_of_owner(world: World) -> Turn:
    """The owner of its write, called with the case until it says what became of it."""
    case = load_newest_case(world.account)

    def turn() -> bool:
        world.continue_case(make_owner_request(case))
        return True

    return turn


def approve_case(world: World) -> Turn:
    approve(world, waiting_case(world))
    return asked_of_owner(world)


def approve(world: World, case_id: str) -> None:
    """A person does, and nobody carries it out until the follow-up comes by."""
    world.heal_is_up = False
    send_decision(world.account, "approve", case_id)
    world.heal_is_up = True
    world.account.later(minutes=FOLLOWED_EVERY_MINUTES)


def waiting_case(world: World) -> str:
    fail_calls(world.account, queue(world, "propose"))
    world.account.later(minutes=5)
    return load_newest_case(world.account).case_id
