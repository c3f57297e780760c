"""Topics of notifications: urgent ones, which want somebody now, and info.

Two topics, so that each may reach other people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.roles import may, this_account
from infra.settings.deployment import NotificationSettings
from mendq.model.case import Severity
from mendq.notifications.commands import ALARM_PREFIX

_USE_OF_KEY = ("kms:Decrypt", "kms:GenerateDataKey*")


class Topics(Construct):
    """`urgent` and `info`, both encrypted with one key of our own.

    The AWS-managed key lets no service publish, and its policy cannot be changed.
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    """

    def __init__(self, scope: Construct, name: str, notifications: NotificationSettings) -> None:
        super().__init__(scope, name)
        # The topics keep nothing, so nothing is lost with their key.
        key = kms.Key(
            self,
            "Key",
            description="Mendq: the messages of its topics",
            enable_key_rotation=True,
            pending_window=Duration.days(7),
            removal_policy=RemovalPolicy.DESTROY,
        )
        # What an alarm takes; each topic's policy says which may publish. Not tried on AWS.
        only = this_account(Stack.of(self))
        key.add_to_resource_policy(may(_USE_OF_KEY, "*", service="cloudwatch", conditions=only))
        self.urgent = Topic(self, "Urgent", "Mendq urgent", notifications.urgent, key)
        self.info = Topic(self, "Info", "Mendq", notifications.info, key)

    def tell_of(self, alarm: cloudwatch.AlarmBase, severity: Severity) -> None:
        """When it begins and when it ends."""
        topic = {Severity.URGENT: self.urgent, Severity.INFO: self.info}[severity]
        for announced in (alarm.add_alarm_action, alarm.add_ok_action):
            announced(actions.SnsAction(topic.topic))


class Topic(Construct):
    """One severity: a topic, and those of the settings who hear from it."""

    def __init__(
        self, scope: Construct, name: str, title: str, to: Sequence[str], key: kms.Key
    ) -> None:
        super().__init__(scope, name)
        self._key = key
        self.topic = sns.Topic(self, "Topic", display_name=title, master_key=key, enforce_ssl=True)
        self.arn = self.topic.topic_arn
        for address in to:  # an e-mail address or an https URL
            is_url = address.startswith("https://")
            kind = subscriptions.UrlSubscription if is_url else subscriptions.EmailSubscription
            self.topic.add_subscription(kind(address))
        # Mendq's own alarms of this account and region may publish, and no other.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
        ours = Stack.of(self).format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{ALARM_PREFIX}*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        only = {**this_account(Stack.of(self)), "ArnLike": {"aws:SourceArn": ours}}
        publishes = may(["sns:Publish"], self.arn, service="cloudwatch", conditions=only)
        self.topic.add_to_resource_policy(publishes)

    def publishing(self) -> Iterator[iam.PolicyStatement]:
        """What a role of ours needs to publish: SNS encrypts with the publisher's permissions."""
        yield may(["sns:Publish"], self.arn)
        yield may(["kms:GenerateDataKey", "kms:Decrypt"], self._key.key_arn)
