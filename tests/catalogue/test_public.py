"""Test which queue policies are public in AWS's sense."""

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
DENY_ALL: dict[str, Any] = {**OPEN, "Effect": "Deny", "Action": "sqs:*"}
TABLES = read_test_data("conditions")


def list_public(*statements: object) -> list[int]:
    return [number for number, _ in list_public_statements(policy(*statements), STANDARD_ARN)]


@pytest.mark.parametrize(("operator", "key", "value"), TABLES["narrow"])
def test_allow_for_everybody_is_not_public_with_a_condition_that_names_callers(
    operator: str, key: str, value: Any
) -> None:
    assert list_public({**OPEN, "Condition": {operator: {key: value}}}) == []
    more = {"Bool": {"aws:SecureTransport": "true"}, operator: {key: value}}
    assert list_public({**OPEN, "Condition": more}) == []


@pytest.mark.parametrize(("operator", "key", "value"), TABLES["narrow nobody"])
def test_allow_for_everybody_is_public_with_a_condition_that_names_no_caller(
    operator: str, key: str, value: Any
) -> None:
    assert list_public({**OPEN, "Condition": {operator: {key: value}}}) == [1]


@pytest.mark.parametrize("denial", TABLES["shuts"])
def test_policy_is_not_public_if_a_deny_covers_all_other_callers(denial: dict[str, Any]) -> None:
    assert list_public(OPEN, {**DENY_ALL, **denial}) == []
    assert list_public({**DENY_ALL, **denial}, OPEN) == []


@pytest.mark.parametrize("denial", TABLES["leaves open"])
def test_policy_is_public_if_a_deny_covers_only_some_callers(denial: dict[str, Any]) -> None:
    assert list_public(OPEN, {**DENY_ALL, **denial}) == [1]


NOT_PRINCIPAL_OPEN = {
    **{name: value for name, value in OPEN.items() if name != "Principal"},
    "NotPrincipal": {"AWS": ROLE_ARN},
}


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}, {"AWS": [ROLE_ARN, "*"]}])
def test_statement_is_public_for_a_star_as_principal_in_any_spelling(principal: object) -> None:
    assert list_public({**OPEN, "Principal": principal}) == [1]


def test_statement_that_allows_all_but_one_principal_is_public() -> None:
    assert list_public(NOT_PRINCIPAL_OPEN) == [1]


@pytest.mark.parametrize(
    "principal", [{"AWS": ROLE_ARN}, {"Service": "sns.amazonaws.com"}, {"AWS": "210987654321"}]
)
def test_statement_for_a_role_a_service_or_an_account_is_not_public(principal: object) -> None:
    assert list_public({**OPEN, "Principal": principal}) == []


def test_statement_that_denies_everybody_is_not_public() -> None:
    assert list_public({**DENY_ALL, "Action": "*"}) == []


@pytest.mark.parametrize(
    ("resource", "numbers"), [(f"{STANDARD_ARN}-2", []), ("arn:aws:sqs:*:*:ord*", [1])]
)
def test_statement_is_public_only_if_its_resource_pattern_matches_the_queue(
    resource: str, numbers: list[int]
) -> None:
    assert list_public({**OPEN, "Resource": resource}) == numbers


@pytest.mark.parametrize("text", ["", "no policy", policy(OPEN, {"Effect": "Maybe"})])
def test_missing_or_unreadable_policy_has_no_public_statement(text: str) -> None:
    assert list_public_statements(text, STANDARD_ARN) == ()


def test_public_policy_fault_names_the_first_public_statement_and_actions_without_line_breaks() -> (
    None
):
    several = ["sqs:A", "sqs:B", "sqs:C", "sqs:\nD", 'x" y']
    not_public = {**OPEN, "Principal": {"AWS": ROLE_ARN}}
    text = policy(not_public, {**OPEN, "Action": several}, OPEN)
    found = detect_fault(POLICY_IS_PUBLIC, standard_queue(Policy=text))
    assert found is not None
    assert found.found.startswith("statement 2 of its policy lets anybody in the world call sqs:A")
    assert "and 2 more, and no condition" in found.found
    assert "\n" not in found.found


CONDITION_ROWS = TABLES["narrow"] + TABLES["narrow nobody"]
OPERATORS = st.sampled_from([operator for operator, _, _ in CONDITION_ROWS])
KEYS = st.sampled_from([key for _, key, _ in CONDITION_ROWS])
VALUES = st.sampled_from([value for _, _, value in CONDITION_ROWS if isinstance(value, str)])
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


@given(STATEMENTS)
def test_every_public_statement_allows_calls_to_everybody(statements: list[Any]) -> None:
    for number in list_public(*statements):
        statement = statements[number - 1]
        assert statement["Effect"] == "Allow"
        assert "*" in json.dumps(statement["Principal"])


@given(STATEMENTS, CONDITIONS)
def test_adding_conditions_or_denials_never_makes_a_policy_public(
    statements: list[Any], condition: dict[str, Any]
) -> None:
    numbers = set(list_public(*statements))
    denied = [*statements, {**DENY_ALL, "Condition": condition}]
    assert set(list_public(*denied)) <= numbers
    allows = [statement for statement in statements if statement["Effect"] == "Allow"]
    if any(set(allow["Condition"]) & set(condition) for allow in allows):
        return  # the new condition would replace one of the statement's own
    narrowed = [{**allow, "Condition": {**allow["Condition"], **condition}} for allow in allows]
    assert set(list_public(*narrowed)) <= set(list_public(*allows))


@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=20), st.text(max_size=20))
def test_public_check_never_raises_for_any_text_in_a_condition(
    values: list[str], operator: str, key: str
) -> None:
    for any_operator in (operator, "StringLike", "IpAddress", "ArnLike"):
        for any_key in (key, "aws:SourceArn", "aws:SourceIp", "aws:UserId"):
            condition = {any_operator: {any_key: values}}
            assert list_public({**OPEN, "Condition": condition}) in ([], [1])
