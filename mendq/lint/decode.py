"""Decode a template: YAML or JSON with cfn-lint's loader, or a Terraform plan as JSON.

A template may come from anyone. So its bytes, nesting depth, nodes and keys are limited, and they
are counted before the template is decoded. YAML aliases are refused, as CloudFormation does.
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
    BYTES_PER_STEP,
    MOST_BYTES,
    MOST_NESTED,
    NotATemplate,
    Template,
    WorkBudget,
)
from mendq.lint.terraform import is_plan, read_plan

# Steps of work (see `WorkBudget`) for a node, and comparisons of two keys for one step.
STEPS_PER_NODE = 16
KEY_COMPARISONS_PER_STEP = 32

# Escapes that JSON has and YAML has not: a slash, and a character as two surrogates.
_JSON_ESCAPE = re.compile(r"\\(?:(/)|u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE)
_YAML_TAG = "tag:yaml.org,2002:"
_TAG = re.compile(rf"{_YAML_TAG}(str|int|bool|float|null|seq|map)|![A-Z][A-Za-z0-9:]{{0,63}}")


class _Loader(CfnFullLoader):  # type: ignore[misc]
    """cfn-lint's loader, in which numbers and times stay texts.

    For example, an account ID keeps the zero at its beginning.
    """

    def construct_boolean(self, node: Any) -> Any:
        """Return `true` or `false` as text, also for other spellings such as `yes`."""
        text = self.construct_yaml_str(node)
        is_true = self.bool_values.get(text.lower())
        return text if is_true is None else str(is_true).lower()


_Loader.add_multi_constructor("!", multi_constructor)
_Loader.add_constructor(f"{_YAML_TAG}bool", _Loader.construct_boolean)
for _kind in ("int", "float", "timestamp"):
    _Loader.add_constructor(f"{_YAML_TAG}{_kind}", NodeConstructor.construct_yaml_str)


class YamlTemplate(Template):
    """A decoded YAML or JSON template. Its nodes have line numbers; `render` returns YAML."""

    def render(self, name: str, document: Any) -> tuple[str, ...]:
        """Return the YAML lines of the property or resource `name`.

        If `name` is empty, return the lines of a list item. Characters that a logical ID cannot
        have are removed from the name, because the name may come from anyone.
        """
        safe_name = "".join(
            character for character in name if character.isascii() and character.isalnum()
        )
        # PyYAML cannot write the decoder's own types. JSON turns them into plain ones.
        plain_document = json.loads(json.dumps(document))
        node = {safe_name: plain_document} if name else [plain_document]
        return tuple(yaml.safe_dump(node, sort_keys=False, width=inf).splitlines())


def read_template(content: bytes, work: WorkBudget | None = None) -> Template:
    """Decode a CloudFormation template or a Terraform plan.

    Raises NotATemplate if the bytes are neither, or if decoding takes more steps than `work` has
    left.
    """
    work = work or WorkBudget()
    if content.startswith(b"PK\x03\x04"):
        raise NotATemplate("a saved plan is no text: give what `terraform show -json` says of it")
    if is_plan(content):
        return read_plan(content, work)
    if len(content) > MOST_BYTES:
        raise NotATemplate(f"longer than {MOST_BYTES:,} bytes; CloudFormation takes 1 MB")
    work.take(len(content) // BYTES_PER_STEP)
    try:
        text = content.decode("utf-8-sig")
        try:
            return YamlTemplate(_decode(text, work), work)
        except yaml.YAMLError:
            if not text.lstrip().startswith("{"):
                raise
        return YamlTemplate(_decode(_JSON_ESCAPE.sub(_to_yaml_escape, text), work), work)
    except UnicodeDecodeError as error:
        raise NotATemplate(f"no UTF-8 at byte {error.start:,}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise NotATemplate(f"{where}no YAML: {_shorten(problem or str(error))}") from error


def _to_yaml_escape(match: re.Match[str]) -> str:
    """Return a JSON escape in the form that YAML has. Escapes that both have stay unchanged."""
    slash, high_surrogate, low_surrogate = match.groups()
    if high_surrogate:
        high = int(high_surrogate, 16) - 0xD800
        low = int(low_surrogate, 16) - 0xDC00
        return f"\\U{0x10000 + high * 0x400 + low:08x}"
    return slash or match.group()


def _decode(text: str, work: WorkBudget) -> Any:
    """Return the nodes of a text. Raises YAMLError if it is no YAML.

    Raises NotATemplate if it is empty, too large, or not allowed in a template.
    """
    _measure(text, work)
    try:
        root = _Loader(text, None).get_single_data()
    except CfnParseError as error:
        first = error.matches[0]
        raise NotATemplate(f"line {first.linenumber}: {_shorten(first.message)}") from error
    if root is None:
        raise NotATemplate("it is empty")
    return root


def _measure(text: str, work: WorkBudget) -> None:
    """Raise NotATemplate if a text is too large or not allowed in a template.

    Every node is counted while the text is parsed, before any Python object is made from a node.
    """
    # Number of nodes in each open collection, the innermost last.
    node_counts = [0]
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        where = f"line {event.start_mark.line + 1}: "
        tag = getattr(event, "tag", None)
        if tag is not None and not _TAG.fullmatch(tag):
            raise NotATemplate(f"{where}the tag {tag[:64]!r} is none of CloudFormation's")
        if isinstance(event, yaml.AliasEvent):
            raise NotATemplate(f"{where}*{event.anchor[:64]}: CloudFormation takes no YAML aliases")
        if isinstance(event, yaml.NodeEvent):
            work.take(STEPS_PER_NODE)
            node_counts[-1] += 1
        if isinstance(event, yaml.CollectionStartEvent):
            node_counts.append(0)
            if len(node_counts) > MOST_NESTED + 1:
                raise NotATemplate(f"{where}nested more than {MOST_NESTED} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            nodes = node_counts.pop()
            if isinstance(event, yaml.MappingEndEvent):
                # cfn-lint compares each key with every earlier key of the mapping.
                work.take((nodes // 2) ** 2 // KEY_COMPARISONS_PER_STEP)


def _shorten(text: str) -> str:
    """Return at most 200 characters of a text, as one line."""
    return " ".join(text.split())[:200]
