"""Write out the loops of a template: `Fn::ForEach` of the transform AWS::LanguageExtensions.

    Fn::ForEach::Queues:
      - Name
      - [Orders, Bills]
      - "${Name}Queue": {Type: AWS::SQS::Queue}

becomes the resources `OrdersQueue` and `BillsQueue`. Their nodes have the lines of the loop's body.
A loop whose items are not in the template stays, with the reason in place of its value.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-foreach.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mendq.lint.template import (
    CHARACTERS_PER_COPY_STEP,
    LANGUAGE_EXTENSIONS_TRANSFORM,
    UNKNOWN_VALUE_FUNCTION,
    Template,
    get_mapping,
    to_list,
)
from mendq.lint.values import UnknownValue, ValueResolver
from mendq.lint.yaml_nodes import MarkedList, MarkedMapping, MarkedText

LOOP_PREFIX = "Fn::ForEach::"
_SECTIONS_WITH_LOOPS = ("Conditions", "Outputs", "Resources")
_IDENTIFIER_REGEX = re.compile(r"([$&])\{([A-Za-z0-9]{1,255})\}")
_NOT_ALPHANUMERIC_REGEX = re.compile(r"[^A-Za-z0-9]")
_TemplateType = TypeVar("_TemplateType", bound=Template)


def expand_loops(template: _TemplateType, passed_parameters: Mapping[str, Any]) -> _TemplateType:
    """Return a template with its loops written out. Unchanged if it has not the transform.

    Args:
        template: The decoded template.
        passed_parameters: What the outer template passes, if it is a nested stack's template. Only
            texts are used: anything else is known when it is deployed.

    Raises:
        NotATemplate: Writing out takes more steps than the budget has left.
    """
    if LANGUAGE_EXTENSIONS_TRANSFORM not in to_list(template.root.get("Transform")):
        return template
    parameters = {
        name: {**(get_mapping(parameter) or {}), "Default": passed_parameters.get(name)}
        if name in passed_parameters
        else parameter
        for name, parameter in template.get_section("Parameters").items()
    }
    expander = _LoopExpander(template, parameters)
    root = MarkedMapping(template.root)
    root.start_mark = template.root.start_mark
    for section_name in _SECTIONS_WITH_LOOPS:
        if section_name in root:
            root[section_name] = expander.expand(root[section_name], {}, (section_name,))
    used_defaults = {
        name: default
        for name, default in expander.resolver.default_by_parameter.items()
        if name not in passed_parameters
    }
    return replace(
        template,
        root=root,
        reason_by_unread_loop=expander.reason_by_unread_loop,
        default_by_loop_parameter=used_defaults,
    )


class _LoopExpander:
    """Writes out the loops in the sections of one template."""

    def __init__(self, template: Template, parameters: Mapping[str, Any]) -> None:
        self._budget = template.budget
        sections = {"Parameters": parameters, "Mappings": template.get_section("Mappings")}
        self.resolver = ValueResolver(Template({**sections, "Resources": {}}, self._budget), {})
        # Why a loop cannot be written out, by the keys that lead to it.
        self.reason_by_unread_loop = dict[tuple[str | int, ...], str]()

    def expand(
        self, node: Any, item_by_identifier: Mapping[str, str], keys: tuple[str | int, ...]
    ) -> Any:
        """Return a copy of a node with all loops inside it written out.

        Args:
            node: The node.
            item_by_identifier: The items of the loops around the node.
            keys: The keys that lead to the node in the copy.
        """
        self._budget.use_steps(1)
        if isinstance(node, str):
            return self._replace_identifiers(node, item_by_identifier)
        if isinstance(node, list):
            items = MarkedList(
                self.expand(item, item_by_identifier, (*keys, number))
                for number, item in enumerate(node)
            )
            items.start_mark = getattr(node, "start_mark", None)
            return items
        if not isinstance(node, dict):
            return node
        name = node.get("Ref")
        # The name may be a function, which is expanded below.
        if len(node) == 1 and isinstance(name, str) and name in item_by_identifier:
            return item_by_identifier[name]
        mapping = MarkedMapping()
        mapping.start_mark = getattr(node, "start_mark", None)
        for key, value in node.items():
            if key.startswith(LOOP_PREFIX):
                self._add_loop(mapping, key, value, item_by_identifier, keys)
            else:
                new_key = self._replace_identifiers(key, item_by_identifier)
                mapping[new_key] = self.expand(value, item_by_identifier, (*keys, new_key))
        return mapping

    def _add_loop(
        self,
        mapping: MarkedMapping,
        loop_key: str,
        loop: Any,
        item_by_identifier: Mapping[str, str],
        keys: tuple[str | int, ...],
    ) -> None:
        """Add what a loop makes to the mapping that it is in.

        If that is not known, add the loop with the reason in place of its value.
        """
        try:
            new_entries = self._expand_loop(loop, item_by_identifier, keys)
            _refuse_common_key(mapping, new_entries)
        except UnknownValue as error:
            self.reason_by_unread_loop[*keys, loop_key] = (
                f"this loop is not written out: {error.because}"
            )
            new_entries = MarkedMapping({loop_key: {UNKNOWN_VALUE_FUNCTION: error.because}})
        mapping.update(new_entries)

    def _expand_loop(
        self, loop: Any, item_by_identifier: Mapping[str, str], keys: tuple[str | int, ...]
    ) -> MarkedMapping:
        """Return what a loop makes. Raises UnknownValue if the template does not tell."""
        match loop:
            case [str() as identifier, collection, dict() as body]:
                pass
            case _:
                raise UnknownValue("it has no identifier, collection and mapping")
        items = self.resolver.resolve(self.expand(collection, item_by_identifier, keys))
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise UnknownValue("its items are not a list of texts")
        entries = MarkedMapping()
        for item in items:
            new_entries = self.expand(body, {**item_by_identifier, identifier: item}, keys)
            _refuse_common_key(entries, new_entries)
            entries.update(new_entries)
        return entries

    def _replace_identifiers(self, text: str, item_by_identifier: Mapping[str, str]) -> str:
        """Return a text with the items of the loops around it. `&{x}` leaves letters and digits."""

        def replace_identifier(identifier_match: re.Match[str]) -> str:
            sign, identifier = identifier_match.groups()
            item = item_by_identifier.get(identifier)
            if item is None:
                return identifier_match.group()
            self._budget.use_steps(len(item))
            return _NOT_ALPHANUMERIC_REGEX.sub("", item) if sign == "&" else item

        if not item_by_identifier or "{" not in text:
            return text
        self._budget.use_steps(len(text) // CHARACTERS_PER_COPY_STEP)
        new_text = MarkedText(_IDENTIFIER_REGEX.sub(replace_identifier, text))
        new_text.start_mark = getattr(text, "start_mark", None)
        return new_text


def _refuse_common_key(entries: Mapping[str, Any], new_entries: Mapping[str, Any]) -> None:
    """Raise UnknownValue if two mappings have a key in common. CloudFormation refuses that."""
    for key in new_entries:
        if key in entries:
            raise UnknownValue(f"{key} is declared twice")
