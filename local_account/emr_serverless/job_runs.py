"""Job runs: what was asked, their states, and that one client token starts one run.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local_account.emr_serverless.applications import Application
from local_account.emr_serverless.refusal import conflict, not_found

SUBMITTED, PENDING, SCHEDULED, RUNNING = "SUBMITTED", "PENDING", "SCHEDULED", "RUNNING"
SUCCESS, FAILED, CANCELLED = "SUCCESS", "FAILED", "CANCELLED"
ENDED = (SUCCESS, FAILED, CANCELLED)
DETAILS_LENGTH = 256  # the model's String256
DEFAULT_TIMEOUT_MINUTES = 720


@dataclass
class JobRun:
    """One run; `request` is StartJobRun's body."""

    application: Application
    id: str
    client_token: str
    request: Mapping[str, Any]
    created_by: str
    created_at: datetime
    updated_at: datetime
    state: str = SUBMITTED
    details: str = ""

    @property
    def arn(self) -> str:
        return f"{self.application.arn}/jobruns/{self.id}"

    @property
    def name(self) -> str | None:
        return self.request.get("name")

    @property
    def role_arn(self) -> str:
        return str(self.request["executionRoleArn"])

    @property
    def timeout_minutes(self) -> int:
        return int(self.request.get("executionTimeoutMinutes") or DEFAULT_TIMEOUT_MINUTES)


Told = Callable[[JobRun, str | None], None]


class JobRuns:
    """Every run of the account; `tell` hears each new state and the one before."""

    def __init__(self, tell: Told, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._tell = tell
        self._now = now
        self._runs: dict[str, JobRun] = {}
        self._lock = threading.Lock()

    def start(
        self, application: Application, token: str, request: Mapping[str, Any], caller: str
    ) -> tuple[JobRun, bool]:
        """(the run, whether it is new); Refused where the token stands for another request."""
        with self._lock:
            known = self._known(application, token)
            if known is not None:
                if _text(known.request) != _text(request):
                    raise conflict(f"Client token {token} was used with other parameters")
                return known, False
            now = self._now()
            run = JobRun(application, _new_id(), token, request, caller, now, now)
            self._runs[run.id] = run
        self._tell(run, None)
        return run, True

    def get(self, application: Application, run_id: str) -> JobRun:
        """Raise Refused where the application has no such run."""
        run = self._runs.get(run_id)
        if run is None or run.application.id != application.id:
            raise not_found(f"Job run {run_id}")
        return run

    def listed(self, application: Application, states: Collection[str]) -> list[JobRun]:
        """The application's runs in one of `states`, or all of them, newest first."""
        with self._lock:
            runs = [each for each in self._runs.values() if each.application.id == application.id]
        chosen = [each for each in runs if not states or each.state in states]
        return sorted(chosen, key=lambda each: each.created_at, reverse=True)

    def move(self, run: JobRun, state: str, details: str = "") -> None:
        """Put a run that has not ended into a state."""
        with self._lock:
            before = run.state
            if before in ENDED:
                return
            run.state, run.details, run.updated_at = state, details[:DETAILS_LENGTH], self._now()
        self._tell(run, before)

    def _known(self, application: Application, token: str) -> JobRun | None:
        for run in self._runs.values():
            if run.application.id == application.id and run.client_token == token:
                return run
        return None


def _new_id() -> str:
    return f"00{secrets.token_hex(7)}"


def _text(request: Mapping[str, Any]) -> str:
    return json.dumps(request, sort_keys=True)
