"""Resolve the values in a template that the template alone determines.

If a resource gets its name or ARN only at deployment, it has a made-up name or ARN here, which no
real resource has.

cfn-lint's own resolvers are not used, because they yield every possible value and their work has no
limit. A check needs the one value that applies. Here, each character of a resolved value counts
against the template's work budget.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mendq.lint.template import (
    BYTES_PER_WORK_STEP,
    UNKNOWN_VALUE_FUNCTION,
    Template,
    TemplateResource,
    get_mapping,
    to_list,
)
from mendq.model.admission import (
    QUEUE_NAME_PREFIX,
    RESOURCE_NAME_PREFIX,
    UNKNOWN_ACCOUNT,
    UNKNOWN_REGION,
    UNKNOWN_TEXT,
)
from mendq.model.partitions import dns_suffix_of, partition_of
from mendq.model.queue import FIFO_SUFFIX, arn_of_name, make_public_queue_url

QUEUE_TYPE = "AWS::SQS::Queue"
FUNCTION_TYPE = "AWS::Lambda::Function"
TOPIC_TYPE = "AWS::SNS::Topic"
BUCKET_TYPE = "AWS::S3::Bucket"
ROLE_TYPE = "AWS::IAM::Role"
RULE_TYPE = "AWS::Events::Rule"
KEY_TYPE = "AWS::KMS::Key"
KEY_ALIAS_TYPE = "AWS::KMS::Alias"
# Properties with the names of resources that policies name.
_NAME_PROPERTY_BY_TYPE = {
    TOPIC_TYPE: "TopicName",
    BUCKET_TYPE: "BucketName",
    ROLE_TYPE: "RoleName",
    "AWS::Events::EventBus": "Name",
    RULE_TYPE: "Name",
    KEY_ALIAS_TYPE: "AliasName",
}
# A reason is repeated for everything that depends on the unknown value, so it must stay short.
_MOST_REASON_CHARACTERS = 600
# A name contains no brace. Without that rule a search would start again at every brace.
_SUB_VARIABLE_REGEX = re.compile(r"\$\{(?:([^{}]{1,512})\})?")
_FUNCTION_NAME_REGEX = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARN_REGEX = re.compile(
    r"arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:[A-Za-z0-9_:/-]*[A-Za-z0-9_/-](?:\.fifo)?"
)
_QUEUE_ARN_REGEX = re.compile(
    r'"arn:[a-z-]{3,16}:sqs:([a-z0-9-]{1,32}):([0-9]{12}):([A-Za-z0-9_-]{1,80}(?:\.fifo)?)"'
)
# Made-up name of a resource that is no queue.
_STAND_IN_NAME_REGEX = re.compile(rf"\b{RESOURCE_NAME_PREFIX}[0-9]{{1,4}}\b")
# Names that a condition may depend on, and pseudo parameters, in the JSON text of a node.
_NAME_REGEX = re.compile(r'["{]([A-Za-z0-9.]{1,512})["}]')
_PSEUDO_PARAMETER_REGEX = re.compile(r"AWS::[A-Za-z]{1,32}")
_STACK_NAME = "stack-name"
# Conditions, and references of nested stacks, that may refer to each other in a chain.
_MOST_OPEN_REFERENCES = 60
_WORK_STEPS_PER_CONDITION = 20
_VALUES_OF_UNKNOWN_TARGET = frozenset({"", UNKNOWN_ACCOUNT, UNKNOWN_REGION, _STACK_NAME})
_UNKNOWN_REASON_BY_FUNCTION = {
    "Fn::ImportValue": "imported from another stack",
    "Fn::If": "a condition decides it",
    "Fn::Transform": "a macro writes it",
}


class UnknownValue(Exception):
    """The template alone does not determine a value."""

    def __init__(self, reason: str, attribute: str = "") -> None:
        most_characters = _MOST_REASON_CHARACTERS
        # Why the value is not known.
        self.because = (
            reason if len(reason) <= most_characters else f"{reason[: most_characters - 3]}..."
        )
        # The queue attribute that was read. Empty if the value is no attribute of a queue.
        self.attribute = attribute
        super().__init__(self.because)


def is_intrinsic_function(node: dict[str, Any]) -> bool:
    """Return True if a mapping is an intrinsic function: `Ref` or one of `Fn::`."""
    function_name = next(iter(node), "")
    return len(node) == 1 and (function_name == "Ref" or function_name.startswith("Fn::"))


@dataclass
class ValueResolver:
    """Resolver of the intrinsic functions in a template.

    Each method that resolves a value raises NotATemplate if it takes more steps than the template's
    work budget has left.
    """

    template: Template
    # Values of references by name, such as `Orders`, `Orders.Arn` and `AWS::Region`.
    value_by_reference: dict[str, str]
    # Parameters whose default was used, with the default.
    default_by_parameter: dict[str, str] = field(default_factory=dict)
    # References of nested stacks, and conditions, that are being resolved.
    _open_references: list[str] = field(default_factory=list, init=False)
    # The condition that holds by assumption (see `assume_made`), and the parameters that may have
    # other values than their defaults then.
    _assumed_condition: str = field(default="", init=False)
    _undecided_names: frozenset[str] = field(default=frozenset(), init=False)

    def resolve(self, node: Any, placeholder: str | None = None) -> Any:
        """Return the value of a node with all intrinsic functions replaced by their values.

        The value is a text, a list or a mapping; None means that nothing is set. Raises
        UnknownValue if the template does not determine the value. If `placeholder` is given, it
        replaces each intrinsic function of unknown value, and UnknownValue is not raised.
        """
        self.template.budget.use_steps(1 + len(node or ""))
        if isinstance(node, list):
            resolved_items = [self.resolve(item, placeholder) for item in node]
            return [item for item in resolved_items if item is not None]
        if not isinstance(node, dict):
            return node
        if is_intrinsic_function(node):
            has_branch, branch = self._find_branch(node)
            if has_branch:
                return self.resolve(branch, placeholder)
            return self._resolve_function_or_placeholder(node, placeholder)
        self.template.budget.use_steps(sum(map(len, node)))
        resolved_by_key = {key: self.resolve(value, placeholder) for key, value in node.items()}
        return {key: value for key, value in resolved_by_key.items() if value is not None}

    def _find_branch(self, function_node: dict[str, Any]) -> tuple[bool, Any]:
        """Return True and the branch that counts, if the node is an `Fn::If` of known condition."""
        branches = function_node.get("Fn::If")
        if not isinstance(branches, list) or len(branches) != 3:
            return False, None
        holds = self.find_condition(branches[0])
        if holds is None:
            return False, None
        return True, branches[1] if holds else branches[2]

    def _resolve_function_or_placeholder(
        self, node: dict[str, Any], placeholder: str | None
    ) -> Any:
        """Return the value of a node that is an intrinsic function.

        If the value is not known, return `placeholder`. Raises UnknownValue if `placeholder` is
        None.
        """
        ((function_name, function_argument),) = node.items()
        try:
            return self._resolve_function(function_name, function_argument)
        except UnknownValue:
            if placeholder is None:
                raise
            return placeholder

    def find_condition(self, name: Any) -> bool | None:
        """Return True if a condition of the template holds. None if the template does not tell.

        Parameters have their defaults.
        """
        try:
            return self._evaluate_named_condition(name)
        except UnknownValue:
            return None

    def _evaluate_named_condition(self, name: Any) -> bool:
        """Return True if a condition holds. Raises UnknownValue if the template does not tell."""
        conditions = self.template.get_section("Conditions")
        if not isinstance(name, str) or name not in conditions:
            raise UnknownValue(f"there is no condition {name}")
        if name == self._assumed_condition:
            return True
        with self._open_reference(name):
            return self._evaluate_condition(conditions[name])

    def _evaluate_condition(self, node: Any) -> bool:
        """Return True if a condition holds. Raises UnknownValue if the template does not tell.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-conditions.html
        """
        self.template.budget.use_steps(_WORK_STEPS_PER_CONDITION)
        match node:
            case {"Condition": name}:
                return self._evaluate_named_condition(name)
            case {"Fn::Equals": [first, second]}:
                return self._resolve_operand(first) == self._resolve_operand(second)
            case {"Fn::Not": [operand]}:
                return not self._evaluate_condition(operand)
            case {"Fn::And": [*operands]}:
                return not self._has_operand(operands, wanted=False)
            case {"Fn::Or": [*operands]}:
                return self._has_operand(operands, wanted=True)
        raise UnknownValue("CloudFormation would refuse this condition")

    def _has_operand(self, operands: list[Any], *, wanted: bool) -> bool:
        """Return True if a condition among `operands` has the wanted value.

        Raises UnknownValue if none is known to have it, and one is not known.
        """
        unknown_value = None
        for operand in operands:
            try:
                if self._evaluate_condition(operand) is wanted:
                    return True
            except UnknownValue as error:
                unknown_value = error
        if unknown_value is not None:
            raise unknown_value
        return False

    def _resolve_operand(self, node: Any) -> str | None:
        """Return an operand of `Fn::Equals`.

        Raises UnknownValue if it depends on where the template is deployed, and that is not known.
        """
        node_text = json.dumps(node)
        self.template.budget.use_steps(len(node_text) // BYTES_PER_WORK_STEP)
        for name in _PSEUDO_PARAMETER_REGEX.findall(node_text):
            value = self.value_by_reference.get(name, "")
            if value in _VALUES_OF_UNKNOWN_TARGET:
                raise UnknownValue(f"{name}: known when it is deployed")
        return self.resolve_text(node)

    @contextmanager
    def assume_made(self, resource: TemplateResource) -> Iterator[None]:
        """Resolve values as they are if a resource is made.

        If its condition is not known to hold at the defaults of the parameters, it is assumed to.
        Then these parameters have other values, so nothing is known that depends on them.
        """
        condition_name = resource.definition.get("Condition")
        if not isinstance(condition_name, str) or self.find_condition(condition_name):
            yield
            return
        self._assumed_condition = condition_name
        self._undecided_names = self._list_names(condition_name)
        try:
            yield
        finally:
            self._assumed_condition = ""
            self._undecided_names = frozenset()

    def _list_names(self, condition_name: str) -> frozenset[str]:
        """Return the names that a condition depends on: conditions, parameters and references."""
        names = {condition_name}
        unread_names = [condition_name]
        while unread_names:
            name = unread_names.pop()
            condition = self.template.get_section("Conditions").get(name)
            nodes_text = json.dumps([condition, self.template.nested.node_by_reference.get(name)])
            self.template.budget.use_steps(1 + len(nodes_text) // BYTES_PER_WORK_STEP)
            new_names = {*_NAME_REGEX.findall(nodes_text)} - names
            names |= new_names
            unread_names += new_names
        return frozenset(names)

    def resolve_text(self, node: Any) -> str | None:
        """Resolve a node to a text. Return None if nothing is set.

        Raises UnknownValue if the value is not known or is not a text.
        """
        value = self.resolve(node)
        if value is not None and not isinstance(value, str):
            raise UnknownValue("it is not a text")
        return value

    def resolve_text_or_empty(self, node: Any) -> str:
        """Resolve a node to a text. Return an empty text if it is not set, not known or no text."""
        try:
            return self.resolve_text(node) or ""
        except UnknownValue:
            return ""

    def _resolve_function(self, function_name: str, function_argument: Any) -> Any:
        """Return the value of an intrinsic function. Raises UnknownValue if it is not known."""
        match function_name, function_argument:
            case "Ref", str():
                return self._resolve_reference(function_argument)
            case "Fn::GetAtt", [str(), str()]:
                return self._resolve_reference(".".join(function_argument))
            case "Fn::GetAtt", str() if "." in function_argument:
                return self._resolve_reference(function_argument)
            case "Ref", dict():
                # The transform AWS::LanguageExtensions lets functions make the names.
                return self._resolve_reference(self.resolve_text(function_argument) or "")
            case "Fn::GetAtt", [_, _]:
                names = [self.resolve_text(name) or "" for name in function_argument]
                return self._resolve_reference(".".join(names))
            case "Fn::Sub", str():
                return self._resolve_sub(function_argument, {})
            case "Fn::Sub", [str() as text, dict() as variables]:
                return self._resolve_sub(text, variables)
            case "Fn::Join", [str() as delimiter, parts]:
                return self._resolve_join(delimiter, self.resolve(parts))
            case "Fn::FindInMap", [_, _, _]:
                return self._resolve_find_in_map(function_argument)
            case "Fn::FindInMap", [_, _, _, {"DefaultValue": default_value}]:
                return self._resolve_find_in_map(function_argument[:3], default_value)
            case "Fn::Length", items:
                return self._resolve_length(items)
            case "Fn::ToJsonString", value:
                return self._resolve_json_text(value)
        if function_name == UNKNOWN_VALUE_FUNCTION and isinstance(function_argument, str):
            raise UnknownValue(function_argument)
        reason = _UNKNOWN_REASON_BY_FUNCTION.get(function_name, "known when it is deployed")
        raise UnknownValue(f"{function_name}: {reason}")

    def _resolve_reference(self, reference_name: str) -> Any:
        """Return the value to which a name refers in `Ref`, `Fn::GetAtt` or `Fn::Sub`.

        The name is that of a resource, a resource's attribute (`Orders.Arn`), a parameter or a
        pseudo parameter. Raises UnknownValue if the value is not known.
        """
        value: Any = self.value_by_reference.get(reference_name)
        if reference_name == "AWS::NoValue":
            return None
        if reference_name in self.template.nested.node_by_reference:
            return self._resolve_nested_reference(reference_name)
        if value is None and reference_name in self.template.get_section("Parameters"):
            value = self._use_parameter_default(reference_name)
        if value is None:
            raise UnknownValue(f"{reference_name}: known when it is deployed")
        self.template.budget.use_steps(1 + sum(map(len, to_list(value))))
        return value

    def _resolve_nested_reference(self, reference_name: str) -> Any:
        """Return the value of a nested stack's output or parameter.

        Raises UnknownValue if the value depends on itself. CloudFormation refuses that.
        """
        with self._open_reference(reference_name):
            return self.resolve(self.template.nested.node_by_reference[reference_name])

    @contextmanager
    def _open_reference(self, name: str) -> Iterator[None]:
        """Note that a name is being resolved.

        Raises UnknownValue if it refers to itself, or if too many names refer to each other.
        """
        if name in self._open_references:
            raise UnknownValue(f"{name} refers to itself")
        if len(self._open_references) >= _MOST_OPEN_REFERENCES:
            raise UnknownValue(f"{name}: too many names refer to each other")
        self._open_references.append(name)
        try:
            yield
        finally:
            self._open_references.pop()

    def _use_parameter_default(self, parameter_name: str) -> Any:
        """Return the default of a parameter, and record in `default_by_parameter` that it was used.

        The default is a text or a list of texts. Raises UnknownValue if there is no default, or if
        the parameter is a secret or is read from the SSM Parameter Store.
        """
        parameter = get_mapping(self.template.get_section("Parameters"), parameter_name) or {}
        parameter_type = str(parameter.get("Type") or "String")
        default_value = parameter.get("Default")
        if not isinstance(default_value, str):
            raise UnknownValue(f"the parameter {parameter_name} has no default")
        if parameter_name in self._undecided_names:
            raise UnknownValue(f"the parameter {parameter_name}: a condition needs another value")
        if parameter_type.startswith("AWS::SSM::Parameter::") or parameter.get("NoEcho") == "true":
            raise UnknownValue(f"the parameter {parameter_name}: its value is not in the template")
        self.default_by_parameter[parameter_name] = default_value
        is_list = parameter_type.startswith("List<") or parameter_type == "CommaDelimitedList"
        return [item.strip() for item in default_value.split(",")] if is_list else default_value

    def _resolve_sub(self, sub_text: str, declared_variables: Mapping[str, Any]) -> str:
        """Return the text of `Fn::Sub` with all variables replaced.

        Raises UnknownValue if a variable is not known or is not a text. A variable is resolved
        once, but each of its uses counts against the work budget.
        """
        value_by_variable_name = dict[str, Any]()

        def replace_variable(variable_match: re.Match[str]) -> str:
            variable_name = variable_match.group(1) or ""
            if variable_name.startswith("!"):
                return f"${{{variable_name[1:]}}}"
            if variable_name not in value_by_variable_name:
                value_by_variable_name[variable_name] = (
                    self.resolve(declared_variables[variable_name])
                    if variable_name in declared_variables
                    else self._resolve_reference(variable_name)
                )
            if not isinstance(value_by_variable_name[variable_name], str):
                raise UnknownValue(f"{variable_name}: it is not a text")
            self.template.budget.use_steps(1 + len(value_by_variable_name[variable_name]))
            return str(value_by_variable_name[variable_name])

        self.template.budget.use_steps(1 + len(sub_text))
        return _SUB_VARIABLE_REGEX.sub(replace_variable, sub_text)

    def _resolve_join(self, delimiter: str, parts: Any) -> str:
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise UnknownValue("Fn::Join: it is not a list of texts")
        self.template.budget.use_steps(sum(len(delimiter) + len(part) for part in parts))
        return delimiter.join(parts)

    def _resolve_length(self, items_node: Any) -> str:
        """Return the number of items in a list, as a text.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-length.html
        """
        items = self.resolve(items_node)
        if not isinstance(items, list):
            raise UnknownValue("Fn::Length: it is not a list")
        return str(len(items))

    def _resolve_json_text(self, node: Any) -> str:
        """Return the JSON text of a list or a mapping.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-ToJsonString.html
        """
        json_text = json.dumps(self.resolve(node))
        self.template.budget.use_steps(len(json_text))
        return json_text

    def _resolve_find_in_map(self, function_arguments: list[Any], default_value: Any = None) -> Any:
        """Return the value of `Fn::FindInMap`: a text or a list of texts in section `Mappings`.

        `default_value` is returned if the section has no such value. Raises UnknownValue if the
        section has no such value and there is no default, or if a key is not known.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/mappings-section-structure.html
        """
        value: Any = self.template.get_section("Mappings")
        mapping_keys = [self.resolve(key) for key in function_arguments]
        for key in mapping_keys:
            value = value.get(key) if isinstance(value, dict) and isinstance(key, str) else None
        if value is None and default_value is not None:
            return self.resolve(default_value)
        mapped_values = to_list(value)
        if not mapped_values or not all(isinstance(item, str) for item in mapped_values):
            raise UnknownValue("Fn::FindInMap: it is neither a text nor a list of texts")
        return self.resolve(value)


@dataclass(frozen=True)
class DeployTarget:
    """Account and region of a template's deployment. Placeholders stand for unknown ones."""

    account: str = UNKNOWN_ACCOUNT
    region: str = UNKNOWN_REGION

    @property
    def pseudo_parameters(self) -> dict[str, str]:
        """Values of the pseudo parameters, by name such as `AWS::Region`."""
        return {
            "AWS::AccountId": self.account,
            "AWS::Partition": partition_of(self.region),
            "AWS::Region": self.region,
            "AWS::StackName": _STACK_NAME,
            "AWS::URLSuffix": dns_suffix_of(self.region),
        }

    def make_arn(self, service: str, resource_name: str) -> str:
        partition = partition_of(self.region)
        return f"arn:{partition}:{service}:{self.region}:{self.account}:{resource_name}"


def infer_deploy_target(template: Template, deploy_target: DeployTarget) -> DeployTarget:
    """Return the account and region of the deployment, also if only ARNs in the template tell.

    Many people write the ARN of their own queue out, with its account, instead of a reference. If
    such an ARN has the name of a queue that the template declares, the queue is that one. Nothing
    is inferred if the account is known, or if such ARNs name several accounts or regions.
    """
    if deploy_target.account != UNKNOWN_ACCOUNT:
        return deploy_target
    declared_names = {
        resource.properties.get("QueueName")
        for resource in template.list_resources(QUEUE_TYPE)
        if isinstance(resource.properties.get("QueueName"), str)
    }
    targets = {
        DeployTarget(account, region)
        for region, account, queue_name in _list_queue_arn_parts(template)
        if queue_name in declared_names
    }
    if len(targets) != 1:
        return deploy_target
    (target,) = targets
    return target if deploy_target.region in (UNKNOWN_REGION, target.region) else deploy_target


def _list_queue_arn_parts(template: Template) -> list[tuple[str, str, str]]:
    """Return region, account and name of each queue ARN that the template writes out."""
    resources_text = json.dumps(template.get_section("Resources"))
    template.budget.use_steps(len(resources_text) // BYTES_PER_WORK_STEP)
    return _QUEUE_ARN_REGEX.findall(resources_text)


class ResourceResolver(ValueResolver):
    """Value resolver that also resolves references to the template's own resources."""

    def __init__(self, template: Template, deploy_target: DeployTarget) -> None:
        super().__init__(template, deploy_target.pseudo_parameters)
        self.deploy_target = deploy_target
        # Logical IDs of the queues by ARN.
        self.queue_id_by_arn: dict[str, str] = {}
        # Queues without an ARN, by logical ID: the template does not determine if they are FIFO.
        self.unknown_type_by_queue_id: dict[str, UnknownValue] = {}
        # Logical IDs of the functions by name.
        self._function_id_by_name: dict[str, str] = {}
        numbered_resources = list(enumerate(template.resources.values()))
        # The ARN of a rule has the name of its event bus.
        numbered_resources.sort(key=lambda item: item[1].type == RULE_TYPE)
        for resource_number, resource in numbered_resources:
            if resource.type == QUEUE_TYPE:
                self._record_queue_names(resource)
            elif resource.type.startswith("AWS::"):
                self._record_other_names(resource, f"{RESOURCE_NAME_PREFIX}{resource_number}")
        for resource in template.list_resources("AWS::Lambda::Version", "AWS::Lambda::Alias"):
            self._record_version_or_alias(resource)

    def _record_version_or_alias(self, resource: TemplateResource) -> None:
        """Record the ARN of a Lambda version or alias as an ARN of its function.

        Then the checks treat the version or alias as the function itself. Nothing is recorded if
        the template does not declare the function.
        """
        function_id = self.find_function_id(
            self.resolve_text_or_empty(resource.properties.get("FunctionName"))
        )
        if not function_id:
            return
        version_or_alias_arn = (
            f"{self.value_by_reference[f'{function_id}.Arn']}:{len(self.value_by_reference)}"
        )
        logical_id = resource.logical_id
        self.value_by_reference[logical_id] = version_or_alias_arn
        self.value_by_reference[f"{logical_id}.AliasArn"] = version_or_alias_arn
        self.value_by_reference[f"{logical_id}.FunctionArn"] = version_or_alias_arn

    def _record_queue_names(self, resource: TemplateResource) -> None:
        """Record the name, URL and ARN of a queue.

        The name is made up if the template does not determine a valid one, or if another queue has
        it. If it is not known whether the queue is a FIFO queue, only the reason is recorded.
        """
        logical_id = resource.logical_id
        queue_name = self.resolve_text_or_empty(resource.properties.get("QueueName"))
        try:
            fifo_value = self.resolve(resource.properties.get("FifoQueue"))
        except UnknownValue as error:
            self.unknown_type_by_queue_id[logical_id] = error
            return
        is_fifo = str(fifo_value).lower() == "true"
        fifo_suffix = FIFO_SUFFIX if is_fifo or queue_name.endswith(FIFO_SUFFIX) else ""
        queue_name = queue_name.removesuffix(FIFO_SUFFIX) + fifo_suffix
        queue_arn = arn_of_name(queue_name, self.deploy_target.region, self.deploy_target.account)
        if queue_arn is None or queue_arn in self.queue_id_by_arn:
            queue_name = f"{QUEUE_NAME_PREFIX}{len(self.queue_id_by_arn)}{fifo_suffix}"
            queue_arn = self.deploy_target.make_arn("sqs", queue_name)
        self.queue_id_by_arn[queue_arn] = logical_id
        self.value_by_reference[logical_id] = make_public_queue_url(queue_arn)
        self.value_by_reference[f"{logical_id}.Arn"] = queue_arn
        self.value_by_reference[f"{logical_id}.QueueName"] = queue_name

    def _record_other_names(self, resource: TemplateResource, resource_name: str) -> None:
        """Record a name and ARN of a resource that is not a queue.

        Args:
            resource: The resource.
            resource_name: A unique, made-up name. Resources of some types have the name in the
                template instead, because policies may name them; a function only if its name is
                valid and unique.
        """
        logical_id = resource.logical_id
        if resource.type == FUNCTION_TYPE:
            function_name = self.resolve_text_or_empty(resource.properties.get("FunctionName"))
            if (
                _FUNCTION_NAME_REGEX.fullmatch(function_name)
                and function_name not in self._function_id_by_name
            ):
                resource_name = function_name
            self._function_id_by_name[resource_name] = logical_id
        elif resource.type in _NAME_PROPERTY_BY_TYPE:
            used_defaults = dict(self.default_by_parameter)
            name_node = resource.properties.get(_NAME_PROPERTY_BY_TYPE[resource.type])
            resource_name = self.resolve_text_or_empty(name_node) or resource_name
            # A name decides nothing alone: the policy that has it too records the default.
            self.default_by_parameter = used_defaults
        self.value_by_reference[logical_id] = resource_name
        self.value_by_reference[f"{logical_id}.Arn"] = self._make_arn(resource, resource_name)
        if resource.type == TOPIC_TYPE:
            topic_arn = self.value_by_reference[f"{logical_id}.Arn"]
            self.value_by_reference[logical_id] = topic_arn
            self.value_by_reference[f"{logical_id}.TopicArn"] = topic_arn
            self.value_by_reference[f"{logical_id}.TopicName"] = resource_name

    def _make_arn(self, resource: TemplateResource, resource_name: str) -> str:
        """Return the ARN of a resource that is not a queue.

        It has the form of real ARNs if policies compare it. Otherwise it is only unique.
        """
        partition = partition_of(self.deploy_target.region)
        match resource.type:
            case "AWS::Lambda::Function":
                return self.deploy_target.make_arn("lambda", f"function:{resource_name}")
            case "AWS::SNS::Topic":
                return self.deploy_target.make_arn("sns", resource_name)
            case "AWS::S3::Bucket":
                return f"arn:{partition}:s3:::{resource_name}"
            case "AWS::KMS::Key":
                return self.deploy_target.make_arn("kms", f"key/{resource_name}")
            case "AWS::IAM::Role":
                return f"arn:{partition}:iam::{self.deploy_target.account}:role/{resource_name}"
            case "AWS::Events::Rule":
                bus_prefix = self._make_bus_prefix(resource.properties.get("EventBusName"))
                return self.deploy_target.make_arn("events", f"rule/{bus_prefix}{resource_name}")
        return self.deploy_target.make_arn("other", resource_name)

    def _make_bus_prefix(self, event_bus_node: Any) -> str:
        """Return the part of a rule's ARN that names its event bus: empty for the default bus."""
        try:
            event_bus = self.resolve_text(event_bus_node)
        except UnknownValue:
            return f"{UNKNOWN_TEXT}/"
        bus_name = (event_bus or "default").rpartition("/")[2]
        return "" if bus_name == "default" else f"{bus_name}/"

    def find_function_id(self, name_or_arn: str) -> str | None:
        """Return the logical ID of the Lambda function with a name or ARN.

        None if the template does not declare the function.
        """
        _, _, name_and_version = name_or_arn.rpartition(":function:")
        return self._function_id_by_name.get(name_and_version.partition(":")[0])

    def replace_arns_by_logical_ids(self, sentence: str) -> str:
        """Replace ARNs of the template's resources in a sentence by the resources' logical IDs.

        In other ARNs, the placeholders for an unknown account and region become the pseudo
        parameters `${AWS::Region}` and `${AWS::AccountId}`.
        """

        def replace_arn(arn_match: re.Match[str]) -> str:
            return self._logical_id_by_value.get(arn_match.group(), arn_match.group())

        sentence_with_ids = _ARN_REGEX.sub(replace_arn, sentence)
        sentence_with_ids = _STAND_IN_NAME_REGEX.sub(replace_arn, sentence_with_ids)
        return sentence_with_ids.replace(
            f":{UNKNOWN_REGION}:{UNKNOWN_ACCOUNT}:", ":${AWS::Region}:${AWS::AccountId}:"
        )

    @cached_property
    def _logical_id_by_value(self) -> Mapping[str, str]:
        """The logical IDs of the resources whose values are recorded.

        Queues are listed by name, URL and ARN, other resources by name and ARN. Names and ARNs may
        be made up.
        """
        logical_id_by_value = dict[str, str]()
        for reference, value in self.value_by_reference.items():
            is_pseudo_parameter = "::" in reference
            if not is_pseudo_parameter:
                is_resource = reference in self.template.resources
                logical_id_by_value[value] = (
                    reference if is_resource else reference.rpartition(".")[0]
                )
        return logical_id_by_value
