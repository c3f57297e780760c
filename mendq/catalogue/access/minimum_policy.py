"""What refused callers need at least, ready to paste; who else that may concern, and who called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Any

from mendq.model.evidence import IDENTITY, SEND_MESSAGE, actions_allowing, name_first_few
from mendq.model.facts import Facts, is_aws_managed
from mendq.model.failed_call import RefusedBy
from mendq.model.policy import EVERYBODY, statements_of
from mendq.model.queue import partition_of, parts_of
from mendq.notifications.commands import aws_command, consumers_of
from mendq.notifications.text import Section, command_line, exact_json, plain

# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html asks for three of these;
# what works longer than the visibility timeout also changes it.
_RECEIVING = ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
_SENDING = ("GetQueueUrl", "SendMessage")
_DENIED = {RefusedBy.RESOURCE_POLICY_DENIES, RefusedBy.IDENTITY_POLICY_DENIES}


def who_called(event_name: str, queue_arn: str) -> str:
    """The command that shows who used a management API on the queue, and when; 90 days back."""
    called = parts_of(queue_arn)
    of_it = f"contains(CloudTrailEvent, '/{called.account}/{called.name}\\\"')"
    options = f"--lookup-attributes AttributeKey=EventName,AttributeValue={event_name}"
    query = f'--query "Events[?{of_it}].[EventTime,Username]"'
    return aws_command("cloudtrail lookup-events", queue_arn, f"{options} {query}")


def before_granting(facts: Facts) -> tuple[Section, ...]:
    """The sections of a denial's notification; no policy where no role or user is known."""
    callers = [each for each in facts.principals if IDENTITY.fullmatch(each)]
    actions = actions_allowing(facts.event_names)
    least = _minimum(facts, callers, actions) if callers and actions else ()
    others = Section("WHO ELSE MAY BE CONCERNED", tuple(_others(facts, callers)))
    return others, Section("MINIMUM POLICY", tuple(least), cut=False)


def _others(facts: Facts, callers: Sequence[str]) -> Iterable[str]:
    """Successful calls are in no event that Mendq takes, so that most is for a person to ask."""
    queue_arn, key = facts.queue_arn, facts.kms_key
    statements = statements_of(facts.attributes.get("Policy", ""))
    granting = [each.principals.values() for each in statements or () if each.allows]
    theirs = sorted({who for kinds in granting for kind in kinds for who in kind} - {*callers})
    who = (
        "everybody" if EVERYBODY in theirs else name_first_few(theirs) if theirs else "nobody else"
    )
    known = "cannot be read" if statements is None else f"lets in {plain(who, 400)}"
    yield f"its policy {known}"
    yield f"functions that read it: {command_line(consumers_of(queue_arn))}"
    own = f"::{parts_of(queue_arn).account}:role/"
    for role in [each for each in callers if own in each][:1]:
        query = f"--query \"Functions[?Role=='{role}'].FunctionName\""
        functions = aws_command("lambda list-functions", queue_arn, query)
        yield f"functions that run as the refused role: {command_line(functions)}"
    if key is not None:
        of_key = f"--key-id {quote(key)} --query KeyMetadata.Arn --output text"
        arn = f'"$({aws_command("kms describe-key", queue_arn, of_key)})"'
        options = f"--lookup-attributes AttributeKey=ResourceName,AttributeValue={arn}"
        used = aws_command("cloudtrail lookup-events", queue_arn, options)
        yield f"who used its key, for which queue: {command_line(used)}"
    yield "not known here: whose calls succeed; the trail's files say, where it records this queue"


def _minimum(facts: Facts, callers: Sequence[str], actions: Sequence[str]) -> Iterable[str]:
    sends, receives = SEND_MESSAGE in actions, {*actions} != {SEND_MESSAGE}
    names = _RECEIVING * receives + _SENDING * sends
    on_queue = _allow([f"sqs:{each}" for each in names], facts.queue_arn)
    on_key = _on_key(facts, sends=sends)
    if facts.refused_by & _DENIED:
        yield "an explicit deny has to go first: no grant lifts it"
    whose = " and ".join(["consumer"] * receives + ["sender"] * sends)
    yield f"a {whose} of this queue alone, in the policy of a caller that you mean to let in:"
    statements = [on_queue, *([on_key] if on_key else [])]
    yield command_line(exact_json({"Version": "2012-10-17", "Statement": statements}))
    account = parts_of(facts.queue_arn).account
    if strangers := [each for each in callers if each.split(":")[4] != account][:3]:
        who = {"Principal": {"AWS": strangers}}
        yield "and, of another account's that you know and mean to let in, in the queue's policy:"
        yield command_line(exact_json(on_queue | who))
        if on_key:
            yield "and in the key's policy:"
            yield command_line(exact_json(on_key | who | {"Resource": EVERYBODY}))


def _allow(actions: Sequence[str], resource: str, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": [*actions], "Resource": resource, **more}


def _on_key(facts: Facts, *, sends: bool) -> dict[str, Any]:
    """Nothing without a key, and of AWS's own, which nobody can grant or has to.

    Senders decrypt too. An alias is no resource of a policy: the key that has it is.
    https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html
    """
    key, (region, account) = facts.kms_key, parts_of(facts.queue_arn)[1:3]
    if key is None or is_aws_managed(key):
        return {}
    name = key if "/" in key else f"key/{key}"
    here = f"arn:{partition_of(region)}:kms:{region}:{account}:"
    arn = key if key.startswith("arn:") else f"{here}{name}"
    place, is_alias, alias = arn.partition("alias/")
    condition = {"StringEquals": {"kms:ViaService": f"sqs.{region}.amazonaws.com"}}
    if is_alias:
        arn = f"{place}key/*"
        condition["ForAnyValue:StringEquals"] = {"kms:ResourceAliases": f"alias/{alias}"}
    actions = ("kms:Decrypt", "kms:GenerateDataKey") if sends else ("kms:Decrypt",)
    return _allow(actions, arn, Condition=condition)
