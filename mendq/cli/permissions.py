"""The two policies for people, out of what each command's file says that it asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from mendq.cli.commands import INVOKE, Kind, list_commands
from mendq.cli.deploy.drill import RECORDING

LOOKING, STEERING, MESSAGES, OFFLINE = (
    {each.full_name: each.actions for each in list_commands() if each.kind is kind} for kind in Kind
)
_HERE = "REGION:ACCOUNT"
_TABLE = f"arn:aws:dynamodb:{_HERE}:table/Mendq-*"

# What is named here, or by a command's own file, is Mendq's; every other action is about queues
# and functions of yours, or knows no resource.
_RULES: Mapping[str, tuple[str, ...]] = {
    "cloudformation:ListStacks": ("*",),
    "cloudformation:": (f"arn:aws:cloudformation:{_HERE}:stack/Mendq/*",),
    "dynamodb:Query": (_TABLE, f"{_TABLE}/index/*"),
    "dynamodb:": (_TABLE,),
    "events:": tuple(f"arn:aws:events:{_HERE}:rule/{bus}Mendq-*" for bus in ("", "default/")),
    "iam:": ("arn:aws:iam::ACCOUNT:role/mendq-*",),
    INVOKE: tuple(
        f"arn:aws:lambda:{_HERE}:function:Mendq-{each}*" for each in ("Approve", "Rollback")
    ),
    "s3:GetObject": ("arn:aws:s3:::mendq-*/*",),
    "s3:ListBucket": ("arn:aws:s3:::mendq-*",),
    "scheduler:": (f"arn:aws:scheduler:{_HERE}:schedule/*/Mendq-*",),
    "sns:": (f"arn:aws:sns:{_HERE}:Mendq-*",),
}
_OF = {**_RULES, **{name: of for each in list_commands() for name, of in each.on.items()}}
_READS = frozenset().union(*LOOKING.values())


def make_look_policy() -> dict[str, Any]:
    """The policy of whoever may see everything and change nothing."""
    return make_policy(_READS)


def make_steer_policy() -> dict[str, Any]:
    """The policy of whoever may steer Mendq, beside `look`."""
    return make_policy(frozenset().union(*STEERING.values()) - _READS)


def make_record_policy() -> dict[str, Any]:
    """Return the policy of `mendq drill --record DIR`. The rest comes from its key's own policy."""
    statements = [
        {"Effect": "Allow", "Action": actions, "Resource": [resource]}
        for resource, actions in RECORDING.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def make_policy(actions: Iterable[str]) -> dict[str, Any]:
    """The least policy that allows `actions`, each on the resources that it may be about."""
    on = defaultdict[tuple[str, ...], list[str]](list)
    for each in sorted(actions):
        service, _, _ = each.partition(":")
        on[_OF.get(each) or _OF.get(f"{service}:", ("*",))].append(each)
    statements = [
        {"Effect": "Allow", "Action": actions, "Resource": list(where)}
        for where, actions in on.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}
