"""AWS::CloudTrail::Trail, by the CloudTrail API that MiniStack has.

CloudTrail refuses a trail whose bucket does not let it write: so does this.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudtrail-trail.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudtrail, s3

TYPE = "AWS::CloudTrail::Trail"
CLOUDTRAIL = "cloudtrail.amazonaws.com"
Properties = Mapping[str, Any]
_COPIED = (
    "S3BucketName",
    "S3KeyPrefix",
    "SnsTopicName",
    "IncludeGlobalServiceEvents",
    "IsMultiRegionTrail",
    "IsOrganizationTrail",
    "EnableLogFileValidation",
)


def create(logical_id: str, properties: Properties, stack_name: str) -> tuple[str, dict[str, str]]:
    """Create the trail, as switched on as the template says."""
    name = properties.get("TrailName") or f"{stack_name}-{logical_id}"
    arn = cloudtrail._trail_arn(name)
    _refuse_closed_bucket(properties, arn)
    _call("CreateTrail", Name=name, **_given(properties))
    return _configured(name, properties)


def update(
    name: str, _old: Properties, properties: Properties, _stack_name: str
) -> tuple[str, dict[str, str]]:
    """Change the trail in place; its name cannot change."""
    _refuse_closed_bucket(properties, cloudtrail._trail_arn(name))
    _call("UpdateTrail", Name=name, **_given(properties))
    return _configured(name, properties)


def delete(name: str, _properties: Properties) -> None:
    """Delete the trail, if it is still there."""
    if cloudtrail._trails.get(name) is not None:
        _call("DeleteTrail", Name=name)


HANDLER = {"create": create, "update": update, "delete": delete}


def _given(properties: Properties) -> dict[str, Any]:
    given = {name: properties[name] for name in _COPIED if name in properties}
    if key := properties.get("KMSKeyId"):
        given["KmsKeyId"] = key
    return given


def _configured(name: str, properties: Properties) -> tuple[str, dict[str, str]]:
    for selectors in ("AdvancedEventSelectors", "EventSelectors"):
        if properties.get(selectors):
            _call("PutEventSelectors", TrailName=name, **{selectors: properties[selectors]})
    is_logging = str(properties.get("IsLogging", "true")).lower() == "true"
    _call("StartLogging" if is_logging else "StopLogging", Name=name)
    return name, {"Arn": cloudtrail._trail_arn(name), "SnsTopicArn": ""}


def _call(action: str, **body: Any) -> None:
    status, _, answer = cloudtrail._DISPATCH[action](body)
    if status >= 400:
        raise ValueError(f"{TYPE}: {json.loads(answer)['message']}")


def _refuse_closed_bucket(properties: Properties, trail_arn: str) -> None:
    """https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-s3-bucket-policy-for-cloudtrail.html"""
    bucket = str(properties.get("S3BucketName") or "")
    prefix = str(properties.get("S3KeyPrefix") or "")
    arn = f"arn:aws:s3:::{bucket}"
    found = s3.bucket_policy_for_arn(arn)
    if found is None:
        raise ValueError(f"{TYPE}: S3 bucket {bucket} does not exist")
    folder = f"{prefix}/AWSLogs" if prefix else "AWSLogs"
    asked = (("s3:GetBucketAcl", arn), ("s3:PutObject", f"{arn}/{folder}/{get_account_id()}/probe"))
    for action, resource in asked:
        if not _allowed(found[0], action, resource, trail_arn):
            raise ValueError(
                f"{TYPE}: Incorrect S3 bucket policy is detected for bucket: {bucket} ({action})"
            )


def _allowed(policy: Any, action: str, resource: str, trail_arn: str) -> bool:
    context = iam_evaluator.EvalContext(
        principal_arn=CLOUDTRAIL,
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=resource,
        region=get_region(),
        secure_transport=True,
        service_context={
            "aws:sourcearn": trail_arn,
            "aws:sourceaccount": get_account_id(),
            "s3:x-amz-acl": "bucket-owner-full-control",
        },
    )
    decided = iam_evaluator.evaluate_resource_policy(policy, context, service=CLOUDTRAIL)
    return bool(decided.decision == "Allow")
