"""The lines of a template that would say what Mendq set on a queue; nothing is edited.

A text is changed in memory and read again: unless that says exactly what it is to say, and all the
rest as before, no line is offered and a person writes it.
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
from mendq.lint.terraform import TerraformPlan, literal_of
from mendq.lint.values import DeployTarget
from mendq.model.queue import parts_of
from mendq.model.steps import CreateDlq
from mendq.notifications.configuration import differences

HOLDS, NO_LINE = "the template holds it already", "it has no line of its own: set it by hand"
MADE = "Mendq made this queue: declare it beside the other, or import it"
_NO_LINES = "a plan has no lines: name the .tf file for them"
_NO_POLICY = "the template has no policy that is this queue's alone: write one"
_MOST_LINE, _MOST_NAMES = 1_000, 5
T = TypeVar("T")


class NotThere(Exception):
    """No resource of the template is the queue, as far as it tells."""


class SeveralFit(Exception):
    """More than one may be."""


@dataclass(frozen=True)
class WantedValues:
    """What a template is to say of a queue; `stack` and `resource` by its tags, `named` by hand."""

    queue_arn: str
    values: Mapping[str, str]
    stack: str | None = None
    resource: str | None = None
    named: str = ""


@dataclass(frozen=True)
class Change:
    """One property: where it is or would be set, what it says and what it is to say."""

    file: str
    resource: str
    found_by: str
    path: str
    line: int | None
    old: str | None
    new: str
    note: str = ""

    @property
    def is_left_to_people(self) -> bool:
        return self.note in (NO_LINE, _NO_POLICY)


class PatchResult(NamedTuple):
    """What is to change, and as a unified diff as far as lines alone say it."""

    changes: list[Change]
    diff: list[str]


class _Edit(NamedTuple):
    """A text as it would be, the line that changes, from 1, and what stands there."""

    text: str
    line: int
    old: str | None


def make_patch(argument: str, wanted: WantedValues) -> PatchResult:
    """Raise NotThere, SeveralFit, NotATemplate, OSError."""
    fits, every = list[tuple[int, str, TemplateSource, DeclaredQueues, str]](), list[str]()
    for source in list_sources(argument):
        try:
            template = read_template(source.content)
            found = DeclaredQueues(template, replace(source.environment, **template.where))
        except NotATemplate as error:
            raise NotATemplate(f"{source.file}: {error}") from error
        fits += [(*how, source, found, arn) for arn, how in _fits(found, source, wanted)]
        every += found.names.queues.values()
    surest = [each for each in fits if each[0] == min(one[0] for one in fits)]
    names = [f"{found.names.queues[arn]} ({source.file})" for *_, source, found, arn in surest]
    _, how, source, found, arn = only(surest, names, every, argument, wanted)
    template, name = found.template, found.names.queues[arn]
    why = _NO_LINES if isinstance(template, TerraformPlan) else ""
    if Path(argument).is_dir():
        path = template.resources[name].construct
        why = f"cdk synth writes this file: set it in the app, at the construct {path or name}"
    text = "" if why else source.content.decode("utf-8-sig")
    changes, after = list[Change](), text
    for attribute, value in wanted.values.items():
        change, after = _in_template((text, after), found, arn, attribute, value)
        changes.append(replace(change, file=source.file, found_by=how, note=change.note or why))
    return PatchResult(changes, difference(source.file, text, after))


def only(
    fits: Sequence[T],
    names: Sequence[str],
    every: Sequence[str],
    argument: str,
    wanted: WantedValues,
) -> T:
    """The one that fits; raises NotThere or SeveralFit, which name what there is."""
    if len(fits) == 1:
        return fits[0]
    name, which = parts_of(wanted.queue_arn).name, "say which by --resource"
    shown = ", ".join((names or every)[:_MOST_NAMES])
    if fits:
        raise SeveralFit(f"{argument}: {len(fits)} queues may be {name}, {which}: {shown}")
    there = f"{which} if it is one of: {shown}" if every else "it declares none"
    raise NotThere(f"{argument}: no queue is known to be {wanted.named or name}; {there}")


def _fits(
    found: DeclaredQueues, source: TemplateSource, wanted: WantedValues
) -> Iterator[tuple[str, tuple[int, str]]]:
    """The queues of a template that may be it, with how sure that is, and by what."""
    there, any_, where = parts_of(wanted.queue_arn), DeployTarget(), source.environment
    is_there = where.account in (any_.account, there.account)
    if not (is_there and where.region in (any_.region, there.region)):
        return
    arns = getattr(found.template, "arns", {})
    for arn, name in found.names.queues.items():
        own = found.template.resources[name].properties.get("QueueName")
        by_tags = name == wanted.resource and source.stack in ("", wanted.stack)
        if wanted.named:
            ways = {"--resource": name == wanted.named}
        else:
            ways = {"its ARN": arns.get(wanted.queue_arn) == name, "its tags": by_tags}
            # A name is worth nothing where the ARN is known and is another's.
            is_named = found.names.known_text(own) == there.name
            ways["its name"] = is_named and name not in arns.values()
        yield from [(arn, way) for way in enumerate(ways) if ways[way[1]]][:1]


def _in_template(
    texts: tuple[str, str], found: DeclaredQueues, arn: str, attribute: str, value: str
) -> tuple[Change, str]:
    """What would change of the first text, and the second after it; without them only where."""
    text = texts[1]
    template, queue, document = found.template, found.queues[arn], document_of(value)
    name, policy = queue.resource.logical_id, queue.policy if attribute == POLICY else None
    keys = ["Resources", name, "Properties", attribute]
    if policy is not None:
        keys[1], keys[3] = policy.logical_id, "PolicyDocument"
    is_set = policy is not None or attribute in queue.resource.properties
    known = dict.get(queue.attributes, attribute) if is_set else None
    old = known if isinstance(known, str) else None
    new = literal_of(document) if isinstance(template, TerraformPlan) else json.dumps(document)
    change = Change("", name, "", *template.place(*keys), old, new)
    if attribute == CreateDlq.attribute:
        return replace(change, path=attribute, line=None, new=value, note=MADE), text
    if old is not None and not differences({attribute: old}, {attribute: value}):
        return replace(change, note=HOLDS), text
    if attribute == POLICY and len(to_list(policy and policy.properties.get("Queues"))) != 1:
        return replace(change, note=_NO_POLICY), text
    edit = _edited(text, keys, document) if text else None
    if edit and _says(text, edit.text, keys, document):
        first = _edited(texts[0], keys, document) or edit
        return replace(change, line=first.line, old=first.old), edit.text
    return replace(change, note=NO_LINE if text else ""), text


def document_of(text: str) -> Any:
    """A number, a truth or a document as itself; anything else is text."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, int | dict) else text


def _edited(text: str, keys: Sequence[str], document: Any) -> _Edit | None:
    """The text with the document below the keys; None where its shape is another one."""
    if "\r" in text.replace("\r\n", ""):
        return None
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(mark: Any) -> int:
        return int(starts[mark.line] + mark.column)

    key: Any = None
    missing, pairs = list(keys), list[Any]()
    while missing:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        below = next((each for each in pairs if each[0].value == missing[0]), None)
        if below is None:
            break
        key, node = below
        del missing[0]
    else:
        start, end = at(key.start_mark), len(text[: at(_last(node).end_mark)].rstrip())
        new = f"{text[start : at(key.end_mark)]}: {json.dumps(document)}"
        old = text[at(node.start_mark) : end]
        return _Edit(text[:start] + new + text[end:], key.start_mark.line + 1, old)
    if not pairs:
        return None
    for each in reversed(missing[1:]):
        document = {each: document}
    first = at(pairs[0][0].start_mark)
    before = text[text.rfind("\n", 0, first) + 1 : first]
    behind = " " if before.strip() else f"\n{before}"
    new = json.dumps(missing[0]) if text[first] == '"' else missing[0]
    new += f": {json.dumps(document)}{',' * bool(node.flow_style)}{behind}"
    return _Edit(text[:first] + new + text[first:], pairs[0][0].start_mark.line + 1, None)


def _last(node: Any) -> Any:
    """Where a value ends: a block of others where its last one does."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _says(before: str, after: str, keys: Sequence[str], document: Any) -> bool:
    """Whether the second says what the first does, and the document below the keys."""
    try:
        was, is_now = (
            json.loads(json.dumps(read_template(each.encode()).root)) for each in (before, after)
        )
    except NotATemplate:
        return False
    node = was
    for each in keys[:-1]:
        node = node.setdefault(each, {})
    wanted = read_template(json.dumps({"Resources": {"it": document}}).encode()).root
    node[keys[-1]] = wanted["Resources"]["it"]
    # As text, because Python holds `true` and `1` for equal.
    was_text, now_text = (json.dumps(each, sort_keys=True) for each in (was, is_now))
    return was_text == now_text


def _is_work_tree(git: Path) -> bool:
    return git.is_file() and git.read_bytes().startswith(b"gitdir: ")


def difference(file: str, before: str, after: str) -> list[str]:
    """For `git apply` in the work tree that the file lies in, else in this folder or its own.

    Empty where nothing changes, or a line is longer than anybody reads.
    """
    path, here = Path(file).resolve(), Path.cwd()
    # A folder's as git makes it, or a work tree's, whose `.git` is a file.
    roots = [e for e in path.parents if (e / ".git/HEAD").is_file() or _is_work_tree(e / ".git")]
    root = roots[0] if roots else here if here in path.parents else path.parent
    name = path.relative_to(root).as_posix()
    was, is_now = (re.split("\r?\n", each.removesuffix("\n")) for each in (before, after))
    made = list(unified_diff(was, is_now, f"a/{name}", f"b/{name}", lineterm=""))
    # At a tab or the end of a line git ends a name, and would look for another file.
    is_shown = made and name.isprintable() and all(len(each) <= _MOST_LINE for each in made)
    # Without its first line git looks for the path below the folder that it is called in.
    return [f"diff --git a/{name} b/{name}", *made] if is_shown else []
