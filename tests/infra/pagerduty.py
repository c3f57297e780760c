"""A PagerDuty service that accepts only what PagerDuty's events API documents."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.cases.json_schemas import load_validator

ROUTING_KEY = "e93facc04764012d7bfb002500d5d1a6"


@dataclass
class PagerDutyService:
    """The incidents of a service: a trigger opens one, or joins the one open under its key."""

    open_incidents: dict[str, list[Any]] = field(default_factory=dict)
    resolved_keys: list[str] = field(default_factory=list)

    def receive(self, body: str) -> None:
        """Apply one event. Raises a validation error if its format is not the documented one."""
        event = json.loads(body)
        load_validator("pagerduty-event").validate(event)
        if event["event_action"] == "trigger":
            self.open_incidents.setdefault(event["dedup_key"], []).append(event["payload"])
        elif self.open_incidents.pop(event["dedup_key"], None):
            self.resolved_keys.append(event["dedup_key"])
