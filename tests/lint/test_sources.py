"""The findings of `mendq lint` in a template, a cloud assembly and a Terraform plan."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mendq.lint.decode import read_template
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import MAXIMUM_NESTED_LEVELS, NotATemplate
from mendq.lint.terraform import MOST_PLAN_BYTES
from mendq.lint.values import DeployTarget
from tests.lint.builders import make_stack_artifact, write_cloud_assembly
from tests.lint.plans import (
    UNKNOWN,
    make_block,
    make_change,
    make_existing_queue,
    make_new_queue,
    make_plan,
    make_references,
)

EXAMPLES = yaml.safe_load(Path(__file__).with_name("sources.yaml").read_text())
EXAMPLE_BY_TITLE = {example["title"]: example for example in EXAMPLES}
TLS_DENIAL = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
TLS_POLICY = {
    "Statement": [{**TLS_DENIAL, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}]
}
ENVIRONMENT = "aws://123456789012/eu-west-1"


def _lint_content(content: bytes, environment: DeployTarget | None = None) -> LintResult:
    return lint(read_template(content), "it", environment or DeployTarget())


def _make_template(case: dict[str, Any]) -> Any:
    """Return the example's resources without YAML short forms. Each queue gets a TLS policy."""
    text = "Resources:\n" + re.sub("^", "  ", case["cloudformation"], flags=re.MULTILINE)
    root = json.loads(json.dumps(read_template(text.encode()).root))
    resources = root["Resources"].items()
    queues = [name for name, resource in resources if resource["Type"] == "AWS::SQS::Queue"]
    for queue in [] if case.get("as_it_is") else queues:
        properties = {"Queues": [{"Ref": queue}], "PolicyDocument": TLS_POLICY}
        root["Resources"][f"{queue}Tls"] = {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": properties,
        }
    return json.loads(json.dumps(root))


def _make_case_plan(case: dict[str, Any]) -> bytes:
    changes = []
    for address, arguments in case["terraform"].items():
        if not address.startswith("aws_sqs_queue."):
            changes.append(make_change(address, arguments, (), "no-op"))
            continue
        tls = {} if case.get("as_it_is") else {"policy": json.dumps(TLS_POLICY)}
        changes.append(make_existing_queue(address, **{**tls, **arguments}))
    return make_plan(*changes)


def _list_findings(result: LintResult) -> list[tuple[str, ...]]:
    """Return resource, severity, symptom and reason, without Terraform's type in the names."""
    findings = []
    for finding in result.findings:
        texts = (finding.resource, finding.severity, finding.symptom, finding.because)
        findings.append(tuple(re.sub(r"\baws_[a-z_]+\.", "", text) for text in texts))
    return sorted(findings)


@pytest.mark.parametrize("title", EXAMPLE_BY_TITLE)
def test_same_queue_has_the_same_findings_in_template_cloud_assembly_and_terraform_plan(
    tmp_path: Path, title: str
) -> None:
    case = EXAMPLE_BY_TITLE[title]
    root = _make_template(case)
    from_template = _lint_content(
        yaml.safe_dump(root, sort_keys=False).encode(), DeployTarget(*ENVIRONMENT.split("/")[2:])
    )
    out = write_cloud_assembly(
        tmp_path / "cdk.out", {"Shop": make_stack_artifact("Shop.template.json", ENVIRONMENT)}
    )
    (out / "Shop.template.json").write_text(json.dumps(root))
    (source,) = list_template_sources(str(out))
    from_assembly = lint(read_template(source.content), source.file, source.deploy_target)
    from_plan = _lint_content(_make_case_plan(case))
    assert sorted({finding.symptom for finding in from_template.findings}) == case["symptoms"]
    findings = _list_findings(from_template)
    assert _list_findings(from_assembly) == findings
    assert _list_findings(from_plan) == findings
    assert not from_template.not_judged
    assert not from_plan.not_judged
    assert all("aws_" in finding.path and finding.line is None for finding in from_plan.findings)


def _lint_changes(
    *changes: dict[str, Any], root: dict[str, Any]
) -> tuple[set[str], dict[str, set[str]]]:
    """Return the symptoms except TLS, and by place the checks that the place leaves undecided."""
    result = _lint_content(make_plan(*changes, root=root))
    symptoms = {finding.symptom for finding in result.findings} - {"tls_not_enforced"}
    return symptoms, {place.path: set(place.symptoms) for place in result.not_judged}


ORDERS = "aws_sqs_queue.orders"
MAPPING = "aws_lambda_event_source_mapping.reads"
BILL = make_change("aws_lambda_function.bill", {"function_name": "bill", "timeout": 60}, ("arn",))
REFERENCE_ARGUMENTS = ("event_source_arn", "function_name")
SYMPTOMS = {"dlq_missing", "visibility_timeout_too_short"}
LONG_RETENTION = {"message_retention_seconds": 1_209_600}


def _make_mapping_block(*, queue: Any, function: Any = None) -> dict[str, Any]:
    """Return the block of an event source mapping that reads the queue."""
    return make_block(
        MAPPING, event_source_arn=queue, function_name=function or make_references(BILL["address"])
    )


def test_plan_links_a_new_event_source_mapping_to_its_new_queue_by_reference() -> None:
    root = {
        "resources": [
            make_block(ORDERS, name="orders"),
            _make_mapping_block(queue=make_references(ORDERS)),
        ]
    }
    changes = (
        make_new_queue(ORDERS, name="orders"),
        BILL,
        make_change(MAPPING, {"enabled": True, "batch_size": 1}, REFERENCE_ARGUMENTS),
    )
    assert _lint_changes(*changes, root=root) == (SYMPTOMS, {})


def _make_module(*resources: Any, **more: Any) -> dict[str, Any]:
    return {"module": {"resources": list(resources), **more.pop("of_module", {})}, **more}


def test_plan_links_a_mapping_to_its_queue_through_module_variables_and_outputs() -> None:
    queue = _make_module(
        make_block("aws_sqs_queue.this"),
        of_module={
            "outputs": {
                "arn": {"expression": {"references": make_references("aws_sqs_queue.this[0]")}}
            }
        },
    )
    reader = _make_module(
        _make_mapping_block(queue=["var.source"], function="bill"),
        expressions={"source": {"references": make_references("module.queue[0]")}},
    )
    root = {"module_calls": {"queue": queue, "reader": reader}}
    changes = (
        make_new_queue("module.queue[0].aws_sqs_queue.this[0]"),
        BILL,
        make_change(
            f"module.reader.{MAPPING}",
            {"enabled": True, "function_name": "bill", "batch_size": 1},
            REFERENCE_ARGUMENTS[:1],
        ),
    )
    assert _lint_changes(*changes, root=root) == (SYMPTOMS, {})


@pytest.mark.parametrize(
    "references",
    [
        None,
        [],
        [*make_references(ORDERS), *make_references("aws_sqs_queue.other")],
        [*make_references(ORDERS), "var.suffix"],
        ["aws_sqs_queue.orders", "each.key"],
        ["local.queue"],
        ["var.queue"],
        ["module.gone.arn", "module.gone"],
        ["data.aws_sqs_queue.orders.arn"],
        [5, {}],
        "x" * 100_000,
        ["[" * 100_000],
    ],
)
def test_plan_with_an_ambiguous_queue_reference_leaves_the_checks_undecided(
    references: Any,
) -> None:
    root = {"resources": [make_block(ORDERS), _make_mapping_block(queue=references)]}
    changes = (
        make_new_queue(ORDERS, name="orders"),
        BILL,
        make_change(MAPPING, {"enabled": True, "batch_size": 1}, REFERENCE_ARGUMENTS),
    )
    symptoms, not_judged = _lint_changes(*changes, root=root)
    assert not symptoms
    assert set(not_judged) == {MAPPING}
    assert not_judged[MAPPING] >= SYMPTOMS


def test_plan_with_circular_module_references_is_judged_without_endless_loop() -> None:
    """A module passes a variable to itself through its own output."""
    inner: dict[str, Any] = {"outputs": {"a": {"expression": {"references": ["var.a"]}}}}
    calls = {"m": {"module": inner, "expressions": {"a": {"references": ["module.m.a"]}}}}
    root = {"resources": [_make_mapping_block(queue=["module.m.a"])], "module_calls": calls}
    changes = (
        make_new_queue(ORDERS, name="orders"),
        make_change(MAPPING, {"enabled": True, "batch_size": 1}, REFERENCE_ARGUMENTS),
    )
    assert _lint_changes(*changes, root=root)[0] == set()


DEAD = "aws_sqs_queue.dead"
POLICY_RESOURCE = "aws_sqs_queue_redrive_policy.x"
DLQ_SYMPTOMS = {
    *("dlq_missing", "dlq_type_mismatch", "redrive_cycle", "max_receive_count_too_low"),
    *("dlq_retention_too_short", "dlq_source_not_allowed"),
}


def _lint_new_dlq(
    references: Any, *, has_policy_resource: bool
) -> tuple[set[str], dict[str, set[str]]]:
    """Lint a new queue with a new DLQ that keeps messages for a day.

    The redrive policy has these references. It is an argument of the queue or its own resource.
    """
    mapping = make_change(MAPPING, {"enabled": True, "batch_size": 1}, REFERENCE_ARGUMENTS)
    dlq = make_new_queue(DEAD, message_retention_seconds=86_400)
    blocks = [make_block(DEAD), _make_mapping_block(queue=make_references(ORDERS))]
    if not has_policy_resource:
        queue = make_new_queue(ORDERS, visibility_timeout_seconds=360, redrive_policy=UNKNOWN)
        blocks.append(make_block(ORDERS, redrive_policy=references))
        return _lint_changes(queue, dlq, BILL, mapping, root={"resources": blocks})
    queue = make_new_queue(ORDERS, visibility_timeout_seconds=360)
    policy = make_change(POLICY_RESOURCE, {}, ("queue_url", "redrive_policy"))
    queue_url = make_references(ORDERS, "url")
    blocks += [
        make_block(ORDERS),
        make_block(POLICY_RESOURCE, queue_url=queue_url, redrive_policy=references),
    ]
    return _lint_changes(queue, dlq, policy, BILL, mapping, root={"resources": blocks})


@pytest.mark.parametrize("has_policy_resource", [False, True])
def test_plan_links_a_new_dlq_by_reference_and_judges_all_but_max_receive_count(
    has_policy_resource: bool,
) -> None:
    place = f"{POLICY_RESOURCE if has_policy_resource else ORDERS}.redrive_policy"
    count = {place: {"max_receive_count_too_low"}}
    assert _lint_new_dlq(make_references(DEAD), has_policy_resource=has_policy_resource) == (
        {"dlq_retention_too_short"},
        count,
    )


@pytest.mark.parametrize(
    "references",
    [
        [*make_references(DEAD), "var.n"],
        make_references(DEAD, "url"),
        make_references("aws_sqs_queue.x", "redrive_policy"),
        ["local.x"],
    ],
)
def test_plan_with_an_ambiguous_dlq_reference_leaves_every_dlq_check_undecided(
    references: Any,
) -> None:
    undecided = {f"{ORDERS}.redrive_policy": DLQ_SYMPTOMS}
    assert _lint_new_dlq(references, has_policy_resource=False) == (set(), undecided)


def test_plan_leaves_values_known_after_apply_undecided() -> None:
    """If a redrive policy refers to a second resource, it is unknown as a whole until the apply."""
    changes = (
        make_new_queue(ORDERS, redrive_policy=UNKNOWN, visibility_timeout_seconds=UNKNOWN),
        make_new_queue(DEAD, **LONG_RETENTION),
        BILL,
        make_change(MAPPING, {"enabled": True, "batch_size": 1}, REFERENCE_ARGUMENTS),
    )
    blocks = (
        make_block(
            ORDERS,
            redrive_policy=[*make_references(DEAD), "var.count"],
            visibility_timeout_seconds=["var.seconds"],
        ),
        make_block(DEAD),
        _make_mapping_block(queue=make_references(ORDERS)),
    )
    symptoms, not_judged = _lint_changes(*changes, root={"resources": list(blocks)})
    assert not symptoms
    assert "dlq_missing" in not_judged[f"{ORDERS}.redrive_policy"]
    assert "visibility_timeout_too_short" in not_judged[f"{ORDERS}.visibility_timeout_seconds"]
    symptoms, not_judged = _lint_changes(*changes, root={})
    assert not symptoms
    assert f"{ORDERS}.policy" in not_judged, "without the block the arguments are unknown"


def test_plan_with_a_redrive_policy_of_an_unknown_queue_leaves_dlq_missing_undecided() -> None:
    redrive_policy = make_change(
        "aws_sqs_queue_redrive_policy.x", {}, ("queue_url", "redrive_policy")
    )
    changes = (
        make_new_queue(ORDERS),
        BILL,
        make_change(MAPPING, {"enabled": True, "batch_size": 1}, REFERENCE_ARGUMENTS),
    )
    root = {
        "resources": [
            make_block(ORDERS),
            _make_mapping_block(queue=make_references(ORDERS)),
            make_block("aws_sqs_queue_redrive_policy.x", queue_url=["var.url"]),
        ]
    }
    symptoms, not_judged = _lint_changes(*changes, redrive_policy, root=root)
    assert symptoms == {"visibility_timeout_too_short"}
    assert "dlq_missing" in not_judged["aws_sqs_queue_redrive_policy.x.redrive_policy"]


def test_plan_prefers_an_aws_sqs_queue_policy_resource_over_the_computed_policy() -> None:
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
    own = make_change(
        "aws_sqs_queue_policy.x", {"queue_url": url, "policy": json.dumps(TLS_POLICY)}
    )
    result = _lint_content(
        make_plan(make_existing_queue(ORDERS, "orders", policy='{"Statement":[]}'), own)
    )
    assert result.findings == []
    assert result.not_judged == []


def test_plan_ignores_deleted_queues_and_data_sources() -> None:
    deleted = {
        **make_existing_queue(ORDERS, "orders"),
        "change": {"actions": ["delete"], "after": None},
    }
    data = {**make_existing_queue("data.aws_sqs_queue.x", "x"), "mode": "data"}
    assert _lint_content(make_plan(deleted, data)).queues == 0


def test_plan_remedy_names_a_keyed_queue_by_its_address_within_its_own_module() -> None:
    address = 'module.shop["a/b"].aws_sqs_queue.orders["a/b:c"]'
    root = {"module_calls": {"shop": _make_module(make_block(ORDERS))}}
    changes = make_new_queue(address, fifo_queue=True, tags={"mendq:max-processing-seconds": "100"})
    remedies = {
        finding.symptom: finding.remedy
        for finding in _lint_content(make_plan(changes, root=root)).findings
    }
    assert remedies["visibility_timeout_too_short"] == ("visibility_timeout_seconds = 150",)
    first, url, policy, last = remedies["tls_not_enforced"]
    assert first == 'resource "aws_sqs_queue_policy" "orders_a_b_c_e75dPolicy" {'
    assert last == "}"
    assert url == '  queue_url = aws_sqs_queue.orders["a/b:c"].url'
    assert '"Resource": aws_sqs_queue.orders["a/b:c"].arn' in policy


@pytest.mark.parametrize("key", ['a\\"b', "${file(1)}", "é", "a\x1b[2J", 'a"]\n} resource {'])
def test_plan_offers_no_remedy_for_a_for_each_key_that_hcl_cannot_quote(key: str) -> None:
    """Without the characters that HCL cannot quote, the key would name another queue."""
    root = {"resources": [make_block(ORDERS)]}
    linted = _lint_content(make_plan(make_new_queue(f'aws_sqs_queue.orders["{key}"]'), root=root))
    assert [
        finding.remedy for finding in linted.findings if finding.symptom == "tls_not_enforced"
    ] == [()]


def _make_deep_list(levels: int) -> str:
    return "[" * levels + "]" * levels


PLAN_FORMAT = '{"format_version": "1.2", "resource_changes": [%s]}'
DEEP_CHANGE = make_change(ORDERS, {"policy": _make_deep_list(MAXIMUM_NESTED_LEVELS + 5)})
TOO_MANY_CHANGES = {
    f"aws_sqs_queue.q{n}": make_change(f"aws_sqs_queue.q{n}", {}) for n in range(2_001)
}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PLAN_FORMAT % _make_deep_list(100_000), "nested too deep"),
        (PLAN_FORMAT % "1" * 5_000, "no JSON"),
        (PLAN_FORMAT % "" + "x", "no JSON: Extra data"),
        ('{"format_version": "2.0", "resource_changes": []}', "format_version '2.0'"),
        ('{"format_version": {}, "resource_changes": []}', "format_version"),
        ('{"format_version": "1.0", "values": {"root_module": {}}}', "terraform show -json"),
        ('{"format_version": "1.0", "resource_changes": {}}', "terraform show -json"),
        ('{"format_version": "1.0", "resource_changes": []' + " " * MOST_PLAN_BYTES, "jq"),
        (make_plan(DEEP_CHANGE), "nested more than"),
        (make_plan(*TOO_MANY_CHANGES.values()), "more than 2,000"),
        ("PK\x03\x04", "a saved plan"),
    ],
    ids=range(11),
)
def test_terraform_plan_that_is_malformed_or_too_large_is_refused_with_one_line(
    content: str | bytes, says: str
) -> None:
    with pytest.raises(NotATemplate) as refused:
        read_template(content.encode() if isinstance(content, str) else content)
    assert says in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "unexpected", [None, 5, "x", [], {}, [[]], {"a": {"b": 1}}, "\x1b[2J", "${x}"]
)
def test_plan_with_an_unexpected_value_anywhere_is_judged_or_refused_with_one_line(
    unexpected: Any,
) -> None:
    """Put the unexpected value at each place of a sound plan in turn."""
    sound = (
        make_new_queue(ORDERS, name="orders", tags={"a": "b"}),
        make_change(MAPPING, {}, REFERENCE_ARGUMENTS),
    )
    blocks = [make_block(ORDERS), _make_mapping_block(queue=make_references(ORDERS))]
    document = json.loads(make_plan(*sound, root={"resources": blocks}))
    for path in list(_list_paths(document)):
        spoiled = json.loads(json.dumps(document))
        _put(spoiled, path, unexpected)
        try:
            _lint_content(json.dumps(spoiled).encode())
        except NotATemplate as refused:
            assert len(str(refused).splitlines()) == 1  # noqa: PT017 - either way is right


def _list_paths(node: Any) -> Any:
    items: list[Any] = []
    if isinstance(node, dict):
        items = list(node.items())
    elif isinstance(node, list):
        items = list(enumerate(node))
    for key, value in items:
        yield (key,)
        yield from ((key, *rest) for rest in _list_paths(value))


def _put(node: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value


def test_plan_reference_to_a_dlq_instance_outside_the_plan_leaves_its_retention_undecided() -> None:
    """A plan changes with `-target` leaves out other instances."""
    queue = make_new_queue(ORDERS, redrive_policy=UNKNOWN)
    dlq = make_new_queue(f"{DEAD}[1]", message_retention_seconds=86_400)
    blocks = [make_block(ORDERS, redrive_policy=make_references(f"{DEAD}[0]")), make_block(DEAD)]
    _, not_judged = _lint_changes(queue, dlq, root={"resources": blocks})
    assert "dlq_retention_too_short" in not_judged[f"{ORDERS}.redrive_policy"]
