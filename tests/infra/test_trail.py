"""What the trail logs, and who may write to its bucket."""

from __future__ import annotations

import pytest

from mendq.cli.deploy.drill import drill_queue_name
from mendq.cli.deploy.drill_queue import LATE_CALL
from mendq.cli.doctor.visibility import Trail, logged
from tests.infra.synthesized import ACCOUNT, OWN_ROLES, QUEUE_ARNS, REGION, template_of

TRAIL_ARN = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/mendq"
SESSIONS = [
    f"{each.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/" for each in OWN_ROLES
]
DATA = {
    "eventCategory": {"Equals": ["Data"]},
    "resources.type": {"Equals": ["AWS::SQS::Queue"]},
    "userIdentity.arn": {"NotStartsWith": SESSIONS},
}
PROBE_AND_DRILLS = {
    **DATA,
    "resources.ARN": {"StartsWith": [f"{QUEUE_ARNS}mendq-probe.fifo", f"{QUEUE_ARNS}mendq-drill-"]},
}
NAMED = {
    **DATA,
    "resources.ARN": {"StartsWith": [f"{QUEUE_ARNS}orders", f"{QUEUE_ARNS}billing-"]},
    "eventName": {"Equals": ["DeleteMessage", "ChangeMessageVisibility"]},
}
# Narrowed by the fields that a trail allows.
MANAGEMENT = {"eventCategory": {"Equals": ["Management"]}, "readOnly": {"Equals": ["false"]}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("default", [PROBE_AND_DRILLS]), ("named", [NAMED, PROBE_AND_DRILLS, MANAGEMENT])],
)
def test_it_logs_chosen_queues_and_our_own_probe_and_leaves_our_sessions_out(
    name: str, expected: list[dict[str, dict[str, list[str]]]]
) -> None:
    """The probe is seen whatever calls are chosen."""
    (found,) = template_of(name).all("AWS::CloudTrail::Trail").values()
    (depends_on,) = found["DependsOn"]
    assert depends_on in template_of(name).all("AWS::S3::BucketPolicy")
    trail = found["Properties"]
    assert (trail["TrailName"], trail["IsLogging"]) == ("mendq", True)
    assert trail["IsMultiRegionTrail"] is False
    selectors = [
        {
            each["Field"]: {key: value for key, value in each.items() if key != "Field"}
            for each in selector["FieldSelectors"]
        }
        for selector in trail["AdvancedEventSelectors"]
    ]
    assert selectors == expected
    assert "EventSelectors" not in trail, "it takes one kind"


@pytest.mark.parametrize("name", ["default", "named"])
def test_the_drill_that_the_deploying_page_asks_for_is_seen(name: str) -> None:
    """As the drill itself asks it; `named` logs other queues, and deletes alone of them."""
    given = template_of(name).only("AWS::CloudTrail::Trail")["AdvancedEventSelectors"]
    trail = Trail("mendq", tuple(given))
    drilled = drill_queue_name()
    assert logged([trail], f"{QUEUE_ARNS}{drilled}", [LATE_CALL]) == {LATE_CALL}
    assert not logged([trail], f"{QUEUE_ARNS}x-{drilled}", [LATE_CALL])


def test_an_existing_trail_is_left_alone() -> None:
    template = template_of("existing trail")
    assert template.all("AWS::CloudTrail::Trail") == {}
    assert not [name for name in template.all("AWS::S3::Bucket") if name.startswith("Trail")]
    assert template.outputs["TrailBucket"]["Value"] == "our-cloudtrail-logs"


def test_only_this_trail_of_cloudtrail_may_write_to_the_bucket() -> None:
    policy = template_of("default").only("AWS::S3::BucketPolicy", "Trail")
    allowed = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
    assert {each["Action"] for each in allowed} == {"s3:GetBucketAcl", "s3:PutObject"}
    for each in allowed:
        assert each["Principal"] == {"Service": "cloudtrail.amazonaws.com"}
        assert each["Condition"]["StringEquals"]["aws:SourceArn"] == TRAIL_ARN
    (write,) = (each for each in allowed if each["Action"] == "s3:PutObject")
    assert write["Resource"].endswith(f"/AWSLogs/{ACCOUNT}/*")
    assert write["Condition"]["StringEquals"]["s3:x-amz-acl"] == "bucket-owner-full-control"
