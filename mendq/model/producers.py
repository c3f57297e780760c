"""Producers of a queue that a template declares, and whether the queue and its key admit them.

A producer is a resource that sends to the queue for its owner: a subscription of a topic, a rule, a
notification of a bucket, a schedule, a pipe, or the failed events of a function. A service sends
with its own principal, which the queue's policy must name, or with a role, which needs the right
itself.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-using-identity-based-policies.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from mendq.model.admission import Answer, Call, is_admitted, is_denied
from mendq.model.message_calls import SEND_MESSAGE_ACTION
from mendq.model.policy import Statement

NOT_DEPLOYED = "AWS refuses to deploy it"
# A service needs both rights of the key of an encrypted queue.
KEY_ACTIONS = ("kms:GenerateDataKey", "kms:Decrypt")


@dataclass(frozen=True)
class ServiceFault:
    """Why a service cannot send to a queue, whatever the policies say.

    Attributes:
        because: The reason, as the rest of a sentence that begins with the producer's name.
        advice: What to change, as an imperative.
        is_refused_at_deployment: True if AWS refuses to deploy the producer. False if it is
            deployed, and what it sends does not arrive.
    """

    because: str
    advice: str
    is_refused_at_deployment: bool = True

    def describe_consequence(self, usual_consequence: str) -> str:
        """Return what happens: AWS refuses the producer, or what usually happens."""
        return NOT_DEPLOYED if self.is_refused_at_deployment else usual_consequence


@dataclass(frozen=True)
class Producer:
    """A resource that sends to a queue.

    Attributes:
        name: What it is, with its name, such as `the SNS subscription Sub`.
        principal: The service's principal, such as `sns.amazonaws.com`, or the ARN of its role.
        source_arn: The ARN that the service names as the source of the call; None if not known.
        source_account: The account that it names; None if not known.
        role_statements: The statements of its role's policies, as far as they are known.
        knows_whole_role: True if they are all of them.
        is_of_other_account: True if it is no resource of the template, but a principal of another
            account to which the queue's policy grants to send.
        consequence: What happens if it is refused, as the rest of a sentence.
        is_checked_at_deployment: True if AWS refuses to deploy it if a policy refuses it.
        service_fault: Why it cannot send to the queue, whatever the policies say; None if it can.
    """

    name: str
    principal: str
    source_arn: str | None = None
    source_account: str | None = None
    role_statements: tuple[Statement, ...] = ()
    knows_whole_role: bool = False
    is_of_other_account: bool = False
    consequence: str = "what it sends is lost"
    is_checked_at_deployment: bool = False
    service_fault: ServiceFault | None = None

    @property
    def has_role(self) -> bool:
        """True if it sends with a role of the template."""
        return self.principal.startswith("arn:") and not self.is_of_other_account

    def make_call(self, action: str, resource: str) -> Call:
        """Return its call of an action on the queue or on the queue's key."""
        is_by_service = not self.has_role and not self.is_of_other_account
        context = {
            "aws:securetransport": "true",
            "aws:principalisawsservice": str(is_by_service).lower(),
        }
        if not is_by_service:
            return Call(self.principal, action, resource, context, self.is_of_other_account)
        source_context = {
            "aws:sourcearn": self.source_arn,
            "aws:sourceaccount": self.source_account,
        }
        return Call(self.principal, action, resource, {**context, **source_context})


class RefusingPolicy(Enum):
    """What refuses a producer."""

    QUEUE_POLICY = "policy of the queue"
    KEY_POLICY = "policy of its KMS key"
    ROLE = "role of the producer"
    # No policy, but the service that sends: it does not send to FIFO queues, or not like this.
    SERVICE = "service that sends"


@dataclass(frozen=True)
class ProducerAdmission:
    """Whether a queue admits one producer.

    Attributes:
        producer: The producer.
        answer: YES if the queue and its key admit it, NO if one of them refuses it.
        refusing_policy: What refuses it, or leaves the answer open.
    """

    producer: Producer
    answer: Answer
    refusing_policy: RefusingPolicy = RefusingPolicy.QUEUE_POLICY

    @property
    def is_refused_at_deployment(self) -> bool:
        """True if AWS refuses to deploy the producer."""
        if self.answer is not Answer.NO:
            return False
        service_fault = self.producer.service_fault
        if self.refusing_policy is RefusingPolicy.SERVICE and service_fault is not None:
            return service_fault.is_refused_at_deployment
        return self.producer.is_checked_at_deployment


@dataclass(frozen=True)
class KeyOfQueue:
    """A customer managed key of a queue.

    Attributes:
        key_arn: The key's ARN.
        statements: The statements of its policy; None if they are not known.
    """

    key_arn: str
    statements: tuple[Statement, ...] | None = field(default=None)


def list_admissions(
    producers: Iterable[Producer],
    queue_arn: str,
    queue_statements: tuple[Statement, ...],
    key: KeyOfQueue | None,
) -> Iterator[ProducerAdmission]:
    """Yield, for each producer, whether the queue admits it.

    Args:
        producers: The producers.
        queue_arn: The queue.
        queue_statements: The statements of the queue's policy.
        key: The queue's customer managed key. None if it has none, or if the key is not known.
    """
    for producer in producers:
        if producer.is_of_other_account:
            if key is not None:
                yield _admit_to_key(producer, key)
            continue
        call = producer.make_call(SEND_MESSAGE_ACTION, queue_arn)
        queue_answer = is_admitted(call, queue_statements)
        if producer.has_role:
            yield _admit_role(producer, call, queue_answer, queue_statements)
        elif queue_answer is not Answer.YES or key is None:
            yield ProducerAdmission(producer, queue_answer)
        else:
            yield _admit_to_key(producer, key)


def _admit_role(
    producer: Producer, call: Call, queue_answer: Answer, queue_statements: tuple[Statement, ...]
) -> ProducerAdmission:
    """Return whether a producer with a role may send, and what refuses it.

    In one account, a grant of the queue's policy to the role or a grant of the role is enough. A
    deny of the queue's policy refuses in any case: no grant of the role helps against it.
    """
    denials = _list_possible_denials(call, queue_statements)
    answer = is_admitted(call, (*producer.role_statements, *denials), is_identity=True)
    if Answer.YES in (answer, queue_answer):
        return ProducerAdmission(producer, Answer.YES)
    if queue_answer is Answer.UNKNOWN:
        return ProducerAdmission(producer, Answer.UNKNOWN)
    if answer is Answer.NO and not producer.knows_whole_role:
        answer = Answer.UNKNOWN
    if answer is Answer.NO and is_denied(call, queue_statements):
        return ProducerAdmission(producer, Answer.NO, RefusingPolicy.QUEUE_POLICY)
    return ProducerAdmission(producer, answer, RefusingPolicy.ROLE)


def _list_possible_denials(call: Call, statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the denials of a queue's policy that name the caller or everybody."""
    for statement in statements:
        is_named = call.principal in statement.principals.get("AWS", ())
        if not statement.allows and (statement.is_for_everybody or is_named):
            yield statement


def _admit_to_key(producer: Producer, key: KeyOfQueue) -> ProducerAdmission:
    """Return whether a service or another account that may send may use the queue's key too."""
    if key.statements is None:
        return ProducerAdmission(producer, Answer.UNKNOWN, RefusingPolicy.KEY_POLICY)
    answers = [
        is_admitted(producer.make_call(action, key.key_arn), key.statements)
        for action in KEY_ACTIONS
    ]
    for answer in (Answer.NO, Answer.UNKNOWN):
        if answer in answers:
            return ProducerAdmission(producer, answer, RefusingPolicy.KEY_POLICY)
    return ProducerAdmission(producer, Answer.YES)
