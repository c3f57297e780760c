"""Which policies let anybody in: AWS's meaning of public, near misses first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.access.policy_is_public import POLICY_IS_PUBLIC
from mendq.catalogue.examples import ROLE_ARN, STANDARD_ARN, standard_queue
from mendq.model.policy import list_public_statements
from tests.catalogue.asking import detect_fault, read_test_data
from tests.catalogue.asking import policy_of as policy

OPEN: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": "*",
    "Action": "sqs:SendMessage",
    "Resource": STANDARD_ARN,
}
SHUT: dict[str, Any] = {**OPEN, "Effect": "Deny", "Action": "sqs:*"}
TABLES = read_test_data("conditions")


def public(*statements: object) -> list[int]:
    return [number for number, _ in list_public_statements(policy(*statements), STANDARD_ARN)]


@pytest.mark.parametrize(("operator", "key", "value"), TABLES["narrow"])
def test_a_condition_that_names_somebody_is_enough(operator: str, key: str, value: Any) -> None:
    assert public({**OPEN, "Condition": {operator: {key: value}}}) == []
    more = {"Bool": {"aws:SecureTransport": "true"}, operator: {key: value}}
    assert public({**OPEN, "Condition": more}) == []


@pytest.mark.parametrize(("operator", "key", "value"), TABLES["narrow nobody"])
def test_a_condition_that_names_nobody_is_not(operator: str, key: str, value: Any) -> None:
    assert public({**OPEN, "Condition": {operator: {key: value}}}) == [1]


@pytest.mark.parametrize("denial", TABLES["shuts"])
def test_a_deny_of_all_others_shuts_what_is_open(denial: dict[str, Any]) -> None:
    assert public(OPEN, {**SHUT, **denial}) == []
    assert public({**SHUT, **denial}, OPEN) == []


@pytest.mark.parametrize("denial", TABLES["leaves open"])
def test_a_deny_of_a_few_leaves_it_open(denial: dict[str, Any]) -> None:
    assert public(OPEN, {**SHUT, **denial}) == [1]


def test_who_everybody_is() -> None:
    for principal in ("*", {"AWS": "*"}, {"AWS": [ROLE_ARN, "*"]}):
        assert public({**OPEN, "Principal": principal}) == [1]
    for one in ({"AWS": ROLE_ARN}, {"Service": "sns.amazonaws.com"}, {"AWS": "210987654321"}):
        assert public({**OPEN, "Principal": one}) == []
    negated_elements = {name: each for name, each in OPEN.items() if name != "Principal"}
    assert public({**negated_elements, "NotPrincipal": {"AWS": ROLE_ARN}}) == [1]
    assert public({**SHUT, "Action": "*"}) == []


def test_what_is_about_another_queue_or_unreadable_says_nothing() -> None:
    assert public({**OPEN, "Resource": f"{STANDARD_ARN}-2"}) == []
    assert public({**OPEN, "Resource": "arn:aws:sqs:*:*:ord*"}) == [1]
    for text in ("", "no policy", policy(OPEN, {"Effect": "Maybe"})):
        assert list_public_statements(text, STANDARD_ARN) == ()


def test_it_says_which_statement_lets_anybody_do_what() -> None:
    several = [*("sqs:A", "sqs:B", "sqs:C"), "sqs:\nD", 'x" y']
    shut = {**OPEN, "Principal": {"AWS": ROLE_ARN}}
    text = policy(shut, {**OPEN, "Action": several}, OPEN)
    found = detect_fault(POLICY_IS_PUBLIC, standard_queue(Policy=text))
    assert found is not None
    assert found.found.startswith("statement 2 of its policy lets anybody in the world call sqs:A")
    assert "and 2 more, and no condition" in found.found
    assert "\n" not in found.found


OPERATORS = st.sampled_from([each[0] for each in TABLES["narrow"] + TABLES["narrow nobody"]])
KEYS = st.sampled_from([each[1] for each in TABLES["narrow"] + TABLES["narrow nobody"]])
VALUES = st.sampled_from(
    [each[2] for each in TABLES["narrow"] + TABLES["narrow nobody"] if isinstance(each[2], str)]
)
CONDITIONS = st.dictionaries(OPERATORS, st.dictionaries(KEYS, VALUES, min_size=1), max_size=3)
EFFECTS = st.sampled_from(("Allow", "Deny"))
WHO = st.sampled_from(("*", {"AWS": "*"}, {"AWS": ROLE_ARN}))
STATEMENTS = st.lists(
    st.builds(
        lambda effect, who, condition: {
            **OPEN,
            "Effect": effect,
            "Principal": who,
            "Condition": condition,
        },
        EFFECTS,
        WHO,
        CONDITIONS,
    ),
    max_size=4,
)


@given(STATEMENTS, CONDITIONS)
def test_more_conditions_never_open_and_more_denials_never_either(
    statements: list[Any], condition: dict[str, Any]
) -> None:
    found = public(*statements)
    assert all(
        statements[number - 1]["Effect"] == "Allow"
        and "*" in json.dumps(statements[number - 1]["Principal"])
        for number in found
    )
    denied = [*statements, {**SHUT, "Condition": condition}]
    assert {*public(*denied)} <= {*found}
    narrowed = [{**each, "Condition": {**each["Condition"], **condition}} for each in statements]
    of_grants = [each for each in narrowed if each["Effect"] == "Allow"]
    kept = [each for each in statements if each["Effect"] == "Allow"]
    if not any(set(each["Condition"]) & set(condition) for each in kept):
        assert {*public(*of_grants)} <= {*public(*kept)}


@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=20), st.text(max_size=20))
def test_whatever_stands_in_a_condition_it_answers(
    values: list[str], operator: str, key: str
) -> None:
    for how in (operator, "StringLike", "IpAddress", "ArnLike"):
        for what in (key, "aws:SourceArn", "aws:SourceIp", "aws:UserId"):
            assert public({**OPEN, "Condition": {how: {what: values}}}) in ([], [1])
