"""Load YAML into mappings, lists and texts that know their lines.

Every scalar becomes a text, so that an account ID keeps the zero at its beginning. CloudFormation's
short forms become their long ones: `!GetAtt Orders.Arn` is `{"Fn::GetAtt": ["Orders", "Arn"]}`.

cfn-lint has a loader that does nearly the same, but importing it takes more than a second.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import yaml

from mendq.lint.template import UNNAMED_FILE, NotATemplate

_MOST_KEY_CHARACTERS = 64
_BOOLEAN_TAG = "tag:yaml.org,2002:bool"
_NULL_TAG = "tag:yaml.org,2002:null"
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


def load_yaml(yaml_text: str, file_name: str = UNNAMED_FILE) -> Any:
    """Load the only document of a YAML text. Return None if it is empty.

    The text must have no aliases; its size must be limited by the caller. The positions of the
    nodes have the name of the file.

    Raises:
        yaml.YAMLError: The text is not YAML.
        NotATemplate: A mapping has a key twice, or a key that is not a text.
    """
    stream = StringIO(yaml_text)
    stream.name = file_name
    root_node = yaml.compose(stream, Loader=yaml.CSafeLoader)
    return None if root_node is None else _convert_node(root_node)


def _convert_node(node: yaml.Node) -> Any:
    """Convert a node with all nodes inside it. A short form becomes the function's long form."""
    if not node.tag.startswith("!"):
        return _convert_plain_node(node)
    function_name = node.tag[1:]
    if function_name not in _FUNCTIONS_WITHOUT_PREFIX:
        function_name = f"Fn::{function_name}"
    argument: Any = _convert_plain_node(node)
    if function_name == "Fn::GetAtt" and isinstance(argument, str):
        argument = _mark_list(argument.split(".", 1), node)
    function = MarkedMapping({_mark_text(function_name, node): argument})
    function.start_mark = node.start_mark
    return function


def _convert_plain_node(node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _convert_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return _mark_list([_convert_node(item_node) for item_node in node.value], node)
    return _convert_mapping(node)


def _convert_scalar(node: yaml.ScalarNode) -> MarkedText | None:
    """Convert a scalar to a text. A boolean such as `yes` becomes `true` or `false`."""
    if node.tag == _NULL_TAG:
        return None
    if node.tag == _BOOLEAN_TAG:
        is_true = node.value.lower() in _TRUE_TEXTS
        return _mark_text(str(is_true).lower(), node)
    return _mark_text(node.value, node)


def _convert_mapping(node: yaml.Node) -> MarkedMapping:
    mapping = MarkedMapping()
    mapping.start_mark = node.start_mark
    for key_node, value_node in node.value:
        key = _convert_node(key_node)
        if not isinstance(key, MarkedText):
            raise NotATemplate(f"line {key_node.start_mark.line + 1}: a key is not a text")
        if key in mapping:
            key_text = key[:_MOST_KEY_CHARACTERS]
            raise NotATemplate(
                f"line {key_node.start_mark.line + 1}: the key {key_text!r} is declared twice"
            )
        mapping[key] = _convert_node(value_node)
    return mapping


def _mark_text(text: str, node: yaml.Node) -> MarkedText:
    marked_text = MarkedText(text)
    marked_text.start_mark = node.start_mark
    return marked_text


def _mark_list(items: list[Any], node: yaml.Node) -> MarkedList:
    marked_list = MarkedList(items)
    marked_list.start_mark = node.start_mark
    return marked_list
