"""Make the template lines that fix a finding.

Most symptoms have a remedy of their own in this module. For the others, the lines come from the
catalogue's plan: the change that Mendq would make to the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mendq.catalogue.access.policy_is_public import POLICY_IS_PUBLIC
from mendq.catalogue.access.producer_refused import PRODUCER_REFUSED, list_producer_admissions
from mendq.catalogue.access.tls_not_enforced import TLS_NOT_ENFORCED
from mendq.catalogue.configuration.tag_not_understood import TAG_NOT_UNDERSTOOD
from mendq.catalogue.consumers.batch_failures_not_reported import BATCH_FAILURES_NOT_REPORTED
from mendq.catalogue.consumers.batch_failures_not_reported import (
    detect as detect_batch_failures_not_reported,
)
from mendq.catalogue.consumers.concurrency_too_small import CONCURRENCY_TOO_SMALL
from mendq.catalogue.consumers.concurrency_too_small import (
    find_fault_in_template as find_concurrency_fault,
)
from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.consumers.consumer_throttled import CONSUMER_THROTTLED
from mendq.catalogue.consumers.filter_deletes_messages import (
    FILTER_DELETES_MESSAGES,
    SEVERAL_CONSUMERS,
)
from mendq.catalogue.consumers.filter_deletes_messages import detect as detect_filter_fault
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq.dlq_source_not_allowed import DLQ_SOURCE_NOT_ALLOWED
from mendq.catalogue.dlq.dlq_type_mismatch import DLQ_TYPE_MISMATCH
from mendq.catalogue.dlq.max_receive_count_too_low import MAX_RECEIVE_COUNT_TOO_LOW
from mendq.catalogue.dlq.redrive_cycle import REDRIVE_CYCLE
from mendq.catalogue.keys.not_encrypted import NOT_ENCRYPTED
from mendq.catalogue.keys.service_cannot_use_key import SERVICE_CANNOT_USE_KEY
from mendq.catalogue.messages.messages_expire import MESSAGES_EXPIRE
from mendq.catalogue.symptom import Symptom
from mendq.lint.producers import DeclaredProducer
from mendq.lint.queues import (
    EVENT_SOURCE_MAPPING_TYPE,
    DeclaredConsumer,
    DeclaredQueue,
    DeclaredQueues,
)
from mendq.lint.template import get_mapping, to_list
from mendq.lint.times import make_retention_lines
from mendq.lint.values import QUEUE_TYPE, UnknownValue
from mendq.model.admission import Answer, is_denied
from mendq.model.limits import Limits
from mendq.model.mapping import (
    LOWEST_MAXIMUM_CONCURRENCY,
    MODES_EXCLUDE_EACH_OTHER,
    RUNS_OF_FIRST_POLLERS,
)
from mendq.model.message_calls import SEND_MESSAGE_ACTION
from mendq.model.plan import Plan
from mendq.model.policy import parse_statements
from mendq.model.producers import KEY_ACTIONS, RefusingPolicy
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT, LONGEST_RETENTION_SECONDS
from mendq.model.queue_limits import (
    DLQ_ARN_KEY,
    RECEIVE_COUNT_KEY,
    REDRIVE_POLICY_ATTRIBUTE,
    QueueRefusal,
)
from mendq.notifications.text import to_terminal_text

TemplateLines = tuple[str, ...]
_GENERATED_QUEUE_COMMENT = (
    "# SAM makes this queue, with SQS's defaults: declare a queue of your own with the settings "
    "that it needs, and name it here"
)
_GENERATED_POLICY_COMMENT = (
    "# SAM or the Serverless Framework generates this queue's policy, and a second policy would "
    "replace it: declare the subscription and the whole policy yourself"
)
Remedy = Callable[[DeclaredQueue, DeclaredQueues], TemplateLines]


def find_remedy(
    symptom: Symptom, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> TemplateLines:
    """Return the template lines that fix a symptom of a queue.

    A line may be a comment that says what a person must do. Empty if no line of the template fixes
    the symptom, or if the lines depend on a value that is not known.
    """
    if declared_queues.template.is_generated(queue.resource.logical_id):
        return (_GENERATED_QUEUE_COMMENT,)
    lines = _make_remedy_lines(symptom, queue, declared_queues)
    lines = declared_queues.template.adapt_remedy(queue.resource.logical_id, symptom.name, lines)
    stack_id = declared_queues.template.find_stack_id(queue.resource.logical_id)
    # The lines belong into the nested stack's own file, where the names have no stack in front.
    return tuple(line.replace(f"{stack_id}.", "") for line in lines) if stack_id else lines


def _make_remedy_lines(
    symptom: Symptom, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> TemplateLines:
    """Return the lines of `find_remedy` for a queue that no transform generates."""
    try:
        if make_lines := _REMEDY_BY_SYMPTOM.get(symptom.name):
            return make_lines(queue, declared_queues)
        plan = symptom.plan(queue, Limits()) if symptom.plan else None
    except UnknownValue:
        return ()
    if not isinstance(plan, Plan):
        return ()
    remedy_lines = list[str]()
    for step in plan.steps:
        remedy_lines += declared_queues.template.render_declaration(step.attribute, step.after)
    return tuple(remedy_lines)


def make_refusal_remedy(
    refusal: QueueRefusal, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> TemplateLines:
    """Return a comment that says what to change so that SQS accepts the queue."""
    template = declared_queues.template
    if template.is_generated(queue.resource.logical_id):
        return (_GENERATED_QUEUE_COMMENT,)
    own_name = template.get_attribute_name(refusal.attribute)
    return (f"# {refusal.advice.replace(refusal.attribute, own_name)}",)


def make_mapping_refusal_remedy(
    consumer: DeclaredConsumer, reason: str, declared_queues: DeclaredQueues
) -> TemplateLines:
    """Return a comment that says what to change in the mapping so that Lambda accepts it."""
    mapping_name = _name_resource(consumer.mapping_id, declared_queues)
    if reason == MODES_EXCLUDE_EACH_OTHER:
        return (f"# {mapping_name}: remove MaximumConcurrency, or leave provisioned mode",)
    return (f"# change {mapping_name}: {reason}",)


def _make_dlq_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return the lines of a new DLQ, and of the redrive policy with which the queue uses the DLQ.

    The DLQ gets no RedriveAllowPolicy. This would have to name the source queue, and CloudFormation
    cannot create two resources that name each other.
    """
    dlq_logical_id = declared_queues.template.make_new_id(queue.resource.logical_id, "Dlq")
    source_queue_properties = queue.resource.properties
    dlq_properties = {
        name: source_queue_properties[name]
        for name in _PROPERTIES_COPIED_TO_DLQ
        if source_queue_properties.get(name) not in (None, "false")
    }
    dlq_properties["MessageRetentionPeriod"] = LONGEST_RETENTION_SECONDS
    dlq_reference = {"Fn::GetAtt": [dlq_logical_id, "Arn"]}
    redrive_policy = {DLQ_ARN_KEY: dlq_reference, RECEIVE_COUNT_KEY: DEFAULT_MAX_RECEIVE_COUNT}
    dlq_lines = declared_queues.template.render_declaration(
        dlq_logical_id, {"Type": QUEUE_TYPE, "Properties": dlq_properties}
    )
    redrive_lines = declared_queues.template.render_declaration(
        REDRIVE_POLICY_ATTRIBUTE, redrive_policy
    )
    return dlq_lines + redrive_lines + make_retention_lines(queue, declared_queues)


def _make_tls_policy_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return the lines of a policy statement that denies calls without TLS.

    If the template sets the queue's policy, return the statement, and a comment that says to which
    policy it must be added. Otherwise return a new policy with this statement, which also lets the
    queue's producers send.
    """
    return _make_queue_policy_lines(queue, declared_queues, [_make_tls_statement(queue)])


def _make_tls_statement(queue: DeclaredQueue) -> dict[str, Any]:
    return {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": _get_arn_reference(queue),
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def _make_queue_policy_lines(
    queue: DeclaredQueue, declared_queues: DeclaredQueues, statements: list[dict[str, Any]]
) -> TemplateLines:
    """Return the lines that add statements to the queue's policy, or a new policy with them."""
    if queue.policy is not None and declared_queues.template.is_generated(queue.policy.logical_id):
        return (_GENERATED_POLICY_COMMENT,)
    if queue.policy is not None:
        return _make_statement_lines(
            "Statement", queue.policy.logical_id, declared_queues, statements
        )
    queue_logical_id = queue.resource.logical_id
    # SQS keeps one policy for a queue, so every finding shows the same new policy.
    all_statements = [*_list_missing_grants(queue, declared_queues), _make_tls_statement(queue)]
    policy_document = {"Version": "2012-10-17", "Statement": all_statements}
    policy_properties = {"Queues": [{"Ref": queue_logical_id}], "PolicyDocument": policy_document}
    policy_resource = {"Type": "AWS::SQS::QueuePolicy", "Properties": policy_properties}
    policy_id = declared_queues.template.make_new_id(queue_logical_id, "Policy")
    return declared_queues.template.render_declaration(policy_id, policy_resource)


def _make_statement_lines(
    place: str, logical_id: str, declared_queues: DeclaredQueues, statements: list[dict[str, Any]]
) -> TemplateLines:
    """Return a comment with the policy to which statements must be added, and the statements."""
    lines = [f"# add to the {place} of {to_terminal_text(logical_id)}"]
    for statement in statements:
        lines += declared_queues.template.render_declaration("", statement)
    return tuple(lines)


def _make_producer_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return the statements that let the refused producers send, with the policy of each."""
    comments = list[str]()
    statements_by_place: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for refusing_policy, producer in _list_refused_producers(queue):
        if producer.service_fault is not None:
            name = declared_queues.resolver.replace_arns_by_logical_ids(producer.name)
            comments.append(f"# {to_terminal_text(name)}: {producer.service_fault.advice}")
            continue
        if refusing_policy is RefusingPolicy.ROLE:
            place = ("Statement of a policy", producer.role_id)
            statement = _make_statement([SEND_MESSAGE_ACTION], _get_arn_reference(queue))
        elif refusing_policy is RefusingPolicy.KEY_POLICY:
            place = (declared_queues.template.get_attribute_name("KeyPolicy"), queue.key_id)
            statement = _make_grant(replace(producer, source_node=None), [*KEY_ACTIONS], "*")
        else:
            continue
        statements = statements_by_place.setdefault(place, [])
        if statement not in statements:
            statements.append(statement)
    comments += _list_deny_advice(queue, declared_queues)
    lines = list(dict.fromkeys(comments))
    grants = _list_missing_grants(queue, declared_queues)
    if grants:
        lines += _make_queue_policy_lines(queue, declared_queues, grants)
    for (policy_name, logical_id), statements in statements_by_place.items():
        lines += _make_statement_lines(policy_name, logical_id, declared_queues, statements)
    return tuple(lines)


def _list_refused_producers(
    queue: DeclaredQueue,
) -> Iterator[tuple[RefusingPolicy, DeclaredProducer]]:
    """Yield the queue's producers that are refused, with what refuses each."""
    for admission in list_producer_admissions(queue):
        producer = admission.producer
        if admission.answer is Answer.NO and isinstance(producer, DeclaredProducer):
            yield admission.refusing_policy, producer


def _is_denied(producer: DeclaredProducer, queue: DeclaredQueue) -> bool:
    """Return True if a statement of the queue's policy denies what the producer sends."""
    statements = parse_statements(queue.attributes.get("Policy", "")) or ()
    return is_denied(producer.make_call(SEND_MESSAGE_ACTION, queue.queue_arn), statements)


def _list_deny_advice(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> Iterator[str]:
    """Yield a comment for each producer that a deny refuses: no grant helps against it."""
    for refusing_policy, producer in _list_refused_producers(queue):
        is_by_policy = refusing_policy is RefusingPolicy.QUEUE_POLICY
        if is_by_policy and queue.policy is not None and _is_denied(producer, queue):
            name = declared_queues.resolver.replace_arns_by_logical_ids(producer.name)
            policy_name = _name_resource(queue.policy.logical_id, declared_queues)
            if producer.has_role:
                yield (
                    f"# a Deny of {policy_name} refuses the role of {to_terminal_text(name)}. Let "
                    "the role out of it: add ArnNotEquals aws:PrincipalArn with the role's ARN to "
                    "its Condition"
                )
            else:
                yield (
                    f"# a Deny of {policy_name} refuses {to_terminal_text(name)}. Let AWS's "
                    "services out of it: add Bool aws:PrincipalIsAWSService false to its Condition"
                )


def _list_missing_grants(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> list[dict[str, Any]]:
    """Return the statements that the queue's policy lacks so that its producers may send."""
    grants = list[dict[str, Any]]()
    for refusing_policy, producer in _list_refused_producers(queue):
        if refusing_policy is RefusingPolicy.QUEUE_POLICY and not _is_denied(producer, queue):
            known_producer = _forget_hidden_source(producer, queue, declared_queues)
            grant = _make_grant(known_producer, [SEND_MESSAGE_ACTION], _get_arn_reference(queue))
            if grant not in grants:
                grants.append(grant)
    return grants


def _forget_hidden_source(
    producer: DeclaredProducer, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> DeclaredProducer:
    """Return the producer without its source if the queue's template cannot refer to that.

    The source may be declared in another stack, or get its logical ID from a framework.
    """
    template = declared_queues.template
    source_names = (get_mapping(producer.source_node) or {}).values()
    stack_ids = {template.find_stack_id(str(to_list(name)[0])) for name in source_names}
    is_hidden = (
        template.expansion is not None
        and not template.expansion.has_real_ids
        and template.is_generated(producer.logical_id)
    )
    if not is_hidden and stack_ids <= {template.find_stack_id(queue.resource.logical_id)}:
        return producer
    return replace(producer, source_node=None)


def _get_arn_reference(queue: DeclaredQueue) -> dict[str, Any]:
    return {"Fn::GetAtt": [queue.resource.logical_id, "Arn"]}


def _make_grant(producer: DeclaredProducer, actions: list[str], resource: Any) -> dict[str, Any]:
    """Return the statement that grants actions to a producer, and to no other source.

    If the source's ARN cannot be compared, its account is.
    """
    statement = _make_statement(actions, resource)
    if producer.is_of_other_account:
        return {**statement, "Principal": {"AWS": producer.principal}}
    condition: dict[str, Any] = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    if producer.source_node is not None:
        condition = {"ArnEquals": {"aws:SourceArn": producer.source_node}}
    principal = {"Service": producer.principal}
    return {**statement, "Principal": principal, "Condition": condition}


def _make_statement(actions: list[str], resource: Any) -> dict[str, Any]:
    """Return a statement that grants actions. Write a single action as a string."""
    action = actions[0] if len(actions) == 1 else actions
    return {"Effect": "Allow", "Action": action, "Resource": resource}


@dataclass(frozen=True)
class _PropertyRemedy:
    """A remedy whose line sets one property to a fixed value."""

    name: str
    value: object

    def __call__(self, _queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
        return declared_queues.template.render_declaration(self.name, self.value)


@dataclass(frozen=True)
class _CommentRemedy:
    """A remedy that only a person can decide: a comment line that says what to do.

    `{}` in `comment_pattern`, if it is there, stands for the name of the attribute.
    """

    comment_pattern: str
    attribute: str

    def __call__(self, _queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
        attribute = declared_queues.template.get_attribute_name(self.attribute)
        return (f"# {self.comment_pattern.format(attribute)}",)


def _make_sqs_keys_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return the lines that encrypt the queue with SQS's own keys instead of a KMS key.

    The first line is a comment: the property with the KMS key must be left out.
    """
    return _REMOVE_KMS_KEY_REMEDY(queue, declared_queues) + _SQS_OWNED_KEYS_REMEDY(
        queue, declared_queues
    )


def _make_batch_failures_lines(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> TemplateLines:
    """Return the lines that set ReportBatchItemFailures on a mapping."""
    fault = detect_batch_failures_not_reported(queue)
    template = declared_queues.template
    mapping_id = fault.mapping_id if fault else ""
    owner = _name_resource(mapping_id, declared_queues)
    setting: tuple[str, Any] = ("FunctionResponseTypes", ["ReportBatchItemFailures"])
    if template.expansion and template.is_generated(mapping_id):
        setting = template.expansion.batch_failures_setting
        if mapping_id in template.expansion.ids_of_topic_events:
            comment = (
                f"# SqsSubscription of {owner} takes no FunctionResponseTypes. Remove it, "
                "subscribe the queue to the topic with AWS::SNS::Subscription, and give the "
                "function an SQS event with FunctionResponseTypes: [ReportBatchItemFailures]"
            )
            return (comment,)
    return (
        f"# add to {owner}. Then change the function's code to return batchItemFailures",
        *template.render_declaration(*setting),
    )


def _name_resource(logical_id: str, declared_queues: DeclaredQueues) -> str:
    """Return a resource's logical ID, or the path in the file that a transform made it from."""
    template = declared_queues.template
    if not template.is_generated(logical_id):
        return to_terminal_text(logical_id)
    return template.find_place("Resources", logical_id).path.removeprefix("Resources.")


def _name_function(consumer: DeclaredConsumer, declared_queues: DeclaredQueues) -> str:
    function_name = declared_queues.resolver.replace_arns_by_logical_ids(consumer.name)
    return to_terminal_text(function_name)


def _make_enabling_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return the property that enables a mapping or starts a pipe."""
    disabled = queue.disabled_mappings[0]
    comment = f"# add to {_name_resource(disabled.logical_id, declared_queues)}"
    template = declared_queues.template
    if disabled.type != EVENT_SOURCE_MAPPING_TYPE:
        return comment, *template.render_declaration("DesiredState", "RUNNING")
    setting_name = "Enabled"
    if template.expansion and template.is_generated(disabled.logical_id):
        setting_name = template.expansion.enabled_setting_name
    return comment, *template.render_declaration(setting_name, True)


def _find_consumer_with_small_concurrency(queue: DeclaredQueue) -> DeclaredConsumer | None:
    """Return the consumer that the finding about concurrency is about; None if there is none."""
    fault = find_concurrency_fault(queue)
    if fault is None:
        return None
    for consumer in queue.lambda_consumers:
        if consumer.mapping_id == fault.mapping_id:
            return consumer
    return None


def _make_concurrency_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return the MaximumConcurrency that fits the function's reserved concurrency.

    Return a comment with the concurrency to reserve if no MaximumConcurrency fits, or if the
    mapping is in provisioned mode.
    """
    consumer = _find_consumer_with_small_concurrency(queue)
    if consumer is None:
        return ()
    template = declared_queues.template
    reserved_concurrency = consumer.reserved_concurrency or 0
    earlier_runs = consumer.runs_of_earlier_mappings
    if earlier_runs <= reserved_concurrency:
        reserved_concurrency -= earlier_runs
    if reserved_concurrency < LOWEST_MAXIMUM_CONCURRENCY or consumer.provisioned_pollers:
        needed = earlier_runs + (consumer.most_runs or 0)
        if not earlier_runs and not consumer.provisioned_pollers:
            needed = RUNS_OF_FIRST_POLLERS
        function = _name_function(consumer, declared_queues)
        function_id = declared_queues.resolver.find_function_id(consumer.name) or ""
        advice = f"reserve at least {needed} for {function}"
        setting_name = template.name_reserved_concurrency(function_id)
        return (f"# {advice}, or leave its {setting_name} out",)
    comment = f"# add to {_name_resource(consumer.mapping_id, declared_queues)}"
    setting: tuple[str, Any] = ("ScalingConfig", {"MaximumConcurrency": reserved_concurrency})
    if template.expansion and template.is_generated(consumer.mapping_id):
        setting_name = template.expansion.limit_setting_name
        setting = (setting_name, reserved_concurrency) if setting_name else setting
    return comment, *template.render_declaration(*setting)


def _make_throttled_lines(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> TemplateLines:
    """Return a comment about the first function with a reserved concurrency of 0.

    The comment names the setting as the file's language does. Empty if there is no such function.
    """
    for consumer in queue.lambda_consumers:
        if consumer.reserved_concurrency == 0:
            function_id = declared_queues.resolver.find_function_id(consumer.name) or ""
            setting_name = declared_queues.template.name_reserved_concurrency(function_id)
            function = _name_function(consumer, declared_queues)
            least = RUNS_OF_FIRST_POLLERS
            return (f"# remove {setting_name} of {function}, or set it to at least {least}",)
    return ()


def _make_filter_lines(queue: DeclaredQueue, _declared_queues: DeclaredQueues) -> TemplateLines:
    """Return a comment about what to do with a filter that deletes messages."""
    fault = detect_filter_fault(queue)
    if fault is not None and fault.evidence_kind is SEVERAL_CONSUMERS:
        place = "in the SNS subscription (FilterPolicy) or the EventBridge rule"
        return (f"# give each consumer a queue of its own, and filter before it: {place}",)
    comment = (
        "# SQS deletes messages that this filter does not match. If you need them, remove the "
        "filter and handle them in the code. If not, ignore this finding with the reason"
    )
    return (comment,)


def _make_receive_count_lines(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> TemplateLines:
    """Return the count that AWS advises, and a retention in which so many receives end."""
    template = declared_queues.template
    count_lines = template.render_declaration(RECEIVE_COUNT_KEY, DEFAULT_MAX_RECEIVE_COUNT)
    return count_lines + make_retention_lines(queue, declared_queues)


_PROPERTIES_COPIED_TO_DLQ = ("KmsMasterKeyId", "FifoQueue", "ContentBasedDeduplication")
_REMOVE_KMS_KEY_REMEDY = _CommentRemedy("leave {} out", "KmsMasterKeyId")
_SQS_OWNED_KEYS_REMEDY = _PropertyRemedy("SqsManagedSseEnabled", True)
# Remedies that do not come from the catalogue's plan, by symptom.
_REMEDY_BY_SYMPTOM: Mapping[str, Remedy] = {
    BATCH_FAILURES_NOT_REPORTED.name: _make_batch_failures_lines,
    CONCURRENCY_TOO_SMALL.name: _make_concurrency_lines,
    CONSUMER_STOPPED.name: _make_enabling_lines,
    CONSUMER_THROTTLED.name: _make_throttled_lines,
    FILTER_DELETES_MESSAGES.name: _make_filter_lines,
    DLQ_MISSING.name: _make_dlq_lines,
    TLS_NOT_ENFORCED.name: _make_tls_policy_lines,
    # The source's ARN must be written out. A reference would make the DLQ depend on the source, and
    # the source depends on the DLQ already.
    DLQ_SOURCE_NOT_ALLOWED.name: _CommentRemedy(
        "leave {} out, or let the source in by an ARN that is written out",
        DLQ_SOURCE_NOT_ALLOWED.shown_attributes[0],
    ),
    MESSAGES_EXPIRE.name: make_retention_lines,
    NOT_ENCRYPTED.name: _SQS_OWNED_KEYS_REMEDY,
    PRODUCER_REFUSED.name: _make_producer_lines,
    POLICY_IS_PUBLIC.name: _CommentRemedy(
        "name who may, or narrow it: aws:SourceArn, aws:PrincipalOrgID", REDRIVE_POLICY_ATTRIBUTE
    ),
    SERVICE_CANNOT_USE_KEY.name: _make_sqs_keys_lines,
    MAX_RECEIVE_COUNT_TOO_LOW.name: _make_receive_count_lines,
    REDRIVE_CYCLE.name: _CommentRemedy(
        "remove {} here: it sends the DLQ's messages back to the first queue",
        REDRIVE_POLICY_ATTRIBUTE,
    ),
    DLQ_TYPE_MISMATCH.name: _CommentRemedy(
        "name a queue of its own type in {}", REDRIVE_POLICY_ATTRIBUTE
    ),
    TAG_NOT_UNDERSTOOD.name: _CommentRemedy(
        "correct the tag, or leave it out", REDRIVE_POLICY_ATTRIBUTE
    ),
}
