"""SNS topics of notifications: for urgent notifications, for all others, and for teams.

There are two topics so that urgent notifications can reach other people than the rest. A scan-only
stack has only the topic of urgent notifications.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from msgspec import Struct

from infra.roles import allow, allow_keys_through, make_account_condition
from infra.settings.deployment import NotificationSettings
from mendq.model.case import Severity
from mendq.notifications.commands import ALARM_PREFIX

_KMS_KEY_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey*")


class Topic(Struct, frozen=True):
    """A topic, and the statement that allows a publisher to use the topic's KMS key.

    The statement is None if the topic has no key.
    """

    topic: sns.ITopic
    kms_key_statement: iam.PolicyStatement | None

    @property
    def arn(self) -> str:
        """The topic's ARN."""
        return self.topic.topic_arn

    def list_publish_statements(self) -> Iterator[iam.PolicyStatement]:
        """Yield the statements that a role needs to publish to the topic.

        The role must be allowed to use the topic's KMS key too, if there is one: SNS encrypts a
        message with the permissions of its publisher.
        """
        yield allow(["sns:Publish"], self.arn)
        if self.kms_key_statement:
            yield self.kms_key_statement

    def add_subscribers(self, subscribers: Sequence[str]) -> None:
        """Subscribe e-mail addresses and https URLs."""
        for subscriber in subscribers:
            if subscriber.startswith("https://"):
                self.topic.add_subscription(subscriptions.UrlSubscription(subscriber))
            else:
                self.topic.add_subscription(subscriptions.EmailSubscription(subscriber))

    def connect_alarm(self, alarm: cloudwatch.AlarmBase) -> None:
        """Let an alarm publish to the topic when it begins and when it ends."""
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        alarm.add_ok_action(actions.SnsAction(self.topic))


class Topics(Construct):
    """All topics to which Mendq publishes.

    Attributes:
        urgent: topic of urgent notifications: the topic in the settings, or a new one.
        info: topic of all other notifications: the topic in the settings, or a new one.
        teams: the teams' topics, which the settings name.
    """

    def __init__(self, scope: Construct, name: str, notifications: NotificationSettings) -> None:
        super().__init__(scope, name)
        existing_topics = notifications.topics
        self.urgent = self._find_or_make_topic(
            "Urgent", existing_topics.urgent, "Mendq urgent", notifications.urgent
        )
        self.info = self._find_or_make_topic(
            "Info", existing_topics.info, "Mendq", notifications.info
        )
        teams_construct = Construct(self, "Teams")
        self.teams = [
            _import_topic(Construct(teams_construct, team), arn)
            for team, arn in notifications.teams.items()
        ]

    def connect_alarm(self, alarm: cloudwatch.AlarmBase, severity: Severity) -> None:
        """Let an alarm publish to the topic of `severity` when it begins and when it ends."""
        topic = self.urgent if severity is Severity.URGENT else self.info
        topic.connect_alarm(alarm)

    def _find_or_make_topic(
        self, name: str, existing_arn: str | None, title: str, subscribers: Sequence[str]
    ) -> Topic:
        """Return a topic with its subscribers. Make a topic if the settings name none.

        Args:
            name: the id of the topic's construct.
            existing_arn: the ARN of the topic that the settings name; None if they name none.
            title: the new topic's name in mails.
            subscribers: e-mail addresses and https URLs.
        """
        scope = Construct(self, name)
        if existing_arn:
            topic = _import_topic(scope, existing_arn)
        else:
            topic = _create_topic(scope, title, self._kms_key)
        topic.add_subscribers(subscribers)
        return topic

    @cached_property
    def _kms_key(self) -> kms.Key:
        """The KMS key of both new topics. It is made at the first access.

        With the AWS-managed key no AWS service could publish, and the key's policy cannot be
        changed.
        https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
        """
        # Topics store no messages, so the key can be deleted with the stack.
        key = kms.Key(
            self,
            "Key",
            description="Mendq: the messages of its topics",
            enable_key_rotation=True,
            pending_window=Duration.days(7),
            removal_policy=RemovalPolicy.DESTROY,
        )
        # CloudWatch alarms may use the key. The topics' policies say which alarms may publish.
        # This was not tried on AWS.
        own_account_condition = make_account_condition(Stack.of(self))
        key.add_to_resource_policy(
            allow(_KMS_KEY_ACTIONS, "*", service="cloudwatch", conditions=own_account_condition)
        )
        return key


def _import_topic(scope: Construct, arn: str) -> Topic:
    """Return a topic that exists already.

    Its KMS key is not known, so the use of any key of the account through SNS is allowed.
    """
    stack = Stack.of(scope)
    kms_key_statement = allow_keys_through("sns", stack, ("kms:Decrypt", "kms:GenerateDataKey"))
    return Topic(sns.Topic.from_topic_arn(scope, "Topic", arn), kms_key_statement)


def make_only_topic(scope: Construct, notifications: NotificationSettings) -> Topic:
    """Return the only topic of a scan-only stack, with its subscribers.

    It is the topic that the settings name, or a new one without server-side encryption. SNS has no
    key that AWS owns, CloudWatch cannot publish to a topic with the key that AWS manages, and a key
    of its own would cost more than the rest of the stack.
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html

    The new topic has the construct id of a whole stack's urgent topic. So a stack that becomes a
    whole stack keeps the topic and its confirmed subscriptions.
    """
    topic_scope = Construct(Construct(scope, "Topics"), "Urgent")
    existing_arn = notifications.topics.urgent
    if existing_arn:
        topic = _import_topic(topic_scope, existing_arn)
    else:
        topic = _create_topic(topic_scope, "Mendq", None)
    topic.add_subscribers(notifications.urgent)
    return topic


def _create_topic(scope: Construct, display_name: str, kms_key: kms.Key | None) -> Topic:
    """Make a topic to which Mendq's own alarms of this account and region may publish.

    With None as `kms_key`, SNS does not encrypt the messages that it stores.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
    """
    topic = sns.Topic(
        scope, "Topic", display_name=display_name, master_key=kms_key, enforce_ssl=True
    )
    own_alarm_arn_pattern = Stack.of(scope).format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name=f"{ALARM_PREFIX}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    conditions = {
        **make_account_condition(Stack.of(scope)),
        "ArnLike": {"aws:SourceArn": own_alarm_arn_pattern},
    }
    topic.add_to_resource_policy(
        allow(["sns:Publish"], topic.topic_arn, service="cloudwatch", conditions=conditions)
    )
    if kms_key is None:
        return Topic(topic, None)
    return Topic(topic, allow(["kms:GenerateDataKey", "kms:Decrypt"], kms_key.key_arn))
