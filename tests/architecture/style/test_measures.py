"""Each measure counts what it is meant to count, and does not count what only looks like it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.architecture.style.measures import (
    MEASURES,
    MOST_COGNITIVE_COMPLEXITY,
    Measurement,
    count_cognitive_complexity,
    count_nested_comprehensions,
    count_parallel_assignments,
    count_repeated_class_names,
    count_unclear_comments,
    count_unclear_docstrings,
    count_undocumented,
    count_vague_class_names,
    count_vague_function_names,
    count_vague_loop_variables,
)
from tests.architecture.style.source import SourceFile, read_source


def read(source: str, path: str = "sample.py") -> SourceFile:
    return read_source(dedent(source), path)


def lines_of(measurement: Measurement) -> list[int]:
    return [location.line for location in measurement.locations]


def test_comprehension_in_a_comprehension_is_nested() -> None:
    file = read("""
        import os

        rows = [[1], [2]]
        cells = [[cell + 1 for cell in row] for row in rows]
    """)
    measurement = count_nested_comprehensions([file])
    assert lines_of(measurement) == [5]
    assert measurement.value == 500, "one in two lines of code; an import is none"


def test_comprehension_over_a_call_is_not_nested() -> None:
    file = read("""
        cells = [cell for cell in flatten(rows)]
        total = sum(cell for cell in cells) + sum(row for row in rows)
    """)
    assert count_nested_comprehensions([file]) == Measurement(0, ())


def test_tuple_assigned_to_tuple_is_parallel() -> None:
    file = read("""
        count, first = 0, None
        found = True
    """)
    measurement = count_parallel_assignments([file])
    assert lines_of(measurement) == [2]
    assert measurement.value == 500


@pytest.mark.parametrize("line", ["count, first = pair", "pair = 0, None", "a = b = 0"])
def test_unpacking_and_tuple_value_are_not_parallel(line: str) -> None:
    assert count_parallel_assignments([read(line)]) == Measurement(0, ())


# Each `if` costs one, and one more for each level that it is nested in: 1 + 2 + 3 + 4 + 5.
AT_THRESHOLD = """
def judge(queue):
    if queue:
        if queue.facts:
            if queue.facts.dlq:
                if queue.facts.dlq.source:
                    if queue.facts.dlq.source.is_open:
                        return queue
"""
ABOVE_THRESHOLD = f"{AT_THRESHOLD}    if queue is None:\n        return None\n"


def test_complexity_at_the_threshold_is_not_listed() -> None:
    measurement = count_cognitive_complexity([read(AT_THRESHOLD)])
    assert measurement == Measurement(MOST_COGNITIVE_COMPLEXITY, ())


def test_complexity_above_the_threshold_lists_the_function() -> None:
    method = "class Judge:\n" + "".join(f"    {line}\n" for line in ABOVE_THRESHOLD.splitlines())
    measurement = count_cognitive_complexity([read(AT_THRESHOLD), read(method, "judge.py")])
    assert measurement.value == 16
    assert [location.text for location in measurement.locations] == ["16 Judge.judge"]
    assert [location.path for location in measurement.locations] == ["judge.py"]


def test_complexity_without_a_function_is_zero() -> None:
    assert count_cognitive_complexity([read("x = 1")]) == Measurement(0, ())


def test_public_class_name_in_two_files_has_several_meanings() -> None:
    files = [read("class Plan: ...", "heal.py"), read("class Plan: ...", "redrive.py")]
    measurement = count_repeated_class_names(files)
    assert measurement.value == 1
    assert [location.path for location in measurement.locations] == ["heal.py", "redrive.py"]


def test_private_class_name_may_be_repeated() -> None:
    files = [read("class _Plan: ...\nclass Step: ..."), read("class _Plan: ...\nclass Plan: ...")]
    assert count_repeated_class_names(files) == Measurement(0, ())


def test_each_and_one_are_vague_loop_variables() -> None:
    file = read("""
        for each in queues:
            names = {one.name for one in each.sources}
        for queue in queues:
            pass
        for name, queue in pairs:
            pass
    """)
    measurement = count_vague_loop_variables([file])
    assert [location.text for location in measurement.locations] == ["each", "one"]
    assert measurement.value == 50


@pytest.mark.parametrize("target", ["queue", "name, each", "index", "_"])
def test_named_or_unpacked_loop_variable_is_not_vague(target: str) -> None:
    assert count_vague_loop_variables([read(f"for {target} in x: ...")]) == Measurement(0, ())


VAGUE_FUNCTIONS = ("counted", "_said", "taken_up", "unseen", "unmeasured", "of_queue", "_by_name")
CLEAR_FUNCTIONS = ("count", "failed_calls", "created_at", "in_flight_limit", "need", "then", "read")


@pytest.mark.parametrize("name", VAGUE_FUNCTIONS)
def test_participle_or_particle_is_a_vague_function_name(name: str) -> None:
    assert count_vague_function_names([read(f"def {name}(): ...")]).value == 100


@pytest.mark.parametrize("name", CLEAR_FUNCTIONS)
def test_verb_or_participle_with_noun_is_a_clear_function_name(name: str) -> None:
    assert count_vague_function_names([read(f"async def {name}(): ...")]) == Measurement(0, ())


def test_method_is_judged_by_its_own_name_and_located_by_its_full_one() -> None:
    file = read("""
        class Told:
            def count(self):
                def said(): ...
    """)
    measurement = count_vague_function_names([file])
    assert [location.text for location in measurement.locations] == ["Told.count.said"]
    assert measurement.value == 50


@pytest.mark.parametrize("name", ["Written", "_Known", "Judged", "Read"])
def test_participle_is_a_vague_class_name(name: str) -> None:
    assert count_vague_class_names([read(f"class {name}: ...")]).value == 1


@pytest.mark.parametrize("name", ["Need", "Speed", "FailedCall", "WrittenValue", "Plan"])
def test_noun_is_a_clear_class_name(name: str) -> None:
    assert count_vague_class_names([read(f"class {name}: ...")]) == Measurement(0, ())


def test_public_function_without_docstring_is_undocumented() -> None:
    file = read('''
        """Read queues."""

        def read_queue():
            """Read one queue."""

        def list_queues():
            pass

        def _is_due():
            pass
    ''')
    measurement = count_undocumented([file])
    assert [location.text for location in measurement.locations] == ["list_queues"]
    assert measurement.value == pytest.approx(100 / 3), "the module is one of three public things"


def test_docstring_with_two_hits_in_first_paragraph_is_unclear() -> None:
    file = read('''
        """What nobody asked for,
        and whoever did.
        """
    ''')
    measurement = count_unclear_docstrings([file])
    assert lines_of(measurement) == [2]
    assert measurement.value == 100


@pytest.mark.parametrize(
    "docstring",
    [
        "What the queue shows.",
        "Return the owner of the queue if it is known.",
        "Return the queue.\n\nWhat nobody asked for, and whoever did.",
    ],
)
def test_docstring_with_one_hit_or_hits_further_down_is_clear(docstring: str) -> None:
    file = read_source(f'"""{docstring}"""\n', "sample.py")
    assert count_unclear_docstrings([file]) == Measurement(0, ())


def test_consecutive_comments_are_one_text() -> None:
    file = read("""
        # Whether it is so,
        # nobody knows.
        x = 1  # The default.
    """)
    measurement = count_unclear_comments([file])
    assert lines_of(measurement) == [2]
    assert measurement.value == 50


def test_separate_comments_and_comments_for_tools_are_not_unclear() -> None:
    file = read("""
        # Whether it is so.
        x = 1
        # Known: nobody.
        y = 1  # noqa: E501 - whoever, nobody
    """)
    assert count_unclear_comments([file]) == Measurement(0, ())


def test_measures_have_different_names_and_are_all_met_without_any_code() -> None:
    names = [measure.name for measure in MEASURES]
    assert len(set(names)) == len(names)
    assert all(measure.count([]).value <= measure.threshold for measure in MEASURES)
