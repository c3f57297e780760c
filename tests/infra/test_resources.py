"""Who may publish, write and read what the stack holds, and what its trail sees of a drill."""

from __future__ import annotations

import pytest

from mendq.cli.deploy.drill import drill_queue_name
from mendq.cli.deploy.drill_queue import LATE_CALL
from mendq.cli.doctor.visibility import Trail, logged
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, REGION, template_of, template_with

THEIRS = "444455556666"


@pytest.mark.parametrize("severity", ["Urgent", "Info"])
@pytest.mark.parametrize(
    ("account", "alarm", "expected"),
    [
        (ACCOUNT, "mendq-not-healing", "Allow"),
        (ACCOUNT, "another", "ImplicitDeny"),
        (THEIRS, "mendq-not-healing", "ImplicitDeny"),
    ],
)
def test_alarms_of_ours_alone_may_publish(
    severity: str, account: str, alarm: str, expected: str
) -> None:
    policy = template_of("default").only("AWS::SNS::TopicPolicy", f"Topics{severity}")
    _denied, statement = policy["PolicyDocument"]["Statement"]
    assert statement.pop("Principal") == {"Service": "cloudwatch.amazonaws.com"}
    arn = f"arn:aws:cloudwatch:us-east-1:{account}:alarm:{alarm}"
    keys = {"aws:SourceAccount": account, "aws:SourceArn": arn}
    assert decision([statement], "sns:Publish", statement["Resource"], keys=keys) == expected


def test_the_key_is_used_by_alarms_of_this_account_and_by_no_other_service() -> None:
    key = template_of("default").only("AWS::KMS::Key")
    owner, found = key["KeyPolicy"]["Statement"]
    assert list(owner["Principal"]) == ["AWS"]
    assert found.pop("Principal") == {"Service": "cloudwatch.amazonaws.com"}
    for account, expected in ((ACCOUNT, "Allow"), (THEIRS, "ImplicitDeny")):
        keys = {"aws:SourceAccount": account}
        for action in ("kms:GenerateDataKey", "kms:Decrypt"):
            assert decision([found], action, "arn:key", keys=keys) == expected


def test_topics_of_others_are_told_and_none_is_made() -> None:
    """Their policies and keys are theirs: a role may publish there, by SNS with the key alone."""
    topics = {name: f"arn:aws:sns:{REGION}:{ACCOUNT}:team-{name}" for name in ("urgent", "info")}
    template = template_with({"notifications": {"topics": topics}})
    for kind in ("SNS::Topic", "SNS::TopicPolicy", "KMS::Key", "SNS::Subscription"):
        assert template.all(f"AWS::{kind}") == {}
    told = {
        arn
        for kind in ("Alarm", "CompositeAlarm")
        for each in template.all(f"AWS::CloudWatch::{kind}").values()
        for arn in each["Properties"].get("AlarmActions", ())
    }
    assert told == {*topics.values()}
    assert template.outputs["UrgentTopic"]["Value"] == topics["urgent"]
    heal = template.statements("HealRole")
    for arn, expected in ((topics["info"], "Allow"), (f"{topics['info']}2", "ImplicitDeny")):
        assert decision(heal, "sns:Publish", arn) == expected
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
    for service, expected in (("sns", "Allow"), ("s3", "ImplicitDeny")):
        via = f"{service}.{REGION}.amazonaws.com"
        keys = {"kms:ViaService": via, "kms:CallerAccount": ACCOUNT}
        assert decision(heal, "kms:GenerateDataKey", key, keys=keys) == expected


def test_one_topic_of_others_leaves_the_other_one_ours() -> None:
    theirs = f"arn:aws:sns:{REGION}:{ACCOUNT}:on-call"
    both = {"urgent": ["a@b.io"], "info": ["c@d.io"], "topics": {"urgent": theirs}}
    template = template_with({"notifications": both})
    (made,) = template.all("AWS::SNS::Topic")
    assert made.startswith("TopicsInfo")
    subscribed = [each["Properties"] for each in template.all("AWS::SNS::Subscription").values()]
    to = {each["Endpoint"]: each["TopicArn"] for each in subscribed}
    assert to == {"a@b.io": theirs, "c@d.io": made}


def test_the_case_store_is_kept_and_deleted_by_nobody_in_passing() -> None:
    ((_, table),) = template_of("default").all("AWS::DynamoDB::Table").items()
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert table["Properties"]["DeletionProtectionEnabled"] is True


def test_the_trail_leaves_out_no_caller() -> None:
    """A service that calls has no ARN: whether such a selector would take its call, nobody says."""
    trail = template_of("named").only("AWS::CloudTrail::Trail")
    fields = {
        test["Field"] for each in trail["AdvancedEventSelectors"] for test in each["FieldSelectors"]
    }
    assert fields == {
        *("eventCategory", "resources.type", "resources.ARN", "eventName", "readOnly"),
    }


@pytest.mark.parametrize("name", ["default", "named"])
def test_the_drill_that_the_deploying_page_asks_for_is_seen(name: str) -> None:
    """As the drill itself asks it; `named` logs other queues, and deletes alone of them."""
    given = template_of(name).only("AWS::CloudTrail::Trail")["AdvancedEventSelectors"]
    trail = Trail("mendq", tuple(given))
    drilled = drill_queue_name()
    assert logged([trail], f"{QUEUE_ARNS}{drilled}", [LATE_CALL]) == {LATE_CALL}
    assert not logged([trail], f"{QUEUE_ARNS}x-{drilled}", [LATE_CALL])


def test_only_this_trail_of_cloudtrail_may_write_to_the_bucket() -> None:
    trail = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/mendq"
    policy = template_of("default").only("AWS::S3::BucketPolicy", "Trail")
    allowed = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
    assert {each["Action"] for each in allowed} == {"s3:GetBucketAcl", "s3:PutObject"}
    for each in allowed:
        assert each["Principal"] == {"Service": "cloudtrail.amazonaws.com"}
        assert each["Condition"]["StringEquals"]["aws:SourceArn"] == trail
