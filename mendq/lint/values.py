"""What a value of a template comes to as far as the template alone tells.

cfn-lint's own resolvers yield every value that might be, and grow without a bound; a check needs
the one that is, and each character is counted.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mendq.lint.template import Template, listed, under

# Each is said as often as something turns on it.
_MOST_OF_A_REASON = 600
# No name holds a brace, and a scan that looked beyond one would begin anew at each.
_IN_SUB = re.compile(r"\$\{(?:([^{}]{1,512})\})?")
_NO_VALUE = object()
_WHY = {
    "Fn::ImportValue": "imported from another stack",
    "Fn::If": "a condition decides it",
    "Fn::Transform": "a macro writes it",
}


class NotKnown(Exception):
    """A value that the template alone does not tell, and why; `attribute` is what was read."""

    def __init__(self, because: str, attribute: str = "") -> None:
        most = _MOST_OF_A_REASON
        self.because = because if len(because) <= most else f"{because[: most - 3]}..."
        self.attribute = attribute
        super().__init__(self.because)


@dataclass
class Values:
    """Works values out from what is `known` by name (`Orders`, `Orders.Arn`, `AWS::Region`).

    `defaults` collects the parameters whose default was taken. Every question raises NotATemplate
    where it takes more work than is left.
    """

    template: Template
    known: Mapping[str, str]
    defaults: dict[str, str] = field(default_factory=dict)

    def of(self, node: Any, otherwise: str | None = None) -> Any:
        """Text, list, mapping, or None where nothing is set; raises NotKnown.

        With `otherwise`, that word takes the place of each function whose value is not known.
        """
        found = self._of(node, otherwise)
        return None if found is _NO_VALUE else found

    def text(self, node: Any) -> str | None:
        """Raise NotKnown also where it comes to something else than a text."""
        found = self.of(node)
        if found is not None and not isinstance(found, str):
            raise NotKnown("it is no text")
        return found

    def _of(self, node: Any, otherwise: str | None = None) -> Any:
        if isinstance(node, list):
            every = [self._of(each, otherwise) for each in node]
            self.template.work.take(1 + len(every))
            return [each for each in every if each is not _NO_VALUE]
        if not isinstance(node, dict):
            self.template.work.take(1 + len(node or ""))
            return node
        name = next(iter(node), "")
        if len(node) == 1 and (name == "Ref" or name.startswith("Fn::")):
            try:
                return self._called(name, node[name])
            except NotKnown:
                if otherwise is None:
                    raise
                return otherwise
        self.template.work.take(1 + sum(map(len, node)))
        found = {key: self._of(each, otherwise) for key, each in node.items()}
        return {key: each for key, each in found.items() if each is not _NO_VALUE}

    def _called(self, name: str, given: Any) -> Any:  # noqa: PLR0911 - a case each
        parameters = self.template.section("Parameters")
        match name, given:
            case "Ref", "AWS::NoValue":
                return _NO_VALUE
            case "Ref", str() if given in parameters and given not in self.known:
                return self._default_of(given)
            case "Ref", str():
                return self._known(given)
            case "Fn::GetAtt", [str() as own, str() as attribute]:
                return self._known(f"{own}.{attribute}")
            case "Fn::Sub", str():
                return self._substituted(given, {})
            case "Fn::Sub", [str() as text, dict() as own]:
                return self._substituted(text, own)
            case "Fn::Join", [str() as by, joined]:
                return self._joined(by, self._of(joined))
            case "Fn::FindInMap", [_, _, _]:
                return self._found_in_map([self.of(each) for each in given])
        raise NotKnown(f"{name}: {_WHY.get(name, 'known when it is deployed')}")

    def _known(self, name: str) -> str:
        if name not in self.known:
            raise NotKnown(f"{name}: known when it is deployed")
        self.template.work.take(1 + len(self.known[name]))
        return self.known[name]

    def _default_of(self, name: str) -> Any:
        parameter = under(self.template.section("Parameters"), name) or {}
        kind, default = str(parameter.get("Type") or "String"), parameter.get("Default")
        if not isinstance(default, str):
            raise NotKnown(f"the parameter {name} has no default")
        if kind.startswith("AWS::SSM::Parameter::") or parameter.get("NoEcho") == "true":
            raise NotKnown(f"the parameter {name}: its value is not in the template")
        self.defaults[name] = default
        self.template.work.take(1 + len(default))
        is_list = kind.startswith("List<") or kind == "CommaDelimitedList"
        return [each.strip() for each in default.split(",")] if is_list else default

    def _substituted(self, text: str, own: Mapping[str, Any]) -> str:
        pieces = dict[str, Any]()

        def piece(found: re.Match[str]) -> str:
            """Each name is worked out once, and counts each time."""
            name = found.group(1) or ""
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name not in pieces:
                named = self._known if "." in name else lambda name: self._called("Ref", name)
                pieces[name] = self._of(own[name]) if name in own else named(name)
            if not isinstance(pieces[name], str):
                raise NotKnown(f"{name}: it is no text")
            self.template.work.take(1 + len(pieces[name]))
            return str(pieces[name])

        self.template.work.take(1 + len(text))
        return _IN_SUB.sub(piece, text)

    def _joined(self, by: str, parts: Any) -> str:
        if not isinstance(parts, list) or not all(isinstance(each, str) for each in parts):
            raise NotKnown("Fn::Join: it is no list of texts")
        self.template.work.take(sum(len(by) + len(each) for each in parts))
        return by.join(parts)

    def _found_in_map(self, keys: Sequence[Any]) -> Any:
        """A text or a list of texts: CloudFormation takes no functions in a mapping.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/mappings-section-structure.html
        """
        found: Any = self.template.section("Mappings")
        for key in keys:
            found = found.get(key) if isinstance(found, dict) and isinstance(key, str) else None
        if not listed(found) or not all(isinstance(each, str) for each in listed(found)):
            raise NotKnown("Fn::FindInMap: it is neither a text nor a list of texts")
        return self._of(found)
