"""One queue from three sources shows the same; what a plan does not tell, and hostile plans."""

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
from tests.lint.plans import UNKNOWN, block, change, new_queue, of, plan, queue_there

TABLE = yaml.safe_load(Path(__file__).with_name("sources.yaml").read_text())
CASES = {each["title"]: each for each in TABLE}
DENIES = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
TLS = {"Statement": [{**DENIES, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}]}
HERE = "aws://123456789012/eu-west-1"


def _linted(content: bytes, environment: DeployTarget | None = None) -> LintResult:
    return lint(read_template(content), "it", environment or DeployTarget())


def _template(case: dict[str, Any]) -> Any:
    """The case's resources without short forms, TLS seen to."""
    text = "Resources:\n" + re.sub("^", "  ", case["cloudformation"], flags=re.MULTILINE)
    root = json.loads(json.dumps(read_template(text.encode()).root))
    queues = [k for k, v in root["Resources"].items() if v["Type"] == "AWS::SQS::Queue"]
    for each in [] if case.get("as_it_is") else queues:
        properties = {"Queues": [{"Ref": each}], "PolicyDocument": TLS}
        root["Resources"][f"{each}Tls"] = {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": properties,
        }
    return json.loads(json.dumps(root))


def _plan(case: dict[str, Any]) -> bytes:
    changes = []
    for address, arguments in case["terraform"].items():
        if not address.startswith("aws_sqs_queue."):
            changes.append(change(address, arguments, (), "no-op"))
            continue
        tls = {} if case.get("as_it_is") else {"policy": json.dumps(TLS)}
        changes.append(queue_there(address, **{**tls, **arguments}))
    return plan(*changes)


def _said(result: LintResult) -> list[tuple[str, ...]]:
    """Resource, severity, symptom and reason, with one name for the same resource."""
    every = [(e.resource, e.severity, e.symptom, e.because) for e in result.findings]
    return [tuple(re.sub(r"\baws_[a-z_]+\.", "", text) for text in each) for each in sorted(every)]


@pytest.mark.parametrize("title", CASES)
def test_same_queue_has_the_same_findings_in_template_cloud_assembly_and_terraform_plan(
    tmp_path: Path, title: str
) -> None:
    case = CASES[title]
    root = _template(case)
    written = _linted(yaml.safe_dump(root).encode(), DeployTarget(*HERE.split("/")[2:]))
    out = write_cloud_assembly(
        tmp_path / "cdk.out", {"Shop": make_stack_artifact("Shop.template.json", HERE)}
    )
    (out / "Shop.template.json").write_text(json.dumps(root))
    (source,) = list_template_sources(str(out))
    synthesized = lint(read_template(source.content), source.file, source.deploy_target)
    planned = _linted(_plan(case))
    assert sorted({each.symptom for each in written.findings}) == case["symptoms"]
    assert _said(written) == _said(synthesized) == _said(planned)
    assert not (*written.not_judged, *planned.not_judged)
    assert all("aws_" in each.path and each.line is None for each in planned.findings)


def _judged(*changes: dict[str, Any], root: dict[str, Any]) -> tuple[set[str], dict[str, set[str]]]:
    """The symptoms found but for TLS, and of each place that is not judged what it leaves open."""
    result = _linted(plan(*changes, root=root))
    found = {each.symptom for each in result.findings} - {"tls_not_enforced"}
    return found, {each.path: set(each.symptoms) for each in result.not_judged}


ORDERS, READS = "aws_sqs_queue.orders", "aws_lambda_event_source_mapping.reads"
BILL = change("aws_lambda_function.bill", {"function_name": "bill", "timeout": 60}, ("arn",))
NEW = ("event_source_arn", "function_name")
REMEDIES = {"dlq_missing", "visibility_timeout_too_short"}
KEEPS = {"message_retention_seconds": 1_209_600}


def _reading(*, queue: Any, function: Any = None) -> dict[str, Any]:
    """The block of a mapping that reads the queue."""
    return block(READS, event_source_arn=queue, function_name=function or of(BILL["address"]))


def test_plan_links_a_new_event_source_mapping_to_its_new_queue_by_reference() -> None:
    root = {"resources": [block(ORDERS, name="orders"), _reading(queue=of(ORDERS))]}
    made = new_queue(ORDERS, name="orders"), BILL, change(READS, {"enabled": True}, NEW)
    assert _judged(*made, root=root) == (REMEDIES, {})


def _module(*resources: Any, **more: Any) -> dict[str, Any]:
    return {"module": {"resources": list(resources), **more.pop("of_module", {})}, **more}


def test_plan_links_an_event_source_mapping_to_its_queue_through_module_variables_and_outputs() -> (
    None
):
    queue = _module(
        block("aws_sqs_queue.this"),
        of_module={"outputs": {"arn": {"expression": {"references": of("aws_sqs_queue.this[0]")}}}},
    )
    reader = _module(
        _reading(queue=["var.source"], function="bill"),
        expressions={"source": {"references": of("module.queue[0]")}},
    )
    root = {"module_calls": {"queue": queue, "reader": reader}}
    made = (
        new_queue("module.queue[0].aws_sqs_queue.this[0]"),
        BILL,
        change(f"module.reader.{READS}", {"enabled": True, "function_name": "bill"}, NEW[:1]),
    )
    assert _judged(*made, root=root) == (REMEDIES, {})


@pytest.mark.parametrize(
    "references",
    [
        None,
        [],
        [*of(ORDERS), *of("aws_sqs_queue.other")],
        [*of(ORDERS), "var.suffix"],
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
    root = {"resources": [block(ORDERS), _reading(queue=references)]}
    made = new_queue(ORDERS, name="orders"), BILL, change(READS, {"enabled": True}, NEW)
    found, not_judged = _judged(*made, root=root)
    assert not found
    assert set(not_judged) == {READS}
    assert not_judged[READS] >= REMEDIES


def test_plan_with_circular_module_references_is_judged_without_endless_loop() -> None:
    """A variable that a module hands to itself, an output that is its own."""
    inner: dict[str, Any] = {"outputs": {"a": {"expression": {"references": ["var.a"]}}}}
    calls = {"m": {"module": inner, "expressions": {"a": {"references": ["module.m.a"]}}}}
    root = {"resources": [_reading(queue=["module.m.a"])], "module_calls": calls}
    made = new_queue(ORDERS, name="orders"), change(READS, {"enabled": True}, NEW)
    assert _judged(*made, root=root)[0] == set()


DEAD, BESIDE = "aws_sqs_queue.dead", "aws_sqs_queue_redrive_policy.x"
ABOUT_A_DLQ = {
    *("dlq_missing", "dlq_type_mismatch", "redrive_cycle", "max_receive_count_too_low"),
    *("dlq_retention_too_short", "dlq_source_not_allowed"),
}


def _of_a_new_dlq(references: Any, beside: bool) -> tuple[set[str], dict[str, set[str]]]:
    """A new queue with a new DLQ that keeps messages for a day, known after the apply."""
    named = "redrive_policy"
    own = block(BESIDE, queue_url=of(ORDERS, "url"), redrive_policy=references)
    made = (
        new_queue(ORDERS, visibility_timeout_seconds=360, **({} if beside else {named: UNKNOWN})),
        new_queue(DEAD, message_retention_seconds=86_400),
        *([change(BESIDE, {}, ("queue_url", named))] if beside else []),
        *(BILL, change(READS, {"enabled": True}, NEW)),
    )
    orders = block(ORDERS, **({} if beside else {named: references}))
    blocks = [orders, block(DEAD), _reading(queue=of(ORDERS)), *([own] if beside else [])]
    return _judged(*made, root={"resources": blocks})


@pytest.mark.parametrize("beside", [False, True])
def test_plan_links_a_new_dlq_by_reference_and_judges_all_but_max_receive_count(
    beside: bool,
) -> None:
    place = f"{BESIDE if beside else ORDERS}.redrive_policy"
    count = {place: {"max_receive_count_too_low"}}
    assert _of_a_new_dlq(of(DEAD), beside) == ({"dlq_retention_too_short"}, count)


@pytest.mark.parametrize(
    "references",
    [[*of(DEAD), "var.n"], of(DEAD, "url"), of("aws_sqs_queue.x", "redrive_policy"), ["local.x"]],
)
def test_plan_with_an_ambiguous_dlq_reference_leaves_every_dlq_check_undecided(
    references: Any,
) -> None:
    open_ = {f"{ORDERS}.redrive_policy": ABOUT_A_DLQ}
    assert _of_a_new_dlq(references, beside=False) == (set(), open_)


def test_plan_leaves_values_known_after_apply_undecided() -> None:
    """A redrive policy that names a second resource is known after the apply, all of it."""
    made = (
        new_queue(ORDERS, redrive_policy=UNKNOWN, visibility_timeout_seconds=UNKNOWN),
        new_queue(DEAD, **KEEPS),
        BILL,
        change(READS, {"enabled": True}, NEW),
    )
    blocks = (
        block(
            ORDERS,
            redrive_policy=[*of(DEAD), "var.count"],
            visibility_timeout_seconds=["var.seconds"],
        ),
        block(DEAD),
        _reading(queue=of(ORDERS)),
    )
    found, not_judged = _judged(*made, root={"resources": list(blocks)})
    assert not found
    assert "dlq_missing" in not_judged[f"{ORDERS}.redrive_policy"]
    assert "visibility_timeout_too_short" in not_judged[f"{ORDERS}.visibility_timeout_seconds"]
    blind, open_ = _judged(*made, root={})
    assert not blind
    assert f"{ORDERS}.policy" in open_, "without its block nobody knows what is set"


def test_plan_with_a_redrive_policy_of_an_unknown_queue_leaves_dlq_missing_undecided() -> None:
    beside = change("aws_sqs_queue_redrive_policy.x", {}, ("queue_url", "redrive_policy"))
    made = new_queue(ORDERS), BILL, change(READS, {"enabled": True}, NEW)
    root = {
        "resources": [
            block(ORDERS),
            _reading(queue=of(ORDERS)),
            block("aws_sqs_queue_redrive_policy.x", queue_url=["var.url"]),
        ]
    }
    found, not_judged = _judged(*made, beside, root=root)
    assert found == {"visibility_timeout_too_short"}
    assert "dlq_missing" in not_judged["aws_sqs_queue_redrive_policy.x.redrive_policy"]


def test_plan_prefers_an_aws_sqs_queue_policy_resource_over_the_computed_policy() -> None:
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
    own = change("aws_sqs_queue_policy.x", {"queue_url": url, "policy": json.dumps(TLS)})
    result = _linted(plan(queue_there(ORDERS, "orders", policy='{"Statement":[]}'), own))
    assert (result.findings, result.not_judged) == ([], [])


def test_plan_ignores_deleted_queues_and_data_sources() -> None:
    gone = {**queue_there(ORDERS, "orders"), "change": {"actions": ["delete"], "after": None}}
    data = {**queue_there("data.aws_sqs_queue.x", "x"), "mode": "data"}
    assert _linted(plan(gone, data)).queues == 0


def test_plan_remedy_is_hcl_that_is_valid_in_the_queues_own_module() -> None:
    address = 'module.shop["a/b"].aws_sqs_queue.orders["a/b:c"]'
    root = {"module_calls": {"shop": _module(block(ORDERS))}}
    made = new_queue(address, fifo_queue=True, tags={"mendq:max-processing-seconds": "100"})
    remedies = {each.symptom: each.remedy for each in _linted(plan(made, root=root)).findings}
    assert remedies["visibility_timeout_too_short"] == ("visibility_timeout_seconds = 150",)
    first, url, policy, last = remedies["tls_not_enforced"]
    assert (first, last) == ('resource "aws_sqs_queue_policy" "ordersPolicy" {', "}")
    assert url == '  queue_url = aws_sqs_queue.orders["a/b:c"].url'
    assert '"Resource": aws_sqs_queue.orders["a/b:c"].arn' in policy


@pytest.mark.parametrize("key", ['a\\"b', "${file(1)}", "é", "a\x1b[2J", 'a"]\n} resource {'])
def test_plan_offers_no_remedy_for_a_for_each_key_that_hcl_cannot_quote(key: str) -> None:
    """Without some of its characters it would be the key of another queue."""
    root = {"resources": [block(ORDERS)]}
    linted = _linted(plan(new_queue(f'aws_sqs_queue.orders["{key}"]'), root=root))
    assert [each.remedy for each in linted.findings if each.symptom == "tls_not_enforced"] == [()]


def _deep(levels: int) -> str:
    return "[" * levels + "]" * levels


PLAN = '{"format_version": "1.2", "resource_changes": [%s]}'
HOSTILE = change(ORDERS, {"policy": _deep(MAXIMUM_NESTED_LEVELS + 5)})
FAR = {f"aws_sqs_queue.q{n}": change(f"aws_sqs_queue.q{n}", {}) for n in range(2_001)}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PLAN % _deep(100_000), "nested too deep"),
        (PLAN % "1" * 5_000, "no JSON"),
        (PLAN % "" + "x", "no JSON: Extra data"),
        ('{"format_version": "2.0", "resource_changes": []}', "format_version '2.0'"),
        ('{"format_version": {}, "resource_changes": []}', "format_version"),
        ('{"format_version": "1.0", "values": {"root_module": {}}}', "terraform show -json"),
        ('{"format_version": "1.0", "resource_changes": {}}', "terraform show -json"),
        ('{"format_version": "1.0", "resource_changes": []' + " " * MOST_PLAN_BYTES, "jq"),
        (plan(HOSTILE), "nested more than"),
        (plan(*FAR.values()), "more than 2,000"),
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


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, [[]], {"a": {"b": 1}}, "\x1b[2J", "${x}"])
def test_plan_with_an_unexpected_value_anywhere_is_judged_or_refused_with_one_line(
    odd: Any,
) -> None:
    """Each place in turn holds what nobody expects."""
    sound = new_queue(ORDERS, name="orders", tags={"a": "b"}), change(READS, {}, NEW)
    blocks = [block(ORDERS), _reading(queue=of(ORDERS))]
    document = json.loads(plan(*sound, root={"resources": blocks}))
    for path in list(_paths(document)):
        spoiled = json.loads(json.dumps(document))
        _put(spoiled, path, odd)
        try:
            _linted(json.dumps(spoiled).encode())
        except NotATemplate as refused:
            assert len(str(refused).splitlines()) == 1  # noqa: PT017 - either way is right


def _paths(node: Any) -> Any:
    listed = list(enumerate(node)) if isinstance(node, list) else []
    for key, each in node.items() if isinstance(node, dict) else listed:
        yield (key,)
        yield from ((key, *rest) for rest in _paths(each))


def _put(node: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value


def test_plan_reference_to_a_dlq_instance_outside_the_plan_leaves_its_retention_undecided() -> None:
    """As where a plan has a target."""
    queue = new_queue(ORDERS, redrive_policy=UNKNOWN)
    dlq = new_queue(f"{DEAD}[1]", message_retention_seconds=86_400)
    blocks = [block(ORDERS, redrive_policy=of(f"{DEAD}[0]")), block(DEAD)]
    _, open_ = _judged(queue, dlq, root={"resources": blocks})
    assert "dlq_retention_too_short" in open_[f"{ORDERS}.redrive_policy"]
