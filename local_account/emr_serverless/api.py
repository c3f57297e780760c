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
SUCCESS, FAILED = "SUCCESS", "FAILED"
DETAILS_LENGTH = 256  # the model's String256
_SHOWN = ("name", "jobDriver", "configurationOverrides")
Answer = tuple[int, dict[str, str], bytes]
_EMULATED = (("GET", False), ("GET", True), ("POST", False))
_PATH = re.compile(r"/applications/(?P<application>[^/]+)/jobruns(?:/(?P<run>[^/]+))?/?")


@dataclass(frozen=True)
class Refused(Exception):
    """An error answer: its code, status and sentence."""

    code: str
    status: int
    message: str


@dataclass
class JobRun:
    """One run of an application; `request` is StartJobRun's body."""

    application_arn: str
    request: Mapping[str, Any]
    id: str = field(default_factory=lambda: f"00{secrets.token_hex(7)}")
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: str = ""
    details: str = ""

    @property
    def role_arn(self) -> str:
        return str(self.request.get("executionRoleArn", ""))

    @property
    def names(self) -> dict[str, str]:
        """What every message about it calls it."""
        return {
            "jobRunId": self.id,
            "applicationId": self.application_arn.rpartition("/")[2],
            "arn": f"{self.application_arn}/jobruns/{self.id}",
        }

    @property
    def place(self) -> tuple[str, str]:
        """Its (account, region)."""
        _, _, _, region, account, _ = self.application_arn.split(":", 5)
        return account, region

    def move(self, state: str, details: str = "") -> None:
        """Put it into a state, and tell the bus of its account and region.

        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
        """
        detail = {**self.names, "state": state, "previousState": self.state}
        self.state, self.details = state, details[:DETAILS_LENGTH]
        self.updated_at = datetime.now(UTC)
        entry = {
            "Source": "aws.emr-serverless",
            "DetailType": "EMR Serverless Job Run State Change",
            "Detail": json.dumps(detail),
            "Resources": [self.names["arn"]],
        }
        put_entry(entry, *self.place)

    def shown(self) -> dict[str, Any]:
        """What Mendq reads of a JobRun and of a JobRunSummary, with what was asked for."""
        return {
            **{name: self.request[name] for name in _SHOWN if name in self.request},
            **self.names,
            "id": self.id,
            "createdAt": self.created_at.timestamp(),
            "updatedAt": self.updated_at.timestamp(),
            "executionRole": self.role_arn,
            "state": self.state,
            "stateDetails": self.details,
        }


class EmrServerless:
    """Every application and run of the account; `begin` gets every new run."""

    def __init__(self, begin: Callable[[JobRun], None]) -> None:
        self._begin = begin
        self._applications: dict[str, str] = {}  # id -> ARN
        self._runs: dict[str, JobRun] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Hook MiniStack, once per process: the calls, their permissions, the type."""
        ministack.app.SERVICE_HANDLERS[SERVICE] = self._handle
        # MiniStack looks for an unlisted name in all of botocore's models, and answers nobody
        # meanwhile: seconds, in which Lambdas give up their own calls.
        router.SERVICE_PATTERNS[SERVICE] = {"credential_scope": SERVICE}
        iam_actions.SERVICE_TO_IAM_NAMESPACE[SERVICE] = SERVICE
        iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = [SERVICE]
        provisioners._RESOURCE_HANDLERS[TYPE] = {
            "create": lambda *_: self._put(f"00{secrets.token_hex(7)}"),
            "update": lambda identifier, *_: self._put(identifier),
            "delete": lambda identifier, _properties: self._applications.pop(identifier, None),
        }

        @around(iam_actions, "extract_resource_arn")
        def extract(inner: Any, service: str, method: str, path: str, *rest: Any) -> Any:
            if service != SERVICE or not path.startswith("/applications/"):
                return "*" if service == SERVICE else inner(service, method, path, *rest)
            return _arn_of(path.rstrip("/").removesuffix("/jobruns"))

    def _put(self, identifier: str) -> tuple[str, dict[str, str]]:
        self._applications[identifier] = arn = _arn_of(f"/applications/{identifier}")
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
        arn, run = self._applications.get(found["application"]), self._runs.get(found["run"])
        if arn is None or (found["run"] and (run is None or run.application_arn != arn)):
            raise Refused("ResourceNotFoundException", 404, f"{path} does not exist")
        if run is not None:
            return {"jobRun": run.shown()}
        if method == "GET":
            return {"jobRuns": self._listed(arn, query.get("states", []))}
        access_key = router.extract_access_key_id(headers, query)
        return self._start(arn, json.loads(body or b"{}"), access_key).names

    def _listed(self, arn: str, states: list[str]) -> list[dict[str, Any]]:
        """Newest first."""
        runs = [each for each in self._runs.values() if each.application_arn == arn]
        return [each.shown() for each in runs[::-1] if not states or each.state in states]

    def _start(self, application_arn: str, asked: dict[str, Any], access_key: str) -> JobRun:
        run = JobRun(application_arn, asked)
        _refuse_to_pass(access_key, run.role_arn)
        if not asked.get("jobDriver", {}).get("sparkSubmit", {}).get("entryPoint"):
            missing = "jobDriver.sparkSubmit.entryPoint is missing"
            raise Refused("ValidationException", 400, missing)
        token = (application_arn, asked.get("clientToken"))
        with self._lock:
            for each in self._runs.values():
                if (each.application_arn, each.request.get("clientToken")) == token:
                    if each.request == asked:
                        return each
                    said = f"Client token {token[1]} was used with other parameters"
                    raise Refused("ConflictException", 409, said)
            self._runs[run.id] = run
        run.move(SUBMITTED)
        self._begin(run)
        return run


def _arn_of(path: str) -> str:
    return f"arn:aws:{SERVICE}:{get_region()}:{get_account_id()}:{path}"


def _refuse_to_pass(access_key: str, role_arn: str) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html"""
    named = {"iam:PassedToService": PRINCIPAL}
    judged = (access_key, PASS_ROLE, "iam", get_region(), role_arn, named)
    if ministack.app.AUTH and (denied := iam_evaluator.enforce(*judged)) is not None:
        who = getattr(denied, "principal_arn", access_key)
        said = f"User: {who} is not authorized to perform: {PASS_ROLE} on resource: {role_arn}"
        raise Refused("AccessDeniedException", 403, said)
