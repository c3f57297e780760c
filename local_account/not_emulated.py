"""What the account takes without doing it: printed at the start, served, shown by the demo."""

from __future__ import annotations

from dataclasses import dataclass, field

# Things of every start; what a template adds stands in `NotEmulated.accepted`.
ALWAYS = (
    "TLS: the loopback interface stands in for it, policies see aws:SecureTransport",
    "CloudTrail for services other than SQS, its digests; its minutes of delay are off by default",
    "CloudTrail LookupEvents: management events of SQS only, and at once (at AWS minutes later)",
    "records of the calls that event source mappings and CloudFormation make",
    "KMS: keys are kept, nothing is encrypted, SQS errors of it only by /_mendq/sqs-errors",
    "SNS: what a role needs on a topic's key is asked for, key policies and users are not judged",
    "SES: mail is kept at /_mendq/mails and sent to nobody; report.sender counts as verified",
    "SES: no sandbox, permissions on recipients' identities and configuration sets, suppression",
    "SNS: mail is not sent, its subscriptions are confirmed at once",
    "SQS quotas: errors only when /_mendq/sqs-errors is told, never for event source mappings",
    "Lambda: failed events are tried again after 1 and 2 s (at AWS after 1 and 2 minutes)",
    "Lambda: Runtime and Architectures (this machine's Python runs the code), memory limits",
    "SQS: up to 60 s of propagation, approximate counts",
    "SQS move tasks: none but those that /_mendq/move-task lists, which move nothing",
    "SQS: the attributes of a message count nothing in its size",
    "CloudTrail records of calls in SQS's old query protocol, which current SDKs no longer speak",
    "EventBridge and Scheduler: DLQs of targets",
    "SNS: subscriptions that nobody confirmed are listed with an ARN",
    "Lambda: what it refuses of an event source mapping's batch, window and timeout",
    "Tagging API and CloudWatch: pages of answers",
    "AWS/SQS metrics: there at once (at AWS minutes later); a mapping polls once at a time",
    "CloudWatch alarms: dimensions, missing data, anomaly bands, any on AWS/SQS or AWS/Lambda",
    "CloudWatch GetMetricData: expressions",
    "IAM Access Analyzer: checks are refused, or answer as /_mendq/access-analyzer is told",
    "DynamoDB: indexes are up to date at once; one gives attributes that it does not project",
    "DynamoDB: point-in-time recovery; items outlive their TTL by up to a minute",
    "S3: lifecycle rules, object ownership",
    "EMR Serverless: sizes, timeouts, queueing (this machine's Spark, one run at a time), stops",
    "EMR Serverless: the job's compiled packages are this machine's, not those for arm64",
    "EMR Serverless: Spark reads and writes S3 through Arrow, not through EMRFS",
    "EventBridge Scheduler: retries, flexible windows",
)


@dataclass
class NotEmulated:
    """The list of one account; CloudFormation adds to it while it deploys."""

    accepted: list[str] = field(default_factory=list)

    def accept(self, resource: str) -> None:
        """Note a resource that was accepted and does nothing."""
        if resource not in self.accepted:
            self.accepted.append(resource)

    @property
    def lines(self) -> list[str]:
        """Everything, resources of the template first."""
        return [f"{each}: accepted, not emulated" for each in self.accepted] + list(ALWAYS)
