"""Putting EMR Serverless into MiniStack: its API, its permissions, its CloudFormation type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import boto3
import ministack.app
from botocore.config import Config
from ministack.core import iam_actions, iam_evaluator, router
from ministack.core.responses import get_region, request_scope
from ministack.services.cloudformation import provisioners

from local_account.emr_serverless import applications as types
from local_account.emr_serverless.api import Answer, EmrServerless, Request
from local_account.emr_serverless.applications import Applications
from local_account.emr_serverless.archives import CannotRun
from local_account.emr_serverless.events import put_event
from local_account.emr_serverless.job_process import JobProcesses
from local_account.emr_serverless.job_runs import JobRun, JobRuns
from local_account.lambdas.sessions import session_credentials
from local_account.service_roles import refusal_to_assume

SERVICE = "emr-serverless"
PRINCIPAL = "emr-serverless.amazonaws.com"
PASS_ROLE = "iam:PassRole"  # noqa: S105  an action
_S3 = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
ExtractArn = Callable[..., str]


def install(folder: Path, endpoint_url: str) -> JobProcesses:
    """Hook MiniStack, once per process; the caller starts and stops what is returned."""
    applications = Applications()
    runs = JobRuns(put_event)
    processes = JobProcesses(runs, folder, _credentials(endpoint_url), _s3)
    emr = EmrServerless(applications, runs, processes.begin)
    ministack.app.SERVICE_HANDLERS[SERVICE] = _handler(emr)
    iam_actions.SERVICE_TO_IAM_NAMESPACE[SERVICE] = SERVICE
    iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = [SERVICE]
    iam_actions.extract_resource_arn = _naming_applications(iam_actions.extract_resource_arn)
    provisioners._RESOURCE_HANDLERS[types.TYPE] = applications.resource_handler
    return processes


def _handler(emr: EmrServerless) -> Callable[..., Any]:
    async def handle(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> Answer:
        key = router.extract_access_key_id(headers, query)

        def refuse_role(role_arn: str) -> str | None:
            return _refusal_to_pass(key, role_arn)

        caller = iam_evaluator.request_caller_arn(headers, query)
        return emr.answer(Request(method, path, body, query, caller, refuse_role))

    return handle


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


def _credentials(endpoint_url: str) -> Callable[[JobRun], Mapping[str, str]]:
    def opening(run: JobRun) -> Mapping[str, str]:
        _, _, _, region, account, _ = run.application.arn.split(":", 5)
        with request_scope(account, region):
            if refusal := refusal_to_assume(run.role_arn, PRINCIPAL):
                raise CannotRun(refusal)
        role_name = run.role_arn.rpartition("/")[2]
        return {
            **session_credentials(account, role_name, run.id),
            "AWS_ENDPOINT_URL": endpoint_url,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
        }

    return opening


def _s3(credentials: Mapping[str, str]) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=credentials["AWS_ENDPOINT_URL"],
        region_name=credentials["AWS_REGION"],
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials["AWS_SESSION_TOKEN"],
        config=_S3,
    )


def _naming_applications(extract: ExtractArn) -> ExtractArn:
    """https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonemrserverless.html"""

    def extracting(service: str, method: str, path: str, *rest: Any) -> str:
        if service != SERVICE:
            return extract(service, method, path, *rest)
        *_, region, account = rest
        resource = path.rstrip("/")
        if not resource.startswith("/applications/"):
            return "*"
        named = resource.removesuffix("/jobruns")
        return f"arn:aws:{SERVICE}:{region}:{account}:{named}"

    return extracting
