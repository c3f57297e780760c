from __future__ import annotations

from tests.infra.synthesized import template_of


def test_the_case_store_is_on_demand_restorable_and_outlives_the_stack() -> None:
    (table,) = template_of("default").all("AWS::DynamoDB::Table").values()
    properties = table["Properties"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert "TableName" not in properties
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_the_keys_and_the_expiry_are_those_that_the_case_store_writes() -> None:
    table = template_of("default").only("AWS::DynamoDB::Table")
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    assert types == {"pk": "S", "sk": "S", "open": "S", "due_at": "N"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


def test_open_cases_are_indexed_by_when_they_are_due() -> None:
    table = template_of("default").only("AWS::DynamoDB::Table")
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "open_cases"
    assert [each["AttributeName"] for each in index["KeySchema"]] == ["open", "due_at"]
    assert set(index["Projection"]["NonKeyAttributes"]) == {
        "case_id",
        "symptom",
        "state",
        "opened_at",
    }
