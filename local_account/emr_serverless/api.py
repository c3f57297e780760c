"""The calls of EMR Serverless that start and watch job runs; any other is refused.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_Operations.html
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import ministack.app
from ministack.core import iam_actions, iam_evaluator, router
from ministack.core.responses import get_account_id, get_region
from ministack.services.cloudformation import provisioners

from local_account.cloudtrail.events import put_entry
from local_account.hooks import around

TYPE = "AWS::EMRServerless::Application"
SERVICE = "emr-serverless"
PRINCIPAL = "emr-serverless.amazonaws.com"
PASS_ROLE = "iam:PassRole"  # noqa: S105  an action
SUBMITTED, PENDING, SCHEDULED, RUNNING = "SUBMITTED", "PENDING", "SCHEDULED", "RUNNING"
SUCCESS, FAILED, CANCELLED = "SUCCESS", "FAILED", "CANCELLED"
DETAILS_LENGTH = 256  # the model's String256
DEFAULT_TIMEOUT_MINUTES = 720
Answer = tuple[int, dict[str, str], bytes]
Properties = Mapping[str, Any]
_EMULATED = (("GET", False), ("GET", True), ("POST", False))
_PATH = re.compile(r"/applications/(?P<application>[^/]+)/jobruns(?:/(?P<run>[^/]+))?/?")


@dataclass(frozen=True)
class Refused(Exception):
    """An error answer: its code, status and sentence."""

    code: str
    status: int
    message: str


@dataclass(frozen=True)
class Application:
    """What of an application shows in its job runs."""

    id: str
    arn: str
    release_label: str
    type: str


@dataclass
class JobRun:
    """One run; `request` is StartJobRun's body."""

    application: Application
    request: Mapping[str, Any]
    created_by: str
    id: str = field(default_factory=lambda: f"00{secrets.token_hex(7)}")
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: str = ""
    details: str = ""

    @property
    def role_arn(self) -> str:
        return str(self.request.get("executionRoleArn", ""))

    @property
    def timeout_minutes(self) -> int:
        return int(self.request.get("executionTimeoutMinutes") or DEFAULT_TIMEOUT_MINUTES)

    def move(self, state: str, details: str = "") -> None:
        """Put it into a state, and tell the bus of its account and region.

        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
        """
        before, self.state, self.details = self.state, state, details[:DETAILS_LENGTH]
        self.updated_at = datetime.now(UTC)
        detail = {
            "jobRunId": self.id,
            "applicationId": self.application.id,
            "arn": f"{self.application.arn}/jobruns/{self.id}",
            "releaseLabel": self.application.release_label,
            "state": state,
            "previousState": before,
            "createdBy": self.created_by,
            "createdAt": self.created_at.isoformat().replace("+00:00", "Z"),
            "updatedAt": self.updated_at.isoformat().replace("+00:00", "Z"),
        }
        entry = {
            "Source": "aws.emr-serverless",
            "DetailType": "EMR Serverless Job Run State Change",
            "Detail": json.dumps(detail),
            "Resources": [detail["arn"]],
        }
        _, _, _, region, account, _ = self.application.arn.split(":", 5)
        put_entry(entry, account, region)

    def shown(self) -> dict[str, Any]:
        """A JobRun, which has everything that a JobRunSummary has."""
        asked = ("name", "jobDriver", "configurationOverrides", "executionTimeoutMinutes", "tags")
        return {
            "id": self.id,
            "jobRunId": self.id,
            "applicationId": self.application.id,
            "arn": f"{self.application.arn}/jobruns/{self.id}",
            "createdBy": self.created_by,
            "createdAt": self.created_at.timestamp(),
            "updatedAt": self.updated_at.timestamp(),
            "executionRole": self.role_arn,
            "state": self.state,
            "stateDetails": self.details,
            "releaseLabel": self.application.release_label,
            "mode": "BATCH",
            "type": self.application.type,
            **{name: self.request[name] for name in asked if name in self.request},
        }


class EmrServerless:
    """Every application and run of the account; `begin` gets every new run."""

    def __init__(self, begin: Callable[[JobRun], None]) -> None:
        self._begin = begin
        self._applications: dict[str, Application] = {}
        self._runs: dict[str, JobRun] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Hook MiniStack, once per process: the calls, their permissions, the type."""
        ministack.app.SERVICE_HANDLERS[SERVICE] = self._handle
        iam_actions.SERVICE_TO_IAM_NAMESPACE[SERVICE] = SERVICE
        iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = [SERVICE]
        provisioners._RESOURCE_HANDLERS[TYPE] = {
            "create": lambda _id, properties, _stack: self._put(_new_id(), properties),
            "update": lambda identifier, _old, new, *_: self._put(identifier, new),
            "delete": lambda identifier, _properties: self._applications.pop(identifier, None),
        }

        @around(iam_actions, "extract_resource_arn")
        def extract(inner: Any, service: str, method: str, path: str, *rest: Any) -> Any:
            if service != SERVICE or not path.startswith("/applications/"):
                return "*" if service == SERVICE else inner(service, method, path, *rest)
            named = path.rstrip("/").removesuffix("/jobruns")
            return f"arn:aws:{SERVICE}:{get_region()}:{get_account_id()}:{named}"

    def _put(self, identifier: str, properties: Properties) -> tuple[str, dict[str, str]]:
        arn = f"arn:aws:{SERVICE}:{get_region()}:{get_account_id()}:/applications/{identifier}"
        release, kind = str(properties["ReleaseLabel"]), str(properties["Type"]).title()
        self._applications[identifier] = Application(identifier, arn, release, kind)
        return identifier, {"Arn": arn, "ApplicationId": identifier}  # Ref is the id, as on AWS

    async def _handle(
        self, method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> Answer:
        json_type = {"Content-Type": "application/json"}
        try:
            answer = self._answered(method, path, headers, body, query)
        except Refused as refused:
            said = json.dumps({"message": refused.message}).encode()
            return refused.status, {**json_type, "x-amzn-errortype": refused.code}, said
        return 200, json_type, json.dumps(answer).encode()

    def _answered(
        self, method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> dict[str, Any]:
        found = _PATH.fullmatch(path)
        if found is None or (method, bool(found["run"])) not in _EMULATED:
            raise Refused("ValidationException", 400, f"{method} {path} is not emulated")
        application = self._applications.get(found["application"])
        run = self._runs.get(found["run"] or "")
        missing = application is None or (
            found["run"] and (not run or run.application != application)
        )
        if application is None or missing:
            raise Refused("ResourceNotFoundException", 404, f"{path} does not exist")
        if run is not None:
            return {"jobRun": run.shown()}
        if method == "GET":
            states = query.get("states", [])
            runs = [each for each in self._runs.values() if each.application == application]
            chosen = [each.shown() for each in runs if not states or each.state in states]
            return {"jobRuns": chosen[::-1]}
        key = router.extract_access_key_id(headers, query)
        caller = iam_evaluator.request_caller_arn(headers, query)
        run = self._start(application, json.loads(body or b"{}"), key, caller)
        return {"applicationId": application.id, "jobRunId": run.id, "arn": run.shown()["arn"]}

    def _start(
        self, application: Application, asked: dict[str, Any], access_key: str, caller: str
    ) -> JobRun:
        run = JobRun(application, asked, caller)
        if refusal := _refusal_to_pass(access_key, run.role_arn):
            raise Refused("AccessDeniedException", 403, refusal)
        if not asked.get("jobDriver", {}).get("sparkSubmit", {}).get("entryPoint"):
            missing = "jobDriver.sparkSubmit.entryPoint is missing"
            raise Refused("ValidationException", 400, missing)
        token = (application.id, asked.get("clientToken"))
        with self._lock:
            for each in self._runs.values():
                if (each.application.id, each.request.get("clientToken")) == token:
                    if each.request != asked:
                        said = f"Client token {token[1]} was used with other parameters"
                        raise Refused("ConflictException", 409, said)
                    return each
            self._runs[run.id] = run
        run.move(SUBMITTED)
        self._begin(run)
        return run


def _new_id() -> str:
    return f"00{secrets.token_hex(7)}"


def _refusal_to_pass(access_key: str, role_arn: str) -> str | None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html"""
    if not ministack.app.AUTH:
        return None
    named = {"iam:PassedToService": PRINCIPAL}
    denied = iam_evaluator.enforce(access_key, PASS_ROLE, "iam", get_region(), role_arn, named)
    if denied is None:
        return None
    who = getattr(denied, "principal_arn", access_key)
    return f"User: {who} is not authorized to perform: {PASS_ROLE} on resource: {role_arn}"
