"""Differences between two configurations of a queue."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.model.policy import digest_of_policy
from mendq.notifications.configuration import (
    describe_differences,
    format_policy,
    select_configuration,
    summarize_attribute_value,
)

GOLDEN_DIFFERENCES = json.loads(Path(__file__).with_name("differences.json").read_text())


def policy(*statements: dict[str, Any]) -> dict[str, str]:
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": statements})}


@pytest.mark.parametrize("entry", GOLDEN_DIFFERENCES)
def test_configuration_differences_match_the_golden_file_and_exist_in_both_directions(
    entry: dict[str, Any],
) -> None:
    assert list(describe_differences(entry["known"], entry["now"])) == entry["says"]
    assert bool(describe_differences(entry["now"], entry["known"])) is bool(entry["says"])


@pytest.mark.parametrize(
    ("depth", "begins"), [(600, "RedrivePolicy"), (20_000, "RedrivePolicy: {")]
)
def test_documents_nested_too_deeply_to_parse_are_compared_as_text(depth: int, begins: str) -> None:
    """The depth limit depends on the remaining stack. Near it, either result is right."""
    deep, deeper = ('{"a":' * level + "1" + "}" * level for level in (depth, depth + 1))
    (line,) = describe_differences({"RedrivePolicy": deep}, {"RedrivePolicy": deeper})
    assert line.startswith(begins)


def test_select_configuration_keeps_only_attributes_that_were_set() -> None:
    others = {"QueueArn": "arn", "KmsMasterKeyId": "", "ApproximateNumberOfMessagesDelayed": "0"}
    assert select_configuration({"VisibilityTimeout": "30", **others}) == {
        "VisibilityTimeout": "30"
    }


DOCUMENTS = st.recursive(
    st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(text=st.text(), other=st.text(), more=DOCUMENTS)
def test_document_equals_itself_and_differs_from_one_with_an_added_member(
    text: str, other: str, more: Any
) -> None:
    for name in ("Policy", "RedrivePolicy", "VisibilityTimeout"):
        assert describe_differences({name: json.dumps(more)}, {name: json.dumps(more)}) == ()
    statement = {"Sid": text, "Condition": {other: "x"}}
    wider = {**statement, "Condition": {other: "x", f"{other}+": more}}
    assert describe_differences(policy(statement), policy(wider))
    assert describe_differences(policy(wider), policy(statement))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Policy", policy({}, {})["Policy"], "a policy of 2 statement(s) (sha256 "),
        ("Policy", '{"Statement":', "a policy (sha256 "),
        ("RedriveAllowPolicy", '{"redrivePermission":"denyAll"}', "a policy (sha256 "),
    ],
)
def test_summary_of_a_policy_shows_its_digest_and_the_count_of_its_statements_if_any(
    name: str, text: str, expected: str
) -> None:
    summary = summarize_attribute_value(name, text)
    assert summary.startswith(expected)
    digest = summary.removeprefix(expected).removesuffix(")")
    assert digest
    assert digest_of_policy(text).startswith(digest)
    assert len(summary) < 60


def test_summary_of_a_number_is_the_number_and_of_an_empty_policy_nothing() -> None:
    assert summarize_attribute_value("VisibilityTimeout", "30") == "30"
    assert summarize_attribute_value("Policy", "") == "nothing"


@given(st.text(), st.text())
def test_summaries_of_two_policies_are_equal_only_if_the_policies_are(one: str, other: str) -> None:
    assert (
        summarize_attribute_value("Policy", one) == summarize_attribute_value("Policy", other)
    ) is (one == other)


def test_format_policy_returns_none_for_a_policy_nested_too_deeply_to_write_as_json() -> None:
    """Python 3.11 reads policies that are one or two levels too deep for it to write.

    How deep that is depends on the stack that is left, so every depth is asked. Later versions of
    Python refuse to read them. Whoever shows the value then shows the text instead.
    """
    shown: list[str | None] = []
    for depth in range(1, sys.getrecursionlimit() + 1):
        text = '{"a":' * depth + "1" + "}" * depth
        shown.append(format_policy("Policy", text, 50))
    assert shown[0] == '{"a":1}'
    assert format_policy("Policy", '{"a":' * 100_000 + "1" + "}" * 100_000, 50) is None
    assert {len(text) for text in shown[20:] if text is not None} <= {50, 51}
