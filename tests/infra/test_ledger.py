from __future__ import annotations

from tests.infra.synthesized import template_of


def test_the_ledger_is_on_demand_restorable_and_outlives_the_stack() -> None:
    (table,) = template_of("default").all("AWS::DynamoDB::Table").values()
    properties = table["Properties"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert "TableName" not in properties
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_the_keys_and_the_expiry_are_those_that_the_ledger_writes() -> None:
    table = template_of("default").only("AWS::DynamoDB::Table")
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {each["AttributeType"] for each in table["AttributeDefinitions"]} == {"S"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
