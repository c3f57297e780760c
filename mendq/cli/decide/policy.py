"""`mendq policy`: pin a queue's policy as good, so that Mendq may propose to restore it.

A pin stores the policy that the command showed, byte for byte. It also stores when the queue was
created and last changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer
from rich.text import Text

from mendq.cases.pins import Pins, UnreadablePin, check_pin_now
from mendq.catalogue.access.restore_policy import is_open_to_everybody
from mendq.cli.command_group import group
from mendq.cli.commands import CASE_LOOKUP_ACTIONS, QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import YesOption, confirm
from mendq.cli.queues import QueueName, require_queue, resolve_queue_arn
from mendq.model.facts import Facts
from mendq.model.policy import (
    CLOUDTRAIL_DELIVERY_TIME,
    PIN_LIFETIME,
    CheckedPin,
    Pin,
    digest_of_policy,
    parse_statements,
)
from mendq.model.principals import is_role_arn
from mendq.notifications.configuration import describe_differences
from mendq.notifications.links import escape_links_in_json, list_json_lines

# SQS may return an old value for up to 60 seconds after a change:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
ATTRIBUTE_SETTLING_TIME = timedelta(seconds=60)
_UNPIN_REMEDY = "`mendq policy unpin QUEUE` takes it away; then `mendq policy pin QUEUE` makes one"
PinOrNone = TypeVar("PinOrNone", Pin, Pin | None)
_SOURCE_OPTION = typer.Option(
    help="A source of this DLQ. Mendq asks again before it changes the DLQ for it."
)

policy = group("policy", "Pin a queue's policy as known good; see what was approved.")
_ROLE_OPTION = typer.Option(
    metavar="ROLE_ARN",
    help="A deploying role whose changes may be undone; repeat for several roles.",
)


@command(
    2,
    CommandKind.STEERING,
    CASE_LOOKUP_ACTIONS | QUEUE_ATTRIBUTES_ACTIONS | {"dynamodb:PutItem"},
    policy,
)
def pin(
    call: Invocation,
    queue: QueueName,
    automation: Annotated[list[str] | None, _ROLE_OPTION] = None,
    yes: YesOption = False,
) -> None:
    """Pin the queue's current policy for 30 days.

    Examples:
      mendq policy pin orders
      mendq policy pin orders --automation arn:aws:iam::111122223333:role/ci
    """
    automation_role_arns = tuple(dict.fromkeys(automation or ()))
    for role in automation_role_arns:
        if not is_role_arn(role):
            raise CommandError(f"{role[:200]!r} is not the ARN of an IAM role", Exit.USAGE)
    call.account.require_whole_stack("pin")
    queue_arn = resolve_queue_arn(call.account, queue)
    pins = call.account.open_store(Pins)
    earlier_pin = _require_readable_pin(pins.load_even_if_unreadable(queue_arn))
    facts = require_queue(call.account, queue_arn)
    new_pin = _make_pin(
        facts,
        pins.load_last_generation(queue_arn) + 1,
        call.account.identity,
        automation_role_arns,
        _read_service_now(call),
    )
    _print_policy(call, new_pin)
    if earlier_pin is not None:
        differences_heading = f"Different from generation {earlier_pin.generation}"
        _print_policy_differences(
            call, differences_heading, _list_policy_differences(earlier_pin.policy, new_pin.policy)
        )
    confirm(f"Pin this policy until {new_pin.expires_at:%Y-%m-%d}?", yes=yes)
    if _get_queue_version(require_queue(call.account, queue_arn)) != _get_queue_version(facts):
        raise CommandError("the queue was changed while you looked: nothing was pinned; look again")
    if not pins.put(new_pin):
        raise CommandError("somebody else has just pinned it: nothing was pinned; look again")
    call.out.print_json(new_pin.document())
    call.out.say(f"pinned as generation {new_pin.generation}", "green")


@command(
    2,
    CommandKind.STEERING,
    CASE_LOOKUP_ACTIONS | {"dynamodb:PutItem", "dynamodb:UpdateItem"},
    policy,
)
def unpin(
    call: Invocation,
    queue: QueueName,
    source: Annotated[str | None, _SOURCE_OPTION] = None,
    yes: YesOption = False,
) -> None:
    """Remove the pin, or the approval for one source of a DLQ.

    Examples:
      mendq policy unpin orders
      mendq policy unpin orders-dlq --source orders
    """
    pins = call.account.open_store(Pins)
    queue_arn = resolve_queue_arn(call.account, queue)
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
    pin = _require_pin(pins, queue_arn)
    if isinstance(pin, UnreadablePin):
        # The pinned policy cannot be shown.
        call.out.say(_describe_unreadable_pin(pin), "yellow")
        pin_text = "it"
        removed_document = {"queue_arn": pin.queue_arn, "doubt": pin.error_text}
    else:
        _print_policy(call, pin)
        pin_text = f"the pin of generation {pin.generation}"
        removed_document = pin.document()
    confirm(f"Take {pin_text} away?", yes=yes)
    if not pins.remove(pin):
        raise CommandError("somebody else has just changed it: nothing was taken away")
    call.out.print_json({"removed": removed_document})
    call.out.say("taken away: Mendq never writes this queue's policy", "cyan")


@command(
    2,
    CommandKind.LOOKING,
    CASE_LOOKUP_ACTIONS | QUEUE_ATTRIBUTES_ACTIONS | {"cloudtrail:LookupEvents"},
    policy,
)
def show(call: Invocation, queue: QueueName) -> None:
    """Show the pinned policy, its differences from now, and the approved sources.

    Examples:
      mendq policy show orders
      mendq policy show orders --json
    """
    pins = call.account.open_store(Pins)
    queue_arn = resolve_queue_arn(call.account, queue)
    approved_sources = sorted(pins.load_approved_sources(queue_arn))
    for source_arn in approved_sources:
        sentence = f"its retention may be raised for {source_arn}: a person approved that once"
        call.out.say(sentence)
    if approved_sources and pins.load_even_if_unreadable(queue_arn) is None:
        call.out.print_json({"approved_sources": approved_sources})
        return
    pin = _require_readable_pin(_require_pin(pins, queue_arn))
    facts = require_queue(call.account, pin.queue_arn)
    with call.out.show_waiting("asking CloudTrail who changed it since"):
        checked_pin = check_pin_now(pin, call.account.clients, facts, _read_service_now(call))
    current_policy = facts.attributes.get("Policy", "")
    is_pinned_policy_in_place = current_policy == pin.policy
    differences_from_pin = _list_policy_differences(pin.policy, current_policy)
    policy_overwriter = checked_pin.deployment_change.who if checked_pin.deployment_change else None
    call.out.print_json(
        {
            **pin.document(),
            "stands": is_pinned_policy_in_place,
            "good": checked_pin.is_good,
            "doubt": checked_pin.doubt,
            "passes": checked_pin.may_doubt_pass,
            "different": list(differences_from_pin),
            "overwritten_by": policy_overwriter,
            "approved_sources": approved_sources,
        }
    )
    _print_policy(call, pin)
    _print_policy_differences(call, "Different now", differences_from_pin)
    call.out.say_heading("Good")
    if not checked_pin.is_good:
        call.out.say(f"no: {checked_pin.doubt}", "yellow")
        call.out.say(
            _advise_about_doubtful_pin(
                checked_pin, facts, is_pinned_policy_in_place=is_pinned_policy_in_place
            ),
            "dim",
        )
    elif is_pinned_policy_in_place:
        call.out.say("it stands there", "green")
    else:
        call.out.say(f"yes; {policy_overwriter} overwrote it", "green")


def _require_pin(pins: Pins, queue_arn: str) -> Pin | UnreadablePin:
    """Return the queue's pin, or an UnreadablePin if Mendq cannot read the stored one.

    Raises CommandError if the queue has none.
    """
    pin = pins.load_even_if_unreadable(queue_arn)
    if pin is None:
        raise CommandError(
            f"{queue_arn} has no pin: `mendq policy pin QUEUE` makes one", Exit.NOT_FOUND
        )
    return pin


def _read_service_now(call: Invocation) -> datetime:
    """Return the time by AWS's clock, or by this machine's if AWS's is not known."""
    return datetime.now(UTC) - (call.account.clock_difference or timedelta())


def _make_pin(
    facts: Facts, generation: int, identity: str, automation: tuple[str, ...], now: datetime
) -> Pin:
    """Return a pin of the queue's current policy.

    Raises CommandError if the queue has no policy, if SQS does not say when the queue was created
    and changed, or if it was changed less than a minute ago, so that SQS may not return the newest
    policy yet.
    """
    policy = facts.attributes.get("Policy", "")
    if not policy:
        raise CommandError(f"{facts.queue_arn} has no policy: there is nothing to pin")
    if facts.created_at is None or facts.modified_at is None:
        raise CommandError("SQS does not say when the queue was created and changed: not pinned")
    if now - facts.modified_at < ATTRIBUTE_SETTLING_TIME:
        reason = "the queue was changed just now, and SQS may take a minute to tell"
        raise CommandError(f"{reason}: pin it after that")
    return Pin(
        queue_arn=facts.queue_arn,
        policy=policy,
        digest=digest_of_policy(policy),
        generation=generation,
        pinned_at=now,
        pinned_by=identity,
        queue_created_at=facts.created_at,
        queue_modified_at=facts.modified_at,
        automation=automation,
    )


def _advise_about_doubtful_pin(
    checked_pin: CheckedPin, facts: Facts, *, is_pinned_policy_in_place: bool
) -> str:
    """Return a sentence that says what to do about a pin that is in doubt.

    It refers to the differences, which are printed above it. `is_pinned_policy_in_place` is True if
    the pinned policy is the queue's current one.
    """
    if checked_pin.may_doubt_pass and facts.modified_at is not None:
        cloudtrail_complete_at = facts.modified_at + CLOUDTRAIL_DELIVERY_TIME
        ask_again_advice = (
            f"Ask again after {cloudtrail_complete_at:%H:%M} UTC, and pin nothing before"
        )
        wait_advice = "wait: CloudTrail tells late who changed a queue"
        return f"{wait_advice}. {ask_again_advice}; until then Mendq puts nothing back"
    if is_pinned_policy_in_place:
        return "Mendq does not put it back while that is so; `mendq policy pin` pins it anew"
    if not facts.attributes.get("Policy"):
        return "Mendq does not put it back: the queue has no policy now, and there is none to pin"
    advice_if_intended = (
        "If somebody meant the difference above, `mendq policy pin` pins what stands there now"
    )
    advice_if_not_intended = "if nobody did, put the policy above back yourself"
    return f"Mendq does not put it back. {advice_if_intended}; {advice_if_not_intended}"


def _describe_unreadable_pin(pin: UnreadablePin) -> str:
    return (
        f"the pin of {pin.queue_arn} cannot be read, so Mendq puts nothing back: {pin.error_text}"
    )


def _require_readable_pin(pin: PinOrNone | UnreadablePin) -> PinOrNone:
    """Return the pin, or None if there is none. Raises CommandError if it cannot be read."""
    if isinstance(pin, UnreadablePin):
        raise CommandError(f"{_describe_unreadable_pin(pin)}. {_UNPIN_REMEDY}")
    return pin


def _get_queue_version(facts: Facts) -> tuple[Any, ...]:
    """Return when the queue was created and last changed, and its policy.

    Two results that differ show that the queue was changed while the operator answered.
    """
    return facts.created_at, facts.modified_at, facts.attributes.get("Policy")


def _list_policy_differences(former_policy: str, current_policy: str) -> Sequence[str]:
    """Return the differences between two policies as lines. Empty if the texts are equal.

    If only the spelling differs, return one line that says so.
    """
    if former_policy == current_policy:
        return ()
    difference_lines = describe_differences({"Policy": former_policy}, {"Policy": current_policy})
    return difference_lines or ("the spelling alone; it means the same",)


def _print_policy_differences(
    call: Invocation, heading: str, difference_lines: Sequence[str]
) -> None:
    call.out.say_heading(heading)
    for line in difference_lines or ("nothing",):
        call.out.say(line)


def _print_policy(call: Invocation, pin: Pin) -> None:
    call.out.say_heading(f"Policy of {pin.queue_arn}")
    for line in list_policy_lines(pin.policy):
        call.out.show(Text(line))
    if is_open_to_everybody(pin.policy):
        warning_reason = "it may let everybody in, or cannot be read"
        call.out.say(f"{warning_reason}: Mendq would never put it back", "bold yellow")
    call.out.say_heading("Pin")
    call.out.say(f"sha256 {pin.digest}, generation {pin.generation}")
    call.out.say(f"pinned {pin.pinned_at:%Y-%m-%d %H:%M} UTC by {pin.pinned_by}")
    call.out.say(f"holds {PIN_LIFETIME.days} days, until {pin.expires_at:%Y-%m-%d %H:%M} UTC")
    for role in pin.automation:
        call.out.say(f"a change by {role} may be undone")


def list_policy_lines(policy: str) -> list[str]:
    """Return the whole policy as lines of indented JSON, with every character visible.

    Characters that would make a link are escaped, as JSON allows. If Mendq cannot read the text as
    a policy, return all of it as one JSON string.
    """
    if parse_statements(policy) is None:
        return [escape_links_in_json(json.dumps(policy))]
    return list_json_lines(policy)
