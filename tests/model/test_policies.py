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


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}, {"AWS": [WORKER, "*"]}])
def test_statement_is_for_everybody_for_each_spelling_of_all_principals(principal: object) -> None:
    assert _read_only_statement(Principal=principal).is_for_everybody
    assert ALL_PRINCIPALS in _read_only_statement(Principal=principal).principals["AWS"]
    assert not _read_only_statement().is_for_everybody


def test_statement_with_not_principal_not_action_or_not_resource_is_marked_as_negated() -> None:
    negated = {
        "Sid": "Guard",
        "Effect": "Deny",
        "NotPrincipal": {"AWS": WORKER},
        "NotAction": "sqs:SendMessage",
        "NotResource": QUEUE,
    }
    (statement,) = parse_statements(json.dumps({"Statement": negated})) or ()
    assert statement.negated_elements == {"Principal", "Action", "Resource"}
    assert (statement.allows, statement.sid) == (False, "Guard")


def test_boolean_condition_value_is_read_as_text() -> None:
    found = _read_only_statement(Condition={"Bool": {"aws:SecureTransport": False}})
    assert found.conditions == {"Bool": {"aws:SecureTransport": ("false",)}}


@pytest.mark.parametrize("text", table("unreadable policies"))
def test_policy_with_any_invalid_statement_or_of_too_large_size_is_unreadable(text: str) -> None:
    assert parse_statements(text) is None
    assert parse_statements("") == (), "no policy, no statement"
    for endless in ("[" * 100_000, '{"Statement": []}' + " " * 30_000):
        assert parse_statements(endless) is None


JSON = any_json("Statement", "Effect", "Allow", "Action", "Principal", "Condition", "*")


@given(st.text(max_size=200) | JSON.map(json.dumps))
def test_parse_statements_never_raises_for_any_text(text: str) -> None:
    statements = parse_statements(text)
    if statements is not None:
        assert all(isinstance(statement, Statement) for statement in statements)
