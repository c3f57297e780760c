"""Symptom `producer_refused`: a resource of a template sends to a queue that does not let it.

The fault: a topic's subscription, a rule, a bucket, a schedule, a pipe or a function has the queue
as its target, and a policy refuses what it sends: that of the queue, that of the queue's KMS key,
or those of its own role. EventBridge and SNS only count such a failure, and nobody sees an error.
S3 and Lambda refuse such a target when it is set. Several services refuse a FIFO queue, whatever
the policies say, or need a message group for it.

How it shows: in a template, which has the producer, the queue and the policies. It is reported only
if the policies are known to refuse, whatever the values are that the template leaves open. A
deployed queue shows refused calls in CloudTrail (`access_denied`), because a scan reads no
producers.

What Mendq does: it reports the queue with the statement to add. It changes nothing, because a
policy is for its owner to change.
https://docs.aws.amazon.com/sns/latest/dg/subscribe-sqs-queue-to-sns-topic.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mendq.catalogue.examples import STANDARD_ARN, policy, replace_values, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.admission import Answer
from mendq.model.facts import AWS_MANAGED_KEY_ALIAS, Facts, Need
from mendq.model.message_calls import RECEIVE_MESSAGE_ACTION
from mendq.model.policy import Statement, parse_statements
from mendq.model.producers import (
    KEY_ACTIONS,
    KeyOfQueue,
    Producer,
    ProducerAdmission,
    RefusingPolicy,
    ServiceFault,
    list_admissions,
)
from mendq.model.severity_class import SeverityClass

# Refused producers that the sentence names.
_MOST_NAMED_PRODUCERS = 3
_LOST = EvidenceKind(SeverityClass.WILL_LOSE, "what the producer sends does not arrive")
_NOT_DEPLOYED = EvidenceKind(
    SeverityClass.STANDING_STILL,
    "AWS refuses to deploy the producer with this queue",
)


def detect(facts: Facts) -> DetectedFault | None:
    """Report the producers that the policies of the queue, its key or their role refuse."""
    refusals = [
        admission for admission in list_producer_admissions(facts) if admission.answer is Answer.NO
    ]
    if not refusals:
        return None
    refusals_by_cause = defaultdict[tuple[str, str], list[str]](list)
    for refusal in refusals:
        refusals_by_cause[_describe_cause(refusal)].append(refusal.producer.name)
    sentences = (
        sentence_start.format(_join_names(producer_names)) + consequence
        for (sentence_start, consequence), producer_names in refusals_by_cause.items()
    )
    is_refused_at_deployment = any(refusal.is_refused_at_deployment for refusal in refusals)
    return DetectedFault(
        "; ".join(sentences), evidence_kind=_NOT_DEPLOYED if is_refused_at_deployment else _LOST
    )


def _join_names(producer_names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    named = producer_names[:_MOST_NAMED_PRODUCERS]
    more_count = len(producer_names) - len(named)
    if more_count:
        named.append(f"{more_count:,} more")
    return " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))


def list_producer_admissions(facts: Facts) -> Iterator[ProducerAdmission]:
    """Yield for each producer of the queue whether the queue and its key admit it.

    Services that the queue's policy admits and AWS's managed key does not are left out:
    `service_cannot_use_key` reports them.
    """
    producers = list[Producer]()
    for producer in facts.producers:
        if producer.service_fault is None:
            producers.append(producer)
        else:
            yield ProducerAdmission(producer, Answer.NO, RefusingPolicy.SERVICE)
    if not producers:
        return
    statements = parse_statements(facts.attributes.get("Policy", ""))
    if statements is not None:
        yield from list_admissions(producers, facts.queue_arn, statements, facts.key_of_queue)


def _describe_cause(refusal: ProducerAdmission) -> tuple[str, str]:
    """Return a sentence about what refuses the producer, in two parts.

    The first has `{}` in place of the producer's name. The second says what the refusal does.
    """
    producer = refusal.producer
    consequence = f": {producer.consequence}"
    if refusal.refusing_policy is RefusingPolicy.SERVICE and producer.service_fault is not None:
        fault = producer.service_fault
        return f"{{}} {fault.because}", f": {fault.describe_consequence(producer.consequence)}"
    sender = "{}" if producer.is_of_other_account else f"{producer.principal}, for {{}},"
    if refusal.refusing_policy is RefusingPolicy.ROLE:
        return "the role of {} may not send to it (sqs:SendMessage)", consequence
    if refusal.refusing_policy is RefusingPolicy.KEY_POLICY:
        actions = ", ".join(KEY_ACTIONS)
        return (
            f"the policy of its KMS key does not let {sender} use the key ({actions})",
            consequence,
        )
    if producer.has_role:
        # A role needs no grant of the queue's policy, so only a deny of it can refuse the role.
        return "a Deny of its policy refuses the role of {} (sqs:SendMessage)", consequence
    return f"its policy does not let {sender} send (sqs:SendMessage)", consequence


_TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:paid"
_SUBSCRIPTION = Producer(
    "the SNS subscription OnPaid", "sns.amazonaws.com", _TOPIC_ARN, "123456789012"
)
_KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
_ROLE_ARN = "arn:aws:iam::123456789012:role/nightly"


def _make_example_queue(*producers: Producer, **statement: object) -> Facts:
    """Return a queue with these producers, and a policy of one statement that lets SNS send."""
    queue_policy = policy(**{"Principal": {"Service": "sns.amazonaws.com"}, **statement})
    return standard_queue(Policy=queue_policy, producers=producers or (_SUBSCRIPTION,))


def _make_queue_with_key(*service_names: str) -> Facts:
    """Return a queue that admits SNS, with a key that these services may use."""
    statement = Statement(
        allows=True,
        principals={"Service": service_names},
        actions=("kms:Decrypt", "kms:GenerateDataKey*"),
        resources=("*",),
    )
    key = KeyOfQueue(_KEY_ARN, (statement,))
    return replace_values(_make_example_queue(), KmsMasterKeyId=_KEY_ARN, key_of_queue=key)


def _make_schedule(*actions: str) -> Producer:
    """Return a schedule whose role may do these actions on the example queue."""
    statement = Statement(allows=True, actions=actions, resources=(STANDARD_ARN,))
    return Producer(
        "the schedule Nightly", _ROLE_ARN, role_statements=(statement,), knows_whole_role=True
    )


def _compare_source(topic_arn: str) -> dict[str, Any]:
    return {"Condition": {"ArnEquals": {"aws:SourceArn": topic_arn}}}


PRODUCER_REFUSED = ReportedSymptom(
    name="producer_refused",
    sentence="A service or role that sends to the queue is refused: nothing of it arrives.",
    plan_in_words="Report it with the statement to add; a policy is for its owner to change.",
    first_step="Let the producer send, in the queue's policy or its role.",
    aws_page=f"{SQS_GUIDE}/sqs-basic-examples-of-sqs-policies.html",
    evidence_kinds=(_LOST, _NOT_DEPLOYED),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.PRODUCERS}), is_of_configuration=True),
    examples=lambda: (
        QueueExample("no policy", standard_queue(producers=(_SUBSCRIPTION,))),
        QueueExample(
            "another service", _make_example_queue(Principal={"Service": "s3.amazonaws.com"})
        ),
        QueueExample("another topic", _make_example_queue(**_compare_source(f"{_TOPIC_ARN}-2"))),
        QueueExample("a key that admits only S3", _make_queue_with_key("s3.amazonaws.com")),
        QueueExample(
            "a role that may only receive",
            _make_example_queue(_make_schedule(RECEIVE_MESSAGE_ACTION)),
        ),
        QueueExample(
            "a bucket, and the queue is FIFO",
            _make_example_queue(
                replace(
                    _SUBSCRIPTION,
                    service_fault=ServiceFault(
                        "sends to standard queues only", "use a standard queue"
                    ),
                )
            ),
        ),
        QueueNearMiss("any topic", _make_example_queue()),
        QueueNearMiss("its topic", _make_example_queue(**_compare_source(_TOPIC_ARN))),
        QueueNearMiss(
            "a topic that is not known", _make_example_queue(**_compare_source("not-known"))
        ),
        QueueNearMiss("a key that admits it", _make_queue_with_key("sns.amazonaws.com")),
        QueueNearMiss("a role that may send", _make_example_queue(_make_schedule("sqs:Send*"))),
        QueueNearMiss(
            "AWS's key, which service_cannot_use_key reports",
            replace_values(_make_example_queue(), KmsMasterKeyId=AWS_MANAGED_KEY_ALIAS),
        ),
        QueueNearMiss("nothing sends", standard_queue()),
    ),
)
