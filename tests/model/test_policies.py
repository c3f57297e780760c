"""Test the reading of queue policies: completely, or as unreadable, and never with an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.policy import ALL_PRINCIPALS, Statement, parse_statements
from tests.model.tables import any_json, table

WORKER = "arn:aws:iam::123456789012:role/orders-worker"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ALLOW = {
    "Effect": "Allow",
    "Principal": {"AWS": WORKER},
    "Action": "sqs:SendMessage",
    "Resource": QUEUE,
}


def _read_only_statement(**over: object) -> Statement:
    (found,) = parse_statements(json.dumps({"Statement": [{**ALLOW, **over}]})) or ()
    return found


def test_policy_element_reads_the_same_as_a_value_or_a_list_of_one_value() -> None:
    listed = _read_only_statement(
        Principal={"AWS": [WORKER]}, Action=["sqs:SendMessage"], Resource=[QUEUE]
    )
    wanted = Statement(True, {"AWS": (WORKER,)}, ("sqs:SendMessage",), (QUEUE,))
    assert listed == _read_only_statement() == wanted
    assert parse_statements(json.dumps({"Statement": ALLOW})) == (wanted,)


@pytest.mark.parametrize(
    ("principal", "is_for_everybody"),
    [("*", True), ({"AWS": "*"}, True), ({"AWS": [WORKER, "*"]}, True), ({"AWS": WORKER}, False)],
)
def test_statement_is_for_everybody_only_if_a_principal_is_a_star(
    principal: object, *, is_for_everybody: bool
) -> None:
    statement = _read_only_statement(Principal=principal)
    assert statement.is_for_everybody is is_for_everybody
    assert (ALL_PRINCIPALS in statement.principals["AWS"]) is is_for_everybody


def test_statement_keeps_its_sid_and_allows_nothing_if_its_effect_is_deny() -> None:
    statement = _read_only_statement(Sid="Guard", Effect="Deny")
    assert (statement.allows, statement.sid) == (False, "Guard")


def test_statement_with_not_principal_not_action_or_not_resource_is_marked_as_negated() -> None:
    negated = {
        "Effect": "Deny",
        "NotPrincipal": {"AWS": WORKER},
        "NotAction": "sqs:SendMessage",
        "NotResource": QUEUE,
    }
    (statement,) = parse_statements(json.dumps({"Statement": negated})) or ()
    assert statement.negated_elements == {"Principal", "Action", "Resource"}


def test_boolean_condition_value_is_read_as_text() -> None:
    found = _read_only_statement(Condition={"Bool": {"aws:SecureTransport": False}})
    assert found.conditions == {"Bool": {"aws:SecureTransport": ("false",)}}


@pytest.mark.parametrize("text", table("unreadable policies"))
def test_policy_with_any_invalid_statement_is_unreadable(text: str) -> None:
    assert parse_statements(text) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deeply nested"),
        pytest.param('{"Statement": []}' + " " * 30_000, id="longer than SQS allows"),
    ],
)
def test_policy_that_is_nested_too_deeply_or_too_long_is_unreadable(text: str) -> None:
    assert parse_statements(text) is None


def test_empty_text_is_a_policy_without_statements() -> None:
    assert parse_statements("") == ()


JSON = any_json("Statement", "Effect", "Allow", "Action", "Principal", "Condition", "*")


@given(st.text(max_size=200) | JSON.map(json.dumps))
def test_parse_statements_never_raises_for_any_text(text: str) -> None:
    statements = parse_statements(text)
    if statements is not None:
        assert all(isinstance(statement, Statement) for statement in statements)
