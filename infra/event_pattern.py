"""Which events of the default bus reach the intake queue.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_events as events


def failed_calls(own_role_arns: Sequence[str]) -> events.EventPattern:
    """Any errorCode: how CloudTrail spells SQS's is not documented, so `match` alone judges it.

    `anything-but` does not match where the field is absent; `exists: false` beside it keeps the
    calls of IAM users, which have no sessionIssuer.
    """
    someone_else = [{"anything-but": list(own_role_arns)}, {"exists": False}]
    return events.EventPattern(
        source=["aws.sqs"],
        detail_type=["AWS API Call via CloudTrail"],
        detail={
            "errorCode": [{"exists": True}],
            "userIdentity": {"sessionContext": {"sessionIssuer": {"arn": someone_else}}},
        },
    )
