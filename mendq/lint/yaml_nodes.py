"""Load YAML into mappings, lists and texts that know their lines.

Every scalar becomes a text, so that an account ID keeps the zero at its beginning. CloudFormation's
short forms become their long ones: `!GetAtt Orders.Arn` is `{"Fn::GetAtt": ["Orders", "Arn"]}`.

Aliases (`*name`) and merge keys (`<<: *name`) are written out: each alias becomes a copy of the
node with its anchor. A copy has the line of the anchor, because that is the line to change.

cfn-lint has a loader that does nearly the same, but importing it takes more than a second.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import yaml

from mendq.lint.template import (
    CHARACTERS_PER_COPY_STEP,
    MAXIMUM_NESTED_LEVELS,
    STEPS_PER_NODE,
    UNNAMED_FILE,
    NotATemplate,
    WorkBudget,
)

_MOST_KEY_CHARACTERS = 64
_BOOLEAN_TAG = "tag:yaml.org,2002:bool"
_NULL_TAG = "tag:yaml.org,2002:null"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_TRUE_TEXTS = frozenset({"yes", "true", "on"})
# Functions whose names have no prefix `Fn::`.
_FUNCTIONS_WITHOUT_PREFIX = ("Ref", "Condition")


class MarkedText(str):
    """A text with its position in the file."""

    __slots__ = ("start_mark",)
    start_mark: Any


class MarkedMapping(dict[str, Any]):
    """A mapping with its position in the file. Its keys are `MarkedText`."""

    __slots__ = ("start_mark",)
    start_mark: Any


class MarkedList(list[Any]):
    """A list with its position in the file."""

    __slots__ = ("start_mark",)
    start_mark: Any


def load_yaml(yaml_text: str, budget: WorkBudget, file_name: str = UNNAMED_FILE) -> Any:
    """Load the only document of a YAML text. Return None if it is empty.

    Args:
        yaml_text: The text. The caller must limit its size and its nesting.
        budget: The steps that writing out the aliases may take.
        file_name: The name of the file in the positions of the nodes.

    Raises:
        yaml.YAMLError: The text is not YAML.
        NotATemplate: A mapping has a key twice, or a key that is not a text; an alias contains
            itself; or the aliases make the document too large or too deep.
    """
    stream = StringIO(yaml_text)
    stream.name = file_name
    root_node = yaml.compose(stream, Loader=yaml.CSafeLoader)
    return None if root_node is None else _NodeConverter(budget).convert(root_node)


class _NodeConverter:
    """Converts the nodes of one document.

    PyYAML has one node for an anchor and all of its aliases. Such a node is converted once for each
    of them, and each time counts.
    """

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._converted_nodes = set[yaml.Node]()
        # The nodes that contain the node that is being converted.
        self._open_nodes = list[yaml.Node]()

    def convert(self, node: yaml.Node) -> Any:
        """Convert a node with all nodes inside it. A short form becomes its long form."""
        if not node.tag.startswith("!"):
            return self._convert_plain_node(node)
        function_name = node.tag[1:]
        if function_name not in _FUNCTIONS_WITHOUT_PREFIX:
            function_name = f"Fn::{function_name}"
        argument: Any = self._convert_plain_node(node)
        if function_name == "Fn::GetAtt" and isinstance(argument, str):
            argument = _mark_list(argument.split(".", 1), node)
        function = MarkedMapping({_mark_text(function_name, node): argument})
        function.start_mark = node.start_mark
        return function

    def _convert_plain_node(self, node: yaml.Node) -> Any:
        if node in self._converted_nodes:
            text_length = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
            self._budget.use_steps(STEPS_PER_NODE + text_length // CHARACTERS_PER_COPY_STEP)
        self._converted_nodes.add(node)
        if isinstance(node, yaml.ScalarNode):
            return _convert_scalar(node)
        self._open(node)
        if isinstance(node, yaml.SequenceNode):
            items = [self.convert(item_node) for item_node in node.value]
            collection: Any = _mark_list(items, node)
        else:
            collection = self._convert_mapping(node)
        self._open_nodes.pop()
        return collection

    def _open(self, node: yaml.Node) -> None:
        """Note that the nodes inside a node come next.

        Raises NotATemplate if the node contains itself, or is nested too deep.
        """
        line_number = node.start_mark.line + 1
        if node in self._open_nodes:
            raise NotATemplate(f"line {line_number}: a YAML alias contains itself")
        if len(self._open_nodes) >= MAXIMUM_NESTED_LEVELS:
            raise NotATemplate(
                f"line {line_number}: its aliases are nested more than {MAXIMUM_NESTED_LEVELS} deep"
            )
        self._open_nodes.append(node)

    def _convert_mapping(self, node: yaml.Node) -> MarkedMapping:
        mapping = MarkedMapping()
        mapping.start_mark = node.start_mark
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE_TAG:
                continue
            key = self.convert(key_node)
            if not isinstance(key, MarkedText):
                raise NotATemplate(f"line {key_node.start_mark.line + 1}: a key is not a text")
            if key in mapping:
                key_text = key[:_MOST_KEY_CHARACTERS]
                raise NotATemplate(
                    f"line {key_node.start_mark.line + 1}: the key {key_text!r} is declared twice"
                )
            mapping[key] = self.convert(value_node)
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE_TAG:
                self._merge(mapping, value_node)
        return mapping

    def _merge(self, mapping: MarkedMapping, merged_node: yaml.Node) -> None:
        """Add the keys that a mapping does not have from a mapping, or from a list of mappings.

        The mapping's own keys win, and then those of the first mapping in the list.
        https://yaml.org/type/merge.html
        """
        merged_value = self.convert(merged_node)
        for merged_mapping in merged_value if isinstance(merged_value, list) else [merged_value]:
            if not isinstance(merged_mapping, MarkedMapping):
                line_number = merged_node.start_mark.line + 1
                raise NotATemplate(f"line {line_number}: `<<` takes a mapping or a list of them")
            for key, value in merged_mapping.items():
                mapping.setdefault(key, value)


def _convert_scalar(node: yaml.ScalarNode) -> MarkedText | None:
    """Convert a scalar to a text. A boolean such as `yes` becomes `true` or `false`."""
    if node.tag == _NULL_TAG:
        return None
    if node.tag == _BOOLEAN_TAG:
        is_true = node.value.lower() in _TRUE_TEXTS
        return _mark_text(str(is_true).lower(), node)
    return _mark_text(node.value, node)


def _mark_text(text: str, node: yaml.Node) -> MarkedText:
    marked_text = MarkedText(text)
    marked_text.start_mark = node.start_mark
    return marked_text


def _mark_list(items: list[Any], node: yaml.Node) -> MarkedList:
    marked_list = MarkedList(items)
    marked_list.start_mark = node.start_mark
    return marked_list
