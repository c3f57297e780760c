"""Values of Terraform's expressions, each evaluated alone."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.lint.hcl_parser import HclFile, parse_hcl
from mendq.lint.hcl_values import (
    CannotEvaluate,
    Container,
    Evaluator,
    JoinedText,
    JsonText,
    ResourceReference,
    UnknownPart,
    join_texts,
)
from mendq.lint.template import NotATemplate, WorkBudget

ARN = ResourceReference("aws_sqs_queue.orders", "aws_sqs_queue", "arn")
LATER = UnknownPart("later")
KNOWN_AT_DEPLOYMENT = "it is known only at deployment"
UNKNOWN_TEXT = "a text is known only at deployment"
NOT_A_NUMBER = "a value in a calculation is not a number"
PLAN_HINT = "Lint a plan instead: terraform show -json plan.bin"


class Queues(Container):
    """A repeated resource that was made for the keys `a` and `b`."""

    def get_part(self, key: Any) -> Any:
        return f"part {key}"

    def list_items(self) -> list[Any]:
        return ["first", "second"]

    def get_collection(self) -> Any:
        return {"b": "second", "a": "first"}


class SingleQueue(Container):
    """A resource that is not repeated."""

    def get_part(self, key: Any) -> Any:
        raise CannotEvaluate(f"there is no {key}")

    def list_items(self) -> list[Any]:
        return ["only"]


ROOTS = {
    "var": {
        "later": LATER,
        "arn": ARN,
        "many": [0] * 20_000,
        "too_many": [0] * 20_001,
        "long": "x" * 200_000,
        "too_long": "x" * 200_001,
        "rows": [{"name": "a"}, {"name": "b"}],
    },
    "queues": Queues(),
    "queue": SingleQueue(),
}


def _evaluate(text: str, budget: WorkBudget | None = None) -> Any:
    file = HclFile("main.tf", f"value = {text}\n")
    argument = parse_hcl(file).argument_by_name["value"]
    evaluator = Evaluator(budget or WorkBudget(), ROOTS.__getitem__)
    return evaluator.evaluate_or_unknown(argument.expression)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, var.later, var.gone]", [1, LATER, "no attribute, key or index gone"]),
        ("{ 1 = 2, (true) = 3, a : 4 }", {"1": 2, "true": 3, "a": 4}),
        ("{ a = var.gone, b = 1 }", {"a": "no attribute, key or index gone", "b": 1}),
        ("{ (var.later) = 1 }", UnknownPart("a key of an object is not known")),
        ("{ a = 1 }.a", 1),
        ('{ "1" = 2 }[1]', 2),
        ("[5, 6][0]", 5),
        ("[5, 6][1]", 6),
        ('[5, 6]["1"]', 6),
        ("var.rows.1.name", "b"),
        ("[5, 6][2]", UnknownPart("a value has no attribute, key or index 2")),
        ("[5, 6][-1]", UnknownPart("a value has no attribute, key or index -1")),
        ('[5, 6]["x"]', UnknownPart("a value has no attribute, key or index x")),
        ("true.x", UnknownPart("a value has no attribute, key or index x")),
        ("[5, 6][var.later]", LATER),
        ("var.later.x", LATER),
        ("queues[var.later]", f"part {LATER}"),
        ("var.arn.x", UnknownPart("it is part of a value that is known only at deployment")),
    ],
)
def test_parts_of_a_value_are_found_by_name_key_and_number(text: str, value: Any) -> None:
    assert _shorten_reasons(_evaluate(text)) == value


def _shorten_reasons(value: Any) -> Any:
    """Put the end of its reason in place of an unknown part inside a list or a map."""
    if isinstance(value, list):
        return [_shorten_reason(item) for item in value]
    if isinstance(value, dict):
        return {key: _shorten_reason(item) for key, item in value.items()}
    return value


def _shorten_reason(value: Any) -> Any:
    if isinstance(value, UnknownPart) and value != LATER:
        return value.reason.removeprefix("a value has ")
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("var.rows[*].name", ["a", "b"]),
        ("queues[*]", ["first", "second"]),
        ("null[*]", []),
        ("5[*]", [5]),
        ("var.later[*].name", LATER),
    ],
)
def test_splat_takes_the_part_of_each_item(text: str, value: Any) -> None:
    assert _evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[for x in [1, 2] : x + 1]", [2, 3]),
        ('[for i, x in ["a", "b"] : "${i}${x}"]', ["0a", "1b"]),
        ("[for k, v in { a = 1, b = 2 } : v]", [1, 2]),
        ("[for k, v in queues : v]", ["second", "first"]),
        ('[for x in ["a", "b"] : x if x != "a"]', ["b"]),
        ('[for x in ["a"] : x if "false"]', []),
        ("[for x in [1] : x if var.later]", LATER),
        ("[for x in var.later : x]", LATER),
        (
            "[for x in queue : x]",
            UnknownPart(f"Mendq does not evaluate a `for` over this. {PLAN_HINT}"),
        ),
        ("[for x in 5 : x]", UnknownPart("a `for` goes over a value that is not a list or map")),
        ("[for x in [null] : x.a]", [UnknownPart("a value has no attribute, key or index a")]),
        ("{ for i, x in [7] : i => x }", {"0": 7}),
        ("{ for k, v in { a = 1, b = 2 } : k => v if v > 1 }", {"b": 2}),
        ("{ for x in [1] : var.later => x }", UnknownPart("a key of an object is not known")),
        (
            "{ for x in [1] : x => x... }",
            UnknownPart(f"Mendq does not evaluate a `for` that groups (`...`). {PLAN_HINT}"),
        ),
    ],
)
def test_for_makes_a_list_or_a_map_of_the_wanted_items(text: str, value: Any) -> None:
    assert _evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true ? 1 : 2", 1),
        ('"true" ? 1 : 2', 1),
        ('"false" ? 1 : 2', 2),
        ("var.later ? 1 : 1", 1),
        ("var.later ? 1 : 2", UnknownPart("a condition decides it: later")),
        ("var.later ? [] : []", UnknownPart("a condition decides it: later")),
        (
            "5 ? 1 : 2",
            UnknownPart("a condition decides it: a condition is not true or false"),
        ),
        ("!true", False),
        ("!false", True),
        ("!var.later", LATER),
        ("true && true", True),
        ("true && false", False),
        ("false && var.later", False),
        ("var.later && false", False),
        ("true && var.later", LATER),
        ("var.later && true", LATER),
        ("false || false", False),
        ("false || true", True),
        ("true || var.later", True),
        ("var.later || true", True),
        ("false || var.later", LATER),
        ("var.later || false", LATER),
    ],
)
def test_condition_is_decided_by_the_side_that_is_known(text: str, value: Any) -> None:
    assert _evaluate(text) == value


LISTS_ARE_NOT_COMPARED = UnknownPart(f"Mendq does not compare lists or maps. {PLAN_HINT}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('1 == "1"', True),
        ('1 != "1"', False),
        ('"a" == "b"', False),
        ('"a" != "b"', True),
        ("null == null", True),
        ("null == 1", False),
        ("var.later == 1", LATER),
        ("1 != var.later", LATER),
        ("var.arn == null", False),
        ('"" != var.arn', True),
        ("queues == null", False),
        ('var.arn == "x"', UnknownPart(KNOWN_AT_DEPLOYMENT)),
        ('"x" != queues', UnknownPart(KNOWN_AT_DEPLOYMENT)),
        ("[] == []", True),
        ("[] == [1]", False),
        ("[1] != {}", True),
        ('"" == [1]', False),
        ("[1] == [1]", LISTS_ARE_NOT_COMPARED),
        ('"x" == [1]', LISTS_ARE_NOT_COMPARED),
        ('{ a = 1 } == "x"', LISTS_ARE_NOT_COMPARED),
    ],
)
def test_equality_is_decided_if_both_values_are_known(text: str, value: Any) -> None:
    assert _evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2", "3"),
        ('"5" - 7', "-2"),
        ("-5", "-5"),
        ("1.5 + 1.5", "3"),
        ("2 * 0", "0"),
        ("6 / 3", "2"),
        ("5 / 2", "2.5"),
        ("0 / 5", "0"),
        ("5 % 3", "2"),
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 - 2 - 1", "4"),
        ("1000000000000000 + 0", "1000000000000000"),
        ("1 < 2 && 2 > 1 && 1 <= 1 && 1 >= 1", "True"),
        ("1 < 1 || 1 > 1 || 2 <= 1 || 1 >= 2", "False"),
    ],
)
def test_numbers_are_calculated_and_stay_whole_if_they_can(text: str, value: str) -> None:
    assert str(_evaluate(text)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 + var.later", "later"),
        ("var.later < 1", "later"),
        ('"a" + 1', NOT_A_NUMBER),
        ("1 + null", NOT_A_NUMBER),
        ("true + 1", NOT_A_NUMBER),
        ("1000000000000001 + 0", NOT_A_NUMBER),
        ("0 - 1000000000000001", NOT_A_NUMBER),
        ("1 / 0", "a division by zero"),
        ("1 % 0", "a division by zero"),
    ],
)
def test_calculation_without_a_result_says_why(text: str, reason: str) -> None:
    assert _evaluate(text) == UnknownPart(reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a${1}b${true}${1.0}${1.5}"', "a1btrue11.5"),
        ('"a${false}"', "afalse"),
        ('"${5}"', 5),
        ('"${"a"}b${"c"}"', "abc"),
        ('"a${null}"', UnknownPart("a text contains a value that is not a text")),
        ('"${""}${""}"', ""),
        ('"${var.arn}${""}"', ARN),
        ('"${var.arn}"', ARN),
        ('"${var.rows}"', [{"name": "a"}, {"name": "b"}]),
        ('"a${var.arn}b"', JoinedText(("a", ARN, "b"))),
        ('"<${"a${var.arn}"}${var.later}>"', JoinedText(("<a", ARN, LATER, ">"))),
        ('"a${[1]}"', UnknownPart("a text contains a value that is not a text")),
        (r'"$${a} %%{b} \"\\\n\t\u0041\U00000042"', '${a} %{b} "\\\n\tAB'),
        ('"$$ $5 100% %%"', "$$ $5 100% %%"),
        ('"a%{ if true }b%{ endif }"', UnknownPart("a template directive decides it")),
    ],
)
def test_text_joins_its_parts_and_keeps_those_that_are_not_known(text: str, value: Any) -> None:
    assert _evaluate(text) == value


def test_text_of_20_000_parts_is_joined_and_a_longer_one_refused() -> None:
    assert join_texts(["a"] * 20_000) == "a" * 20_000
    with pytest.raises(CannotEvaluate, match="a text has too many parts"):
        join_texts(["a"] * 20_001)


def test_text_of_200_000_characters_is_joined_and_a_longer_one_refused() -> None:
    half = "a" * 100_000
    assert join_texts([half, ARN, half]) == JoinedText((half, ARN, half))
    with pytest.raises(CannotEvaluate, match="a text is too long"):
        join_texts([half, ARN, f"{half}a"])


REFUSED = "refused"


def _refuse(text: str) -> UnknownPart:
    name = text.partition("(")[0]
    return UnknownPart(f"the function {name} refuses its arguments")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('abs("-5")', 5),
        ("ceil(1.2)", 2),
        ("floor(1.8)", 1),
        ("max(1, 3, 2)", 3),
        ('min("3", 2)', 2),
        ("max([]...)", REFUSED),
        ("max(9, [1, 10]...)", 10),
        ('max("x"...)', UnknownPart("the arguments of a function are not known")),
        ('coalesce("", null, 0)', 0),
        ("coalesce(var.later, 1)", LATER),
        ('coalesce("", null)', REFUSED),
        ('compact(["", null, "a"])', ["a"]),
        ('compact("a")', REFUSED),
        ("concat([1], [], [2])", [1, 2]),
        ('concat([1], "a")', REFUSED),
        ('contains(["a"], "a")', True),
        ('contains(["a"], "b")', False),
        ('contains("abc", "a")', REFUSED),
        ('contains(["a"], ["a"])', UnknownPart("a list is not known")),
        ('contains([var.later, "a"], "a")', UnknownPart("a list is not known")),
        ('element(["a", "b"], 3)', "b"),
        ('element(["a", "b"], "0")', "a"),
        ("element(queues, 1)", "second"),
        ("element([], 0)", REFUSED),
        ("flatten([1, [2, [3]], []])", [1, 2, 3]),
        ("flatten([var.later])", REFUSED),
        ("length(flatten(var.many))", 20_000),
        ("flatten(var.too_many)", REFUSED),
        ('format("%s-%d:%v", "a", 1, true)', "a-1:true"),
        ('format("100%%")', "100%"),
        ('format("<%q>", "a")', '<"a">'),
        ('format("%s!", var.arn)', JoinedText((ARN, "!"))),
        ('format("%05d", 1)', UnknownPart("a format that is not worked out here")),
        ('format("%s")', REFUSED),
        ('join("-", ["a", "b"], ["c"])', "a-b-c"),
        ('join("-", [])', ""),
        ('join("-", "a")', REFUSED),
        ("jsonencode({ a = 1 })", JsonText({"a": 1})),
        ("jsonencode(var.later)", JsonText(LATER)),
        ("jsondecode(jsonencode({ a = var.arn }))", {"a": ARN}),
        (r'jsondecode("[true, null, 5, 1.5, \"x\"]")', [True, None, 5, 1.5, "x"]),
        (r'jsondecode("{\"a\": \"${var.arn}\"}")', {"a": ARN}),
        ('jsondecode("[${var.arn}, ${var.later}]")', [ARN, LATER]),
        (r'jsondecode("[\"x-${var.arn}\"]")', [JoinedText(("x-", ARN))]),
        (
            r'jsondecode("[\"${var.arn}-${var.later}\"]")',
            [JoinedText((ARN, "-", LATER))],
        ),
        ('jsondecode("[")', REFUSED),
        ("keys({ b = 1, a = 2 })", ["a", "b"]),
        ("keys(queues)", ["a", "b"]),
        ("keys([1])", REFUSED),
        ("values({ b = 1, a = 2 })", [2, 1]),
        ("values(queues)", ["first", "second"]),
        ("values(queue)", REFUSED),
        ("length([1, 2])", 2),
        ('length("abc")', 3),
        ("length({ a = 1 })", 1),
        ("length(queues)", 2),
        ("length(5)", REFUSED),
        ('lookup({ a = 1 }, "a")', 1),
        ('lookup({ a = 1 }, "a", 5)', 1),
        ('lookup({ a = 1 }, "b", 5)', 5),
        ('lookup({ a = 1 }, "b")', REFUSED),
        ('lookup(queues, "a", 5)', UnknownPart("a key is not known")),
        ("lookup({ a = 1 }, var.arn, 5)", UnknownPart("a key is not known")),
        ('lower("aB")', "ab"),
        ('upper("aB")', "AB"),
        ('title("orders")', "Orders"),
        ('trimspace(" a ")', "a"),
        ('trimprefix("aab", "a")', "ab"),
        ('trimsuffix("abb", "b")', "ab"),
        ("upper(var.arn)", UnknownPart(UNKNOWN_TEXT)),
        ('trimprefix(var.arn, "a")', UnknownPart(UNKNOWN_TEXT)),
        ("upper(var.later)", LATER),
        ("merge({ a = 1 }, null, { a = 2, b = 3 })", {"a": 2, "b": 3}),
        ("merge({ a = 1 }, var.later)", LATER),
        ("merge([1])", REFUSED),
        ("nonsensitive(var.later)", LATER),
        ("one([])", None),
        ("one([5])", 5),
        ("one(queue)", "only"),
        ("one([1, 2])", REFUSED),
        ("one(queues)", REFUSED),
        ('one("")', REFUSED),
        ("range(3)", [0, 1, 2]),
        ('range("1", 3)', [1, 2]),
        ("length(range(2000))", 2_000),
        ("range(2001)", UnknownPart("a long range")),
        ('replace("a-b-c", "-", "+")', "a+b+c"),
        ('replace("a/b", "/", "-")', "a-b"),
        ('replace("a/b", "/b", "x")', "ax"),
        ('replace("a/b", "a/", "x")', "xb"),
        ('replace("a//b", "//", "x")', UnknownPart("a regular expression decides it")),
        ('replace("abc", "/b/", "x")', UnknownPart("a regular expression decides it")),
        ('replace(var.arn, "a", "b")', UnknownPart(UNKNOWN_TEXT)),
        ('length(replace("a", "a", var.long))', 200_000),
        ('replace("a", "a", var.too_long)', UnknownPart("a text is too long")),
        ('tobool("true")', True),
        ("tolist([1])", [1]),
        ('tolist("a")', REFUSED),
        ("tomap({ a = 1 })", {"a": 1}),
        ('tonumber("5")', 5),
        ("tostring(5)", "5"),
        ('toset(["b", "a", "b"])', ["b", "a"]),
        ("toset([[1], [1]])", [[1], [1]]),
        ("try(var.gone, 5)", 5),
        ("try(var.later, 5)", LATER),
        ("try(var.gone)", UnknownPart("no argument of try has a value")),
        ("can(5)", True),
        ("can(var.gone)", False),
        ("can(var.later)", LATER),
    ],
)
def test_function_returns_its_result_or_says_why_it_has_none(text: str, value: Any) -> None:
    expected = _refuse(text) if value == REFUSED else value
    assert _evaluate(text) == expected


def test_json_keeps_a_number_that_looks_like_the_token_of_a_part() -> None:
    """In the text to parse, such a number stands for the reference."""
    numbers = "7310948265000001, 7310948265000000.5"
    value = _evaluate(f'jsondecode("[${{var.arn}}, {numbers}]")')
    assert value == [ARN, 7310948265000001, 7310948265000000.5]


def test_reason_is_cut_and_so_is_a_long_name_in_it() -> None:
    long_name = "x" * 300
    assert CannotEvaluate(long_name).reason == "x" * 200
    unknown_function = _evaluate(f"{long_name}(1)")
    assert unknown_function.reason.startswith(f"Mendq does not evaluate the function {'x' * 64}. ")
    missing_part = _evaluate(f"var.{long_name}")
    assert missing_part.reason == f"a value has no attribute, key or index {'x' * 64}"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1", 2),
        ('"12345678"', 2 + 2),
        ("-1", 2 + 2),
        ('"${"ab"}${1}"', 3 * 2 + 3),
        ('"ab${var.later}"', 4 * 2 + 3 + 1 + len(str(LATER))),
        ('upper("abcd")', 2 + 3 + 4),
        ("abs(1)", 2 + 2 + 1),
    ],
)
def test_evaluation_takes_steps_for_expressions_texts_and_results(text: str, steps: int) -> None:
    budget = WorkBudget(steps)
    _evaluate(text, budget)
    assert budget.steps_left == 0
    with pytest.raises(NotATemplate, match=f"more than {steps - 1} steps"):
        _evaluate(text, WorkBudget(steps - 1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\n}\n", "line 2: no HCL: a block or an argument is expected"),
        ("a = 1\na = 2\n", "line 2: no HCL: the argument a is set twice"),
        ("a = 1 2\n", "line 1: no HCL: the end of the line is expected"),
        ("\na = <x\n", "line 2: no HCL: a value is expected"),
        ("a = <<END\nx\n", "line 2: no HCL: the text from <<END has no end"),
        ('a = "x\n', 'line 1: no HCL: a text has no closing "'),
        ('a = "%{ while true }"\n', "line 1: no HCL: no directive that Terraform knows"),
        ("a = ", "line 1: no HCL: the file ends within an expression"),
        ("a = )\n", "line 1: no HCL: a name is expected"),
        ("a = [1\n", "line 2: no HCL: ] is expected"),
        ("5 = 1\n", "line 1: no HCL: a name is expected"),
        ("a = b ? 1\n", "line 2: no HCL: : is expected"),
    ],
)
def test_text_that_is_no_hcl_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(NotATemplate) as refusal:
        parse_hcl(HclFile("main.tf", text))
    assert str(refusal.value) == f"main.tf, {problem}"


def test_label_of_a_block_needs_no_quotes() -> None:
    (block,) = parse_hcl(HclFile("main.tf", 'resource aws_sqs_queue "orders" {}\n')).blocks
    assert block.labels == ("aws_sqs_queue", "orders")
