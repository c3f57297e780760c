"""`mendq policy`: say that a queue's policy is good, so that Mendq may propose to put it back.

What is pinned is the text that was shown, byte for byte, and of the queue as it then was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer
from rich.text import Text

from mendq.cases.pins import Pins, UnreadablePin, look_at
from mendq.catalogue.access.restore_policy import is_open_to_everybody
from mendq.cli.command_group import group
from mendq.cli.commands import CASE_STORE, QUEUE, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Yes, confirm
from mendq.cli.queues import QueueName, require_queue, resolve_queue_arn
from mendq.model.evidence import is_role
from mendq.model.facts import Facts
from mendq.model.policy import (
    CLOUDTRAIL_TELLS_WITHIN,
    HOLDS,
    CheckedPin,
    Pin,
    digest_of,
    statements_of,
)
from mendq.notifications.configuration import differences

# What was just written may not be what is read yet:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
SETTLES = timedelta(seconds=60)
_REMEDY = "`mendq policy unpin QUEUE` takes it away; then `mendq policy pin QUEUE` makes one"
P = TypeVar("P", Pin, Pin | None)
_SOURCE = typer.Option(help="A source of this DLQ: ask again before the DLQ is changed for it.")

policy = group("policy", "Pin a queue's policy as known good; see what was approved.")
_ROLE = typer.Option(
    metavar="ROLE_ARN", help="A role that deploys: a change of its may be undone. Repeat."
)


@command(2, Kind.STEERING, CASE_STORE | QUEUE | {"dynamodb:PutItem"}, policy)
def pin(
    call: Invocation,
    queue: QueueName,
    automation: Annotated[list[str] | None, _ROLE] = None,
    yes: Yes = False,
) -> None:
    """Pin the policy that stands there now, for 30 days.

    Examples:
      mendq policy pin orders
      mendq policy pin orders --automation arn:aws:iam::111122223333:role/ci
    """
    roles = tuple(dict.fromkeys(automation or ()))
    if strange := [each for each in roles if not is_role(each)]:
        raise CommandError(f"{strange[0][:200]!r} is not the ARN of an IAM role", Exit.USAGE)
    queue_arn, pins = resolve_queue_arn(call.account, queue), call.account.open_store(Pins)
    before = _readable(pins.look(queue_arn))
    facts = require_queue(call.account, queue_arn)
    made = _pin_of(facts, pins.last_generation(queue_arn) + 1, call.account.identity, roles)
    _print_policy(call, made)
    if before is not None:
        heading = f"Different from generation {before.generation}"
        _print_differences(call, heading, _differences(before.policy, made.policy))
    confirm(f"Pin this policy until {made.expires_at:%Y-%m-%d}?", yes=yes)
    if _identity(require_queue(call.account, queue_arn)) != _identity(facts):
        raise CommandError("the queue was changed while you looked: nothing was pinned; look again")
    if not pins.put(made):
        raise CommandError("somebody else has just pinned it: nothing was pinned; look again")
    call.out.print_json(made.document())
    call.out.say(f"pinned as generation {made.generation}", "green")


@command(2, Kind.STEERING, CASE_STORE | {"dynamodb:PutItem", "dynamodb:UpdateItem"}, policy)
def unpin(
    call: Invocation,
    queue: QueueName,
    source: Annotated[str | None, _SOURCE] = None,
    yes: Yes = False,
) -> None:
    """Take the pin away, or what was approved for a source.

    Examples:
      mendq policy unpin orders
      mendq policy unpin orders-dlq --source orders
    """
    pins, queue_arn = call.account.open_store(Pins), resolve_queue_arn(call.account, queue)
    # An empty --source names no queue. It must not mean the whole pin.
    if source is not None:
        source_arn = resolve_queue_arn(call.account, source)
        confirm(f"Ask again before {queue_arn} is changed for {source_arn}?", yes=yes)
        if not pins.revoke_source(queue_arn, source_arn):
            raise CommandError(
                f"nothing about {queue_arn} is approved for {source}", Exit.NOT_FOUND
            )
        call.out.print_json({"removed": source_arn})
        call.out.say("taken away: Mendq asks again", "cyan")
        return
    found = _found(pins, queue_arn)
    if isinstance(found, UnreadablePin):
        # Nobody can say what was pinned.
        call.out.say(_not_readable(found), "yellow")
        what, removed = "it", {"queue_arn": found.queue_arn, "doubt": found.why}
    else:
        _print_policy(call, found)
        what, removed = f"the pin of generation {found.generation}", found.document()
    confirm(f"Take {what} away?", yes=yes)
    if not pins.remove(found):
        raise CommandError("somebody else has just changed it: nothing was taken away")
    call.out.print_json({"removed": removed})
    call.out.say("taken away: Mendq never writes this queue's policy", "cyan")


@command(2, Kind.LOOKING, CASE_STORE | QUEUE | {"cloudtrail:LookupEvents"}, policy)
def show(call: Invocation, queue: QueueName) -> None:
    """What is pinned, what differs now, and which sources are approved.

    Examples:
      mendq policy show orders
      mendq policy show orders --json
    """
    pins, queue_arn = call.account.open_store(Pins), resolve_queue_arn(call.account, queue)
    approved = sorted(pins.approved_sources(queue_arn))
    for each in approved:
        call.out.say(f"its retention may be raised for {each}: a person approved that once")
    if approved and pins.look(queue_arn) is None:
        call.out.print_json({"approved_sources": approved})
        return
    found = _readable(_found(pins, queue_arn))
    facts = require_queue(call.account, found.queue_arn)
    with call.out.show_waiting("asking CloudTrail who changed it since"):
        pinned = look_at(found, call.account.clients, facts, datetime.now(UTC))
    now = facts.attributes.get("Policy", "")
    stands, differences = now == found.policy, _differences(found.policy, now)
    changed = pinned.changed.who if pinned.changed else None
    said = {"stands": stands, "good": pinned.is_good, "doubt": pinned.doubt}
    said |= {"passes": pinned.passes, "different": list(differences), "overwritten_by": changed}
    call.out.print_json({**found.document(), **said, "approved_sources": approved})
    _print_policy(call, found)
    _print_differences(call, "Different now", differences)
    call.out.say_heading("Good")
    if pinned.is_good:
        call.out.say("it stands there" if stands else f"yes; {changed} overwrote it", "green")
    else:
        call.out.say(f"no: {pinned.doubt}", "yellow")
        call.out.say(_advice(pinned, facts, stands=stands), "dim")


def _found(pins: Pins, queue_arn: str) -> Pin | UnreadablePin:
    found = pins.look(queue_arn)
    if found is None:
        raise CommandError(
            f"{queue_arn} has no pin: `mendq policy pin QUEUE` makes one", Exit.NOT_FOUND
        )
    return found


def _pin_of(facts: Facts, generation: int, by: str, automation: tuple[str, ...]) -> Pin:
    now, policy = datetime.now(UTC), facts.attributes.get("Policy", "")
    if not policy:
        raise CommandError(f"{facts.queue_arn} has no policy: there is nothing to pin")
    if facts.created_at is None or facts.modified_at is None:
        raise CommandError("SQS does not say when the queue was created and changed: not pinned")
    if now - facts.modified_at < SETTLES:
        reason = "the queue was changed just now, and SQS may take a minute to tell"
        raise CommandError(f"{reason}: pin it after that")
    return Pin(
        queue_arn=facts.queue_arn,
        policy=policy,
        digest=digest_of(policy),
        generation=generation,
        pinned_at=now,
        pinned_by=by,
        queue_created_at=facts.created_at,
        queue_modified_at=facts.modified_at,
        automation=automation,
    )


def _advice(pinned: CheckedPin, facts: Facts, *, stands: bool) -> str:
    """What to do about a pin in doubt; the difference was shown before."""
    if pinned.passes and facts.modified_at is not None:
        announced = facts.modified_at + CLOUDTRAIL_TELLS_WITHIN
        ask_again = f"Ask again after {announced:%H:%M} UTC, and pin nothing before"
        late = "wait: CloudTrail tells late who changed a queue"
        return f"{late}. {ask_again}; until then Mendq puts nothing back"
    if stands:
        return "Mendq does not put it back while that is so; `mendq policy pin` pins it anew"
    if not facts.attributes.get("Policy"):
        return "Mendq does not put it back: the queue has no policy now, and there is none to pin"
    meant = "If somebody meant the difference above, `mendq policy pin` pins what stands there now"
    return f"Mendq does not put it back. {meant}; if nobody did, put the policy above back yourself"


def _not_readable(found: UnreadablePin) -> str:
    return f"the pin of {found.queue_arn} cannot be read, so Mendq puts nothing back: {found.why}"


def _readable(found: P | UnreadablePin) -> P:
    if isinstance(found, UnreadablePin):
        raise CommandError(f"{_not_readable(found)}. {_REMEDY}")
    return found


def _identity(facts: Facts) -> tuple[Any, ...]:
    return facts.created_at, facts.modified_at, facts.attributes.get("Policy")


def _differences(before: str, after: str) -> Sequence[str]:
    if before == after:
        return ()
    found = differences({"Policy": before}, {"Policy": after})
    return found or ("the spelling alone; it means the same",)


def _print_differences(call: Invocation, heading: str, lines: Sequence[str]) -> None:
    call.out.say_heading(heading)
    for line in lines or ("nothing",):
        call.out.say(line)


def _print_policy(call: Invocation, shown: Pin) -> None:
    call.out.say_heading(f"Policy of {shown.queue_arn}")
    for line in _policy_lines(shown.policy):
        call.out.show(Text(line))
    if is_open_to_everybody(shown.policy):
        why = "it may let everybody in, or cannot be read"
        call.out.say(f"{why}: Mendq would never put it back", "bold yellow")
    call.out.say_heading("Pin")
    call.out.say(f"sha256 {shown.digest}, generation {shown.generation}")
    call.out.say(f"pinned {shown.pinned_at:%Y-%m-%d %H:%M} UTC by {shown.pinned_by}")
    call.out.say(f"holds {HOLDS.days} days, until {shown.expires_at:%Y-%m-%d %H:%M} UTC")
    for role in shown.automation:
        call.out.say(f"a change by {role} may be undone")


def _policy_lines(policy: str) -> list[str]:
    """All of it, every character visible; as it stands where a reader might leave something out."""
    if statements_of(policy) is None:
        return [json.dumps(policy)]
    return json.dumps(json.loads(policy), indent=2).splitlines()
