"""What AWS allows an account, and where people read it.

https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_ListServiceQuotas.html
"""

from __future__ import annotations

from functions.healing.queue_names import parts_of

# So many of SQS's own may run at once in an account.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
MOST_MOVE_TASKS = 100


def quotas_command(service_code: str, queue_arn: str, named: str = "") -> str:
    """The `aws` command that lists a service's quotas in the queue's region.

    With `named` only those whose names hold it. Both words are ours, so neither is quoted.
    """
    chosen = f"[?contains(QuotaName, '{named}')]" if named else "[]"
    return (
        f"aws service-quotas list-service-quotas --region {parts_of(queue_arn).region} "
        f"--service-code {service_code} "
        f'--query "Quotas{chosen}.[QuotaName, Value]" --output table'
    )
