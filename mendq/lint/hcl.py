"""The same lines in a file of Terraform's, which python-hcl2 reads.

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
    difference,
    document_of,
    only,
)
from mendq.lint.queues import POLICY
from mendq.lint.template import NotATemplate
from mendq.lint.terraform import BESIDE, literal_of
from mendq.model.queue import parts_of
from mendq.model.steps import CreateDlq
from mendq.notifications.change_lines import terraform_name

MOST_HCL_BYTES = 256 * 1024
_SETS = {**BESIDE, "aws_sqs_queue_policy": POLICY}


class _Block(NamedTuple):
    """A resource; of each argument where it begins, and its value, and where that ends."""

    kind: str
    address: str
    arguments: Mapping[str, tuple[int, int, int]]
    inside: int


def make_patch(argument: str, wanted: WantedValues) -> PatchResult:
    """Raise NotThere, SeveralFit, NotATemplate, OSError.

    Of a queue whose name is worked out nobody knows which it is, unless a person says so.
    """
    with Path(argument).open("rb") as opened:
        content = opened.read(MOST_HCL_BYTES + 1)
    if len(content) > MOST_HCL_BYTES:
        raise NotATemplate(f"{argument}: longer than {MOST_HCL_BYTES:,} bytes")
    text = content.decode("utf-8-sig", "replace")
    queues = [each for each in _blocks(argument, text) if each.kind == "aws_sqs_queue"]
    name, addresses = json.dumps(parts_of(wanted.queue_arn).name), [each.address for each in queues]
    fits = [
        each.address
        for each in queues
        if (wanted.named == each.address if wanted.named else _value(text, each, "name") == name)
    ]
    address = only(fits, fits, addresses, argument, wanted)
    how = "--resource" if wanted.named else "its name"
    changes, after = list[Change](), text
    for attribute, value in wanted.values.items():
        change = Change(argument, address, how, attribute, None, None, value, MADE)
        if attribute != CreateDlq.attribute:
            change, after = _set(text, after, change)
        changes.append(change)
    return PatchResult(changes, difference(argument, text, after))


def _set(first: str, text: str, said: Change) -> tuple[Change, str]:
    """One argument, in the queue's block or in the one beside it; its line is of the first text."""
    argument, new = terraform_name(said.path), literal_of(document_of(said.new))
    blocks = {each.address: each for each in _blocks(said.file, text)}
    block = blocks[said.resource]
    for each in blocks.values():
        its_queue = _value(text, each, "queue_url") or ""
        ours = {f"{said.resource}.id", f"{said.resource}.url"}
        if _SETS.get(each.kind) == said.path and its_queue in ours:
            block = each
    old, inside = _value(text, block, argument), block.inside
    beside = text[inside:].partition("\n")[0].strip()
    if old is None and beside not in {"", "}"} and not beside.startswith(("#", "//")):
        return replace(said, path=f"{block.address}.{argument}", note=NO_LINE), text
    _, begin, end = block.arguments.get(argument) or (inside, inside, inside)
    added = f"\n  {argument} = {new}" + "\n" * (beside == "}")
    after = text[:begin] + (added if old is None else new) + text[end:]
    there = next(each for each in _blocks(said.file, first) if each.address == block.address)
    at = there.arguments.get(argument, (there.inside,))[0]
    line = first.count("\n", 0, at) + 1
    path = f"{block.address}.{argument}"
    change = replace(said, path=path, line=line, old=old, new=new, note="")
    if old == new:
        return replace(change, note=HOLDS), text
    again = {each.address: each for each in _blocks(said.file, after)}
    is_so = again.keys() == blocks.keys() and _value(after, again[block.address], argument) == new
    return (change, after) if is_so else (replace(change, note=NO_LINE), text)


def _value(text: str, block: _Block, argument: str) -> str | None:
    _, begin, end = block.arguments.get(argument, (0, 0, 0))
    return text[begin:end] if end else None


def _blocks(file: str, text: str) -> list[_Block]:
    """The resources that a file declares; raises NotATemplate."""
    try:
        (body,) = parses_to_tree(text).children
        trees = [each for each in body.children if isinstance(each, Tree)]
        return [
            _block(text, each) for each in trees if each.data == "block" and len(each.children) > 5
        ]
    except (LarkError, RecursionError, AttributeError, LookupError, ValueError) as error:
        raise NotATemplate(f"{file}: no HCL: {' '.join(str(error).split())[:200]}") from error


def _block(text: str, tree: Any) -> _Block:
    _, kind, name, brace, *rest = tree.children
    said = [text[slice(*_span(text, each))].strip('"') for each in (kind, name)]
    body = [each for one in rest if isinstance(one, Tree) for each in one.children]
    given = [each for each in body if isinstance(each, Tree) and each.data == "attribute"]
    spans = (
        (each.children[0], (_span(text, each)[0], *_span(text, each.children[-1])))
        for each in given
    )
    arguments = {text[slice(*_span(text, name))]: span for name, span in spans}
    if len(arguments) < len(given):
        raise ValueError(f"an argument stands twice in {'.'.join(said)}")
    return _Block(said[0], ".".join(said), arguments, text.index("{", brace.start_pos) + 1)


def _span(text: str, node: Any) -> tuple[int, int]:
    """Where a part of the tree begins and ends, without what is blank behind it."""
    tokens = list(node.scan_values(lambda each: isinstance(each, Token)))
    return tokens[0].start_pos, len(text[: tokens[-1].end_pos].rstrip())
