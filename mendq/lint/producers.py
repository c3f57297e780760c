"""Read which resources of a template send to its queues, and with which rights.

Read are subscriptions of SNS topics with their DLQs, EventBridge rules with their DLQs,
notifications of S3 buckets, targets and DLQs of schedules, targets of pipes, and the DLQs and
destinations of Lambda functions and event source mappings. So are principals of other accounts to
which a queue's policy grants to send.

Only a producer whose queue the template declares is read. What is not known about it has a
stand-in (`mendq/model/admission.py`), so that nothing is reported that depends on it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mendq.lint.template import Template, TemplateResource, get_mapping, to_list
from mendq.lint.values import (
    BUCKET_TYPE,
    FUNCTION_TYPE,
    KEY_ALIAS_TYPE,
    KEY_TYPE,
    ROLE_TYPE,
    RULE_TYPE,
    TOPIC_TYPE,
    ResourceResolver,
    UnknownValue,
    is_intrinsic_function,
)
from mendq.model.admission import UNKNOWN_ACCOUNT, UNKNOWN_TEXT, Answer, match_text
from mendq.model.message_calls import SEND_MESSAGE_ACTION
from mendq.model.policy import Statement, parse_statements
from mendq.model.producers import NOT_DEPLOYED, KeyOfQueue, Producer, ServiceFault
from mendq.model.queue import FIFO_SUFFIX, arn_of_url

SUBSCRIPTION_TYPE = "AWS::SNS::Subscription"
SCHEDULE_TYPE = "AWS::Scheduler::Schedule"
PIPE_TYPE = "AWS::Pipes::Pipe"
INVOKE_CONFIG_TYPE = "AWS::Lambda::EventInvokeConfig"
_MAPPING_TYPE = "AWS::Lambda::EventSourceMapping"
MANAGED_POLICY_TYPE = "AWS::IAM::ManagedPolicy"
ROLE_POLICY_TYPE = "AWS::IAM::RolePolicy"
# Types of policies that are attached to roles, each with the property that names the roles.
_ROLES_PROPERTY_BY_POLICY_TYPE = {
    "AWS::IAM::Policy": "Roles",
    MANAGED_POLICY_TYPE: "Roles",
    ROLE_POLICY_TYPE: "RoleName",
}
# AWS's managed policies that grant no sending to queues.
_POLICIES_WITHOUT_SENDING = re.compile(
    r"arn:[a-z-]+:iam::aws:policy/(?:service-role/)?(?:AWSLambdaBasicExecutionRole"
    r"|AWSLambdaDynamoDBExecutionRole|AWSLambdaKinesisExecutionRole"
    r"|AWSLambdaSQSQueueExecutionRole|AWSLambdaVPCAccessExecutionRole"
    r"|AWSXRayDaemonWriteAccess|AWSXrayWriteOnlyAccess"
    r"|CloudWatchLambdaInsightsExecutionRolePolicy)"
)
_ACCOUNT_REGEX = re.compile(r"[0-9]{12}")
_LOST_WITHOUT_ERROR = "its messages are lost; only a CloudWatch metric of the sender counts them"
_LOST_DEAD_MESSAGES = "what it cannot deliver is lost instead of kept"
# What the services say of FIFO queues:
# https://docs.aws.amazon.com/sns/latest/dg/fifo-message-delivery.html
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-s3-bucket-queueconfiguration.html
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
# https://docs.aws.amazon.com/scheduler/latest/APIReference/API_SqsParameters.html
_STANDARD_QUEUE_ADVICE = "use a standard queue"
_STANDARD_TOPIC_TO_FIFO = ServiceFault(
    "has a standard topic, and SNS refuses a FIFO queue for it",
    "use a standard queue, or make the topic FIFO too",
)
_URL_OF_QUEUE = ServiceFault(
    "names the URL of the queue and not its ARN", "give the ARN of the queue"
)
_BUCKET_TO_FIFO = ServiceFault("cannot send to a FIFO queue", _STANDARD_QUEUE_ADVICE)
_FUNCTION_TO_FIFO = ServiceFault("cannot send to a FIFO queue", _STANDARD_QUEUE_ADVICE)
_EVENTBRIDGE_DLQ_IS_FIFO = ServiceFault(
    "cannot have a FIFO queue as its DLQ", _STANDARD_QUEUE_ADVICE
)
# AWS does not say whether it refuses such a schedule. No message can be delivered.
_SCHEDULE_DLQ_IS_FIFO = replace(_EVENTBRIDGE_DLQ_IS_FIFO, is_refused_at_deployment=False)
_RULE_WITHOUT_GROUP = ServiceFault(
    "names no MessageGroupId, which a FIFO queue needs", "add MessageGroupId"
)
# AWS does not say whether it refuses such a schedule or pipe.
_NO_GROUP = replace(_RULE_WITHOUT_GROUP, is_refused_at_deployment=False)
_NO_CONTENT_DEDUPLICATION = ServiceFault(
    "gives no deduplication id, and the FIFO queue has no ContentBasedDeduplication",
    "set ContentBasedDeduplication of the queue to true",
    is_refused_at_deployment=False,
)
# The policy of a key that declares none: only policies of its own account can grant more.
_DEFAULT_KEY_STATEMENTS = (
    Statement(
        allows=True,
        principals={"AWS": (f"arn:aws:iam::{UNKNOWN_ACCOUNT}:root",)},
        actions=("kms:*",),
        resources=("*",),
    ),
)


@dataclass(frozen=True, kw_only=True)
class DeclaredProducer(Producer):
    """A producer that a template declares.

    Attributes:
        logical_id: The resource that sends.
        source_node: The value that a statement must compare `aws:SourceArn` with. None if the
            template has none: then a statement compares `aws:SourceAccount`.
        role_id: The logical ID of its role; empty if it has none.
    """

    logical_id: str
    source_node: Any = None
    role_id: str = ""


@dataclass(frozen=True)
class _Target:
    """A place in a resource that may name a queue, and the producer that would send to it."""

    queue_node: Any
    producer: DeclaredProducer
    # The value of the role with which the producer sends. None if the service itself sends.
    role_node: Any = None
    # Why the producer cannot send if the queue is a FIFO queue. None if it can.
    service_fault: ServiceFault | None = None
    # True if the service sends to a FIFO queue only with content-based deduplication.
    needs_content_deduplication: bool = False


class DeclaredProducers:
    """All producers of a template's queues, and the policies of their roles and keys."""

    def __init__(self, template: Template, resolver: ResourceResolver) -> None:
        self._template = template
        self._resolver = resolver
        self._role_id_by_arn = self._index_by_arn(ROLE_TYPE)
        self._key_id_by_name = self._index_keys()
        self._policies = list(template.list_resources(*_ROLES_PROPERTY_BY_POLICY_TYPE))
        self.by_queue_arn = defaultdict[str, list[DeclaredProducer]](list)
        for resource in template.resources.values():
            for target in self._list_targets(resource):
                queue_name = resolver.resolve_text_or_empty(target.queue_node)
                queue_arn = arn_of_url(queue_name, resolver.deploy_target.region) or queue_name
                if queue_arn in resolver.queue_id_by_arn:
                    service_fault = self._find_fifo_fault(target, queue_arn)
                    if queue_arn != queue_name:
                        service_fault = _URL_OF_QUEUE
                    producer = replace(self._add_role(target), service_fault=service_fault)
                    self.by_queue_arn[queue_arn].append(producer)

    def _find_fifo_fault(self, target: _Target, queue_arn: str) -> ServiceFault | None:
        """Return why a producer cannot send to its queue because that is a FIFO queue."""
        if not queue_arn.endswith(FIFO_SUFFIX):
            return None
        if target.service_fault is not None:
            return target.service_fault
        queue = self._template.resources[self._resolver.queue_id_by_arn[queue_arn]]
        deduplication_node = queue.properties.get("ContentBasedDeduplication")
        try:
            deduplicates = self._resolver.resolve_text(deduplication_node) == "true"
        except UnknownValue:
            return None
        is_accepted = deduplicates or not target.needs_content_deduplication
        return None if is_accepted else _NO_CONTENT_DEDUPLICATION

    def _is_standard_topic(self, topic_node: Any) -> bool:
        """Return True if a topic is known to be a standard topic."""
        topic_arn = self._resolver.resolve_text_or_empty(topic_node)
        for topic in self._template.list_resources(TOPIC_TYPE):
            if self._resolver.value_by_reference[topic.logical_id] == topic_arn:
                fifo_text = str(topic.properties.get("FifoTopic", "false")).lower()
                return fifo_text == "false" and not topic_arn.endswith(FIFO_SUFFIX)
        return topic_arn.startswith("arn:") and not topic_arn.endswith(FIFO_SUFFIX)

    def _index_by_arn(self, resource_type: str) -> dict[str, str]:
        """Return the logical IDs of the resources of a type, by ARN."""
        return {
            self._resolver.value_by_reference[f"{resource.logical_id}.Arn"]: resource.logical_id
            for resource in self._template.list_resources(resource_type)
        }

    def _index_keys(self) -> dict[str, str]:
        """Return the logical IDs of the keys, by id, ARN and alias."""
        key_id_by_name = self._index_by_arn(KEY_TYPE)
        for key in self._template.list_resources(KEY_TYPE):
            key_id_by_name[self._resolver.value_by_reference[key.logical_id]] = key.logical_id
        for alias in self._template.list_resources(KEY_ALIAS_TYPE):
            target = self._resolver.resolve_text_or_empty(alias.properties.get("TargetKeyId"))
            if target in key_id_by_name:
                alias_name = self._resolver.value_by_reference[alias.logical_id]
                key_id_by_name[alias_name] = key_id_by_name[target]
        return key_id_by_name

    def _list_targets(self, resource: TemplateResource) -> Iterator[_Target]:
        """Yield the places of a resource that may name a queue."""
        properties = resource.properties
        if resource.type == SUBSCRIPTION_TYPE:
            yield from self._read_subscription(resource, properties, properties.get("TopicArn"))
        elif resource.type == TOPIC_TYPE:
            topic_node = {"Ref": resource.logical_id}
            for subscription in to_list(properties.get("Subscription")):
                yield from self._read_subscription(
                    resource, get_mapping(subscription) or {}, topic_node
                )
        elif resource.type == RULE_TYPE:
            yield from self._read_rule(resource)
        elif resource.type == BUCKET_TYPE:
            yield from self._read_bucket(resource)
        elif resource.type in (SCHEDULE_TYPE, PIPE_TYPE):
            yield from self._read_role_target(resource)
        elif resource.type in (FUNCTION_TYPE, INVOKE_CONFIG_TYPE, _MAPPING_TYPE):
            yield from self._read_function_target(resource)

    def _name(self, resource: TemplateResource) -> str:
        """Return the name of a resource in the file: for a generated one, that of its source."""
        if not self._template.is_generated(resource.logical_id):
            return resource.logical_id
        path = self._template.find_place("Resources", resource.logical_id).path
        return path.removeprefix("Resources.")

    def _read_subscription(
        self, resource: TemplateResource, properties: Mapping[str, Any], topic_node: Any
    ) -> Iterator[_Target]:
        """Yield the queue and the DLQ of a subscription of an SNS topic."""
        topic_arn = self._resolver.resolve_text_or_empty(topic_node) or None
        subscription = DeclaredProducer(
            f"the SNS subscription {self._name(resource)}",
            "sns.amazonaws.com",
            topic_arn,
            _read_account(topic_arn),
            consequence=_LOST_WITHOUT_ERROR,
            logical_id=resource.logical_id,
            source_node=topic_node,
        )
        if resource.type == TOPIC_TYPE:
            subscription = replace(
                subscription, name=f"the SNS topic {resource.logical_id} for its subscription"
            )
        service_fault = None
        if self._is_standard_topic(topic_node):
            service_fault = _STANDARD_TOPIC_TO_FIFO
        if self._resolver.resolve_text_or_empty(properties.get("Protocol")).lower() == "sqs":
            yield _Target(properties.get("Endpoint"), subscription, service_fault=service_fault)
        redrive_policy = get_mapping(properties, "RedrivePolicy") or {}
        yield _Target(
            redrive_policy.get("deadLetterTargetArn"),
            replace(subscription, consequence=_LOST_DEAD_MESSAGES),
            service_fault=service_fault,
        )

    def _read_rule(self, rule: TemplateResource) -> Iterator[_Target]:
        """Yield the targets of an EventBridge rule and their DLQs."""
        rule_arn = self._resolver.value_by_reference[f"{rule.logical_id}.Arn"]
        producer = DeclaredProducer(
            f"the EventBridge rule {self._name(rule)}",
            "events.amazonaws.com",
            rule_arn,
            self._resolver.deploy_target.account,
            consequence=_LOST_WITHOUT_ERROR,
            logical_id=rule.logical_id,
            source_node={"Fn::GetAtt": [rule.logical_id, "Arn"]},
        )
        for target in to_list(rule.properties.get("Targets")):
            target_properties = get_mapping(target) or {}
            # A target with a role is sent to with that role, which may be in another stack.
            if "RoleArn" not in target_properties:
                yield _Target(
                    target_properties.get("Arn"),
                    producer,
                    service_fault=(
                        _RULE_WITHOUT_GROUP
                        if _lacks_group(target_properties, "SqsParameters")
                        else None
                    ),
                    needs_content_deduplication=True,
                )
            dead_letter_config = get_mapping(target_properties, "DeadLetterConfig") or {}
            yield _Target(
                dead_letter_config.get("Arn"),
                replace(producer, consequence=_LOST_DEAD_MESSAGES),
                service_fault=_EVENTBRIDGE_DLQ_IS_FIFO,
            )

    def _read_bucket(self, bucket: TemplateResource) -> Iterator[_Target]:
        """Yield the queues to which an S3 bucket sends notifications.

        S3 checks at deployment if it may send. The bucket then waits for the policy, so that the
        policy must not wait for the bucket: it can name the bucket only by a name that is written
        out. In Terraform the notification waits, and not the bucket.
        """
        configuration = get_mapping(bucket.properties, "NotificationConfiguration") or {}
        producer = DeclaredProducer(
            f"the notification of the S3 bucket {bucket.logical_id}",
            "s3.amazonaws.com",
            self._resolver.value_by_reference[f"{bucket.logical_id}.Arn"],
            self._resolver.deploy_target.account,
            consequence=NOT_DEPLOYED,
            is_checked_at_deployment=True,
            logical_id=bucket.logical_id,
            source_node=self._template.make_bucket_arn_node(bucket),
        )
        for queue_configuration in to_list(configuration.get("QueueConfigurations")):
            queue_node = (get_mapping(queue_configuration) or {}).get("Queue")
            yield _Target(queue_node, producer, service_fault=_BUCKET_TO_FIFO)

    def _read_role_target(self, resource: TemplateResource) -> Iterator[_Target]:
        """Yield the target of a schedule or a pipe, and the DLQ of a schedule."""
        is_schedule = resource.type == SCHEDULE_TYPE
        producer = DeclaredProducer(
            f"the {'schedule' if is_schedule else 'pipe'} {self._name(resource)}",
            "",
            consequence=_LOST_WITHOUT_ERROR if is_schedule else "the pipe sends nothing",
            logical_id=resource.logical_id,
        )
        if not is_schedule:
            yield _Target(
                resource.properties.get("Target"),
                producer,
                resource.properties.get("RoleArn"),
                service_fault=(
                    _NO_GROUP
                    if _lacks_group(resource.properties, "TargetParameters", "SqsQueueParameters")
                    else None
                ),
            )
            return
        target = get_mapping(resource.properties, "Target") or {}
        role_node = target.get("RoleArn")
        yield _Target(
            target.get("Arn"),
            producer,
            role_node,
            service_fault=_NO_GROUP if _lacks_group(target, "SqsParameters") else None,
            needs_content_deduplication=True,
        )
        dead_letter_config = get_mapping(target, "DeadLetterConfig") or {}
        yield _Target(
            dead_letter_config.get("Arn"),
            replace(producer, consequence=_LOST_DEAD_MESSAGES),
            role_node,
            service_fault=_SCHEDULE_DLQ_IS_FIFO,
        )

    def _read_function_target(self, resource: TemplateResource) -> Iterator[_Target]:
        """Yield the queues for the events that a function could not handle, or did."""
        function = resource
        if resource.type != FUNCTION_TYPE:
            name_or_arn = self._resolver.resolve_text_or_empty(
                resource.properties.get("FunctionName")
            )
            function_id = self._resolver.find_function_id(name_or_arn)
            if function_id is None:
                return
            function = self._template.resources[function_id]
        producer = DeclaredProducer(
            f"the function {self._name(function)}",
            "",
            consequence=NOT_DEPLOYED,
            is_checked_at_deployment=True,
            logical_id=resource.logical_id,
        )
        role_node = function.properties.get("Role")
        dead_letter_config = get_mapping(resource.properties, "DeadLetterConfig") or {}
        queue_nodes = [dead_letter_config.get("TargetArn")]
        for event in ("OnFailure", "OnSuccess"):
            destination = get_mapping(resource.properties, "DestinationConfig", event) or {}
            queue_nodes.append(destination.get("Destination"))
        for queue_node in queue_nodes:
            yield _Target(queue_node, producer, role_node, service_fault=_FUNCTION_TO_FIFO)

    def _add_role(self, target: _Target) -> DeclaredProducer:
        """Return the producer of a target, with its role and the role's statements."""
        if target.producer.principal:
            return target.producer
        role_arn = self._resolver.resolve_text_or_empty(target.role_node)
        role_id = self._role_id_by_arn.get(role_arn, "")
        if not role_id:
            unknown_role_arn = f"arn:aws:iam::{UNKNOWN_ACCOUNT}:role/{UNKNOWN_TEXT}"
            return replace(target.producer, principal=unknown_role_arn)
        statements, is_complete = self._read_role(role_id)
        return replace(
            target.producer,
            principal=role_arn,
            role_statements=statements,
            knows_whole_role=is_complete,
            role_id=role_id,
        )

    def _read_role(self, role_id: str) -> tuple[tuple[Statement, ...], bool]:
        """Return the statements of a role's policies, and True if these are all of them.

        Those of a role that a transform generates are not all known, because the transform reads
        only a part of the resource from which it generates the role.
        """
        role = self._template.resources[role_id]
        statements = list[Statement]()
        is_complete = (
            not self._template.is_generated(role_id)
            and "PermissionsBoundary" not in role.properties
            and not self._template.may_be_set_elsewhere(role_id)
        )
        try:
            for policy in to_list(
                self._resolver.resolve(role.properties.get("Policies"), UNKNOWN_TEXT)
            ):
                statements += self._parse_document(
                    (get_mapping(policy) or {}).get("PolicyDocument")
                )
            for document in self._list_attached_documents(role_id, role):
                statements += self._parse_document(document)
        except UnknownValue:
            is_complete = False
        return tuple(statements), is_complete

    def _list_attached_documents(self, role_id: str, role: TemplateResource) -> Iterator[Any]:
        """Yield the documents of the policies that are attached to a role.

        Raises UnknownValue if a policy is not in the template, or if it is not known to which roles
        a policy belongs.
        """
        role_name = self._resolver.value_by_reference[role_id]
        managed_ids = self._list_managed_ids(role)
        for policy in self._policies:
            roles_node = policy.properties.get(_ROLES_PROPERTY_BY_POLICY_TYPE[policy.type])
            role_names = to_list(self._resolver.resolve(roles_node))
            if policy.logical_id not in managed_ids and role_name not in role_names:
                continue
            condition_name = policy.definition.get("Condition")
            if condition_name and not self._resolver.find_condition(condition_name):
                raise UnknownValue("a condition decides whether the role has the policy")
            yield policy.properties.get("PolicyDocument", {})

    def _list_managed_ids(self, role: TemplateResource) -> set[str]:
        """Return the logical IDs of the template's managed policies that a role names.

        Raises UnknownValue if the role names another policy that may grant to send.
        """
        managed_ids = set[str]()
        for policy_node in to_list(role.properties.get("ManagedPolicyArns")):
            policy_id = policy_node.get("Ref") if isinstance(policy_node, dict) else None
            policy = self._template.resources.get(policy_id or "")
            if policy is not None and policy.type == MANAGED_POLICY_TYPE:
                managed_ids.add(policy.logical_id)
                continue
            policy_arn = self._resolver.resolve_text(policy_node) or ""
            if not _POLICIES_WITHOUT_SENDING.fullmatch(policy_arn):
                raise UnknownValue(f"what {policy_arn} grants")
        return managed_ids

    def _parse_document(self, document: Any) -> tuple[Statement, ...]:
        """Return the statements of a policy document. Raises UnknownValue if it is unreadable."""
        resolved_document = self._resolver.resolve(document, UNKNOWN_TEXT)
        statements = parse_statements(json.dumps(resolved_document))
        if statements is None:
            raise UnknownValue("no policy that IAM would take")
        return statements

    def find_key(self, key_name: str) -> tuple[str, KeyOfQueue] | None:
        """Return the logical ID of the KMS key with this name or ARN, and the key.

        None if the template does not declare the key.
        """
        key_id = self._key_id_by_name.get(key_name)
        if key_id is None:
            return None
        key_arn = self._resolver.value_by_reference[f"{key_id}.Arn"]
        key_policy = self._template.resources[key_id].properties.get("KeyPolicy")
        if key_policy is None:
            return key_id, KeyOfQueue(key_arn, _DEFAULT_KEY_STATEMENTS)
        try:
            return key_id, KeyOfQueue(key_arn, self._parse_document(key_policy))
        except UnknownValue:
            return key_id, KeyOfQueue(key_arn, None)

    def list_other_accounts(
        self, statements: tuple[Statement, ...], logical_id: str
    ) -> Iterator[DeclaredProducer]:
        """Yield the principals of other accounts that a queue's policy lets send.

        An account that is written out belongs to somebody else, unless it is that of the
        deployment.
        """
        own_account = self._resolver.deploy_target.account
        for statement in statements:
            is_grant = statement.allows and "Action" not in statement.negated_elements
            if not is_grant or not any(
                match_text(action.lower(), SEND_MESSAGE_ACTION.lower()) is Answer.YES
                for action in statement.actions
            ):
                continue
            for principal in statement.principals.get("AWS", ()):
                account = principal.split(":")[4] if principal.count(":") >= 5 else principal
                if _ACCOUNT_REGEX.fullmatch(account) and account != own_account:
                    yield DeclaredProducer(
                        f"the principal {principal}",
                        principal,
                        is_of_other_account=True,
                        consequence="its calls fail",
                        logical_id=logical_id,
                    )


def _lacks_group(properties: Mapping[str, Any], *keys: str) -> bool:
    """Return True if the settings at the path `keys` are known to name no message group."""
    node: Any = properties
    for key in keys:
        node = node.get(key)
        if node is None:
            return True
        if not isinstance(node, dict) or is_intrinsic_function(node):
            return False
    return "MessageGroupId" not in node


def _read_account(arn: str | None) -> str | None:
    """Return the account in an ARN; None if the ARN is not known or has no account."""
    arn_parts = (arn or "").split(":")
    return (arn_parts[4] or None) if len(arn_parts) > 5 else None
