"""Compute the patch of a template for `mendq patch`.

The patch sets the values that Mendq wrote to a queue. No file is written: Mendq changes the text in
memory and parses the new text. The patch contains a line only if the new text has exactly the
wanted value and no other difference. Otherwise a person must write the line.
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

from mendq.lint.decode import read_template, read_template_source
from mendq.lint.files import TemplateSource, list_template_sources
from mendq.lint.queues import DeclaredQueues
from mendq.lint.template import NotATemplate, Template, to_list
from mendq.lint.terraform import TerraformPlan, to_hcl_literal
from mendq.lint.values import DeployTarget
from mendq.model.policy_limits import POLICY_ATTRIBUTE
from mendq.model.queue import parse_queue_arn
from mendq.model.steps import CreateDlq
from mendq.notifications.configuration import describe_differences

# Notes on a change.
ALREADY_SET_NOTE = "the template holds it already"
ALL_INSTANCES_NOTE = "the block declares several queues: the line changes all of them"
NO_LINE_NOTE = "it has no line of its own: set it by hand"
NEW_QUEUE_NOTE = "Mendq made this queue: declare it beside the other, or import it"
_PLAN_WITHOUT_LINES_NOTE = "a plan has no lines: name the .tf file for them"
_NO_OWN_POLICY_NOTE = "the template has no policy that is this queue's alone: write one"
# A diff with a longer line, in characters, is not shown.
_MAXIMUM_DIFF_LINE_CHARACTERS = 1_000
# Marks the last line of a file that has no newline behind it. No template has this character.
_END_WITHOUT_NEWLINE = "\0"
# Names that an error lists.
_MAXIMUM_LISTED_NAMES = 5
Candidate = TypeVar("Candidate")


class QueueNotFound(Exception):
    """No resource in the template is known to be the queue to patch."""


class SeveralQueuesFit(Exception):
    """Several resources in the template may be the queue to patch."""


@dataclass(frozen=True)
class WantedValues:
    """The attribute values that a template should set on one queue, and how to find the queue."""

    queue_arn: str
    # Values by attribute, in the form in which SQS returns them.
    value_by_attribute: Mapping[str, str]
    # Stack and logical ID in the tags that CloudFormation sets on a queue. None without the tag.
    tagged_stack: str | None = None
    tagged_logical_id: str | None = None
    # Logical ID or address that the operator gave with --resource. Empty if not given.
    requested_id: str = ""


@dataclass(frozen=True)
class TemplateChange:
    """A change of one property of a template, or a note why there is no line to change."""

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
        """True if a person must write the line, because Mendq cannot change one safely."""
        return self.note in (NO_LINE_NOTE, _NO_OWN_POLICY_NOTE)


class PatchResult(NamedTuple):
    """All changes, and the lines of a unified diff with those changes that have a line."""

    changes: list[TemplateChange]
    diff: list[str]


class _QueueMatch(NamedTuple):
    """A queue in a template that may be the queue to patch."""

    # How certain the match is: 0 is the most certain.
    rank: int
    found_by: str
    template_source: TemplateSource
    declared_queues: DeclaredQueues
    queue_arn: str

    @property
    def logical_id(self) -> str:
        return self.declared_queues.resolver.queue_id_by_arn[self.queue_arn]


class _TextEdit(NamedTuple):
    """The text of a template after one change, and the place of the change."""

    text: str
    # Line that is changed or inserted, from 1.
    line: int
    # Source text of the replaced value. None if it is inserted.
    old: str | None


def make_patch(template_argument: str, wanted_values: WantedValues) -> PatchResult:
    """Return the changes that would set the wanted values in a template.

    Args:
        template_argument: A template, a plan, a cdk.out folder, or `-` for standard input.
        wanted_values: The queue and its values.

    Raises:
        QueueNotFound: No declared resource is known to be the queue.
        SeveralQueuesFit: Several resources may be the queue.
        NotATemplate: An input cannot be read as a template.
        OSError: A file cannot be read.
    """
    queue_matches = list[_QueueMatch]()
    queue_logical_ids = list[str]()
    for template_source in list_template_sources(template_argument):
        try:
            template = read_template_source(template_source)
            declared_queues = DeclaredQueues(
                template, replace(template_source.deploy_target, **template.deploy_target)
            )
        except NotATemplate as error:
            raise NotATemplate(f"{template_source.file}: {error}") from error
        queue_matches += _find_queue_matches(declared_queues, template_source, wanted_values)
        queue_logical_ids += declared_queues.resolver.queue_id_by_arn.values()
    best_rank = min((match.rank for match in queue_matches), default=0)
    best_matches = [match for match in queue_matches if match.rank == best_rank]
    names_of_best_matches = [
        f"{match.logical_id} ({match.template_source.file})" for match in best_matches
    ]
    match = choose_only_candidate(
        best_matches, names_of_best_matches, queue_logical_ids, template_argument, wanted_values
    )
    no_lines_reason = _explain_no_lines(match, template_argument)
    original_text = "" if no_lines_reason else match.template_source.content.decode("utf-8-sig")
    changes = list[TemplateChange]()
    new_text = original_text
    for attribute, value in wanted_values.value_by_attribute.items():
        change, new_text = _set_attribute(original_text, new_text, match, attribute, value)
        note = change.note or no_lines_reason
        changes.append(
            replace(change, file=match.template_source.file, found_by=match.found_by, note=note)
        )
    return PatchResult(changes, make_diff(match.template_source.file, original_text, new_text))


def _explain_no_lines(match: _QueueMatch, template_argument: str) -> str:
    """Return why the lines of the matched template cannot be changed. Empty if they can.

    A plan has no lines, the files in a cdk.out folder are written by `cdk synth`, and SAM generates
    some queues that no file declares.
    """
    template = match.declared_queues.template
    if template.find_stack_id(match.logical_id):
        file = template.find_place("Resources", match.logical_id).file
        return f"a nested stack declares this queue: run `mendq patch` with {file}"
    if template.is_generated(match.logical_id):
        place = template.find_place("Resources", match.logical_id)
        return (
            f"SAM makes this queue, with SQS's defaults, from {place.path}: declare a queue of "
            "your own with this setting, and name it there"
        )
    if Path(template_argument).is_dir():
        construct_or_id = template.resources[match.logical_id].construct or match.logical_id
        return f"cdk synth writes this file: set it in the app, at the construct {construct_or_id}"
    return _PLAN_WITHOUT_LINES_NOTE if isinstance(template, TerraformPlan) else ""


def choose_only_candidate(
    candidates: Sequence[Candidate],
    candidate_names: Sequence[str],
    all_queue_names: Sequence[str],
    template_argument: str,
    wanted_values: WantedValues,
) -> Candidate:
    """Return the only candidate for the queue to patch.

    Args:
        candidates: The resources that may be the queue.
        candidate_names: Their names.
        all_queue_names: The names of all queues that the template declares.
        template_argument: The template, as the operator named it.
        wanted_values: The queue and its values.

    Raises:
        QueueNotFound: There is no candidate. The message lists names from `all_queue_names`.
        SeveralQueuesFit: There are several. The message lists names from `candidate_names`.
    """
    if len(candidates) == 1:
        return candidates[0]
    queue_name = parse_queue_arn(wanted_values.queue_arn).name
    option_hint = "say which by --resource"
    listed_names = ", ".join((candidate_names or all_queue_names)[:_MAXIMUM_LISTED_NAMES])
    if candidates:
        matches_text = f"{len(candidates)} queues may be {queue_name}"
        raise SeveralQueuesFit(
            f"{template_argument}: {matches_text}, {option_hint}: {listed_names}"
        )
    not_found_hint = (
        f"{option_hint} if it is one of: {listed_names}" if all_queue_names else "it declares none"
    )
    wanted_name = wanted_values.requested_id or queue_name
    raise QueueNotFound(
        f"{template_argument}: no queue is known to be {wanted_name}; {not_found_hint}"
    )


def _find_queue_matches(
    declared_queues: DeclaredQueues, template_source: TemplateSource, wanted_values: WantedValues
) -> Iterator[_QueueMatch]:
    """Yield the queues of a template that may be the queue to patch, each with a rank.

    The rank tells how certain the match is. Nothing is yielded if the cdk.out folder says that the
    template is for another account or region.
    """
    arn_parts = parse_queue_arn(wanted_values.queue_arn)
    unknown_target = DeployTarget()
    is_same_account = template_source.deploy_target.account in (
        unknown_target.account,
        arn_parts.account,
    )
    is_same_region = template_source.deploy_target.region in (
        unknown_target.region,
        arn_parts.region,
    )
    if not (is_same_account and is_same_region):
        return
    template = declared_queues.template
    address_by_arn = _get_address_by_arn(template)
    for queue_arn, logical_id in declared_queues.resolver.queue_id_by_arn.items():
        has_tagged_id = logical_id == wanted_values.tagged_logical_id
        if wanted_values.requested_id:
            if logical_id == wanted_values.requested_id:
                yield _QueueMatch(0, "--resource", template_source, declared_queues, queue_arn)
        elif address_by_arn.get(wanted_values.queue_arn) == logical_id:
            yield _QueueMatch(0, "its ARN", template_source, declared_queues, queue_arn)
        elif has_tagged_id and template_source.stack_name in ("", wanted_values.tagged_stack):
            yield _QueueMatch(1, "its tags", template_source, declared_queues, queue_arn)
        elif logical_id not in address_by_arn.values():
            # The name decides only if the ARN is not known: a known ARN is another queue's.
            name_node = template.resources[logical_id].properties.get("QueueName")
            if declared_queues.resolver.resolve_text_or_empty(name_node) == arn_parts.name:
                yield _QueueMatch(2, "its name", template_source, declared_queues, queue_arn)


def _get_address_by_arn(template: Template) -> Mapping[str, str]:
    """Return the Terraform addresses of existing queues, by queue ARN.

    Empty for a CloudFormation template, which does not contain the ARNs of existing queues.
    """
    return template.address_by_arn if isinstance(template, TerraformPlan) else {}


def _set_attribute(
    original_text: str, current_text: str, match: _QueueMatch, attribute: str, value: str
) -> tuple[TemplateChange, str]:
    """Set one attribute of the queue in the text of a template.

    Args:
        original_text: The file's text before all changes. The change's line and old value are those
            of this text. Empty if lines cannot be changed.
        current_text: The file's text after the earlier changes.
        match: The queue.
        attribute: The attribute to set.
        value: Its value, as SQS returns it.

    Returns:
        The change, and the text after it. If the value is set already or no line can be changed,
        the text is unchanged and the change has a note. If `current_text` is empty, the caller
        must add the note.
    """
    queue = match.declared_queues.queue_by_arn[match.queue_arn]
    policy_resource = queue.policy if attribute == POLICY_ATTRIBUTE else None
    new_value = parse_attribute_value(value)
    property_keys, change = _describe_attribute_change(match, attribute, new_value)
    if attribute == CreateDlq.attribute:
        return replace(
            change, path=attribute, line=None, new=value, note=NEW_QUEUE_NOTE
        ), current_text
    if change.old is not None and not describe_differences(
        {attribute: change.old}, {attribute: value}
    ):
        return replace(change, note=ALREADY_SET_NOTE), current_text
    if attribute == POLICY_ATTRIBUTE:
        policy_queue_references = to_list(
            policy_resource and policy_resource.properties.get("Queues")
        )
        policy_id = policy_resource.logical_id if policy_resource else ""
        if len(policy_queue_references) != 1 or match.declared_queues.template.is_generated(
            policy_id
        ):
            return replace(change, note=_NO_OWN_POLICY_NOTE), current_text
    if not current_text:
        return change, current_text
    text_edit = _edit_yaml(current_text, property_keys, new_value)
    if text_edit is None or not _is_value_only_difference(
        current_text, text_edit.text, property_keys, new_value
    ):
        return replace(change, note=NO_LINE_NOTE), current_text
    original_text_edit = _edit_yaml(original_text, property_keys, new_value) or text_edit
    return replace(change, line=original_text_edit.line, old=original_text_edit.old), text_edit.text


def _describe_attribute_change(
    match: _QueueMatch, attribute: str, new_value: Any
) -> tuple[list[str], TemplateChange]:
    """Describe the change that sets one attribute of the queue.

    If a policy resource sets the queue's policy, the change is in that resource.

    Returns:
        The keys that lead from the top of the template to the property, and the change. Its fields
        `file` and `found_by` are empty. Its old value is None if the template does not set the
        attribute, or if the value is not known.
    """
    template = match.declared_queues.template
    queue = match.declared_queues.queue_by_arn[match.queue_arn]
    logical_id = queue.resource.logical_id
    if attribute == POLICY_ATTRIBUTE and queue.policy is not None:
        property_keys = ["Resources", queue.policy.logical_id, "Properties", "PolicyDocument"]
        is_attribute_set = True
    else:
        property_keys = ["Resources", logical_id, "Properties", attribute]
        is_attribute_set = attribute in queue.resource.properties
    # `dict.get` does not raise UnknownValue for an attribute of unknown value.
    old_value = dict.get(queue.attributes, attribute) if is_attribute_set else None
    property_place = template.find_place(*property_keys)
    declaring_id = property_keys[1]
    if template.expansion is not None and not template.is_generated(declaring_id):
        # In a serverless.yml a resource is declared elsewhere than in CloudFormation.
        source_keys = template.expansion.source_keys_by_logical_id.get(declaring_id, ())
        if source_keys:
            property_keys = [*map(str, source_keys), *property_keys[2:]]
    is_plan = isinstance(template, TerraformPlan)
    change = TemplateChange(
        file="",
        resource=logical_id,
        found_by="",
        path=property_place.path,
        line=property_place.line,
        old=old_value if isinstance(old_value, str) else None,
        new=to_hcl_literal(new_value) if is_plan else json.dumps(new_value),
    )
    return property_keys, change


def parse_attribute_value(value_text: str) -> Any:
    """Decode a text that is a JSON integer, boolean or object. Return any other text unchanged."""
    try:
        parsed_value = json.loads(value_text)
    except ValueError:
        return value_text
    return parsed_value if isinstance(parsed_value, int | dict) else value_text


def _edit_yaml(
    template_text: str, property_keys: Sequence[str], new_value: Any
) -> _TextEdit | None:
    """Return the edit that sets a property to `new_value` in a YAML or JSON text.

    `property_keys` lead to the property. Missing keys are inserted. Return None if the text cannot
    be parsed, if it has a carriage return without a line feed, or if a missing key would have to be
    inserted into an empty mapping or into what is no mapping.
    """
    if "\r" in template_text.replace("\r\n", ""):
        return None
    try:
        node = yaml.compose(template_text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    key_node: Any = None
    for key_index, key in enumerate(property_keys):
        keys_and_values = node.value if isinstance(node, yaml.MappingNode) else []
        key_and_value = next(
            (key_and_value for key_and_value in keys_and_values if key_and_value[0].value == key),
            None,
        )
        if key_and_value is None:
            return (
                _insert_key(template_text, node, property_keys[key_index:], new_value)
                if keys_and_values
                else None
            )
        key_node, node = key_and_value
    return _replace_value(template_text, key_node, node, new_value)


def _find_offset(template_text: str, yaml_mark: Any) -> int:
    """Convert PyYAML's mark (line and column, both from 0) to an offset in the text."""
    line_start_offsets = [
        0,
        *(line_end_match.end() for line_end_match in re.finditer("\n", template_text)),
    ]
    return int(line_start_offsets[yaml_mark.line] + yaml_mark.column)


def _replace_value(template_text: str, key_node: Any, value_node: Any, new_value: Any) -> _TextEdit:
    """Replace the value of a key.

    Return the new text, the changed line and the text of the old value.
    """
    begin_offset = _find_offset(template_text, key_node.start_mark)
    end_mark = _find_last_node(value_node).end_mark
    end_offset = len(template_text[: _find_offset(template_text, end_mark)].rstrip())
    old_value_text = template_text[_find_offset(template_text, value_node.start_mark) : end_offset]
    key_text = template_text[begin_offset : _find_offset(template_text, key_node.end_mark)]
    replacement_text = f"{key_text}: {json.dumps(new_value)}"
    return _TextEdit(
        template_text[:begin_offset] + replacement_text + template_text[end_offset:],
        key_node.start_mark.line + 1,
        old_value_text,
    )


def _insert_key(
    template_text: str, mapping_node: Any, missing_keys: Sequence[str], new_value: Any
) -> _TextEdit:
    """Return the text in which the missing keys, with `new_value`, are inserted into a mapping.

    The first missing key is inserted before the mapping's first key. Each further missing key is
    nested inside the previous one.
    """
    for missing_key in reversed(missing_keys[1:]):
        new_value = {missing_key: new_value}
    first_key_mark = mapping_node.value[0][0].start_mark
    begin_offset = _find_offset(template_text, first_key_mark)
    indentation = template_text[template_text.rfind("\n", 0, begin_offset) + 1 : begin_offset]
    is_first_on_line = not indentation.strip()
    inserted_text = (
        json.dumps(missing_keys[0]) if template_text[begin_offset] == '"' else missing_keys[0]
    )
    inserted_text += f": {json.dumps(new_value)}"
    if mapping_node.flow_style:
        inserted_text += ","
    inserted_text += f"\n{indentation}" if is_first_on_line else " "
    return _TextEdit(
        template_text[:begin_offset] + inserted_text + template_text[begin_offset:],
        first_key_mark.line + 1,
        None,
    )


def _find_last_node(node: Any) -> Any:
    """Return the node with which a value ends in the text.

    For a collection in YAML's block style, this is the last node inside it.
    """
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _is_value_only_difference(
    text_before: str, text_after: str, property_keys: Sequence[str], new_value: Any
) -> bool:
    """Return True if the only difference between two templates is the property's `new_value`.

    `property_keys` lead to the property. The templates are decoded and then compared. False if one
    of them cannot be decoded.
    """
    try:
        expected_root = json.loads(json.dumps(read_template(text_before.encode()).root))
        actual_root = json.loads(json.dumps(read_template(text_after.encode()).root))
    except NotATemplate:
        return False
    node = expected_root
    for key in property_keys[:-1]:
        node = node.setdefault(key, {})
    # Decode the value like a template, in which scalars are texts.
    decoded_template = read_template(json.dumps({"Resources": {"it": new_value}}).encode()).root
    node[property_keys[-1]] = decoded_template["Resources"]["it"]
    # Compare as text, because `true` and `1` are equal in Python.
    return json.dumps(expected_root, sort_keys=True) == json.dumps(actual_root, sort_keys=True)


def _is_work_tree(git_path: Path) -> bool:
    """Return True if `git_path` is a `.git` file, which an additional work tree of git has."""
    return git_path.is_file() and git_path.read_bytes().startswith(b"gitdir: ")


def make_diff(file: str, text_before: str, text_after: str) -> list[str]:
    """Return the lines of a unified diff that `git apply` takes.

    Its paths are relative to the git work tree that contains the file. Outside a work tree they are
    relative to the current folder if this contains the file, and otherwise to the file's folder.
    The diff is empty if nothing changes, if the path has unprintable characters, or if a line is
    too long to read.
    """
    path = Path(file).resolve()
    current_folder = Path.cwd()
    work_tree_folders = [
        folder
        for folder in path.parents
        if (folder / ".git/HEAD").is_file() or _is_work_tree(folder / ".git")
    ]
    if work_tree_folders:
        diff_root_folder = work_tree_folders[0]
    elif current_folder in path.parents:
        diff_root_folder = current_folder
    else:
        diff_root_folder = path.parent
    relative_path = path.relative_to(diff_root_folder).as_posix()
    old_lines = re.split("\r?\n", text_before.removesuffix("\n"))
    new_lines = re.split("\r?\n", text_after.removesuffix("\n"))
    for text, lines in ((text_before, old_lines), (text_after, new_lines)):
        if not text.endswith("\n"):
            lines[-1] += _END_WITHOUT_NEWLINE
    diff_lines = list[str]()
    for diff_line in unified_diff(
        old_lines, new_lines, f"a/{relative_path}", f"b/{relative_path}", lineterm=""
    ):
        diff_lines.append(diff_line.removesuffix(_END_WITHOUT_NEWLINE))
        if diff_line.endswith(_END_WITHOUT_NEWLINE):
            diff_lines.append("\\ No newline at end of file")
    are_lines_readable = all(
        len(diff_line) <= _MAXIMUM_DIFF_LINE_CHARACTERS for diff_line in diff_lines
    )
    # For git a name ends at a tab or a line's end, so it would look for another file.
    if not diff_lines or not relative_path.isprintable() or not are_lines_readable:
        return []
    # Without this first line git looks for the path below the current folder.
    return [f"diff --git a/{relative_path} b/{relative_path}", *diff_lines]
