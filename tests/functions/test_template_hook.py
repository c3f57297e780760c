"""The template hook answers CloudFormation's requests, also malformed and hostile ones.

https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks-create-lambda-function.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functions import template_hook
from functions.template_hook import handler
from mendq.aws.clients import Clients
from mendq.lint import proposed
from mendq.lint.proposed import MAXIMUM_WORK_STEPS, MOST_MESSAGE_CHARACTERS, check_proposed_resource
from mendq.lint.values import DeployTarget
from mendq.model.settings import TemplateHookSettings
from tests.functions.builders import LAMBDA_CONTEXT, reset_to_cold_start

QUEUE = "AWS::SQS::Queue"
POLICY = "AWS::SQS::QueuePolicy"
INLINE = "AWS::SQS::QueueInlinePolicy"
ACCOUNT = "123456789012"
URL = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/orders"
ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:orders"
GIVEN = json.loads(Path(__file__).with_name("template_hook.json").read_text())
SLOW = {"Tags": [{"Key": "mendq:max-processing-seconds", "Value": "60"}]}
AskHook = Callable[..., dict[str, Any]]


def make_statement(**changes: Any) -> dict[str, Any]:
    """Return a statement that lets every principal send."""
    public = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": ARN}
    return {**public, **changes}


def make_policy(*statements: Any, queues: Any = (URL,)) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return {"Queues": list(queues), "PolicyDocument": document}


def make_request(target: Any, properties: Any, action: str = "CREATE", name: Any = "Orders") -> Any:
    """Return a request as the AWS page shows it, with the token that only its examples have."""
    hook_request = deepcopy(GIVEN["request"])
    hook_request["actionInvocationPoint"] = f"{action}_PRE_PROVISION"
    hook_request["requestData"] = {
        "targetName": target,
        "targetType": target,
        "targetLogicalId": name,
        "targetModel": {
            "resourceProperties": None if action == "DELETE" else properties,
            "previousResourceProperties": None if action == "CREATE" else SLOW,
        },
    }
    return hook_request


@pytest.fixture
def ask_hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[AskHook]:
    """A function that sends a request and checks that the answer is a valid hook answer."""
    monkeypatch.setattr(Clients, "for_lambda", lambda: SimpleNamespace(region="us-east-1"))

    def ask(event: Any, *, fails: bool = False, ignores: tuple[str, ...] = ()) -> dict[str, Any]:
        reset_to_cold_start(handler)
        settings = TemplateHookSettings(ACCOUNT, fails, ignores)
        for variable, text in settings.to_environment().items():
            monkeypatch.setenv(variable, text)
        answer: dict[str, Any] = json.loads(json.dumps(handler(event, LAMBDA_CONTEXT)))
        message = answer["message"]
        assert answer.keys() - {"errorCode"} == {"hookStatus", "message", "clientRequestToken"}
        assert answer["hookStatus"] in ("SUCCESS", "FAILED")
        assert ("errorCode" in answer) == (answer["hookStatus"] == "FAILED")
        assert 0 < len(message) <= MOST_MESSAGE_CHARACTERS
        assert message.isascii()
        assert all(line.isprintable() for line in message.split("\n"))
        assert "://" not in message
        return answer

    yield ask
    reset_to_cold_start(handler)


@pytest.mark.parametrize("action", ["CREATE", "UPDATE"])
def test_template_hook_fails_a_faulty_queue_with_the_finding_and_the_lines_to_change(
    ask_hook: AskHook, action: str
) -> None:
    given = {**SLOW, "VisibilityTimeout": 30, "SqsManagedSseEnabled": False}
    answer = ask_hook(make_request(QUEUE, given, action))
    assert answer["hookStatus"] == "FAILED"
    assert answer["errorCode"] == "NonCompliant"
    assert answer["clientRequestToken"] == GIVEN["request"]["clientRequestToken"]
    assert answer["message"].startswith("Mendq: 2 findings in Orders; not decided: ")
    assert "dlq_missing, " in answer["message"].partition("\n")[0]
    for line in (
        "error visibility_timeout_too_short",
        "  VisibilityTimeout: 90",
        "  runbook: docs/runbooks/visibility_timeout_too_short.md",
        "note not_encrypted",
        "  SqsManagedSseEnabled: true",
    ):
        assert line in answer["message"].split("\n")


def test_template_hook_passes_a_queue_whose_only_finding_is_set_to_be_ignored(
    ask_hook: AskHook,
) -> None:
    hook_request = make_request(QUEUE, {"SqsManagedSseEnabled": False})
    assert "note not_encrypted" in ask_hook(hook_request)["message"].split("\n")
    answer = ask_hook(hook_request, ignores=("not_encrypted",))
    assert answer["hookStatus"] == "SUCCESS"
    assert "not_encrypted" not in answer["message"]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(
    "event",
    [
        make_request(QUEUE, {**SLOW, "VisibilityTimeout": 30}, "DELETE"),
        make_request("AWS::S3::Bucket", {**SLOW, "VisibilityTimeout": 30}),
        make_request("STACK", None),
        make_request([QUEUE], SLOW),
        make_request(QUEUE, {}, "SOMETHING"),
        {},
        [],
        None,
        {"requestData": [], "clientRequestToken": {"a": 1}},
    ],
)
def test_template_hook_passes_deletions_other_resource_types_and_malformed_requests(
    ask_hook: AskHook, event: Any, fails: bool
) -> None:
    assert ask_hook(event, fails=fails)["hookStatus"] == "SUCCESS"


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(("target", "queues"), [(POLICY, "Queues"), (INLINE, "Queue")])
def test_template_hook_reports_a_public_queue_policy_and_prints_the_tls_statement_to_add(
    ask_hook: AskHook, target: str, queues: str, as_text: bool
) -> None:
    document: Any = make_policy(make_statement())["PolicyDocument"]
    given = {"PolicyDocument": json.dumps(document) if as_text else document}
    given[queues] = URL if queues == "Queue" else [URL, f"{URL}-2"]
    message = ask_hook(make_request(target, given, name="Access"))["message"]
    assert message.startswith("Mendq: 2 findings in Access")
    assert "error policy_is_public" in message
    assert f'"Resource": "{ARN}", "Condition": {{"Bool": {{"aws:SecureTransport"' in message
    assert "# add to the Statement of Access\n" in message
    assert "AccessOf" not in message, "no name that the template does not have"


def test_template_hook_passes_a_policy_that_allows_only_its_own_account_and_requires_tls(
    ask_hook: AskHook,
) -> None:
    denial = make_statement(Effect="Deny", Action="sqs:*")
    denial["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    mine = make_statement(Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:role/orders"})
    assert ask_hook(make_request(POLICY, make_policy(mine, denial)))["hookStatus"] == "SUCCESS"


def test_template_hook_refuses_a_queue_that_sqs_would_refuse(ask_hook: AskHook) -> None:
    message = ask_hook(make_request(QUEUE, {"VisibilityTimeout": 43_201}))["message"]
    assert "error invalid_request" in message
    assert "its VisibilityTimeout is 43,201, and SQS accepts 0 to 43,200" in message


@pytest.mark.parametrize(
    "properties", [{"SqsManagedSseEnabled": "perhaps"}, {"VisibilityTimeout": [1]}]
)
def test_template_hook_refuses_a_value_that_is_no_boolean_and_no_number(
    ask_hook: AskHook, properties: Any
) -> None:
    answer = ask_hook(make_request(QUEUE, properties), fails=True)
    assert answer["hookStatus"] == "FAILED"
    assert "error invalid_request" in answer["message"]


@pytest.mark.parametrize(("target", "properties", "undecided"), GIVEN["undecided"])
def test_template_hook_passes_a_resource_with_unknown_values_and_lists_undecided_checks(
    ask_hook: AskHook, target: str, properties: Any, undecided: str
) -> None:
    answer = ask_hook(make_request(target, properties), fails=True)
    assert answer["hookStatus"] == "SUCCESS"
    assert undecided in answer["message"].partition("not decided: ")[2].split(", ")


def make_nested_value(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


UNJUDGEABLE = {
    "no properties": None,
    "a list": [1],
    "a text": "x",
    "deep": make_nested_value(400),
    "long": {"QueueName": "x" * 8_000_000},
    "many": {"Tags": [{}] * MAXIMUM_WORK_STEPS},
    "keys": {f"k{n}": n for n in range(MAXIMUM_WORK_STEPS // 4)},
    "many queues": make_policy(make_statement(), queues=[f"{URL}{n}" for n in range(3_000)]),
    "many queues with a long policy": make_policy(
        *[make_statement(Sid="x" * 5_000)] * 20, queues=[f"{URL}{n}" for n in range(1_000)]
    ),
}


@pytest.mark.parametrize("name", UNJUDGEABLE)
def test_template_hook_passes_a_resource_it_cannot_judge_unless_set_to_fail_deployments(
    ask_hook: AskHook, name: str
) -> None:
    """The hook counts steps instead of seconds, so the result does not depend on the machine."""
    event = make_request(
        POLICY if "Queues" in (UNJUDGEABLE[name] or {}) else QUEUE, UNJUDGEABLE[name]
    )
    answer = ask_hook(event)
    assert answer["hookStatus"] == "SUCCESS"
    assert answer["message"].startswith("Mendq: could not be judged: ")
    assert ask_hook(event, fails=True) == {
        **answer,
        "hookStatus": "FAILED",
        "errorCode": "InternalFailure",
    }


def test_template_hook_reports_its_own_exception_by_type_without_the_template_text(
    ask_hook: AskHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(*_: object) -> Any:
        raise KeyError("a secret of the template")

    monkeypatch.setattr(template_hook, "check_proposed_resource", raise_error)
    answer = ask_hook(make_request(QUEUE, {}), fails=True)
    assert answer["errorCode"] == "InternalFailure"
    assert answer["message"].endswith("KeyError")
    assert ask_hook(make_request(QUEUE, {}))["hookStatus"] == "SUCCESS"


def test_template_hook_message_cannot_be_forged_by_line_breaks_in_template_text(
    ask_hook: AskHook,
) -> None:
    hostile = "x\nerror redrive_cycle\r\u202e\x1b[2J https://evil.example/ \u00e9" * 3
    tags = [{"Key": "mendq", "Value": hostile}, {"Key": hostile, "Value": hostile}]
    given = {"QueueName": hostile, "KmsMasterKeyId": hostile, "Tags": tags, hostile: hostile}
    message = ask_hook(make_request(QUEUE, given, name=f"Orders\n{hostile}"))["message"]
    assert message.startswith("Mendq: 2 findings in Resource")
    assert "error redrive_cycle" not in message.split("\n")
    acts = [f"sqs:{hostile}{n}" for n in range(9)]
    answer = ask_hook(
        make_request(POLICY, make_policy(make_statement(Action=acts)), name="A" * 300)
    )
    assert answer["message"].startswith("Mendq: 1 finding in Resource")
    assert "error redrive_cycle" not in answer["message"].split("\n")


def test_template_hook_judges_the_largest_queue_within_a_fifth_of_its_step_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SQS accepts a policy of 8 KB and 50 tags, so no real template comes near the step limit."""
    mine = {"AWS": [f"arn:aws:iam::{ACCOUNT}:role/orders-{n}" for n in range(20)]}
    where = DeployTarget(ACCOUNT, "us-east-1")
    monkeypatch.setattr(proposed, "MAXIMUM_WORK_STEPS", MAXIMUM_WORK_STEPS // 5)
    most = make_policy(
        *[make_statement(Principal=mine)] * 7, queues=[f"{URL}{n}" for n in range(3)]
    )
    tags = [{"Key": f"{n}" * 60, "Value": "x" * 256} for n in range(50)]
    for target, given in ((POLICY, most), (QUEUE, {**SLOW, "Tags": tags})):
        assert check_proposed_resource(target, "Orders", given, where).logical_id == "Orders"
