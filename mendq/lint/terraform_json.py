"""Parse Terraform's JSON syntax (`.tf.json`) into the blocks that its own language has.

CDK for Terraform writes such files. JSON does not tell a nested block from an argument whose value
is an object, so the blocks that lint reads are known by their keywords.

https://developer.hashicorp.com/terraform/language/syntax/json
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import yaml

from mendq.lint.hcl_parser import (
    Argument,
    Block,
    Expression,
    HclFile,
    ListExpression,
    Literal,
    ObjectExpression,
    parse_hcl,
    parse_text,
)
from mendq.lint.template import NotATemplate
from mendq.lint.terraform_types import BLOCK_KEYWORDS, read_whole_number

# Keywords at the top of a file, with the number of labels.
_LABELS_BY_KEYWORD = {
    "resource": 2,
    "data": 2,
    "module": 1,
    "variable": 1,
    "output": 1,
    "locals": 0,
}
_COMMENT_KEY = "//"
_CALLER_IDENTITY_IN_HCL = 'data "aws_caller_identity" "current" {}'
_ARGUMENTS_COMMENT = "# and inside of the queue"
_CALLER_IDENTITY_IN_JSON = '"data": {"aws_caller_identity": {"current": {}}}'


def parse_terraform_json(file: HclFile) -> Block:
    """Parse a `.tf.json` file. The result is a block without a keyword.

    Raises NotATemplate with the file if the text is not JSON, or not an object.
    """
    return Block(file, "", (), 0, 0, (), list(_list_top_blocks(file, _compose(file))))


def parse_variable_values(file: HclFile) -> Block:
    """Parse a `.tfvars.json` file: its arguments are the variables."""
    return _make_block(file, "", (), _compose(file), has_blocks=False)


def _compose(file: HclFile) -> Any:
    """Return the root node, which knows the places of its parts."""
    try:
        json.loads(file.text, parse_int=str)
        root = yaml.compose(file.text, Loader=yaml.CSafeLoader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise NotATemplate(f"{file.path}: no JSON that lint can read") from error
    if not isinstance(root, yaml.MappingNode):
        raise NotATemplate(f"{file.path}: no object in JSON")
    return root


def _list_top_blocks(file: HclFile, root: Any) -> Iterator[Block]:
    for key_node, value_node in root.value:
        keyword = key_node.value
        label_count = _LABELS_BY_KEYWORD.get(keyword)
        if label_count is None:
            continue
        for labels, body_node in _list_labelled_nodes(value_node, label_count):
            has_blocks = keyword in ("resource", "data")
            yield _make_block(file, keyword, labels, body_node, has_blocks=has_blocks)


def _list_labelled_nodes(node: Any, label_count: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the bodies below a keyword with their labels. A list stands for several of them."""
    for mapping_node in _list_mappings(node):
        if label_count == 0:
            yield (), mapping_node
            continue
        for key_node, value_node in mapping_node.value:
            for labels, body_node in _list_labelled_nodes(value_node, label_count - 1):
                yield (key_node.value, *labels), body_node


def _list_mappings(node: Any) -> list[Any]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [item for item in nodes if isinstance(item, yaml.MappingNode)]


def _make_block(
    file: HclFile, keyword: str, labels: tuple[str, ...], node: Any, *, has_blocks: bool
) -> Block:
    """Return a block with the arguments, and perhaps the nested blocks, of a mapping node."""
    arguments = list[Argument]()
    blocks = list[Block]()
    for key_node, value_node in node.value:
        name = key_node.value
        if name == _COMMENT_KEY:
            continue
        labelled_nodes = _list_nested_nodes(name, value_node) if has_blocks else []
        for inner_labels, inner_node in labelled_nodes:
            blocks.append(_make_block(file, name, inner_labels, inner_node, has_blocks=True))
        if not labelled_nodes and not (has_blocks and name == "dynamic"):
            arguments.append(_make_argument(file, key_node, value_node))
    begin = node.start_mark.index
    return Block(file, keyword, labels, begin, begin, arguments, blocks)


def _list_nested_nodes(name: str, node: Any) -> list[tuple[tuple[str, ...], Any]]:
    """Return the bodies of the nested blocks of that name, with their labels."""
    if name == "dynamic":
        return [*_list_labelled_nodes(node, 1)]
    if name in BLOCK_KEYWORDS:
        return [((), inner_node) for inner_node in _list_mappings(node)]
    return []


def _make_argument(file: HclFile, key_node: Any, value_node: Any) -> Argument:
    return Argument(
        file,
        key_node.value,
        _make_expression(file, value_node),
        key_node.start_mark.index,
        value_node.start_mark.index,
        value_node.end_mark.index,
    )


def _make_expression(file: HclFile, node: Any) -> Expression:
    """Return the expression of a value. A text may have expressions inside."""
    if isinstance(node, yaml.SequenceNode):
        return ListExpression(tuple(_make_expression(file, item) for item in node.value))
    if isinstance(node, yaml.MappingNode):
        keys_and_values = [
            (_parse_text(file, key_node), _make_expression(file, value_node))
            for key_node, value_node in node.value
        ]
        return ObjectExpression(tuple(keys_and_values))
    if node.style == '"':
        return _parse_text(file, node)
    return Literal(json.loads(node.value, parse_int=read_whole_number))


def _parse_text(file: HclFile, node: Any) -> Expression:
    place = f"{file.path}, line {node.start_mark.line + 1}, in a text"
    return parse_text(HclFile(place, node.value))


def convert_lines_to_json(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a remedy in Terraform's JSON syntax.

    Comments stay, at the begin or the end. Lines that are neither arguments nor blocks stay too: an
    item of a policy's statements is the same in both languages, inside of `jsonencode`.
    """
    code_lines = [line for line in lines if not line.startswith("#")]
    try:
        body = parse_hcl(HclFile("remedy", "\n".join(code_lines)))
    except NotATemplate:
        return tuple(lines)
    is_code_seen = False
    first_lines = list[str]()
    last_lines = list[str]()
    for line in lines:
        is_code_seen |= not line.startswith("#")
        if line.startswith("#"):
            comment = line.replace(_CALLER_IDENTITY_IN_HCL, _CALLER_IDENTITY_IN_JSON)
            (last_lines if is_code_seen else first_lines).append(comment)
    resource_lines = _list_member_lines(replace(body, arguments=()))
    argument_lines = _list_member_lines(replace(body, blocks=()))
    if resource_lines and argument_lines and body.list_blocks("resource"):
        argument_lines.insert(0, _ARGUMENTS_COMMENT)
    return (*first_lines, *resource_lines, *argument_lines, *last_lines)


def _list_member_lines(block: Block) -> list[str]:
    """Return the members of a block's JSON object, without its braces."""
    json_lines = json.dumps(_make_json_object(block), indent=2).splitlines()
    return [line.removeprefix("  ") for line in json_lines[1:-1]]


def _make_json_object(block: Block) -> dict[str, Any]:
    """Return the arguments and the blocks of a block as Terraform's JSON syntax has them."""
    json_object = dict[str, Any]()
    for inner_block in block.blocks:
        part = json_object
        for name in (inner_block.keyword, *inner_block.labels):
            part = part.setdefault(name, {})
        part.update(_make_json_object(inner_block))
    for argument in block.arguments:
        json_object[argument.name] = _make_json_value(argument.text.strip())
    return json_object


def _make_json_value(text: str) -> Any:
    """Return an HCL value as JSON: a literal as it is, another expression as a template."""
    try:
        return json.loads(text)
    except ValueError:
        return f"${{{text}}}"
