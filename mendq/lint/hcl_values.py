"""Evaluate Terraform's expressions as far as the files alone determine their values.

A value is a Python value (text, number, boolean, None, list or dictionary), or one of these:

- `UnknownPart`: only the apply, another state or another file determines it.
- `ResourceReference`: an attribute of a resource that the files declare.
- `JoinedText`: a text with such parts inside.
- `JsonText`: a text that is the JSON of a value, which may have such parts inside.

The files may come from anyone, so evaluation is limited by the template's work budget.
https://developer.hashicorp.com/terraform/language/expressions
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mendq.lint import hcl_parser
from mendq.lint.template import WorkBudget

_MOST_REASON_CHARACTERS = 200
_MOST_RANGE_ITEMS = 2_000
_MOST_TEXT_CHARACTERS = 200_000
_MOST_TEXT_PARTS = 20_000
_MOST_FLAT_ITEMS = 20_000
# A number stands for a part of a JSON text that is no plain text. It is valid inside a text too.
_PART_NUMBER_PATTERN = "7310948265{:06d}"
_PART_NUMBER_REGEX = re.compile(r"7310948265([0-9]{6})")
_FORMAT_REGEX = re.compile(r"%(?:%|[svdq])")
_LINT_A_PLAN = "Lint a plan instead: terraform show -json plan.bin"
_ORDER_OPERATORS = frozenset({"<", ">", "<=", ">="})


class CannotEvaluate(Exception):
    """An expression has no value: a part that it names does not exist, or a function is unknown."""

    def __init__(self, reason: str) -> None:
        self.reason = reason[:_MOST_REASON_CHARACTERS]
        super().__init__(self.reason)


@dataclass(frozen=True)
class UnknownPart:
    """A value that the files do not determine, with the reason."""

    reason: str


@dataclass(frozen=True)
class ResourceReference:
    """An attribute of a declared resource."""

    address: str
    terraform_type: str
    attribute: str


@dataclass(frozen=True)
class JoinedText:
    """A text with parts that are references or not known."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class JsonText:
    """The JSON text of a value."""

    value: Any


class Container(ABC):
    """An object with named parts, such as `var` or a resource."""

    @abstractmethod
    def get_part(self, key: Any) -> Any:
        """Return a part. Raises CannotEvaluate if there is none."""

    @abstractmethod
    def list_items(self) -> list[Any]:
        """Return the items to which a splat (`[*]`) applies."""

    def get_collection(self) -> Any:
        """Return a list or a map of the items, for a loop. An UnknownPart if it is neither."""
        return UnknownPart(f"Mendq does not evaluate a `for` over this. {_LINT_A_PLAN}")


class Evaluator:
    """Evaluator of expressions in one module.

    Args:
        budget: The steps that evaluation may take.
        find_root: Returns the value of a reference's first name, such as `var`.
    """

    def __init__(self, budget: WorkBudget, find_root: Callable[[str], Any]) -> None:
        self._budget = budget
        self._find_root = find_root

    def evaluate_or_unknown(
        self,
        expression: hcl_parser.Expression,
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> Any:
        """Return the value of an expression, or an UnknownPart if it has none."""
        try:
            return self.evaluate(expression, variables)
        except CannotEvaluate as error:
            return UnknownPart(error.reason)

    def evaluate(self, expression: hcl_parser.Expression, variables: Mapping[str, Any]) -> Any:
        """Return the value of an expression.

        Args:
            expression: The expression.
            variables: Values of `each`, `count` and the variables of `for`, by name.

        Raises:
            CannotEvaluate: The expression names a part that does not exist.
            NotATemplate: The evaluation takes more steps than the budget has left.
        """
        self._budget.use_steps(2)
        match expression:
            case hcl_parser.Literal(value):
                self._count_text(value)
                return value
            case hcl_parser.TemplateText(parts):
                return self._join([self.evaluate(part, variables) for part in parts])
            case hcl_parser.ListExpression(items):
                return [self._evaluate_part(item, variables) for item in items]
            case hcl_parser.ObjectExpression(keys_and_values):
                return self._make_object(keys_and_values, variables)
            case hcl_parser.Variable(name):
                return variables[name] if name in variables else self._find_root(name)
            case hcl_parser.Attribute(source, name):
                return get_part(self.evaluate(source, variables), name)
            case hcl_parser.Index(source, key):
                return get_part(self.evaluate(source, variables), self.evaluate(key, variables))
            case hcl_parser.Splat(source, item):
                return self._evaluate_splat(source, item, variables)
            case hcl_parser.FunctionCall():
                return self._call(expression, variables)
            case hcl_parser.UnaryOperation() | hcl_parser.BinaryOperation():
                return self._evaluate_operation(expression, variables)
            case hcl_parser.Conditional(condition, if_true, if_false):
                return self._choose(condition, if_true, if_false, variables)
            case hcl_parser.ForExpression():
                return self._evaluate_for(expression, variables)
        return UnknownPart("a template directive decides it")

    def _evaluate_part(
        self, expression: hcl_parser.Expression, variables: Mapping[str, Any]
    ) -> Any:
        """Evaluate a part of a list or object. One unknown part leaves the others known."""
        return self.evaluate_or_unknown(expression, variables)

    def _count_text(self, value: Any) -> None:
        if isinstance(value, str):
            self._budget.use_steps(len(value) // 4)

    def _join(self, parts: Sequence[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        joined = join_texts(parts)
        if isinstance(joined, str):
            self._budget.use_steps(len(joined))
        elif isinstance(joined, JoinedText):
            self._budget.use_steps(sum(1 + len(str(part)) for part in joined.parts))
        return joined

    def _make_object(
        self,
        keys_and_values: Sequence[tuple[hcl_parser.Expression, hcl_parser.Expression]],
        variables: Mapping[str, Any],
    ) -> Any:
        result = dict[str, Any]()
        for key_expression, value_expression in keys_and_values:
            key = self.evaluate_or_unknown(key_expression, variables)
            if isinstance(key, bool | int | float):
                key = to_text(key)
            if not isinstance(key, str):
                return UnknownPart("a key of an object is not known")
            result[key] = self._evaluate_part(value_expression, variables)
        return result

    def _evaluate_splat(
        self,
        source: hcl_parser.Expression,
        item: hcl_parser.Expression,
        variables: Mapping[str, Any],
    ) -> Any:
        value = self.evaluate(source, variables)
        if isinstance(value, UnknownPart):
            return value
        if isinstance(value, Container):
            items = value.list_items()
        elif value is None:
            items = []
        else:
            items = value if isinstance(value, list) else [value]
        return [
            self.evaluate(item, {**variables, hcl_parser.SPLAT_ITEM: list_item})
            for list_item in items
        ]

    def _choose(
        self,
        condition: hcl_parser.Expression,
        if_true: hcl_parser.Expression,
        if_false: hcl_parser.Expression,
        variables: Mapping[str, Any],
    ) -> Any:
        is_true = to_boolean(self.evaluate(condition, variables))
        if isinstance(is_true, bool):
            return self.evaluate(if_true if is_true else if_false, variables)
        values = [
            self.evaluate_or_unknown(expression, variables) for expression in (if_true, if_false)
        ]
        is_same = not isinstance(values[0], list | dict) and values[0] == values[1]
        return values[0] if is_same else UnknownPart(f"a condition decides it: {is_true.reason}")

    def _evaluate_operation(
        self,
        expression: hcl_parser.UnaryOperation | hcl_parser.BinaryOperation,
        variables: Mapping[str, Any],
    ) -> Any:
        if isinstance(expression, hcl_parser.UnaryOperation):
            operand = self.evaluate(expression.operand, variables)
            if expression.operator == "!":
                is_true = to_boolean(operand)
                return not is_true if isinstance(is_true, bool) else is_true
            return calculate("-", 0, operand)
        if expression.operator in ("&&", "||"):
            return self._evaluate_logic(expression, variables)
        left = self.evaluate(expression.left, variables)
        right = self.evaluate(expression.right, variables)
        if expression.operator in ("==", "!="):
            is_equal = compare(left, right)
            if isinstance(is_equal, UnknownPart):
                return is_equal
            return is_equal == (expression.operator == "==")
        return calculate(expression.operator, left, right)

    def _evaluate_logic(
        self, expression: hcl_parser.BinaryOperation, variables: Mapping[str, Any]
    ) -> bool | UnknownPart:
        """Return the result of `&&` or `||`. One side may decide it if the other is not known."""
        deciding_value = expression.operator == "||"
        is_left_true = to_boolean(self.evaluate(expression.left, variables))
        if is_left_true is deciding_value:
            return deciding_value
        is_right_true = to_boolean(self.evaluate(expression.right, variables))
        if is_right_true is deciding_value:
            return deciding_value
        return is_left_true if isinstance(is_left_true, UnknownPart) else is_right_true

    def _evaluate_for(
        self, expression: hcl_parser.ForExpression, variables: Mapping[str, Any]
    ) -> Any:
        collection = self.evaluate(expression.collection, variables)
        if isinstance(collection, Container):
            collection = collection.get_collection()
        if isinstance(collection, UnknownPart):
            return collection
        if expression.is_grouping:
            return UnknownPart(
                f"Mendq does not evaluate a `for` that groups (`...`). {_LINT_A_PLAN}"
            )
        keys_and_values = list[tuple[Any, Any]]()
        for key, value in list_keys_and_values(collection):
            loop_variables = {
                **variables,
                expression.key_name: key,
                expression.value_name: value,
            }
            is_wanted = self._evaluate_loop_condition(expression, loop_variables)
            if isinstance(is_wanted, UnknownPart):
                return is_wanted
            if is_wanted:
                item = self.evaluate_or_unknown(expression.value, loop_variables)
                item_key = self.evaluate(expression.key, loop_variables) if expression.key else ""
                keys_and_values.append((to_text(item_key), item))
        if expression.key is None:
            return [item for _, item in keys_and_values]
        if not all(isinstance(key, str) for key, _ in keys_and_values):
            return UnknownPart("a key of an object is not known")
        return dict(keys_and_values)

    def _evaluate_loop_condition(
        self, expression: hcl_parser.ForExpression, loop_variables: Mapping[str, Any]
    ) -> bool | UnknownPart:
        if expression.condition is None:
            return True
        return to_boolean(self.evaluate(expression.condition, loop_variables))

    def _call(self, call: hcl_parser.FunctionCall, variables: Mapping[str, Any]) -> Any:
        if call.name in ("try", "can"):
            return self._try(call, variables)
        function = _FUNCTION_BY_NAME.get(call.name)
        if function is None:
            return UnknownPart(
                f"Mendq does not evaluate the function {call.name[:64]}. {_LINT_A_PLAN}"
            )
        arguments = [self.evaluate(argument, variables) for argument in call.arguments]
        if call.expands_last and arguments:
            last_argument = arguments.pop()
            if not isinstance(last_argument, list):
                return UnknownPart("the arguments of a function are not known")
            arguments += last_argument
        for argument in arguments:
            if isinstance(argument, UnknownPart) and call.name not in _FUNCTIONS_OF_UNKNOWN:
                return argument
        try:
            result = function(*arguments)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CannotEvaluate(f"the function {call.name[:64]} refuses its arguments") from error
        self._budget.use_steps(len(result) if isinstance(result, str | list | dict) else 1)
        return result

    def _try(self, call: hcl_parser.FunctionCall, variables: Mapping[str, Any]) -> Any:
        """Return the first argument that has a value, or for `can`, whether the only one has."""
        for argument in call.arguments:
            try:
                value = self.evaluate(argument, variables)
            except CannotEvaluate:
                continue
            is_known_value = call.name == "can" and not isinstance(value, UnknownPart)
            return True if is_known_value else value
        if call.name == "can":
            return False
        raise CannotEvaluate("no argument of try has a value")


def get_part(source: Any, key: Any) -> Any:
    """Return a part of a value by its name, key or number.

    Raises CannotEvaluate if there is no such part.
    """
    if isinstance(source, UnknownPart):
        return source
    if isinstance(key, UnknownPart) and not isinstance(source, Container):
        return key
    if isinstance(source, Container):
        return source.get_part(key)
    if isinstance(source, dict):
        key_text = to_text(key)
        if key_text in source:
            return source[key_text]
    elif isinstance(source, list):
        number = to_number(key)
        if isinstance(number, int) and 0 <= number < len(source):
            return source[number]
    elif isinstance(source, ResourceReference | JoinedText | JsonText):
        return UnknownPart("it is part of a value that is known only at deployment")
    raise CannotEvaluate(f"a value has no attribute, key or index {str(key)[:64]}")


def list_keys_and_values(collection: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values over which a loop goes."""
    if isinstance(collection, dict):
        yield from collection.items()
    elif isinstance(collection, list):
        yield from enumerate(collection)
    else:
        raise CannotEvaluate("a `for` goes over a value that is not a list or map")


def to_text(value: Any) -> Any:
    """Convert a number or boolean to a text. Other values are returned unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float) else value


def to_number(value: Any) -> Any:
    """Convert a text to a number if it is one. Other values are returned unchanged."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def to_boolean(value: Any) -> bool | UnknownPart:
    """Return a condition's value."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    return (
        value if isinstance(value, UnknownPart) else UnknownPart("a condition is not true or false")
    )


def compare(left: Any, right: Any) -> bool | UnknownPart:
    """Return True if two values are equal."""
    values = (left, right)
    for value in values:
        if isinstance(value, UnknownPart):
            return value
    are_special = [
        isinstance(value, ResourceReference | JoinedText | JsonText | Container) for value in values
    ]
    if any(are_special):
        # An attribute of a declared resource is neither null nor empty.
        is_other_empty = left in (None, "") or right in (None, "")
        return False if is_other_empty else UnknownPart("it is known only at deployment")
    if isinstance(left, list | dict) or isinstance(right, list | dict):
        if not left or not right:
            return bool(left == right)
        return UnknownPart(f"Mendq does not compare lists or maps. {_LINT_A_PLAN}")
    return bool(to_text(left) == to_text(right))


def calculate(operator: str, left: Any, right: Any) -> Any:
    """Return the result of an arithmetic operation or a comparison of numbers."""
    for value in (left, right):
        if isinstance(value, UnknownPart):
            return value
    left_number = to_number(left)
    right_number = to_number(right)
    are_numbers = all(
        isinstance(number, int | float) and not isinstance(number, bool)
        for number in (left_number, right_number)
    )
    if not are_numbers or max(abs(left_number), abs(right_number)) > 1e15:
        return UnknownPart("a value in a calculation is not a number")
    if operator in ("/", "%") and right_number == 0:
        raise CannotEvaluate("a division by zero")
    match operator:
        case "+":
            return to_number(left_number + right_number)
        case "-":
            return to_number(left_number - right_number)
        case "*":
            return to_number(left_number * right_number)
        case "/":
            return to_number(left_number / right_number)
        case "%":
            return to_number(left_number % right_number)
        case "<":
            return left_number < right_number
        case ">":
            return left_number > right_number
        case "<=":
            return left_number <= right_number
    return left_number >= right_number


def join_texts(parts: Sequence[Any]) -> Any:
    """Return the text of several parts. It is a JoinedText if not all parts are plain texts."""
    if len(parts) > _MOST_TEXT_PARTS:
        raise CannotEvaluate("a text has too many parts")
    joined_parts = list[Any]()
    plain_texts = list[str]()
    for part in _list_inner_parts(parts):
        if isinstance(part, str):
            plain_texts.append(part)
        elif isinstance(part, UnknownPart | ResourceReference | JsonText):
            joined_parts += ["".join(plain_texts), part]
            plain_texts.clear()
        else:
            raise CannotEvaluate("a text contains a value that is not a text")
    joined_parts.append("".join(plain_texts))
    joined_parts = [part for part in joined_parts if part != ""]
    character_count = sum(len(part) for part in joined_parts if isinstance(part, str))
    if character_count > _MOST_TEXT_CHARACTERS:
        raise CannotEvaluate("a text is too long")
    if not joined_parts:
        return ""
    return joined_parts[0] if len(joined_parts) == 1 else JoinedText(tuple(joined_parts))


def _list_inner_parts(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield the parts of a text, also those inside a JoinedText. Numbers become texts."""
    for part in parts:
        if isinstance(part, JoinedText):
            yield from part.parts
        else:
            yield to_text(part)


def parse_json(text: Any) -> Any:
    """Return the value of a JSON text, with the parts of a JoinedText inside it.

    Raises ValueError if the text is not JSON.
    """
    if isinstance(text, JsonText):
        return text.value
    parts = text.parts if isinstance(text, JoinedText) else (text,)
    special_parts = list[Any]()
    plain_text = ""
    for part in parts:
        if isinstance(part, str):
            plain_text += part
        else:
            plain_text += _PART_NUMBER_PATTERN.format(len(special_parts))
            special_parts.append(part)
    return _restore_parts(json.loads(plain_text), special_parts)


def _restore_parts(node: Any, special_parts: Sequence[Any]) -> Any:
    """Put the special parts in place of their tokens."""
    if isinstance(node, dict):
        return {str(key): _restore_parts(value, special_parts) for key, value in node.items()}
    if isinstance(node, list):
        return [_restore_parts(item, special_parts) for item in node]
    if isinstance(node, bool) or not isinstance(node, str | int):
        return node
    return _restore_parts_in_text(node, special_parts)


def _restore_parts_in_text(node: str | int, special_parts: Sequence[Any]) -> Any:
    pieces = _PART_NUMBER_REGEX.split(str(node))
    if len(pieces) == 1 or any(int(piece) >= len(special_parts) for piece in pieces[1::2]):
        return node
    parts = [
        special_parts[int(piece)] if number % 2 else piece for number, piece in enumerate(pieces)
    ]
    return join_texts([part for part in parts if part != ""])


def _format(pattern: str, *values: Any) -> Any:
    remaining_values = list(values)
    parts = list[Any]()
    end = 0
    for match in _FORMAT_REGEX.finditer(pattern):
        parts.append(pattern[end : match.start()])
        end = match.end()
        if match.group() == "%%":
            parts.append("%")
        else:
            value = remaining_values.pop(0)
            parts.append(f'"{value}"' if match.group() == "%q" else value)
    parts.append(pattern[end:])
    if "%" in "".join(part for part in _FORMAT_REGEX.split(pattern)):
        return UnknownPart("a format that is not worked out here")
    return join_texts(parts)


def _join(separator: str, *lists: list[Any]) -> Any:
    parts = list[Any]()
    for item in (item for items in lists for item in _require_list(items)):
        parts += [separator, item] if parts else [item]
    return join_texts(parts)


def _require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _merge(*objects: Any) -> Any:
    result = dict[str, Any]()
    for part in objects:
        if isinstance(part, UnknownPart):
            return part
        result |= part or {}
    return result


def _coalesce(*values: Any) -> Any:
    for value in values:
        if value not in (None, "") or isinstance(value, UnknownPart):
            return value
    raise ValueError


def _to_set(value: Any) -> Any:
    items = list(value)
    if any(isinstance(item, list | dict) for item in items):
        return items
    return list(dict.fromkeys(items))


def _to_map(value: Any) -> dict[str, Any]:
    """Return a map, or that of a repeated resource. Raises TypeError for anything else."""
    mapping = value.get_collection() if isinstance(value, Container) else value
    if not isinstance(mapping, dict):
        raise TypeError
    return mapping


def _list_values(value: Any) -> list[Any]:
    mapping = _to_map(value)
    return [mapping[key] for key in sorted(mapping)]


def _lookup(mapping: dict[str, Any], key: Any, *defaults: Any) -> Any:
    if isinstance(mapping, Container) or not isinstance(key, str):
        return UnknownPart("a key is not known")
    return mapping[key] if key in mapping or not defaults else defaults[0]


def _flatten(items: list[Any]) -> list[Any]:
    result = list[Any]()
    for item in items:
        if isinstance(item, UnknownPart):
            raise TypeError
        result += _flatten(item) if isinstance(item, list) else [item]
        if len(result) > _MOST_FLAT_ITEMS:
            raise ValueError
    return result


def _length(value: Any) -> Any:
    if isinstance(value, Container):
        return len(value.list_items())
    return len(value)


def _element(items: list[Any], number: Any) -> Any:
    if isinstance(items, Container):
        items = items.list_items()
    return items[int(to_number(number)) % len(items)]


def _one(items: Any) -> Any:
    if isinstance(items, Container):
        items = items.list_items()
    if not isinstance(items, list) or len(items) > 1:
        raise ValueError
    return items[0] if items else None


def _contains(items: Any, wanted: Any) -> Any:
    if isinstance(wanted, list | dict) or any(
        isinstance(item, UnknownPart) for item in _require_list(items)
    ):
        return UnknownPart("a list is not known")
    return wanted in items


def _replace(text: Any, old: str, new: str) -> Any:
    if not isinstance(text, str):
        return UnknownPart("a text is known only at deployment")
    if len(old) > 1 and old.startswith("/") and old.endswith("/"):
        return UnknownPart("a regular expression decides it")
    if text.count(old) * len(new) > _MOST_TEXT_CHARACTERS:
        return UnknownPart("a text is too long")
    return text.replace(old, new)


def _range(*limits: Any) -> Any:
    numbers = [int(to_number(limit)) for limit in limits]
    items = range(*numbers)
    if len(items) > _MOST_RANGE_ITEMS:
        return UnknownPart("a long range")
    return list(items)


def _map_text(convert: Callable[[str], str]) -> Callable[[Any], Any]:
    def convert_text(text: Any) -> Any:
        if not isinstance(text, str):
            return UnknownPart("a text is known only at deployment")
        return convert(text)

    return convert_text


def _choose_number(choose: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    def choose_number(*values: Any) -> Any:
        return choose([to_number(value) for value in values])

    return choose_number


# Functions that take an unknown argument, because another one may be enough.
_FUNCTIONS_OF_UNKNOWN = frozenset({"coalesce", "jsonencode", "merge", "format", "nonsensitive"})
_FUNCTION_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "abs": lambda value: abs(to_number(value)),
    "ceil": lambda value: -(-to_number(value) // 1),
    "coalesce": _coalesce,
    "compact": lambda items: [item for item in _require_list(items) if item not in (None, "")],
    "concat": lambda *lists: [item for items in lists for item in _require_list(items)],
    "contains": _contains,
    "element": _element,
    "flatten": _flatten,
    "floor": lambda value: to_number(value) // 1,
    "format": _format,
    "join": _join,
    "jsondecode": parse_json,
    "jsonencode": JsonText,
    "keys": lambda mapping: sorted(_to_map(mapping)),
    "length": _length,
    "lookup": _lookup,
    "lower": _map_text(str.lower),
    "max": _choose_number(max),
    "merge": _merge,
    "min": _choose_number(min),
    "nonsensitive": lambda value: value,
    "one": _one,
    "range": _range,
    "replace": _replace,
    "title": _map_text(str.title),
    "tobool": to_boolean,
    "tolist": lambda items: list(_require_list(items)),
    "tomap": dict,
    "tonumber": to_number,
    "toset": _to_set,
    "tostring": to_text,
    "trimspace": _map_text(str.strip),
    "trimprefix": lambda text, prefix: _map_text(lambda plain: plain.removeprefix(prefix))(text),
    "trimsuffix": lambda text, suffix: _map_text(lambda plain: plain.removesuffix(suffix))(text),
    "upper": _map_text(str.upper),
    "values": _list_values,
}
