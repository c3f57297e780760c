"""Compute the patch of a Terraform file (.tf), for `mendq patch`. python-hcl2 parses the file.

https://developer.hashicorp.com/terraform/language/syntax/configuration
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hcl2 import parses_to_tree
from lark import Token, Tree
from lark.exceptions import LarkError

from mendq.lint.patch import (
    HOLDS,
    MADE,
    NO_LINE,
    Change,
    PatchResult,
    WantedValues,
    choose_only,
    make_diff,
    parse_value,
)
from mendq.lint.queues import POLICY
from mendq.lint.template import NotATemplate
from mendq.lint.terraform import ATTRIBUTE_BY_TYPE, to_hcl_literal
from mendq.model.queue import parts_of
from mendq.model.steps import CreateDlq
from mendq.notifications.change_lines import terraform_name

MOST_HCL_BYTES = 256 * 1024
# The attribute that a separate resource sets, by the type of that resource.
_ATTRIBUTE_BY_TYPE = {**ATTRIBUTE_BY_TYPE, "aws_sqs_queue_policy": POLICY}
# A parsed block has at least these parts: keyword, type, name, brace, body, brace.
_PARTS_OF_BLOCK = 6


class _Argument(NamedTuple):
    """Offsets in the file's text of one argument of a resource."""

    begin: int
    value_begin: int
    value_end: int


class _Block(NamedTuple):
    """One block of a Terraform file that has a type and a name, such as a resource."""

    kind: str
    # Type and name, such as `aws_sqs_queue.orders`.
    address: str
    arguments: Mapping[str, _Argument]
    # Offset behind the opening brace.
    body_begin: int


def make_patch(argument: str, wanted: WantedValues) -> PatchResult:
    """Return the changes that set the wanted values in the Terraform file `argument`.

    A queue is found by its literal name. If the name is an expression, only `wanted.named` finds
    the queue.

    Raises:
        NotThere: The file has no such queue.
        SeveralFit: Several queues have that name.
        NotATemplate: The file is not HCL, or it is too long.
        OSError: The file cannot be read.
    """
    with Path(argument).open("rb") as file:
        content = file.read(MOST_HCL_BYTES + 1)
    if len(content) > MOST_HCL_BYTES:
        raise NotATemplate(f"{argument}: longer than {MOST_HCL_BYTES:,} bytes")
    text = content.decode("utf-8-sig", "replace")
    queues = [block for block in _parse_blocks(argument, text) if block.kind == "aws_sqs_queue"]
    addresses = [queue.address for queue in queues]
    if wanted.named:
        found_by = "--resource"
        candidates = [address for address in addresses if address == wanted.named]
    else:
        found_by = "its name"
        name_literal = json.dumps(parts_of(wanted.queue_arn).name)
        candidates = [
            queue.address for queue in queues if _value_of(text, queue, "name") == name_literal
        ]
    address = choose_only(candidates, candidates, addresses, argument, wanted)
    changes = list[Change]()
    new_text = text
    for attribute, value in wanted.values.items():
        change = Change(argument, address, found_by, attribute, None, None, value, MADE)
        if attribute != CreateDlq.attribute:
            change, new_text = _set_argument(text, new_text, change)
        changes.append(change)
    return PatchResult(changes, make_diff(argument, text, new_text))


def _set_argument(original: str, text: str, change: Change) -> tuple[Change, str]:
    """Set one argument of a queue. If a separate resource sets the attribute, change that resource.

    Args:
        original: The file's text before all changes. The line number is of this text.
        text: The file's text after the earlier changes.
        change: What to change. Its `path` is the attribute.

    Returns:
        The change with path, line, old and new value, and the text after it. If the argument cannot
        be set or has the value already, the change has a note and the text is returned unchanged.
    """
    argument = terraform_name(change.path)
    new_value = to_hcl_literal(parse_value(change.new))
    blocks = _blocks_by_address(change.file, text)
    block = _find_block(text, blocks, change)
    path = f"{block.address}.{argument}"
    old_value = _value_of(text, block, argument)
    first_line = text[block.body_begin :].partition("\n")[0].strip()
    is_one_line_block = first_line not in {"", "}"} and not first_line.startswith(("#", "//"))
    if old_value is None and is_one_line_block:
        return replace(change, path=path, note=NO_LINE), text
    if old_value is None:
        addition = f"\n  {argument} = {new_value}"
        if first_line == "}":
            addition += "\n"
        new_text = text[: block.body_begin] + addition + text[block.body_begin :]
    else:
        place = block.arguments[argument]
        new_text = text[: place.value_begin] + new_value + text[place.value_end :]
    line = _line_in(original, change.file, block.address, argument)
    change = replace(change, path=path, line=line, old=old_value, new=new_value, note="")
    if old_value == new_value:
        return replace(change, note=HOLDS), text
    new_blocks = _blocks_by_address(change.file, new_text)
    is_set = (
        new_blocks.keys() == blocks.keys()
        and _value_of(new_text, new_blocks[block.address], argument) == new_value
    )
    if not is_set:
        return replace(change, note=NO_LINE), text
    return change, new_text


def _find_block(text: str, blocks: Mapping[str, _Block], change: Change) -> _Block:
    """Return the block that sets the attribute: a separate resource if there is one, or the queue.

    A separate resource belongs to the queue if its `queue_url` refers to the queue.
    """
    queue = blocks[change.resource]
    references = {f"{change.resource}.id", f"{change.resource}.url"}
    chosen = queue
    for block in blocks.values():
        sets_attribute = _ATTRIBUTE_BY_TYPE.get(block.kind) == change.path
        if sets_attribute and (_value_of(text, block, "queue_url") or "") in references:
            chosen = block
    return chosen


def _line_in(text: str, file: str, address: str, argument: str) -> int:
    """Return the line number of an argument, from 1.

    If the argument is not set, return the line of the block's opening brace.
    """
    block = _blocks_by_address(file, text)[address]
    place = block.arguments.get(argument)
    begin = block.body_begin if place is None else place.begin
    return text.count("\n", 0, begin) + 1


def _value_of(text: str, block: _Block, argument: str) -> str | None:
    """Return the source text of an argument's value. None if the block does not set it."""
    place = block.arguments.get(argument)
    return None if place is None else text[place.value_begin : place.value_end]


def _blocks_by_address(file: str, text: str) -> dict[str, _Block]:
    return {block.address: block for block in _parse_blocks(file, text)}


def _parse_blocks(file: str, text: str) -> list[_Block]:
    """Return all blocks with a type and a name, which are resources and data sources.

    Raises NotATemplate if the file is not HCL.
    """
    try:
        (body,) = parses_to_tree(text).children
        blocks = list[_Block]()
        for node in body.children:
            is_block = isinstance(node, Tree) and node.data == "block"
            if is_block and len(node.children) >= _PARTS_OF_BLOCK:
                blocks.append(_parse_block(text, node))
    except (LarkError, RecursionError, AttributeError, LookupError, ValueError) as error:
        raise NotATemplate(f"{file}: no HCL: {' '.join(str(error).split())[:200]}") from error
    return blocks


def _parse_block(text: str, tree: Any) -> _Block:
    """Return one block. Raises ValueError if an argument is set twice."""
    _, kind_node, name_node, brace, *rest = tree.children
    kind = _source_of(text, kind_node).strip('"')
    name = _source_of(text, name_node).strip('"')
    address = f"{kind}.{name}"
    arguments = dict[str, _Argument]()
    for part in rest:
        if not isinstance(part, Tree):
            continue
        for node in part.children:
            if not (isinstance(node, Tree) and node.data == "attribute"):
                continue
            name = _source_of(text, node.children[0])
            if name in arguments:
                raise ValueError(f"an argument stands twice in {address}")
            begin, _ = _span(text, node.children[0])
            value_begin, value_end = _span(text, node.children[-1])
            arguments[name] = _Argument(begin, value_begin, value_end)
    return _Block(kind, address, arguments, text.index("{", brace.start_pos) + 1)


def _source_of(text: str, node: Any) -> str:
    """Return the source text of a part of the tree."""
    begin, end = _span(text, node)
    return text[begin:end]


def _span(text: str, node: Any) -> tuple[int, int]:
    """Return the offsets at which a part of the tree begins and ends, without blanks at its end."""
    tokens = list(node.scan_values(lambda value: isinstance(value, Token)))
    return tokens[0].start_pos, len(text[: tokens[-1].end_pos].rstrip())
