"""Symptom `kms_throttled`: KMS throttles the requests that SQS makes for an encrypted queue.

The fault: SQS encrypts messages with data keys, and asks KMS for a new one each time
`KmsDataKeyReusePeriodSeconds` is over. All callers of an account share KMS's request quota in a
region. If it is used up, sends and receives on the queue fail.

How it shows: CloudTrail records failed calls with the code KMS.ThrottlingException.

What Mendq changes: it raises `KmsDataKeyReusePeriodSeconds`, so that SQS asks KMS less often. A
value below SQS's default of 300 s goes to 300 s, any other is doubled, up to 3,600 s. Beyond that
Mendq notifies people, because the quota is too small or others use it up.

Why that is safe: messages stay encrypted with the same key, and SQS keeps working during the
change. The one effect: if the key is revoked, SQS may use its last data key for up to the new
period.
"""

from __future__ import annotations

from mendq.catalogue.examples import failed_call, standard_queue
from mendq.catalogue.keys.kms_denied import KMS_KEY_ATTRIBUTES
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    FixedSymptom,
    QuotaSection,
    RefusalExample,
    make_code_patterns,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Plan, Refusal, Refuse
from mendq.model.queue import read_number_attribute
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetKmsDataKeyReusePeriod
from mendq.notifications.commands import list_quotas_command

# SQS's default for a new queue. A lower value means that somebody wanted SQS to ask KMS more often.
DEFAULT_DATA_KEY_REUSE_SECONDS = 300
# https://docs.aws.amazon.com/kms/latest/developerguide/requests-per-second.html
_REQUEST_QUOTA_TEXT = (
    "100,000 a second in us-east-1, us-west-2 and eu-west-1, 10,000 or 20,000 elsewhere,"
)


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan a longer reuse of each data key, so that SQS asks KMS less often.

    Return a refusal if the queue has no KMS key, or if the reuse is the longest already.
    """
    if facts.kms_key is None:
        reason = (
            "the queue is not encrypted with a KMS key now, so there are no data keys to keep "
            "longer: the calls are from before that"
        )
        return Refuse("not_encrypted_with_kms", reason)
    current_data_key_reuse_seconds = read_number_attribute(
        facts.attributes, SetKmsDataKeyReusePeriod.attribute
    )
    maximum_data_key_reuse_seconds = SetKmsDataKeyReusePeriod.maximum
    if current_data_key_reuse_seconds >= maximum_data_key_reuse_seconds:
        reason = (
            f"SQS already uses each data key for {current_data_key_reuse_seconds:,} s and Mendq "
            f"goes no further than {maximum_data_key_reuse_seconds:,} s: KMS's request quota is "
            "too small, or others use it up"
        )
        return Escalate("reuse_at_maximum", reason, make_request_quotas_command(facts.queue_arn))
    longer_data_key_reuse_seconds = (
        DEFAULT_DATA_KEY_REUSE_SECONDS
        if current_data_key_reuse_seconds < DEFAULT_DATA_KEY_REUSE_SECONDS
        else 2 * current_data_key_reuse_seconds
    )
    planned_data_key_reuse_seconds = min(
        longer_data_key_reuse_seconds, maximum_data_key_reuse_seconds
    )
    reason = (
        f"KMS throttles SQS, which asks for a data key every {current_data_key_reuse_seconds:,} s; "
        f"every {planned_data_key_reuse_seconds:,} s is less often. A key that is revoked then "
        f"keeps working for up to {planned_data_key_reuse_seconds:,} s"
    )
    return Plan(
        (SetKmsDataKeyReusePeriod(current_data_key_reuse_seconds, planned_data_key_reuse_seconds),),
        reason,
    )


def make_request_quotas_command(queue_arn: str) -> str:
    """Return the command that shows KMS's request quotas (per second) in the queue's region."""
    return list_quotas_command("kms", queue_arn, "Cryptographic operations")


def _make_encrypted_queue(data_key_reuse_seconds: int) -> Facts:
    return standard_queue(
        KmsMasterKeyId="alias/orders", KmsDataKeyReusePeriodSeconds=data_key_reuse_seconds
    )


def _make_example(
    title: str, error_code: str, reuse_seconds_before: int, reuse_seconds_after: int
) -> CallExample:
    call = failed_call("SendMessage", error_code)
    raise_step = SetKmsDataKeyReusePeriod(reuse_seconds_before, reuse_seconds_after)
    return CallExample(title, call, _make_encrypted_queue(reuse_seconds_before), (raise_step,))


KMS_THROTTLED = FixedSymptom(
    name="kms_throttled",
    sentence="KMS throttles the data keys of an encrypted queue, so sends and receives fail.",
    plan_in_words="Raise KmsDataKeyReusePeriodSeconds to 300, then double it, at most to 3,600.",
    habit="keeps exhausting the KMS quota",
    first_step="Raise KmsDataKeyReusePeriodSeconds.",
    aws_page=f"{SQS_GUIDE}/sqs-key-management.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    seen_as=make_code_patterns("kms_throttled"),
    steps=(SetKmsDataKeyReusePeriod,),
    plan=plan,
    autonomy=Mode.HEAL,
    shown_attributes=KMS_KEY_ATTRIBUTES,
    extra_sections=QuotaSection(
        "cryptographic operations", _REQUEST_QUOTA_TEXT, "kms", "L-6E3AF000"
    ),
    advice_if_many=Advice(
        "All callers of a region share KMS's request quota, whichever key they use: look for "
        "who uses it up, and ask for more where it is too small.",
        make_request_quotas_command,
    ),
    examples=lambda: (
        _make_example("a shorter reuse than SQS's own goes back to it", "KmsThrottled", 60, 300),
        _make_example("SQS's own is doubled", "KMS.ThrottlingException", 300, 600),
        CallNearMiss("SQS itself throttles", failed_call("SendMessage", "ThrottlingException")),
        RefusalExample(
            "its key was taken off meanwhile", standard_queue(), "not_encrypted_with_kms"
        ),
        RefusalExample("an hour is not doubled", _make_encrypted_queue(3600), "reuse_at_maximum"),
    ),
)
