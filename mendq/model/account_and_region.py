"""The account and region in which a deployed Mendq runs."""

from __future__ import annotations

from dataclasses import dataclass

from mendq.model.names import ROLE_PURPOSES, role_name
from mendq.model.partitions import partition_of
from mendq.model.queue import parse_queue_arn


@dataclass(frozen=True)
class AccountAndRegion:
    """The account and region in which a deployed Mendq runs and whose queues it manages."""

    account: str
    region: str

    def purpose_of(self, principal_arn: str) -> str | None:
        """Return the purpose of one of Mendq's roles, such as `heal`; None for any other principal.

        Args:
            principal_arn: The role's IAM ARN. For the ARN of a role's session, the result is None.
        """
        arn_before_role_name, _, actual_role_name = principal_arn.partition(":role/")
        if not arn_before_role_name.endswith(f":iam::{self.account}"):
            return None
        for role_purpose in ROLE_PURPOSES:
            if actual_role_name == role_name(role_purpose, self.region):
                return role_purpose
        return None

    def holds(self, queue_arn: str) -> bool:
        """Return True if the queue is in this account and region.

        Raises:
            ValueError: `queue_arn` is not the ARN of a queue.
        """
        queue = parse_queue_arn(queue_arn)
        return queue[:3] == (partition_of(self.region), self.region, self.account)
