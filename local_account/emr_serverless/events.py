"""A run's new state on the default bus.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import request_scope
from ministack.services import eventbridge

from local_account.emr_serverless.job_runs import JobRun

SOURCE = "aws.emr-serverless"
DETAIL_TYPE = "EMR Serverless Job Run State Change"


def entry_of(run: JobRun, before: str | None) -> dict[str, Any]:
    """The event, as PutEvents takes it."""
    detail = {
        "jobRunId": run.id,
        "applicationId": run.application.id,
        "arn": run.arn,
        "releaseLabel": run.application.release_label,
        "state": run.state,
        "previousState": before or "",
        "createdBy": run.created_by,
        "createdAt": run.created_at.isoformat().replace("+00:00", "Z"),
        "updatedAt": run.updated_at.isoformat().replace("+00:00", "Z"),
    }
    return {
        "Source": SOURCE,
        "DetailType": DETAIL_TYPE,
        "Detail": json.dumps(detail),
        "Resources": [run.arn],
    }


def put_event(run: JobRun, before: str | None) -> None:
    """Put a run's new state on the bus of its account and region."""
    _, _, _, region, account, _ = run.application.arn.split(":", 5)
    with request_scope(account, region):
        eventbridge._put_events({"Entries": [entry_of(run, before)]}, allow_aws_source=True)
