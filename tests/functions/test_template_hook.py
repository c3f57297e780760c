"""The template hook as CloudFormation calls it: the documented requests, and hostile ones.

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

QUEUE, POLICY = "AWS::SQS::Queue", "AWS::SQS::QueuePolicy"
INLINE = "AWS::SQS::QueueInlinePolicy"
ACCOUNT = "123456789012"
URL = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/orders"
ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:orders"
GIVEN = json.loads(Path(__file__).with_name("template_hook.json").read_text())
SLOW = {"Tags": [{"Key": "mendq:max-processing-seconds", "Value": "60"}]}
Ask = Callable[..., dict[str, Any]]


def statement(**over: Any) -> dict[str, Any]:
    """One that lets anybody in."""
    anybody = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": ARN}
    return {**anybody, **over}


def a_policy(*statements: Any, queues: Any = (URL,)) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return {"Queues": list(queues), "PolicyDocument": document}


def request(target: Any, properties: Any, action: str = "CREATE", name: Any = "Orders") -> Any:
    """As the page has it; a token is in its examples, and not in its shape of a resource's."""
    made = deepcopy(GIVEN["request"])
    made["actionInvocationPoint"] = f"{action}_PRE_PROVISION"
    proposed_or_not = {"resourceProperties": None if action == "DELETE" else properties}
    before = {"previousResourceProperties": None if action == "CREATE" else SLOW}
    data = {"targetName": target, "targetType": target, "targetLogicalId": name}
    made["requestData"] = {**data, "targetModel": {**proposed_or_not, **before}}
    return made


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """The answer to a request, which is what a hook may answer whatever is asked."""
    monkeypatch.setattr(Clients, "for_lambda", lambda: SimpleNamespace(region="us-east-1"))

    def asked(event: Any, *, fails: bool = False, ignores: tuple[str, ...] = ()) -> dict[str, Any]:
        reset_to_cold_start(handler)
        settings = TemplateHookSettings(ACCOUNT, fails, ignores)
        for variable, text in settings.to_environment().items():
            monkeypatch.setenv(variable, text)
        answer: dict[str, Any] = json.loads(json.dumps(handler(event, LAMBDA_CONTEXT)))
        message, failed = answer["message"], answer["hookStatus"] == "FAILED"
        assert answer.keys() - {"errorCode"} == {"hookStatus", "message", "clientRequestToken"}
        assert answer["hookStatus"] in ("SUCCESS", "FAILED")
        assert ("errorCode" in answer) == failed
        assert 0 < len(message) <= MOST_MESSAGE_CHARACTERS
        assert message.isascii()
        assert all(line.isprintable() for line in message.split("\n"))
        assert "://" not in message
        return answer

    yield asked
    reset_to_cold_start(handler)


@pytest.mark.parametrize("action", ["CREATE", "UPDATE"])
def test_template_hook_fails_a_faulty_queue_with_the_finding_and_the_lines_to_change(
    ask: Ask, action: str
) -> None:
    given = {**SLOW, "VisibilityTimeout": 30, "SqsManagedSseEnabled": False}
    answer = ask(request(QUEUE, given, action))
    assert (answer["hookStatus"], answer["errorCode"]) == ("FAILED", "NonCompliant")
    assert answer["clientRequestToken"] == GIVEN["request"]["clientRequestToken"]
    assert answer["message"].startswith("Mendq: 2 findings in Orders; not decided: dlq_missing, ")
    for line in (
        "error visibility_timeout_too_short",
        "  VisibilityTimeout: 90",
        "  runbook: docs/runbooks/visibility_timeout_too_short.md",
        "warning not_encrypted",
        "  SqsManagedSseEnabled: true",
    ):
        assert line in answer["message"].split("\n")
    answer = ask(request(QUEUE, {**given, "VisibilityTimeout": "90"}), ignores=("not_encrypted",))
    assert answer["hookStatus"] == "SUCCESS"
    assert "not_encrypted" not in answer["message"]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(
    "event",
    [
        request(QUEUE, {**SLOW, "VisibilityTimeout": 30}, "DELETE"),
        request("AWS::S3::Bucket", {**SLOW, "VisibilityTimeout": 30}),
        request("STACK", None),
        request([QUEUE], SLOW),
        request(QUEUE, {}, "SOMETHING"),
        {},
        [],
        None,
        {"requestData": [], "clientRequestToken": {"a": 1}},
    ],
)
def test_template_hook_passes_deletions_other_resource_types_and_malformed_requests(
    ask: Ask, event: Any, fails: bool
) -> None:
    assert ask(event, fails=fails)["hookStatus"] == "SUCCESS"


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(("target", "queues"), [(POLICY, "Queues"), (INLINE, "Queue")])
def test_template_hook_reports_a_public_queue_policy_for_each_queue_the_policy_names(
    ask: Ask, target: str, queues: str, as_text: bool
) -> None:
    document: Any = a_policy(statement())["PolicyDocument"]
    given = {"PolicyDocument": json.dumps(document) if as_text else document}
    given[queues] = URL if queues == "Queue" else [URL, f"{URL}-2"]
    message = ask(request(target, given, name="Access"))["message"]
    assert message.startswith("Mendq: 2 findings in Access")
    assert "warning policy_is_public" in message
    assert f'"Resource": "{ARN}", "Condition": {{"Bool": {{"aws:SecureTransport"' in message
    assert "# add to the Statement of Access\n" in message
    assert "AccessOf" not in message, "no name that the template does not have"
    denial = statement(Effect="Deny", Action="sqs:*")
    denial["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    mine = statement(Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:role/orders"})
    assert ask(request(POLICY, a_policy(mine, denial)))["hookStatus"] == "SUCCESS"


@pytest.mark.parametrize(("target", "properties", "undecided"), GIVEN["undecided"])
def test_template_hook_passes_a_resource_with_unknown_values_and_lists_undecided_checks(
    ask: Ask, target: str, properties: Any, undecided: str
) -> None:
    answer = ask(request(target, properties), fails=True)
    assert answer["hookStatus"] == "SUCCESS"
    assert undecided in answer["message"].partition("not decided: ")[2].split(", ")


def nested(depth: int) -> Any:
    found: Any = {}
    for _ in range(depth):
        found = {"a": [found]}
    return found


UNFIT = {
    "no properties": None,
    "a list": [1],
    "a text": "x",
    "deep": nested(400),
    "long": {"QueueName": "x" * 8_000_000},
    "many": {"Tags": [{}] * MAXIMUM_WORK_STEPS},
    "keys": {f"k{n}": n for n in range(MAXIMUM_WORK_STEPS // 4)},
    "many queues": a_policy(statement(), queues=[f"{URL}{n}" for n in range(3_000)]),
    "each with a policy": a_policy(
        *[statement(Sid="x" * 5_000)] * 20, queues=[f"{URL}{n}" for n in range(1_000)]
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_template_hook_passes_a_resource_it_cannot_judge_unless_set_to_fail_deployments(
    ask: Ask, name: str
) -> None:
    """By the steps that it counts: a clock would say of this machine alone."""
    event = request(POLICY if "Queues" in (UNFIT[name] or {}) else QUEUE, UNFIT[name])
    answer = ask(event)
    assert answer["hookStatus"] == "SUCCESS"
    assert answer["message"].startswith("Mendq: could not be judged: ")
    assert ask(event, fails=True) == {
        **answer,
        "hookStatus": "FAILED",
        "errorCode": "InternalFailure",
    }


def test_template_hook_reports_its_own_exception_by_type_without_the_template_text(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise KeyError("a secret of the template")

    monkeypatch.setattr(template_hook, "check_proposed_resource", broken)
    answer = ask(request(QUEUE, {}), fails=True)
    assert (answer["errorCode"], answer["message"][-8:]) == ("InternalFailure", "KeyError")
    assert ask(request(QUEUE, {}))["hookStatus"] == "SUCCESS"


def test_template_hook_message_cannot_be_forged_by_line_breaks_in_template_text(ask: Ask) -> None:
    hostile = "x\nerror policy_is_public\r\u202e\x1b[2J https://evil.example/ \u00e9" * 3
    tags = [{"Key": "mendq", "Value": hostile}, {"Key": hostile, "Value": hostile}]
    given = {"QueueName": hostile, "KmsMasterKeyId": hostile, "Tags": tags, hostile: hostile}
    message = ask(request(QUEUE, given, name=f"Orders\n{hostile}"))["message"]
    assert message.startswith("Mendq: 1 finding in Resource")
    assert "error policy_is_public" not in message.split("\n")
    acts = [f"sqs:{hostile}{n}" for n in range(9)]
    answer = ask(request(POLICY, a_policy(statement(Action=acts)), name="A" * 300))
    assert answer["message"].startswith("Mendq: 2 findings in Resource")
    assert "error policy_is_public" not in answer["message"].split("\n")


def test_template_hook_judges_the_largest_queue_and_policy_within_a_fifth_of_its_step_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SQS takes a policy of 8 KB and 50 tags: what anybody writes is far from the bound."""
    mine = {"AWS": [f"arn:aws:iam::{ACCOUNT}:role/orders-{n}" for n in range(20)]}
    where = DeployTarget(ACCOUNT, "us-east-1")
    monkeypatch.setattr(proposed, "MAXIMUM_WORK_STEPS", MAXIMUM_WORK_STEPS // 5)
    most = a_policy(*[statement(Principal=mine)] * 7, queues=[f"{URL}{n}" for n in range(3)])
    tags = [{"Key": f"{n}" * 60, "Value": "x" * 256} for n in range(50)]
    for target, given in ((POLICY, most), (QUEUE, {**SLOW, "Tags": tags})):
        assert check_proposed_resource(target, "Orders", given, where).logical_id == "Orders"
