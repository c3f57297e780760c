"""Parse Terraform's configuration language (HCL) into blocks, arguments and expressions.

The parser evaluates nothing. It keeps the offset of each part, so that a finding can name its line.
python-hcl2 needs more than a second to build its parser, which is longer than all of `mendq lint`.

https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from mendq.lint.template import NotATemplate

# Expressions and blocks inside each other. Python's own limit of nested calls is not far above.
MOST_NESTED_EXPRESSIONS = 40
_MOST_DIGITS = 18

_SPACE_REGEX = re.compile(r"(?:[ \t\r\ufeff]|/\*.*?\*/)*", re.DOTALL)
_SPACE_AND_LINES_REGEX = re.compile(r"(?:[ \t\r\n\ufeff]|(?:#|//)[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LINE_COMMENT_REGEX = re.compile(r"(?:#|//)[^\n]*")
_IDENTIFIER_REGEX = re.compile(r"[^\W\d][\w-]*")
_NUMBER_REGEX = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PART_NUMBER_REGEX = re.compile("[0-9]+")
_FUNCTION_REGEX = re.compile(r"[^\W\d][\w-]*(?:::[^\W\d][\w-]*)*\(")
_FOR_REGEX = re.compile(r"for[ \t\r\n]+(?=[^\W\d])")
_HEREDOC_REGEX = re.compile(r"<<-?([^\W\d][\w.-]*)\r?\n")
_QUOTED_LITERAL_REGEX = re.compile(r'[^"\\$%\n]+|\$(?!\{|\$\{)|%(?!\{|%\{)')
_HEREDOC_LITERAL_REGEX = re.compile(r"[^$%]+|\$(?!\{|\$\{)|%(?!\{|%\{)")
_ESCAPE_REGEX = re.compile(r'\\(?:([nrt"\\])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))')
_CHARACTER_BY_ESCAPE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_DIRECTIVE_REGEX = re.compile(r"%\{~?[ \t\r\n]*(if|else|endif|for|endfor)\b")
_DIRECTIVE_NAMES_REGEX = re.compile(
    r"[ \t\r\n]*[^\W\d][\w-]*(?:[ \t\r\n]*,[ \t\r\n]*[^\W\d][\w-]*)?[ \t\r\n]+in\b"
)
_OPERATORS_BY_PRECEDENCE = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<=", ">=", "<", ">"),
    ("+", "-"),
    ("*", "/", "%"),
)
_VALUE_BY_KEYWORD = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number or boolean that is written out, or `null`."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A text with expressions inside."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class DirectiveText:
    """A text with a directive inside, such as `%{ if ... }`."""


@dataclass(frozen=True, slots=True)
class ListExpression:
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectExpression:
    keys_and_values: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """The first name of a reference, such as `var` or `aws_sqs_queue`."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named part of a value: `.arn`."""

    source: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """A part of a value by its key or number: `[0]`."""

    source: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Splat:
    """The parts of all items of a list: `[*].arn`. `item` is evaluated for each of them."""

    source: Expression
    item: Expression


@dataclass(frozen=True, slots=True)
class FunctionCall:
    name: str
    arguments: tuple[Expression, ...]
    # True if the last argument is a list of further arguments (`...`).
    expands_last: bool


@dataclass(frozen=True, slots=True)
class UnaryOperation:
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(frozen=True, slots=True)
class ForExpression:
    """A list or an object that is made from a collection. `key` is None for a list."""

    key_name: str
    value_name: str
    collection: Expression
    key: Expression | None
    value: Expression
    condition: Expression | None
    is_grouping: bool


Expression = (
    Literal
    | TemplateText
    | DirectiveText
    | ListExpression
    | ObjectExpression
    | Variable
    | Attribute
    | Index
    | Splat
    | FunctionCall
    | UnaryOperation
    | BinaryOperation
    | Conditional
    | ForExpression
)
# Name of the variable that stands for an item in `Splat`. No identifier can have it.
SPLAT_ITEM = "*"


@dataclass(frozen=True)
class HclFile:
    """A file and its text."""

    path: str
    text: str

    def find_line(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return self.text.count("\n", 0, offset) + 1


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a block. The offsets are in characters."""

    file: HclFile
    name: str
    expression: Expression
    begin: int
    value_begin: int
    value_end: int

    @property
    def text(self) -> str:
        """The value as it is written."""
        return self.file.text[self.value_begin : self.value_end]

    @property
    def line(self) -> int:
        return self.file.find_line(self.begin)


@dataclass(frozen=True)
class Block:
    """A block with its labels, or a whole file: then the keyword is empty."""

    file: HclFile
    keyword: str
    labels: tuple[str, ...]
    begin: int
    # Offset behind the opening brace.
    body_offset: int
    arguments: Sequence[Argument] = field(default_factory=tuple)
    blocks: Sequence[Block] = field(default_factory=tuple)

    @cached_property
    def argument_by_name(self) -> dict[str, Argument]:
        return {argument.name: argument for argument in self.arguments}

    @property
    def line(self) -> int:
        return self.file.find_line(self.begin)

    def list_blocks(self, keyword: str) -> list[Block]:
        """Return the blocks inside this one that have a keyword."""
        return [block for block in self.blocks if block.keyword == keyword]


def parse_hcl(file: HclFile) -> Block:
    """Parse a file. The result is a block without a keyword.

    Raises NotATemplate with the file and the line if the text is not HCL.
    """
    return _Parser(file).parse_file()


def parse_text(file: HclFile) -> Expression:
    """Parse a text that may have expressions inside, as JSON files have them: `${...}`.

    Raises NotATemplate if such an expression is not HCL.
    """
    return _Parser(file).parse_whole_text()


class _Parser:
    """Parser of one file."""

    def __init__(self, file: HclFile) -> None:
        self._file = file
        self._text = file.text
        self._offset = 0
        self._end = len(file.text)
        self._depth = 0
        # True inside brackets, where a line's end does not end an expression.
        self._skips_lines = False

    def parse_file(self) -> Block:
        """Parse the whole text."""
        arguments, blocks = self._parse_body()
        if self._offset < self._end:
            self._fail("a block or an argument is expected")
        return Block(self._file, "", (), 0, 0, arguments, blocks)

    def parse_whole_text(self) -> Expression:
        """Parse the whole text as the inside of a quoted text without escapes."""
        return _join_parts(self._parse_text_parts(_HEREDOC_LITERAL_REGEX, is_quoted=False))

    def _fail(self, problem: str) -> NoReturn:
        line_number = self._file.find_line(self._offset)
        raise NotATemplate(f"{self._file.path}, line {line_number}: no HCL: {problem}")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MOST_NESTED_EXPRESSIONS:
            self._fail(f"nested more than {MOST_NESTED_EXPRESSIONS} deep")

    def _skip(self, *, lines: bool | None = None) -> None:
        """Go to the next token. A line's end is skipped if `lines`, or by default in brackets."""
        skips_lines = self._skips_lines if lines is None else lines
        regex = _SPACE_AND_LINES_REGEX if skips_lines else _SPACE_REGEX
        match = regex.match(self._text, self._offset, self._end)
        if match:
            self._offset = match.end()

    def _starts_with(self, token: str) -> bool:
        return self._text.startswith(token, self._offset, self._end)

    def _take(self, token: str) -> bool:
        """Skip a token. Return False if another one is next."""
        self._skip()
        if not self._starts_with(token):
            return False
        self._offset += len(token)
        return True

    def _require(self, token: str) -> None:
        if not self._take(token):
            self._fail(f"{token} is expected")

    def _match(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        """Skip what a pattern matches at this place."""
        match = regex.match(self._text, self._offset, self._end)
        if match:
            self._offset = match.end()
        return match

    def _require_identifier(self) -> str:
        match = self._match(_IDENTIFIER_REGEX)
        if match is None:
            self._fail("a name is expected")
        return match.group()

    def _parse_body(self) -> tuple[list[Argument], list[Block]]:
        """Parse arguments and blocks up to a closing brace or the end of the file."""
        arguments = list[Argument]()
        blocks = list[Block]()
        names = set[str]()
        self._enter()
        while True:
            self._skip(lines=True)
            if self._offset >= self._end or self._starts_with("}"):
                break
            begin = self._offset
            name = self._require_identifier()
            self._skip()
            if self._starts_with("=") and not self._starts_with("=="):
                if name in names:
                    self._fail(f"the argument {name[:64]} is set twice")
                names.add(name)
                arguments.append(self._parse_argument(name, begin))
            else:
                blocks.append(self._parse_block(name, begin))
        self._depth -= 1
        return arguments, blocks

    def _parse_argument(self, name: str, begin: int) -> Argument:
        self._offset += 1
        self._skip()
        value_begin = self._offset
        expression = self._parse_expression()
        value_text = self._text[value_begin : self._offset]
        value_end = value_begin + len(value_text.rstrip())
        is_heredoc = value_text.startswith("<<")
        if is_heredoc:
            self._offset = value_end
        self._skip()
        self._match(_LINE_COMMENT_REGEX)
        if self._offset < self._end and self._text[self._offset] not in "\n}":
            self._fail("the end of the line is expected")
        return Argument(self._file, name, expression, begin, value_begin, value_end)

    def _parse_block(self, keyword: str, begin: int) -> Block:
        labels = list[str]()
        while not self._take("{"):
            if self._starts_with('"'):
                label = self._parse_quoted()
                labels.append(str(label.value) if isinstance(label, Literal) else "")
            else:
                labels.append(self._require_identifier())
        body_offset = self._offset
        arguments, blocks = self._parse_body()
        self._require("}")
        return Block(self._file, keyword, tuple(labels), begin, body_offset, arguments, blocks)

    def _parse_expression(self) -> Expression:
        self._enter()
        expression = self._parse_binary(0)
        if self._take("?"):
            self._skip(lines=True)
            if_true = self._parse_expression()
            self._skip(lines=True)
            self._require(":")
            self._skip(lines=True)
            expression = Conditional(expression, if_true, self._parse_expression())
        self._depth -= 1
        return expression

    def _parse_in_brackets(self, *, skips_lines: bool = True) -> Expression:
        """Parse an expression in brackets, where a line may end anywhere."""
        skips_lines_outside = self._skips_lines
        self._skips_lines = skips_lines
        self._skip(lines=True)
        expression = self._parse_expression()
        if skips_lines:
            self._skip(lines=True)
        self._skips_lines = skips_lines_outside
        return expression

    def _parse_binary(self, precedence: int) -> Expression:
        if precedence == len(_OPERATORS_BY_PRECEDENCE):
            return self._parse_unary()
        left = self._parse_binary(precedence + 1)
        while operator := self._take_operator(_OPERATORS_BY_PRECEDENCE[precedence]):
            self._skip(lines=True)
            left = BinaryOperation(operator, left, self._parse_binary(precedence + 1))
        return left

    def _take_operator(self, operators: Sequence[str]) -> str:
        """Skip one of the operators, and return it. Empty if another token is next."""
        self._skip()
        for operator in operators:
            is_comment = self._starts_with("//") or self._starts_with("/*")
            if self._starts_with(operator) and not is_comment:
                self._offset += len(operator)
                return operator
        return ""

    def _parse_unary(self) -> Expression:
        self._skip()
        for operator in "-!":
            if self._starts_with(operator):
                self._offset += 1
                self._enter()
                operand = self._parse_unary()
                self._depth -= 1
                return UnaryOperation(operator, operand)
        return self._parse_parts(self._parse_primary())

    def _parse_parts(self, source: Expression) -> Expression:
        """Parse what follows a value: attributes, indices and splats."""
        while True:
            if self._starts_with("[*]") or self._starts_with(".*"):
                self._offset += 3 if self._starts_with("[") else 2
                return Splat(source, self._parse_parts(Variable(SPLAT_ITEM)))
            if self._starts_with("["):
                self._offset += 1
                key = self._parse_in_brackets()
                self._require("]")
                source = Index(source, key)
            elif self._starts_with(".") and not self._starts_with("..."):
                self._offset += 1
                number = self._match(_PART_NUMBER_REGEX)
                source = (
                    Index(source, Literal(_to_number(number.group())))
                    if number
                    else Attribute(source, self._require_identifier())
                )
            else:
                return source

    def _parse_primary(self) -> Expression:
        if self._offset >= self._end:
            self._fail("the file ends within an expression")
        match self._text[self._offset]:
            case '"':
                return self._parse_quoted()
            case "(":
                self._offset += 1
                expression = self._parse_in_brackets()
                self._require(")")
                return expression
            case "[":
                return self._parse_list()
            case "{":
                return self._parse_object()
            case "<":
                return self._parse_heredoc()
        if number := self._match(_NUMBER_REGEX):
            return Literal(_to_number(number.group()))
        if function := self._match(_FUNCTION_REGEX):
            return self._parse_call(function.group()[:-1])
        name = self._require_identifier()
        return Literal(_VALUE_BY_KEYWORD[name]) if name in _VALUE_BY_KEYWORD else Variable(name)

    def _parse_call(self, name: str) -> FunctionCall:
        arguments = list[Expression]()
        expands_last = False
        self._skip(lines=True)
        while not self._starts_with(")"):
            arguments.append(self._parse_in_brackets())
            self._skip(lines=True)
            if self._take("..."):
                expands_last = True
            elif not self._take(","):
                break
            self._skip(lines=True)
        self._require(")")
        return FunctionCall(name, tuple(arguments), expands_last)

    def _parse_list(self) -> Expression:
        self._offset += 1
        self._skip(lines=True)
        if self._match(_FOR_REGEX):
            return self._parse_for("]")
        items = list[Expression]()
        while not self._starts_with("]"):
            items.append(self._parse_in_brackets())
            self._skip(lines=True)
            if not self._take(","):
                break
            self._skip(lines=True)
        self._require("]")
        return ListExpression(tuple(items))

    def _parse_object(self) -> Expression:
        self._offset += 1
        self._skip(lines=True)
        if self._match(_FOR_REGEX):
            return self._parse_for("}")
        keys_and_values = list[tuple[Expression, Expression]]()
        while not self._starts_with("}"):
            key = self._parse_in_brackets(skips_lines=False)
            if isinstance(key, Variable):
                key = Literal(key.name)
            self._skip(lines=True)
            if not self._take("="):
                self._require(":")
            keys_and_values.append((key, self._parse_in_brackets(skips_lines=False)))
            self._take(",")
            self._skip(lines=True)
        self._require("}")
        return ObjectExpression(tuple(keys_and_values))

    def _parse_for(self, closing: str) -> ForExpression:
        key_name = ""
        value_name = self._require_identifier()
        self._skip(lines=True)
        if self._take(","):
            self._skip(lines=True)
            key_name, value_name = value_name, self._require_identifier()
            self._skip(lines=True)
        self._require("in")
        collection = self._parse_in_brackets()
        self._require(":")
        key = None
        value = self._parse_in_brackets()
        is_grouping = False
        if closing == "}":
            self._require("=>")
            key = value
            value = self._parse_in_brackets()
            is_grouping = self._take("...")
            self._skip(lines=True)
        condition = self._parse_in_brackets() if self._take("if") else None
        self._require(closing)
        return ForExpression(key_name, value_name, collection, key, value, condition, is_grouping)

    def _parse_quoted(self) -> Expression:
        self._offset += 1
        parts = self._parse_text_parts(_QUOTED_LITERAL_REGEX, is_quoted=True)
        if not self._starts_with('"'):
            self._fail('a text has no closing "')
        self._offset += 1
        return _join_parts(parts)

    def _parse_heredoc(self) -> Expression:
        begin = self._match(_HEREDOC_REGEX)
        if begin is None:
            self._fail("a value is expected")
        last_line = re.compile(rf"^[ \t]*{re.escape(begin.group(1))}[ \t]*\r?$", re.MULTILINE)
        last_line_match = last_line.search(self._text, self._offset, self._end)
        if last_line_match is None:
            self._fail(f"the text from <<{begin.group(1)[:64]} has no end")
        end_outside = self._end
        self._end = last_line_match.start()
        parts = self._parse_text_parts(_HEREDOC_LITERAL_REGEX, is_quoted=False)
        self._end = end_outside
        self._offset = last_line_match.start() + len(last_line_match.group().rstrip())
        return _join_parts(parts)

    def _parse_text_parts(
        self, literal_regex: re.Pattern[str], *, is_quoted: bool
    ) -> list[Expression]:
        """Parse the literal parts of a text and the expressions between them."""
        parts = list[Expression]()
        while self._offset < self._end:
            if literal := self._match(literal_regex):
                parts.append(Literal(literal.group()))
            elif self._starts_with("$${") or self._starts_with("%%{"):
                parts.append(Literal(self._text[self._offset + 1 : self._offset + 3]))
                self._offset += 3
            elif self._starts_with("${"):
                self._offset += 3 if self._starts_with("${~") else 2
                parts.append(self._parse_in_brackets())
                self._take("~")
                self._require("}")
            elif self._starts_with("%{"):
                self._skip_directive()
                parts.append(DirectiveText())
            elif is_quoted and (escape := self._match(_ESCAPE_REGEX)):
                parts.append(Literal(_decode_escape(escape)))
            else:
                break
        return parts

    def _skip_directive(self) -> None:
        """Skip a directive such as `%{ if var.is_on }`."""
        directive = self._match(_DIRECTIVE_REGEX)
        if directive is None:
            self._fail("no directive that Terraform knows")
        if directive.group(1) == "for":
            self._match(_DIRECTIVE_NAMES_REGEX)
        if directive.group(1) in ("if", "for"):
            self._parse_in_brackets()
        self._skip(lines=True)
        self._take("~")
        self._require("}")


def _to_number(number_text: str) -> int | float:
    is_short_whole_number = number_text.isdigit() and len(number_text) <= _MOST_DIGITS
    return int(number_text) if is_short_whole_number else float(number_text)


def _decode_escape(escape: re.Match[str]) -> str:
    character, *hexadecimals = escape.groups()
    if character:
        return _CHARACTER_BY_ESCAPE[character]
    code_point = int(next(digits for digits in hexadecimals if digits), 16)
    return chr(code_point) if code_point <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"


def _join_parts(parts: Sequence[Expression]) -> Expression:
    """Return the expression for a text: a literal if it has no expression inside."""
    if any(isinstance(part, DirectiveText) for part in parts):
        return DirectiveText()
    joined_parts = list[Expression]()
    for part in parts:
        last_text = _text_of(joined_parts[-1]) if joined_parts else None
        text = _text_of(part)
        if last_text is None or text is None:
            joined_parts.append(part)
        else:
            joined_parts[-1] = Literal(last_text + text)
    if not joined_parts:
        return Literal("")
    is_literal = len(joined_parts) == 1 and isinstance(joined_parts[0], Literal)
    return joined_parts[0] if is_literal else TemplateText(tuple(joined_parts))


def _text_of(expression: Expression) -> str | None:
    """Return a literal text; None for other expressions, also for numbers and booleans."""
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value
    return None
