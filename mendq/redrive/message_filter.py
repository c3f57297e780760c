"""Filter DLQ messages by a JMESPath expression: a message matches only if the result is `true`.

A filter that matches too much would redrive or delete the wrong messages, so the rules are stricter
than JMESPath's. In JMESPath, `body.type != 'order'` is true for a message without a type. Here, a
comparison is unknown (null) if an operand is missing or has another type, and so is its negation,
as in SQL. Types are compared at every level. Otherwise `[true]` would match `[1]`, because
`True == 1` in Python.

A text is called unreadable if it is JSON except that it has NaN, Infinity or too large a number, or
is nested too deep. Mendq cannot know which value a consumer reads there, so a filter that uses a
value inside such a text does not match.
https://jmespath.org/specification.html
https://www.rfc-editor.org/rfc/rfc8259#section-6
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partialmethod
from json import JSONDecodeError
from math import isfinite, prod
from typing import Any, NamedTuple

from jmespath.exceptions import ArityError, JMESPathError, JMESPathTypeError, ParseError
from jmespath.functions import Functions, signature
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter
from msgspec import Struct, field

from mendq.model.time_text import format_time
from mendq.redrive.messages import (
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
    read_quarantine_mark,
)

# The most characters of an expression.
LONGEST_EXPRESSION_CHARACTERS = 4_000
# The most copies of a message's values that an expression may make. The limit keeps filtering fast.
MAXIMUM_VALUE_COPIES = 1_000
# The most levels of an expression.
MOST_EXPRESSION_LEVELS = 100
# Functions that Mendq adds to JMESPath.
EXISTS_FUNCTION_NAME = "exists"
SHAPE_FUNCTION_NAME = "shape"
# The shape of a body that is unreadable JSON (see the top of this file).
SHAPE_OF_UNREADABLE_JSON = "unreadable"
SOURCE_ARN_ATTRIBUTE = "DeadLetterQueueSourceArn"
_NAMES_OF_FUNCTIONS_THAT_ACCEPT_NULL = frozenset({"not_null", "type", SHAPE_FUNCTION_NAME})
_TYPE_NAME_BY_TYPE: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    bytes: "binary",
}
_TYPE_NAME_BY_TYPE |= {dict: "object", list: "array", type(None): "null"}
# https://www.rfc-editor.org/rfc/rfc8259#section-6
_JSON_NUMBER_PATTERN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_WHITESPACE = " \t\n\r"
# How many levels of an object its shape shows.
_DEFAULT_SHAPE_LEVELS = 2
# Types of nodes whose first child works on the node's input, and whose other children work on the
# result of the child before.
_PATH_NODE_TYPES = ("subexpression", "index_expression")
_CHAIN_NODE_TYPES = (
    *_PATH_NODE_TYPES,
    "projection",
    "value_projection",
    "filter_projection",
    "flatten",
    "pipe",
)
_EVALUATION_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
_FILTER_SYNTAX_HINT = "texts stand in 'quotes', numbers in `backticks`; say ==, &&, || and !"
# A node of a parsed expression, as JMESPath makes it.
ExpressionNode = Mapping[str, Any]


class FilterUnreadable(Exception):
    """A text is not a valid filter. The exception's text tells the operator why."""


class UnreadableJson(Struct, frozen=True):
    """A text that looks like JSON but cannot be read, with the reason."""

    reason: str


_TYPE_NAME_BY_TYPE[UnreadableJson] = SHAPE_OF_UNREADABLE_JSON


class _FilterUnevaluable(ValueError):
    """The filter cannot be evaluated for a message. The error's text has no part of the message."""


class FilterResult(NamedTuple):
    """The result of a filter for one message.

    Attributes:
        matches: True if the filter matches.
        value_by_path: The message's value for each path in the filter, such as `body.type`; None
            for a missing value. Empty if a path could not be evaluated.
        error: The reason why the filter could not be evaluated; empty if it could.
    """

    matches: bool
    value_by_path: Mapping[str, Any] = {}
    error: str = ""


class MessageFilter(Struct, frozen=True):
    """A parsed filter.

    Attributes:
        tree: The parsed expression; None for a filter that matches every message.
        node_by_path_text: The paths into the message that the expression uses, by their text, such
            as `body.type`.
        expression: The text of the expression; empty for a filter that matches every message.
    """

    tree: ExpressionNode | None = None
    node_by_path_text: Mapping[str, ExpressionNode] = field(default_factory=dict)
    expression: str = ""

    def narrow(self, condition: str) -> str:
        """Return an expression that matches only the filter's messages that also meet `condition`.

        `condition` is an expression of comparisons that are joined by `&&`.
        """
        return f"({self.expression}) && {condition}" if self.expression else condition

    def match_message(
        self, message: Message, now: datetime, document: Mapping[str, Any] | None = None
    ) -> FilterResult:
        """Return the result of the filter for a message. Never raise an error.

        Args:
            message: The message.
            now: The present time, from which the message's age is calculated.
            document: The result of `make_document` for the message, if the caller already has it.
        """
        if self.tree is None:
            return FilterResult(matches=True)
        value_by_path = dict[str, Any]()
        try:
            document = document or make_document(message, now)
            interpreter = _MessageInterpreter({document["body_text"]: document["body"]})
            value_by_path = {
                path_text: interpreter.visit(path_node, document)
                for path_text, path_node in self.node_by_path_text.items()
            }
            return FilterResult(interpreter.visit(self.tree, document) is True, value_by_path)
        except _FilterUnevaluable as error:
            return FilterResult(matches=False, value_by_path=value_by_path, error=str(error))
        except _EVALUATION_ERRORS as error:
            return FilterResult(
                matches=False, value_by_path=value_by_path, error=_describe_evaluation_error(error)
            )


def _describe_evaluation_error(error: Exception) -> str:
    """Return the function that failed, and the type of its argument or of the error.

    The error's own text is not used, because it may contain a part of the message's body.
    """
    if isinstance(error, OverflowError):
        return "it calculates with a number beyond 1.8e308"
    if isinstance(error, JMESPathTypeError):
        return f"{error.function_name}() of a {error.actual_type}"
    function_name = error.function_name if isinstance(error, ArityError) else "it"
    return f"{function_name}() of a {type(error).__name__}"


EVERY_MESSAGE_FILTER = MessageFilter()


def parse_filter(expression: str) -> MessageFilter:
    """Return the filter for a JMESPath expression.

    Raises:
        FilterUnreadable: The expression is not JMESPath, is too long or too deep, makes too many
            copies, uses a name or function that does not exist, begins a path with `@`, compares
            with null, or contains NaN or Infinity.
    """
    if len(expression) > LONGEST_EXPRESSION_CHARACTERS:
        raise FilterUnreadable(f"it is longer than {LONGEST_EXPRESSION_CHARACTERS:,} characters")
    try:
        expression_tree: ExpressionNode = Parser().parse(expression).parsed
        _require_limited_depth(expression_tree)
        _require_finite_literals(expression_tree)
        if _count_value_copies(expression_tree) > MAXIMUM_VALUE_COPIES:
            raise FilterUnreadable(
                f"it makes more than {MAXIMUM_VALUE_COPIES:,} copies of what it looks at"
            )
        return MessageFilter(
            expression_tree,
            {_format_path(path_node): path_node for path_node in _find_paths(expression_tree)},
            expression,
        )
    except RecursionError as error:
        raise FilterUnreadable(
            f"it is nested deeper than {MOST_EXPRESSION_LEVELS} levels"
        ) from error
    except JMESPathError as error:
        error_line = str(error).partition("\n")[0]
        reason = " ".join(error_line.split()).removesuffix(", for expression:")
        error_character_index = 0
        if isinstance(error, ParseError):
            error_character_index = error.lex_position or 0
        if (
            expression[error_character_index : error_character_index + 1] == "="
            and expression[error_character_index + 1 : error_character_index + 2] != "="
        ):
            reason = "= alone compares nothing: did you mean ==?"
        raise FilterUnreadable(
            f"at character {error_character_index + 1}: {reason}; {_FILTER_SYNTAX_HINT}"
        ) from error


class _JsonFunctions(Functions):  # type: ignore[misc] # jmespath has no types
    """JMESPath's functions, changed where Python's rules differ from those of JSON."""

    @signature({"types": ["array", "string"]}, {"types": []})  # type: ignore[untyped-decorator]
    def _func_contains(self, container: Any, searched_value: Any) -> bool | None:
        """Return True if `container` has `searched_value`, None if that is unknown, else False.

        Raise TypeError if `container` is a text and `searched_value` is not.
        """
        if isinstance(container, str):
            return searched_value in container
        return _join_with_or(are_values_equal(member, searched_value) for member in container)

    @signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_to_number(self, value: Any) -> Any:
        """Return the JSON number in a text, or a number unchanged; else None.

        JMESPath's own function also accepts `inf`, `nan` and `1_000`, like Python.
        """
        if isinstance(value, str):
            value = parse_json(value) if _JSON_NUMBER_PATTERN.fullmatch(value) else None
        return value if _get_json_type(value) is float else None

    @signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_to_string(self, value: Any) -> str:
        """Return a text unchanged, and any other value as JSON.

        Raise TypeError for a value that JSON does not have, such as bytes.
        """
        if isinstance(value, str):
            return value
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def call_function(self, name: str, arguments: Sequence[Any]) -> Any:
        """Call a function of JMESPath by name and return its result.

        Raise _FilterUnevaluable if the result is NaN, or beyond 1.8e308, the largest double.
        """
        result = super().call_function(name, arguments)
        if isinstance(result, float) and not isfinite(result):
            raise _FilterUnevaluable(f"{name}() gives no JSON number")
        return result


class _MessageInterpreter(TreeInterpreter):  # type: ignore[misc] # jmespath has no types
    """Evaluates JMESPath for one message, with None as the truth value "unknown".

    `parsed_by_text` is a cache of parsed JSON by text, so that each text is parsed only once.
    """

    def __init__(self, parsed_by_text: dict[str, Any]) -> None:
        super().__init__()
        self._functions = _JsonFunctions()
        self._parsed_by_text = parsed_by_text

    def _parse_json(self, text: str) -> Any:
        if text not in self._parsed_by_text:
            self._parsed_by_text[text] = parse_json(text)
        return self._parsed_by_text[text]

    def visit_field(self, node: ExpressionNode, value: Any) -> Any:
        parsed_value = self._parse_json(value) if isinstance(value, str) else value
        _require_readable(parsed_value, "a text that the filter looks into")
        member = parsed_value.get(node["value"]) if isinstance(parsed_value, dict) else None
        _require_readable(member, "the body")
        return member

    def visit_multi_select_list(self, node: ExpressionNode, value: Any) -> list[Any] | None:
        """Evaluate a list such as `[a, b]`.

        Return None if a member is null, so that `null == null` does not match.
        """
        members = [self.visit(child, value) for child in node["children"]]
        return None if any(member is None for member in members) else members

    def visit_comparator(self, node: ExpressionNode, value: Any) -> bool | None:
        left_value, right_value = (self.visit(child, value) for child in node["children"])
        operator = node["value"]
        if left_value is None or right_value is None:
            return None
        if operator in ("eq", "ne"):
            is_equal = are_values_equal(left_value, right_value)
            return is_equal if is_equal is None else is_equal is (operator == "eq")
        json_type = _get_json_type(left_value)
        if json_type not in (str, float) or json_type is not _get_json_type(right_value):
            return None
        return bool(self.COMPARATOR_FUNC[operator](left_value, right_value))

    def visit_not_expression(self, node: ExpressionNode, value: Any) -> bool | None:
        truth_value = self.visit(node["children"][0], value)
        return not truth_value if isinstance(truth_value, bool) else None

    def _evaluate_logical_operator(
        self, node: ExpressionNode, value: Any, *, deciding_truth_value: bool
    ) -> bool | None:
        """Evaluate `&&` or `||`. Return None if the result is unknown.

        If one side is `deciding_truth_value` (False for `&&`, True for `||`), that is the result.
        """
        left_node, right_node = node["children"]
        left_truth_value = self.visit(left_node, value)
        joined_truth_value = (
            deciding_truth_value
            if left_truth_value is deciding_truth_value
            else self.visit(right_node, value)
        )
        is_result_known = joined_truth_value is deciding_truth_value or (
            isinstance(left_truth_value, bool) and isinstance(joined_truth_value, bool)
        )
        return joined_truth_value if is_result_known else None

    visit_and_expression = partialmethod(_evaluate_logical_operator, deciding_truth_value=False)
    visit_or_expression = partialmethod(_evaluate_logical_operator, deciding_truth_value=True)

    def visit_function_expression(self, node: ExpressionNode, value: Any) -> Any:
        if node["value"] == EXISTS_FUNCTION_NAME:
            path_node = node["children"][0]
            result = self.visit(path_node, value)
            return result is not None and not (result == [] and "projection" in path_node["type"])
        arguments = [self.visit(child, value) for child in node["children"]]
        if None in arguments and node["value"] not in _NAMES_OF_FUNCTIONS_THAT_ACCEPT_NULL:
            return None
        if node["value"] == SHAPE_FUNCTION_NAME:
            return make_shape(arguments[0], parse_text=self._parse_json)
        return self._functions.call_function(node["value"], arguments)


def _get_json_type(value: Any) -> type | None:
    """Return the type of a JSON value: `float` for all numbers, None for null.

    Also return None for values that JSON does not have, such as bytes.
    """
    json_type = type(value)
    if json_type is int:
        return float
    return json_type if json_type in (bool, float, str, list, dict) else None


def are_values_equal(left: Any, right: Any) -> bool | None:
    """Return True if two JSON values are equal, False if they are not, None if that is unknown.

    It is unknown if their types differ, or if JSON does not have the type, such as bytes. `true`
    and `1` have different types; `1` and `1.0` are equal; `null` equals `null`. The members of
    arrays and objects are compared in the same way.
    """
    if left is None and right is None:
        return True
    json_type = _get_json_type(left)
    if json_type is None or json_type is not _get_json_type(right):
        return None
    if json_type is list:
        member_pairs = zip(left, right, strict=False)
        return len(left) == len(right) and _join_with_and(
            are_values_equal(left_member, right_member)
            for left_member, right_member in member_pairs
        )
    if json_type is dict:
        have_same_member_names = left.keys() == right.keys()
        return have_same_member_names and _join_with_and(
            are_values_equal(left[name], right[name]) for name in left
        )
    return bool(left == right)


def _join_with_and(truth_values: Iterable[bool | None]) -> bool | None:
    """Evaluate `&&`: False if one value is False, else None if one value is unknown, else True."""
    joined_truth_value: bool | None = True
    for truth_value in truth_values:
        if truth_value is False:
            return False
        if truth_value is None:
            joined_truth_value = None
    return joined_truth_value


def _join_with_or(truth_values: Iterable[bool | None]) -> bool | None:
    """Evaluate `||`: True if one value is True, else None if one value is unknown, else False."""
    joined_truth_value: bool | None = False
    for truth_value in truth_values:
        if truth_value is True:
            return True
        if truth_value is None:
            joined_truth_value = None
    return joined_truth_value


def _require_readable(value: Any, value_name: str) -> None:
    if isinstance(value, UnreadableJson):
        raise _FilterUnevaluable(f"{value_name} {value.reason}")


def _require_limited_depth(
    node: ExpressionNode, remaining_levels: int = MOST_EXPRESSION_LEVELS
) -> None:
    if not remaining_levels:
        raise RecursionError
    for child in node["children"]:
        if isinstance(child, dict):
            _require_limited_depth(child, remaining_levels - 1)


def _count_value_copies(node: ExpressionNode) -> int:
    """Return the most copies of its input that the result of a node may contain.

    For example, the result of `[@, @] | [@, @]` contains the input four times. With twenty more
    such parts, an evaluation would take minutes and gigabytes.
    """
    if node["type"] == "literal":
        return 0
    copy_counts = [
        _count_value_copies(child) for child in node["children"] if isinstance(child, dict)
    ]
    if node["type"] in _CHAIN_NODE_TYPES:
        # Each part works on the result of the part before it, so the numbers multiply.
        return prod(max(1, copy_count) for copy_count in copy_counts)
    if node["type"] == "function_expression" and node["value"] == "to_string":
        # to_string puts a backslash before each quote and backslash, so a call may double a text.
        return 2 * max(1, sum(copy_counts))
    return max(1, sum(copy_counts))


def _require_finite_literals(node: ExpressionNode) -> None:
    """Raise FilterUnreadable for NaN, Infinity, or a number such as 1e999."""
    if node["type"] == "literal" and not _has_only_finite_numbers(node["value"]):
        raise FilterUnreadable("NaN, Infinity and numbers beyond 1.8e308 are no JSON numbers")
    for child in node["children"]:
        if isinstance(child, dict):
            _require_finite_literals(child)


def _has_only_finite_numbers(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(_has_only_finite_numbers, value.values()))
    return not isinstance(value, list) or all(map(_has_only_finite_numbers, value))


def _find_paths(node: ExpressionNode) -> list[ExpressionNode]:
    """Return every path into the message that the filter uses, such as `body.type`.

    A path ends before its first projection: `body.items[*].type` gives `body.items`.

    Raise FilterUnreadable if a path does not begin with one of DOCUMENT_FIELD_NAMES, or if the
    filter calls an unknown function, calls `exists` or `shape` without exactly one argument, or
    compares with null.
    """
    node_type = node["type"]
    children = node["children"]
    if node_type == "field":
        _require_document_field(node["value"])
        return [node]
    if node_type in ("current", "identity"):
        raise FilterUnreadable(f"@: begin with one of {', '.join(DOCUMENT_FIELD_NAMES)}")
    if node_type in _CHAIN_NODE_TYPES:
        paths_of_first_child = _find_paths(children[0])
        return (
            [node]
            if node_type in _PATH_NODE_TYPES and paths_of_first_child == [children[0]]
            else paths_of_first_child
        )
    if node_type == "function_expression":
        _require_known_function(node["value"], children)
    if node_type == "comparator" and any(child.get("value", 0) is None for child in children):
        raise FilterUnreadable("nothing equals null: say exists(...) or !exists(...)")
    paths = list[ExpressionNode]()
    for child in children:
        if isinstance(child, dict) and child["type"] != "expref":
            paths += _find_paths(child)
    return paths


def _format_path(path: ExpressionNode) -> str:
    """Return a path as an operator would write it.

    A part that is neither a name nor an index is written as `[...]`.
    """
    if path["type"] == "field":
        return format_field_name(str(path["value"]))
    if path["type"] in _PATH_NODE_TYPES:
        return ".".join(_format_path(child) for child in path["children"]).replace(".[", "[")
    return f"[{path['value']}]" if path["type"] == "index" else "[...]"


def format_field_name(name: str) -> str:
    """Return a name as an expression contains it: in double quotes if needed."""
    return name if name.isascii() and name.isidentifier() else json.dumps(name)


def format_literal(value: Any) -> str:
    """Return a value as an expression contains it: as JSON in backticks, in printable ASCII."""
    json_text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return "`" + json_text.replace("`", "\\u0060") + "`"


def _require_document_field(name: str) -> None:
    if name in DOCUMENT_FIELD_NAMES:
        return
    similar_names = get_close_matches(name, DOCUMENT_FIELD_NAMES, n=1, cutoff=0.5)
    shortened_field_name = name[:40]
    correction_hint = (
        f"say body.{shortened_field_name} or attributes.{shortened_field_name}; "
        f"a text stands in single quotes: '{shortened_field_name}'"
    )
    correction_hint = f"is it {similar_names[0]}?" if similar_names else correction_hint
    raise FilterUnreadable(
        f"{shortened_field_name} is none of {', '.join(DOCUMENT_FIELD_NAMES)}; {correction_hint}"
    )


def _require_known_function(name: str, arguments: Sequence[ExpressionNode]) -> None:
    added_function_names = (EXISTS_FUNCTION_NAME, SHAPE_FUNCTION_NAME)
    if not (
        len(arguments) == 1 if name in added_function_names else name in Functions.FUNCTION_TABLE
    ):
        added_function_signatures = [
            f"{function_name}(PATH)" for function_name in added_function_names
        ]
        known_functions_text = ", ".join((*added_function_signatures, *Functions.FUNCTION_TABLE))
        raise FilterUnreadable(
            f"there is no function {name[:40]}; there are {known_functions_text}"
        )


def make_shape(
    value: Any, levels: int = _DEFAULT_SHAPE_LEVELS, parse_text: Callable[[str], Any] | None = None
) -> Any:
    """Return a dict with the names in an object and the types of their values.

    A text that contains a JSON object with members counts as that object. A value that is not an
    object, or is deeper than `levels` levels, is shown as the name of its type, such as `number`.

    Args:
        value: The value.
        levels: The number of levels to show.
        parse_text: Returns the JSON in a text; `parse_json` by default.
    """
    parse_text = parse_text or parse_json
    if not levels:
        return _TYPE_NAME_BY_TYPE[type(value)]
    parsed_value = value
    if isinstance(value, str) and may_be_json_object(value):
        parsed_value = parse_text(value)
    if not isinstance(parsed_value, dict) or not (parsed_value or parsed_value is value):
        return _TYPE_NAME_BY_TYPE[type(value)]
    return {
        name: make_shape(member, levels - 1, parse_text)
        for name, member in sorted(parsed_value.items())
    }


def may_be_json_object(text: str) -> bool:
    """Return False if the text cannot be a JSON object. The text is not parsed."""
    return text.lstrip(_JSON_WHITESPACE)[:1] == "{"


def make_document(message: Message, now: datetime) -> dict[str, Any]:
    """Return a message as the object to which filters are applied.

    Its keys are DOCUMENT_FIELD_NAMES. A missing value is None, or is left out of `system` and
    `attributes`.
    """
    quarantine_mark = read_quarantine_mark(message)
    attributes = {
        name: _read_attribute_value(attribute) for name, attribute in message.attributes.items()
    }
    if quarantine_mark:
        # The quarantine's mark replaced the redrive's mark and kept its values.
        redrive_mark_fields = {
            "source": quarantine_mark.source,
            "redrive_count": quarantine_mark.redrive_count,
            "redrive": quarantine_mark.case,
        }
        attributes.setdefault(REDRIVE_MARK_NAME, json.dumps(redrive_mark_fields))
    system_attributes = {
        "ApproximateReceiveCount": message.receive_count,
        "AWSTraceHeader": message.trace_header,
        SOURCE_ARN_ATTRIBUTE: message.source_arn,
        "MessageDeduplicationId": message.deduplication_id,
        "MessageGroupId": message.group_id,
        "SentTimestamp": int(message.sent_at.timestamp() * 1000),
    }
    return {
        "body": parse_json(message.body),
        "body_text": message.body,
        "attributes": attributes,
        "system": {name: value for name, value in system_attributes.items() if value},
        "receive_count": message.receive_count,
        "redrive_count": message.redrive_count,
        "quarantine_reason": quarantine_mark.why if quarantine_mark else None,
        "sent_at": format_time(message.sent_at),
        "age_seconds": max(0.0, (now - message.sent_at).total_seconds()),
        "size_bytes": message.size_bytes,
        "message_id": message.message_id,
        "group_id": message.group_id or None,
    }


def _read_attribute_value(attribute: MessageAttribute) -> Any:
    """Return the number in an attribute of type Number, otherwise its text or bytes."""
    base_data_type = attribute.data_type.partition(".")[0]
    if not isinstance(attribute.value, str) or base_data_type != "Number":
        return attribute.value
    number = parse_json(attribute.value)
    return number if type(number) in (int, float) else attribute.value


def parse_json(text: str) -> Any:
    """Return the value of the JSON in a text; None if the text is not JSON, or is `null`.

    Return `UnreadableJson` if different consumers may read different values: only some parsers
    accept NaN and Infinity, and `1e999` becomes Infinity in most languages. Return it also if the
    JSON is nested too deep, or has an integer of more than 4,300 digits.
    """
    json_refusal_reasons = list[str]()

    def refuse_constant(constant: str) -> None:
        json_refusal_reasons.append(f"holds {constant}, which is not JSON")

    def parse_finite_number(number_text: str) -> float:
        number = float(number_text)
        if not isfinite(number):
            json_refusal_reasons.append("holds a number beyond 1.8e308")
        return number

    try:
        value = json.loads(text, parse_constant=refuse_constant, parse_float=parse_finite_number)
    except JSONDecodeError:
        return None
    except RecursionError:
        return UnreadableJson("is nested too deep")
    except ValueError:  # Python reads integers of at most 4,300 digits
        return UnreadableJson("holds a number of too many digits")
    return UnreadableJson(json_refusal_reasons[0]) if json_refusal_reasons else value


_EPOCH = datetime.fromtimestamp(0, UTC)
DOCUMENT_FIELD_NAMES = tuple(make_document(Message("", "", _EPOCH), _EPOCH))
