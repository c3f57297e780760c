"""Read one Python file and keep everything that is measured in it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

import complexipy

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_LAYOUT_TOKENS = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
)
# Comments for tools: `noqa`, `type:`, `pragma`, and the `!` of a line that names an interpreter.
_COMMENT_FOR_TOOL = re.compile(r"noqa|type:|pragma|!")


@dataclass(frozen=True)
class Location:
    """A spot in a file. The text is what a reader looks for there: a name, or words."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Complexity:
    """The cognitive complexity of one function, by SonarSource's definition."""

    location: Location
    value: int


@dataclass
class SourceFile:
    """Everything that is measured in one file.

    The numbers are what shares are taken of. The locations are what is looked at closer.
    """

    path: str
    code_lines: int = 0
    statements: int = 0
    nested_comprehensions: list[Location] = field(default_factory=list)
    parallel_assignments: list[Location] = field(default_factory=list)
    # The text is the loop variable's name, or empty if the loop unpacks or assigns elsewhere.
    loops: list[Location] = field(default_factory=list)
    # The text is the name, after the names of the classes and functions around it: `Judge.judge`.
    functions: list[Location] = field(default_factory=list)
    # Names of functions that users call: they may be vague.
    excepted_functions: frozenset[str] = frozenset()
    classes: list[Location] = field(default_factory=list)
    complexities: list[Complexity] = field(default_factory=list)
    # Public modules, classes and functions, by whether they have a docstring.
    documented: list[Location] = field(default_factory=list)
    undocumented: list[Location] = field(default_factory=list)
    # The first paragraph of each docstring, and each block of comments.
    docstrings: list[Location] = field(default_factory=list)
    comments: list[Location] = field(default_factory=list)


def read_source(
    source: str, path: str, *, excepted_functions: frozenset[str] = frozenset()
) -> SourceFile:
    """Measure the source of one Python file. `path` is how locations name it."""
    file = SourceFile(path, excepted_functions=excepted_functions)
    tree = ast.parse(source, path)
    nodes = list(ast.walk(tree))
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for node in nodes:
        _count_syntax(file, node)
        if isinstance(node, ast.ClassDef):
            file.classes.append(_location_of_name(file, node))
        _note_docstring(file, node)
    file.functions = list(_locate_functions(path, tree))
    file.code_lines = len(_lines_of_tokens(tokens) - _lines_without_code(nodes))
    file.comments = list(_comment_blocks(path, tokens))
    for function in complexipy.code_complexity(source).functions:
        location = Location(path, function.line_start, function.name.replace("::", "."))
        file.complexities.append(Complexity(location, function.complexity))
    return file


def _count_syntax(file: SourceFile, node: ast.AST) -> None:
    """Count statements and loops, and note the forms that make a line hard to read."""
    if isinstance(node, ast.stmt):
        file.statements += 1
    if isinstance(node, Comprehension) and _contains_comprehension(node):
        file.nested_comprehensions.append(_location_of_code(file, node))
    if isinstance(node, ast.Assign) and _is_parallel(node):
        file.parallel_assignments.append(_location_of_code(file, node))
    if isinstance(node, ast.For | ast.comprehension):
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        file.loops.append(Location(file.path, node.target.lineno, name))


def _contains_comprehension(comprehension: Comprehension) -> bool:
    _, *inner_nodes = ast.walk(comprehension)
    return any(isinstance(node, Comprehension) for node in inner_nodes)


def _is_parallel(assignment: ast.Assign) -> bool:
    """Return True for `a, b = x, y`."""
    first_target = assignment.targets[0]
    return isinstance(first_target, ast.Tuple) and isinstance(assignment.value, ast.Tuple)


def _locate_functions(path: str, parent: ast.AST, prefix: str = "") -> Iterator[Location]:
    """Yield the functions in `parent`. `prefix` is what their names begin with, such as `Judge.`"""
    for node in ast.iter_child_nodes(parent):
        if not isinstance(node, ast.ClassDef | Function):
            yield from _locate_functions(path, node, prefix)
            continue
        name = f"{prefix}{node.name}"
        if isinstance(node, Function):
            yield Location(path, node.lineno, name)
        yield from _locate_functions(path, node, f"{name}.")


def _note_docstring(file: SourceFile, node: ast.AST) -> None:
    """Note a docstring's first paragraph, or that a public thing has none."""
    if not isinstance(node, Documented):
        return
    docstring = ast.get_docstring(node)
    if docstring:
        paragraph = docstring.split("\n\n")[0].replace("\n", " ")
        file.docstrings.append(Location(file.path, node.body[0].lineno, paragraph))
    location = _location_of_name(file, node)
    if location.text.startswith("_"):
        return
    if docstring:
        file.documented.append(location)
    else:
        file.undocumented.append(location)


def _location_of_code(file: SourceFile, node: ast.expr | ast.stmt) -> Location:
    """Return where a piece of code is, with the code as one line."""
    return Location(file.path, node.lineno, ast.unparse(node).replace("\n", " "))


def _location_of_name(file: SourceFile, node: Documented) -> Location:
    if isinstance(node, ast.Module):
        return Location(file.path, 1, file.path)
    return Location(file.path, node.lineno, node.name)


def _lines_of_tokens(tokens: list[tokenize.TokenInfo]) -> set[int]:
    """Return the lines with more than comments and layout."""
    lines: set[int] = set()
    for token in tokens:
        if token.type not in _LAYOUT_TOKENS:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _lines_without_code(nodes: list[ast.AST]) -> set[int]:
    """Return the lines of imports and docstrings."""
    lines: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.update(_lines_of(node))
        if isinstance(node, Documented) and ast.get_docstring(node):
            lines.update(_lines_of(node.body[0]))
    return lines


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _comment_blocks(path: str, tokens: list[tokenize.TokenInfo]) -> Iterator[Location]:
    """Yield each block of comments on consecutive lines as one text, without those for tools."""
    block: list[tokenize.TokenInfo] = []
    for token in tokens:
        if token.type == tokenize.COMMENT:
            block.append(token)
        elif token.type != tokenize.NL and block:
            text = " ".join(comment.string.lstrip("# ") for comment in block)
            if not _COMMENT_FOR_TOOL.match(text):
                yield Location(path, block[0].start[0], text)
            block = []
