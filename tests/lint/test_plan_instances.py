"""Instances of `count` and `for_each` in a Terraform plan, and the blocks of its mappings."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, lint
from mendq.lint.values import DeployTarget
from tests.lint.plans import UNKNOWN, make_block, make_change, make_new_queue, make_plan

LONG_RETENTION = {"message_retention_seconds": 1_209_600}
UNKNOWN_MAPPING = ("event_source_arn", "function_name")
FUNCTION = make_change("aws_lambda_function.bill", {"function_name": "b", "timeout": 5}, ("arn",))


def _lint(*changes: dict[str, Any], root: dict[str, Any]) -> LintResult:
    return lint(read_template(make_plan(*changes, root=root)), "plan", DeployTarget())


def _list_pairs(result: LintResult, symptom: str) -> list[str]:
    return sorted(item.resource for item in result.findings if item.symptom == symptom)


def _lint_keyed_dlqs(references: Any, *, dlq_indices: tuple[str, ...], index: str) -> LintResult:
    """Lint a queue with an index whose redrive policy has these references."""
    queue = make_new_queue(f"aws_sqs_queue.q{index}", redrive_policy=UNKNOWN)
    dlqs = [
        make_new_queue(f"aws_sqs_queue.dlq{dlq_index}", message_retention_seconds=60)
        for dlq_index in dlq_indices
    ]
    blocks = [
        make_block("aws_sqs_queue.q", redrive_policy=references),
        make_block("aws_sqs_queue.dlq"),
    ]
    return _lint(queue, *dlqs, root={"resources": blocks})


@pytest.mark.parametrize(
    ("references", "dlq_indices", "index"),
    [
        (["aws_sqs_queue.dlq", "each.key"], ('["b"]',), '["a"]'),
        (["aws_sqs_queue.dlq", "each.value"], ('["a"]',), '["a"]'),
        (["aws_sqs_queue.dlq", "each.key", "var.x"], ('["a"]',), '["a"]'),
        (["aws_sqs_queue.dlq", "count.index"], ("[1]",), "[0]"),
        (["aws_sqs_queue.dlq", "each.key"], ("",), ""),
        (["aws_sqs_queue.dlq"], ("[0]", "[1]"), "[0]"),
        (['aws_sqs_queue.dlq["b"].arn', 'aws_sqs_queue.dlq["b"]'], ('["a"]',), '["a"]'),
        (["aws_sqs_queue.dlq[1].arn", "aws_sqs_queue.dlq[1]"], ("[0]",), "[0]"),
        (["aws_sqs_queue.dlq[0].url", "aws_sqs_queue.dlq[0]"], ("[0]",), "[0]"),
        (["aws_sqs_queue.dlq[0].arn.x", "aws_sqs_queue.dlq[0]"], ("[0]",), "[0]"),
    ],
)
def test_plan_reference_to_an_instance_that_is_not_certain_leaves_the_dlq_undecided(
    references: Any, dlq_indices: tuple[str, ...], index: str
) -> None:
    result = _lint_keyed_dlqs(references, dlq_indices=dlq_indices, index=index)
    assert _list_pairs(result, "dlq_retention_too_short") == []
    (place,) = result.not_judged
    assert place.path == f"aws_sqs_queue.q{index}.redrive_policy"


@pytest.mark.parametrize(
    ("references", "dlq_indices", "index"),
    [
        (["aws_sqs_queue.dlq", "each.key"], ('["a"]', '["b"]'), '["a"]'),
        (["aws_sqs_queue.dlq", "each.key"], ('["a.b/c"]', '["b"]'), '["a.b/c"]'),
        (["aws_sqs_queue.dlq", "count.index"], ("[0]", "[1]"), "[1]"),
        (["aws_sqs_queue.dlq[1].arn", "aws_sqs_queue.dlq[1]"], ("[0]", "[1]"), "[0]"),
        (['aws_sqs_queue.dlq["b"].arn', 'aws_sqs_queue.dlq["b"]'], ('["a"]', '["b"]'), '["a"]'),
        (["aws_sqs_queue.dlq"], ("[0]",), ""),
        (["aws_sqs_queue.dlq.arn", "aws_sqs_queue.dlq"], ("",), '["a"]'),
    ],
)
def test_plan_follows_a_reference_to_the_instance_of_the_same_or_a_written_index(
    references: Any, dlq_indices: tuple[str, ...], index: str
) -> None:
    result = _lint_keyed_dlqs(references, dlq_indices=dlq_indices, index=index)
    (finding,) = [item for item in result.findings if item.symptom == "dlq_retention_too_short"]
    assert finding.resource.startswith("aws_sqs_queue.dlq")


def _make_queue_module(queue: str = "aws_sqs_queue.this") -> dict[str, Any]:
    expression = {"references": [f"{queue}.arn", queue]}
    return {
        "resources": [make_block("aws_sqs_queue.this")],
        "outputs": {"arn": {"expression": expression}},
    }


def _lint_module_instances(references: list[str]) -> LintResult:
    """Lint two instances of a module with a queue, and a mapping that reads one of them."""
    changes = [
        make_new_queue(f'module.m["{key}"].aws_sqs_queue.this', visibility_timeout_seconds=30)
        for key in "ab"
    ]
    mapping = make_change(
        'aws_lambda_event_source_mapping.r["b"]', {"batch_size": 1}, UNKNOWN_MAPPING
    )
    block = make_block(
        "aws_lambda_event_source_mapping.r",
        event_source_arn=references,
        function_name=["aws_lambda_function.bill.arn", "aws_lambda_function.bill"],
    )
    root = {"resources": [block], "module_calls": {"m": {"module": _make_queue_module()}}}
    return _lint(*changes, FUNCTION, mapping, root=root)


def test_plan_follows_an_output_of_one_instance_of_a_module() -> None:
    result = _lint_module_instances(['module.m["b"].arn', 'module.m["b"]', "module.m"])
    assert _list_pairs(result, "dlq_missing") == ['module.m["b"].aws_sqs_queue.this']


@pytest.mark.parametrize(
    "references", [["module.m", "each.key"], ["module.m"], ['module.m["c"].arn', 'module.m["c"]']]
)
def test_plan_reference_to_an_unknown_instance_of_a_module_finds_no_consumer(
    references: list[str],
) -> None:
    result = _lint_module_instances(references)
    assert _list_pairs(result, "dlq_missing") == []
    assert [place.path for place in result.not_judged] == ['aws_lambda_event_source_mapping.r["b"]']


def test_plan_follows_references_between_resources_of_the_same_module_instance() -> None:
    changes = []
    for key in "ab":
        changes += [
            make_new_queue(
                f'module.m["{key}"].aws_sqs_queue.q',
                redrive_policy=UNKNOWN,
                message_retention_seconds=86_400,
            ),
            make_new_queue(
                f'module.m["{key}"].aws_sqs_queue.dlq',
                message_retention_seconds=1_209_600 if key == "a" else 60,
            ),
        ]
    blocks = [
        make_block("aws_sqs_queue.q", redrive_policy=["aws_sqs_queue.dlq.arn"]),
        make_block("aws_sqs_queue.dlq"),
    ]
    root = {"module_calls": {"m": {"module": {"resources": blocks}}}}
    result = _lint(*changes, root=root)
    assert _list_pairs(result, "dlq_retention_too_short") == ['module.m["b"].aws_sqs_queue.dlq']


KEYS = ['["a/b"]', '["a_b"]', '["a-b"]', "[0]", '["0x"]', ""]


def test_plan_remedies_of_several_instances_declare_resources_of_different_names() -> None:
    changes = [make_new_queue(f"aws_sqs_queue.q{key}") for key in KEYS]
    taken = make_new_queue("aws_sqs_queue.qPolicy")
    result = _lint(*changes, taken, root={"resources": [make_block("aws_sqs_queue.q")]})
    declarations = [
        finding.remedy[0] for finding in result.findings if finding.symptom == "tls_not_enforced"
    ]
    assert len(set(declarations)) == len(declarations) == len(KEYS)
    assert 'resource "aws_sqs_queue_policy" "q_a_bPolicy" {' in declarations
    assert 'resource "aws_sqs_queue_policy" "qPolicy" {' not in declarations, "it is taken"


def _lint_pollers(block: Any, unknown: Any) -> list[str]:
    """Lint a mapping with a `provisioned_poller_config` block; return what is not judged."""
    queue = make_new_queue("aws_sqs_queue.q", **LONG_RETENTION)
    after = {"batch_size": 1, "provisioned_poller_config": [{}]}
    mapping = make_change("aws_lambda_event_source_mapping.r", after, UNKNOWN_MAPPING)
    mapping["change"]["after_unknown"]["provisioned_poller_config"] = unknown
    resource = make_block(
        "aws_lambda_event_source_mapping.r",
        event_source_arn=["aws_sqs_queue.q.arn"],
        function_name=["aws_lambda_function.bill.arn"],
    )
    resource["expressions"]["provisioned_poller_config"] = block
    root = {"resources": [resource, make_block("aws_sqs_queue.q")]}
    return [place.because for place in _lint(queue, FUNCTION, mapping, root=root).not_judged]


COMPUTED = [{"minimum_pollers": True, "maximum_pollers": True}]


@pytest.mark.parametrize("block", [[{}], [{"minimum_pollers": {"references": ["var.n"]}}]])
def test_plan_leaves_only_the_settings_that_a_block_has_undecided(block: Any) -> None:
    not_judged = _lint_pollers(block, COMPUTED)
    assert len(not_judged) == len(block[0])


@pytest.mark.parametrize("unknown", [COMPUTED, [True], [{}], True])
def test_plan_takes_an_empty_block_at_the_defaults_of_aws(unknown: Any) -> None:
    assert _lint_pollers([{}], unknown) == []


def _lint_each_value(
    for_each: list[str], *, keys: tuple[str, ...] = ("a",), attribute: str = ".arn"
) -> LintResult:
    """Lint mappings that go over queues, and read `each.value`."""
    queues = [
        make_new_queue(f'aws_sqs_queue.q["{key}"]', visibility_timeout_seconds=30) for key in keys
    ]
    mapping = make_change(
        'aws_lambda_event_source_mapping.r["a"]', {"batch_size": 1}, UNKNOWN_MAPPING
    )
    block = make_block(
        "aws_lambda_event_source_mapping.r",
        event_source_arn=[f"each.value{attribute}", "each.value"],
        function_name=["aws_lambda_function.bill.arn", "aws_lambda_function.bill"],
    )
    block["for_each_expression"] = {"references": for_each}
    queue_block = make_block("aws_sqs_queue.q")
    return _lint(*queues, FUNCTION, mapping, root={"resources": [queue_block, block]})


@pytest.mark.parametrize("keys", [("a",), ("a", "b")])
def test_plan_follows_each_value_of_a_resource_that_goes_over_another_one(
    keys: tuple[str, ...],
) -> None:
    result = _lint_each_value(["aws_sqs_queue.q"], keys=keys)
    assert _list_pairs(result, "dlq_missing") == ['aws_sqs_queue.q["a"]']


@pytest.mark.parametrize(
    ("for_each", "keys"),
    [
        (["aws_sqs_queue.q"], ("b",)),
        (["local.queues"], ("a",)),
        (["aws_sqs_queue.q", "var.x"], ("a",)),
        ([], ("a",)),
    ],
)
def test_plan_each_value_of_what_is_not_certain_finds_no_consumer(
    for_each: list[str], keys: tuple[str, ...]
) -> None:
    result = _lint_each_value(for_each, keys=keys)
    assert _list_pairs(result, "dlq_missing") == []
    assert [place.path for place in result.not_judged] == ['aws_lambda_event_source_mapping.r["a"]']


def test_plan_with_a_number_of_thousands_of_digits_is_read() -> None:
    queue = make_new_queue("aws_sqs_queue.q", visibility_timeout_seconds=30)
    content = make_plan(queue, root={"resources": [make_block("aws_sqs_queue.q")]})
    changed = content.replace(b"30", b"9" * 5_000, 1)
    assert len(changed) > 5_000
    assert lint(read_template(changed), "plan", DeployTarget()).queues == 1
