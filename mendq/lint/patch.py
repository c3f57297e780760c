"""Compute the patch of a template for `mendq patch`.

The patch sets the values that Mendq wrote to a queue. No file is written: the text is changed in
memory and parsed again. A line is offered only if the parsed result has exactly the wanted value
and is otherwise unchanged. If not, a person must write the line.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml

from mendq.lint.decode import read_template
from mendq.lint.files import TemplateSource, list_sources
from mendq.lint.queues import POLICY, DeclaredQueues
from mendq.lint.template import NotATemplate, to_list
from mendq.lint.terraform import TerraformPlan, to_hcl_literal
from mendq.lint.values import DeployTarget
from mendq.model.queue import parts_of
from mendq.model.steps import CreateDlq
from mendq.notifications.configuration import differences

# Notes on a change.
HOLDS = "the template holds it already"
NO_LINE = "it has no line of its own: set it by hand"
MADE = "Mendq made this queue: declare it beside the other, or import it"
_NO_LINES = "a plan has no lines: name the .tf file for them"
_NO_POLICY = "the template has no policy that is this queue's alone: write one"
# A diff with a longer line, in characters, is not shown.
_MOST_LINE_CHARACTERS = 1_000
# Names that an error lists.
_MOST_NAMES = 5
Candidate = TypeVar("Candidate")


class NotThere(Exception):
    """The template declares no resource that is known to be the queue."""


class SeveralFit(Exception):
    """Several resources of the template may be the queue."""


@dataclass(frozen=True)
class WantedValues:
    """Values that a template should set on one queue."""

    queue_arn: str
    # Values by attribute, in the form in which SQS returns them.
    values: Mapping[str, str]
    # Stack and logical ID in the tags that CloudFormation sets on a queue. None without the tag.
    stack: str | None = None
    resource: str | None = None
    # Logical ID or address that the operator gave with --resource. Empty if not given.
    named: str = ""


@dataclass(frozen=True)
class Change:
    """Change of one property of a template."""

    file: str
    # Logical ID or address of the queue.
    resource: str
    # How the queue was found: `its ARN`, `its tags`, `its name` or `--resource`.
    found_by: str
    # Path or address of the property.
    path: str
    # Line in the unchanged file, from 1. None if it is not known.
    line: int | None
    # Value in the template. None if it is not set or not known.
    old: str | None
    new: str
    # Why there is no line to change. Empty if there is one.
    note: str = ""

    @property
    def is_left_to_people(self) -> bool:
        """True if a person must write the line."""
        return self.note in (NO_LINE, _NO_POLICY)


class PatchResult(NamedTuple):
    """All changes, and a unified diff of the changes that have a line."""

    changes: list[Change]
    diff: list[str]


class _Match(NamedTuple):
    """A queue in a template that may be the queue to patch."""

    # How certain the match is: 0 is the most certain.
    rank: int
    found_by: str
    source: TemplateSource
    declared: DeclaredQueues
    arn: str

    @property
    def logical_id(self) -> str:
        return self.declared.names.queues[self.arn]


class _Edit(NamedTuple):
    """The text of a template after one change."""

    text: str
    # Line that is changed or inserted, from 1.
    line: int
    # Source text of the replaced value. None if it is inserted.
    old: str | None


def make_patch(argument: str, wanted: WantedValues) -> PatchResult:
    """Return the changes that set the wanted values in a template.

    Args:
        argument: A template, a plan, a cdk.out folder, or `-` for standard input.
        wanted: The queue and its values.

    Raises:
        NotThere: No declared resource is known to be the queue.
        SeveralFit: Several resources may be the queue.
        NotATemplate: An input cannot be read as a template.
        OSError: A file cannot be read.
    """
    matches = list[_Match]()
    logical_ids = list[str]()
    for source in list_sources(argument):
        try:
            template = read_template(source.content)
            declared = DeclaredQueues(template, replace(source.target, **template.deploy_target))
        except NotATemplate as error:
            raise NotATemplate(f"{source.file}: {error}") from error
        matches += _find_matches(declared, source, wanted)
        logical_ids += declared.names.queues.values()
    surest_rank = min((match.rank for match in matches), default=0)
    surest = [match for match in matches if match.rank == surest_rank]
    names = [f"{match.logical_id} ({match.source.file})" for match in surest]
    match = choose_only(surest, names, logical_ids, argument, wanted)
    why_no_lines = _explain_no_lines(match, argument)
    original = "" if why_no_lines else match.source.content.decode("utf-8-sig")
    changes = list[Change]()
    text = original
    for attribute, value in wanted.values.items():
        change, text = _set_attribute(original, text, match, attribute, value)
        note = change.note or why_no_lines
        changes.append(replace(change, file=match.source.file, found_by=match.found_by, note=note))
    return PatchResult(changes, make_diff(match.source.file, original, text))


def _explain_no_lines(match: _Match, argument: str) -> str:
    """Return why no line of this source can be changed. Empty if lines can be changed."""
    if Path(argument).is_dir():
        construct = match.declared.template.resources[match.logical_id].construct
        place = construct or match.logical_id
        return f"cdk synth writes this file: set it in the app, at the construct {place}"
    return _NO_LINES if isinstance(match.declared.template, TerraformPlan) else ""


def choose_only(
    candidates: Sequence[Candidate],
    candidate_names: Sequence[str],
    all_names: Sequence[str],
    argument: str,
    wanted: WantedValues,
) -> Candidate:
    """Return the only candidate.

    Raises NotThere if there is none, and SeveralFit if there are several. The error lists the names
    that the operator can choose from.
    """
    if len(candidates) == 1:
        return candidates[0]
    name = parts_of(wanted.queue_arn).name
    ask = "say which by --resource"
    shown = ", ".join((candidate_names or all_names)[:_MOST_NAMES])
    if candidates:
        raise SeveralFit(f"{argument}: {len(candidates)} queues may be {name}, {ask}: {shown}")
    there = f"{ask} if it is one of: {shown}" if all_names else "it declares none"
    raise NotThere(f"{argument}: no queue is known to be {wanted.named or name}; {there}")


def _find_matches(
    declared: DeclaredQueues, source: TemplateSource, wanted: WantedValues
) -> Iterator[_Match]:
    """Yield the queues in a template that may be the queue to patch, with the match's certainty.

    Nothing is yielded if the template is for another account or region.
    """
    parts = parts_of(wanted.queue_arn)
    unknown_target = DeployTarget()
    is_account = source.target.account in (unknown_target.account, parts.account)
    is_region = source.target.region in (unknown_target.region, parts.region)
    if not (is_account and is_region):
        return
    # Addresses by ARN, which only a Terraform plan knows.
    addresses: Mapping[str, str] = getattr(declared.template, "arns", {})
    for arn, logical_id in declared.names.queues.items():
        if wanted.named:
            if logical_id == wanted.named:
                yield _Match(0, "--resource", source, declared, arn)
        elif addresses.get(wanted.queue_arn) == logical_id:
            yield _Match(0, "its ARN", source, declared, arn)
        elif logical_id == wanted.resource and source.stack in ("", wanted.stack):
            yield _Match(1, "its tags", source, declared, arn)
        elif logical_id not in addresses.values():
            # The name decides only if the ARN is not known: a known ARN is another queue's.
            name_node = declared.template.resources[logical_id].properties.get("QueueName")
            if declared.names.text_or_empty(name_node) == parts.name:
                yield _Match(2, "its name", source, declared, arn)


def _set_attribute(
    original: str, text: str, match: _Match, attribute: str, value: str
) -> tuple[Change, str]:
    """Set one attribute of the queue.

    Args:
        original: The file's text before all changes. The change's line and old value are of this
            text. Empty if lines cannot be changed.
        text: The file's text after the earlier changes.
        match: The queue.
        attribute: The attribute to set.
        value: Its value, as SQS returns it.

    Returns:
        The change, and the text after it. If no line can be changed, the change has a note and the
        text is returned unchanged.
    """
    template = match.declared.template
    queue = match.declared.queues[match.arn]
    policy = queue.policy if attribute == POLICY else None
    logical_id = queue.resource.logical_id
    if policy is None:
        keys = ["Resources", logical_id, "Properties", attribute]
        is_set = attribute in queue.resource.properties
    else:
        keys = ["Resources", policy.logical_id, "Properties", "PolicyDocument"]
        is_set = True
    # `dict.get` does not raise NotKnown for an attribute of unknown value.
    old_value = dict.get(queue.attributes, attribute) if is_set else None
    old = old_value if isinstance(old_value, str) else None
    document = parse_value(value)
    is_plan = isinstance(template, TerraformPlan)
    new = to_hcl_literal(document) if is_plan else json.dumps(document)
    change = Change("", logical_id, "", *template.find_place(*keys), old, new)
    if attribute == CreateDlq.attribute:
        return replace(change, path=attribute, line=None, new=value, note=MADE), text
    if old is not None and not differences({attribute: old}, {attribute: value}):
        return replace(change, note=HOLDS), text
    if attribute == POLICY:
        policy_queues = to_list(policy and policy.properties.get("Queues"))
        if len(policy_queues) != 1:
            return replace(change, note=_NO_POLICY), text
    if not text:
        return change, text
    edit = _edit_yaml(text, keys, document)
    if edit is None or not _says_exactly(text, edit.text, keys, document):
        return replace(change, note=NO_LINE), text
    first_edit = _edit_yaml(original, keys, document) or edit
    return replace(change, line=first_edit.line, old=first_edit.old), edit.text


def parse_value(text: str) -> Any:
    """Return the value of a text that is a JSON integer, boolean or object.

    Any other text is returned unchanged.
    """
    try:
        document = json.loads(text)
    except ValueError:
        return text
    return document if isinstance(document, int | dict) else text


def _edit_yaml(text: str, keys: Sequence[str], document: Any) -> _Edit | None:
    """Return the edit of a YAML or JSON text that sets the value below `keys` to `document`.

    Missing keys are inserted. None if the text cannot be parsed, or if there is no mapping into
    which a key can be inserted.
    """
    if "\r" in text.replace("\r\n", ""):
        return None
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def offset(mark: Any) -> int:
        return int(line_starts[mark.line] + mark.column)

    key: Any = None
    pairs = list[Any]()
    missing_keys = list(keys)
    while missing_keys:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        pair = next((pair for pair in pairs if pair[0].value == missing_keys[0]), None)
        if pair is None:
            break
        key, node = pair
        del missing_keys[0]
    if not missing_keys:
        # All keys exist: replace the value of the last one.
        begin = offset(key.start_mark)
        end = len(text[: offset(_last_node(node).end_mark)].rstrip())
        old = text[offset(node.start_mark) : end]
        replacement = f"{text[begin : offset(key.end_mark)]}: {json.dumps(document)}"
        return _Edit(text[:begin] + replacement + text[end:], key.start_mark.line + 1, old)
    if not pairs:
        return None
    # Insert the first missing key before the first key of the mapping that must contain it.
    for missing_key in reversed(missing_keys[1:]):
        document = {missing_key: document}
    first_mark = pairs[0][0].start_mark
    begin = offset(first_mark)
    indentation = text[text.rfind("\n", 0, begin) + 1 : begin]
    has_own_line = not indentation.strip()
    insertion = json.dumps(missing_keys[0]) if text[begin] == '"' else missing_keys[0]
    insertion += f": {json.dumps(document)}"
    if node.flow_style:
        insertion += ","
    insertion += f"\n{indentation}" if has_own_line else " "
    return _Edit(text[:begin] + insertion + text[begin:], first_mark.line + 1, None)


def _last_node(node: Any) -> Any:
    """Return the node that ends a value: in YAML's block style, the last node inside the value."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _says_exactly(before: str, after: str, keys: Sequence[str], document: Any) -> bool:
    """Return True if the only change from `before` to `after` is `document` as the value of `keys`.

    Both texts are decoded and compared. False if one cannot be decoded.
    """
    try:
        expected = json.loads(json.dumps(read_template(before.encode()).root))
        actual = json.loads(json.dumps(read_template(after.encode()).root))
    except NotATemplate:
        return False
    node = expected
    for key in keys[:-1]:
        node = node.setdefault(key, {})
    # Decode the document like a template, in which scalars are texts.
    decoded = read_template(json.dumps({"Resources": {"it": document}}).encode()).root
    node[keys[-1]] = decoded["Resources"]["it"]
    # Compare as text, because `true` and `1` are equal in Python.
    return json.dumps(expected, sort_keys=True) == json.dumps(actual, sort_keys=True)


def _is_work_tree(git: Path) -> bool:
    """Return True if `.git` is a file, as in an additional work tree of git."""
    return git.is_file() and git.read_bytes().startswith(b"gitdir: ")


def make_diff(file: str, before: str, after: str) -> list[str]:
    """Return a unified diff for `git apply`.

    Its paths are relative to the git work tree that contains the file. Without a work tree they are
    relative to the current folder if it contains the file, else to the file's own folder. Empty if
    nothing changes, if the path has unprintable characters, or if a line is too long to read.
    """
    path = Path(file).resolve()
    current_folder = Path.cwd()
    work_trees = [
        folder
        for folder in path.parents
        if (folder / ".git/HEAD").is_file() or _is_work_tree(folder / ".git")
    ]
    if work_trees:
        root = work_trees[0]
    elif current_folder in path.parents:
        root = current_folder
    else:
        root = path.parent
    name = path.relative_to(root).as_posix()
    old_lines = re.split("\r?\n", before.removesuffix("\n"))
    new_lines = re.split("\r?\n", after.removesuffix("\n"))
    lines = list(unified_diff(old_lines, new_lines, f"a/{name}", f"b/{name}", lineterm=""))
    is_readable = all(len(line) <= _MOST_LINE_CHARACTERS for line in lines)
    # For git a name ends at a tab or a line's end, so it would look for another file.
    if not lines or not name.isprintable() or not is_readable:
        return []
    # Without this first line git looks for the path below the current folder.
    return [f"diff --git a/{name} b/{name}", *lines]
