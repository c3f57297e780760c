"""Convert the queues of a template to the facts that the catalogue's checks read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mendq.lint.producers import PIPE_TYPE, DeclaredProducer, DeclaredProducers
from mendq.lint.template import (
    SAM_TRANSFORM,
    Template,
    TemplatePlace,
    TemplateResource,
    get_mapping,
    to_list,
)
from mendq.lint.values import DeployTarget, ResourceResolver, UnknownValue
from mendq.model.admission import UNKNOWN_TEXT
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts
from mendq.model.mapping import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_MAXIMUM_POLLERS,
    DEFAULT_MINIMUM_POLLERS,
    LONGEST_FUNCTION_TIMEOUT_SECONDS,
    STREAM_SETTINGS,
    MappingSettings,
    ProvisionedPollers,
    find_filter_refusal,
    list_mapping_refusals,
)
from mendq.model.policy import ALL_PRINCIPALS, parse_statements
from mendq.model.policy_limits import POLICY_ATTRIBUTE, find_policy_refusal
from mendq.model.producers import KeyOfQueue
from mendq.model.queue import (
    DEFAULT_NUMBER_BY_ATTRIBUTE,
    FIFO_SUFFIX,
    arn_of_url,
    parse_redrive_policy,
    queue_arn_or_none,
)
from mendq.model.queue_limits import (
    BOOLEAN_ATTRIBUTES,
    DLQ_ARN_KEY,
    RECEIVE_COUNT_KEY,
    REDRIVE_ALLOW_POLICY_ATTRIBUTE,
    REDRIVE_POLICY_ATTRIBUTE,
    QueueRefusal,
    find_name_refusal,
    find_redrive_allow_refusal,
    find_redrive_key,
    find_redrive_refusal,
    find_value_refusal,
    list_combination_refusals,
)
from mendq.model.tags import TEAM_TAG
from mendq.notifications.change_lines import WHOLE_NUMBER_PATTERN

EVENT_SOURCE_MAPPING_TYPE = "AWS::Lambda::EventSourceMapping"
# Resource types of queue policies, each with the property that names the queues.
QUEUES_PROPERTY_BY_POLICY_TYPE = {
    "AWS::SQS::QueuePolicy": "Queues",
    "AWS::SQS::QueueInlinePolicy": "Queue",
}
# Checks can read a grant to a named principal although these keys are not known.
_UNCHECKED_KEYS_OF_GRANT = ("Principal", "Resource", "Condition")
# SQS returns these attributes even if they were never set, and checks rely on that.
_ALWAYS_RETURNED_ATTRIBUTES = ("VisibilityTimeout", "MessageRetentionPeriod")
# Transforms that add no policy that lint does not see.
_TRANSFORMS_WITHOUT_POLICIES = frozenset({SAM_TRANSFORM, "AWS::LanguageExtensions"})


class RefusedValue(UnknownValue):
    """SQS refuses the value of an attribute, so that the queue has no such value."""

    def __init__(self, refusal: QueueRefusal) -> None:
        super().__init__(refusal.because)
        self.refusal = refusal


class QueueAttributes(dict[str, Any]):
    """Attributes of a queue, with the names and values as SQS returns them.

    Reading an attribute of unknown value raises UnknownValue. So a check cannot mistake it for an
    attribute that is not set.
    """

    def __init__(self, attributes: Mapping[str, str | UnknownValue]) -> None:
        super().__init__(attributes)
        # Names of the attributes that were read, in the order of reading, perhaps with repeats.
        self.names_of_read_attributes: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.names_of_read_attributes.append(name)
        value = super().__getitem__(name)
        if isinstance(value, UnknownValue):
            raise UnknownValue(value.because, name)
        return str(value)

    def get(self, name: str, default: Any = None) -> Any:
        self.names_of_read_attributes.append(name)
        return self[name] if name in self.keys() else default


@dataclass(frozen=True, kw_only=True)
class DeclaredConsumer(LambdaConsumer):
    """A Lambda function that consumes a queue, and the event source mapping that connects both."""

    event_source_mapping: TemplateResource
    # Why the function's times are not known. They are 0 then. Empty if they are known.
    why_timeout_unknown: str = ""
    # Why the mapping's settings are not known. Empty if they are known.
    why_settings_unknown: str = ""
    # Each reason why Lambda refuses the mapping. Empty if Lambda takes it, or if lint cannot tell.
    refusal_reasons: tuple[str, ...] = ()
    # False if the mapping is disabled.
    is_enabled: bool = True


@dataclass(frozen=True)
class PipeRun:
    """The functions that a pipe runs with each batch, and waits for.

    Attributes:
        pipe_id: The logical ID of the pipe.
        timeout_seconds: The timeouts of its enrichment and its target together.
        batching_window_seconds: How long the pipe collects messages for a batch.
    """

    pipe_id: str
    timeout_seconds: int
    batching_window_seconds: int


@dataclass(frozen=True, kw_only=True)
class DeclaredQueue(Facts):
    """Facts about a queue that a template declares.

    Reading an attribute whose value is not known raises UnknownValue.
    """

    resource: TemplateResource
    attributes: QueueAttributes
    # The resource that sets the queue's policy. None if the template has none.
    policy: TemplateResource | None
    lambda_consumers: tuple[DeclaredConsumer, ...]
    # Event source mappings and pipes of the queue that are disabled.
    disabled_mappings: tuple[TemplateResource, ...] = ()
    producers: tuple[DeclaredProducer, ...] = ()
    # Logical ID of the queue's KMS key. Empty if the template declares no such key.
    key_id: str = ""
    # All policies that the template sets on the queue, with their texts, if it sets several (SQS
    # keeps only the last one). Empty if it sets at most one.
    rival_policies: tuple[tuple[TemplateResource, str | UnknownValue], ...] = ()
    # Functions that pipes run with messages of the queue.
    pipe_runs: tuple[PipeRun, ...] = ()
    # Why SQS refuses the queue. Empty if SQS accepts it, or if lint cannot tell.
    refusals: tuple[QueueRefusal, ...] = ()

    @property
    def max_receive_count(self) -> int | None:
        """The number of receives after which SQS moves a message to the DLQ. None without a DLQ.

        If the number is not known, raise UnknownValue if a Lambda function consumes the queue, and
        return None otherwise.
        """
        if (
            f'"{UNKNOWN_TEXT}"' in self.attributes.get(REDRIVE_POLICY_ATTRIBUTE, "")
            and self.lambda_consumers
        ):
            refusal_texts = [
                refusal.because
                for refusal in self.refusals
                if refusal.attribute == REDRIVE_POLICY_ATTRIBUTE
            ]
            reason = next(iter(refusal_texts), f"{RECEIVE_COUNT_KEY}: known when it is deployed")
            raise UnknownValue(reason, REDRIVE_POLICY_ATTRIBUTE)
        return super().max_receive_count


class DeclaredQueues:
    """All queues that a template declares, with their policies, consumers, DLQs and sources."""

    def __init__(self, template: Template, deploy_target: DeployTarget) -> None:
        self.template = template
        self.resolver = ResourceResolver(template, deploy_target)
        # Queues whose type is not known, and mappings and policies whose queue is not known: the
        # reason by logical ID.
        self.unknown_value_by_logical_id = self.resolver.unknown_type_by_queue_id
        # Set if it is not known which queue a policy belongs to: it may be any queue's policy.
        self._unassigned_policy_error: UnknownValue | None = None
        self._consumers_by_arn = defaultdict[str, list[DeclaredConsumer]](list)
        # Event source mappings and pipes that are disabled, and pipes that are not.
        self._disabled_mappings_by_arn = defaultdict[str, list[TemplateResource]](list)
        # The functions of the disabled mappings.
        self._disabled_consumers_by_arn = defaultdict[str, list[DeclaredConsumer]](list)
        self._pipes_by_arn = defaultdict[str, list[TemplateResource]](list)
        for pipe in template.list_resources(PIPE_TYPE):
            self._add_pipe(pipe)
        # The policy resource of each queue, and its text.
        self._policy_by_arn: dict[str, tuple[TemplateResource, str | UnknownValue]] = {}
        # All policy resources of each queue. SQS keeps only one of them.
        self._rival_policies_by_arn = defaultdict[
            str, list[tuple[TemplateResource, str | UnknownValue]]
        ](list)
        self._refusals_by_arn = defaultdict[str, list[QueueRefusal]](list)
        for resource in template.list_resources(
            EVENT_SOURCE_MAPPING_TYPE, *QUEUES_PROPERTY_BY_POLICY_TYPE
        ):
            try:
                if resource.type == EVENT_SOURCE_MAPPING_TYPE:
                    self._add_event_source_mapping(resource)
                else:
                    self._add_policy(resource)
            except UnknownValue as error:
                self.unknown_value_by_logical_id[resource.logical_id] = error
                if resource.type in QUEUES_PROPERTY_BY_POLICY_TYPE:
                    reason = f"whose policy {resource.logical_id} is: {error.because}"
                    self._unassigned_policy_error = UnknownValue(reason)
        self._add_runs_of_earlier_mappings()
        self._producers = DeclaredProducers(template, self.resolver)
        self._attributes_by_arn = {
            arn: self._make_attributes(arn) for arn in self.resolver.queue_id_by_arn
        }
        sources_by_dlq_arn = defaultdict[Any, list[QueueFacts]](list)
        for arn, attributes in self._attributes_by_arn.items():
            sources_by_dlq_arn[self._find_dlq_arn(arn)].append(QueueFacts(arn, attributes))
        self.queue_by_arn = {
            arn: self._make_queue(arn, sources_by_dlq_arn[arn])
            for arn in self.resolver.queue_id_by_arn
        }

    def _add_runs_of_earlier_mappings(self) -> None:
        """Set, for each mapping, the concurrent invocations of its function's earlier mappings."""
        runs_by_function = defaultdict[str, int](int)
        for consumers in self._consumers_by_arn.values():
            for index, consumer in enumerate(consumers):
                earlier_runs = runs_by_function[consumer.function_arn]
                consumers[index] = replace(consumer, runs_of_earlier_mappings=earlier_runs)
                runs_by_function[consumer.function_arn] += consumer.most_runs or 0

    def _add_pipe(self, pipe: TemplateResource) -> None:
        """Record a pipe that reads a queue of the template, and perhaps is stopped.

        A pipe that may not be made, or whose state is not known, is left out.
        """
        source_arn = self.resolver.resolve_text_or_empty(pipe.properties.get("Source"))
        if source_arn not in self.resolver.queue_id_by_arn:
            return
        if not self._is_made_with(pipe, self._get_queue_resource(source_arn)):
            return
        try:
            desired_state = self.resolver.resolve_text(pipe.properties.get("DesiredState"))
        except UnknownValue:
            return
        if desired_state == "STOPPED":
            self._disabled_mappings_by_arn[source_arn].append(pipe)
        else:
            self._pipes_by_arn[source_arn].append(pipe)

    def _add_event_source_mapping(self, event_source_mapping: TemplateResource) -> None:
        """Add the function of an event source mapping to the consumers of the mapping's queue.

        A mapping that is disabled is recorded apart. One of which that is not known counts as
        enabled. One whose source is not a queue is ignored. Raises UnknownValue if the source is
        not known or is a queue that the template does not declare, or if a condition decides
        whether the mapping exists.
        """
        mapping_properties = event_source_mapping.properties
        source_arn = self.resolver.resolve_text(mapping_properties.get("EventSourceArn"))
        arn_of_named_url = arn_of_url(source_arn, self.resolver.deploy_target.region)
        is_url = arn_of_named_url in self.resolver.queue_id_by_arn
        if is_url:
            source_arn = arn_of_named_url
        if source_arn not in self.resolver.queue_id_by_arn:
            if source_arn and source_arn.split(":")[2:3] == ["sqs"]:
                raise UnknownValue("it reads a queue that the template does not declare")
            return
        queue = self._get_queue_resource(source_arn)
        if not self._is_made_with(event_source_mapping, queue):
            raise UnknownValue(f"a condition decides whether it reads {queue.logical_id}")
        with self.resolver.assume_made(event_source_mapping):
            enabled_text = self.resolver.resolve_text_or_empty(mapping_properties.get("Enabled"))
            consumer = self._read_mapping_settings(
                self._make_consumer(event_source_mapping), is_fifo=source_arn.endswith(FIFO_SUFFIX)
            )
            if enabled_text.lower() == "false":
                self._disabled_mappings_by_arn[source_arn].append(event_source_mapping)
                self._disabled_consumers_by_arn[source_arn].append(_disable(consumer))
                return
            more_reasons = tuple(self._list_more_refusals(consumer, source_arn, is_url=is_url))
            refusal_reasons = (*consumer.refusal_reasons, *more_reasons)
            consumer = replace(consumer, refusal_reasons=refusal_reasons)
            self._consumers_by_arn[source_arn].append(consumer)

    def _list_more_refusals(
        self, consumer: DeclaredConsumer, queue_arn: str, *, is_url: bool
    ) -> Iterator[str]:
        """Yield why Lambda refuses a mapping for other reasons than its numbers."""
        properties = consumer.event_source_mapping.properties
        if is_url:
            yield "its EventSourceArn is the URL of the queue and not its ARN"
        for setting_name in STREAM_SETTINGS:
            try:
                setting = self.resolver.resolve(properties.get(setting_name))
            except UnknownValue:
                continue
            if setting is not None:
                yield f"a mapping of an SQS queue has no {setting_name}"
        if consumer.timeout_seconds > LONGEST_FUNCTION_TIMEOUT_SECONDS:
            yield (
                f"the Timeout of its function is {consumer.timeout_seconds:,}, and Lambda accepts "
                f"1 to {LONGEST_FUNCTION_TIMEOUT_SECONDS}"
            )
        if filter_refusal := find_filter_refusal(self._list_patterns(properties), UNKNOWN_TEXT):
            yield filter_refusal
        for other in self._consumers_by_arn[queue_arn]:
            if self._is_same_function(other, consumer):
                yield f"{other.mapping_id} connects the same function and queue already"

    def _is_same_function(self, other: DeclaredConsumer, consumer: DeclaredConsumer) -> bool:
        """Return True if two mappings are known to name the same function, version and alias."""
        if other.function_arn != consumer.function_arn:
            return False
        names = []
        for mapping in (other.event_source_mapping, consumer.event_source_mapping):
            name = self.resolver.resolve_text_or_empty(mapping.properties.get("FunctionName"))
            _, _, name_and_version = name.rpartition(":function:")
            names.append((bool(name), name_and_version.partition(":")[2]))
        return names[0] == names[1] and names[0][0]

    def _is_made_with(self, resource: TemplateResource, queue: TemplateResource) -> bool:
        """Return True if a resource is made if a queue is.

        It is if its condition holds at the defaults of the parameters, or is that of the queue.
        """
        if "Condition" not in resource.definition:
            return True
        condition_name = resource.definition["Condition"]
        if condition_name not in self.template.get_section("Conditions"):
            return False
        is_same_condition = condition_name == queue.definition.get("Condition")
        return is_same_condition or self.resolver.find_condition(condition_name) is True

    def _is_never_made(self, resource: TemplateResource) -> bool:
        """Return True if a resource's condition is false at the defaults of the parameters."""
        return self.resolver.find_condition(resource.definition.get("Condition")) is False

    def _make_consumer(self, event_source_mapping: TemplateResource) -> DeclaredConsumer:
        """Return the function of an event source mapping, with its timeout and batching window.

        Both are in seconds. If one of them is not known, both are 0, and `why_timeout_unknown` is
        set.
        """
        function_arn = "a function of another stack"
        try:
            function_arn = (
                self.resolver.resolve_text(event_source_mapping.properties.get("FunctionName"))
                or "a function"
            )
            function_id = self.resolver.find_function_id(function_arn) or ""
            function_arn = self.resolver.value_by_reference.get(f"{function_id}.Arn", function_arn)
            function = self.template.resources.get(function_id)
            timeout_seconds = self._resolve_seconds(function, "Timeout", 3)
            batching_window_seconds = self._resolve_seconds(
                event_source_mapping, "MaximumBatchingWindowInSeconds", 0
            )
        except UnknownValue as error:
            return DeclaredConsumer(
                function_arn,
                0,
                0,
                event_source_mapping=event_source_mapping,
                why_timeout_unknown=error.because,
                mapping_id=event_source_mapping.logical_id,
                filters=self._list_filters(event_source_mapping.properties),
            )
        return DeclaredConsumer(
            function_arn,
            timeout_seconds,
            batching_window_seconds,
            event_source_mapping=event_source_mapping,
            mapping_id=event_source_mapping.logical_id,
            reserved_concurrency=self._read_reserved_concurrency(function),
            filters=self._list_filters(event_source_mapping.properties),
        )

    def _list_filters(self, properties: Any) -> tuple[str, ...]:
        """Return the JSON texts of the patterns in some properties. Empty if not known."""
        return tuple(json.dumps(pattern) for pattern in self._list_patterns(properties))

    def _list_patterns(self, properties: Any) -> list[Any]:
        """Return the patterns of the filter criteria in some properties. Empty if not known."""
        filter_criteria = get_mapping(properties, "FilterCriteria") or {}
        resolved_criteria = self.resolver.resolve(filter_criteria, UNKNOWN_TEXT)
        filters = to_list(get_mapping(resolved_criteria) and resolved_criteria.get("Filters"))
        return [
            pattern["Pattern"]
            for pattern in filters
            if isinstance(pattern, dict) and pattern.get("Pattern") is not None
        ]

    def _read_reserved_concurrency(self, function: TemplateResource | None) -> int | None:
        """Return the reserved concurrency of a function; None if it has none or it is not known."""
        properties = function.properties if function else {}
        concurrency_text = self.resolver.resolve_text_or_empty(
            properties.get("ReservedConcurrentExecutions")
        )
        # Terraform writes -1 for a function without reserved concurrency.
        return int(concurrency_text) if WHOLE_NUMBER_PATTERN.fullmatch(concurrency_text) else None

    def _read_mapping_settings(
        self, consumer: DeclaredConsumer, *, is_fifo: bool
    ) -> DeclaredConsumer:
        """Return the consumer with the settings of its mapping.

        If one of them is not known, `why_settings_unknown` is set, and the mapping counts as one
        with ReportBatchItemFailures, so that no check reports it.
        """
        mapping_properties = consumer.event_source_mapping.properties
        try:
            batch_size = self._resolve_number(mapping_properties.get("BatchSize"))
            maximum_concurrency = self._resolve_number(
                self._resolve_setting(mapping_properties, "ScalingConfig", "MaximumConcurrency")
            )
            pollers = self._resolve_pollers(mapping_properties)
            response_types = to_list(
                self.resolver.resolve(mapping_properties.get("FunctionResponseTypes"))
            )
        except UnknownValue as error:
            return replace(
                consumer,
                reports_item_failures=True,
                why_settings_unknown=f"how its mapping is set: {error.because}",
            )
        consumer = replace(
            consumer,
            batch_size=DEFAULT_BATCH_SIZE if batch_size is None else batch_size,
            maximum_concurrency=maximum_concurrency,
            provisioned_pollers=pollers,
            reports_item_failures="ReportBatchItemFailures" in response_types,
        )
        if consumer.why_timeout_unknown:
            return consumer
        mapping_settings = MappingSettings(
            is_fifo=is_fifo,
            batch_size=consumer.batch_size,
            batching_window_seconds=consumer.batching_window_seconds,
            maximum_concurrency=maximum_concurrency,
            provisioned_pollers=pollers,
        )
        return replace(consumer, refusal_reasons=tuple(list_mapping_refusals(mapping_settings)))

    def _resolve_pollers(self, mapping_properties: Mapping[str, Any]) -> ProvisionedPollers | None:
        """Return the pollers of a mapping; None if it is not in provisioned mode.

        Raises UnknownValue if a number of pollers is not known.
        """
        poller_config = "ProvisionedPollerConfig"
        minimum = self._resolve_number(
            self._resolve_setting(mapping_properties, poller_config, "MinimumPollers")
        )
        maximum = self._resolve_number(
            self._resolve_setting(mapping_properties, poller_config, "MaximumPollers")
        )
        if minimum is None and maximum is None:
            return None
        return ProvisionedPollers(
            minimum=DEFAULT_MINIMUM_POLLERS if minimum is None else minimum,
            maximum=DEFAULT_MAXIMUM_POLLERS if maximum is None else maximum,
        )

    def _resolve_setting(
        self, mapping_properties: Mapping[str, Any], property_name: str, setting_name: str
    ) -> Any:
        """Return one setting of a property that groups settings. None if it is not set."""
        resolved_property = self.resolver.resolve(mapping_properties.get(property_name))
        if resolved_property is None:
            return None
        if not isinstance(resolved_property, dict):
            raise UnknownValue(f"{property_name} is not a mapping")
        return resolved_property.get(setting_name)

    def _resolve_number(self, node: Any) -> int | None:
        """Return a whole number; None if it is not set. Raises UnknownValue for any other value."""
        number_text = self.resolver.resolve_text(node)
        if number_text is None:
            return None
        if not WHOLE_NUMBER_PATTERN.fullmatch(number_text):
            raise UnknownValue("it is not a whole number")
        return int(number_text)

    def _resolve_seconds(
        self, resource: TemplateResource | None, property_name: str, default_seconds: int
    ) -> int:
        """Return a property of a resource in seconds, or `default_seconds` if it is not set.

        Raises UnknownValue if the resource is None, or if the value is not known or not a whole
        number. AWS's default timeout of a function is documented here:
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
        """
        if resource is None:
            raise UnknownValue("the template does not declare its function")
        seconds_text = self.resolver.resolve_text(resource.properties.get(property_name)) or str(
            default_seconds
        )
        if not WHOLE_NUMBER_PATTERN.fullmatch(seconds_text):
            raise UnknownValue("it is not a whole number")
        return int(seconds_text)

    def _add_policy(self, policy_resource: TemplateResource) -> None:
        """Record a policy resource for each queue of the template that it names.

        SQS keeps one policy per queue. So the policy of a queue that two resources name is not
        known, unless the condition of one of them is false at the parameters' defaults. Raises
        UnknownValue if it is not known which queues the resource names.
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queuepolicy.html
        """
        with self.resolver.assume_made(policy_resource):
            document_text = self._resolve_policy_text(policy_resource)
        queue_urls = to_list(
            self.resolver.resolve(
                policy_resource.properties.get(QUEUES_PROPERTY_BY_POLICY_TYPE[policy_resource.type])
            )
        )
        region = self.resolver.deploy_target.region
        for queue_arn in dict.fromkeys(arn_of_url(queue_url, region) for queue_url in queue_urls):
            if queue_arn is None or queue_arn not in self.resolver.queue_id_by_arn:
                continue
            policy_text = document_text
            if not self._is_made_with(policy_resource, self._get_queue_resource(queue_arn)):
                policy_text = UnknownValue("a condition decides whether it has this policy")
            earlier_policy, _ = self._policy_by_arn.get(queue_arn, (None, ""))
            if earlier_policy is not None and self._is_never_made(policy_resource):
                continue
            rivals = self._rival_policies_by_arn[queue_arn]
            if earlier_policy is not None and self._is_never_made(earlier_policy):
                earlier_policy = None
                rivals.clear()
            rivals.append((policy_resource, policy_text))
            if earlier_policy is not None:
                both_policies_text = f"{earlier_policy.logical_id} and {policy_resource.logical_id}"
                policy_text = UnknownValue(
                    f"{both_policies_text} both set it, and SQS keeps only one"
                )
            self._note_refusal(queue_arn, policy_text)
            self._policy_by_arn[queue_arn] = policy_resource, policy_text

    def _note_refusal(self, queue_arn: str, policy_text: str | UnknownValue) -> None:
        """Record it if SQS refuses the policy of a queue."""
        if isinstance(policy_text, RefusedValue):
            self._refusals_by_arn[queue_arn].append(policy_text.refusal)

    def _resolve_policy_text(self, policy_resource: TemplateResource) -> str | UnknownValue:
        """Return the JSON text of a policy, or an UnknownValue if the text is not known."""
        policy_document = policy_resource.properties.get("PolicyDocument")
        refusal = find_policy_refusal(self.resolver.resolve(policy_document, UNKNOWN_TEXT))
        if refusal is not None:
            return RefusedValue(refusal)
        try:
            declared_statements = (get_mapping(policy_document) or {}).get("Statement")
            statements = [
                self._resolve_statement(statement_node)
                for statement_node in to_list(declared_statements)
            ]
            # `Fn::If` may leave a statement out.
            statements = [statement for statement in statements if statement is not None]
            resolved_document = self.resolver.resolve(
                policy_document, UNKNOWN_TEXT if statements else None
            )
        except UnknownValue as error:
            return error
        if isinstance(declared_statements, list):
            resolved_document = {**resolved_document, "Statement": statements}
        policy_text = (
            json.dumps(resolved_document)
            if isinstance(resolved_document, dict | list)
            else resolved_document or ""
        )
        if parse_statements(policy_text) is None:
            return UnknownValue("SQS would refuse this policy")
        return policy_text

    def _resolve_statement(self, statement: Any) -> Any:
        """Return a policy statement with its intrinsic functions resolved.

        If a value is not known, UnknownValue is raised. Exception: in a grant to named principals,
        UNKNOWN_TEXT replaces unknown values that decide only which call is admitted.
        """
        resolved_statement = self.resolver.resolve(statement, UNKNOWN_TEXT)
        if isinstance(resolved_statement, dict) and _is_grant_to_named_principals(
            resolved_statement
        ):
            return resolved_statement
        return self.resolver.resolve(statement)

    def _make_attributes(self, queue_arn: str) -> QueueAttributes:
        """Return a queue's attributes: its properties, policy, and defaults that checks rely on.

        A value that SQS would refuse counts as not known.
        """
        attributes: dict[str, str | UnknownValue] = {
            name: str(DEFAULT_NUMBER_BY_ATTRIBUTE[name]) for name in _ALWAYS_RETURNED_ATTRIBUTES
        }
        known_attributes = dict[str, str]()
        resource = self._get_queue_resource(queue_arn)
        with self.resolver.assume_made(resource):
            for name, property_node in resource.properties.items():
                try:
                    value = self._resolve_attribute(name, property_node)
                except RefusedValue as error:
                    self._refusals_by_arn[queue_arn].append(error.refusal)
                    attributes[name] = error
                except UnknownValue as error:
                    attributes[name] = error
                else:
                    if value is not None:
                        attributes[name] = known_attributes[name] = value
        self._refusals_by_arn[queue_arn] += filter(None, map(find_name_refusal, known_attributes))
        self._refusals_by_arn[queue_arn] += list_combination_refusals(known_attributes)
        redrive_policy = attributes.get(REDRIVE_POLICY_ATTRIBUTE)
        if isinstance(redrive_policy, UnknownValue):
            dlq_arn = self._resolve_dlq_arn(queue_arn, redrive_policy)
            if dlq_arn:
                attributes[REDRIVE_POLICY_ATTRIBUTE] = json.dumps(
                    {DLQ_ARN_KEY: dlq_arn, RECEIVE_COUNT_KEY: UNKNOWN_TEXT}
                )
        if queue_arn in self._policy_by_arn:
            _, attributes[POLICY_ATTRIBUTE] = self._policy_by_arn[queue_arn]
        elif self._unassigned_policy_error is not None:
            attributes[POLICY_ATTRIBUTE] = self._unassigned_policy_error
        return QueueAttributes(attributes)

    def _resolve_attribute(self, name: str, property_node: Any) -> str | None:
        """Return the value of a queue's property as SQS returns it; None if it is not set.

        Raises RefusedValue if SQS refuses the value, and UnknownValue if it is not known.
        """
        try:
            value = self.resolver.resolve(property_node)
        except UnknownValue:
            if name == REDRIVE_POLICY_ATTRIBUTE:
                # SQS refuses wrong keys, whatever their values are.
                _refuse_redrive_policy(self.resolver.resolve(property_node, UNKNOWN_TEXT))
            raise
        return None if value is None else _format_like_sqs(name, value)

    def _resolve_dlq_arn(self, queue_arn: str, error: UnknownValue) -> str:
        """Return the DLQ's ARN in a redrive policy of which only `maxReceiveCount` is not known.

        Also return it if SQS refuses the policy, and the policy tells which DLQ is meant. Empty if
        the ARN is not known either.
        """
        redrive_policy_node = self._get_queue_resource(queue_arn).properties[
            REDRIVE_POLICY_ATTRIBUTE
        ]
        if isinstance(error, RefusedValue):
            readable_policy = self.resolver.resolve(redrive_policy_node, UNKNOWN_TEXT)
            named_dlq = find_redrive_key(readable_policy, DLQ_ARN_KEY)
            named_arn = arn_of_url(named_dlq, self.resolver.deploy_target.region)
            return named_arn or queue_arn_or_none(named_dlq) or ""
        redrive_policy = get_mapping(redrive_policy_node) or {}
        if not isinstance(redrive_policy.get(RECEIVE_COUNT_KEY), dict):
            return ""
        return self.resolver.resolve_text_or_empty(redrive_policy.get(DLQ_ARN_KEY))

    def _find_dlq_arn(self, queue_arn: str) -> str | None:
        """Return the ARN of a queue's DLQ. None if there is no DLQ or its ARN is not known."""
        try:
            return queue_arn_or_none(
                QueueFacts(queue_arn, self._attributes_by_arn[queue_arn]).dlq_arn
            )
        except UnknownValue:
            return None

    def _list_consumers(
        self, queue_arn: str, dlq_sources: Sequence[QueueFacts]
    ) -> tuple[DeclaredConsumer, ...]:
        """Return the functions that read a queue.

        If nothing else reads the queue and it is no DLQ, these are the functions of its disabled
        mappings: its settings must be right once one of them is enabled, and Lambda also refuses a
        disabled mapping whose function may run longer than the visibility timeout.
        """
        enabled_consumers = self._consumers_by_arn[queue_arn]
        if enabled_consumers or self._pipes_by_arn[queue_arn] or dlq_sources:
            return tuple(enabled_consumers)
        return tuple(self._disabled_consumers_by_arn[queue_arn])

    def _make_queue(self, queue_arn: str, dlq_sources: Sequence[QueueFacts]) -> DeclaredQueue:
        resource = self._get_queue_resource(queue_arn)
        dlq_arn = self._find_dlq_arn(queue_arn)
        dlq = None
        if dlq_arn and dlq_arn in self.resolver.queue_id_by_arn:
            dlq = QueueFacts(dlq_arn, self._attributes_by_arn[dlq_arn])
        policy, _ = self._policy_by_arn.get(queue_arn, (None, None))
        key_id, key_of_queue = self._find_key(queue_arn)
        return DeclaredQueue(
            queue_arn=queue_arn,
            attributes=self._attributes_by_arn[queue_arn],
            tags=self._resolve_tags(resource),
            lambda_consumers=self._list_consumers(queue_arn, dlq_sources),
            dlq=dlq,
            dlq_sources=tuple(dlq_sources),
            resource=resource,
            policy=policy,
            disabled_mappings=tuple(self._disabled_mappings_by_arn[queue_arn]),
            pipes=tuple(pipe.logical_id for pipe in self._pipes_by_arn[queue_arn]),
            filters_by_pipe={
                pipe.logical_id: self._list_filters(pipe.properties.get("SourceParameters"))
                for pipe in self._pipes_by_arn[queue_arn]
            },
            producers=self._list_producers(queue_arn),
            key_of_queue=key_of_queue,
            key_id=key_id,
            refusals=tuple(self._refusals_by_arn[queue_arn]),
            pipe_runs=tuple(self._list_pipe_runs(queue_arn)),
            rival_policies=self._list_rival_policies(queue_arn),
        )

    def _list_rival_policies(
        self, queue_arn: str
    ) -> tuple[tuple[TemplateResource, str | UnknownValue], ...]:
        """Return the policies that the template sets on a queue, if it sets several; else empty."""
        policies = self._rival_policies_by_arn[queue_arn]
        return tuple(policies) if len(policies) > 1 else ()

    def _list_pipe_runs(self, queue_arn: str) -> Iterator[PipeRun]:
        """Yield the runs of each pipe of the queue whose times are known.

        A pipe waits for its enrichment, and for its target unless it only sends an event to it.
        """
        for pipe in self._pipes_by_arn[queue_arn]:
            try:
                pipe_run = self._read_pipe_run(pipe)
            except UnknownValue:
                continue
            if pipe_run.timeout_seconds:
                yield pipe_run

    def _read_pipe_run(self, pipe: TemplateResource) -> PipeRun:
        """Return the run of a pipe. Raises UnknownValue if one of its times is not known."""
        target_parameters = self.resolver.resolve(pipe.properties.get("TargetParameters"))
        target_settings = get_mapping(target_parameters, "LambdaFunctionParameters") or {}
        is_waiting = target_settings.get("InvocationType") != "FIRE_AND_FORGET"
        timeout_seconds = 0
        for property_name in ("Enrichment", "Target") if is_waiting else ("Enrichment",):
            function_arn = self.resolver.resolve_text_or_empty(pipe.properties.get(property_name))
            function_id = self.resolver.find_function_id(function_arn)
            if function_id is not None:
                function = self.template.resources[function_id]
                timeout_seconds += self._resolve_seconds(function, "Timeout", 3)
        source_parameters = self.resolver.resolve(pipe.properties.get("SourceParameters"))
        source_settings = get_mapping(source_parameters, "SqsQueueParameters") or {}
        window_seconds = self._resolve_number(source_settings.get("MaximumBatchingWindowInSeconds"))
        return PipeRun(pipe.logical_id, timeout_seconds, window_seconds or 0)

    def _find_key(self, queue_arn: str) -> tuple[str, KeyOfQueue | None]:
        """Return the logical ID of the queue's KMS key, and the key.

        They are empty and None if the queue has no key, or if the template does not declare it.
        """
        key_name = dict.get(self._attributes_by_arn[queue_arn], "KmsMasterKeyId")
        if not isinstance(key_name, str):
            return "", None
        return self._producers.find_key(key_name) or ("", None)

    def _list_producers(self, queue_arn: str) -> tuple[DeclaredProducer, ...]:
        """Return the producers of a queue, principals of other accounts among them.

        Empty if something that lint cannot read may give the queue a policy.
        """
        producers = list(self._producers.by_queue_arn.get(queue_arn, ()))
        policy, policy_text = self._policy_by_arn.get(queue_arn, (None, ""))
        if policy is None and producers and self._may_get_policy_elsewhere(queue_arn):
            return ()
        if policy is not None and isinstance(policy_text, str):
            self.template.budget.use_steps(len(policy_text) * (1 + len(producers)))
            statements = parse_statements(policy_text) or ()
            producers += self._producers.list_other_accounts(statements, policy.logical_id)
        return tuple(producers)

    def _may_get_policy_elsewhere(self, queue_arn: str) -> bool:
        """Return True if a macro, a nested stack or a custom resource may set the queue's policy.

        A macro may add any resource. A stack or custom resource must get the queue as a value.
        """
        logical_id = self.resolver.queue_id_by_arn[queue_arn]
        for template in (self.template, *self.template.list_nested_templates()):
            transforms = {*map(str, to_list(template.root.get("Transform")))}
            if transforms - _TRANSFORMS_WITHOUT_POLICIES:
                return True
        return self.template.may_be_set_elsewhere(logical_id)

    def _get_queue_resource(self, queue_arn: str) -> TemplateResource:
        return self.template.resources[self.resolver.queue_id_by_arn[queue_arn]]

    def _resolve_tags(self, queue_resource: TemplateResource) -> dict[str, str]:
        """Return the tags of a queue. A key or value that is not known is an empty text.

        The team's tag is left out, because only the deployed settings know which teams there are.
        """
        tags = dict[str, str]()
        for tag in to_list(queue_resource.properties.get("Tags")):
            if isinstance(tag, dict):
                key = self.resolver.resolve_text_or_empty(tag.get("Key"))
                tags[key] = self.resolver.resolve_text_or_empty(tag.get("Value"))
        tags.pop(TEAM_TAG, None)
        return tags

    def find_place(self, queue: DeclaredQueue, attribute_names: Sequence[str]) -> TemplatePlace:
        """Return the place of the first of `attribute_names` that the template sets.

        If the template sets none of them, return the place of the queue's resource.
        """
        for attribute in attribute_names:
            if attribute == POLICY_ATTRIBUTE and queue.policy is not None:
                return self.find_resource_place(queue.policy, "Properties", "PolicyDocument")
            if attribute in queue.resource.properties:
                return self.find_resource_place(queue.resource, "Properties", attribute)
        return self.find_resource_place(queue.resource)

    def find_resource_place(self, resource: TemplateResource, *keys: str | int) -> TemplatePlace:
        """Return the place in the template at the path `keys` inside a resource."""
        return self.template.find_place("Resources", resource.logical_id, *keys)


def _is_grant_to_named_principals(statement: Mapping[str, Any]) -> bool:
    """Return True if a policy statement is a grant to named principals that checks can read.

    The exact account or role, the condition and the resource may be unknown: the check of producers
    knows stand-ins, and no other check reads them. Everything else must be known.
    """
    principal = statement.get("Principal")
    if statement.get("Effect") != "Allow" or not isinstance(principal, dict):
        return False
    checked_statement_part = {
        name: value for name, value in statement.items() if name not in _UNCHECKED_KEYS_OF_GRANT
    }
    is_checked_part_known = UNKNOWN_TEXT not in json.dumps(
        [checked_statement_part, principal.get("Service")]
    )
    is_for_everybody = any(
        ALL_PRINCIPALS in to_list(principal_ids) for principal_ids in principal.values()
    )
    return is_checked_part_known and principal.keys() <= {"AWS", "Service"} and not is_for_everybody


def _disable(consumer: DeclaredConsumer) -> DeclaredConsumer:
    """Return the function of a disabled mapping, without what matters only while it runs."""
    return replace(
        consumer,
        filters=(),
        reserved_concurrency=None,
        maximum_concurrency=None,
        is_enabled=False,
    )


def _format_like_sqs(attribute_name: str, value: Any) -> str:
    """Return the value of a property as SQS returns it.

    Raises RefusedValue if SQS refuses the value, and UnknownValue if it may do so.
    """
    value_text = value if isinstance(value, str) else json.dumps(value)
    refusal = find_value_refusal(attribute_name, value_text)
    if refusal is not None:
        raise RefusedValue(refusal)
    if attribute_name in DEFAULT_NUMBER_BY_ATTRIBUTE and not WHOLE_NUMBER_PATTERN.fullmatch(
        value_text
    ):
        raise UnknownValue("it is not a whole number")
    if attribute_name in BOOLEAN_ATTRIBUTES:
        value_text = value_text.lower()
        if value_text not in ("true", "false"):
            raise UnknownValue("it is neither true nor false")
    if attribute_name == REDRIVE_ALLOW_POLICY_ATTRIBUTE:
        allow_refusal = find_redrive_allow_refusal(value)
        if allow_refusal is not None:
            raise RefusedValue(allow_refusal)
    if attribute_name == REDRIVE_POLICY_ATTRIBUTE and value_text not in ("", "{}"):
        _refuse_redrive_policy(value)
        if parse_redrive_policy(value_text) is None:
            raise UnknownValue("SQS would refuse this redrive policy")
    return value_text


def _refuse_redrive_policy(redrive_policy: Any) -> None:
    """Raise RefusedValue if SQS refuses a redrive policy."""
    refusal = find_redrive_refusal(redrive_policy)
    if refusal is not None:
        raise RefusedValue(refusal)
