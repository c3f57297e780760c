"""Convert a Terraform plan to a CloudFormation template with its queues and what they depend on.

After that, lint checks both kinds of templates with the same code. Three rules:

- A value that Terraform computes only when it applies the plan is not known here.
- Exception: an argument that is only a reference to a queue, a function or a key of the same plan
  is known, because the reference is followed.
- An argument that the configuration does not set has AWS's default, even if the provider computes
  it.

https://developer.hashicorp.com/terraform/internals/json-format
https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/sqs_queue
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from mendq.lint.template import (
    BYTES_PER_WORK_STEP,
    MOST_RESOURCES,
    NotATemplate,
    Template,
    TemplatePlace,
    TemplateResource,
    WorkBudget,
    convert_scalars_to_text,
    get_mapping,
    to_list,
)
from mendq.lint.terraform_parts import add_parts, get_referred_address
from mendq.lint.terraform_types import (
    ATTRIBUTE_BY_REFERENCE_PROPERTY,
    ATTRIBUTE_BY_TERRAFORM_TYPE,
    BLOCK_BY_PROPERTY,
    JSON_PROPERTIES,
    KEY_POLICY_PROPERTY,
    RESOURCE_TYPE_BY_TERRAFORM_TYPE,
    TERRAFORM_FUNCTION_TYPE,
    TERRAFORM_POLICY_TYPE,
    TERRAFORM_QUEUE_TYPE,
    TYPES_WITH_ARN_ATTRIBUTE,
    TerraformBlock,
    name_argument,
    read_whole_number,
)
from mendq.lint.values import QUEUE_TYPE, UnknownValue
from mendq.model.policy_limits import POLICY_ATTRIBUTE
from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.queue_limits import DLQ_ARN_KEY, RECEIVE_COUNT_KEY, REDRIVE_POLICY_ATTRIBUTE
from mendq.notifications.change_lines import WHOLE_NUMBER_PATTERN, name_terraform_argument

# A plan also contains the prior state and the planned values, which lint does not read.
MOST_PLAN_BYTES = 16 * 1024 * 1024
_HOW_TO_MAKE_A_PLAN = "make one: terraform plan -out plan.bin; terraform show -json plan.bin"
# Arguments of existing resources that a reference replaces, besides the ARN. A key's id is unique.
_NAME_ARGUMENTS_BY_TYPE = {TERRAFORM_QUEUE_TYPE: ("url", "id"), "aws_kms_key": ("key_id",)}
# Variables and outputs that are followed from one reference.
_MAXIMUM_FOLLOWED_REFERENCES = 20
_INDEX_PATTERN = r'\[(?:[0-9]{1,9}|"[^"\\]{0,256}")\]'
_INDEX_REGEX = re.compile(_INDEX_PATTERN)
_LAST_INDEX_REGEX = re.compile(rf"{_INDEX_PATTERN}\Z")
_LAST_MODULE_REGEX = re.compile(rf"(?:^|\.)module\.[\w-]{{1,128}}(?:{_INDEX_PATTERN})?\Z")
# A resource block without an attribute and without an index.
_BLOCK_REFERENCE_REGEX = re.compile(r"[\w-]{1,128}\.[\w-]{1,128}")
# References to the index of the resource that contains the expression.
_INDEX_REFERENCES = ("each.key", "count.index")
_MODULE_PATH_REGEX = re.compile(rf"(?:module\.[\w-]{{1,128}}(?:{_INDEX_PATTERN})?\.)*")
# An index that may be written into HCL as it is. Terraform would evaluate `${` in a key.
_SAFE_INDEX_PATTERN = r'\[(?:[0-9]{1,9}|"(?:[ !#&-\[\]-~]|[$%](?!\{)){0,256}")\]'
_SAFE_ADDRESS_REGEX = re.compile(rf"[\w-]+(?:\.[\w-]+|{_SAFE_INDEX_PATTERN})*", re.ASCII)
# Names of the modules around a resource, from the root module down.
ModulePath = tuple[str, ...]


@dataclass(frozen=True)
class TerraformTemplate(Template):
    """Terraform's resources in the form of a template, from a plan or from files.

    The logical ID of a resource is the resource's address in Terraform.
    """

    # Address of the separate resource that sets an attribute, by the queue's address and attribute.
    setter_address_by_queue_and_attribute: Mapping[tuple[str, str], str] = field(
        default_factory=dict, kw_only=True
    )

    def list_module_folders(self, folder: Path) -> list[tuple[Path, str]]:
        """Return the folders whose files declare the resources, each with a module's address.

        `folder` is the folder of the template.
        """
        return [(folder, "")]

    def get_attribute_name(self, attribute: str) -> str:
        """Return Terraform's name of a queue attribute, such as `visibility_timeout_seconds`."""
        if attribute == KEY_POLICY_PROPERTY:
            return "policy"
        return name_terraform_argument(attribute) if attribute[:1].isupper() else attribute

    def find_place(self, *keys: str | int) -> TemplatePlace:
        """Return the address of a resource or of one of its arguments. The line is None.

        `keys` are `Resources`, the resource's address, `Properties` and the property. The last of
        these may be missing.
        """
        address = str(keys[1]) if len(keys) > 1 else ""
        attribute = str(keys[3]) if len(keys) > 3 else ""
        address = self.setter_address_by_queue_and_attribute.get((address, attribute), address)
        # A queue's own argument `policy` is read as a separate resource (`_add_own_arguments`).
        is_own_policy = (
            attribute == "PolicyDocument" and address.removesuffix(".policy") in self.resources
        )
        if not attribute or is_own_policy:
            return TemplatePlace(address, None)
        return TemplatePlace(f"{address}.{self.get_attribute_name(attribute)}", None)

    def make_new_id(self, logical_id: str, suffix: str) -> str:
        """Return the address of a new resource in the same module as an existing one.

        Its label has the index of the existing resource, so that instances of one block get
        resources of different names. No resource of the module has this label.
        """
        index_match = _LAST_INDEX_REGEX.search(logical_id)
        block_address = _LAST_INDEX_REGEX.sub("", logical_id)
        index_text = _make_label_part(index_match.group()) if index_match else ""
        new_address = f"{block_address}{index_text}{suffix}"
        module_address, _, new_label = new_address.rpartition(".")
        module_address, _, _ = module_address.rpartition(".")
        labels = {
            _LAST_INDEX_REGEX.sub("", address).rpartition(".")[2]
            for address in self.resources
            if address.startswith(module_address)
        }
        while new_label in labels:
            new_label += "2"
            new_address += "2"
        return new_address

    def make_bucket_arn_node(self, bucket: TemplateResource) -> Any:
        """Return a reference to the bucket's ARN: only the bucket's notification needs the policy.

        None if the files do not declare the bucket.
        """
        is_declared = ".aws_s3_bucket." in f".{bucket.logical_id}"
        return make_getatt_reference(bucket.logical_id, "Arn") if is_declared else None

    def render_declaration(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the HCL lines that set the argument, or declare the new resource, called `name`.

        If `name` is empty, return the line of a list item. Raises UnknownValue if an address cannot
        be written into HCL safely.
        """
        if not (isinstance(value, dict) and "Properties" in value):
            if not name:
                return _add_needed_data(_to_hcl_expression(value))
            if name in BLOCK_BY_PROPERTY:
                return tuple(_list_block_lines(BLOCK_BY_PROPERTY[name], value))
            return (f"{self.get_attribute_name(name)} = {to_hcl(value)}",)
        (terraform_type,) = (
            terraform_type
            for terraform_type, resource_type in RESOURCE_TYPE_BY_TERRAFORM_TYPE.items()
            if resource_type.name == value["Type"]
        )
        resource_label = _to_hcl_reference(name).rpartition(".")[2]
        argument_lines = (
            f"  {self.get_attribute_name(property_name)} = {to_hcl(property_value)}"
            for property_name, property_value in value["Properties"].items()
        )
        first_line = f'resource "{terraform_type}" "{resource_label}" {{'
        return _add_needed_data(first_line, *argument_lines, "}")


@dataclass(frozen=True)
class TerraformPlan(TerraformTemplate):
    """A Terraform plan in the form of a template."""

    # Addresses of the queues that exist already, by ARN.
    address_by_arn: Mapping[str, str] = field(default_factory=dict, kw_only=True)


def _add_needed_data(*lines: str) -> tuple[str, ...]:
    """Return the lines, with a comment about the data source that they need if they need one."""
    if any("data.aws_caller_identity.current" in line for line in lines):
        return (*lines, '# declare, if it is not there: data "aws_caller_identity" "current" {}')
    return lines


def to_hcl(value: Any) -> str:
    """Convert the value of a CloudFormation property to HCL.

    A JSON document becomes `jsonencode(...)`. A list of references becomes the first of them,
    because a policy names a list of queues in CloudFormation and only one queue in Terraform.
    Raises UnknownValue if an address cannot be written into HCL safely.
    """
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        value = value[0] if value else None
    if isinstance(value, str) and (
        WHOLE_NUMBER_PATTERN.fullmatch(value) or value in ("true", "false")
    ):
        return value
    expression = _to_hcl_expression(value)
    return f"jsonencode({expression})" if expression.startswith("{") else expression


def _list_block_lines(block: TerraformBlock, value: Any) -> Iterator[str]:
    """Yield the HCL lines of a nested block."""
    yield f"{block.keyword} {{"
    for name, part in value.items():
        yield f"  {block.name_argument(name)} = {to_hcl(part)}"
    yield "}"


def _to_hcl_expression(node: Any) -> str:
    """Convert a value to an HCL expression. `Ref` and `Fn::GetAtt` become Terraform references.

    Raises UnknownValue if Terraform has no such reference.
    """
    match node:
        case {"Ref": "AWS::AccountId"}:
            return "data.aws_caller_identity.current.account_id"
        case {"Fn::GetAtt": [str() as address, _]} if "aws_cloudwatch_event_target." in address:
            raise UnknownValue("the ARN of a rule that is declared elsewhere")
        case {"Ref": str() as address}:
            argument_name = "url" if TERRAFORM_QUEUE_TYPE in address else "arn"
            return f"{_to_hcl_reference(address)}.{argument_name}"
        case {"Fn::GetAtt": [str() as address, str() as argument_name]}:
            return f"{_to_hcl_reference(address)}.{argument_name.lower()}"
        case dict():
            key_and_value_texts = (
                f"{_to_escaped_json(key)}: {_to_hcl_expression(value)}"
                for key, value in node.items()
            )
            return f"{{{', '.join(key_and_value_texts)}}}"
        case list():
            return f"[{', '.join(map(_to_hcl_expression, node))}]"
    return _to_escaped_json(node)


def to_hcl_literal(aws_value: Any) -> str:
    """Return a value from AWS as an HCL literal.

    `${` and `%{` are escaped, so Terraform does not evaluate any part of the value.
    """
    return (
        f"jsonencode({_to_escaped_json(aws_value)})"
        if isinstance(aws_value, dict)
        else _to_escaped_json(aws_value)
    )


def _to_escaped_json(node: Any) -> str:
    """Convert a value to JSON, with `${` and `%{` escaped so that Terraform evaluates nothing."""
    return json.dumps(node).replace("${", "$${").replace("%{", "%%{")


def _to_hcl_reference(address: str) -> str:
    """Return the reference to a resource for use in the resource's own module.

    Raises UnknownValue if the address cannot be written into HCL safely.
    """
    address_in_own_module = _MODULE_PATH_REGEX.sub("", address, count=1)
    if not _SAFE_ADDRESS_REGEX.fullmatch(address_in_own_module):
        raise UnknownValue(f"how to write {address}")
    return address_in_own_module


def _make_label_part(index_text: str) -> str:
    """Return an index such as `["a/b"]` as a part of a resource's label, such as `_a_b_5d41`.

    Different keys get different parts: if characters had to be replaced, a checksum of the key is
    added. Raises UnknownValue if the key cannot be written into HCL safely.
    """
    if not re.fullmatch(_SAFE_INDEX_PATTERN, index_text, re.ASCII):
        raise UnknownValue(f"how to write {index_text}")
    key = index_text.strip('[]"')
    label = re.sub(r"[^A-Za-z0-9-]", "_", key)
    is_same = label == key
    return f"_{label}" if is_same else f"_{label}_{crc32(key.encode()) % 0x10000:04x}"


def is_terraform_plan(content: bytes) -> bool:
    """Return True if the bytes look like JSON from `terraform show -json`."""
    if content.lstrip()[:1] != b"{" or b'"format_version"' not in content:
        return False
    return b'"resource_changes"' in content or b'"root_module"' in content


def read_terraform_plan(content: bytes, budget: WorkBudget) -> TerraformPlan:
    """Decode a plan that `terraform show -json` printed, and convert it to a template.

    Raises NotATemplate if the bytes are not a plan, or if the plan is too large.
    """
    if len(content) > MOST_PLAN_BYTES:
        hint = "jq 'del(.prior_state, .planned_values)' leaves out what is not read"
        raise NotATemplate(f"a plan longer than {MOST_PLAN_BYTES:,} bytes: {hint}")
    budget.use_steps(len(content) // BYTES_PER_WORK_STEP)
    try:
        plan_document = json.loads(content, parse_int=read_whole_number)
    except (ValueError, RecursionError) as error:
        decoding_problem = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise NotATemplate(f"no JSON: {' '.join(decoding_problem.split())[:200]}") from error
    format_version = plan_document.get("format_version")
    if not (isinstance(format_version, str) and format_version.startswith("1.")):
        raise NotATemplate(f"format_version {str(format_version)[:20]!r} is not known: 1.x is")
    if not isinstance(plan_document.get("resource_changes", []), list) or "values" in plan_document:
        raise NotATemplate(
            f"no plan of Terraform's: it has no resource_changes; {_HOW_TO_MAKE_A_PLAN}"
        )
    return _PlanReader(plan_document, budget).make_plan()


@dataclass(frozen=True)
class TerraformResource:
    """One resource of a Terraform configuration."""

    address: str
    # Terraform's type.
    terraform_type: str


class TerraformConverter(ABC):
    """Converter of Terraform resources to CloudFormation's.

    A subclass reads their arguments from a plan or from files.
    """

    @abstractmethod
    def list_read_resources(self) -> Sequence[TerraformResource]:
        """Return the resources of the types that lint reads."""

    @abstractmethod
    def read_property(self, resource: TerraformResource, property_name: str) -> Any:
        """Return the value of a CloudFormation property of a resource. None if it is not set.

        A value that is not known is an intrinsic function.
        """

    @abstractmethod
    def read_block(self, resource: TerraformResource, block: TerraformBlock) -> Any:
        """Return the properties that a nested block of a resource sets.

        None if there is no such block. A value that is not known is an intrinsic function.
        """

    def may_be_missing(self, address: str, other_address: str) -> bool:
        """Return True if a resource may be missing although another one exists."""
        del address, other_address
        return False

    @abstractmethod
    def read_tags(self, resource: TerraformResource) -> Mapping[str, Any]:
        """Return the tags of a resource."""

    def make_definitions(self) -> tuple[dict[str, Any], dict[tuple[str, str], str]]:
        """Return the CloudFormation definitions of all resources, by address.

        The second result is the address of the separate resource that sets an attribute, by the
        queue's address and the attribute.
        """
        definition_by_address: dict[str, Any] = {}
        for resource in self.list_read_resources():
            if resource.terraform_type in RESOURCE_TYPE_BY_TERRAFORM_TYPE:
                definition_by_address[resource.address] = self.make_cloudformation_resource(
                    resource
                )
        setter_address_by_queue_and_attribute = self._add_separate_attributes(definition_by_address)
        self._add_own_arguments(definition_by_address)
        add_parts(definition_by_address, self.may_be_missing)
        return definition_by_address, setter_address_by_queue_and_attribute

    def make_cloudformation_resource(self, resource: TerraformResource) -> dict[str, Any]:
        """Return the CloudFormation definition of a resource: its type, properties and tags."""
        resource_type = RESOURCE_TYPE_BY_TERRAFORM_TYPE[resource.terraform_type]
        properties = dict[str, Any]()
        for part in resource_type.properties:
            if isinstance(part, TerraformBlock):
                name = part.name
                value = self.read_block(resource, part)
            else:
                name = part
                value = self.read_property(resource, name)
            if value is not None:
                properties[name] = value
        is_queue = resource.terraform_type == TERRAFORM_QUEUE_TYPE
        known_tags = [
            {"Key": key, "Value": value}
            for key, value in (self.read_tags(resource) if is_queue else {}).items()
            if isinstance(value, str)
        ]
        if known_tags:
            properties["Tags"] = known_tags
        return {"Type": resource_type.name, "Properties": properties}

    def _add_separate_attributes(
        self, definition_by_address: dict[str, Any]
    ) -> dict[tuple[str, str], str]:
        """Copy attributes that separate resources set into the definitions of their queues.

        A separate resource is, for example, `aws_sqs_queue_redrive_policy`. If two resources set
        the attribute of a queue, the attribute becomes unknown. If it is not known which queue a
        resource means, the attribute becomes unknown in every queue.

        Returns:
            The address of the separate resource, by the queue's address and the attribute.
        """
        setter_address_by_queue_and_attribute: dict[tuple[str, str], str] = {}
        for resource in self.list_read_resources():
            attribute = ATTRIBUTE_BY_TERRAFORM_TYPE.get(resource.terraform_type)
            if attribute is None:
                continue
            queue_url = self.read_property(resource, "Queues")
            value = self.read_property(resource, attribute)
            unknown_reference = make_getatt_reference(resource.address, "queue_url")
            is_queue_unknown = (
                isinstance(queue_url, dict) and get_referred_address(queue_url) is None
            )
            if is_queue_unknown:
                value = unknown_reference
            for queue_address in _list_possible_queues(queue_url, definition_by_address):
                is_set_twice = (queue_address, attribute) in setter_address_by_queue_and_attribute
                properties = definition_by_address[queue_address]["Properties"]
                properties[attribute] = unknown_reference if is_set_twice else value
                setter_address_by_queue_and_attribute[queue_address, attribute] = resource.address
        return setter_address_by_queue_and_attribute

    def _add_own_arguments(self, definition_by_address: dict[str, Any]) -> None:
        """Add to the template's definitions the policies that the queues' own arguments set.

        These are redrive policies, redrive allow policies and queue policies. An attribute that a
        separate resource sets is not added. The argument `policy` of a queue becomes a policy
        resource.
        """
        queues_with_policy = _list_queues_with_policy(definition_by_address)
        for queue in self.list_read_resources():
            if queue.terraform_type != TERRAFORM_QUEUE_TYPE:
                continue
            properties = definition_by_address[queue.address]["Properties"]
            for attribute in ATTRIBUTE_BY_TERRAFORM_TYPE.values():
                value = self.read_property(queue, attribute)
                if attribute not in properties and value is not None:
                    properties[attribute] = value
            if queue.address in queues_with_policy:
                continue
            policy_document = self.read_property(queue, POLICY_ATTRIBUTE)
            if policy_document is not None:
                definition_by_address[f"{queue.address}.policy"] = {
                    "Type": RESOURCE_TYPE_BY_TERRAFORM_TYPE[TERRAFORM_POLICY_TYPE].name,
                    "Properties": {
                        "Queues": [{"Ref": queue.address}],
                        "PolicyDocument": policy_document,
                    },
                }


class _Scope(NamedTuple):
    """The module in which an expression is evaluated."""

    module_path: ModulePath
    # Address of the module's instance, with its indices. Empty for the root module.
    module_address: str

    def leave_module(self) -> _Scope:
        """Return the scope of the module that calls this one."""
        outer_address = _LAST_MODULE_REGEX.sub("", self.module_address)
        return _Scope(self.module_path[:-1], outer_address)

    def enter_module(self, name: str, module_reference: str) -> _Scope:
        """Return the scope of a called module. `module_reference` may have an index."""
        return _Scope((*self.module_path, name), self.find_address(module_reference))

    def find_address(self, reference: str) -> str:
        """Return the address in the plan to which a reference in this scope leads."""
        return f"{self.module_address}.{reference}".lstrip(".")


@dataclass(frozen=True)
class _PlannedResource(TerraformResource):
    """A resource as Terraform will leave it when it has applied the plan."""

    # The modules around the block that declares it, and the block's type and name.
    declaring_block: tuple[ModulePath, str]
    # Address of the module instance that contains it. Empty for the root module.
    module_address: str
    # Arguments with their values.
    argument_values: Mapping[str, Any]
    # Arguments whose value is not known before the plan is applied.
    unknown_arguments: Mapping[str, Any]
    # The block's arguments as expressions. None if the plan does not contain the block.
    expressions: Mapping[str, Any] | None


class _PlanReader(TerraformConverter):
    """Converter of one Terraform plan to a template."""

    def __init__(self, document: Mapping[str, Any], budget: WorkBudget) -> None:
        self.budget = budget
        self.root_module = get_mapping(document, "configuration", "root_module") or {}
        self._blocks_by_module_path: dict[ModulePath, Mapping[str, Any]] = {}
        resource_changes = to_list(document.get("resource_changes"))
        budget.use_steps(len(resource_changes))
        self.planned_resources = [
            self._read_resource(resource_change)
            for resource_change in resource_changes
            if _is_read_by_lint(resource_change)
        ]
        if len(self.planned_resources) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} queues, functions and their like")
        self._resource_by_address = {
            resource.address: resource for resource in self.planned_resources
        }
        # Resources that the same block declares, which are several with `count` and `for_each`.
        self.instances_by_block = defaultdict[Any, list[_PlannedResource]](list)
        for resource in self.planned_resources:
            self.instances_by_block[resource.declaring_block].append(resource)
        self.queues = [
            resource
            for resource in self.planned_resources
            if resource.terraform_type == TERRAFORM_QUEUE_TYPE
        ]
        # Addresses of the queues by ARN, if they exist already.
        self.address_by_arn = dict[str, str]()
        for queue in self.queues:
            if queue_arn := queue_arn_or_none(queue.argument_values.get("arn")):
                self.address_by_arn[queue_arn] = queue.address
        # References that replace a resource's ARN or a queue's URL, wherever it is in a value.
        self.reference_by_value = self._make_references()

    def _make_references(self) -> dict[str, Any]:
        """Return a CloudFormation reference to each existing resource, by ARN, URL and key id."""
        reference_by_value: dict[str, Any] = {}
        for resource in self.planned_resources:
            arn = resource.argument_values.get("arn")
            if isinstance(arn, str) and arn.startswith("arn:"):
                is_getatt = resource.terraform_type in TYPES_WITH_ARN_ATTRIBUTE
                reference_by_value[arn] = (
                    make_getatt_reference(resource.address, "Arn")
                    if is_getatt
                    else {"Ref": resource.address}
                )
        for resource in self.planned_resources:
            for argument_name in _NAME_ARGUMENTS_BY_TYPE.get(resource.terraform_type, ()):
                name = resource.argument_values.get(argument_name)
                if isinstance(name, str) and name:
                    reference_by_value[name] = {"Ref": resource.address}
        return reference_by_value

    def make_plan(self) -> TerraformPlan:
        """Convert the whole plan to a template."""
        definition_by_address, setter_address_by_queue_and_attribute = self.make_definitions()
        deploy_target = dict[str, str]()
        if self.address_by_arn:
            arn_parts = parse_queue_arn(next(iter(self.address_by_arn)))
            deploy_target = {"account": arn_parts.account, "region": arn_parts.region}
        return TerraformPlan(
            {"Resources": definition_by_address},
            self.budget,
            deploy_target,
            address_by_arn=self.address_by_arn,
            setter_address_by_queue_and_attribute=setter_address_by_queue_and_attribute,
        )

    def list_read_resources(self) -> Sequence[_PlannedResource]:
        return self.planned_resources

    def read_tags(self, resource: TerraformResource) -> Mapping[str, Any]:
        argument_values = self._resource_by_address[resource.address].argument_values
        return (
            get_mapping(argument_values, "tags_all") or get_mapping(argument_values, "tags") or {}
        )

    def read_property(self, resource: TerraformResource, property_name: str) -> Any:
        """Return the value of a CloudFormation property. None if it is empty or nothing sets it.

        If the value is not known before the plan is applied, return a reference. It names the
        resource that the argument refers to, if that can be found, otherwise the argument itself,
        which no check can resolve. For a redrive policy, return a policy that contains the
        reference.
        """
        planned_resource = self._resource_by_address[resource.address]
        argument_name = name_argument(resource.terraform_type, property_name)
        part = _BlockPart(
            planned_resource.argument_values,
            planned_resource.unknown_arguments,
            planned_resource.expressions,
        )
        return self._read_argument(planned_resource, part, property_name, argument_name)

    def _read_argument(
        self, resource: _PlannedResource, part: _BlockPart, property_name: str, argument_name: str
    ) -> Any:
        """Return the value of an argument of a resource, or of a block inside it."""
        value = part.values.get(argument_name)
        if value is None and _is_unknown(part.unknown_values, argument_name):
            return self._make_unknown_reference(
                resource, part.expressions, property_name, argument_name
            )
        if isinstance(value, str) and property_name in JSON_PROPERTIES:
            # SQS would refuse a text that is not JSON; the check of the attribute reports it.
            with suppress(ValueError, RecursionError):
                value = json.loads(value) if value else None
        if value == "":
            return None
        return convert_scalars_to_text(value, self.budget, self.reference_by_value)

    def read_block(self, resource: TerraformResource, block: TerraformBlock) -> Any:
        planned_resource = self._resource_by_address[resource.address]
        part = _BlockPart(
            planned_resource.argument_values,
            planned_resource.unknown_arguments,
            planned_resource.expressions,
        )
        return self._read_block(planned_resource, part, block)

    def _read_block(
        self, resource: _PlannedResource, outer_part: _BlockPart, block: TerraformBlock
    ) -> Any:
        """Return the settings of a nested block, by CloudFormation's names. None without a block.

        A plan lists the blocks of one name, also those that may occur once. A setting that is not
        known before the plan is applied becomes a reference, which no check can resolve unless it
        leads to a resource of the plan. A setting that the configuration's block does not have has
        AWS's default, even if the provider computes it: an empty block leaves nothing undecided.
        """
        items = [
            self._read_settings(resource, part, block)
            for part in _list_block_parts(outer_part, block.keyword)
        ]
        if block.is_list:
            return items or None
        return items[0] or None if items else None

    def _read_settings(
        self, resource: _PlannedResource, part: _BlockPart, block: TerraformBlock
    ) -> dict[str, Any]:
        settings = dict[str, Any]()
        for name in block.parts:
            if isinstance(name, TerraformBlock):
                value = self._read_block(resource, part, name)
                name = name.name  # noqa: PLW2901 - the name of the block's property
            else:
                argument_name = block.name_argument(name)
                value = self._read_argument(resource, part, name, argument_name)
            if value is not None:
                settings[name] = value
        return settings

    def _make_unknown_reference(
        self,
        resource: _PlannedResource,
        expressions: Mapping[str, Any] | None,
        property_name: str,
        argument_name: str,
    ) -> Any:
        """Return a reference in place of an argument's unknown value. None if nothing sets it.

        It is a reference to the resource to which the argument refers, or otherwise to the argument
        itself. For a redrive policy that refers to a queue, return a policy that has the reference
        as the DLQ's ARN.
        """
        if expressions is not None and argument_name not in expressions:
            return None
        reference_to_argument = make_getatt_reference(resource.address, argument_name)
        if property_name not in ATTRIBUTE_BY_REFERENCE_PROPERTY:
            return reference_to_argument
        referred_resource = self._follow_expression(
            resource, get_mapping(expressions, argument_name), property_name
        )
        if referred_resource is None:
            return reference_to_argument
        if property_name != REDRIVE_POLICY_ATTRIBUTE:
            return referred_resource
        if "Fn::GetAtt" not in referred_resource:
            return reference_to_argument
        return {DLQ_ARN_KEY: referred_resource, RECEIVE_COUNT_KEY: reference_to_argument}

    def _read_resource(self, resource_change: Mapping[str, Any]) -> _PlannedResource:
        """Read one resource from an entry of the plan's `resource_changes`."""
        self.budget.use_steps(len(resource_change["address"]))
        module_address = resource_change.get("module_address") or ""
        module_path = ""
        if isinstance(module_address, str) and module_address:
            module_path = _INDEX_REGEX.sub("", f"{module_address}.")
        module_names = (
            tuple(module_path.split(".")[1::2])
            if _MODULE_PATH_REGEX.fullmatch(module_path)
            else ("?",)
        )
        block_name = f"{resource_change['type']}.{resource_change.get('name')}"
        change_values = resource_change["change"]
        return _PlannedResource(
            address=resource_change["address"],
            terraform_type=resource_change["type"],
            declaring_block=(module_names, block_name),
            module_address=str(module_address),
            argument_values=change_values["after"],
            unknown_arguments=get_mapping(change_values, "after_unknown") or {},
            expressions=get_mapping(
                self._get_resource_blocks(module_names).get(block_name), "expressions"
            ),
        )

    def _get_resource_blocks(self, module_path: ModulePath) -> Mapping[str, Any]:
        """Return the resource blocks in a module's configuration, by `type.name`."""
        if module_path not in self._blocks_by_module_path:
            blocks = to_list((self._find_module_configuration(module_path) or {}).get("resources"))
            self.budget.use_steps(1 + len(blocks))
            self._blocks_by_module_path[module_path] = {
                f"{block.get('type')}.{block.get('name')}": block
                for block in blocks
                if isinstance(block, dict)
            }
        return self._blocks_by_module_path[module_path]

    def _find_module_configuration(self, module_path: ModulePath) -> Mapping[str, Any] | None:
        """Return the configuration of a module. Empty if the plan does not contain the module."""
        module_configuration = self.root_module
        for module_name in module_path:
            module_configuration = (
                get_mapping(module_configuration, "module_calls", module_name, "module") or {}
            )
        return module_configuration

    def _follow_expression(
        self, resource: _PlannedResource, expression: Mapping[str, Any] | None, property_name: str
    ) -> Any:
        """Return a CloudFormation reference to the resource to which an expression refers.

        Variables and outputs of modules are followed, at most _MAXIMUM_FOLLOWED_REFERENCES of them.
        None if the expression has several references, or if none leads to a resource of the plan.
        """
        scope = _Scope(resource.declaring_block[0], resource.module_address)
        for _ in range(_MAXIMUM_FOLLOWED_REFERENCES):
            reference = self._choose_reference(expression, scope, resource)
            if reference is None:
                return None
            match _INDEX_REGEX.sub("", reference).split("."):
                case ["var", name] if scope.module_path:
                    module_call_name = scope.module_path[-1]
                    scope = scope.leave_module()
                    module_call = get_mapping(
                        self._find_module_configuration(scope.module_path),
                        "module_calls",
                        module_call_name,
                    )
                    expression = get_mapping(module_call, "expressions", name)
                case ["module", name, output_name]:
                    scope = scope.enter_module(name, reference.rpartition(".")[0])
                    module_configuration = self._find_module_configuration(scope.module_path)
                    expression = get_mapping(
                        module_configuration, "outputs", output_name, "expression"
                    )
                case [type_name, name, *attribute] if len(attribute) <= 1:
                    return self._refer_to_instance(
                        resource,
                        (scope.module_path, f"{type_name}.{name}"),
                        scope.find_address(reference.removesuffix(f".{''.join(attribute)}")),
                        attribute[0]
                        if attribute
                        else ATTRIBUTE_BY_REFERENCE_PROPERTY.get(property_name),
                    )
                case _:
                    return None
        return None

    def _choose_reference(
        self, expression: Mapping[str, Any] | None, scope: _Scope, resource: _PlannedResource
    ) -> str | None:
        """Return the only reference in an expression. None if it has none, or several.

        Terraform lists a reference with its prefixes. Of `aws_sqs_queue.q[each.key].arn` it lists
        `aws_sqs_queue.q` and `each.key`. Then the index is taken to be that of the resource which
        contains the expression, if the queue's block has such an instance.
        """
        all_references = to_list((expression or {}).get("references"))
        reference_texts = [reference for reference in all_references if isinstance(reference, str)]
        self.budget.use_steps(1 + sum(map(len, reference_texts)))
        index_references = [text for text in reference_texts if text in _INDEX_REFERENCES]
        other_references = [text for text in reference_texts if text not in _INDEX_REFERENCES]
        longest_reference = max(other_references, key=len, default="")
        if longest_reference.split(".")[:2] == ["each", "value"]:
            return self._find_each_value(longest_reference, scope, resource)
        # Any text that is not a prefix of the longest one is a second reference.
        is_one_reference = all(
            longest_reference.startswith(reference_text) for reference_text in other_references
        )
        if not longest_reference or not is_one_reference:
            return None
        if not index_references:
            return longest_reference
        return self._add_own_index(longest_reference, scope, resource)

    def _find_each_value(
        self, reference: str, scope: _Scope, resource: _PlannedResource
    ) -> str | None:
        """Return the reference that `each.value` stands for, with its attribute.

        It is known if the resource's `for_each` goes over one resource block: then it is the
        instance of the same key. Otherwise return None.
        """
        module_path, block_name = resource.declaring_block
        block = self._get_resource_blocks(module_path).get(block_name)
        for_each = get_mapping(block, "for_each_expression") or {}
        references = to_list(for_each.get("references"))
        if len(references) != 1 or not isinstance(references[0], str):
            return None
        instance = self._add_own_index(references[0], scope, resource)
        attribute = reference.removeprefix("each.value")
        return f"{instance}{attribute}" if instance else None

    def _add_own_index(
        self, block_reference: str, scope: _Scope, resource: _PlannedResource
    ) -> str | None:
        """Return the reference to the instance of a block that has the index of a resource.

        None if the block has no such instance.
        """
        is_in_own_module = scope.module_address == resource.module_address
        own_index = _LAST_INDEX_REGEX.search(resource.address)
        is_whole_block = _BLOCK_REFERENCE_REGEX.fullmatch(block_reference) is not None
        if not (is_in_own_module and own_index and is_whole_block):
            return None
        indexed_reference = f"{block_reference}{own_index.group()}"
        address = scope.find_address(indexed_reference)
        instances = self.instances_by_block.get((scope.module_path, block_reference), [])
        has_instance = any(instance.address == address for instance in instances)
        return indexed_reference if has_instance else None

    def _refer_to_instance(
        self,
        resource: _PlannedResource,
        declaring_block: tuple[ModulePath, str],
        referred_address: str,
        referred_attribute: str | None,
    ) -> Any:
        """Return a CloudFormation reference to an instance of a resource block.

        A block has several instances if it uses `count` or `for_each`, or if its module does.

        Args:
            resource: The resource that contains the reference.
            declaring_block: The module path and the name of the block.
            referred_address: The address to which the reference leads.
            referred_attribute: The attribute that is read, such as `arn`.

        Returns:
            The reference. None if the plan has no such instance or several, or if checks do not
            read resources of this type.
        """
        candidate_instances = self._list_candidates(resource, declaring_block, referred_address)
        if (
            len(candidate_instances) != 1
            or candidate_instances[0].terraform_type not in RESOURCE_TYPE_BY_TERRAFORM_TYPE
        ):
            return None
        (referred_instance,) = candidate_instances
        is_arn = (
            referred_instance.terraform_type in TYPES_WITH_ARN_ATTRIBUTE
            and referred_attribute == "arn"
        )
        if is_arn or referred_instance.terraform_type == TERRAFORM_FUNCTION_TYPE:
            return make_getatt_reference(referred_instance.address, "Arn")
        return {"Ref": referred_instance.address}

    def _list_candidates(
        self,
        resource: _PlannedResource,
        declaring_block: tuple[ModulePath, str],
        referred_address: str,
    ) -> list[_PlannedResource]:
        """Return the instances of a block that a reference to `referred_address` may mean."""
        instances = self.instances_by_block.get(declaring_block, [])
        exact_instances = [
            instance for instance in instances if instance.address == referred_address
        ]
        if not exact_instances and not _LAST_INDEX_REGEX.search(referred_address):
            # `one(aws_sqs_queue.dlq[*].arn)`: the plan lists the block without an index.
            exact_instances = [
                instance
                for instance in instances
                if _LAST_INDEX_REGEX.sub("", instance.address) == referred_address
            ]
        if exact_instances:
            return exact_instances
        # In the resource's own module the reference means exactly that address, and it is not
        # in the plan. Another instance of the block is a different resource.
        own_module_path = resource.declaring_block[0]
        return [
            instance for instance in instances if instance.declaring_block[0] != own_module_path
        ]


def _list_queues_with_policy(definition_by_address: Mapping[str, Any]) -> set[str]:
    """Return the addresses of all queues that separate policy resources name."""
    queue_addresses = set[str]()
    for resource_definition in definition_by_address.values():
        for queue_reference in to_list(resource_definition["Properties"].get("Queues")):
            queue_address = get_referred_address(queue_reference)
            if queue_address is not None:
                queue_addresses.add(queue_address)
    return queue_addresses


def _list_possible_queues(queue_url: Any, definition_by_address: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the queues to which a `queue_url` may belong.

    If the value is not known, every queue is returned. Empty if the URL belongs to a queue outside
    the plan.
    """
    queue_address = get_referred_address(queue_url)
    if queue_address is not None and queue_address in definition_by_address:
        return [queue_address]
    if not isinstance(queue_url, dict):
        return []
    return [
        queue_address
        for queue_address in definition_by_address
        if definition_by_address[queue_address]["Type"] == QUEUE_TYPE
    ]


@dataclass(frozen=True)
class _BlockPart:
    """The arguments of a resource or of a nested block, as a plan has them."""

    values: Mapping[str, Any]
    # Arguments whose value is not known before the plan is applied. True means all of them.
    unknown_values: Any
    # The arguments as expressions. None if the plan does not contain the block.
    expressions: Mapping[str, Any] | None


def _list_block_parts(outer_part: _BlockPart, keyword: str) -> list[_BlockPart]:
    """Return the nested blocks of a keyword, with the configuration's block of each."""
    blocks = to_list(outer_part.values.get(keyword))
    expressions = outer_part.expressions
    blocks_of_configuration = to_list(expressions.get(keyword)) if expressions is not None else []
    if not blocks and not blocks_of_configuration and expressions is not None:
        return []
    unknown_blocks = _list_unknown_blocks(outer_part.unknown_values, keyword)
    blocks = blocks or [{} for _ in unknown_blocks]
    unknown_blocks += [unknown_blocks[-1:] == [True]] * (len(blocks) - len(unknown_blocks))
    if len(blocks_of_configuration) != len(blocks):
        # The configuration has a `dynamic` block, or the plan does not contain the block.
        blocks_of_configuration = [None for _ in blocks]
    parts = zip(blocks, unknown_blocks, blocks_of_configuration, strict=False)
    return [
        _BlockPart(get_mapping(block) or {}, unknown_block, get_mapping(block_of_configuration))
        for block, unknown_block, block_of_configuration in parts
    ]


def _list_unknown_blocks(unknown_values: Any, keyword: str) -> list[Any]:
    """Return what a plan marks as known after the apply, for each block. True means all of it."""
    if _is_unknown(unknown_values, keyword):
        return [True]
    return [*to_list(unknown_values.get(keyword))] if isinstance(unknown_values, Mapping) else []


def _is_unknown(unknown_values: Any, argument_name: str) -> bool:
    """Return True if a plan marks an argument as known after the apply."""
    if unknown_values is True:
        return True
    return isinstance(unknown_values, Mapping) and unknown_values.get(argument_name) is True


def make_getatt_reference(address: str, attribute: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [address, attribute]}


def _is_read_by_lint(resource_change: Any) -> bool:
    """Return True if lint reads this resource.

    Lint does not read data sources, resources that the plan deletes, and types that are not in
    RESOURCE_TYPE_BY_TERRAFORM_TYPE or ATTRIBUTE_BY_TERRAFORM_TYPE.
    """
    return (
        get_mapping(resource_change, "change", "after") is not None
        and resource_change.get("mode") == "managed"
        and resource_change.get("type")
        in (*RESOURCE_TYPE_BY_TERRAFORM_TYPE, *ATTRIBUTE_BY_TERRAFORM_TYPE)
        and isinstance(resource_change.get("address"), str)
    )
