"""The topic for what people should know and need not act on at once: so far the week's verdict."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


class InfoTopic(Construct):
    """Encrypted with a key of our own, because services other than Lambda will publish here.

    The AWS-managed key lets no service publish, and its policy cannot be changed.
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    """

    def __init__(self, scope: Construct, name: str, addresses: Sequence[str]) -> None:
        super().__init__(scope, name)
        # The topic keeps nothing, so nothing is lost with its key.
        self.key = kms.Key(
            self,
            "Key",
            description="Mendq: the messages of its topics",
            enable_key_rotation=True,
            pending_window=Duration.days(7),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.topic = sns.Topic(
            self, "Topic", display_name="Mendq", master_key=self.key, enforce_ssl=True
        )
        for address in addresses:
            self.topic.add_subscription(_subscription(address))

    def let_publish(self, role: iam.Role) -> None:
        """What a role of ours needs to publish: SNS encrypts with the publisher's permissions."""
        role.add_to_policy(
            iam.PolicyStatement(actions=["sns:Publish"], resources=[self.topic.topic_arn])
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["kms:GenerateDataKey", "kms:Decrypt"], resources=[self.key.key_arn]
            )
        )


def _subscription(address: str) -> sns.ITopicSubscription:
    """The settings hold e-mail addresses and https URLs, nothing else."""
    if address.startswith("https://"):
        return subscriptions.UrlSubscription(address)
    return subscriptions.EmailSubscription(address)
