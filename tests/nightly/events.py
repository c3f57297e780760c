"""EventBridge events about a job run of the nightly job's EMR Serverless application."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

APPLICATION_ID = "00f1982r1uukb925"
_NO_CHANGES = MappingProxyType[str, object]({})


def make_job_run_event(detail: object = _NO_CHANGES, **fields: Any) -> dict[str, Any]:
    """Return the event of a failed job run.

    A mapping as `detail` changes keys of the usual detail, anything else replaces the detail.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    run = {"jobRunId": "00f1cbn5g4bb0c01", "applicationId": APPLICATION_ID, "state": "FAILED"}
    return {
        "version": "0",
        "source": "aws.emr-serverless",
        "detail-type": "EMR Serverless Job Run State Change",
        "detail": {**run, **detail} if isinstance(detail, (dict, MappingProxyType)) else detail,
        **fields,
    }
