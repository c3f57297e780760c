"""A cloud assembly written by hand: the account must deploy what it holds, not what it knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HANDLER = """
import importlib.util, json, os, time

def handler(event, context):
    time.sleep(event.get("sleep_seconds", 0))
    directive = {"Namespace": "Test", "Dimensions": [["who"], []],
                 "Metrics": [{"Name": "Handled", "Unit": "Count"}]}
    aws = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    count = len(event.get("Records", []))
    print(json.dumps({"_aws": aws, "who": "test", "Handled": count}))
    return {
        "variables": dict(os.environ),
        "powertools": importlib.util.find_spec("aws_lambda_powertools") is not None,
        "boto3": importlib.util.find_spec("boto3") is not None,
    }
"""
POLLING = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def write_assembly(folder: Path, *, bucket_open_to_cloudtrail: bool = True) -> Path:
    """Write an assembly with one stack, one folder asset, and resources of every kind we handle."""
    (folder / "asset.code").mkdir(parents=True)
    (folder / "asset.code" / "index.py").write_text(HANDLER)
    destination = {"bucketName": "assets-${AWS::AccountId}", "objectKey": "code.zip"}
    source = {"path": "asset.code", "packaging": "zip"}
    files = {"code": {"source": source, "destinations": {"here": destination}}}
    stack = {"templateFile": "Tiny.template.json", "stackName": "Mendq"}
    artifacts = {
        "Tiny.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Tiny.assets.json"}},
        "Tiny": {"type": "aws:cloudformation:stack", "properties": stack},
    }
    _write(folder / "Tiny.assets.json", {"files": files})
    _write(folder / "Tiny.template.json", _template(bucket_open_to_cloudtrail))
    _write(folder / "manifest.json", {"version": "38.0.0", "artifacts": artifacts})
    return folder


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _template(bucket_open_to_cloudtrail: bool) -> dict[str, Any]:
    resources = {
        "TrailBucket": {"Type": "AWS::S3::Bucket"},
        "TrailBucketPolicy": _bucket_policy(bucket_open_to_cloudtrail),
        "Trail": _trail(),
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Role": _role(),
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Timeout": 30,
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Environment": {"Variables": {"OWN": "yes"}},
                "Code": {"S3Bucket": "assets-000000000000", "S3Key": "code.zip"},
            },
        },
        "Mapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "FunctionName": {"Ref": "Function"},
                "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
                "MaximumBatchingWindowInSeconds": 2,
            },
        },
        "Application": {
            "Type": "AWS::EMRServerless::Application",
            "Properties": {"Name": "nightly", "ReleaseLabel": "emr-7.14.0", "Type": "SPARK"},
        },
        "Detector": {
            "Type": "AWS::CloudWatch::AnomalyDetector",
            "Properties": {"Namespace": "Test", "MetricName": "Handled", "Stat": "Sum"},
        },
        "Band": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "AlarmName": "spike",
                "ComparisonOperator": "GreaterThanUpperThreshold",
                "EvaluationPeriods": 1,
                "ThresholdMetricId": "band",
                "Metrics": [{"Id": "band", "Expression": "ANOMALY_DETECTION_BAND(m, 2)"}],
            },
        },
    }
    named = ("TrailBucket", "Queue", "Function", "Role", "Application", "Detector")
    arns = {"TrailArn": "Trail", "ApplicationArn": "Application"}
    outputs = {
        **{name: {"Value": {"Ref": name}} for name in named},
        **{name: {"Value": {"Fn::GetAtt": [each, "Arn"]}} for name, each in arns.items()},
    }
    return {"Resources": resources, "Outputs": outputs}


def _trail() -> dict[str, Any]:
    fields = [
        {"Field": "eventCategory", "Equals": ["Data"]},
        {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
        {"Field": "eventName", "Equals": ["SendMessage"]},
    ]
    return {
        "Type": "AWS::CloudTrail::Trail",
        "DependsOn": "TrailBucketPolicy",
        "Properties": {
            "TrailName": "tiny",
            "S3BucketName": {"Ref": "TrailBucket"},
            "IsLogging": True,
            "AdvancedEventSelectors": [{"Name": "sent", "FieldSelectors": fields}],
        },
    }


def _bucket_policy(open_to_cloudtrail: bool) -> dict[str, Any]:
    service = "cloudtrail.amazonaws.com" if open_to_cloudtrail else "config.amazonaws.com"
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": ["s3:GetBucketAcl", "s3:PutObject"],
        "Resource": [
            {"Fn::GetAtt": ["TrailBucket", "Arn"]},
            {"Fn::Join": ["", [{"Fn::GetAtt": ["TrailBucket", "Arn"]}, "/AWSLogs/*"]]},
        ],
    }
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {
        "Type": "AWS::S3::BucketPolicy",
        "Properties": {"Bucket": {"Ref": "TrailBucket"}, "PolicyDocument": document},
    }


def _role() -> dict[str, Any]:
    service = {"Service": "lambda.amazonaws.com"}
    trust = {"Effect": "Allow", "Principal": service, "Action": "sts:AssumeRole"}
    polls = {"Effect": "Allow", "Action": POLLING, "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [polls]}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "RoleName": "tiny",
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "Policies": [{"PolicyName": "polling", "PolicyDocument": document}],
        },
    }
