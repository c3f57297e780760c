"""The probe: a queue that refuses every message, and the Lambda that sends it one."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.lambdas.lambda_function import Handler, ParkingLambda
from infra.topics import Topic
from mendq.model.names import PROBE
from mendq.model.settings import ProbeSettings
from mendq.model.steps import PROBE_ACTION
from mendq.probe.probe import QUEUE_NAME

# Later than this, the probe that was to be judged has had its successor.
PATIENCE = Duration.minutes(10)
HANDLER = Handler(
    "probe",
    "Mendq: sends a failing call that heal has to see",
    timeout=Duration.seconds(30),
    memory_mb=256,
)


class Probe(ParkingLambda):
    """Its role is the one that the rule and the trail do not leave out."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        case_store: dynamodb.Table,
        urgent: Topic,
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=PROBE, patience=PATIENCE)
        # A fixed name: heal knows the queue by it, and the trail before it is there.
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=QUEUE_NAME,
            fifo=True,
            content_based_deduplication=False,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.minutes(1),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.may([PROBE_ACTION], self.queue.queue_arn)
        actions = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
        self.may(actions, case_store.table_arn)
        urgent.let_publish(self.role)
        self.knows(
            ProbeSettings(
                account=Stack.of(self).account,
                case_table=case_store.table_name,
                urgent_topic_arn=urgent.arn,
                probe_queue_url=self.queue.queue_url,
            )
        )
