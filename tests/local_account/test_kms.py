"""What KMS refuses when a key is made, the local account refuses too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from local_account.where import ACCOUNT
from tests.local_account.callers import allow, user

pytestmark = pytest.mark.account


def _key_policy(principal: str, *actions: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": principal},
        "Action": list(actions),
        "Resource": "*",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _code(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as error:
        call(**arguments)
    return str(error.value.response["Error"]["Code"])


def test_create_key_refuses_a_policy_that_locks_its_caller_out(tiny: LocalAccount) -> None:
    arn, keys = user(tiny, allow(["kms:CreateKey", "kms:ListKeys"], "*"))
    other, _ = user(tiny)
    kms = tiny.client("kms", **keys)
    before = len(kms.list_keys()["Keys"])
    for principal, actions in ((other, ["kms:*"]), (arn, ["kms:Decrypt"])):
        policy = _key_policy(principal, *actions)
        assert _code(kms.create_key, Policy=policy) == "MalformedPolicyDocumentException"
    assert len(kms.list_keys()["Keys"]) == before
    policy = _key_policy(other, "kms:*")
    kms.create_key(Policy=policy, BypassPolicyLockoutSafetyCheck=True)
    kms.create_key(Policy=_key_policy(arn, "kms:PutKeyPolicy"))
    assert len(kms.list_keys()["Keys"]) == before + 2


def test_create_key_refuses_a_policy_that_names_a_missing_principal(tiny: LocalAccount) -> None:
    arn, keys = user(tiny, allow("kms:CreateKey", "*"))
    kms = tiny.client("kms", **keys)
    for missing in (f"arn:aws:iam::{ACCOUNT}:role/missing", arn.replace("user/", "user/path/")):
        policy = json.loads(_key_policy(arn, "kms:*"))
        policy["Statement"].append({**policy["Statement"][0], "Principal": {"AWS": missing}})
        code = _code(kms.create_key, Policy=json.dumps(policy))
        assert code == "MalformedPolicyDocumentException"


def test_create_key_with_tags_is_denied_without_kms_tag_resource(tiny: LocalAccount) -> None:
    tags = [{"TagKey": "a", "TagValue": "b"}]
    _, keys = user(tiny, allow("kms:CreateKey", "*"))
    assert _code(tiny.client("kms", **keys).create_key, Tags=tags) == "AccessDeniedException"
    _, keys = user(tiny, allow(["kms:CreateKey", "kms:TagResource"], "*"))
    tiny.client("kms", **keys).create_key(Tags=tags)


def test_kms_key_allows_only_the_principal_and_actions_in_its_policy(tiny: LocalAccount) -> None:
    arn, keys = user(tiny, allow("kms:CreateKey", "*"))
    _, other_keys = user(tiny, allow("kms:*", "*"))
    policy = _key_policy(arn, "kms:PutKeyPolicy", "kms:DescribeKey", "kms:GetKeyPolicy")
    kms = tiny.client("kms", **keys)
    key = kms.create_key(Policy=policy)["KeyMetadata"]["KeyId"]
    assert kms.describe_key(KeyId=key)["KeyMetadata"]["KeyId"] == key
    assert json.loads(kms.get_key_policy(KeyId=key)["Policy"]) == json.loads(policy)
    other = tiny.client("kms", **other_keys)
    for call in (other.describe_key, other.get_key_policy, other.schedule_key_deletion):
        assert _code(call, KeyId=key) == "AccessDeniedException"
    assert _code(kms.schedule_key_deletion, KeyId=key) == "AccessDeniedException"
