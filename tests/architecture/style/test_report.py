"""The report shows every measure of every area, and fails only for an area that is a gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.architecture.style.__main__ import PLACES_SHOWN, main
from tests.architecture.style.areas import AREAS, PRODUCT, TESTS
from tests.architecture.style.exceptions import (
    NAME_EXCEPTIONS,
    NameException,
    describe_unneeded_exceptions,
)
from tests.architecture.style.measures import MEASURES
from tests.architecture.style.source import read_source
from tests.source_files import ROOT

GATE = replace(PRODUCT, is_gate=True)
REPORT = replace(PRODUCT, is_gate=False)
EXCEPTION = NameException("mendq/held.py", "Heartbeat.held", "Consumers of users read it.")
VAGUE = '"""List queues."""\n\nnames = [each.name for each in queues]\n'
CLEAR = '"""List queues."""\n\nnames = [queue.name for queue in queues]\n'


def write(repository: Path, name: str, source: str) -> None:
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


def test_gate_that_misses_threshold_fails_and_names_the_line(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", VAGUE)
    assert main(["--summary"], root=repository, exceptions=(), areas=(GATE,)) == 1
    printed = capsys.readouterr().out
    assert "product meets 9 of 10;" in printed
    assert "100.00, at most 2.00; 1 place\n" in printed
    assert "  Name the loop variable after the thing it holds: `for queue in queues`.\n" in printed
    assert "  mendq/new.py:3 each" in printed


def write_loops(vague: int, clear: int) -> str:
    loops = ["for each in queues: ..."] * vague + ["for queue in queues: ..."] * clear
    return "\n".join(['"""List queues."""', *loops, ""])


def write_classes(vague: int) -> str:
    names = ("Written", "Judged", "Told")[:vague]
    classes = [f'class {name}:\n    """A record."""\n' for name in names]
    return "\n".join(['"""List queues."""', *classes])


def write_branches(count: int) -> str:
    branches = ["    if queue: ..."] * count
    return "\n".join(['"""List queues."""', "def _judge(queue):", *branches, ""])


AT_THRESHOLD = {
    "loop-names": write_loops(vague=1, clear=49),
    "class-names": write_classes(vague=2),
    "complexity": write_branches(15),
}
ABOVE_THRESHOLD = {
    "loop-names": write_loops(vague=2, clear=48),
    "class-names": write_classes(vague=3),
    "complexity": write_branches(16),
}


@pytest.mark.parametrize("measure", AT_THRESHOLD)
def test_gate_at_its_threshold_passes(repository: Path, measure: str) -> None:
    write(repository, "mendq/new.py", AT_THRESHOLD[measure])
    assert main(["--summary"], root=repository, exceptions=(), areas=(GATE,)) == 0


@pytest.mark.parametrize("measure", ABOVE_THRESHOLD)
def test_gate_above_its_threshold_fails_and_names_only_this_measure(
    repository: Path, capsys: pytest.CaptureFixture[str], measure: str
) -> None:
    write(repository, "mendq/new.py", ABOVE_THRESHOLD[measure])
    assert main(["--summary"], root=repository, exceptions=(), areas=(GATE,)) == 1
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("product:")]
    assert titles == [f"product: {m.title}" for m in MEASURES if m.name == measure]


def test_failing_gate_says_how_to_list_the_places_that_it_leaves_out(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", write_loops(vague=30, clear=0))
    main(["--summary"], root=repository, exceptions=(), areas=(GATE,))
    printed = capsys.readouterr().out
    assert printed.count("mendq/new.py:") == PLACES_SHOWN
    assert "`make style NAMES=loop-names WORST=30` lists all" in printed


HELD = '"""Hold."""\nclass Heartbeat:\n    """Holds."""\n    def held(self):\n        """Ids."""\n'


@pytest.mark.parametrize("path", ["mendq/a.py", "app.py", "local_account/a.py", "tests/test_a.py"])
def test_check_fails_for_vague_name_in_any_area(repository: Path, path: str) -> None:
    write(repository, path, VAGUE)
    assert main(["--summary"], root=repository, exceptions=()) == 1


def test_exception_lets_one_function_keep_its_name(repository: Path) -> None:
    write(repository, EXCEPTION.path, HELD)
    assert main(["--summary"], root=repository, exceptions=(), areas=(GATE,)) == 1
    assert main(["--summary"], root=repository, exceptions=(EXCEPTION,), areas=(GATE,)) == 0
    write(repository, "mendq/other.py", HELD.replace("Heartbeat", "Pulse"))
    assert main(["--summary"], root=repository, exceptions=(EXCEPTION,), areas=(GATE,)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("mendq/held.py", HELD.replace("def held", "def list_held_ids")),
        ("mendq/held.py", HELD.replace("Heartbeat", "Pulse")),
        ("mendq/moved.py", HELD),
    ],
    ids=["function renamed", "class renamed", "file moved"],
)
def test_exception_that_names_nothing_any_more_fails(
    repository: Path, capsys: pytest.CaptureFixture[str], path: str, source: str
) -> None:
    write(repository, path, source)
    assert main(["--summary"], root=repository, exceptions=(EXCEPTION,), areas=(REPORT,)) == 1
    printed = capsys.readouterr().out
    assert "mendq/held.py has no function `Heartbeat.held` with a vague name: delete" in printed


def test_exception_for_a_clear_name_fails(repository: Path) -> None:
    write(repository, EXCEPTION.path, HELD.replace("def held", "def held_ids"))
    exception = replace(EXCEPTION, name="Heartbeat.held_ids")
    assert main(["--summary"], root=repository, exceptions=(exception,), areas=(REPORT,)) == 1


def test_every_exception_of_the_repository_is_needed_and_has_a_reason() -> None:
    paths = {exception.path for exception in NAME_EXCEPTIONS}
    files = [read_source((ROOT / path).read_text(), path) for path in paths]
    assert list(describe_unneeded_exceptions(NAME_EXCEPTIONS, files)) == []
    assert all(exception.reason.endswith(".") for exception in NAME_EXCEPTIONS)


def test_area_that_is_no_gate_passes_with_the_same_code(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", VAGUE)
    assert main(["--summary"], root=repository, exceptions=(), areas=(REPORT,)) == 0
    assert "product meets 9 of 10 (not a gate)" in capsys.readouterr().out


def test_gate_that_meets_every_threshold_passes(repository: Path) -> None:
    write(repository, "mendq/new.py", CLEAR)
    assert main([], root=repository, exceptions=(), areas=(GATE,)) == 0


def test_code_of_another_area_or_an_ignored_file_fails_no_gate(repository: Path) -> None:
    write(repository, "tests/test_new.py", VAGUE)
    write(repository, "mendq/made.py", VAGUE)
    write(repository, ".gitignore", "made.py\n")
    report_of_tests = replace(TESTS, is_gate=False)
    assert main([], root=repository, exceptions=(), areas=(GATE, report_of_tests)) == 0


def test_tests_need_no_docstrings_and_product_does(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mendq/new.py", "tests/test_new.py"):
        write(repository, name, "def read_queue():\n    pass\n")
    arguments = ["missing-docstrings"]
    assert main(arguments, root=repository, exceptions=(), areas=(TESTS,)) == 0
    assert "test_new.py" not in capsys.readouterr().out
    assert main(arguments, root=repository, exceptions=(), areas=(GATE,)) == 1
    assert "mendq/new.py:1 read_queue" in capsys.readouterr().out


def test_table_has_a_line_for_each_measure_and_a_column_for_each_area(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", VAGUE)
    main([], root=repository, exceptions=())
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-len(AREAS) :] == [area.name for area in AREAS]
    assert [row.partition("  ")[0] for row in rows] == [measure.title for measure in MEASURES]
    (loops,) = [row for row in rows if row.startswith("vague loop variables")]
    assert loops.split()[-6:] == ["100.00", "not", "0.00", "ok", "0.00", "ok"]


def test_worst_lists_most_hits_first_and_no_more_than_asked_for(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/a.py", '"""Whether nobody asked."""\n')
    write(repository, "mendq/b.py", '"""What is gone, whoever asked of it."""\n')
    main(["docstrings", "--worst", "1"], root=repository, exceptions=())
    printed = capsys.readouterr().out
    assert "mendq/b.py:1 What is gone" in printed
    assert "mendq/a.py" not in printed


def test_path_measures_only_files_below_it(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/heal/decide.py", CLEAR)
    write(repository, "mendq/scan/scan.py", VAGUE)
    main(["--path", "mendq/heal", "loop-names"], root=repository, exceptions=())
    assert "scan.py" not in capsys.readouterr().out


def test_unknown_measure_is_refused_with_the_names_to_use(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["loops"], root=repository, exceptions=())
    assert ended.value.code == 2
    assert "no measure is called loops: use nested-comprehensions, " in capsys.readouterr().err


def test_path_without_files_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", CLEAR)
    with pytest.raises(SystemExit) as ended:
        main(["--path", "mendq/hael"], root=repository, exceptions=())
    assert ended.value.code == 2
    assert "no Python file has a path that begins with mendq/hael" in capsys.readouterr().err
