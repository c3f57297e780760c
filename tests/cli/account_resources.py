"""List the resources of an AWS account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def list_account_resources(client: Callable[[str], Any]) -> set[str]:
    """Return the queues, buckets, trails, rules, topics and roles of an account."""
    listed = {
        "sqs.list_queues": ("QueueUrls", ""),
        "s3.list_buckets": ("Buckets", "Name"),
        "cloudtrail.describe_trails": ("trailList", "Name"),
        "events.list_rules": ("Rules", "Arn"),
        "sns.list_topics": ("Topics", "TopicArn"),
        "iam.list_roles": ("Roles", "Arn"),
    }
    resources = set[str]()
    for does, (things, name) in listed.items():
        service, operation = does.split(".")
        answer = getattr(client(service), operation)()
        resources.update(
            resource[name] if name else resource for resource in answer.get(things, ())
        )
    return resources
