"""LookupEvents in the place of MiniStack's, which records calls before it knows how they end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudtrail

from local_account.cloudtrail.event_history import EventHistory, LookupRefused

Answer = tuple[int, dict[str, str], bytes]
_JSON = {"Content-Type": "application/x-amz-json-1.1"}


def install(history: EventHistory) -> None:
    """Hook the action; once per process. MiniStack asks IAM before it comes here."""

    def answer(asked: Mapping[str, Any]) -> Answer:
        try:
            found = history.look_up(asked, get_account_id(), get_region())
        except LookupRefused as refused:
            content = {"__type": refused.code, "message": f"{refused}"}
            return 400, dict(_JSON), json.dumps(content).encode()
        return 200, dict(_JSON), json.dumps(found).encode()

    cloudtrail._DISPATCH["LookupEvents"] = answer
