from __future__ import annotations

from typing import Any

import pytest

from mendq.cli.deploy.drill import drill_queue_name
from mendq.cli.deploy.drill_queue import LATE_CALL
from mendq.cli.doctor.visibility import Trail, logged
from tests.infra.synthesized import ACCOUNT, OWN_ROLES, PROBE_ROLE, QUEUE_ARNS, REGION, template_of

TRAIL_ARN = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/mendq"


def _selectors(name: str) -> list[dict[str, dict[str, list[str]]]]:
    """Each selector as {field: {operator: values}}."""
    trail = template_of(name).only("AWS::CloudTrail::Trail")
    return [
        {
            each["Field"]: {key: value for key, value in each.items() if key != "Field"}
            for each in selector["FieldSelectors"]
        }
        for selector in trail["AdvancedEventSelectors"]
    ]


def test_an_existing_trail_is_left_alone() -> None:
    template = template_of("existing trail")
    assert template.all("AWS::CloudTrail::Trail") == {}
    assert not [name for name in template.all("AWS::S3::Bucket") if name.startswith("Trail")]
    assert template.outputs["TrailBucket"]["Value"] == "our-cloudtrail-logs"


def test_without_named_queues_only_our_own_probe_and_drills_are_logged() -> None:
    (own,) = _selectors("default")
    assert own["resources.ARN"] == {
        "StartsWith": [f"{QUEUE_ARNS}mendq-probe.fifo", f"{QUEUE_ARNS}mendq-drill-"]
    }
    assert "eventName" not in own


@pytest.mark.parametrize("name", ["default", "named"])
def test_the_drill_that_the_deploying_page_asks_for_is_seen(name: str) -> None:
    """As the drill itself asks it; `named` logs other queues, and deletes alone of them."""
    given = template_of(name).only("AWS::CloudTrail::Trail")["AdvancedEventSelectors"]
    trail = Trail("mendq", tuple(given))
    drilled = drill_queue_name()
    assert logged([trail], f"{QUEUE_ARNS}{drilled}", [LATE_CALL]) == {LATE_CALL}
    assert not logged([trail], f"{QUEUE_ARNS}x-{drilled}", [LATE_CALL])


def test_named_queues_are_logged_with_the_named_calls_alone() -> None:
    named, probe, _ = _selectors("named")
    assert named["resources.ARN"] == {
        "StartsWith": [f"{QUEUE_ARNS}orders", f"{QUEUE_ARNS}billing-"]
    }
    assert named["eventName"] == {"Equals": ["DeleteMessage", "ChangeMessageVisibility"]}
    assert "eventName" not in probe, "the probe is seen whatever calls are chosen"


@pytest.mark.parametrize("name", ["default", "named"])
def test_every_data_event_selector_leaves_our_own_sessions_out(name: str) -> None:
    prefixes = [
        f"{role.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/"
        for role in OWN_ROLES
    ]
    data = [each for each in _selectors(name) if each["eventCategory"] == {"Equals": ["Data"]}]
    assert data
    for selector in data:
        assert selector["userIdentity.arn"] == {"NotStartsWith": prefixes}
        assert selector["resources.type"] == {"Equals": ["AWS::SQS::Queue"]}


def test_the_probes_own_role_is_not_left_out_of_what_is_logged() -> None:
    (probe,) = _selectors("default")
    session = f"{PROBE_ROLE.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/beat"
    assert not session.startswith(tuple(probe["userIdentity.arn"]["NotStartsWith"]))


def test_management_events_are_narrowed_by_the_fields_that_a_trail_allows() -> None:
    management = _selectors("named")[-1]
    assert management == {
        "eventCategory": {"Equals": ["Management"]},
        "readOnly": {"Equals": ["false"]},
    }


def test_no_basic_selector_stands_beside_the_advanced_ones() -> None:
    assert "EventSelectors" not in template_of("named").only("AWS::CloudTrail::Trail")


def test_the_trail_is_of_this_region_alone_and_waits_for_its_bucket_policy() -> None:
    (trail,) = template_of("default").all("AWS::CloudTrail::Trail").values()
    assert trail["Properties"]["TrailName"] == "mendq"
    assert trail["Properties"]["IsLogging"] is True
    assert trail["Properties"]["IsMultiRegionTrail"] is False
    (depends_on,) = trail["DependsOn"]
    assert depends_on in template_of("default").all("AWS::S3::BucketPolicy")


def test_only_this_trail_of_cloudtrail_may_write_to_the_bucket() -> None:
    allowed = [each for each in _bucket_statements() if each["Effect"] == "Allow"]
    assert {each["Action"] for each in allowed} == {"s3:GetBucketAcl", "s3:PutObject"}
    for each in allowed:
        assert each["Principal"] == {"Service": "cloudtrail.amazonaws.com"}
        assert each["Condition"]["StringEquals"]["aws:SourceArn"] == TRAIL_ARN
    (write,) = (each for each in allowed if each["Action"] == "s3:PutObject")
    assert write["Resource"].endswith(f"/AWSLogs/{ACCOUNT}/*")
    assert write["Condition"]["StringEquals"]["s3:x-amz-acl"] == "bucket-owner-full-control"


def _bucket_statements() -> list[dict[str, Any]]:
    policy = template_of("default").only("AWS::S3::BucketPolicy", "Trail")
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return statements
