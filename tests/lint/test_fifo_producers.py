"""Lint reports producers that cannot send to a FIFO queue, whatever the policies say."""

from __future__ import annotations

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, lint
from mendq.lint.values import DeployTarget
from mendq.model.severity_class import SeverityClass

# Everybody may send to the queue, so that no policy refuses the producer.
TEMPLATE = """
Parameters: {Open: {Type: String}}
Resources:
  Orders: {Type: AWS::SQS::Queue, Properties: {QUEUE}}
  OrdersPolicy:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Orders]
      PolicyDocument:
        Statement: [{Effect: Allow, Principal: '*', Action: 'sqs:*', Resource: '*'}]
"""
FIFO = "FifoQueue: true"
DEDUPLICATING = f"{FIFO}, ContentBasedDeduplication: true"
QUEUE = "!GetAtt Orders.Arn"
TOPIC = "Paid: {Type: AWS::SNS::Topic, Properties: {TOPIC}}"
SUBSCRIPTION = (
    "OnPaid: {Type: AWS::SNS::Subscription, Properties: {TopicArn: !Ref Paid, Protocol: sqs, "
    f"Endpoint: {QUEUE}}}}}"
)
TOPIC_DLQ = (
    "OnPaid: {Type: AWS::SNS::Subscription, Properties: {TopicArn: !Ref Paid, Protocol: lambda, "
    f"Endpoint: x, RedrivePolicy: {{deadLetterTargetArn: {QUEUE}}}}}}}"
)
BUCKET = (
    "Bills: {Type: AWS::S3::Bucket, Properties: {NotificationConfiguration: {QueueConfigurations: "
    f"[{{Event: 's3:*', Queue: {QUEUE}}}]}}}}}}"
)
RULE = (
    f"OnPaid: {{Type: AWS::Events::Rule, Properties: {{Targets: [{{Id: a, Arn: {QUEUE}MORE}}]}}}}"
)
RULE_DLQ = (
    "OnPaid: {Type: AWS::Events::Rule, Properties: {Targets: [{Id: a, Arn: x, DeadLetterConfig: "
    f"{{Arn: {QUEUE}}}}}]}}}}"
)
SCHEDULE = (
    "Nightly: {Type: AWS::Scheduler::Schedule, Properties: {Target: {RoleArn: x, Arn: "
    f"{QUEUE}MORE}}}}}}"
)
SCHEDULE_DLQ = (
    "Nightly: {Type: AWS::Scheduler::Schedule, Properties: {Target: {RoleArn: x, Arn: y, "
    f"DeadLetterConfig: {{Arn: {QUEUE}}}}}}}}}"
)
PIPE = (
    f"Copy: {{Type: AWS::Pipes::Pipe, Properties: {{RoleArn: x, Source: y, Target: {QUEUE}MORE}}}}"
)
FUNCTION_DLQ = (
    "Bill: {Type: AWS::Lambda::Function, Properties: {DeadLetterConfig: "
    f"{{TargetArn: {QUEUE}}}}}}}"
)
FUNCTION_DESTINATION = (
    "Bill: {Type: AWS::Lambda::Function}\n"
    "  Failed: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: !Ref Bill, "
    f"DestinationConfig: {{OnFailure: {{Destination: {QUEUE}}}}}}}}}"
)
GROUP = ", SqsParameters: {MessageGroupId: all}"
PIPE_GROUP = ", TargetParameters: {SqsQueueParameters: {MessageGroupId: all}}"
STANDARD_TOPIC = TOPIC.replace("TOPIC", "TopicName: paid", 1)
FIFO_TOPIC = TOPIC.replace("TOPIC", "FifoTopic: true", 1)
NOT_DEPLOYED = SeverityClass.STANDING_STILL
NOT_DELIVERED = SeverityClass.WILL_LOSE


def _lint_producer(queue: str, *resources: str) -> LintResult:
    text = TEMPLATE.replace("QUEUE", queue) + "".join(f"  {text}\n" for text in resources)
    return lint(read_template(text.encode()), "", DeployTarget())


@pytest.mark.parametrize(
    ("queue", "resources", "severity_class", "says"),
    [
        (FIFO, (STANDARD_TOPIC, SUBSCRIPTION), NOT_DEPLOYED, "SNS refuses a FIFO queue for it"),
        (FIFO, (STANDARD_TOPIC, TOPIC_DLQ), NOT_DEPLOYED, "SNS refuses a FIFO queue for it"),
        (
            FIFO,
            (SUBSCRIPTION.replace("!Ref Paid", "arn:aws:sns:eu-west-1:210987654321:paid"),),
            NOT_DEPLOYED,
            "SNS refuses a FIFO queue for it",
        ),
        (FIFO, (BUCKET,), NOT_DEPLOYED, "the S3 bucket Bills cannot send to a FIFO queue"),
        (DEDUPLICATING, (RULE.replace("MORE", ""),), NOT_DEPLOYED, "names no MessageGroupId"),
        (FIFO, (RULE.replace("MORE", GROUP),), NOT_DELIVERED, "gives no deduplication id"),
        (DEDUPLICATING, (RULE_DLQ,), NOT_DEPLOYED, "cannot have a FIFO queue as its DLQ"),
        (DEDUPLICATING, (SCHEDULE.replace("MORE", ""),), NOT_DELIVERED, "names no MessageGroupId"),
        (FIFO, (SCHEDULE.replace("MORE", GROUP),), NOT_DELIVERED, "gives no deduplication id"),
        (DEDUPLICATING, (SCHEDULE_DLQ,), NOT_DELIVERED, "cannot have a FIFO queue as its DLQ"),
        (FIFO, (PIPE.replace("MORE", ""),), NOT_DELIVERED, "names no MessageGroupId"),
        (FIFO, (FUNCTION_DLQ,), NOT_DEPLOYED, "the function Bill cannot send to a FIFO queue"),
        (FIFO, (FUNCTION_DESTINATION,), NOT_DEPLOYED, "the function Bill cannot send"),
    ],
)
def test_lint_reports_a_producer_that_cannot_send_to_a_fifo_queue(
    queue: str, resources: tuple[str, ...], severity_class: SeverityClass, says: str
) -> None:
    result = _lint_producer(queue, *resources)
    (finding,) = [finding for finding in result.findings if finding.symptom == "producer_refused"]
    assert finding.severity == "error"
    assert finding.severity_class is severity_class
    assert says in finding.because
    assert ("AWS refuses to deploy it" in finding.because) == (severity_class is NOT_DEPLOYED)
    assert finding.path.startswith("Resources."), finding.path
    assert "Orders" not in finding.path, "the producer must change"
    (remedy,) = finding.remedy
    assert remedy.startswith("# the ")


@pytest.mark.parametrize(
    ("queue", "resources"),
    [
        ("DelaySeconds: 1", (STANDARD_TOPIC, SUBSCRIPTION)),
        (FIFO, (FIFO_TOPIC, SUBSCRIPTION)),
        (FIFO, (FIFO_TOPIC, TOPIC_DLQ)),
        ("DelaySeconds: 1", (FIFO_TOPIC, SUBSCRIPTION)),
        (FIFO, (TOPIC.replace("TOPIC", "FifoTopic: !Ref Open", 1), SUBSCRIPTION)),
        (FIFO, (SUBSCRIPTION.replace("!Ref Paid", "!ImportValue paid"),)),
        (FIFO, (SUBSCRIPTION.replace("!Ref Paid", "arn:aws:sns:eu-west-1:210987654321:a.fifo"),)),
        ("DelaySeconds: 1", (BUCKET,)),
        (DEDUPLICATING, (RULE.replace("MORE", GROUP),)),
        (f"{FIFO}, ContentBasedDeduplication: !Ref Open", (RULE.replace("MORE", GROUP),)),
        (DEDUPLICATING, (RULE.replace("MORE", ", SqsParameters: !If [a, {}, {}]"),)),
        ("DelaySeconds: 1", (RULE.replace("MORE", ""),)),
        ("DelaySeconds: 1", (RULE_DLQ,)),
        (DEDUPLICATING, (SCHEDULE.replace("MORE", GROUP),)),
        (FIFO, (PIPE.replace("MORE", PIPE_GROUP),)),
        ("DelaySeconds: 1", (FUNCTION_DLQ,)),
        ("DelaySeconds: 1", (FUNCTION_DESTINATION,)),
    ],
)
def test_lint_reports_no_producer_that_can_send_to_the_type_of_queue(
    queue: str, resources: tuple[str, ...]
) -> None:
    result = _lint_producer(queue, *resources)
    assert [finding for finding in result.findings if finding.symptom == "producer_refused"] == []


def test_lint_names_the_policy_that_refuses_beside_a_producer_of_the_wrong_type() -> None:
    text = TEMPLATE.replace("QUEUE", FIFO).replace("Principal: '*'", "Principal: {Service: x}")
    result = lint(
        read_template(f"{text}  {BUCKET}\n  {FIFO_TOPIC}\n  {SUBSCRIPTION}\n".encode()),
        "",
        DeployTarget(),
    )
    (finding,) = [finding for finding in result.findings if finding.symptom == "producer_refused"]
    assert finding.severity_class is NOT_DEPLOYED, "the worst class of both"
    assert "the SNS subscription OnPaid, send" in finding.because
    assert finding.path == "Resources.OrdersPolicy.Properties.PolicyDocument"


@pytest.mark.parametrize("producer", [SUBSCRIPTION, RULE.replace("MORE", ""), BUCKET])
def test_lint_reports_a_producer_that_names_the_url_of_a_queue(producer: str) -> None:
    by_url = producer.replace("!GetAtt Orders.Arn", "!Ref Orders")
    result = _lint_producer("VisibilityTimeout: 30", STANDARD_TOPIC, by_url)
    (finding,) = [found for found in result.findings if found.symptom == "producer_refused"]
    assert finding.severity_class is NOT_DEPLOYED
    assert "names the URL of the queue and not its ARN" in finding.because
    assert finding.remedy[-1].endswith("give the ARN of the queue")
