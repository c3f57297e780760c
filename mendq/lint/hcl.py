"""Compute a patch of a Terraform file (.tf) for `mendq patch`. python-hcl2 parses the file.

https://developer.hashicorp.com/terraform/language/syntax/configuration
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hcl2 import parses_to_tree
from lark import Token, Tree
from lark.exceptions import LarkError

from mendq.lint.folder import explain_unread_file
from mendq.lint.hcl_parser import HclFile, parse_hcl
from mendq.lint.patch import (
    ALL_INSTANCES_NOTE,
    ALREADY_SET_NOTE,
    NEW_QUEUE_NOTE,
    NO_LINE_NOTE,
    PatchResult,
    QueueNotFound,
    TemplateChange,
    WantedValues,
    choose_only_candidate,
    make_diff,
    parse_attribute_value,
)
from mendq.lint.template import NotATemplate
from mendq.lint.terraform import to_hcl_literal
from mendq.lint.terraform_source import MOST_HCL_BYTES, list_terraform_files
from mendq.lint.terraform_types import ATTRIBUTE_BY_TERRAFORM_TYPE
from mendq.model.policy_limits import POLICY_ATTRIBUTE
from mendq.model.queue import parse_queue_arn
from mendq.model.steps import CreateDlq
from mendq.notifications.change_lines import name_terraform_argument

# An index of `count` or `for_each`.
_INDEX_REGEX = re.compile(r"\[[^\]]{0,256}\]")
_MODULES_REGEX = re.compile(r"^(?:module\.[\w-]{1,128}\.)*")
# A value that is one variable, and a variable anywhere in an expression.
_ONE_VARIABLE_REGEX = re.compile(r"var\.([\w-]{1,128})")
_VARIABLE_REGEX = re.compile(rf"(?<![\w.-]){_ONE_VARIABLE_REGEX.pattern}")
_MODULE_NAME_REGEX = re.compile(r"module\.([\w-]{1,128})")
# The attribute that a separate resource sets, by the type of that resource.
_ATTRIBUTE_BY_SEPARATE_RESOURCE_TYPE = {
    **ATTRIBUTE_BY_TERRAFORM_TYPE,
    "aws_sqs_queue_policy": POLICY_ATTRIBUTE,
}
# A parsed block has at least these parts: keyword, type, name, brace, body, brace.
_MINIMUM_BLOCK_PARTS = 6


class _ArgumentOffsets(NamedTuple):
    """Where one argument of a block is in the file's text: offsets in characters."""

    begin: int
    value_begin: int
    value_end: int


class _Block(NamedTuple):
    """One block of a Terraform file that has a type and a name: a resource or a data source."""

    type_name: str
    # Type and name, such as `aws_sqs_queue.orders`. A data source begins with `data.`, as Terraform
    # writes it, so that it is not taken for the resource of the same type and name.
    address: str
    # True if the block declares the resource, False if it only reads one.
    is_resource: bool
    offsets_by_argument: Mapping[str, _ArgumentOffsets]
    # Offset behind the opening brace.
    body_offset: int


def make_patch(path_argument: str, wanted_values: WantedValues) -> PatchResult:
    """Return the changes that would set the wanted values in Terraform files.

    `path_argument` is a file, or a folder: then each `.tf` file of it is searched. The queue is
    found by `wanted_values.requested_id`, if that is set, and otherwise by the literal name in the
    file. A name that is an expression cannot be found. An index in the requested address is left
    out, and so is the module: the block in the module's files declares all instances.

    Raises:
        QueueNotFound: The file has no such queue.
        SeveralQueuesFit: Several queues have that name.
        NotATemplate: The file is not HCL, or it is too long.
        OSError: The file cannot be read.
    """
    text_by_file = _read_texts(path_argument)
    queue_blocks = _list_queue_blocks(text_by_file)
    if not queue_blocks:
        raise QueueNotFound(
            f"{path_argument}: no .tf file here declares a queue. For one in a module, name "
            "the module's folder (mendq patch changes no .tf.json file)"
        )
    queue_addresses = list(dict.fromkeys(block.address for _, block in queue_blocks))
    if wanted_values.requested_id:
        found_by = "--resource"
        requested_address = _find_block_address(wanted_values.requested_id)
        candidate_addresses = [
            queue_address for queue_address in queue_addresses if queue_address == requested_address
        ]
    else:
        found_by = "its name"
        quoted_queue_name = json.dumps(parse_queue_arn(wanted_values.queue_arn).name)
        candidate_addresses = [
            queue_block.address
            for file, queue_block in queue_blocks
            if _get_value_text(text_by_file[file], queue_block, "name") == quoted_queue_name
        ]
    queue_address = choose_only_candidate(
        candidate_addresses, candidate_addresses, queue_addresses, path_argument, wanted_values
    )
    changes = list[TemplateChange]()
    new_text_by_file = dict(text_by_file)
    for attribute, value in wanted_values.value_by_attribute.items():
        file = _find_file_that_sets_attribute(text_by_file, queue_address, attribute)
        change = TemplateChange(
            file, queue_address, found_by, attribute, None, None, value, NEW_QUEUE_NOTE
        )
        if attribute != CreateDlq.attribute:
            change, new_text_by_file[file] = _set_argument(
                text_by_file[file],
                new_text_by_file[file],
                change,
                _find_module_name(wanted_values.requested_id),
            )
        changes.append(change)
    diff = list[str]()
    for file, text in text_by_file.items():
        diff += make_diff(file, text, new_text_by_file[file])
    return PatchResult(changes, diff)


def _list_queue_blocks(text_by_file: Mapping[str, str]) -> list[tuple[str, _Block]]:
    """Return the blocks that declare queues, each in a pair with its file."""
    files_and_blocks = list[tuple[str, _Block]]()
    for file, text in text_by_file.items():
        for block in _parse_blocks(file, text):
            if block.is_resource and block.type_name == "aws_sqs_queue":
                files_and_blocks.append((file, block))
    return files_and_blocks


def _read_texts(path_argument: str) -> dict[str, str]:
    """Return the text of the named file, or of each `.tf` file that Terraform reads in a folder.

    Files that override others are last. A pipe, and a link to a file outside the folder, are left
    out, as in `mendq lint`.
    """
    path = Path(path_argument)
    if not path.is_dir():
        return {path_argument: _read_text(path_argument)}
    return {
        str(file): _read_text(str(file))
        for file in list_terraform_files(path)
        if not explain_unread_file(file, path)
    }


def _find_block_address(address: str) -> str:
    """Return the address of the block that declares a resource, without module and index."""
    return _MODULES_REGEX.sub("", _INDEX_REGEX.sub("", address))


def _find_file_that_sets_attribute(
    text_by_file: Mapping[str, str], queue_address: str, attribute: str
) -> str:
    """Return the file in which an attribute of the queue must be set.

    It is the last file with a separate resource that sets it, or with a block of the queue that
    sets it (an override file). Otherwise it is the first file with a block of the queue.
    """
    argument_name = name_terraform_argument(attribute)
    file_of_queue = ""
    file_that_sets_attribute = ""
    file_of_separate_resource = ""
    for file, text in text_by_file.items():
        for block in _parse_blocks(file, text):
            if block.is_resource and block.address == queue_address:
                file_of_queue = file_of_queue or file
                if argument_name in block.offsets_by_argument:
                    file_that_sets_attribute = file
            elif _is_separate_resource(text, block, queue_address, attribute):
                file_of_separate_resource = file
    return file_of_separate_resource or file_that_sets_attribute or file_of_queue


def _read_text(path_argument: str) -> str:
    """Return the text of a Terraform file. Raises NotATemplate if it is too long, and OSError."""
    with Path(path_argument).open("rb") as file:
        file_bytes = file.read(MOST_HCL_BYTES + 1)
    if len(file_bytes) > MOST_HCL_BYTES:
        raise NotATemplate(f"{path_argument}: longer than {MOST_HCL_BYTES:,} bytes")
    return file_bytes.decode("utf-8-sig", "replace")


def _find_module_name(address: str) -> str:
    """Return the name of the innermost module in an address. Empty for the root module."""
    return "".join(_MODULE_NAME_REGEX.findall(_INDEX_REGEX.sub("", address))[-1:])


def _explain_variable(value_text: str | None, new_value: str) -> str:
    """Return a note about the variable in a value that a patch replaces; empty if there is none."""
    variable = _VARIABLE_REGEX.search(value_text or "")
    if variable is None:
        return ""
    name = variable.group(1)
    return (
        f"this replaces var.{name} with {new_value} for all callers and stages. To change only one "
        f"of them, set {name} in that caller or tfvars file, and leave this line as it is"
    )


def _explain_module_input(value_text: str | None, module_name: str, new_value: str) -> str:
    """Return a note if a value is an input that the caller of a module sets. Empty otherwise."""
    variable = _ONE_VARIABLE_REGEX.fullmatch(value_text or "")
    if variable is None or not module_name:
        return ""
    return (
        f"the value is an input of the module: set {variable.group(1)} = {new_value} in the block "
        f'module "{module_name}" that calls it. A line here would change the queues of all callers'
    )


def _set_argument(
    original_text: str, current_text: str, change: TemplateChange, module_name: str
) -> tuple[TemplateChange, str]:
    """Set one argument of a queue, or of the separate resource that sets the queue's attribute.

    Args:
        original_text: The file's text before all changes. The line number is of this text.
        current_text: The file's text after the earlier changes.
        change: The queue, the attribute (in `path`) and the new value.
        module_name: The module in whose instance the queue is, if the operator named one.

    Returns:
        The change with path, line, old and new value, and the text after it. If the argument cannot
        be set or has the value already, the change has a note and the text is returned unchanged.
    """
    argument_name = name_terraform_argument(change.path)
    new_value = to_hcl_literal(parse_attribute_value(change.new))
    block_by_address = _map_blocks_by_address(change.file, current_text)
    block_that_sets_attribute = _find_block_that_sets_attribute(
        current_text, block_by_address, change
    )
    argument_path = f"{block_that_sets_attribute.address}.{argument_name}"
    old_value = _get_value_text(current_text, block_that_sets_attribute, argument_name)
    first_body_line = (
        current_text[block_that_sets_attribute.body_offset :].partition("\n")[0].strip()
    )
    is_one_line_block = first_body_line not in {"", "}"} and not first_body_line.startswith(
        ("#", "//")
    )
    if old_value is None and is_one_line_block:
        return replace(change, path=argument_path, note=NO_LINE_NOTE), current_text
    if old_value is None:
        inserted_text = f"\n  {argument_name} = {new_value}"
        if first_body_line == "}":
            inserted_text += "\n"
        new_text = (
            current_text[: block_that_sets_attribute.body_offset]
            + inserted_text
            + current_text[block_that_sets_attribute.body_offset :]
        )
    else:
        argument_offsets = block_that_sets_attribute.offsets_by_argument[argument_name]
        new_text = (
            current_text[: argument_offsets.value_begin]
            + new_value
            + current_text[argument_offsets.value_end :]
        )
    line_number = _find_line_number(
        original_text, change.file, block_that_sets_attribute.address, argument_name
    )
    change = replace(
        change, path=argument_path, line=line_number, old=old_value, new=new_value, note=""
    )
    if old_value == new_value:
        return replace(change, note=ALREADY_SET_NOTE), current_text
    module_input_note = _explain_module_input(old_value, module_name, new_value)
    if module_input_note:
        return replace(change, note=module_input_note), current_text
    new_block_by_address = _map_blocks_by_address(change.file, new_text)
    is_value_set = (
        new_block_by_address.keys() == block_by_address.keys()
        and _get_value_text(
            new_text, new_block_by_address[block_that_sets_attribute.address], argument_name
        )
        == new_value
    )
    if not is_value_set:
        return replace(change, note=NO_LINE_NOTE), current_text
    if {"count", "for_each"} & block_that_sets_attribute.offsets_by_argument.keys():
        change = replace(change, note=ALL_INSTANCES_NOTE)
    variable_note = _explain_variable(old_value, new_value)
    if variable_note:
        change = replace(change, note="; ".join(filter(None, (change.note, variable_note))))
    return change, new_text


def _find_block_that_sets_attribute(
    hcl_text: str, block_by_address: Mapping[str, _Block], change: TemplateChange
) -> _Block:
    """Return the block in which the attribute must be set.

    It is the last separate resource in the file that sets the attribute and whose `queue_url`
    refers to the queue, or else the queue's own block.
    """
    block_that_sets_attribute = block_by_address.get(change.resource)
    for block in block_by_address.values():
        if _is_separate_resource(hcl_text, block, change.resource, change.path):
            block_that_sets_attribute = block
    if block_that_sets_attribute is None:
        raise NotATemplate(f"{change.file} does not declare {change.resource}")
    return block_that_sets_attribute


def _is_separate_resource(hcl_text: str, block: _Block, queue_address: str, attribute: str) -> bool:
    """Return True if a block is a separate resource that sets an attribute of the queue."""
    if not block.is_resource:
        return False
    queue_url = _get_value_text(hcl_text, block, "queue_url") or ""
    is_queues = _INDEX_REGEX.sub("", queue_url) in {f"{queue_address}.id", f"{queue_address}.url"}
    return is_queues and _ATTRIBUTE_BY_SEPARATE_RESOURCE_TYPE.get(block.type_name) == attribute


def _find_line_number(hcl_text: str, file: str, block_address: str, argument_name: str) -> int:
    """Return the line number, from 1, of an argument in the block with this address.

    If the argument is not set, return the line of the block's opening brace.
    """
    block = _map_blocks_by_address(file, hcl_text)[block_address]
    argument_offsets = block.offsets_by_argument.get(argument_name)
    begin_offset = block.body_offset if argument_offsets is None else argument_offsets.begin
    return hcl_text.count("\n", 0, begin_offset) + 1


def _get_value_text(hcl_text: str, block: _Block, argument_name: str) -> str | None:
    """Return the value of an argument as it is written. None if the block does not set it."""
    argument_offsets = block.offsets_by_argument.get(argument_name)
    return (
        None
        if argument_offsets is None
        else hcl_text[argument_offsets.value_begin : argument_offsets.value_end]
    )


def _map_blocks_by_address(file: str, hcl_text: str) -> dict[str, _Block]:
    return {block.address: block for block in _parse_blocks(file, hcl_text)}


def _parse_blocks(file: str, hcl_text: str) -> list[_Block]:
    """Return all resources and data sources of a Terraform file.

    Raises NotATemplate if the file is not HCL.
    """
    # Its error names the line in a sentence.
    parse_hcl(HclFile(file, hcl_text))
    try:
        (body,) = parses_to_tree(_end_with_newline(hcl_text)).children
        blocks = list[_Block]()
        for body_node in body.children:
            is_block = isinstance(body_node, Tree) and body_node.data == "block"
            if is_block and len(body_node.children) >= _MINIMUM_BLOCK_PARTS:
                blocks.append(_parse_block(hcl_text, body_node))
    except (LarkError, RecursionError, AttributeError, LookupError, ValueError) as error:
        line_number = getattr(error, "line", None)
        place_text = f"{file}, line {line_number}" if isinstance(line_number, int) else file
        raise NotATemplate(
            f"{place_text}: cannot parse this syntax. Run `terraform validate`. If it passes, "
            "`mendq patch` does not support the expression: change the value by hand"
        ) from error
    return blocks


def _end_with_newline(hcl_text: str) -> str:
    """Return the text with a newline at its end, which python-hcl2 needs behind a heredoc."""
    return hcl_text if hcl_text.endswith("\n") else f"{hcl_text}\n"


def _parse_block(hcl_text: str, block_tree: Any) -> _Block:
    """Convert one block of the parse tree. Raises ValueError if it sets an argument twice."""
    keyword_node, type_node, name_node, opening_brace, *body_parts = block_tree.children
    keyword = _get_node_text(hcl_text, keyword_node)
    type_name = _get_node_text(hcl_text, type_node).strip('"')
    block_name = _get_node_text(hcl_text, name_node).strip('"')
    is_resource = keyword == "resource"
    address = f"{type_name}.{block_name}" if is_resource else f"{keyword}.{type_name}.{block_name}"
    offsets_by_argument = dict[str, _ArgumentOffsets]()
    for body_part in body_parts:
        if not isinstance(body_part, Tree):
            continue
        for argument_node in body_part.children:
            if not (isinstance(argument_node, Tree) and argument_node.data == "attribute"):
                continue
            argument_name = _get_node_text(hcl_text, argument_node.children[0])
            if argument_name in offsets_by_argument:
                raise ValueError(f"an argument stands twice in {address}")
            begin_offset, _ = _find_node_offsets(hcl_text, argument_node.children[0])
            value_begin_offset, value_end_offset = _find_node_offsets(
                hcl_text, argument_node.children[-1]
            )
            offsets_by_argument[argument_name] = _ArgumentOffsets(
                begin_offset, value_begin_offset, value_end_offset
            )
    body_offset = hcl_text.index("{", opening_brace.start_pos) + 1
    return _Block(type_name, address, is_resource, offsets_by_argument, body_offset)


def _get_node_text(hcl_text: str, node: Any) -> str:
    """Return the text from which a part of the parse tree was made."""
    begin_offset, end_offset = _find_node_offsets(hcl_text, node)
    return hcl_text[begin_offset:end_offset]


def _find_node_offsets(hcl_text: str, node: Any) -> tuple[int, int]:
    """Return the offsets in the text at which a part of the parse tree begins and ends.

    Whitespace at its end is not included.
    """
    node_tokens = list(node.scan_values(lambda value: isinstance(value, Token)))
    return node_tokens[0].start_pos, len(hcl_text[: node_tokens[-1].end_pos].rstrip())
