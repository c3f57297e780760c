"""Partition keys of the case table that IAM policies name.

This file imports nothing of AWS, so that the stack can read it.
"""

from __future__ import annotations

# The partition of items that are about the whole account, such as the change freeze.
ACCOUNT_PARTITION = "account"
# The baselines have partitions of their own, one for each queue. So IAM can let the scan write the
# baselines, and not the cases, which are in the partitions of the queues.
BASELINE_PARTITION_PREFIX = "baselines#"
