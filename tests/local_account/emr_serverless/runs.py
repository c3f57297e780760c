"""Requests for tests of EMR Serverless, and the store that takes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from local_account.emr_serverless.api import EmrServerless, Request
from local_account.emr_serverless.applications import Applications
from local_account.emr_serverless.job_runs import JobRun, JobRuns

ROLE = "arn:aws:iam::000000000000:role/night"
PROPERTIES = {"ReleaseLabel": "emr-7.14.0", "Type": "SPARK"}


def asked(**over: Any) -> dict[str, Any]:
    """StartJobRun's body, but for what `over` says."""
    driver = {"sparkSubmit": {"entryPoint": "s3://code/job.py", "entryPointArguments": ["x"]}}
    return {"clientToken": "t-1", "executionRoleArn": ROLE, "jobDriver": driver} | over


@dataclass
class Emr:
    """EMR Serverless with one application, whose runs nobody carries out."""

    begun: list[JobRun] = field(default_factory=list)
    told: list[tuple[str, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.applications = Applications()
        self.id, attributes = self.applications.resource_handler["create"]("A", PROPERTIES, "S")
        self.arn = attributes["Arn"]
        self.runs = JobRuns(lambda run, before: self.told.append((run.state, before)))
        self.api = EmrServerless(self.applications, self.runs, self.begun.append)

    def call(
        self, method: str, path: str = "", *, application: str = "", **more: Any
    ) -> tuple[int, dict[str, Any]]:
        """(status, body), of a call below the application's job runs."""
        where = f"/applications/{application or self.id}/jobruns{path}"
        status, _, body = self.api.answer(Request(method, where, **more))
        return status, json.loads(body)

    def start(self, **over: Any) -> tuple[int, dict[str, Any]]:
        return self.call("POST", body=json.dumps(asked(**over)).encode(), caller="arn:caller")
