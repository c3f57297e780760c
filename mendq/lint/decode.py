"""The template in some bytes, decoded by cfn-lint.

What may be anybody's is measured before it is decoded: bytes, nesting, nodes, keys. Aliases are
refused, as CloudFormation refuses them.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html
"""

from __future__ import annotations

import json
import re
from math import inf
from typing import Any

import yaml
from cfnlint.decode.cfn_yaml import CfnFullLoader, CfnParseError, NodeConstructor, multi_constructor

from mendq.lint.template import (
    A_BYTE_READ,
    MOST_BYTES,
    MOST_NESTED,
    NotATemplate,
    Template,
    WorkBudget,
)
from mendq.lint.terraform import is_plan, read_plan

A_NODE_READ, KEYS_COMPARED_A_STEP = 16, 32

# What JSON escapes and YAML does not: a slash, and a character as two surrogates.
_OF_JSON = re.compile(r"\\(?:(/)|u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE)
_OF_YAML = "tag:yaml.org,2002:"
_TAG = re.compile(rf"{_OF_YAML}(str|int|bool|float|null|seq|map)|![A-Z][A-Za-z0-9:]{{0,63}}")


class _Loader(CfnFullLoader):  # type: ignore[misc]
    """cfn-lint's, with scalars as they are written: `012` stays an account's digits."""

    def boolean(self, node: Any) -> Any:
        text = self.construct_yaml_str(node)
        is_true = self.bool_values.get(text.lower())
        return text if is_true is None else str(is_true).lower()


_Loader.add_multi_constructor("!", multi_constructor)
_Loader.add_constructor(f"{_OF_YAML}bool", _Loader.boolean)
for _kind in ("int", "float", "timestamp"):
    _Loader.add_constructor(f"{_OF_YAML}{_kind}", NodeConstructor.construct_yaml_str)


class YamlTemplate(Template):
    """One whose nodes know their lines; what is to be written is YAML."""

    def written(self, name: str, document: Any) -> tuple[str, ...]:
        """As YAML; of a name that may be anybody's, what CloudFormation takes."""
        plain = "".join(each for each in name if each.isascii() and each.isalnum())
        # The decoder's own types, which PyYAML does not write, are JSON as well.
        said = json.loads(json.dumps(document))
        written = {plain: said} if name else [said]
        return tuple(yaml.safe_dump(written, sort_keys=False, width=inf).splitlines())


def read_template(content: bytes, work: WorkBudget | None = None) -> Template:
    """The template in some bytes, or the plan; raises NotATemplate."""
    work = work or WorkBudget()
    if content.startswith(b"PK\x03\x04"):
        raise NotATemplate("a saved plan is no text: give what `terraform show -json` says of it")
    if is_plan(content):
        return read_plan(content, work)
    if len(content) > MOST_BYTES:
        raise NotATemplate(f"longer than {MOST_BYTES:,} bytes; CloudFormation takes 1 MB")
    work.take(len(content) // A_BYTE_READ)
    try:
        text = content.decode("utf-8-sig")
        try:
            return YamlTemplate(_decoded(text, work), work)
        except yaml.YAMLError:
            if not text.lstrip().startswith("{"):
                raise
        return YamlTemplate(_decoded(_OF_JSON.sub(_as_yaml, text), work), work)
    except UnicodeDecodeError as error:
        raise NotATemplate(f"no UTF-8 at byte {error.start:,}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise NotATemplate(f"{where}no YAML: {_short(problem or str(error))}") from error


def _as_yaml(escaped: re.Match[str]) -> str:
    slash, high, low = escaped.groups()
    if high:
        return f"\\U{0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00:08x}"
    return slash or escaped.group()


def _decoded(text: str, work: WorkBudget) -> Any:
    """Raise YAMLError where it is none, NotATemplate where it is more than anybody writes."""
    _measure(text, work)
    try:
        found = _Loader(text, None).get_single_data()
    except CfnParseError as error:
        first = error.matches[0]
        raise NotATemplate(f"line {first.linenumber}: {_short(first.message)}") from error
    if found is None:
        raise NotATemplate("it is empty")
    return found


def _measure(text: str, work: WorkBudget) -> None:
    """Count every node before anything is made of it."""
    nodes_in = [0]
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        where = f"line {event.start_mark.line + 1}: "
        tag = getattr(event, "tag", None)
        if tag is not None and not _TAG.fullmatch(tag):
            raise NotATemplate(f"{where}the tag {tag[:64]!r} is none of CloudFormation's")
        if isinstance(event, yaml.AliasEvent):
            raise NotATemplate(f"{where}*{event.anchor[:64]}: CloudFormation takes no YAML aliases")
        if isinstance(event, yaml.NodeEvent):
            work.take(A_NODE_READ)
            nodes_in[-1] += 1
        if isinstance(event, yaml.CollectionStartEvent):
            nodes_in.append(0)
            if len(nodes_in) > MOST_NESTED + 1:
                raise NotATemplate(f"{where}nested more than {MOST_NESTED} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            nodes = nodes_in.pop()
            if isinstance(event, yaml.MappingEndEvent):
                # cfn-lint compares each key with each before it.
                work.take((nodes // 2) ** 2 // KEYS_COMPARED_A_STEP)


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
