"""Partition keys of the case table that IAM policies name.

The stack imports this file, so it imports no AWS library.
"""

from __future__ import annotations

# The partition of items that are about the whole account, such as the change freeze.
ACCOUNT_PARTITION = "account"
# Each queue's baselines have a partition of their own. So IAM can let the scan write baselines, but
# not cases, which are in the partitions named by queue ARNs.
BASELINE_PARTITION_PREFIX = "baselines#"
