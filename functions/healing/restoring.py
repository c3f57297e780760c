"""Whether a queue's pinned policy is what the refused callers lack; else why it is not put back."""

from __future__ import annotations

from datetime import timedelta

from functions.healing.callers import are_strangers_to, granted_by, named
from functions.healing.facts import Facts
from functions.healing.mode import Mode
from functions.healing.pin import SETTLED_AFTER, Pin, Pinned
from functions.healing.plan import Plan, Refusal
from functions.healing.policy_grants import grants, is_open_to_everybody
from functions.healing.policy_steps import RestorePolicy
from functions.healing.queue_names import parts_of

_ASK = (
    f"The queue was changed less than {SETTLED_AFTER // timedelta(minutes=1)} minutes ago, and "
    "CloudTrail may not have told of everybody who changed it: a person decides"
)


def restoration(facts: Facts, because: str) -> Plan | Refusal | str:
    """The plan that puts the pinned policy back, the refusal to decide yet, or why not at all.

    `because` begins the plan's reason. An empty text where nothing is pinned.
    """
    pinned = facts.pin
    if pinned is None:
        return ""
    pin = pinned.pin
    if pin is None:
        return f"The queue's policy is pinned, and nothing is put back: {pinned.doubt}"
    stands = RestorePolicy.standing_in(facts.attributes) or ""
    pointless = _pointless(pin.policy, stands, facts)
    if pinned.passes and not pointless:
        return _waiting(pinned)
    if against := pointless or pinned.doubt:
        return f"{_the_pin(pin)} is not put back: {against}"
    reason = (
        f"{because}. {_the_pin(pin)} grants it to every caller that was refused, "
        f"and {_overwritten_by(pinned)}"
    )
    step = RestorePolicy(stands, pin.policy)
    if pinned.is_settled:
        return Plan((step,), reason)
    return Plan((step,), f"{reason}. {_ASK}", at_most=Mode.PROPOSE)


def granted_by_the_pin(facts: Facts) -> str:
    """A sentence where a deployment overwrote the pinned policy, which grants the refused calls.

    For refusals that IAM lays at the caller's own policy: in the queue's account either of the two
    may grant, and which of them people meant is not Mendq's to say.
    """
    pinned, stands = facts.pin, RestorePolicy.standing_in(facts.attributes) or ""
    if pinned is None or pinned.pin is None or not pinned.is_good:
        return ""
    pin, account = pinned.pin, parts_of(facts.queue_arn).account
    if _pointless(pin.policy, stands, facts) or are_strangers_to(account, facts.principals):
        return ""
    return (
        f"{_the_pin(pin)} grants it, and {_overwritten_by(pinned)}. It is not put back, because "
        "IAM names the caller's own policy: a person decides which of the two is to grant it"
    )


def _pointless(policy: str, stands: str, facts: Facts) -> str:
    if not facts.exists:
        return "the queue could not be looked at"
    if stands == policy:
        return "it stands there, and the calls are refused all the same"
    if not _grants_it_to_all(policy, facts):
        return "it does not grant the calls to everybody who was refused, by name"
    if is_open_to_everybody(policy):
        return "it lets everybody in"
    return ""


def _grants_it_to_all(policy: str, facts: Facts) -> bool:
    actions = granted_by(facts.event_names)
    pairs = [(who, action) for who in facts.principals for action in actions]
    return bool(pairs) and all(
        grants(policy, who, action, facts.queue_arn) for who, action in pairs
    )


def _waiting(pinned: Pinned) -> Refusal:
    """Events come again until CloudTrail has told who changed the queue, or had the time to."""
    return Refusal("pin_not_judged_yet", pinned.doubt, becomes=None, again=True)


def _the_pin(pin: Pin) -> str:
    return (
        f"The policy that {named((pin.pinned_by,))} pinned on {pin.pinned_at:%Y-%m-%d} "
        f"(generation {pin.generation}, sha256 {pin.digest[:12]})"
    )


def _overwritten_by(pinned: Pinned) -> str:
    change = pinned.changed
    if change is None:
        return "nobody is known to have overwritten it"
    return f"{named((change.who,))} overwrote it at {change.at:%Y-%m-%d %H:%M} UTC"
