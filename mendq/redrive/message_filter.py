"""Filter DLQ messages by a JMESPath expression that only `true` matches.

Bare JMESPath says that `body.type != 'order'` holds for a message without a type. Here a comparison
with a missing or differently typed operand is unknown (null), and so is its negation, as in SQL.
https://jmespath.org/specification.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partialmethod
from typing import Any, NamedTuple, NoReturn

from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter
from msgspec import Struct, field

from mendq.model.evidence import to_text
from mendq.redrive.messages import REDRIVEN, Message, MessageAttribute, quarantine_reason

LONGEST_EXPRESSION = 4_000
DEEPEST = 100
EXISTS, SHAPE = "exists", "shape"
SOURCE = "DeadLetterQueueSourceArn"
_TAKE_NULL = frozenset({"not_null", "type", SHAPE})
_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", bytes: "binary"}
_KINDS |= {dict: "object", list: "array", type(None): "null"}
# So deep a shape goes into an object.
_DEEP = 2
# Only the first child of these sees the message itself.
_WAYS = ("subexpression", "index_expression")
_LEADING = (*_WAYS, "projection", "value_projection", "filter_projection", "flatten", "pipe")
_FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_HINT = "texts stand in 'quotes', numbers in `backticks`; say ==, &&, || and !"
Node = Mapping[str, Any]


class Misread(Exception):
    """Why a text is no filter."""


class Judgement(NamedTuple):
    """What a filter says of one message; `values` by what it asked for, None where missing."""

    matches: bool
    values: Mapping[str, Any] = {}
    error: str = ""


class MessageFilter(Struct, frozen=True):
    """A filter that was read; without a `tree` it takes every message."""

    tree: Node | None = None
    asks: Mapping[str, Node] = field(default_factory=dict)

    def judge(
        self, message: Message, now: datetime, document: Mapping[str, Any] | None = None
    ) -> Judgement:
        """Never raises, whatever the message holds; `document` is its own where that is known."""
        if self.tree is None:
            return Judgement(matches=True)
        values, interpreter = dict[str, Any](), _Interpreter()
        try:
            document = document or document_of(message, now)
            values = {name: interpreter.visit(way, document) for name, way in self.asks.items()}
            return Judgement(interpreter.visit(self.tree, document) is True, values)
        except _FAILURES as error:
            # Its own words hold the value: no part of a body is ever shown.
            kind = getattr(error, "actual_type", type(error).__name__)
            said = f"{getattr(error, 'function_name', 'it')}() of a {kind}"
            return Judgement(matches=False, values=values, error=said)


EVERY_MESSAGE = MessageFilter()


def message_filter(expression: str) -> MessageFilter:
    """Read an expression; raises Misread."""
    if len(expression) > LONGEST_EXPRESSION:
        raise Misread(f"it is longer than {LONGEST_EXPRESSION:,} characters")
    try:
        tree: Node = Parser().parse(expression).parsed
        _require_depth(tree)
        return MessageFilter(tree, {_written(each): each for each in _ways(tree)})
    except RecursionError as error:
        raise Misread(f"it is nested deeper than {DEEPEST} levels") from error
    except JMESPathError as error:
        said = " ".join(str(error).partition("\n")[0].split()).removesuffix(", for expression:")
        at = (getattr(error, "lex_position", None) or 0) + 1
        if expression[at - 1 : at] == "=" != expression[at : at + 1]:
            said = "= alone compares nothing: did you mean ==?"
        raise Misread(f"at character {at}: {said}; {_HINT}") from error


class _Interpreter(TreeInterpreter):  # type: ignore[misc] # jmespath has no types
    """JMESPath of three truths: True, False, and None for what is unknown."""

    def visit_field(self, node: Node, value: Any) -> Any:
        inside = json_in(value) if isinstance(value, str) else value
        return inside.get(node["value"]) if isinstance(inside, dict) else None

    def visit_multi_select_list(self, node: Node, value: Any) -> list[Any] | None:
        """Unknown where a member is: what is missing is no member that equals nothing."""
        found = [self.visit(each, value) for each in node["children"]]
        return None if any(each is None for each in found) else found

    def visit_comparator(self, node: Node, value: Any) -> bool | None:
        left, right = (self.visit(each, value) for each in node["children"])
        name, kind = node["value"], _kind_of(left)
        can_be = kind in (str, float) or (kind and name in ("eq", "ne"))
        is_known = can_be and kind is _kind_of(right)
        return bool(self.COMPARATOR_FUNC[name](left, right)) if is_known else None

    def visit_not_expression(self, node: Node, value: Any) -> bool | None:
        found = self.visit(node["children"][0], value)
        return not found if isinstance(found, bool) else None

    def _joined(self, node: Node, value: Any, *, decides: bool) -> bool | None:
        left, right = node["children"]
        found = self.visit(left, value)
        last = decides if found is decides else self.visit(right, value)
        is_known = last is decides or (isinstance(found, bool) and isinstance(last, bool))
        return last if is_known else None

    visit_and_expression = partialmethod(_joined, decides=False)
    visit_or_expression = partialmethod(_joined, decides=True)

    def visit_function_expression(self, node: Node, value: Any) -> Any:
        if node["value"] == EXISTS:
            asked = node["children"][0]
            found = self.visit(asked, value)
            return found is not None and not (found == [] and "projection" in asked["type"])
        arguments = [self.visit(each, value) for each in node["children"]]
        if None in arguments and node["value"] not in _TAKE_NULL:
            return None
        if node["value"] == SHAPE:
            return shape(*arguments)
        return self._functions.call_function(node["value"], arguments)


def _kind_of(value: Any) -> type | None:
    """Numbers are of one kind; what is missing, or bytes, can be compared with nothing."""
    if value is None or isinstance(value, bytes):
        return None
    return float if type(value) is int else type(value)


def _require_depth(node: Node, left: int = DEEPEST) -> None:
    if not left:
        raise RecursionError
    for each in node["children"]:
        if isinstance(each, dict):
            _require_depth(each, left - 1)


def _ways(node: Node) -> list[Node]:
    """Every way into the message that begins at a root; raises Misread for any other."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        _require_root(node["value"])
        return [node]
    if kind in ("current", "identity"):
        raise Misread(f"@: begin with one of {', '.join(ROOTS)}")
    if kind in _LEADING:
        first = _ways(children[0])
        return [node] if kind in _WAYS and first == [children[0]] else first
    if kind == "function_expression":
        _require_function(node["value"], children)
    if kind == "comparator" and any(each.get("value", 0) is None for each in children):
        raise Misread("nothing equals null: say exists(...) or !exists(...)")
    inner = (each for each in children if isinstance(each, dict) and each["type"] != "expref")
    return [way for each in inner for way in _ways(each)]


def _written(way: Node) -> str:
    if way["type"] == "field":
        return named(str(way["value"]))
    if way["type"] in _WAYS:
        return ".".join(_written(each) for each in way["children"]).replace(".[", "[")
    return f"[{way['value']}]" if way["type"] == "index" else "[...]"


def named(name: str) -> str:
    """A name as an expression spells it, after a dot or alone."""
    return name if name.isascii() and name.isidentifier() else json.dumps(name)


def literal(found: Any) -> str:
    """A value as an expression spells it, in printable ASCII."""
    text = json.dumps(found, separators=(",", ":"))
    return "`" + text.replace("`", "\\u0060") + "`"


def _require_root(name: str) -> None:
    if name in ROOTS:
        return
    close = get_close_matches(name, ROOTS, n=1, cutoff=0.5)
    short = name[:40]
    hint = f"say body.{short} or attributes.{short}; a text stands in single quotes: '{short}'"
    hint = f"is it {close[0]}?" if close else hint
    raise Misread(f"{short} is none of {', '.join(ROOTS)}; {hint}")


def _require_function(name: str, arguments: Sequence[Node]) -> None:
    ours = (EXISTS, SHAPE)
    if not (len(arguments) == 1 if name in ours else name in Functions.FUNCTION_TABLE):
        there_are = ", ".join((*(f"{each}(PATH)" for each in ours), *Functions.FUNCTION_TABLE))
        raise Misread(f"there is no function {name[:40]}; there are {there_are}")


def shape(found: Any, depth: int = _DEEP) -> Any:
    """The names in an object, also one that stands as JSON in a text, and the kinds of values."""
    within = json_in(found) if isinstance(found, str) else found
    if not depth or not isinstance(within, dict) or not (within or within is found):
        return _KINDS[type(found)]
    return {name: shape(each, depth - 1) for name, each in sorted(within.items())}


def document_of(message: Message, now: datetime) -> dict[str, Any]:
    """What a filter is asked of; what the message does not have is None or left out."""
    retained = quarantine_reason(message)
    attributes = {name: _value_of(each) for name, each in message.attributes.items()}
    if retained:
        # The quarantine's mark stands in the place of the redrive's and holds what that said.
        redriven = {name: getattr(retained, name) for name in ("source", "redrive_count")}
        attributes.setdefault(REDRIVEN, json.dumps({**redriven, "redrive": retained.case}))
    system = {
        "ApproximateReceiveCount": message.receive_count,
        "AWSTraceHeader": message.trace_header,
        SOURCE: message.source_arn,
        "MessageDeduplicationId": message.deduplication_id,
        "MessageGroupId": message.group_id,
        "SentTimestamp": int(message.sent_at.timestamp() * 1000),
    }
    return {
        "body": json_in(message.body),
        "body_text": message.body,
        "attributes": attributes,
        "system": {name: each for name, each in system.items() if each},
        "receive_count": message.receive_count,
        "redrive_count": message.redrive_count,
        "quarantine_reason": retained.why if retained else None,
        "sent_at": to_text(message.sent_at),
        "age_seconds": max(0.0, (now - message.sent_at).total_seconds()),
        "size_bytes": message.size_bytes,
        "message_id": message.message_id,
        "group_id": message.group_id or None,
    }


def _value_of(found: MessageAttribute) -> Any:
    """The number in an attribute of type Number, else the text; bytes can only exist."""
    if not isinstance(found.value, str) or found.data_type.partition(".")[0] != "Number":
        return found.value
    number = json_in(found.value)
    return number if type(number) in (int, float) else found.value


def json_in(text: str) -> Any:
    """The JSON in a text, None where it is none; SNS puts JSON into a text of its own JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is Python's own, not JSON's")


_EPOCH = datetime.fromtimestamp(0, UTC)
ROOTS = tuple(document_of(Message("", "", _EPOCH), _EPOCH))
