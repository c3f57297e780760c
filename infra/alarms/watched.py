"""What of the stack is watched beside the metrics that Mendq sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from infra.intake import Intake


@dataclass(frozen=True)
class Watched:
    """`dlqs` are all of Mendq's own but the rule's, and `writers` all that write but heal.

    Both go by the name of what they belong to.
    """

    intake: Intake
    heal: lambda_.Function
    follow_up: lambda_.Function
    scan: lambda_.Function
    dlqs: Mapping[str, sqs.Queue]
    writers: Mapping[str, lambda_.Function]
