"""The calls of EMR Serverless that start and watch job runs; any other is refused.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_Operations.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_account.emr_serverless.applications import Application, Applications
from local_account.emr_serverless.job_runs import JobRun, JobRuns
from local_account.emr_serverless.refusal import Refused, invalid, not_found

Answer = tuple[int, dict[str, str], bytes]
Body = dict[str, Any]
_PATH = re.compile(r"/applications/(?P<application>[^/]+)/jobruns(?:/(?P<run>[^/]+))?/?")
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ROLE = re.compile(r"arn:aws:iam::\d{12}:role/.+")
_STATES = frozenset(
    {
        *("SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "QUEUED"),
        *("SUCCESS", "FAILED", "CANCELLING", "CANCELLED"),
    }
)
MOST_LISTED = 50


@dataclass(frozen=True)
class Request:
    """A call that MiniStack has let in; `refuse_role` says why `caller` may not pass a role."""

    method: str
    path: str
    body: bytes = b""
    query: Mapping[str, list[str]] = field(default_factory=dict)
    caller: str = ""
    refuse_role: Callable[[str], str | None] = lambda _: None


class EmrServerless:
    """Answers requests; `begin` gets every new run."""

    def __init__(
        self,
        applications: Applications,
        runs: JobRuns,
        begin: Callable[[JobRun], None],
    ) -> None:
        self._applications = applications
        self._runs = runs
        self._begin = begin

    def answer(self, request: Request) -> Answer:
        """What EMR Serverless would answer, errors included."""
        try:
            return _ok(self._answered(request))
        except Refused as refused:
            return _refused(refused)

    def _answered(self, request: Request) -> Body:
        found = _PATH.fullmatch(request.path)
        starts = request.method == "POST"
        if found is None or (starts and found["run"]) or request.method not in ("GET", "POST"):
            raise invalid(f"{request.method} {request.path} is not emulated")
        application = self._application(found["application"])
        if found["run"]:
            return {"jobRun": described(self._runs.get(application, found["run"]))}
        return self._start(application, request) if starts else self._list(application, request)

    def _application(self, application_id: str) -> Application:
        application = self._applications.get(application_id)
        if application is None:
            raise not_found(f"Application {application_id}")
        return application

    def _start(self, application: Application, request: Request) -> Body:
        asked = _read(request.body)
        token = str(asked.pop("clientToken", ""))
        if not _TOKEN.fullmatch(token):
            raise invalid("clientToken must match [A-Za-z0-9._-]+ and have at most 64 characters")
        role = str(asked.get("executionRoleArn", ""))
        if not _ROLE.fullmatch(role):
            raise invalid("executionRoleArn is not the ARN of a role")
        if refusal := request.refuse_role(role):
            raise Refused("AccessDeniedException", 403, refusal)
        if not asked.get("jobDriver", {}).get("sparkSubmit", {}).get("entryPoint"):
            raise invalid("jobDriver.sparkSubmit.entryPoint is missing")
        run, is_new = self._runs.start(application, token, asked, request.caller)
        if is_new:
            self._begin(run)
        return {"applicationId": application.id, "jobRunId": run.id, "arn": run.arn}

    def _list(self, application: Application, request: Request) -> Body:
        query = request.query
        states = query.get("states", [])
        if unknown := sorted(set(states) - _STATES):
            raise invalid(f"states: {unknown[0]} is no state of a job run")
        start = int((query.get("nextToken") or ["0"])[0])
        most = int((query.get("maxResults") or [str(MOST_LISTED)])[0])
        runs = self._runs.listed(application, states)
        page = runs[start : start + most]
        more = {"nextToken": str(start + most)} if start + most < len(runs) else {}
        return {"jobRuns": [summarized(each) for each in page], **more}


def summarized(run: JobRun) -> Body:
    """A JobRunSummary."""
    return {"id": run.id, **_common(run)}


def described(run: JobRun) -> Body:
    """A JobRun."""
    asked = ("jobDriver", "configurationOverrides", "executionTimeoutMinutes", "tags")
    kept = {name: run.request[name] for name in asked if name in run.request}
    return {"jobRunId": run.id, **_common(run), **kept}


def _common(run: JobRun) -> Body:
    named = {} if run.name is None else {"name": run.name}
    return named | {
        "applicationId": run.application.id,
        "arn": run.arn,
        "createdBy": run.created_by,
        "createdAt": run.created_at.timestamp(),
        "updatedAt": run.updated_at.timestamp(),
        "executionRole": run.role_arn,
        "state": run.state,
        "stateDetails": run.details,
        "releaseLabel": run.application.release_label,
        "mode": "BATCH",
        "type": run.application.type,
    }


def _read(body: bytes) -> Body:
    try:
        asked = json.loads(body or b"{}")
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise invalid("the body is no JSON object")
    return asked


def _ok(body: Body) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


def _refused(refused: Refused) -> Answer:
    headers = {"Content-Type": "application/json", "x-amzn-errortype": refused.code}
    return refused.status, headers, json.dumps({"message": refused.message}).encode()
