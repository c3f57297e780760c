"""Topics of notifications: urgent ones, which want somebody now, and info.

Two topics, so that each may reach other people.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.roles import allow
from infra.settings.deployment import NotificationSettings
from mendq.model.case import Severity
from mendq.notifications.commands import ALARM_PREFIX


class Topics(Construct):
    """`urgent` and `info`, both encrypted with one key of our own.

    The AWS-managed key lets no service publish, and its policy cannot be changed.
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    """

    def __init__(self, scope: Construct, name: str, notifications: NotificationSettings) -> None:
        super().__init__(scope, name)
        # The topics keep nothing, so nothing is lost with their key.
        self.key = kms.Key(
            self,
            "Key",
            description="Mendq: the messages of its topics",
            enable_key_rotation=True,
            pending_window=Duration.days(7),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._let_services_encrypt()
        self.urgent = Topic(
            self, "Urgent", title="Mendq urgent", to=notifications.urgent, key=self.key
        )
        self.info = Topic(self, "Info", title="Mendq", to=notifications.info, key=self.key)

    def tell_of(self, alarm: cloudwatch.AlarmBase, severity: Severity) -> None:
        """When it begins and when it ends."""
        topic = {Severity.URGENT: self.urgent, Severity.INFO: self.info}[severity]
        for announced in (alarm.add_alarm_action, alarm.add_ok_action):
            announced(topic.action)

    def _let_services_encrypt(self) -> None:
        """What an alarm and a rule take; each topic's policy says whether they may publish.

        SNS's page has EventBridge's statement without aws:SourceAccount: with it nothing arrives.
        Not tried on AWS.
        """
        this_account = {"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        for service, conditions in (("cloudwatch", this_account), ("events", {})):
            self.key.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal(f"{service}.amazonaws.com")],
                    actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                    resources=["*"],
                    conditions=conditions,
                )
            )


class Topic(Construct):
    """One severity: a topic, and those of the settings who hear from it."""

    def __init__(
        self, scope: Construct, name: str, *, title: str, to: Sequence[str], key: kms.Key
    ) -> None:
        super().__init__(scope, name)
        self._key = key
        self._topic = sns.Topic(self, "Topic", display_name=title, master_key=key, enforce_ssl=True)
        for address in to:
            self._topic.add_subscription(_subscription(address))
        self._let_alarms_publish()

    @property
    def arn(self) -> str:
        return self._topic.topic_arn

    @property
    def action(self) -> cloudwatch.IAlarmAction:
        """What an alarm does to tell of itself here."""
        return actions.SnsAction(self._topic)

    def _let_alarms_publish(self) -> None:
        """Mendq's own alarms of this account and region, and no other.

        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
        """
        stack = Stack.of(self)
        ours = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{ALARM_PREFIX}*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        self._topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": ours},
                },
            )
        )

    def let_publish(self, role: iam.Role) -> None:
        """What a role of ours needs to publish: SNS encrypts with the publisher's permissions."""
        allow(role, ["sns:Publish"], self.arn)
        allow(role, ["kms:GenerateDataKey", "kms:Decrypt"], self._key.key_arn)


def _subscription(address: str) -> sns.ITopicSubscription:
    """The settings hold e-mail addresses and https URLs, nothing else."""
    if address.startswith("https://"):
        return subscriptions.UrlSubscription(address)
    return subscriptions.EmailSubscription(address)
