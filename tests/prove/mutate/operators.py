"""Make mutants of a module's source text: each differs from it in one small fault."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class MutationOperator(StrEnum):
    """A kind of fault."""

    COMPARISON = "comparison"  # a comparison answers the opposite
    BOUNDARY = "boundary"  # `<` and `<=` are exchanged, or a whole number is one more
    LOGIC = "logic"  # `and` and `or` are exchanged, or a `not` is dropped
    RETURN_VALUE = "return value"  # None is returned, or the opposite of True or False
    STATEMENT = "dropped statement"  # a call, or an assignment to an attribute or key, is dropped
    GUARD = "dropped guard"  # an `if` that only returns, raises or continues is never true
    EXCEPTION = "swallowed exception"  # an `except` branch does nothing
    ARGUMENTS = "swapped arguments"  # the first two arguments of a call are exchanged


@dataclass(frozen=True)
class Span:
    """A part of a source text: lines count from 1, columns in bytes of UTF-8 from 0."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Mutation:
    """One fault in one module.

    Attributes:
        module: The dotted name of the module.
        function: The function around the fault, with its classes; empty outside of functions.
        operator: The kind of fault.
        span: The part of the source that is replaced.
        new_text: What replaces it.
        lines: A test that runs one of these lines may notice the fault.
        statement_lines: The lines of the whole statement; in a long expression, Python does not
            report every line as run.
        name: What the statement outside of functions defines, if the fault is there; such a line
            runs on import, so the tests are those that use the name.
    """

    module: str
    function: str
    operator: MutationOperator
    span: Span
    new_text: str
    lines: tuple[int, ...]
    statement_lines: tuple[int, ...] = ()
    name: str = ""


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NEIGHBOURS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
# Functions whose result is the same if their arguments are exchanged.
_SYMMETRIC = ("max", "min")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
# Calls that only write to the log: whether a line is logged is no promise to anybody.
_LOG_NAMES = ("_log", "log", "logger", "logging")


@dataclass(frozen=True)
class _Place:
    """The position of a node: the names around it, from the outside to the inside."""

    module: str
    names: tuple[str, ...] = ()
    is_in_function: bool = False
    statement: ast.stmt | None = None
    defined: str = ""

    @property
    def function(self) -> str:
        return ".".join(self.names)


def list_mutations(module: str, source: str) -> list[Mutation]:
    """Return every mutation of a module, in the order of the source."""
    tree = ast.parse(source)
    found = [
        mutation
        for statement in tree.body
        for mutation in _below(statement, _Place(module), is_docstring=False)
    ]
    found.sort(key=lambda mutation: (mutation.span.line, mutation.span.column, mutation.operator))
    return found


def apply_mutation(source: str, mutation: Mutation) -> str:
    """Return the source text with the fault in it."""
    lines = source.encode().splitlines(keepends=True)
    span = mutation.span
    before = b"".join(lines[: span.line - 1]) + lines[span.line - 1][: span.column]
    after = lines[span.end_line - 1][span.end_column :] + b"".join(lines[span.end_line :])
    return (before + mutation.new_text.encode() + after).decode()


def old_line(source: str, mutation: Mutation) -> str:
    """Return the first line of the replaced text, as the source has it."""
    return source.splitlines()[mutation.span.line - 1].strip()


def describe_change(source: str, mutation: Mutation) -> str:
    """Return the replaced and the new text on one line: it names the mutation within its line."""
    old = _text_of(source, mutation.span)
    return f"{mutation.operator}: {_on_one_line(old)} -> {_on_one_line(mutation.new_text)}"


def _text_of(source: str, span: Span) -> str:
    lines = source.encode().splitlines(keepends=True)[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return b"".join(lines).decode()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _below(node: ast.AST, place: _Place, *, is_docstring: bool) -> Iterator[Mutation]:
    """Yield the mutations of a node and of all that is in it."""
    if is_docstring or _is_for_types_only(node):
        return
    if isinstance(node, ast.keyword) and node.arg == "examples":
        return  # a symptom's examples are its tests
    if isinstance(node, ast.JoinedStr):
        return  # Python 3.11 has wrong positions for what is inside an f-string
    place = _enter(node, place)
    yield from _at(node, place)
    for child, is_child_docstring in _list_children(node):
        yield from _below(child, place, is_docstring=is_child_docstring)


def _list_children(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the nodes in which to look for mutations, and whether each is a docstring."""
    for field_name, value in ast.iter_fields(node):
        if field_name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        children = value if isinstance(value, list) else [value]
        for number, child in enumerate(children):
            if isinstance(child, ast.AST):
                is_first = field_name == "body" and number == 0
                yield child, is_first and _is_text(child)


def _enter(node: ast.AST, place: _Place) -> _Place:
    if isinstance(node, ast.stmt):
        place = replace(place, statement=node)
    if isinstance(node, _FUNCTIONS):
        return replace(place, names=(*place.names, node.name), is_in_function=True)
    if isinstance(node, ast.ClassDef):
        return replace(place, names=(*place.names, node.name))
    if isinstance(node, ast.stmt) and not place.is_in_function:
        return replace(place, defined=_find_defined_name(node) or place.defined)
    return place


def _find_defined_name(statement: ast.stmt) -> str:
    targets: Sequence[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names[0] if names else ""


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _at(node: ast.AST, place: _Place) -> Iterator[Mutation]:
    """Yield the mutations of this node alone."""
    for node_type, mutate in _MUTATE_BY_TYPE:
        if isinstance(node, node_type):
            yield from mutate(node, place)


def _mutate_comparison(node: ast.Compare, place: _Place) -> Iterator[Mutation]:
    if len(node.ops) != 1:
        for number, operation in enumerate(node.ops):
            neighbour = _NEIGHBOURS.get(type(operation))
            if neighbour is not None:
                yield _with_operation(node, number, neighbour, MutationOperator.BOUNDARY, place)
        return
    operation = node.ops[0]
    opposite = _OPPOSITES[type(operation)]
    yield _with_operation(node, 0, opposite, MutationOperator.COMPARISON, place)
    neighbour = _NEIGHBOURS.get(type(operation))
    if neighbour is not None:
        yield _with_operation(node, 0, neighbour, MutationOperator.BOUNDARY, place)


def _with_operation(
    node: ast.Compare,
    number: int,
    operation: type[ast.cmpop],
    operator: MutationOperator,
    place: _Place,
) -> Mutation:
    operations = [*node.ops]
    operations[number] = operation()
    changed = ast.Compare(left=node.left, ops=operations, comparators=node.comparators)
    return _replace_expression(node, changed, operator, place)


def _mutate_number(node: ast.Constant, place: _Place) -> Iterator[Mutation]:
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        yield _make(node, str(node.value + 1), MutationOperator.BOUNDARY, place)


def _mutate_logic(node: ast.BoolOp, place: _Place) -> Iterator[Mutation]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    changed = ast.BoolOp(op=other, values=node.values)
    yield _replace_expression(node, changed, MutationOperator.LOGIC, place)


def _mutate_not(node: ast.UnaryOp, place: _Place) -> Iterator[Mutation]:
    if isinstance(node.op, ast.Not):
        yield _replace_expression(node, node.operand, MutationOperator.LOGIC, place)


def _mutate_return(node: ast.Return, place: _Place) -> Iterator[Mutation]:
    value = node.value
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        yield _make(node, f"return {not value.value}", MutationOperator.RETURN_VALUE, place)
        return
    if isinstance(value, ast.Compare):
        return  # the opposite comparison is a mutation of its own
    yield _make(node, "return None", MutationOperator.RETURN_VALUE, place)


def _mutate_statement(
    node: ast.Expr | ast.Assign | ast.AugAssign, place: _Place
) -> Iterator[Mutation]:
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
        return
    if isinstance(node, ast.Assign) and not all(
        isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
    ):
        return  # the name would be missing, which any test notices
    if isinstance(node, ast.Expr) and _only_logs(node.value):
        return
    if place.is_in_function:
        yield _make(node, "pass", MutationOperator.STATEMENT, place)


def _only_logs(call: ast.expr) -> bool:
    name = ast.unparse(call).partition("(")[0].lower().split(".")
    return any(part in _LOG_NAMES for part in name[:-1])


def _mutate_guard(node: ast.If, place: _Place) -> Iterator[Mutation]:
    if node.orelse or not isinstance(node.body[-1], _LEAVES) or not place.is_in_function:
        return
    test = ast.BoolOp(op=ast.And(), values=[node.test, ast.Constant(value=False)])
    mutation = _make(node.test, ast.unparse(test), MutationOperator.GUARD, place)
    yield replace(mutation, lines=_lines(node.body[0]), statement_lines=())


def _mutate_handler(node: ast.ExceptHandler, place: _Place) -> Iterator[Mutation]:
    if all(isinstance(statement, ast.Pass) for statement in node.body):
        return
    if not place.is_in_function:
        return
    first, last = node.body[0], node.body[-1]
    span = replace(_span(first), end_line=_span(last).end_line, end_column=_span(last).end_column)
    mutation = _make(first, "pass", MutationOperator.EXCEPTION, place)
    yield replace(mutation, span=span)


def _mutate_call(node: ast.Call, place: _Place) -> Iterator[Mutation]:
    arguments = node.args
    if isinstance(node.func, ast.Name) and node.func.id in _SYMMETRIC:
        return
    if len(arguments) < 2 or any(isinstance(argument, ast.Starred) for argument in arguments[:2]):
        return
    if ast.unparse(arguments[0]) == ast.unparse(arguments[1]):
        return
    first, second, *others = arguments
    changed = ast.Call(func=node.func, args=[second, first, *others], keywords=node.keywords)
    yield _replace_expression(node, changed, MutationOperator.ARGUMENTS, place)


# Each function takes nodes of the type beside it; a union of callables cannot express this.
_MUTATE_BY_TYPE: tuple[tuple[type[ast.AST], Callable[..., Iterator[Mutation]]], ...] = (
    (ast.Compare, _mutate_comparison),
    (ast.Constant, _mutate_number),
    (ast.BoolOp, _mutate_logic),
    (ast.UnaryOp, _mutate_not),
    (ast.Return, _mutate_return),
    (ast.Expr, _mutate_statement),
    (ast.Assign, _mutate_statement),
    (ast.AugAssign, _mutate_statement),
    (ast.If, _mutate_guard),
    (ast.ExceptHandler, _mutate_handler),
    (ast.Call, _mutate_call),
)


def _replace_expression(
    node: ast.expr, changed: ast.expr, operator: MutationOperator, place: _Place
) -> Mutation:
    """Replace an expression. Parentheses keep it one operand of what is around it."""
    text = ast.unparse(changed)
    if not isinstance(changed, ast.Call | ast.Name | ast.Attribute):
        text = f"({text})"
    return _make(node, text, operator, place)


def _make(
    node: ast.expr | ast.stmt, text: str, operator: MutationOperator, place: _Place
) -> Mutation:
    name = "" if place.is_in_function else place.defined
    return Mutation(
        module=place.module,
        function=place.function,
        operator=operator,
        span=_span(node),
        new_text=text,
        lines=_lines(node),
        statement_lines=_lines_that_run(place.statement) if place.statement else (),
        name=name,
    )


def _lines_that_run(statement: ast.stmt) -> tuple[int, ...]:
    """Return the lines of a statement without the blocks in it.

    A function's own line runs on import, so the first line of its body stands for its arguments.
    """
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        body = [inner for inner in statement.body if not _is_text(inner)]
        return _lines(body[0]) if body else ()
    inner_body = getattr(statement, "body", None)
    if inner_body:
        return tuple(range(statement.lineno, max(statement.lineno + 1, inner_body[0].lineno)))
    return _lines(statement)


def _span(node: ast.expr | ast.stmt) -> Span:
    end_line = node.end_lineno if node.end_lineno is not None else node.lineno
    end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
    return Span(node.lineno, node.col_offset, end_line, end_column)


def _lines(node: ast.expr | ast.stmt) -> tuple[int, ...]:
    return tuple(range(node.lineno, (node.end_lineno or node.lineno) + 1))
