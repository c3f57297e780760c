"""A policy is a person's text: read whole or not at all, and never with an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.policy import EVERYBODY, Statement, statements_of

WORKER = "arn:aws:iam::123456789012:role/orders-worker"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ALLOW = {
    "Effect": "Allow",
    "Principal": {"AWS": WORKER},
    "Action": "sqs:SendMessage",
    "Resource": QUEUE,
}


def _read(*statements: object) -> tuple[Statement, ...] | None:
    return statements_of(json.dumps({"Version": "2012-10-17", "Statement": list(statements)}))


def test_one_value_and_a_list_of_one_are_the_same() -> None:
    listed = {
        **ALLOW,
        "Principal": {"AWS": [WORKER]},
        "Action": ["sqs:SendMessage"],
        "Resource": [QUEUE],
    }
    wanted = Statement(
        allows=True,
        principals={"AWS": (WORKER,)},
        actions=("sqs:SendMessage",),
        resources=(QUEUE,),
    )
    assert _read(ALLOW) == _read(listed) == (wanted,)
    assert statements_of(json.dumps({"Statement": ALLOW})) == (wanted,)


def test_everybody_is_spelled_in_two_ways() -> None:
    for principal in ("*", {"AWS": "*"}, {"AWS": [WORKER, "*"]}):
        found = _read({**ALLOW, "Principal": principal})
        assert found is not None
        assert found[0].is_for_everybody
        assert EVERYBODY in found[0].principals["AWS"]
    named = _read(ALLOW)
    assert named is not None
    assert not named[0].is_for_everybody


def test_what_is_given_by_what_it_is_not_is_said() -> None:
    found = _read(
        {
            "Sid": "Guard",
            "Effect": "Deny",
            "NotPrincipal": {"AWS": WORKER},
            "NotAction": "sqs:SendMessage",
            "NotResource": QUEUE,
        }
    )
    assert found is not None
    (statement,) = found
    assert statement.excepting == {"Principal", "Action", "Resource"}
    assert (statement.allows, statement.sid) == (False, "Guard")


def test_a_condition_s_value_means_its_text() -> None:
    found = _read({**ALLOW, "Condition": {"Bool": {"aws:SecureTransport": False}}})
    assert found is not None
    assert found[0].conditions == {"Bool": {"aws:SecureTransport": ("false",)}}


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        "null",
        "{}",
        '{"Statement": "x"}',
        '{"Statement": [{"Effect": "allow"}]}',
        '{"Statement": [{"Effect": "Allow", "Effect": "Deny"}]}',
        '{"Statement": [{"Effect": "Allow", "Principals": "*"}]}',
        '{"Statement": [{"Effect": "Allow", "Action": "*", "NotAction": "*"}]}',
        '{"Statement": [{"Effect": "Allow", "Action": {"a": 1}}]}',
        '{"Statement": [{"Effect": "Allow", "Principal": "arn"}]}',
        '{"Statement": [{"Effect": "Allow", "Condition": {"Bool": "x"}}]}',
        '{"Statement": [{"Effect": "Deny", "Action": [NaN]}]}',
        "[" * 100_000,
        '{"Statement": []}' + " " * 30_000,
    ],
)
def test_what_is_no_policy_is_unreadable(text: str) -> None:
    assert statements_of(text) is None


def test_one_odd_statement_makes_all_of_it_unreadable() -> None:
    assert _read(ALLOW, {"Effect": "Maybe"}) is None


def test_no_policy_has_no_statement() -> None:
    assert statements_of("") == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("Statement", "Effect", "Action", "Principal", "Condition"))
            | st.text(max_size=4),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(st.text(max_size=200) | JSON.map(json.dumps))
def test_no_text_raises(text: str) -> None:
    found = statements_of(text)
    assert found is None or all(isinstance(each, Statement) for each in found)
