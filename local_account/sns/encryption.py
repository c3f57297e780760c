"""Encrypted topics: MiniStack's CloudFormation forgets the key, its Publish never asks for it.

Of what publishing needs on a customer's key, the identity-based policies of roles are judged; key
policies are not, nor are users, and nothing is encrypted.
https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.services import sns
from ministack.services.cloudformation import provisioners

from local_account.service_roles import refusal_to_act

TYPE = "AWS::SNS::Topic"
KEY = "KmsMasterKeyId"
NEEDED = ("kms:GenerateDataKey", "kms:Decrypt")
ASSUMED = ":assumed-role/"
Call = Callable[[Mapping[str, Any]], Any]


def install() -> None:
    """Hook publishing and CloudFormation; once per process."""
    sns._publish = _asking_for_the_key(sns._publish)
    sns._publish_batch = _asking_for_the_key(sns._publish_batch)
    handlers = provisioners._RESOURCE_HANDLERS[TYPE]
    create, update = handlers["create"], handlers["update"]

    def creating(logical_id: str, properties: Mapping[str, Any], stack_name: str) -> Any:
        created = create(logical_id, properties, stack_name)
        return _with_key(created, properties)

    def updating(arn: str, old: Mapping[str, Any], new: Mapping[str, Any], *rest: Any) -> Any:
        updated = update(arn, old, new, *rest)
        return _with_key(updated, new)

    provisioners._RESOURCE_HANDLERS[TYPE] = {**handlers, "create": creating, "update": updating}


def key_arn(key: str, account: str, region: str) -> str | None:
    """The customer's key that KmsMasterKeyId names; None for an alias, whose key is not looked up.

    SNS's own key `alias/aws/sns` lets everybody of the account use it.
    """
    if key.startswith("alias/") or ":alias/" in key:
        return None
    return key if key.startswith("arn:") else f"arn:aws:kms:{region}:{account}:key/{key}"


def _with_key(provisioned: tuple[str, Any], properties: Mapping[str, Any]) -> tuple[str, Any]:
    attributes = sns._topics[provisioned[0]]["attributes"]
    attributes.pop(KEY, None)
    if key := properties.get(KEY):
        attributes[KEY] = key
    return provisioned


def _asking_for_the_key(publish: Call) -> Call:
    def publishing(parameters: Mapping[str, Any]) -> Any:
        topic_arn = sns._p(parameters, "TopicArn") or sns._p(parameters, "TargetArn")
        topic = sns._topic_by_arn_any_scope(sns._normalize_arn(topic_arn))
        if topic and (refusal := _refusal(topic["attributes"].get(KEY) or "")):
            return sns._error("KMSAccessDenied", refusal, 400)
        return publish(parameters)

    return publishing


def _refusal(key: str) -> str | None:
    arn = key_arn(key, get_account_id(), get_region()) if key else None
    caller = iam_evaluator.caller_arn()
    if arn is None or ASSUMED not in caller:
        return None
    role = f"arn:aws:iam::{get_account_id()}:role/{caller.split('/')[1]}"
    for action in NEEDED:
        if refusal_to_act(role, action, arn):
            return (
                f"User: {caller} is not authorized to perform: {action} on resource: {arn} "
                f"because no identity-based policy allows the {action} action"
            )
    return None
