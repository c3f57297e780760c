"""IAM Access Analyzer's checks of a policy: refused, as nothing here reads a policy as it does.

`{"result": "PASS"}` or `{"result": "FAIL"}` at /_mendq/access-analyzer has both checks answer so.
https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoPublicAccess.html
https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoNewAccess.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import ministack.app
from ministack.core import iam_actions

from local_account.switch import SwitchRefused

SERVICE = "access-analyzer"
CHECKS = {
    "/policy/check-no-public-access": "CheckNoPublicAccess",
    "/policy/check-no-new-access": "CheckNoNewAccess",
}
RESULTS = ("PASS", "FAIL")
HOW = "/_mendq/access-analyzer has both checks answer as it is told"


class AccessAnalyzer:
    """The checks; `result` is what both answer, None where they are refused."""

    def __init__(self) -> None:
        self.result: str | None = None

    def install(self) -> None:
        """Hook MiniStack, once per process."""
        ministack.app.SERVICE_HANDLERS[SERVICE] = self._handle
        iam_actions.SERVICE_TO_IAM_NAMESPACE[SERVICE] = SERVICE
        iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = ["accessanalyzer"]

    def replace(self, asked: object) -> None:
        """Have both checks answer so from now on; raises SwitchRefused."""
        result = asked.get("result") if isinstance(asked, Mapping) else None
        if result not in RESULTS:
            raise SwitchRefused(f'send {{"result": one of {", ".join(RESULTS)}}}')
        self.result = result

    def end(self) -> None:
        """Have both refused again."""
        self.result = None

    def as_json(self) -> dict[str, Any]:
        return {"result": self.result}

    async def _handle(self, _method: str, path: str, *_: Any) -> tuple[int, dict[str, str], bytes]:
        check, status = CHECKS.get(path.rstrip("/")), 200
        said = {
            "result": self.result,
            "message": f"{check} answers as it was told to.",
            "reasons": [{"description": "It was told to fail."}] * (self.result == "FAIL"),
        }
        if check is None or self.result is None:
            status, message = 400, f"{check or path} is not emulated here; {HOW}"
            said = {"__type": "NotEmulated", "message": message}
        return status, {"Content-Type": "application/json"}, json.dumps(said).encode()
