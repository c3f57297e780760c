"""Topics of notifications: urgent ones, which want somebody now, and info.

Two topics, so that each may reach other people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.roles import may, may_use_keys_by, this_account
from infra.settings.deployment import NotificationSettings
from mendq.model.case import Severity
from mendq.notifications.commands import ALARM_PREFIX

_USE_OF_KEY = ("kms:Decrypt", "kms:GenerateDataKey*")


class Topics(Construct):
    """`urgent` and `info`: those that the settings name, else of our own; and the `teams`'."""

    def __init__(self, scope: Construct, name: str, notifications: NotificationSettings) -> None:
        super().__init__(scope, name)
        existing = notifications.topics
        self.urgent = self._topic("Urgent", existing.urgent, "Mendq urgent", notifications.urgent)
        self.info = self._topic("Info", existing.info, "Mendq", notifications.info)
        teams = Construct(self, "Teams")
        self.teams = [
            _existing(Construct(teams, team), arn) for team, arn in notifications.teams.items()
        ]

    def tell_of(self, alarm: cloudwatch.AlarmBase, severity: Severity) -> None:
        """When it begins and when it ends."""
        topic = {Severity.URGENT: self.urgent, Severity.INFO: self.info}[severity]
        for announced in (alarm.add_alarm_action, alarm.add_ok_action):
            announced(actions.SnsAction(topic.topic))

    def _topic(self, name: str, existing: str | None, title: str, to: Sequence[str]) -> Topic:
        place = Construct(self, name)
        topic = _existing(place, existing) if existing else _made(place, title, self._key)
        for address in to:  # an e-mail address or an https URL
            is_url = address.startswith("https://")
            kind = subscriptions.UrlSubscription if is_url else subscriptions.EmailSubscription
            topic.topic.add_subscription(kind(address))
        return topic

    @cached_property
    def _key(self) -> kms.Key:
        """One for both of ours.

        The AWS-managed key lets no service publish, and its policy cannot be changed.
        https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
        """
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
        return key


@dataclass(frozen=True)
class Topic:
    """One severity, and what publishing takes of its key."""

    topic: sns.ITopic
    uses_key: iam.PolicyStatement

    @property
    def arn(self) -> str:
        return self.topic.topic_arn

    def publishing(self) -> Iterator[iam.PolicyStatement]:
        """What a role of ours needs to publish: SNS encrypts with the publisher's permissions."""
        yield may(["sns:Publish"], self.arn)
        yield self.uses_key


def _existing(place: Construct, arn: str) -> Topic:
    uses = may_use_keys_by("sns", Stack.of(place), ("kms:Decrypt", "kms:GenerateDataKey"))
    return Topic(sns.Topic.from_topic_arn(place, "Topic", arn), uses)


def _made(place: Construct, title: str, key: kms.Key) -> Topic:
    topic = sns.Topic(place, "Topic", display_name=title, master_key=key, enforce_ssl=True)
    # Mendq's own alarms of this account and region may publish, and no other.
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
    ours = Stack.of(place).format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name=f"{ALARM_PREFIX}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    only = {**this_account(Stack.of(place)), "ArnLike": {"aws:SourceArn": ours}}
    publishes = may(["sns:Publish"], topic.topic_arn, service="cloudwatch", conditions=only)
    topic.add_to_resource_policy(publishes)
    return Topic(topic, may(["kms:GenerateDataKey", "kms:Decrypt"], key.key_arn))
