"""KMS throttles the requests for data keys that SQS makes for an encrypted queue.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue._encryption import KEY_ATTRIBUTES
from mendq.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Escalate, Plan, Refusal, Refuse
from mendq.model.steps import SetKmsDataKeyReusePeriod
from mendq.notifications.commands import quotas_command

# What SQS starts a queue with; below it somebody chose to ask KMS more often.
DEFAULT_SECONDS = 300


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """A longer use of each data key, so that SQS asks KMS less often."""
    return _not_encrypted(facts) or _at_maximum(facts) or _reuse_longer(facts)


def _not_encrypted(facts: Facts) -> Refusal | None:
    if facts.kms_key is not None:
        return None
    reason = (
        "the queue is not encrypted with a KMS key now, so there are no data keys to keep longer: "
        "the calls are from before that"
    )
    return Refuse("not_encrypted_with_kms", reason)


def _at_maximum(facts: Facts) -> Refusal | None:
    current, most = facts.kms_reuse_seconds, SetKmsDataKeyReusePeriod.maximum
    if current < most:
        return None
    reason = (
        f"SQS already uses each data key for {current} s and Mendq goes no further than {most} s: "
        "either KMS's request quota is too small or something else in the account uses it up"
    )
    return Escalate("reuse_at_maximum", reason, next_command=request_quotas(facts.queue_arn))


def request_quotas(queue_arn: str) -> str:
    """The command that shows how many requests a second KMS takes in the queue's region."""
    return quotas_command("kms", queue_arn, "Cryptographic operations")


def _reuse_longer(facts: Facts) -> Plan:
    current = facts.kms_reuse_seconds
    longer = DEFAULT_SECONDS if current < DEFAULT_SECONDS else 2 * current
    seconds = min(longer, SetKmsDataKeyReusePeriod.maximum)
    return Plan(
        steps=(SetKmsDataKeyReusePeriod(current, seconds),),
        reason=f"KMS throttles SQS, which asks for a new data key every {current} s; "
        f"every {seconds} s is less often. A key that is revoked then keeps working "
        f"for up to {seconds} s",
    )


def _encrypted(reuse_seconds: str) -> Facts:
    return examples.queue(
        queue_arn=examples.STANDARD_ARN,
        KmsMasterKeyId="alias/orders",
        KmsDataKeyReusePeriodSeconds=reuse_seconds,
    )


_THROTTLED = examples.failed_call(
    "SendMessage", "KMS.ThrottlingException", queue_arn=examples.STANDARD_ARN
)

KMS_THROTTLED = Symptom(
    name="kms_throttled",
    sentence="KMS throttles the data keys of an encrypted queue, so sends and receives fail.",
    plan_in_words="Raise KmsDataKeyReusePeriodSeconds to 300, then double it, at most to 3,600.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-key-management.html",
    seen_as=seen_as_labelled("kms_throttled"),
    needs=frozenset({Need.QUEUE}),
    steps=(SetKmsDataKeyReusePeriod,),
    plan=plan,
    autonomy=Mode.HEAL,
    shows=KEY_ATTRIBUTES,
    mass_advice="All callers of a region share KMS's request quota, whichever key they use: look "
    "for who uses it up, and ask for more where it is too small.",
    mass_look=request_quotas,
    caught=(
        Caught(
            "a shorter reuse than SQS's own goes back to it",
            _THROTTLED,
            _encrypted("60"),
            (SetKmsDataKeyReusePeriod(60, 300),),
        ),
        Caught(
            "SQS's own is doubled",
            examples.failed_call("ReceiveMessage", "KmsThrottled"),
            _encrypted("300"),
            (SetKmsDataKeyReusePeriod(300, 600),),
        ),
        Caught(
            "an hour is where it ends",
            _THROTTLED,
            _encrypted("2400"),
            (SetKmsDataKeyReusePeriod(2400, 3600),),
        ),
    ),
    near_misses=(
        NearMiss(
            "KMS that denies does not throttle",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.AccessDeniedException"),
        ),
        NearMiss(
            "SQS's own throttling is not KMS's",
            "no_match",
            call=examples.failed_call("SendMessage", "ThrottlingException", "Rate exceeded"),
        ),
        NearMiss(
            "a queue whose KMS key was taken away meanwhile",
            "not_encrypted_with_kms",
            facts=examples.queue(SqsManagedSseEnabled="true"),
        ),
        NearMiss("an hour is not doubled", "reuse_at_maximum", facts=_encrypted("3600")),
        NearMiss("a day that a person chose stays", "reuse_at_maximum", facts=_encrypted("86400")),
    ),
)
