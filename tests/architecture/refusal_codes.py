"""Find the refusal codes that the product's source can emit, without importing the product."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

# The position of the code among the arguments of each call that makes a refusal.
KINDS = dict.fromkeys(("Ignore", "Retry", "Refuse", "Escalate", "Override"), 0)
MAKERS = {**KINDS, "make_declined_outcome": 0, "ClaimPart": 1}
# The name of a table from refusal code to condition: the first condition that holds is the answer.
TABLE = "whys"


def code_in(node: ast.AST, makers: Mapping[str, int] = MAKERS) -> ast.expr | None:
    """Return the code that `node` gives to a refusal, or None if `node` makes no refusal."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    position = makers.get(node.func.id)
    if position is None or position >= len(node.args):
        return None
    return node.args[position]


def codes_given(source: str, makers: Mapping[str, int] = MAKERS) -> Iterator[ast.expr]:
    """Yield the code of every refusal that `source` makes."""
    for node in ast.walk(ast.parse(source)):
        code = code_in(node, makers)
        if code is not None:
            yield code


def codes_spelled_out(source: str, makers: Mapping[str, int] = MAKERS) -> Iterator[str]:
    """Yield the codes that `source` gives as a literal."""
    for code in codes_given(source, makers):
        if isinstance(code, ast.Constant):
            yield str(code.value)


def table_in(node: ast.AST) -> ast.Dict | None:
    """Return the table of refusal codes that `node` assigns, or None."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
        return None
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    return node.value if names == [TABLE] else None


def codes_returned(source: str, function: str) -> set[str]:
    """Return the texts that one function of `source` returns as literals."""
    codes: set[str] = set()
    for definition in ast.walk(ast.parse(source)):
        if not isinstance(definition, ast.FunctionDef) or definition.name != function:
            continue
        for node in ast.walk(definition):
            if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Constant):
                continue
            if isinstance(node.value.value, str):
                codes.add(node.value.value)
    return codes
