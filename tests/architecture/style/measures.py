"""The measures: what is counted, of what, and how much of it is too much.

Each threshold is an upper limit, so every measure reads the same way: lower is better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.architecture.style.names import (
    is_vague_class_name,
    is_vague_function_name,
    is_vague_loop_variable,
)
from tests.architecture.style.prose import find_phrases
from tests.architecture.style.source import Location, SourceFile

MOST_COGNITIVE_COMPLEXITY = 15
HITS_THAT_COUNT = 2


@dataclass(frozen=True)
class Measurement:
    """The value of a measure, and the places behind it.

    The worst come first if some are worse than others.
    """

    value: float
    locations: tuple[Location, ...]


Count = Callable[[Sequence[SourceFile]], Measurement]


@dataclass(frozen=True)
class Measure:
    """A property of code that a threshold limits.

    Attributes:
        name: How the command line calls it.
        title: What the table says is counted.
        advice: What to do about a place that is counted, as a sentence.
        threshold: The highest value that is fine.
        count: Measures a part of the repository.
        for_tests: False if tests need not meet the threshold.
    """

    name: str
    title: str
    advice: str
    threshold: float
    count: Count
    for_tests: bool = True


def count_nested_comprehensions(files: Sequence[SourceFile]) -> Measurement:
    """Count comprehensions that contain another one, per 1,000 lines of code."""
    locations = [location for file in files for location in file.nested_comprehensions]
    return _share(locations, sum(file.code_lines for file in files), per=1_000)


def count_parallel_assignments(files: Sequence[SourceFile]) -> Measurement:
    """Count `a, b = x, y`, per 1,000 statements."""
    locations = [location for file in files for location in file.parallel_assignments]
    return _share(locations, sum(file.statements for file in files), per=1_000)


def count_cognitive_complexity(files: Sequence[SourceFile]) -> Measurement:
    """Find the function that is hardest to follow, and all that are above the threshold."""
    functions = [function for file in files for function in file.complexities]
    functions.sort(key=lambda function: function.value, reverse=True)
    highest = functions[0].value if functions else 0
    locations = [
        Location(
            function.location.path,
            function.location.line,
            f"{function.value} {function.location.text}",
        )
        for function in functions
        if function.value > MOST_COGNITIVE_COMPLEXITY
    ]
    return Measurement(highest, tuple(locations))


def count_repeated_class_names(files: Sequence[SourceFile]) -> Measurement:
    """Count public class names that stand for more than one class."""
    classes: dict[str, list[Location]] = defaultdict(list)
    for file in files:
        for location in file.classes:
            if not location.text.startswith("_"):
                classes[location.text].append(location)
    repeated = [name for name in sorted(classes) if len(classes[name]) > 1]
    locations: list[Location] = []
    for name in repeated:
        locations += classes[name]
    return Measurement(len(repeated), tuple(locations))


def count_vague_loop_variables(files: Sequence[SourceFile]) -> Measurement:
    """Count loop variables such as `each`, per 100 loops and comprehensions."""
    loops = [location for file in files for location in file.loops]
    return _share([loop for loop in loops if is_vague_loop_variable(loop.text)], len(loops))


def count_vague_function_names(files: Sequence[SourceFile]) -> Measurement:
    """Count functions named by a participle or a particle, per 100 functions.

    Names that users call are not counted (`exceptions`).
    """
    vague: list[Location] = []
    for file in files:
        for function in file.functions:
            is_excepted = function.text in file.excepted_functions
            if is_vague_function_name(function.text) and not is_excepted:
                vague.append(function)
    return _share(vague, sum(len(file.functions) for file in files))


def count_vague_class_names(files: Sequence[SourceFile]) -> Measurement:
    """Count classes named by a participle."""
    classes = [location for file in files for location in file.classes]
    vague = tuple(location for location in classes if is_vague_class_name(location.text))
    return Measurement(len(vague), vague)


def count_undocumented(files: Sequence[SourceFile]) -> Measurement:
    """Count public modules, classes and functions without a docstring, per 100 of them."""
    undocumented = [location for file in files for location in file.undocumented]
    documented = sum(len(file.documented) for file in files)
    return _share(undocumented, len(undocumented) + documented)


def count_unclear_docstrings(files: Sequence[SourceFile]) -> Measurement:
    """Count docstrings whose first paragraph has two or more hits, per 100 docstrings."""
    return _share_of_unclear([location for file in files for location in file.docstrings])


def count_unclear_comments(files: Sequence[SourceFile]) -> Measurement:
    """Count blocks of comments with two or more hits, per 100 blocks."""
    return _share_of_unclear([location for file in files for location in file.comments])


def _share_of_unclear(texts: Sequence[Location]) -> Measurement:
    hits = {text: len(find_phrases(text.text)) for text in texts}
    unclear = [text for text in texts if hits[text] >= HITS_THAT_COUNT]
    unclear.sort(key=lambda text: hits[text], reverse=True)
    return _share(unclear, len(texts))


def _share(locations: Sequence[Location], whole: int, *, per: int = 100) -> Measurement:
    """Measure how many of `whole` things the locations are, as a number per 100 or per 1,000."""
    return Measurement(per * len(locations) / max(1, whole), tuple(locations))


MEASURES = (
    Measure(
        "nested-comprehensions",
        "nested comprehensions, per 1,000 lines of code",
        "Write the inner comprehension as a loop, a named value or a function with a name.",
        0.3,
        count_nested_comprehensions,
    ),
    Measure(
        "parallel-assignments",
        "parallel assignments, per 1,000 statements",
        "Write one assignment per line.",
        3,
        count_parallel_assignments,
    ),
    Measure(
        "complexity",
        "highest cognitive complexity of a function",
        "Give a thought in the function a name: move it into a function, or return early.",
        MOST_COGNITIVE_COMPLEXITY,
        count_cognitive_complexity,
    ),
    Measure(
        "class-meanings",
        "public class names with several meanings",
        "Rename all but one of the classes, so that a name has one meaning in the repository.",
        0,
        count_repeated_class_names,
    ),
    Measure(
        "loop-names",
        "vague loop variables, %",
        "Name the loop variable after the thing it holds: `for queue in queues`.",
        2,
        count_vague_loop_variables,
    ),
    Measure(
        "function-names",
        "functions named by a participle or particle, %",
        "Name the function by a verb and its object, such as `count_outcome`, or by a noun.",
        1,
        count_vague_function_names,
    ),
    Measure(
        "class-names",
        "classes named by a participle",
        "Name the class by a noun, such as `WrittenValue` in place of `Written`.",
        2,
        count_vague_class_names,
    ),
    Measure(
        "missing-docstrings",
        "public things without a docstring, %",
        "Write a docstring: its first line says what the reader gets.",
        15,
        count_undocumented,
        for_tests=False,
    ),
    Measure(
        "docstrings",
        "docstrings with two or more hits, %",
        "Begin with a verb or a noun, name the actor, and put conditions last, with `if`.",
        2,
        count_unclear_docstrings,
    ),
    Measure(
        "comments",
        "comments with two or more hits, %",
        "Begin with a verb or a noun, name the actor, and put conditions last, with `if`.",
        3,
        count_unclear_comments,
    ),
)
