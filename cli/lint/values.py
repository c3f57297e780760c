"""What a value of a template comes to as far as the template alone tells.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.lint.node import Node
from cli.lint.template import Template
from cli.lint.work import Work

# Each is said as often as something turns on it.
_MOST_OF_A_REASON = 600
# No name holds a brace, and a scan that looked beyond one would begin anew at each.
_IN_SUB = re.compile(r"\$\{(?:([^{}]{1,512})\})?")
_NO_VALUE = object()
_NO_VALUE_NAME = "AWS::NoValue"
_OF_PARAMETER_STORE = "AWS::SSM::Parameter::"
_WHY = {
    "Fn::ImportValue": "imported from another stack",
    "Fn::If": "a condition decides it",
    "Fn::Transform": "a macro writes it",
}


class NotKnown(Exception):
    """A value that the template alone does not tell, and why."""

    def __init__(self, because: str) -> None:
        most = _MOST_OF_A_REASON
        self.because = because if len(because) <= most else f"{because[: most - 3]}..."
        super().__init__(self.because)


@dataclass(frozen=True)
class Known:
    """What stands for names that only deploying gives: by logical id, and by id and attribute."""

    references: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass
class Values:
    """Works values out; `defaults` collects the parameters whose default was taken.

    Whatever is asked raises NotATemplate where it takes more `work` than is left.
    """

    template: Template
    known: Known
    defaults: dict[str, str] = field(default_factory=dict)
    work: Work = field(default_factory=Work)

    def of(self, node: Node | None) -> Any:
        """Texts, lists, mappings, None where nothing is set; raises NotKnown."""
        return self._found(node, None)

    def with_word(self, node: Node, word: str) -> Any:
        """As `of`, with `word` in the place of each function whose value is not known."""
        return self._found(node, word)

    def text(self, node: Node | None) -> str | None:
        """Raises NotKnown, also where it comes to something else than a text."""
        found = self.of(node)
        if found is None or isinstance(found, str):
            return found
        raise NotKnown("it is no text")

    def _found(self, node: Node | None, word: str | None) -> Any:
        found = self._of(node, word) if node is not None else None
        return None if found is _NO_VALUE else found

    def _of(self, node: Node, word: str | None = None) -> Any:
        if isinstance(node.value, tuple):
            self.work.take(1)
            every = (self._of(each, word) for each in node.items)
            return [each for each in every if each is not _NO_VALUE]
        if isinstance(node.value, Mapping):
            self.work.take(1 + sum(map(len, node.value)))
            return self._of_mapping(node.value, word)
        return self._charged(node.value)

    def _of_mapping(self, entries: Mapping[str, Node], word: str | None) -> Any:
        name = next(iter(entries), "")
        if len(entries) == 1 and (name == "Ref" or name.startswith("Fn::")):
            try:
                return self._worked_out(name, entries[name])
            except NotKnown:
                if word is None:
                    raise
                return word
        every = {key: self._of(each, word) for key, each in entries.items()}
        return {key: each for key, each in every.items() if each is not _NO_VALUE}

    def _charged(self, text: str | None) -> str | None:
        self.work.take(1 + len(text or ""))
        return text

    def _worked_out(self, name: str, given: Node) -> Any:
        functions: dict[str, Callable[[Node], Any]] = {
            "Ref": self._reference,
            "Fn::GetAtt": self._attribute,
            "Fn::Sub": self._substituted,
            "Fn::Join": self._joined,
            "Fn::FindInMap": self._found_in_map,
        }
        if name not in functions:
            raise NotKnown(f"{name}: {_WHY.get(name, 'known when it is deployed')}")
        return functions[name](given)

    def _reference(self, given: Node) -> Any:
        if given.text is None:
            raise NotKnown("Ref: it names nothing")
        return self._named(given.text)

    def _named(self, name: str) -> Any:
        if name == _NO_VALUE_NAME:
            return _NO_VALUE
        if name in self.known.references:
            return self._charged(self.known.references[name])
        if name in self.template.parameters:
            return self._default_of(name, self.template.parameters[name])
        raise NotKnown(f"{name}: known when it is deployed")

    def _default_of(self, name: str, parameter: Node) -> Any:
        kind, default = parameter.entries.get("Type"), parameter.entries.get("Default")
        type_ = (kind.text if kind else None) or "String"
        hidden = parameter.entries.get("NoEcho")
        if default is None or default.text is None:
            raise NotKnown(f"the parameter {name} has no default")
        if type_.startswith(_OF_PARAMETER_STORE) or (hidden and hidden.text == "true"):
            raise NotKnown(f"the parameter {name}: its value is not in the template")
        self.defaults[name] = default.text
        self._charged(default.text)
        is_list = type_.startswith("List<") or type_ == "CommaDelimitedList"
        return [each.strip() for each in default.text.split(",")] if is_list else default.text

    def _attribute(self, given: Node) -> Any:
        named = [each.text for each in given.items]
        if len(named) != 2 or named[0] is None or named[1] is None:
            raise NotKnown("Fn::GetAtt: it names no attribute of a resource")
        return self._attribute_of(named[0], named[1])

    def _attribute_of(self, logical_id: str, attribute: str) -> str | None:
        if (logical_id, attribute) not in self.known.attributes:
            raise NotKnown(f"{logical_id}.{attribute}: known when it is deployed")
        return self._charged(self.known.attributes[logical_id, attribute])

    def _substituted(self, given: Node) -> str:
        text, own = (given, None) if given.text is not None else (*given.items, None, None)[:2]
        if text is None or text.text is None:
            raise NotKnown("Fn::Sub: it is no text")
        pieces = list(self._pieces(text.text, own.entries if own else {}))
        return "".join(pieces)

    def _pieces(self, text: str, own: Mapping[str, Node]) -> Iterator[str]:
        end, before = 0, dict[str, Any]()
        for found in _IN_SUB.finditer(text):
            yield self._charged(text[end : found.start()]) or ""
            if found.group(1) is None:
                raise NotKnown("Fn::Sub: ${ stands there without a name")
            yield self._charged(self._piece(found.group(1), own, before)) or ""
            end = found.end()
        yield self._charged(text[end:]) or ""

    def _piece(self, name: str, own: Mapping[str, Node], before: dict[str, Any]) -> str:
        """Each of `own` is worked out once, however often it is named."""
        if name.startswith("!"):
            return f"${{{name[1:]}}}"
        if name in own:
            if name not in before:
                before[name] = self._of(own[name])
            found = before[name]
        elif "." in name:
            found = self._attribute_of(*name.split(".", 1))
        else:
            found = self._named(name)
        if not isinstance(found, str):
            raise NotKnown(f"{name}: it is no text")
        return found

    def _joined(self, given: Node) -> str:
        (by, joined) = (*given.items, None, None)[:2]
        found = self._of(joined) if joined else None
        if by is None or by.text is None or not isinstance(found, list):
            raise NotKnown("Fn::Join: it joins no list")
        if not all(isinstance(each, str) for each in found):
            raise NotKnown("Fn::Join: not all of it is text")
        self.work.take(len(by.text) * len(found))
        return by.text.join(found)

    def _found_in_map(self, given: Node) -> Any:
        keys = [self.of(each) for each in given.items]
        found = Node(self.template.mappings)
        for key in keys:
            inner = found.entries.get(key) if isinstance(key, str) else None
            if inner is None:
                raise NotKnown("Fn::FindInMap: nothing stands there")
            found = inner
        if len(keys) != 3:
            raise NotKnown("Fn::FindInMap: known when it is deployed")
        return self._mapped(found)

    def _mapped(self, found: Node) -> Any:
        """CloudFormation takes no functions there.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/mappings-section-structure.html
        """
        every = found.items if isinstance(found.value, tuple) else (found,)
        if any(each.text is None for each in every):
            raise NotKnown("Fn::FindInMap: it is neither a text nor a list of texts")
        return self._of(found)
