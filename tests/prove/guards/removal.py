"""Remove guards: a module in which each refusal can be switched off, as if nobody had written it.

All guards of a module are made removable at once, so that the product and the tests are loaded
only once. Which of them is removed is asked while the code runs, by calling `SWITCH`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from tests.prove.guards.guard import Guard

# The name of the function that says whether a guard is removed; it is put among the built-ins.
SWITCH = "_guard_is_removed"
# A plan without steps says that the queue is healthy.
_HEALTHY = "__import__('mendq.model.plan', fromlist=['Plan']).Plan((), 'removed by the gate')"


class NotFoundError(Exception):
    """A guard is not in the source text, or in no place from which it can be removed."""


class Switch:
    """Knows the name of the guard that is removed; none at first."""

    def __init__(self) -> None:
        self.removed = ""

    def install(self) -> None:
        """Let the modules with removable guards ask here."""
        setattr(builtins, SWITCH, lambda name: name == self.removed)


def compile_without_guards(path: Path, guards: Iterable[Guard]) -> CodeType:
    """Compile the module at `path` with these of its guards removable."""
    return compile(with_removable(path.read_text(), guards), str(path), "exec")


def with_removable(source: str, guards: Iterable[Guard]) -> ast.Module:
    """Return the tree of a module in which these guards can be removed.

    What it means that a guard is removed depends on its place; the first of these that fits:

    - One branch of a conditional expression: the other branch is taken.
    - One of several in a list or tuple: the list is without it.
    - The element of a generator: the generator yields none.
    - A condition in a table, or a part of an `or`: it is None.
    - Under an `if`: the condition is never true. Under its `else`: it always is.
    - In an `except` branch: the branch raises again.
    - In a `case`: it does not match.
    - After an `if` that returns: that `if` is always true.
    - Else the function answers with a healthy plan if it returns plans, and with None if not.

    Raise NotFoundError if a guard is not in the source.
    """
    tree = ast.parse(source)
    for guard in guards:
        way = _way_to(tree, guard)
        if way is None:
            raise NotFoundError(f"{guard.name} is not in the source")
        _make_removable(way, guard)
    return ast.fix_missing_locations(tree)


@dataclass
class _Place:
    """A node in the tree: `parent.field` holds it, in a list at `index` if that is not None."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None

    def replace(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node

    def put_before(self, node: ast.AST) -> None:
        getattr(self.parent, self.field).insert(self.index or 0, node)


def _way_to(tree: ast.AST, guard: Guard) -> list[_Place] | None:
    """Return the places from the module down to the guard's node."""
    for field, value in ast.iter_fields(tree):
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST):
                continue
            place = _Place(child, tree, field, index)
            if _is_at(child, guard):
                return [place]
            below = _way_to(child, guard)
            if below is not None:
                return [place, *below]
    return None


def _is_at(node: ast.AST, guard: Guard) -> bool:
    if guard.has_own_line and not isinstance(node, ast.Call | ast.Return):
        return False
    if not isinstance(node, ast.expr | ast.Return):
        return False
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) == guard.place


def _make_removable(way: list[_Place], guard: Guard) -> None:
    for depth in range(len(way) - 1, -1, -1):
        place = way[depth]
        if isinstance(place.node, ast.stmt):
            _make_statement_removable(way[: depth + 1], guard)
            return
        if _make_expression_removable(place, guard):
            return
    raise NotFoundError(f"{guard.name} is in no statement")


def _make_expression_removable(place: _Place, guard: Guard) -> bool:
    """Return True if the guard is part of an expression that goes on without it."""
    parent, node = place.parent, place.node
    if isinstance(parent, ast.IfExp) and place.field == "body":
        parent.test = _never(parent.test, guard)
    elif isinstance(parent, ast.IfExp) and place.field == "orelse":
        parent.test = _always(parent.test, guard)
    elif isinstance(parent, ast.List | ast.Tuple) and isinstance(node, ast.expr):
        kept = ast.Tuple(elts=[node], ctx=ast.Load())
        nothing = ast.Tuple(elts=[], ctx=ast.Load())
        choice = ast.IfExp(test=_is_removed(guard), body=nothing, orelse=kept)
        place.replace(ast.Starred(value=choice, ctx=ast.Load()))
    elif isinstance(parent, ast.GeneratorExp | ast.ListComp) and place.field == "elt":
        parent.generators[-1].ifs.append(_not(_is_removed(guard)))
    elif isinstance(parent, ast.BoolOp | ast.Dict) and isinstance(node, ast.expr):
        none = ast.Constant(value=None)
        place.replace(ast.IfExp(test=_is_removed(guard), body=none, orelse=node))
    else:
        return False
    return True


def _make_statement_removable(way: list[_Place], guard: Guard) -> None:
    statement = way[-1]
    for place in reversed(way):
        parent = place.parent
        if isinstance(parent, ast.If) and place.field == "body":
            parent.test = _never(parent.test, guard)
        elif isinstance(parent, ast.If) and place.field == "orelse":
            parent.test = _always(parent.test, guard)
        elif isinstance(parent, ast.ExceptHandler):
            statement.put_before(_if_removed(guard, ast.Raise()))
        elif isinstance(parent, ast.match_case):
            parent.guard = _never(parent.guard or ast.Constant(value=True), guard)
        elif isinstance(parent, ast.FunctionDef):
            _answer_otherwise(statement, place, parent, guard)
        else:
            continue
        return
    raise NotFoundError(f"{guard.name} is in no function")


def _answer_otherwise(
    statement: _Place, in_function: _Place, function: ast.FunctionDef, guard: Guard
) -> None:
    before = function.body[in_function.index - 1] if in_function.index else None
    if isinstance(before, ast.If) and isinstance(before.body[-1], ast.Return):
        before.test = _always(before.test, guard)
        return
    if isinstance(statement.node, ast.Expr):
        statement.replace(ast.If(test=_not(_is_removed(guard)), body=[statement.node], orelse=[]))
        return
    is_plan = function.returns is not None and "Plan" in ast.unparse(function.returns)
    answer = ast.parse(_HEALTHY if is_plan else "None", mode="eval").body
    statement.put_before(_if_removed(guard, ast.Return(value=answer)))


def _is_removed(guard: Guard) -> ast.expr:
    name = ast.Name(id=SWITCH, ctx=ast.Load())
    return ast.Call(func=name, args=[ast.Constant(value=guard.name)], keywords=[])


def _not(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(op=ast.Not(), operand=test)


def _never(test: ast.expr, guard: Guard) -> ast.expr:
    """Return a test that is run as before, for the names that it binds, and is then false."""
    return ast.BoolOp(op=ast.And(), values=[test, _not(_is_removed(guard))])


def _always(test: ast.expr, guard: Guard) -> ast.expr:
    return ast.BoolOp(op=ast.Or(), values=[test, _is_removed(guard)])


def _if_removed(guard: Guard, statement: ast.stmt) -> ast.stmt:
    return ast.If(test=_is_removed(guard), body=[statement], orelse=[])
