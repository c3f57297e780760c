"""A decoded CloudFormation template: mappings, lists and texts.

Every scalar (number, boolean or text) is a text, as in CloudFormation. Places in the template have
line numbers only if the decoder marks its nodes with lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

# CloudFormation takes a template of at most 1 MB, and 500 resources. Lint takes larger ones.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST_TEMPLATE_BYTES = 4 * 1024 * 1024
MAXIMUM_NESTED_LEVELS = 80
# Name of the transform that expands SAM resources.
SAM_TRANSFORM = "AWS::Serverless-2016-10-31"
# Name of the transform that adds functions such as `Fn::Length`.
LANGUAGE_EXTENSIONS_TRANSFORM = "AWS::LanguageExtensions"
MOST_RESOURCES = 2_000
# Limit of work for one template. A step takes about a microsecond of one core; each character of a
# value that is resolved is one step.
MAXIMUM_WORK_STEPS = 8_000_000
# The function that an expansion puts in place of a value that it does not know. Its argument is the
# reason.
UNKNOWN_VALUE_FUNCTION = "Fn::MendqUnknownValue"
RESERVED_CONCURRENCY_PROPERTY = "ReservedConcurrentExecutions"
# PyYAML's name for the file of a text that it was given without a name.
UNNAMED_FILE = "<unicode string>"
# Types of resources that may do anything to a resource whose name or ARN they get.
_TYPES_THAT_SET_ANYTHING = ("AWS::CloudFormation::", "AWS::Serverless::Application", "Custom::")
# Bytes that are read for one step.
BYTES_PER_WORK_STEP = 16
# Characters that are copied for one step.
CHARACTERS_PER_COPY_STEP = 4
# Steps of work (see `WorkBudget`) for a node.
STEPS_PER_NODE = 16


class NotATemplate(Exception):
    """The input is not a template, or too large to check. The message is one line."""


@dataclass
class WorkBudget:
    """The number of steps of work that are left for checking one template.

    Mendq counts steps, not seconds, so that the limit is the same on a slow and a fast machine.
    """

    steps_left: int = MAXIMUM_WORK_STEPS

    def __post_init__(self) -> None:
        self.steps_at_start = self.steps_left

    @property
    def is_used_up(self) -> bool:
        """True if an error of this template says that no steps are left."""
        return self.steps_left < 0

    def use_steps(self, steps: int) -> None:
        """Subtract `steps` from the budget. Raises NotATemplate if fewer steps are left."""
        self.steps_left -= steps
        if self.steps_left < 0:
            hint = "and what repeats itself counts each time"
            raise NotATemplate(f"judging it takes more than {self.steps_at_start:,} steps, {hint}")


class TemplatePlace(NamedTuple):
    """A place in a template: its keys joined by dots, and its line from 1 (None if not known)."""

    path: str
    line: int | None
    # The file beside the template that has this line. Empty if the template itself has it.
    file: str = ""


@dataclass(frozen=True)
class TemplateResource:
    """One resource as the template declares it."""

    logical_id: str
    definition: Mapping[str, Any]

    @property
    def type(self) -> str:
        type_name = self.definition.get("Type")
        return type_name if isinstance(type_name, str) else ""

    @property
    def properties(self) -> Mapping[str, Any]:
        return get_mapping(self.definition, "Properties") or {}

    @property
    def construct(self) -> str:
        """Path of the resource's construct in its CDK app. Empty if no CDK app made it."""
        return str((get_mapping(self.definition, "Metadata") or {}).get("aws:cdk:path", ""))


class ToolRefusal(NamedTuple):
    """Why a tool refuses a part of a file, in its own words, and what to change."""

    because: str
    advice: str


@dataclass(frozen=True)
class Expansion:
    """The CloudFormation template that a tool makes of a file in a language of its own."""

    root: dict[str, Any]
    # The keys that lead to a resource's declaration in the file, by logical ID. A resource that is
    # missing here is declared in the file as it is in the template.
    source_keys_by_logical_id: Mapping[str, tuple[str | int, ...]]
    # Logical IDs of the resources that the tool generates: the file has none of their lines.
    generated_ids: frozenset[str]
    # Why a part of the file is not in the template, by the keys that lead to the part.
    reason_by_unread_keys: Mapping[tuple[str | int, ...], str]
    # The setting of a mapping, with its value, that lets a function report failures of a batch.
    batch_failures_setting: tuple[str, Any] = ("FunctionResponseTypes", ["ReportBatchItemFailures"])
    # The generated resources of SAM's SNS events, whose settings are those of `SqsSubscription`.
    ids_of_topic_events: frozenset[str] = frozenset()
    # The setting of a generated mapping that enables it, and the one that is its MaximumConcurrency
    # (empty: CloudFormation's).
    enabled_setting_name: str = "Enabled"
    limit_setting_name: str = ""
    # The setting of a generated function that is its reserved concurrency.
    reserve_setting_name: str = RESERVED_CONCURRENCY_PROPERTY
    # True if resources of the file can refer to the generated resources by their logical IDs here.
    has_real_ids: bool = True
    # Variables of the file whose default was used, with the default.
    default_by_variable: Mapping[str, str] = field(default_factory=dict)
    # What the tool refuses at deployment, by the keys that lead to it.
    refusal_by_keys: Mapping[tuple[str | int, ...], ToolRefusal] = field(default_factory=dict)


@dataclass(frozen=True)
class NestedStacks:
    """The nested stacks of a template (see `mendq/lint/nested.py`).

    Attributes:
        root: The template with the resources of its nested stacks. None if it has none.
        template_by_id: The template of each nested stack, by the stack's logical ID.
        node_by_reference: Nodes by the references to them: parameters that the outer template
            passes, such as `Queues.Visible`, and outputs, such as `Queues.Outputs.Arn`.
        reason_by_unread_id: Why a nested stack is not read, by its logical ID.
    """

    root: Any
    template_by_id: dict[str, Template]
    node_by_reference: dict[str, Any]
    reason_by_unread_id: dict[str, str]


@dataclass(frozen=True)
class Template:
    """A decoded template.

    The constructor raises NotATemplate if `Resources` is not a mapping, or has more than
    MOST_RESOURCES resources.
    """

    root: Any
    budget: WorkBudget = field(default_factory=WorkBudget)
    # Account and region of the deployment, if the template itself contains them.
    deploy_target: Mapping[str, str] = field(default_factory=dict)
    # True if places in other files than the template's own are not reported.
    reports_own_file_only: bool = field(default=False, kw_only=True)
    # Place of the first YAML alias, if CloudFormation itself must read the file: SAM and the
    # Serverless Framework write aliases out. Its path is the alias, such as `*name`.
    first_alias: TemplatePlace | None = field(default=None, kw_only=True)
    # What a tool makes of the file. None if the file is in CloudFormation's own language.
    expansion: Expansion | None = field(default=None, kw_only=True)
    # Why a loop (`mendq/lint/loops.py`) is not written out, by the keys that lead to it, and the
    # defaults of the parameters that other loops used.
    reason_by_unread_loop: Mapping[tuple[str | int, ...], str] = field(
        default_factory=dict, kw_only=True
    )
    default_by_loop_parameter: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    # Path of the file beside the outermost template, if this is the template of a nested stack.
    file: str = field(default="", kw_only=True)
    nested: NestedStacks = field(
        default_factory=lambda: NestedStacks(None, {}, {}, {}), kw_only=True
    )

    def __post_init__(self) -> None:
        root = self.deployed_root
        resources = root.get("Resources") if isinstance(root, dict) else None
        if not isinstance(resources, dict):
            raise NotATemplate("no CloudFormation template: it has no mapping Resources")
        if len(resources) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} resources; CloudFormation takes 500")

    @property
    def deployed_root(self) -> Any:
        """The template with all transforms applied, and with the resources of nested stacks."""
        if self.nested.root is not None:
            return self.nested.root
        return self.expansion.root if self.expansion else self.root

    @cached_property
    def resources(self) -> Mapping[str, TemplateResource]:
        """Resources by logical ID."""
        return {
            logical_id: TemplateResource(
                logical_id, definition if isinstance(definition, dict) else {}
            )
            for logical_id, definition in self.get_section("Resources").items()
        }

    def get_section(self, name: str) -> Mapping[str, Any]:
        """Return a top-level mapping such as `Parameters`. Empty if there is none."""
        return get_mapping(self.deployed_root, name) or {}

    def list_resources(self, *resource_types: str) -> Iterator[TemplateResource]:
        """Yield the resources of these types."""
        return (resource for resource in self.resources.values() if resource.type in resource_types)

    def may_be_set_elsewhere(self, logical_id: str) -> bool:
        """Return True if a nested stack or a custom resource gets a resource, and may change it."""
        reference_regex = re.compile(rf'["{{]{re.escape(logical_id)}["}}.]')
        stack_id = self.find_stack_id(logical_id)
        for resource in self.resources.values():
            if "Fn::" in resource.logical_id:
                return True
            if resource.type.startswith(_TYPES_THAT_SET_ANYTHING):
                if self.find_stack_id(resource.logical_id) != stack_id:
                    # It may get the resource through parameters and outputs.
                    return True
                properties_text = json.dumps(resource.properties)
                self.budget.use_steps(1 + len(properties_text) // BYTES_PER_WORK_STEP)
                if reference_regex.search(properties_text):
                    return True
        return False

    def make_bucket_arn_node(self, bucket: TemplateResource) -> Any:
        """Return the value with which a queue's policy can name the ARN of a bucket.

        None if the template has none. A reference to the bucket would be a circle, because the
        bucket waits for the policy.
        """
        bucket_name = bucket.properties.get("BucketName")
        if not isinstance(bucket_name, str):
            return None
        return {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{bucket_name}"}

    def get_attribute_name(self, attribute: str) -> str:
        """Return a queue attribute's name in the template's language.

        CloudFormation uses the same names as SQS.
        """
        return attribute

    def adapt_remedy(
        self, logical_id: str, symptom_name: str, lines: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the lines of a remedy as the file's language takes them at this resource."""
        del logical_id, symptom_name
        return lines

    def write_remedy(self, file: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        """Return the lines of a remedy in the language of a file.

        `file` is empty for the template's own file.
        """
        del file
        return lines

    def name_reserved_concurrency(self, function_id: str) -> str:
        """Return the name of the setting that is a function's reserved concurrency."""
        if self.expansion and self.is_generated(function_id):
            return self.expansion.reserve_setting_name
        return self.get_attribute_name(RESERVED_CONCURRENCY_PROPERTY)

    def make_new_id(self, logical_id: str, suffix: str) -> str:
        """Return the logical ID of a new resource beside an existing one.

        No resource of the template has it. `suffix` says what the new resource is, such as `Dlq`.
        """
        new_id = f"{logical_id}{suffix}"
        while new_id in self.resources:
            new_id += "2"
        return new_id

    def render_declaration(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the template lines that declare the property or resource `name`.

        If `name` is empty, return the lines of a list item. This base class returns one line of
        YAML with the value as JSON.
        """
        return (f"{name}: {json.dumps(value)}" if name else f"- {json.dumps(value)}",)

    def find_place(self, *keys: str | int) -> TemplatePlace:
        """Return the place at the path `keys`, which begins at the top of the template.

        If a key is missing, the line is that of the last key that exists. For a resource that a
        transform generated, return the place of the declaration from which it was generated.
        """
        if len(keys) > 1:
            stack_id, logical_id = self._split_id(str(keys[1]))
            if stack_id:
                inner_template = self.nested.template_by_id[stack_id]
                return inner_template.find_place(keys[0], logical_id, *keys[2:])
        if self.expansion and len(keys) > 1:
            declaration_keys = self.expansion.source_keys_by_logical_id.get(str(keys[1]))
            if declaration_keys:
                return self._find_source_place(declaration_keys, keys[2:])
        return self.find_own_place(keys)

    def is_generated(self, logical_id: str) -> bool:
        """Return True if a transform generates the resource, so that the file does not name it."""
        stack_id, inner_id = self._split_id(logical_id)
        if stack_id:
            return self.nested.template_by_id[stack_id].is_generated(inner_id)
        return self.expansion is not None and logical_id in self.expansion.generated_ids

    def find_stack_id(self, logical_id: str) -> str:
        """Return the nested stack that declares a resource, such as `Outer.Queues`.

        Empty if the template itself declares the resource.
        """
        stack_id, inner_id = self._split_id(logical_id)
        if not stack_id:
            return ""
        inner_stack_id = self.nested.template_by_id[stack_id].find_stack_id(inner_id)
        return f"{stack_id}.{inner_stack_id}" if inner_stack_id else stack_id

    def list_loop_defaults(self) -> dict[str, str]:
        """Return the defaults of the parameters that loops used, also those of nested stacks."""
        default_by_parameter = dict(self.default_by_loop_parameter)
        for stack_id, template in self.nested.template_by_id.items():
            for name, default in template.list_loop_defaults().items():
                default_by_parameter[f"{stack_id}.{name}"] = default
        return default_by_parameter

    def list_nested_templates(self) -> Iterator[Template]:
        """Yield the templates of all nested stacks, also those inside nested stacks."""
        for template in self.nested.template_by_id.values():
            yield template
            yield from template.list_nested_templates()

    def _split_id(self, logical_id: str) -> tuple[str, str]:
        """Split `Stack.Queue` into the nested stack's ID and the ID inside it.

        Return two empty strings if the resource is not in a nested stack.
        """
        stack_id, _, inner_id = logical_id.partition(".")
        return (stack_id, inner_id) if stack_id in self.nested.template_by_id else ("", "")

    def _find_source_place(
        self, declaration_keys: Sequence[str | int], keys_in_resource: Sequence[str | int]
    ) -> TemplatePlace:
        """Return the place of the declaration from which a resource was generated.

        Its path has `keys_in_resource` if the declaration has a value there too.
        """
        keys: tuple[str | int, ...] = tuple(declaration_keys)
        node: Any = self.root
        for key in keys:
            node = node[key]
        for key in keys_in_resource:
            node = node.get(key) if isinstance(node, dict) else None
        return self.find_own_place(keys if node is None else (*keys, *keys_in_resource))

    def find_own_place(self, keys: Sequence[str | int]) -> TemplatePlace:
        """Return the place at the path `keys` in the file itself, which a transform may replace."""
        node = self.root
        mark = _find_mark(self.root)
        for key in keys:
            if isinstance(node, dict) and key in node:
                # The key in the mapping knows its line; the key that was passed does not.
                key_with_line = next(mapping_key for mapping_key in node if mapping_key == key)
                mark = _find_mark(key_with_line) or _find_mark(node)
                node = node[key]
            elif isinstance(node, list) and isinstance(key, int):
                node = node[key]
                mark = _find_mark(node) or mark
            else:
                break
        path = ".".join(map(str, keys))
        if mark is None:
            return TemplatePlace(path, None)
        file = "" if mark.name == UNNAMED_FILE else mark.name
        return TemplatePlace(path, mark.line + 1, file)


def get_mapping(node: Any, *keys: str) -> Any:
    """Return the mapping at the path `keys` inside `node`. None if there is no mapping."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def to_list(node: Any) -> list[Any]:
    """Return a list unchanged, an empty list for None, and any other value as a list of one."""
    if node is None:
        return []
    return node if isinstance(node, list) else [node]


def convert_scalars_to_text(
    value: Any,
    budget: WorkBudget,
    replacement_by_text: Mapping[str, Any] = MappingProxyType({}),
    depth: int = 0,
) -> Any:
    """Convert a JSON value to the form of a decoded template: numbers and booleans become texts.

    Args:
        value: The JSON value.
        budget: The steps that the conversion may take.
        replacement_by_text: A text that is a key of this mapping is replaced by the key's value.
        depth: The number of mappings and lists that contain the value.

    Raises:
        NotATemplate: The value takes more steps than the budget has left, or is nested deeper than
            MAXIMUM_NESTED_LEVELS.
    """
    if depth > MAXIMUM_NESTED_LEVELS:
        raise NotATemplate(f"a value nested more than {MAXIMUM_NESTED_LEVELS} deep")
    if isinstance(value, dict):
        budget.use_steps(1 + len(value))
        return {
            key: convert_scalars_to_text(item, budget, replacement_by_text, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        budget.use_steps(1 + len(value))
        return [
            convert_scalars_to_text(item, budget, replacement_by_text, depth + 1) for item in value
        ]
    if isinstance(value, str):
        budget.use_steps(1 + len(value) // BYTES_PER_WORK_STEP)
        return replacement_by_text.get(value, value)
    return value if value is None else json.dumps(value)


def _find_mark(node: Any) -> Any:
    """Return the position of a node in its file. None if the decoder did not mark the node."""
    return getattr(node, "start_mark", None)
