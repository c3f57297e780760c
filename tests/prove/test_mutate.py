"""Random mutants: each kind of fault, the choice by seed, and what counts as noticed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.prove.guards.recorder import digests_of_sources
from tests.prove.guards.recording import Recording
from tests.prove.mutants.mutant import ROOT, path_of
from tests.prove.mutate import run
from tests.prove.mutate.__main__ import main
from tests.prove.mutate.choice import ChosenMutant, _make_ranks, choose_mutants
from tests.prove.mutate.equivalents import (
    Equivalent,
    is_listed,
    list_faults,
    load_equivalents,
)
from tests.prove.mutate.nursery import Job, Outcome, Verdict
from tests.prove.mutate.operators import Mutation, MutationOperator, apply_mutation, list_mutations
from tests.prove.mutate.proof import judge
from tests.prove.mutate.report import (
    Judgement,
    describe_survivor,
    list_failures,
    score_of,
)
from tests.prove.mutate.run import NoRecordingError, check_recording, judge_mutants
from tests.prove.mutate.selection import TestSelector, count_lines_by_test, limit_tests
from tests.prove.proof import Proving

MODULE = "mendq.model.made_up"
FUNCTION = "def f(a, b):\n{}\n"


def _mutate_body(body: str, operator: MutationOperator) -> list[str]:
    """Return the mutated bodies of a function for one kind of fault."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    source = FUNCTION.format(indented)
    found = [
        mutation for mutation in list_mutations(MODULE, source) if mutation.operator is operator
    ]
    bodies = []
    for mutation in found:
        lines = apply_mutation(source, mutation).splitlines()[1:]
        bodies.append("\n".join(line.removeprefix("    ") for line in lines))
    return bodies


@pytest.mark.parametrize(
    ("operator", "body", "expected"),
    [
        (MutationOperator.COMPARISON, "return a < b", ["return (a >= b)"]),
        (MutationOperator.COMPARISON, "return a is b", ["return (a is not b)"]),
        (MutationOperator.COMPARISON, "return a not in b", ["return (a in b)"]),
        (MutationOperator.BOUNDARY, "return a < b", ["return (a <= b)"]),
        (MutationOperator.BOUNDARY, "return a >= b", ["return (a > b)"]),
        (MutationOperator.BOUNDARY, "return a == b", []),
        (MutationOperator.BOUNDARY, "return a + 15", ["return a + 16"]),
        (MutationOperator.BOUNDARY, "return True", []),
        (
            MutationOperator.BOUNDARY,
            "return a < b <= a.c",
            ["return (a <= b <= a.c)", "return (a < b < a.c)"],
        ),
        (MutationOperator.LOGIC, "return a and b", ["return (a or b)"]),
        (MutationOperator.LOGIC, "return not a", ["return a"]),
        (MutationOperator.RETURN_VALUE, "return a", ["return None"]),
        (MutationOperator.RETURN_VALUE, "return True", ["return False"]),
        (MutationOperator.RETURN_VALUE, "return None", []),
        (MutationOperator.RETURN_VALUE, "return", []),
        (MutationOperator.STATEMENT, "a.send(b)", ["pass"]),
        (MutationOperator.STATEMENT, "a.b = 1", ["pass"]),
        (MutationOperator.STATEMENT, "a += 1", ["pass"]),
        (MutationOperator.STATEMENT, "c = 1", []),
        (MutationOperator.STATEMENT, "_LOG.warning(a)", []),
        (MutationOperator.GUARD, "if a:\n    return", ["if a and False:\n    return"]),
        (MutationOperator.GUARD, "if a:\n    raise b", ["if a and False:\n    raise b"]),
        (MutationOperator.GUARD, "if a:\n    return\nelse:\n    b()", []),
        (MutationOperator.GUARD, "if a:\n    b()", []),
        (
            MutationOperator.EXCEPTION,
            "try:\n    a()\nexcept ValueError:\n    b()\n    raise",
            ["try:\n    a()\nexcept ValueError:\n    pass"],
        ),
        (MutationOperator.EXCEPTION, "try:\n    a()\nexcept ValueError:\n    pass", []),
        (MutationOperator.ARGUMENTS, "return f(a, b, 1)", ["return f(b, a, 1)"]),
        (MutationOperator.ARGUMENTS, "return f(a, a)", []),
        (MutationOperator.ARGUMENTS, "return f(a, key=b)", []),
        (MutationOperator.ARGUMENTS, "return f(*a, b)", []),
        (MutationOperator.ARGUMENTS, "return min(a, b)", []),
    ],
)
def test_each_mutation_operator_makes_exactly_its_faults_in_a_function_body(
    operator: MutationOperator, body: str, expected: list[str]
) -> None:
    assert _mutate_body(body, operator) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""Docs with 15 words."""\n',
        "def f(a: Literal[1]) -> Annotated[int, 2]:\n    '''15 words'''\n    pass\n",
        "@cache(15)\ndef f():\n    pass\n",
        "if TYPE_CHECKING:\n    LIMIT = 1\n",
        "TEXT = f'{1 + 2}'\n",
        "LATE = Symptom(examples=lambda: (Example('late', 3),))\n",
    ],
)
def test_mutations_never_change_texts_types_decorators_type_checking_blocks_or_examples(
    source: str,
) -> None:
    assert list_mutations(MODULE, source) == []


def test_mutation_of_a_line_with_wide_characters_replaces_the_right_text() -> None:
    source = "def f(a):\n    return ('äöü', a < 1)\n"
    first = list_mutations(MODULE, source)
    changed = {apply_mutation(source, mutation).splitlines()[1].strip() for mutation in first}
    assert "return ('äöü', (a >= 1))" in changed


def test_mutation_outside_of_functions_names_what_the_line_defines() -> None:
    (mutation,) = list_mutations(MODULE, "MOST_TRIES = 3\n")
    assert (mutation.name, mutation.function) == ("MOST_TRIES", "")
    (mutation,) = list_mutations(MODULE, "class Limits:\n    tries: int = 3\n")
    assert (mutation.name, mutation.function) == ("tries", "Limits")


def test_mutation_of_a_guard_is_assigned_to_the_first_line_inside_the_guard() -> None:
    mutations = list_mutations(MODULE, "def f(a):\n    if a:\n        return None\n    return a\n")
    (guard,) = [mutation for mutation in mutations if mutation.operator is MutationOperator.GUARD]
    assert guard.lines == (3,)


ONLY = "mendq/model/limits.py"


def test_same_seed_chooses_same_mutants_and_another_seed_others() -> None:
    first = choose_mutants("12", 10, ONLY)
    assert choose_mutants("12", 10, ONLY) == first
    assert choose_mutants("13", 10, ONLY) != first


def test_choice_of_four_mutants_is_the_beginning_of_the_choice_of_ten_and_of_the_given_file() -> (
    None
):
    first = choose_mutants("12", 10, ONLY)
    assert choose_mutants("12", 4, ONLY) == first[:4]
    assert {str(mutant.path) for mutant in first} == {ONLY}


def test_edit_elsewhere_in_a_file_leaves_the_ranks_of_its_mutants() -> None:
    source = "def f(a):\n    return a < 3\n"
    edited = "LIMIT = 1\n\n\n" + source
    ranks = _make_ranks("1", list_mutations(MODULE, source), source)
    ranks_after = _make_ranks("1", list_mutations(MODULE, edited), edited)
    assert set(ranks) < set(ranks_after)


def test_another_seed_gives_each_mutant_another_rank() -> None:
    source = "def f(a):\n    return a < 3\n"
    mutations = list_mutations(MODULE, source)
    assert not set(_make_ranks("1", mutations, source)) & set(_make_ranks("2", mutations, source))


def test_same_change_twice_in_a_function_has_two_ranks() -> None:
    source = "def f(a):\n    a.b()\n    a.b()\n"
    ranks = _make_ranks("1", list_mutations(MODULE, source), source)
    assert len(set(ranks)) == 2


def test_mutate_command_for_a_path_outside_of_the_product_exits_with_2_and_names_the_packages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "tests"]) == 2
    assert "name a file or folder of analytics, functions, infra, mendq" in capsys.readouterr().out


def test_mutate_command_without_recorded_coverage_exits_with_2_and_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "NOTES", tmp_path / "notes.json")
    assert main(["--only", ONLY, "--count", "1"]) == 2
    assert "Run `make test COVERAGE=1` first" in capsys.readouterr().out


def test_mutation_run_refuses_a_mutated_file_changed_since_the_recording_and_only_counts_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").touch()
    monkeypatch.setattr(run, "DATA", tmp_path / "data")
    notes = tmp_path / "notes.json"
    monkeypatch.setattr(run, "NOTES", notes)
    mutants = choose_mutants("1", 1, ONLY)
    sources = digests_of_sources()
    notes.write_text(json.dumps({"sources": sources}))
    assert check_recording(mutants) == ""
    notes.write_text(json.dumps({"sources": {**sources, "mendq/gone.py": "x"}}))
    assert check_recording(mutants).startswith("1 other files changed")
    notes.write_text(json.dumps({"sources": {**sources, ONLY: "x"}}))
    with pytest.raises(NoRecordingError, match=r"limits\.py changed since coverage was recorded"):
        check_recording(mutants)


PATH = ROOT / "mendq" / "model" / "limits.py"
CLOSE, SUBJECT, FAR = (
    "tests/model/test_close.py::test_a",
    "tests/model/test_limits.py::test_b",
    "tests/heal/test_far.py::test_c",
)


def _make_selector(lines_by_test: dict[str, list[int]], failed: Sequence[str] = ()) -> TestSelector:
    data = CoverageData(no_disk=True)
    for test, lines in lines_by_test.items():
        data.set_context(f"{test}|run" if test else "")
        data.add_lines({str(PATH): lines})
    breadths = {test: len(lines) for test, lines in lines_by_test.items()}
    return TestSelector(Recording(data, failed=tuple(failed)), breadths)


def _mutation(line: int = 20, name: str = "") -> Mutation:
    (mutation,) = list_mutations("mendq.model.limits", "def f(a):\n    return a\n")
    return replace(mutation, lines=(line,), statement_lines=(line + 1,), name=name)


def test_mutant_gets_tests_of_its_module_then_its_package_then_those_that_run_few_lines() -> None:
    narrow, wide = "tests/cases/test_x.py::test_d", "tests/scan/test_y.py::test_e"
    selector = _make_selector(
        {wide: [20, 30, 31], narrow: [20], CLOSE: [20, 30], SUBJECT: [20, 30], "": [20]}
    )
    assert selector.list_tests(_mutation()) == [SUBJECT, CLOSE, narrow, wide]


def test_one_test_of_each_file_comes_before_the_second_of_any() -> None:
    second = SUBJECT.replace("test_b", "test_z")
    selector = _make_selector({second: [20, 30], SUBJECT: [20], CLOSE: [20]})
    assert selector.list_tests(_mutation()) == [SUBJECT, CLOSE, second]


def test_test_that_failed_in_the_recording_is_not_chosen_for_a_mutant() -> None:
    assert _make_selector({FAR: [20], CLOSE: [20]}, failed=[FAR]).list_tests(_mutation()) == [CLOSE]


def test_line_that_only_runs_on_import_has_no_test() -> None:
    assert _make_selector({"": [20], CLOSE: [99]}).list_tests(_mutation()) == []


def test_tests_of_a_line_without_coverage_are_those_of_the_statement_around_it() -> None:
    assert _make_selector({CLOSE: [21]}).list_tests(_mutation()) == [CLOSE]


def test_limited_tests_are_those_of_the_first_files_and_at_least_one() -> None:
    selector = _make_selector({})
    tests = [SUBJECT, CLOSE, FAR, SUBJECT + "2"]
    assert limit_tests(tests, selector, most=9, files=2, seconds=1) == [
        SUBJECT,
        CLOSE,
        SUBJECT + "2",
    ]
    assert limit_tests(tests, selector, most=0, files=2, seconds=0) == [SUBJECT]


def test_count_lines_by_test_adds_the_lines_of_a_tests_setup_and_of_its_body(
    tmp_path: Path,
) -> None:
    data = CoverageData(str(tmp_path / "data"))
    for context, lines in (
        ("t.py::a|run", [1, 2, 9]),
        ("t.py::a|setup", [1]),
        ("t.py::b|run", [5]),
    ):
        data.set_context(context)
        data.add_lines({"x.py": lines})
    data.write()
    assert count_lines_by_test(tmp_path / "data") == {"t.py::a": 4, "t.py::b": 1}


def _find_comparison(source: str) -> Mutation:
    mutations = list_mutations(MODULE, source)
    return next(found for found in mutations if found.operator is MutationOperator.COMPARISON)


def _mutant() -> ChosenMutant:
    source = "def f(a):\n    if a < 3:\n        return a\n    return 0\n"
    mutation = _find_comparison(source)
    return ChosenMutant(mutation, Path("mendq/model/made_up.py"), source)


ENTRY = Equivalent(
    module=MODULE,
    function="f",
    line="if a < 3:",
    change="comparison: a < 3 -> (a >= 3)",
    reason="Nobody calls this function with anything but the number 3.",
)


def test_description_of_a_surviving_mutant_shows_file_line_difference_and_tests() -> None:
    judgement = Judgement(_mutant(), Verdict.SURVIVED, tests=(CLOSE,), possible_tests=7)
    text = describe_survivor(judgement)
    assert text.startswith("mendq/model/made_up.py:2  comparison in f\n")
    assert "-    if a < 3:\n    +    if (a >= 3):" in text
    assert f"1 of 7 tests that run it passed:\n      {CLOSE}" in text
    assert f"line: {ENTRY.line!r}  change: {ENTRY.change!r}" in text


def test_mutant_that_no_test_runs_is_a_survivor_and_says_so() -> None:
    said: list[str] = []
    (judgement,) = judge_mutants([_mutant()], _make_selector({}), (), said.append)
    assert judgement.is_survivor
    assert "no test runs this line" in describe_survivor(judgement)
    assert score_of([judgement]).share == 0
    assert len(said) == 1


def test_mutant_listed_as_equivalent_is_not_run_and_does_not_count() -> None:
    (judgement,) = judge_mutants([_mutant()], _make_selector({}), (ENTRY,), lambda _: None)
    assert judgement.is_equivalent
    assert not judgement.is_survivor
    assert score_of([judgement]).mutants - score_of([judgement]).equivalents == 0


@pytest.mark.parametrize("field", ["module", "function", "line", "change"])
def test_entry_of_the_equivalents_lists_no_mutant_that_differs_in_one_field(field: str) -> None:
    assert is_listed(_mutant(), [ENTRY])
    assert not is_listed(_mutant(), [replace(ENTRY, **{field: "other"})])


def test_listed_mutant_is_still_recognized_after_lines_are_added_above_it() -> None:
    mutant = _mutant()
    source = "import os\n\n" + mutant.source
    moved = _find_comparison(source)
    assert is_listed(ChosenMutant(moved, mutant.path, source), [ENTRY])


def _make_judgements(noticed: int, survived: int, listed: int = 0) -> list[Judgement]:
    mutant = _mutant()
    return [
        *[Judgement(mutant, Verdict.KILLED, possible_tests=1)] * noticed,
        *[Judgement(mutant, Verdict.SURVIVED, possible_tests=1)] * survived,
        *[Judgement(mutant, Verdict.SURVIVED, is_equivalent=True)] * listed,
    ]


def test_mutation_run_fails_if_tests_noticed_fewer_than_96_percent_and_passes_at_96() -> None:
    assert list_failures(_make_judgements(96, 4), ()) == []
    (failure,) = list_failures(_make_judgements(95, 5), ())
    assert failure.startswith("score 95.0%: tests noticed 95 of 100 mutants")


def test_mutation_run_fails_if_more_than_5_percent_of_mutants_are_listed_as_equivalent() -> None:
    assert list_failures(_make_judgements(95, 0, listed=5), [ENTRY]) == []
    (failure,) = list_failures(_make_judgements(94, 0, listed=6), [ENTRY])
    assert failure.startswith("6 of 100 mutants of this run are listed")


def test_mutant_that_overran_its_time_counts_as_noticed_and_a_broken_one_does_not() -> None:
    overran, broken = (
        Judgement(_mutant(), verdict) for verdict in (Verdict.OVERRAN, Verdict.BROKEN)
    )
    assert score_of([overran]).share == 1
    assert score_of([broken]).share == 0


def test_entry_of_the_equivalents_without_a_reason_fails_the_run() -> None:
    (fault,) = list_faults([replace(ENTRY, reason="equivalent")], 0, 100)
    assert "gives no reason" in fault


def test_every_entry_of_the_equivalents_names_a_mutant_of_its_module() -> None:
    unknown = [
        f"{entry.module}.{entry.function}: {entry.change}"
        for entry in load_equivalents()
        if not any(is_listed(mutant, [entry]) for mutant in _all_mutants_of(entry.module))
    ]
    assert unknown == [], "remove these entries or correct them"


def _all_mutants_of(module: str) -> list[ChosenMutant]:
    path = path_of(module)
    source = (ROOT / path).read_text()
    return [ChosenMutant(mutation, path, source) for mutation in list_mutations(module, source)]


def test_mutation_proof_fails_and_gives_the_score_if_a_mutant_survives() -> None:
    proving = Proving()
    judge(proving, _make_judgements(9, 1), ())
    assert proving.figures["score_percent"] == 90.0
    assert len(proving.failures) == 1


def test_verdict_of_a_second_round_of_tests_replaces_the_first_and_both_rounds_are_listed() -> None:
    tests_of = {0: [CLOSE, FAR]}
    first = run._join(None, _mutant(), Outcome("0", Verdict.SURVIVED, tests=(CLOSE,)), tests_of)
    second = Outcome("0", Verdict.KILLED, failed=(FAR,), tests=(FAR,))
    judgement = run._join(first, _mutant(), second, tests_of)
    assert (judgement.verdict, judgement.tests) == (Verdict.KILLED, (CLOSE, FAR))


JSON_TEXT = "mendq.model.json_text"
NAN_TEST = (
    "tests/model/test_json_text.py::test_to_json_writes_null_for_nan_and_infinity_at_any_depth"
)


@pytest.mark.long
def test_nursery_tells_noticed_from_unnoticed_faults_and_leaves_out_failing_tests() -> None:
    source = (ROOT / path_of(JSON_TEXT)).read_text()
    noticed = source.replace("return value if isfinite(value) else None", "return value")
    endless = source.replace(
        "    if isinstance(value, float):", "    while True:\n        pass\n    if value:"
    )
    assert source not in (noticed, endless)
    jobs = [
        Job("noticed", JSON_TEXT, noticed, (NAN_TEST,)),
        Job("endless", JSON_TEXT, endless, (NAN_TEST,)),
        Job("unnoticed", JSON_TEXT, source, (NAN_TEST,)),
        Job("noticed by a test of the file", JSON_TEXT, noticed, (NAN_TEST.partition("::")[0],)),
        Job("not imported", "mendq.model.prices", "", (NAN_TEST,)),
        Job("only failing tests", JSON_TEXT, noticed, (f"{NAN_TEST}_that_is_not_there",)),
    ]
    outcomes = {outcome.name: outcome for outcome in run._run_nursery(jobs, at_once=1)}
    assert outcomes.pop(NAN_TEST.partition("::")[0]).verdict is Verdict.SURVIVED
    assert {name: outcome.verdict for name, outcome in outcomes.items()} == {
        "noticed": Verdict.KILLED,
        "endless": Verdict.OVERRAN,
        "unnoticed": Verdict.SURVIVED,
        "noticed by a test of the file": Verdict.KILLED,
        "not imported": Verdict.NOT_IMPORTED,
        "only failing tests": Verdict.NO_TEST,
    }
    assert outcomes["noticed"].failed == (NAN_TEST,)
    assert (ROOT / path_of(JSON_TEXT)).read_text() == source
