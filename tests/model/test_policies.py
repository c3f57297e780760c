"""A policy is a person's text: read whole or not at all, and never with an error."""

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


def _only(**over: object) -> Statement:
    (found,) = parse_statements(json.dumps({"Statement": [{**ALLOW, **over}]})) or ()
    return found


def test_one_value_and_a_list_of_one_are_the_same() -> None:
    listed = _only(Principal={"AWS": [WORKER]}, Action=["sqs:SendMessage"], Resource=[QUEUE])
    wanted = Statement(True, {"AWS": (WORKER,)}, ("sqs:SendMessage",), (QUEUE,))
    assert listed == _only() == wanted
    assert parse_statements(json.dumps({"Statement": ALLOW})) == (wanted,)


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}, {"AWS": [WORKER, "*"]}])
def test_everybody_is_spelled_in_two_ways(principal: object) -> None:
    assert _only(Principal=principal).is_for_everybody
    assert ALL_PRINCIPALS in _only(Principal=principal).principals["AWS"]
    assert not _only().is_for_everybody


def test_what_is_given_by_what_it_is_not_is_said() -> None:
    but = {"NotPrincipal": {"AWS": WORKER}, "NotAction": "sqs:SendMessage", "NotResource": QUEUE}
    (statement,) = (
        parse_statements(json.dumps({"Statement": {"Sid": "Guard", "Effect": "Deny", **but}})) or ()
    )
    assert statement.negated_elements == {"Principal", "Action", "Resource"}
    assert (statement.allows, statement.sid) == (False, "Guard")


def test_a_condition_s_value_means_its_text() -> None:
    found = _only(Condition={"Bool": {"aws:SecureTransport": False}})
    assert found.conditions == {"Bool": {"aws:SecureTransport": ("false",)}}


@pytest.mark.parametrize("text", table("unreadable policies"))
def test_what_is_no_policy_is_unreadable_as_a_whole(text: str) -> None:
    assert parse_statements(text) is None
    assert parse_statements("") == (), "no policy, no statement"
    for endless in ("[" * 100_000, '{"Statement": []}' + " " * 30_000):
        assert parse_statements(endless) is None


JSON = any_json("Statement", "Effect", "Allow", "Action", "Principal", "Condition", "*")


@given(st.text(max_size=200) | JSON.map(json.dumps))
def test_no_text_raises(text: str) -> None:
    found = parse_statements(text)
    assert found is None or all(isinstance(each, Statement) for each in found)
