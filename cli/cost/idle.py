"""What the stack costs in a month in which nothing fails: a line for each kind of resource.

A resource type that is neither priced nor free here is not zero: it is named as not priced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cli.cost import billed_by_month, billed_by_use
from cli.cost.deployed import Deployed
from cli.cost.line import Line

PRICED: Mapping[str, Callable[[Deployed], Line]] = {
    "AWS::CloudTrail::Trail": billed_by_use.trail,
    "AWS::CloudWatch::Alarm": billed_by_month.alarms,
    "AWS::CloudWatch::CompositeAlarm": billed_by_month.composites,
    "AWS::CloudWatch::Dashboard": billed_by_month.dashboards,
    "AWS::DynamoDB::Table": billed_by_use.table,
    "AWS::EMRServerless::Application": billed_by_use.nights,
    "AWS::KMS::Key": billed_by_month.keys,
    "AWS::Lambda::EventSourceMapping": billed_by_use.polling,
    "AWS::Lambda::Function": billed_by_use.invocations,
    "AWS::Logs::LogGroup": billed_by_use.logs,
    "AWS::S3::Bucket": billed_by_month.buckets,
    "AWS::Scheduler::Schedule": billed_by_use.schedules,
}
_NO_CHARGE = "AWS does not charge for it"
FREE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "AWS::CDK::Metadata",
            "AWS::IAM::ManagedPolicy",
            "AWS::IAM::Policy",
            "AWS::IAM::Role",
            "AWS::KMS::Alias",
            "AWS::Lambda::EventInvokeConfig",
            "AWS::Lambda::Permission",
            "AWS::S3::BucketPolicy",
            "AWS::SNS::TopicPolicy",
            "AWS::SQS::QueuePolicy",
        ),
        _NO_CHARGE,
    ),
    "AWS::CloudWatch::AnomalyDetector": "billed with the alarm that watches its band",
    "AWS::Events::Rule": "rules cost nothing, nor does what AWS's services send by themselves",
    "AWS::SNS::Subscription": "billed by the message: 100,000 mails are two dollars",
    "AWS::SNS::Topic": "billed by the message: nothing is told while nothing fails",
    "AWS::SQS::Queue": "billed by the call: idle ones are called by nobody but Lambda's pollers",
}


def lines(stack: Deployed) -> list[Line]:
    """The dearest first. Raises NotPriced."""
    found = [PRICED[each](stack) for each in sorted(stack.types & PRICED.keys())]
    return sorted([*found, billed_by_month.metrics(stack)], key=lambda line: -line.dollars)


def free(stack: Deployed) -> dict[str, str]:
    """Resource types that cost nothing while nothing fails, and why."""
    return {each: FREE[each] for each in sorted(stack.types & FREE.keys())}


def not_priced(stack: Deployed) -> list[str]:
    """Resource types of which nothing is known here."""
    return sorted(stack.types - PRICED.keys() - FREE.keys())
