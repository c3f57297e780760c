"""The report shows every measure of every area, and fails only for an area that is a gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.architecture.style.__main__ import main
from tests.architecture.style.areas import AREAS, PRODUCT, TESTS
from tests.architecture.style.measures import MEASURES

GATE = replace(PRODUCT, is_gate=True)
REPORT = replace(PRODUCT, is_gate=False)
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
    assert main(["--summary"], root=repository, areas=(GATE,)) == 1
    printed = capsys.readouterr().out
    assert "product meets 9 of 10;" in printed
    assert "100.0, at most 2.0; 1 places" in printed
    assert "  mendq/new.py:3 each" in printed


def test_area_that_is_no_gate_passes_with_the_same_code(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", VAGUE)
    assert main(["--summary"], root=repository, areas=(REPORT,)) == 0
    assert "product meets 9 of 10 (not a gate)" in capsys.readouterr().out


def test_gate_that_meets_every_threshold_passes(repository: Path) -> None:
    write(repository, "mendq/new.py", CLEAR)
    assert main([], root=repository, areas=(GATE,)) == 0


def test_code_of_another_area_or_an_ignored_file_fails_no_gate(repository: Path) -> None:
    write(repository, "tests/test_new.py", VAGUE)
    write(repository, "mendq/made.py", VAGUE)
    write(repository, ".gitignore", "made.py\n")
    assert main([], root=repository, areas=(GATE, TESTS)) == 0


def test_tests_need_no_docstrings_and_product_does(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mendq/new.py", "tests/test_new.py"):
        write(repository, name, "def read_queue():\n    pass\n")
    arguments = ["missing-docstrings"]
    assert main(arguments, root=repository, areas=(replace(TESTS, is_gate=True),)) == 0
    assert "test_new.py" not in capsys.readouterr().out
    assert main(arguments, root=repository, areas=(GATE,)) == 1
    assert "mendq/new.py:1 read_queue" in capsys.readouterr().out


def test_table_has_a_line_for_each_measure_and_a_column_for_each_area(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", VAGUE)
    main([], root=repository)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-len(AREAS) :] == [area.name for area in AREAS]
    assert [row.partition("  ")[0] for row in rows] == [measure.title for measure in MEASURES]
    (loops,) = [row for row in rows if row.startswith("vague loop variables")]
    assert loops.split()[-6:] == ["100.0", "not", "0.0", "ok", "0.0", "ok"]


def test_worst_lists_most_hits_first_and_no_more_than_asked_for(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/a.py", '"""Whether nobody asked."""\n')
    write(repository, "mendq/b.py", '"""What is gone, whoever asked of it."""\n')
    main(["docstrings", "--worst", "1"], root=repository)
    printed = capsys.readouterr().out
    assert "mendq/b.py:1 What is gone" in printed
    assert "mendq/a.py" not in printed


def test_path_measures_only_files_below_it(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/heal/decide.py", CLEAR)
    write(repository, "mendq/scan/scan.py", VAGUE)
    main(["--path", "mendq/heal", "loop-names"], root=repository)
    assert "scan.py" not in capsys.readouterr().out


def test_unknown_measure_is_refused_with_the_names_to_use(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["loops"], root=repository)
    assert ended.value.code == 2
    assert "no measure is called loops: use nested-comprehensions, " in capsys.readouterr().err


def test_path_without_files_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "mendq/new.py", CLEAR)
    with pytest.raises(SystemExit) as ended:
        main(["--path", "mendq/hael"], root=repository)
    assert ended.value.code == 2
    assert "no Python file has a path that begins with mendq/hael" in capsys.readouterr().err
