"""Add the resources of nested stacks to a template, as they are after its deployment.

A nested stack is a template of its own. `aws cloudformation package` and `sam build` take its path
(`TemplateURL: queues.yaml`, `Location: queues.yaml`), and CDK notes it in the metadata. Lint reads
such a file if it is below the folder of the outermost template. Rules:

1. The logical ID of a nested resource has the stack's in front: `Queues.Orders`. So the same
   template may be nested twice, and each finding says in which stack the queue is.
2. The nested template is judged with the parameters that the outer one passes. `Queues.Visible`
   refers to the outer template's node, and `Queues.Outputs.Arn` to that of the output. The nodes
   are resolved like all others when a check asks for them.
3. Places are those of the nested file, because that is the file to change.
4. What is not read is listed with the reason: another address, a file outside the folder, a
   template that contains itself, too many levels.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-nested-stacks.html
https://docs.aws.amazon.com/cli/latest/reference/cloudformation/package.html
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mendq.lint.folder import TemplateFolder, UnreadableTemplateFile
from mendq.lint.template import (
    MOST_RESOURCES,
    NestedStacks,
    NotATemplate,
    Template,
    TemplateResource,
    get_mapping,
)

STACK_TYPE = "AWS::CloudFormation::Stack"
APPLICATION_TYPE = "AWS::Serverless::Application"
_LOCATION_PROPERTY_BY_TYPE = {STACK_TYPE: "TemplateURL", APPLICATION_TYPE: "Location"}
# Levels of nested stacks below the outermost template that are read.
MOST_LEVELS = 5
_STACK_NAME = "AWS::StackName"
# Sections whose entries have names that the outer template may use as well.
_NAMED_SECTIONS = ("Mappings", "Conditions", "Parameters")
_SUB_VARIABLE_REGEX = re.compile(r"\$\{([^{}!]{1,512})\}")
_ADDRESS_REGEX = re.compile(r"[a-z0-9]+://", re.IGNORECASE)


class ReadTemplate(Protocol):
    """Decodes a nested template with the nested stacks inside it."""

    def __call__(self, content: bytes, opened: OpenedTemplate) -> Template:
        """Decode the content of a file. Raises NotATemplate."""


@dataclass(frozen=True)
class OpenedTemplate:
    """A template whose nested stacks are read.

    Attributes:
        folder: The folder of the outermost template.
        name: The path of the template, relative to the folder. Empty if it is not known.
        outer_names: The names of the templates that contain it, the outermost first.
        passed_parameters: The nodes that the outer template passes.
    """

    folder: TemplateFolder
    name: str
    outer_names: tuple[str, ...] = ()
    passed_parameters: Mapping[str, Any] = field(default_factory=dict)

    def open(self, name: str, stack: TemplateResource) -> OpenedTemplate:
        """Return the opened template of a nested stack."""
        passed_parameters = get_mapping(stack.properties, "Parameters") or {}
        outer_names = (*self.outer_names, self.name)
        return OpenedTemplate(self.folder, name, outer_names, passed_parameters)


def add_nested_stacks(
    template: Template, opened: OpenedTemplate, read_template: ReadTemplate
) -> Template:
    """Return the template with the resources of its nested stacks.

    Args:
        template: The template, without them.
        opened: Its folder and name.
        read_template: Decodes a nested template.

    Raises:
        NotATemplate: Reading takes more steps than the budget has left, or more files than the
            folder allows.
    """
    stacks = [*template.list_resources(*_LOCATION_PROPERTY_BY_TYPE)]
    if not stacks:
        return template
    root = {**template.deployed_root}
    for section_name in (*_NAMED_SECTIONS, "Resources"):
        root[section_name] = {**template.get_section(section_name)}
    nested = NestedStacks(root, {}, {}, {})
    for stack in stacks:
        try:
            name = _find_file_name(stack, opened)
            inner_template = _read_stack(stack, name, template, opened, read_template)
            _add_stack(nested, stack, inner_template)
        except UnreadableTemplateFile as error:
            nested.reason_by_unread_id[stack.logical_id] = f"a nested stack: {error}"
    return replace(template, nested=nested)


def _find_file_name(stack: TemplateResource, opened: OpenedTemplate) -> str:
    """Return the path of a stack's template, relative to the folder of the outermost template.

    Raises UnreadableTemplateFile if the stack does not name a file.
    """
    property_name = _LOCATION_PROPERTY_BY_TYPE[stack.type]
    location = stack.properties.get(property_name)
    metadata = get_mapping(stack.definition, "Metadata") or {}
    if metadata.get("aws:asset:property") == property_name:
        location = metadata.get("aws:asset:path")
    if not isinstance(location, str) or _ADDRESS_REGEX.match(location):
        raise UnreadableTemplateFile(
            "its template is not a file below this template's folder: lint it separately"
        )
    return posixpath.normpath(posixpath.join(posixpath.dirname(opened.name), location))


def _read_stack(
    stack: TemplateResource,
    name: str,
    template: Template,
    opened: OpenedTemplate,
    read_template: ReadTemplate,
) -> Template:
    """Decode the template of a nested stack.

    Raises:
        UnreadableTemplateFile: It cannot be read, contains itself, or is nested too deep.
        NotATemplate: Reading takes more steps than the budget has left, or more files than the
            folder allows.
    """
    if name in (opened.name, *opened.outer_names):
        raise UnreadableTemplateFile(f"{name} contains itself")
    if len(opened.outer_names) >= MOST_LEVELS:
        raise UnreadableTemplateFile(f"it is nested more than {MOST_LEVELS} levels deep")
    content = opened.folder.read(name)
    try:
        return read_template(content, opened.open(name, stack))
    except NotATemplate as error:
        if template.budget.is_used_up or opened.folder.is_used_up:
            raise
        raise UnreadableTemplateFile(f"{name}: {error}") from error


def _add_stack(nested: NestedStacks, stack: TemplateResource, inner_template: Template) -> None:
    """Add the resources of one nested stack, and what they refer to.

    Raises UnreadableTemplateFile if the template has too many resources then.
    """
    resource_count = len(nested.root["Resources"]) + len(inner_template.resources)
    if resource_count > MOST_RESOURCES:
        raise UnreadableTemplateFile(f"with it, there are more than {MOST_RESOURCES:,} resources")
    stack_id = stack.logical_id
    renamer = _Renamer(stack_id, inner_template)
    nested.template_by_id[stack_id] = inner_template
    del nested.root["Resources"][stack_id]
    for name, reason in inner_template.nested.reason_by_unread_id.items():
        nested.reason_by_unread_id[f"{stack_id}.{name}"] = reason
    for name, node in inner_template.nested.node_by_reference.items():
        nested.node_by_reference[f"{stack_id}.{name}"] = renamer.rename(node)
    for section_name in _NAMED_SECTIONS:
        for name, node in inner_template.get_section(section_name).items():
            nested.root[section_name][f"{stack_id}.{name}"] = renamer.rename(node)
    for name, output in inner_template.get_section("Outputs").items():
        value_node = (get_mapping(output) or {}).get("Value")
        nested.node_by_reference[f"{stack_id}.Outputs.{name}"] = renamer.rename(value_node)
    nested.node_by_reference[f"{stack_id}.{_STACK_NAME}"] = {
        "Fn::Sub": f"${{{_STACK_NAME}}}-{stack_id}"
    }
    _pass_parameters(nested, stack, inner_template)
    for logical_id, resource in inner_template.resources.items():
        definition = renamer.rename(resource.definition)
        condition_name = resource.definition.get("Condition")
        if isinstance(condition_name, str):
            definition["Condition"] = f"{stack_id}.{condition_name}"
        nested.root["Resources"][f"{stack_id}.{logical_id}"] = definition
    _apply_condition(nested, stack, inner_template)


def _pass_parameters(
    nested: NestedStacks, stack: TemplateResource, inner_template: Template
) -> None:
    """Let the parameters of a nested stack refer to what the outer template passes."""
    parameters = inner_template.get_section("Parameters")
    passed_values = get_mapping(stack.properties, "Parameters") or {}
    for name, value in passed_values.items():
        parameter_type = str((get_mapping(parameters, name) or {}).get("Type") or "")
        is_list = parameter_type.startswith("List<") or parameter_type == "CommaDelimitedList"
        node = _split_list(value) if is_list else value
        nested.node_by_reference[f"{stack.logical_id}.{name}"] = node


def _split_list(value: Any) -> Any:
    """Return the node of a list parameter: CloudFormation passes its items in one text."""
    if isinstance(value, str):
        return [item.strip() for item in value.split(",")]
    return {"Fn::Split": [",", value]}


def _apply_condition(
    nested: NestedStacks, stack: TemplateResource, inner_template: Template
) -> None:
    """Let the condition of a nested stack decide about the resources inside it."""
    condition_name = stack.definition.get("Condition")
    if not isinstance(condition_name, str):
        return
    conditions = nested.root["Conditions"]
    for name in inner_template.get_section("Conditions"):
        inner_name = f"{stack.logical_id}.{name}"
        conditions[inner_name] = {
            "Fn::And": [{"Condition": condition_name}, conditions[inner_name]]
        }
    for logical_id in inner_template.resources:
        definition = nested.root["Resources"][f"{stack.logical_id}.{logical_id}"]
        definition.setdefault("Condition", condition_name)


class _Renamer:
    """Puts the logical ID of a stack in front of the names in a nested template."""

    def __init__(self, stack_id: str, template: Template) -> None:
        self._stack_id = stack_id
        self._budget = template.budget

    def rename(self, node: Any) -> Any:
        """Return a copy of a node in which each name has the stack's logical ID in front."""
        self._budget.use_steps(1)
        if isinstance(node, list):
            return [self.rename(item) for item in node]
        if not isinstance(node, dict):
            return node
        match node:
            case {"Ref": str() as name} if len(node) == 1:
                return {"Ref": self._rename_reference(name)}
            case {"Ref": dict() as name} if len(node) == 1:
                return {"Ref": self._prefix(name)}
            case {"Fn::GetAtt": [str() as name, *attribute]} if len(node) == 1:
                return {"Fn::GetAtt": [f"{self._stack_id}.{name}", *self.rename(attribute)]}
            case {"Fn::GetAtt": [dict() as name, *attribute]} if len(node) == 1:
                return {"Fn::GetAtt": [self._prefix(name), *self.rename(attribute)]}
            case {"Fn::Sub": str() as text} if len(node) == 1:
                return {"Fn::Sub": self._rename_variables(text, {})}
            case {"Fn::Sub": [str() as text, dict() as variables]} if len(node) == 1:
                new_text = self._rename_variables(text, variables)
                return {"Fn::Sub": [new_text, self.rename(variables)]}
            case {"Fn::FindInMap": [name, *keys]} if len(node) == 1:
                return {"Fn::FindInMap": [self._prefix(name), *self.rename(keys)]}
            case {"Fn::If": [str() as name, *values]} if len(node) == 1:
                return {"Fn::If": [f"{self._stack_id}.{name}", *self.rename(values)]}
            case {"Condition": str() as name} if len(node) == 1:
                return {"Condition": f"{self._stack_id}.{name}"}
        return {key: self.rename(value) for key, value in node.items()}

    def _prefix(self, node: Any) -> Any:
        """Return an `Fn::Join` that puts the stack's logical ID in front of a name."""
        return {"Fn::Join": [".", [self._stack_id, self.rename(node)]]}

    def _rename_reference(self, name: str) -> str:
        is_same_everywhere = name.startswith("AWS::") and name != _STACK_NAME
        return name if is_same_everywhere else f"{self._stack_id}.{name}"

    def _rename_variables(self, text: str, variables: Mapping[str, Any]) -> str:
        """Return the text of `Fn::Sub` with the variables renamed that it does not declare."""

        def rename_variable(variable_match: re.Match[str]) -> str:
            name = variable_match.group(1)
            return f"${{{name if name in variables else self._rename_reference(name)}}}"

        self._budget.use_steps(len(text))
        return _SUB_VARIABLE_REGEX.sub(rename_variable, text)
