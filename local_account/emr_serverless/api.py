"""EMR Serverless: the calls that start job runs and read their state. Other calls are refused.

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
from local_account.hooks import add_service, replace_functions

APPLICATION_TYPE = "AWS::EMRServerless::Application"
SERVICE_NAME = "emr-serverless"
SERVICE_PRINCIPAL = "emr-serverless.amazonaws.com"
PASS_ROLE_ACTION = "iam:PassRole"  # noqa: S105  an action
# The states of a job run.
SUBMITTED = "SUBMITTED"
PENDING = "PENDING"
SCHEDULED = "SCHEDULED"
RUNNING = "RUNNING"
SUCCESS = "SUCCESS"
FAILED = "FAILED"
MAXIMUM_DETAILS_CHARACTERS = 256  # the model's String256
# Fields of StartJobRun's request that a job run's description repeats.
_REQUEST_FIELDS_IN_DESCRIPTION = ("name", "jobDriver", "configurationOverrides")
HttpAnswer = tuple[int, dict[str, str], bytes]
# Emulated calls: the HTTP method, and whether the path names a run.
_EMULATED_CALLS = (("GET", False), ("GET", True), ("POST", False))
_RUN_PATH = re.compile(r"/applications/(?P<application>[^/]+)/jobruns(?:/(?P<run>[^/]+))?/?")


class ApiError(Exception):
    """An error response of the service. The arguments are error code, HTTP status and message."""


@dataclass
class JobRun:
    """A job run of an application. `request` is the body of the StartJobRun call."""

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
    def identifiers(self) -> dict[str, str]:
        """The fields that identify the run in responses and events, such as `jobRunId`."""
        return {
            "jobRunId": self.id,
            "applicationId": self.application_arn.rpartition("/")[2],
            "arn": f"{self.application_arn}/jobruns/{self.id}",
        }

    @property
    def account_and_region(self) -> tuple[str, str]:
        """The run's account and Region."""
        _, _, _, region, account, _ = self.application_arn.split(":", 5)
        return account, region

    def change_state(self, state: str, details: str = "") -> None:
        """Set the run's state and details, and put an event about it on the account's default bus.

        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
        """
        event_detail = {**self.identifiers, "state": state, "previousState": self.state}
        self.state = state
        self.details = details[:MAXIMUM_DETAILS_CHARACTERS]
        event_entry = {
            "Source": "aws.emr-serverless",
            "DetailType": "EMR Serverless Job Run State Change",
            "Detail": json.dumps(event_detail),
            "Resources": [self.identifiers["arn"]],
        }
        put_entry(event_entry, *self.account_and_region)

    def describe(self) -> dict[str, Any]:
        """Return the fields of EMR's JobRun and JobRunSummary that Mendq reads.

        `updatedAt` is the creation time, because the time of the last update is not stored.
        """
        return {
            **{
                name: self.request[name]
                for name in _REQUEST_FIELDS_IN_DESCRIPTION
                if name in self.request
            },
            **self.identifiers,
            "id": self.id,
            "createdAt": self.created_at,
            "updatedAt": self.created_at,
            "executionRole": self.role_arn,
            "state": self.state,
            "stateDetails": self.details,
        }


class EmrServerless:
    """All applications and job runs of the account. `begin_run` is called with every new run."""

    def __init__(self, begin_run: Callable[[JobRun], None]) -> None:
        self._begin_run = begin_run
        self._arn_by_application: dict[str, str] = {}  # id -> ARN
        self._run_by_id: dict[str, JobRun] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Add the service's calls, permissions and resource type to MiniStack.

        Call this once per process.
        """
        add_service(SERVICE_NAME, SERVICE_NAME, self._handle_call)
        provisioners._RESOURCE_HANDLERS[APPLICATION_TYPE] = {
            "create": lambda *_: self._put_application(f"00{secrets.token_hex(7)}"),
            "update": lambda identifier, *_: self._put_application(identifier),
            "delete": lambda identifier, _properties: self._arn_by_application.pop(
                identifier, None
            ),
        }

        @replace_functions(iam_actions, "extract_resource_arn")
        def extract_arn(
            original_function: Any, service: str, method: str, path: str, *other_arguments: Any
        ) -> Any:
            if service != SERVICE_NAME or not path.startswith("/applications/"):
                return (
                    "*"
                    if service == SERVICE_NAME
                    else original_function(service, method, path, *other_arguments)
                )
            return _make_arn(path.rstrip("/").removesuffix("/jobruns"))

    def _put_application(self, application_id: str) -> tuple[str, dict[str, str]]:
        """Store an application. Return its id and attributes, as CloudFormation's handlers must."""
        application_arn = _make_arn(f"/applications/{application_id}")
        self._arn_by_application[application_id] = application_arn
        return application_id, {
            "Arn": application_arn,
            "ApplicationId": application_id,
        }  # Ref is the id, as on AWS

    async def _handle_call(
        self, method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> HttpAnswer:
        content_type = {"Content-Type": "application/json"}
        try:
            access_key = router.extract_access_key_id(headers, query)
            response = self._answer_call(method, path, access_key, body, query.get("states", []))
        except ApiError as error:
            code, status, message = error.args
            error_body = json.dumps({"message": message}).encode()
            return status, {**content_type, "x-amzn-errortype": code}, error_body
        return 200, content_type, json.dumps(response).encode()

    def _answer_call(
        self, method: str, path: str, access_key: str, body: bytes, requested_states: list[str]
    ) -> dict[str, Any]:
        """Return the body of the response to a call. Raises ApiError if the call is refused."""
        path_match = _RUN_PATH.fullmatch(path)
        if path_match is None or (method, bool(path_match["run"])) not in _EMULATED_CALLS:
            raise ApiError("ValidationException", 400, f"{method} {path} is not emulated")
        application_arn = self._arn_by_application.get(path_match["application"])
        run = self._run_by_id.get(path_match["run"])
        has_run = run is not None and run.application_arn == application_arn
        if application_arn is None or (path_match["run"] and not has_run):
            raise ApiError("ResourceNotFoundException", 404, f"{path} does not exist")
        if run is not None:
            return {"jobRun": run.describe()}
        if method == "POST":
            return self._start_run(
                JobRun(application_arn, json.loads(body or b"{}")), access_key
            ).identifiers
        runs_newest_first = reversed(list(self._run_by_id.values()))
        runs = [run for run in runs_newest_first if run.application_arn == application_arn]
        return {
            "jobRuns": [
                run.describe()
                for run in runs
                if not requested_states or run.state in requested_states
            ]
        }

    def _start_run(self, run: JobRun, access_key: str) -> JobRun:
        """Start a run and return it. If its client token was used before, return the earlier run.

        Client tokens are compared within one application. Two runs without a client token count as
        runs with the same token.

        Raises ApiError if the caller may not pass the role, or if the earlier run has other
        parameters.
        """
        _check_pass_role(access_key, run.role_arn)
        application_and_token = (run.application_arn, run.request.get("clientToken"))
        with self._lock:
            for earlier_run in self._run_by_id.values():
                if (
                    earlier_run.application_arn,
                    earlier_run.request.get("clientToken"),
                ) == application_and_token:
                    if earlier_run.request == run.request:
                        return earlier_run
                    message = (
                        f"Client token {application_and_token[1]} was used with other parameters"
                    )
                    raise ApiError("ConflictException", 409, message)
            self._run_by_id[run.id] = run
        run.change_state(SUBMITTED)
        self._begin_run(run)
        return run


def _make_arn(path: str) -> str:
    return f"arn:aws:{SERVICE_NAME}:{get_region()}:{get_account_id()}:{path}"


def _check_pass_role(access_key: str, role_arn: str) -> None:
    """Raise ApiError if the caller may not pass the role to EMR Serverless.

    With AUTH=false, every caller may.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html
    """
    if not ministack.app.AUTH:
        return
    service_context = {"iam:PassedToService": SERVICE_PRINCIPAL}
    denial = iam_evaluator.enforce(
        access_key, PASS_ROLE_ACTION, "iam", get_region(), role_arn, service_context
    )
    if denial is not None:
        caller_arn = getattr(denial, "principal_arn", access_key)
        denied_call = f"{PASS_ROLE_ACTION} on resource: {role_arn}"
        message = f"User: {caller_arn} is not authorized to perform: {denied_call}"
        raise ApiError("AccessDeniedException", 403, message)
