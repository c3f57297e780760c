"""What a denial says: who else is concerned, then the least that is to be granted; and quotas."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.catalogue.access.restore_policy import is_granted_by_name
from mendq.catalogue.examples import KEY_ARN, ROLE_ARN, STANDARD_ARN, policy, standard_queue
from mendq.catalogue.keys.kms_denied import KMS_DENIED
from mendq.model.facts import Facts
from mendq.model.failed_call import RefusedBy
from mendq.model.policy import parse_statements
from mendq.notifications.text import MOST_COMMAND_CHARACTERS
from tests.architecture.aws_commands import find_mistake, list_commands_in

STRANGER = "arn:aws:iam::210987654321:role/sender"
RECEIVES = ["ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage"]
SENDS = ["GetQueueUrl", "SendMessage"]


def called(*event_names: str, principals: tuple[str, ...] = (ROLE_ARN,), **over: Any) -> Facts:
    return standard_queue(principals=principals, event_names=event_names, **over)


def said(facts: Facts) -> dict[str, tuple[str, ...]]:
    """The lines by heading."""
    return {each.heading: each.lines for each in ACCESS_DENIED.extra_sections(facts)}


def documents(facts: Facts) -> list[dict[str, Any]]:
    lines = said(facts).get("MINIMUM POLICY", ())
    return [json.loads(each) for each in lines if each.startswith("{")]


def actions(statement: dict[str, Any]) -> list[str]:
    return [each.partition(":")[2] for each in statement["Action"]]


@pytest.mark.parametrize(
    ("event_names", "needed"),
    [
        (["ReceiveMessage"], RECEIVES),
        (["DeleteMessageBatch"], RECEIVES),
        (["SendMessage"], SENDS),
        (["SendMessageBatch"], SENDS),
        (["SendMessage", "DeleteMessage"], RECEIVES + SENDS),
    ],
)
def test_by_what_was_denied_it_is_a_consumers_or_a_senders(
    event_names: list[str], needed: list[str]
) -> None:
    (document,) = documents(called(*event_names))
    (statement,) = document["Statement"]
    assert document["Version"] == "2012-10-17"
    assert actions(statement) == needed
    assert statement["Resource"] == STANDARD_ARN
    assert "Principal" not in statement


def test_a_caller_of_another_account_needs_it_twice_and_is_granted_by_name() -> None:
    facts = called("SendMessage", principals=(ROLE_ARN, STRANGER))
    own, of_queue = documents(facts)
    assert of_queue["Principal"] == {"AWS": [STRANGER]}
    assert is_granted_by_name(
        json.dumps({"Statement": of_queue}), STRANGER, "sqs:SendMessage", STANDARD_ARN
    )
    assert not is_granted_by_name(
        json.dumps({"Statement": of_queue}), ROLE_ARN, "sqs:SendMessage", STANDARD_ARN
    )
    assert [each["Action"] for each in own["Statement"]] == [of_queue["Action"]]


@pytest.mark.parametrize(
    ("key", "resource"),
    [
        (KEY_ARN, KEY_ARN),
        (KEY_ARN.rpartition("/")[2], KEY_ARN),
        ("alias/orders", "arn:aws:kms:us-east-1:123456789012:key/*"),
        (
            "arn:aws:kms:us-east-1:210987654321:alias/orders",
            "arn:aws:kms:us-east-1:210987654321:key/*",
        ),
    ],
)
def test_a_key_is_granted_beside_it_by_its_id_or_by_its_alias(key: str, resource: str) -> None:
    (document,) = documents(called("SendMessage", KmsMasterKeyId=key))
    on_key = document["Statement"][1]
    assert on_key["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert on_key["Resource"] == resource
    by_alias = on_key["Condition"].get("ForAnyValue:StringEquals", {})
    assert by_alias == ({"kms:ResourceAliases": "alias/orders"} if "alias" in key else {})
    (document,) = documents(called("ReceiveMessage", KmsMasterKeyId=key))
    assert document["Statement"][1]["Action"] == ["kms:Decrypt"]
    *_, on_key = documents(called("ReceiveMessage", principals=(STRANGER,), KmsMasterKeyId=key))
    assert (on_key["Principal"], on_key["Resource"]) == ({"AWS": [STRANGER]}, "*")


def test_what_nobody_can_grant_is_not_asked_for() -> None:
    facts = called("SendMessage", principals=(STRANGER,), KmsMasterKeyId="alias/aws/sqs")
    own, _of_queue = documents(facts)
    assert len(own["Statement"]) == 1
    assert documents(called("SendMessage", principals=("events.amazonaws.com",))) == []
    assert documents(called("SetQueueAttributes")) == []


def test_a_deny_goes_first() -> None:
    denied = called("SendMessage", refused_by=frozenset({RefusedBy.RESOURCE_POLICY_DENIES}))
    first, *_ = said(denied)["MINIMUM POLICY"]
    assert first == "an explicit deny has to go first: no grant lifts it"
    assert first not in said(called("SendMessage"))["MINIMUM POLICY"]


def test_who_else_is_said_before_and_what_is_not_known() -> None:
    theirs = policy(Principal={"AWS": [ROLE_ARN, STRANGER]})
    facts = called("SendMessage", Policy=theirs, KmsMasterKeyId="alias/orders")
    assert [*said(facts)] == ["WHO ELSE MAY BE CONCERNED", "MINIMUM POLICY"]
    lines = said(facts)["WHO ELSE MAY BE CONCERNED"]
    assert f"its policy lets in {STRANGER}" in lines
    assert lines[-1].startswith("not known here: whose calls succeed")
    for text, word in (("", "nobody else"), (policy(), "everybody")):
        others = said(called("SendMessage", Policy=text))["WHO ELSE MAY BE CONCERNED"]
        assert others[0] == f"its policy lets in {word}"
    unreadable = said(called("SendMessage", Policy="{"))["WHO ELSE MAY BE CONCERNED"]
    assert unreadable[0] == "its policy cannot be read"


def test_every_denial_has_them() -> None:
    for entry in (ACCESS_DENIED, KMS_DENIED):
        headings = [each.heading for each in entry.extra_sections(called("SendMessage"))]
        assert headings == ["WHO ELSE MAY BE CONCERNED", "MINIMUM POLICY"]


WITH_QUOTAS = [
    each
    for each in CATALOGUE
    if [section.heading for section in each.extra_sections(called("SendMessage"))] == ["QUOTA"]
]


def test_a_quota_that_was_hit_is_named_with_its_value_and_how_to_raise_it() -> None:
    said_of = {each.name: each.extra_sections(called("x"))[0].lines for each in WITH_QUOTAS}
    defaults = {name: lines[0].partition(" by AWS")[0] for name, lines in said_of.items()}
    assert defaults == {
        "fifo_throttled": "calls of each API action: 300 a second without high throughput, which "
        "nobody can raise; with it, by region",
        "kms_throttled": "cryptographic operations: 100,000 a second in us-east-1, us-west-2 and "
        "eu-west-1, 10,000 or 20,000 elsewhere,",
        "in_flight_limit": "messages in flight: about 120,000",
        "consumer_throttled": "concurrent executions: 1,000",
    }
    assert all("request-service-quota-increase" in lines[-1] for lines in said_of.values())


@pytest.mark.parametrize("entry", [ACCESS_DENIED, KMS_DENIED, *WITH_QUOTAS], ids=lambda e: e.name)
def test_every_command_is_one(entry: Any) -> None:
    for key in (KEY_ARN, "alias/orders"):
        for section in entry.extra_sections(called("SendMessage", KmsMasterKeyId=key)):
            for line in section.lines:
                for command in list_commands_in(line):
                    assert find_mistake(command) == ""


@given(st.text(max_size=400), st.text(max_size=200), st.lists(st.text(max_size=80), max_size=4))
def test_whatever_names_a_key_a_role_or_a_principal(key: str, who: str, others: list[str]) -> None:
    theirs = policy(Principal={"AWS": [who, *others]})
    for facts in (
        called("SendMessage", principals=(who, STRANGER), KmsMasterKeyId=key, Policy=theirs),
        called(
            "ReceiveMessage",
            principals=(f"{ROLE_ARN}{who}", ROLE_ARN),
            KmsMasterKeyId=f"alias/{key}",
        ),
    ):
        for section in ACCESS_DENIED.extra_sections(facts):
            for line in section.lines:
                assert line.isprintable()
                assert line.isascii()
                assert len(line) <= MOST_COMMAND_CHARACTERS + 80
        for document in documents(facts):
            text = json.dumps(document if "Statement" in document else {"Statement": document})
            assert parse_statements(text)


def test_no_key_s_name_runs_as_a_command() -> None:
    named = "x'; printf ran; '\"$(printf ran)\"`printf ran`"
    lines = said(called("SendMessage", KmsMasterKeyId=named))["WHO ELSE MAY BE CONCERNED"]
    (command,) = (each.partition(": ")[2] for each in lines if each.startswith("who used its key"))
    typed = f"aws() {{ printf '<%s>' \"$@\"; }}; {command}"
    done = subprocess.run(["/bin/bash", "-c", typed], capture_output=True, text=True, check=True)
    assert f"<{named}>" in done.stdout
    assert "ran" not in done.stdout.replace(named, "")
