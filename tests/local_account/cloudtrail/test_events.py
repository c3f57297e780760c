"""Which rules are tried for which events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_account.cloudtrail.events import DETAIL_TYPE, rule_sees

ALL_MANAGEMENT = "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"


def _event(management: bool, read_only: bool) -> dict[str, Any]:
    detail = {"managementEvent": management, "readOnly": read_only}
    return {"DetailType": DETAIL_TYPE, "Detail": json.dumps(detail)}


@pytest.mark.parametrize(
    ("state", "event", "sees"),
    [
        ("DISABLED", _event(management=False, read_only=False), False),
        ("ENABLED", _event(management=True, read_only=True), False),
        ("ENABLED", _event(management=True, read_only=False), True),
        ("ENABLED", _event(management=False, read_only=True), True),
        (ALL_MANAGEMENT, _event(management=True, read_only=True), True),
        (ALL_MANAGEMENT, _event(management=False, read_only=False), True),
        ("ENABLED", {"DetailType": "Order placed", "Detail": '{"readOnly": true}'}, True),
        ("ENABLED", {"DetailType": DETAIL_TYPE, "Detail": "not JSON"}, True),
    ],
)
def test_rule_states(state: str, event: dict[str, Any], sees: bool) -> None:
    assert rule_sees(state, event) is sees
