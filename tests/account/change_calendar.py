"""An SSM Change Calendar beside the account in moto, which knows none.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCalendarState.html
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError
from msgspec.structs import replace

from tests.account.account import ACCOUNT, REGION, Account

CALENDAR = f"arn:aws:ssm:{REGION}:{ACCOUNT}:document/Peak"
GET = "before-call.ssm.GetCalendarState"
CLOSED_BECAUSE = "the change calendar is closed"
UNREADABLE_BECAUSE = "the change calendar cannot be read"
# The code of an error, and its HTTP status.
ERRORS = {
    "AccessDeniedException": 400,
    "InvalidDocument": 400,
    "UnsupportedCalendarException": 400,
    "InternalServerError": 500,
}
# Calendar states in which Mendq may change nothing, and the reason that it reports.
NOT_OPEN = {
    "CLOSED": CLOSED_BECAUSE,
    **dict.fromkeys(ERRORS, UNREADABLE_BECAUSE),
    "timeout": UNREADABLE_BECAUSE,
}


class ChangeCalendar:
    """`state` is what SSM answers: OPEN, CLOSED, the code of an error, or `timeout`.

    The account's settings name it from now on. `asked` counts the questions.
    """

    def __init__(self, account: Account, state: str = "CLOSED") -> None:
        self.state = state
        self.asked = 0
        account.settings = replace(account.settings, freeze_calendars=(CALENDAR,))
        self._events: Any = account.clients.ssm.meta.events
        self._events.register(GET, self._answer)

    def leave(self) -> None:
        self._events.unregister(GET, self._answer)

    def _answer(self, **_: Any) -> Any:
        self.asked += 1
        if self.state == "timeout":
            raise ReadTimeoutError(endpoint_url="ssm")
        if self.state in ERRORS:
            error = {"Error": {"Code": self.state, "Message": "no"}}
            return SimpleNamespace(status_code=ERRORS[self.state]), error
        return SimpleNamespace(status_code=200), {"State": self.state}
