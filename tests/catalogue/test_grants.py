"""Test the sections of pages about denials and quotas: other callers, minimum policy, quota."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.catalogue.access.restore_policy import is_granted_by_name
from mendq.catalogue.examples import KEY_ARN, ROLE_ARN, STANDARD_ARN, policy, standard_queue
from mendq.catalogue.keys.kms_denied import KMS_DENIED
from mendq.catalogue.symptom import Symptom
from mendq.model.facts import Facts
from mendq.model.failed_call import RefusedBy
from mendq.model.policy import parse_statements
from mendq.model.queue import arn_of_name
from mendq.notifications.text import MOST_COMMAND_CHARACTERS
from tests.architecture.aws_commands import find_mistake, list_commands_in

ROLE_OF_OTHER_ACCOUNT = "arn:aws:iam::210987654321:role/sender"
RECEIVES = ["ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage"]
SENDS = ["GetQueueUrl", "SendMessage"]


def make_denied_queue(
    *event_names: str, principals: tuple[str, ...] = (ROLE_ARN,), **over: Any
) -> Facts:
    return standard_queue(principals=principals, event_names=event_names, **over)


def read_sections(facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return the lines of each section by heading."""
    sections = ACCESS_DENIED.extra_sections(facts)
    return {section.heading: section.lines for section in sections}


def read_minimum_policies(facts: Facts) -> list[dict[str, Any]]:
    lines = read_sections(facts).get("MINIMUM POLICY", ())
    return [json.loads(line) for line in lines if line.startswith("{")]


def list_actions(statement: dict[str, Any]) -> list[str]:
    return [action.partition(":")[2] for action in statement["Action"]]


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
def test_minimum_policy_grants_a_consumers_or_a_producers_actions_by_the_denied_call(
    event_names: list[str], needed: list[str]
) -> None:
    (document,) = read_minimum_policies(make_denied_queue(*event_names))
    (statement,) = document["Statement"]
    assert document["Version"] == "2012-10-17"
    assert list_actions(statement) == needed
    assert statement["Resource"] == STANDARD_ARN
    assert "Principal" not in statement


def test_minimum_policy_for_a_caller_of_another_account_is_an_identity_and_a_queue_policy() -> None:
    facts = make_denied_queue("SendMessage", principals=(ROLE_ARN, ROLE_OF_OTHER_ACCOUNT))
    own, of_queue = read_minimum_policies(facts)
    assert of_queue["Principal"] == {"AWS": [ROLE_OF_OTHER_ACCOUNT]}
    assert is_granted_by_name(
        json.dumps({"Statement": of_queue}), ROLE_OF_OTHER_ACCOUNT, "sqs:SendMessage", STANDARD_ARN
    )
    assert not is_granted_by_name(
        json.dumps({"Statement": of_queue}), ROLE_ARN, "sqs:SendMessage", STANDARD_ARN
    )
    assert [statement["Action"] for statement in own["Statement"]] == [of_queue["Action"]]


KEYS_AND_RESOURCES = pytest.mark.parametrize(
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


@KEYS_AND_RESOURCES
def test_minimum_policy_of_a_producer_grants_the_queues_kms_key_by_id_or_by_alias(
    key: str, resource: str
) -> None:
    (document,) = read_minimum_policies(make_denied_queue("SendMessage", KmsMasterKeyId=key))
    on_key = document["Statement"][1]
    assert on_key["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert on_key["Resource"] == resource
    by_alias = on_key["Condition"].get("ForAnyValue:StringEquals", {})
    assert by_alias == ({"kms:ResourceAliases": "alias/orders"} if "alias" in key else {})


@KEYS_AND_RESOURCES
def test_minimum_policy_of_a_consumer_grants_only_decrypt_with_the_queues_kms_key(
    key: str, resource: str
) -> None:
    (document,) = read_minimum_policies(make_denied_queue("ReceiveMessage", KmsMasterKeyId=key))
    on_key = document["Statement"][1]
    assert (on_key["Action"], on_key["Resource"]) == (["kms:Decrypt"], resource)


@pytest.mark.parametrize(
    ("region", "suffixes"),
    [
        ("us-east-1", ["amazonaws.com"]),
        ("cn-north-1", ["amazonaws.com", "amazonaws.com.cn"]),
        ("eusc-de-east-1", ["amazonaws.com", "amazonaws.eu"]),
    ],
)
def test_minimum_policy_limits_kms_use_to_sqs_by_the_service_domains_of_the_partition(
    region: str, suffixes: list[str]
) -> None:
    queue_arn = arn_of_name("orders", region, "123456789012")
    assert queue_arn is not None
    facts = replace(make_denied_queue("SendMessage", KmsMasterKeyId="1-2"), queue_arn=queue_arn)
    (document,) = read_minimum_policies(facts)
    key_statement = document["Statement"][1]
    names = key_statement["Condition"]["StringEquals"]["kms:ViaService"]
    expected_names = [f"sqs.{region}.{suffix}" for suffix in suffixes]
    assert ([names] if isinstance(names, str) else names) == expected_names
    assert (
        key_statement["Resource"]
        == f"arn:{queue_arn.split(':')[1]}:kms:{region}:123456789012:key/1-2"
    )


def test_minimum_policy_for_a_caller_of_another_account_has_a_statement_for_the_key_policy() -> (
    None
):
    facts = make_denied_queue(
        "ReceiveMessage", principals=(ROLE_OF_OTHER_ACCOUNT,), KmsMasterKeyId=KEY_ARN
    )
    *_, on_key = read_minimum_policies(facts)
    assert (on_key["Principal"], on_key["Resource"]) == ({"AWS": [ROLE_OF_OTHER_ACCOUNT]}, "*")


def test_minimum_policy_of_a_queue_with_awss_key_grants_no_key() -> None:
    facts = make_denied_queue(
        "SendMessage", principals=(ROLE_OF_OTHER_ACCOUNT,), KmsMasterKeyId="alias/aws/sqs"
    )
    own, _of_queue = read_minimum_policies(facts)
    assert len(own["Statement"]) == 1


def test_minimum_policy_is_left_out_for_a_caller_that_is_an_aws_service() -> None:
    facts = make_denied_queue("SendMessage", principals=("events.amazonaws.com",))
    assert read_minimum_policies(facts) == []


def test_minimum_policy_is_left_out_for_calls_that_administer_queues() -> None:
    assert read_minimum_policies(make_denied_queue("SetQueueAttributes")) == []


def test_minimum_policy_says_that_an_explicit_deny_must_be_removed_first() -> None:
    denied = make_denied_queue(
        "SendMessage", refused_by=frozenset({RefusedBy.RESOURCE_POLICY_DENIES})
    )
    first, *_ = read_sections(denied)["MINIMUM POLICY"]
    assert first == "an explicit deny has to go first: no grant lifts it"
    assert first not in read_sections(make_denied_queue("SendMessage"))["MINIMUM POLICY"]


OTHER_CALLERS = "WHO ELSE MAY BE CONCERNED"


def read_other_callers(policy_text: str) -> tuple[str, ...]:
    return read_sections(make_denied_queue("SendMessage", Policy=policy_text))[OTHER_CALLERS]


def test_denial_lists_the_principals_that_the_queue_policy_allows_and_what_is_unknown() -> None:
    lines = read_other_callers(policy(Principal={"AWS": [ROLE_ARN, ROLE_OF_OTHER_ACCOUNT]}))
    assert f"its policy lets in {ROLE_OF_OTHER_ACCOUNT}" in lines
    assert lines[-1].startswith("not known here: whose calls succeed")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "its policy lets in nobody else", id="no policy"),
        pytest.param(policy(), "its policy lets in everybody", id="public"),
        pytest.param("{", "its policy cannot be read", id="unreadable"),
    ],
)
def test_denial_says_if_the_queue_policy_allows_nobody_everybody_or_is_unreadable(
    text: str, says: str
) -> None:
    assert read_other_callers(text)[0] == says


def test_pages_about_denials_have_the_sections_on_other_callers_and_minimum_policy() -> None:
    for entry in (ACCESS_DENIED, KMS_DENIED):
        sections = entry.extra_sections(make_denied_queue("SendMessage"))
        headings = [section.heading for section in sections]
        assert headings == ["WHO ELSE MAY BE CONCERNED", "MINIMUM POLICY"]


def has_only_a_quota_section(entry: Symptom) -> bool:
    sections = entry.extra_sections(make_denied_queue("SendMessage"))
    return [section.heading for section in sections] == ["QUOTA"]


ENTRIES_WITH_QUOTA = [entry for entry in CATALOGUE if has_only_a_quota_section(entry)]


def test_quota_section_names_the_default_value_and_the_command_to_raise_the_quota() -> None:
    lines_by_symptom = {
        entry.name: entry.extra_sections(make_denied_queue("x"))[0].lines
        for entry in ENTRIES_WITH_QUOTA
    }
    defaults = {name: lines[0].partition(" by AWS")[0] for name, lines in lines_by_symptom.items()}
    assert defaults == {
        "fifo_throttled": "calls of each API action: 300 a second without high throughput, which "
        "nobody can raise; with it, by region",
        "kms_throttled": "cryptographic operations: 100,000 a second in us-east-1, us-west-2 and "
        "eu-west-1, 10,000 or 20,000 elsewhere,",
        "in_flight_limit": "messages in flight: about 120,000",
        "consumer_throttled": "concurrent executions: 1,000",
    }
    assert all("request-service-quota-increase" in lines[-1] for lines in lines_by_symptom.values())


@pytest.mark.parametrize(
    "entry", [ACCESS_DENIED, KMS_DENIED, *ENTRIES_WITH_QUOTA], ids=lambda entry: entry.name
)
def test_commands_in_sections_are_valid_aws_commands(entry: Any) -> None:
    for key in (KEY_ARN, "alias/orders"):
        for section in entry.extra_sections(make_denied_queue("SendMessage", KmsMasterKeyId=key)):
            for line in section.lines:
                for command in list_commands_in(line):
                    assert find_mistake(command) == ""


@given(st.text(max_size=400), st.text(max_size=200), st.lists(st.text(max_size=80), max_size=4))
def test_sections_stay_printable_short_and_valid_for_any_name_of_a_key_or_principal(
    key: str, who: str, others: list[str]
) -> None:
    theirs = policy(Principal={"AWS": [who, *others]})
    for facts in (
        make_denied_queue(
            "SendMessage",
            principals=(who, ROLE_OF_OTHER_ACCOUNT),
            KmsMasterKeyId=key,
            Policy=theirs,
        ),
        make_denied_queue(
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
        for document in read_minimum_policies(facts):
            text = json.dumps(document if "Statement" in document else {"Statement": document})
            assert parse_statements(text)


def test_kms_key_name_with_shell_syntax_is_quoted_in_the_command() -> None:
    named = "x'; printf ran; '\"$(printf ran)\"`printf ran`"
    lines = read_sections(make_denied_queue("SendMessage", KmsMasterKeyId=named))[
        "WHO ELSE MAY BE CONCERNED"
    ]
    (line,) = [line for line in lines if line.startswith("who used its key")]
    command = line.partition(": ")[2]
    typed = f"aws() {{ printf '<%s>' \"$@\"; }}; {command}"
    done = subprocess.run(["/bin/bash", "-c", typed], capture_output=True, text=True, check=True)
    assert f"<{named}>" in done.stdout
    assert "ran" not in done.stdout.replace(named, "")
