"""Queue policies statement by statement, and the pin: the policy that a person called good."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import Any

from mendq.model.evidence import to_text
from mendq.model.json_text import finite_float, refuse_constant
from mendq.model.queue import refuse_repeated_keys

EVERYBODY = "*"
# SQS takes no longer one; what is longer is not read.
_MOST_CHARACTERS = 20_480

_EITHER_WAY = ("Principal", "Action", "Resource")
_KNOWN = {"Sid", "Effect", "Condition", *_EITHER_WAY, *(f"Not{each}" for each in _EITHER_WAY)}


@dataclass(frozen=True)
class Statement:
    """One statement as it stands; nothing is resolved, and texts are in their own spelling.

    `principals` by kind (`AWS`, `Service`, `Federated`, ...), of which `"Principal": "*"` is
    `AWS`'s EVERYBODY; `conditions` by operator and key; `excepting` names what is given by what it
    is not: `Principal`, `Action`, `Resource`.
    """

    allows: bool
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    excepting: frozenset[str] = frozenset()
    sid: str = ""

    @property
    def is_for_everybody(self) -> bool:
        return EVERYBODY in self.principals.get("AWS", ())

    @property
    def lets_everybody_in(self) -> bool:
        """Whether it allows anybody and no condition narrows who that is."""
        anybody = self.is_for_everybody or "Principal" in self.excepting
        return self.allows and anybody and not any(map(_narrows, conditions_of(self)))


def statements_of(policy: str) -> tuple[Statement, ...] | None:
    """The statements of a policy's text; none where it is empty, None where it is unreadable.

    What is spelled twice, unknown or of another kind than IAM's grammar has is unreadable as a
    whole: half of a policy says nothing.
    """
    if not policy:
        return ()
    if len(policy) > _MOST_CHARACTERS:
        return None
    try:
        document = json.loads(
            policy,
            object_pairs_hook=refuse_repeated_keys,
            parse_constant=refuse_constant,
            parse_float=finite_float,
        )
        found = document["Statement"]
        return tuple(map(_statement, found if isinstance(found, list) else [found]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _statement(found: dict[str, Any]) -> Statement:
    if found.keys() - _KNOWN or found["Effect"] not in ("Allow", "Deny"):
        raise ValueError("no statement of IAM's grammar")
    if any(each in found and f"Not{each}" in found for each in _EITHER_WAY):
        raise ValueError("what is given is also given by what it is not")
    principal, actions, resources = (
        found.get(each, found.get(f"Not{each}", [])) for each in _EITHER_WAY
    )
    return Statement(
        allows=found["Effect"] == "Allow",
        principals=_principals(principal),
        actions=_texts(actions),
        resources=_texts(resources),
        conditions={
            operator: {key: _texts(values) for key, values in asked.items()}
            for operator, asked in found.get("Condition", {}).items()
        },
        excepting=frozenset(each for each in _EITHER_WAY if f"Not{each}" in found),
        sid=str(found.get("Sid", "")),
    )


def _principals(given: Any) -> dict[str, tuple[str, ...]]:
    if given == EVERYBODY:
        return {"AWS": (EVERYBODY,)}
    return {kind: _texts(each) for kind, each in given.items()} if given else {}


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(map(_policies_text, given if isinstance(given, list) else [given]))


def _policies_text(given: Any) -> str:
    """Conditions may hold numbers and booleans, which mean the same as their text."""
    if isinstance(given, bool):
        return str(given).lower()
    if not isinstance(given, str | int | float):
        raise TypeError("neither a text nor a number")
    return str(given)


StatementCondition = tuple[str, str, frozenset[str]]


def conditions_of(statement: Statement) -> list[StatementCondition]:
    """Operator, key and values of its conditions, in lower case."""
    return [
        (operator.lower(), key.lower(), frozenset(value.lower() for value in values))
        for operator, asked in statement.conditions.items()
        for key, values in asked.items()
    ]


def concerns(statement: Statement, actions: Iterable[str], queue_arn: str) -> bool:
    """Whether it may be about one of the actions on the queue, whoever calls."""
    does_it = "Action" in statement.excepting or any(
        fits(pattern.lower(), action.lower()) for pattern in statement.actions for action in actions
    )
    return does_it and _is_on(statement, queue_arn)


def _is_on(statement: Statement, queue_arn: str) -> bool:
    on_it = any(fits(pattern, queue_arn) for pattern in statement.resources)
    return "Resource" in statement.excepting or on_it


def fits(pattern: str, text: str) -> bool:
    """Whether IAM's `*` and `?` match; a bracket is itself."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


# Keys that say who calls, or from where, with fixed values: what AWS takes for not public.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html
# https://docs.aws.amazon.com/config/latest/developerguide/sqs-queue-no-public-access.html
_WHO = re.compile(
    "aws:(userid|principal(account|arn|orgid|orgpaths)|vpce(account|orgid|orgpaths)"
    "|source(account|arn|ip|orgid|orgpaths|owner|vpc|vpcarn|vpce))"
)
# Services call for their own customers, whoever they are; of a deny they are the usual exception.
_SERVICES = frozenset({"aws:principalisawsservice", "aws:viaawsservice"})
_ASKS = re.compile("string(equals(ignorecase)?|like)|arn(equals|like)|ipaddress")
# A network that is wider is nobody's own, by the length of its addresses.
_WIDEST = {32: 8, 128: 32}
# One account's, or a bucket, whose name is one owner's.
_OWNED = re.compile(r"arn:[^:]+:(s3:[^:]*:[^:]*:[^:*?]+|[^:]+:[^:]*:[0-9]{12}:.*)")
# `o-1234567890/*` is one organization's, `AROA1234567890:*` one role's.
_BEGUN = re.compile(r"[^*?]*[/:]")


def public_statements(policy: str, queue_arn: str) -> tuple[tuple[int, Statement], ...]:
    """The statements, numbered from 1, by which anybody may do something on the queue.

    None where a deny keeps outsiders from all that it allows. What cannot be read says nothing.
    """
    statements = statements_of(policy) or ()
    return tuple(
        (number, each)
        for number, each in enumerate(statements, start=1)
        if each.lets_everybody_in
        and _is_on(each, queue_arn)
        and not any(_keeps_outsiders_out(other, each, queue_arn) for other in statements)
    )


def _keeps_outsiders_out(denial: Statement, grant: Statement, queue_arn: str) -> bool:
    """Whether it denies whoever is not named all that the other allows on the queue."""
    everybody = denial.is_for_everybody or "Principal" in denial.excepting
    if denial.allows or not everybody or denial.excepting & {"Action", "Resource"}:
        return False
    actions = [EVERYBODY] if "Action" in grant.excepting else grant.actions
    asked = [e for e in conditions_of(denial) if e[1] not in _SERVICES or e[2] != {"false"}]
    return (
        _is_on(denial, queue_arn)
        and all(any(fits(own.lower(), it.lower()) for own in denial.actions) for it in actions)
        and all(_spares_somebody(each) for each in asked)
        and (bool(asked) or not denial.conditions)
    )


def _spares_somebody(asked: StatementCondition) -> bool:
    """Whether a deny under it hits all but those named; a key that is missing is not named."""
    how, key, values = asked
    how, negated, more = how.removeprefix("forallvalues:").removesuffix("ifexists").partition("not")
    return bool(negated) and ":" not in how and _narrows((how + more, key, values))


def _narrows(asked: StatementCondition) -> bool:
    """Whether an allow under it holds for some alone; a key that is missing fulfils none."""
    how, key, values = asked
    how = how.removeprefix("foranyvalue:")
    if not _WHO.fullmatch(key) or not _ASKS.fullmatch(how):
        return False
    return all(_is_fixed(key, each, literally="stringequals" in how) for each in values)


def _is_fixed(key: str, value: str, *, literally: bool) -> bool:
    """Whether a value names somebody. A variable does where it is of the queue's own owner."""
    if key == "aws:sourceip":
        return _is_owned(value)
    if "${" in value:
        return value.startswith("${aws:resource")
    if literally or not {*value} & {"*", "?"}:
        return True
    return bool(_OWNED.fullmatch(value) if key.endswith("arn") else _BEGUN.match(value))


def _is_owned(network: str) -> bool:
    """Whether it is an address, or a network that is not wider than one may own."""
    try:
        found = ip_network(network, strict=False)
    except ValueError:
        return False
    return found.prefixlen >= _WIDEST[found.max_prefixlen]


HOLDS = timedelta(days=30)
# Clocks of SQS's, CloudTrail's and whoever pins may differ by so much.
# Both round to the second: a second of difference is one moment, two may be two people.
CLOCK_SKEW = timedelta(seconds=1)
MOST_CLOCK_AHEAD = timedelta(minutes=5)
MOST_CLOCK_BEHIND = timedelta(days=1)
# "On average within about 5 minutes of an API call", and not guaranteed:
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
CLOUDTRAIL_TELLS_WITHIN = timedelta(minutes=20)


def digest_of(policy: str) -> str:
    """Of the text byte for byte, as `sha256sum` prints it."""
    return hashlib.sha256(policy.encode()).hexdigest()


@dataclass(frozen=True)
class Pin:
    """A policy's text byte for byte, of the queue that was created and last modified then.

    `automation` are the ARNs of roles that deploy: a change of theirs may be undone.
    """

    queue_arn: str
    policy: str
    digest: str
    generation: int
    pinned_at: datetime
    pinned_by: str
    queue_created_at: datetime
    queue_modified_at: datetime
    automation: tuple[str, ...] = ()

    @property
    def expires_at(self) -> datetime:
        return self.pinned_at + HOLDS

    @property
    def since(self) -> datetime:
        """From when on changes speak against it: SQS's own clock, not that of whoever pinned."""
        return max(self.queue_modified_at, self.pinned_at - MOST_CLOCK_BEHIND)

    def document(self) -> dict[str, Any]:
        """As the case store holds it and `mendq policy pin --json` prints it."""
        values = {**vars(self), "expires_at": self.expires_at, "automation": list(self.automation)}
        times = {name: to_text(at) for name, at in values.items() if isinstance(at, datetime)}
        return values | times


@dataclass(frozen=True)
class QueueChange:
    """A change of the queue that went through, as CloudTrail tells.

    `attributes` are those that it set; `of_policy` where it may have changed the policy too;
    `by_cloudformation` where AWS itself says
    so, and not the caller. `earlier` are some before it, newest first, where it was asked for last.
    """

    at: datetime
    event_name: str
    principal_arn: str
    attributes: tuple[str, ...] = ()
    of_policy: bool = True
    by_cloudformation: bool = False
    earlier: tuple[QueueChange, ...] = ()

    @property
    def who(self) -> str:
        return "CloudFormation" if self.by_cloudformation else self.principal_arn


@dataclass(frozen=True)
class CheckedPin:
    """A pin as it was found: `doubt` says why it may not be restored, and is empty where it may.

    `pin` is None where it cannot be read; `passes` where CloudTrail will say more by itself;
    `changed` is the deployment that it would undo.
    """

    pin: Pin | None
    doubt: str = ""
    passes: bool = False
    changed: QueueChange | None = None

    @property
    def is_good(self) -> bool:
        return not self.doubt


def doubt_without_history(
    pin: Pin, queue_arn: str, created_at: datetime | None, now: datetime
) -> str | None:
    """What speaks against a pin before anybody is asked who changed the queue."""
    if digest_of(pin.policy) != pin.digest:
        return "its text is not the one that its digest is of"
    if (pin.queue_arn, pin.queue_created_at) != (queue_arn, created_at):
        return "it is of another queue of that name"
    if now >= pin.expires_at:
        return f"it expired at {pin.expires_at:%Y-%m-%d %H:%M} UTC"
    if pin.pinned_at > now + MOST_CLOCK_AHEAD:
        return "it was pinned in the future: the clock of whoever pinned it is wrong"
    return None


def check_pin(
    pin: Pin, changes: Sequence[QueueChange] | str, modified_at: datetime | None, now: datetime
) -> CheckedPin:
    """The pin of a queue whose policy is another one now, after all that CloudTrail tells.

    `changes` are those since `pin.since` in any order, or why they are not known; `modified_at` is
    when SQS says that the queue was changed last: CloudTrail lags by minutes, and a person's change
    must not be undone before it is heard of.
    """
    if isinstance(changes, str):
        return CheckedPin(pin, f"nobody can say who changed the policy since: {changes}")
    later = sorted(
        (each for each in changes if each.at > pin.queue_modified_at + CLOCK_SKEW),
        key=lambda each: each.at,
    )
    of_policy = [each for each in later if each.of_policy]
    of_others = [each for each in of_policy if not _deploys(each, pin)]
    if of_others:
        last = of_others[-1]
        return CheckedPin(
            pin, f"{last.who} has changed it since ({last.event_name}, {_at(last.at)})"
        )
    if modified_at is None:
        return CheckedPin(pin, "SQS does not say when the queue was last changed")
    unheard = _unheard_of(later, modified_at, now)
    if unheard:
        return CheckedPin(pin, *unheard)
    if not of_policy:
        return CheckedPin(
            pin, "the policy is another one, and CloudTrail knows nobody who changed it"
        )
    return CheckedPin(pin, changed=of_policy[-1])


def _deploys(change: QueueChange, pin: Pin) -> bool:
    return change.by_cloudformation or change.principal_arn in pin.automation


def _unheard_of(
    later: Sequence[QueueChange], modified_at: datetime, now: datetime
) -> tuple[str, bool] | None:
    """What CloudTrail may not have told of yet, and whether it is worth waiting for."""
    if not later or later[-1].at < modified_at - CLOCK_SKEW:
        doubt = f"CloudTrail does not tell who changed the queue at {_at(modified_at)}"
        return doubt, now - modified_at < CLOUDTRAIL_TELLS_WITHIN
    last = max(later[-1].at, modified_at)
    if now - last < CLOUDTRAIL_TELLS_WITHIN:
        until = _at(last + CLOUDTRAIL_TELLS_WITHIN)
        doubt = f"the queue was changed at {_at(last)}, and CloudTrail may tell of more until"
        return f"{doubt} {until}", True
    return None


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
