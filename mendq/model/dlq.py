"""Rules for DLQs and quarantines.

The rules say which queues may use a DLQ, which attributes a new DLQ or quarantine gets, and why an
existing queue is unfit. A quarantine is a queue for messages that failed again after a redrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mendq.model.consent import Consent
from mendq.model.facts import (
    Facts,
    QueueFacts,
    function_name,
    is_aws_managed_key,
    is_key_of_another_account,
)
from mendq.model.message_calls import RECEIVE_MESSAGE_ACTION
from mendq.model.mode import Mode
from mendq.model.policy import Statement, may_apply_to, parse_statements
from mendq.model.queue import (
    LONGEST_RETENTION_SECONDS,
    QUARANTINE_SUFFIX,
    RedriveAllowPolicy,
    make_arn_with_suffix,
    parse_queue_arn,
    parse_redrive_allow_policy,
)
from mendq.model.steps import SetMaximumMessageSize


def select_confirmed_sources(
    candidate_source_arns: Iterable[str],
    dlq: Facts,
    consent: Consent,
    read_tags: Callable[[str], Mapping[str, str]],
) -> tuple[str, ...]:
    """Return the ARNs of the confirmed sources of `dlq`, in the order of `candidate_source_arns`.

    A source is a queue whose RedrivePolicy names the DLQ. Any queue may name any other queue, so
    the RedrivePolicy alone proves nothing. A source is confirmed if the DLQ's RedriveAllowPolicy
    names it, or if Mendq manages the source.

    A source that is managed only by its tag needs more proof, because anyone may create a queue and
    tag it. It is not confirmed if the DLQ has a higher mode than tags can give, or if the DLQ's
    RedriveAllowPolicy is neither `allowAll` nor unreadable.

    Args:
        candidate_source_arns: The ARNs of the queues whose RedrivePolicy names the DLQ.
        dlq: The DLQ with its attributes and tags.
        consent: The settings that say which queues Mendq manages.
        read_tags: Returns the tags of the queue with this ARN. It is not called for a queue that
            its tags cannot confirm.
    """
    redrive_allow_policy = parse_redrive_allow_policy(dlq.attributes.get("RedriveAllowPolicy", ""))
    dlq_mode = consent.mode_of(dlq.name, dlq.tags) or Mode.OBSERVE
    allows_any_source = (
        redrive_allow_policy is None or redrive_allow_policy.permission == "allowAll"
    )
    can_mode_tag_confirm_source = allows_any_source and consent.tag_may_raise_to >= dlq_mode

    def is_managed(arn: str) -> bool:
        name = parse_queue_arn(arn).name
        can_source_be_confirmed = (
            can_mode_tag_confirm_source or consent.mode_of(name, {}) is not None
        )
        return can_source_be_confirmed and consent.mode_of(name, read_tags(arn)) is not None

    named_source_arns = (
        redrive_allow_policy.sources
        if redrive_allow_policy and redrive_allow_policy.permission == "byQueue"
        else ()
    )
    return tuple(
        arn for arn in candidate_source_arns if arn in named_source_arns or is_managed(arn)
    )


def make_safe_storage_attributes(source: Facts) -> dict[str, str]:
    """Return attributes for a new queue: a retention of 14 days, and the source's encryption.

    The new queue uses the source's KMS key, or SQS's own encryption if the source has no KMS key.
    """
    attributes = {"MessageRetentionPeriod": str(LONGEST_RETENTION_SECONDS)}
    if source.kms_key is not None:
        return attributes | {"KmsMasterKeyId": source.kms_key}
    return attributes | {"SqsManagedSseEnabled": "true"}


def make_dlq_attributes(source: Facts, dlq_arn: str) -> dict[str, str]:
    """Return the attributes of a new DLQ for this source.

    The RedriveAllowPolicy allows only this source. If the source already names `dlq_arn`, the DLQ
    gets no RedriveAllowPolicy, because other queues may name `dlq_arn` too.

    Args:
        source: The source queue.
        dlq_arn: The ARN of the new DLQ.
    """
    attributes = make_safe_storage_attributes(source)
    if source.is_fifo:
        content_based_deduplication = source.attributes.get("ContentBasedDeduplication", "false")
        attributes |= {
            "FifoQueue": "true",
            "ContentBasedDeduplication": content_based_deduplication,
        }
    if source.dlq_arn != dlq_arn:
        redrive_allow_policy = RedriveAllowPolicy("byQueue", (source.queue_arn,))
        attributes["RedriveAllowPolicy"] = redrive_allow_policy.text
    return attributes


MAXIMUM_MESSAGE_BYTES = SetMaximumMessageSize.maximum


def arn_of_quarantine(source_arn: str) -> str:
    """Return the ARN of the quarantine for messages that came from this source queue.

    Raise ValueError if `source_arn` is not the ARN of a queue.
    """
    return make_arn_with_suffix(source_arn, QUARANTINE_SUFFIX)


def make_quarantine_attributes(source: Facts) -> dict[str, str]:
    """Return the attributes of a new quarantine for this source.

    Its RedriveAllowPolicy allows no queue to use it as a DLQ.
    """
    attributes = make_safe_storage_attributes(source)
    attributes["RedriveAllowPolicy"] = RedriveAllowPolicy("denyAll").text
    return attributes | {"FifoQueue": "true"} if source.is_fifo else attributes


def why_unfit_as_quarantine(
    source: Facts, quarantine_attributes: Mapping[str, str], consumer_arns: Sequence[str] = ()
) -> str | None:
    """Return the first reason why an existing queue cannot be a quarantine; None if it can.

    Args:
        source: The queue whose messages the quarantine receives.
        quarantine_attributes: The attributes of the existing queue.
        consumer_arns: The ARNs of the Lambda functions that consume the existing queue.
    """
    return next(_list_quarantine_faults(source, quarantine_attributes, consumer_arns), None)


def _list_quarantine_faults(
    source: Facts, quarantine_attributes: Mapping[str, str], consumer_arns: Sequence[str]
) -> Iterator[str]:
    """Yield every reason why the queue would not keep messages safe as a quarantine."""
    if quarantine_attributes.get("RedrivePolicy"):
        yield "it has a RedrivePolicy: its messages would leave it by being read"
    if consumer_arns:
        consumer_name = function_name(consumer_arns[0])
        yield f"{consumer_name} consumes it: its messages would be handled unasked"
    yield from _list_outsider_access_faults(
        parse_queue_arn(source.queue_arn).account, quarantine_attributes.get("Policy", "")
    )
    encryption_fault = _find_encryption_fault(source, quarantine_attributes)
    if encryption_fault:
        yield encryption_fault
    if int(quarantine_attributes.get("MessageRetentionPeriod", "0")) < LONGEST_RETENTION_SECONDS:
        yield f"it keeps messages for less than {LONGEST_RETENTION_SECONDS} seconds"
    if (
        int(quarantine_attributes.get("MaximumMessageSize", MAXIMUM_MESSAGE_BYTES))
        < MAXIMUM_MESSAGE_BYTES
    ):
        required_size_text = f"{MAXIMUM_MESSAGE_BYTES} bytes"
        yield f"it takes no messages of {required_size_text}, as there may be with their mark"
    if int(quarantine_attributes.get("DelaySeconds", "0")):
        yield "it has a DelaySeconds: whoever looks after messages would not see them"


def find_outsider_access_to_messages(queue: QueueFacts) -> str | None:
    """Return the first sentence part that names outsiders who may receive the queue's messages.

    An outsider is a principal of another account, or an AWS service. Conditions are ignored. Return
    None if the policy allows no outsider to receive, or if there is no policy.
    """
    statements = parse_statements(queue.attributes.get("Policy", ""))
    if statements is None:
        return "its policy cannot be read, so it may let everybody in"
    account = parse_queue_arn(queue.queue_arn).account
    for statement in statements:
        if statement.allows and may_apply_to(statement, (RECEIVE_MESSAGE_ACTION,), queue.queue_arn):
            fault = next(_list_faults_of_statement(account, statement), None)
            if fault is not None:
                return fault
    return None


def _list_outsider_access_faults(account: str, policy: str) -> Iterator[str]:
    """Yield a reason for each statement or principal of the policy that allows outsiders.

    An outsider is a principal of another account, or an AWS service. The conditions of statements
    are ignored, because even a limited permission makes the queue unfit. An unreadable policy gives
    one reason.
    """
    statements = parse_statements(policy)
    if statements is None:
        yield "its policy cannot be read, so it may let everybody in"
        return
    for statement in statements:
        if statement.allows:
            yield from _list_faults_of_statement(account, statement)


def _list_faults_of_statement(account: str, statement: Statement) -> Iterator[str]:
    """Yield a reason for each outsider that a statement names, and one if it allows everybody."""
    if statement.is_for_everybody or "Principal" in statement.negated_elements:
        yield "its policy lets everybody in"
    for principal_kind, principals in statement.principals.items():
        for principal in principals:
            if principal_kind != "AWS" or not _belongs_to_account(principal, account):
                yield f"its policy lets in {principal}, which is not of this account"


def _belongs_to_account(principal: str, account: str) -> bool:
    """Return True if the principal is the account, or one of its roles, users or sessions."""
    arn_parts = principal.split(":")
    return principal == account or (len(arn_parts) == 6 and arn_parts[4] == account)


def _find_encryption_fault(source: Facts, quarantine_attributes: Mapping[str, str]) -> str | None:
    """Return why the queue's encryption is worse than the source's; None if it is good enough.

    - Another account's KMS key is good enough only if the source uses the same key.
    - AWS's managed KMS key is good enough unless the source uses a customer's key.
    - Any other KMS key is good enough.
    - SQS's own encryption is good enough only if the source has no KMS key.
    """
    quarantine_kms_key = quarantine_attributes.get("KmsMasterKeyId", "")
    source_kms_key = source.kms_key or ""
    if (
        is_key_of_another_account(source, quarantine_kms_key)
        and quarantine_kms_key != source_kms_key
    ):
        return f"its messages are encrypted with another account's key, {quarantine_kms_key}"
    source_has_customer_key = bool(source_kms_key) and not is_aws_managed_key(source_kms_key)
    if quarantine_kms_key and is_aws_managed_key(quarantine_kms_key) and source_has_customer_key:
        return "its messages are encrypted with the key that AWS manages, the source's with its own"
    if quarantine_kms_key or (
        not source_kms_key and quarantine_attributes.get("SqsManagedSseEnabled") == "true"
    ):
        return None
    return "its messages are not encrypted as the source's are"
