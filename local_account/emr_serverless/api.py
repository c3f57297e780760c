"""The calls of EMR Serverless that start and watch job runs; any other is refused.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_Operations.html
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ministack.app
from ministack.core import iam_actions, iam_evaluator, router
from ministack.core.responses import get_account_id, get_region
from ministack.services.cloudformation import provisioners

from local_account.cloudtrail.events import put_entry
from local_account.hooks import around, serve

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


class Refused(Exception):
    """An error answer: its code, status and sentence."""


@dataclass
class JobRun:
    """One run of an application; `request` is StartJobRun's body."""

    application_arn: str
    request: Mapping[str, Any]
    id: str = field(default_factory=lambda: f"00{secrets.token_hex(7)}")
    created_at: float = field(default_factory=time.time)
    state: str = ""
    details: str = ""

    @property
    def role_arn(self) -> str:
        return str(self.request.get("executionRoleArn", ""))

    @property
    def names(self) -> dict[str, str]:
        """What every message about it calls it."""
        application, arn = self.application_arn.rpartition("/")[2], self.application_arn
        named = {"jobRunId": self.id, "applicationId": application}
        return named | {"arn": f"{arn}/jobruns/{self.id}"}

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
            **dict.fromkeys(("createdAt", "updatedAt"), self.created_at),
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
        serve(SERVICE, SERVICE, self._handle)
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
            access_key = router.extract_access_key_id(headers, query)
            answer = self._answered(method, path, access_key, body, query.get("states", []))
        except Refused as refused:
            code, status, message = refused.args
            said = json.dumps({"message": message}).encode()
            return status, {**json_type, "x-amzn-errortype": code}, said
        return 200, json_type, json.dumps(answer).encode()

    def _answered(
        self, method: str, path: str, access_key: str, body: bytes, states: list[str]
    ) -> dict[str, Any]:
        found = _PATH.fullmatch(path)
        if found is None or (method, bool(found["run"])) not in _EMULATED:
            raise Refused("ValidationException", 400, f"{method} {path} is not emulated")
        arn, run = self._applications.get(found["application"]), self._runs.get(found["run"])
        if arn is None or (found["run"] and (run is None or run.application_arn != arn)):
            raise Refused("ResourceNotFoundException", 404, f"{path} does not exist")
        if run is not None:
            return {"jobRun": run.shown()}
        if method == "POST":
            return self._start(JobRun(arn, json.loads(body or b"{}")), access_key).names
        runs = [each for each in self._runs.values() if each.application_arn == arn][::-1]
        return {"jobRuns": [e.shown() for e in runs if not states or e.state in states]}

    def _start(self, run: JobRun, access_key: str) -> JobRun:
        """Start it; whoever comes with the same token again gets the run that is there."""
        _refuse_to_pass(access_key, run.role_arn)
        token = (run.application_arn, run.request.get("clientToken"))
        with self._lock:
            for each in self._runs.values():
                if (each.application_arn, each.request.get("clientToken")) == token:
                    if each.request == run.request:
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
