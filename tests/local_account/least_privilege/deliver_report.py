"""deliver_report: a week's page made, its verdict told and mailed."""

from __future__ import annotations

import json

from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof
from tests.report.weeks import week

KEY = "summary/week=2026-W46/summary.json"


def _summed_up(here: Enforced) -> int:
    """How many mails have gone out before; of this week none has."""
    s3, bucket = here.account.client("s3"), here.outputs["ReportBucket"]
    for each in s3.list_objects_v2(Bucket=bucket, Prefix="report/").get("Contents", []):
        s3.delete_object(Bucket=bucket, Key=each["Key"])
    s3.put_object(Bucket=bucket, Key=KEY, Body=json.dumps(week()).encode())
    return len(here.account.mails)


def _delivered(here: Enforced, before: int) -> str:
    answer = here.call("deliver_report", {"detail": {"object": {"key": KEY}}})
    s3, bucket = here.account.client("s3"), here.outputs["ReportBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="report/").get("Contents", [])
    pages = sum(each["Key"].endswith(".html") for each in listed)
    mails = len(here.account.mails) - before
    said = answer.error or f"sent to {len(answer.document['sent_to'])}"
    return f"{said}, {pages} page, {mails} mail"


PROOF = Proof(
    handler="deliver_report",
    prepare=_summed_up,
    comes_of=_delivered,
    whole="sent to 2, 1 page, 1 mail",
    without={
        "kms:Decrypt": "ReportNotDelivered, 1 page, 1 mail",
        "kms:GenerateDataKey": "ReportNotDelivered, 1 page, 1 mail",
        "s3:GetObject": "AccessDenied, 0 page, 0 mail",
        "s3:PutObject": "AccessDenied, 0 page, 0 mail",
        "ses:SendEmail": "ReportNotDelivered, 1 page, 0 mail",
        "ses:SendRawEmail": "ReportNotDelivered, 1 page, 0 mail",
        "sns:Publish": "ReportNotDelivered, 1 page, 1 mail",
    },
    elsewhere={},
)
