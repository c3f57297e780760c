"""A golden file changes only if a person accepts that one file; until then its check fails."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.golden.__main__ import main
from tests.golden.differences import describe_differences
from tests.golden.files import GOLDEN_FILES, GoldenFile
from tests.source_files import ROOT, list_files

ORDERS, EMAILS = "golden/orders.json", "golden/emails.json"
# What the made-up product says now, by the name of the file. `product` below is imported by name.
OLD = {"delay": {"reason": "the delay of 30 s is long", "limit": 30}}
PRODUCT = """
import json
import os

def render(name):
    return json.dumps(json.loads(os.environ[name]), indent=1) + "\\n"
"""


@dataclass
class GoldenFolder:
    """A folder with two golden files and the code that computes them."""

    root: Path
    patch: pytest.MonkeyPatch
    said: list[str] = field(default_factory=list)

    @property
    def files(self) -> tuple[GoldenFile, ...]:
        computed_by = "made_up_golden_product:render"
        return (
            GoldenFile(ORDERS, computed_by, ("ORDERS",)),
            GoldenFile(EMAILS, computed_by, ("EMAILS",)),
        )

    def change(self, name: str, present: object) -> None:
        """Make the product say something else."""
        self.patch.setenv(name, json.dumps(present))

    def run(self, *arguments: str) -> int:
        """Run the command and keep what it says."""
        self.said.clear()
        return main(arguments, self.files, self.root, self.said.append)

    @property
    def output(self) -> str:
        return "\n".join(self.said)

    def read(self, path: str) -> object:
        return json.loads((self.root / path).read_text())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoldenFolder:
    (tmp_path / "made_up_golden_product.py").write_text(PRODUCT)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "golden").mkdir()
    made = GoldenFolder(tmp_path, monkeypatch)
    for path, name in ((ORDERS, "ORDERS"), (EMAILS, "EMAILS")):
        (tmp_path / path).write_text(json.dumps(OLD))
        made.change(name, OLD)
    return made


def _with_reason(reason: str) -> dict[str, object]:
    return {"delay": {"reason": reason, "limit": 30}}


def test_golden_check_passes_if_every_golden_file_is_current(world: GoldenFolder) -> None:
    assert world.run() == 0
    assert world.output == "golden files: 2 are current"


def test_golden_check_fails_with_old_and_new_sentence_and_accept_command_if_a_sentence_changed(
    world: GoldenFolder,
) -> None:
    world.change("ORDERS", _with_reason("the delay of 30 s is too long"))
    assert world.run() == 1
    lines = world.output.splitlines()
    assert lines[:4] == [
        f"{ORDERS} differs from what the code produces now:",
        "  delay > reason",
        "    - the delay of 30 s is long",
        "    + the delay of 30 s is too long",
    ]
    assert f"  .venv/bin/python -m tests.golden accept {ORDERS}" in lines
    assert "limit" not in world.output
    assert EMAILS not in world.output


def test_golden_check_does_not_write_a_file_that_differs(world: GoldenFolder) -> None:
    world.change("ORDERS", _with_reason("it is too long"))
    world.run()
    assert world.read(ORDERS) == OLD


def test_golden_check_does_not_compute_a_slow_file_and_names_it(world: GoldenFolder) -> None:
    slow = GoldenFile("golden/slow.json", "made_up_golden_product:missing", is_slow=True)
    assert main([], [*world.files, slow], world.root, world.said.append) == 0
    assert world.output == "golden files: 2 are current; `make test` compares golden/slow.json"


def test_golden_accept_writes_the_named_file_and_leaves_another_differing_file(
    world: GoldenFolder,
) -> None:
    new = _with_reason("it is too long")
    world.change("ORDERS", new)
    world.change("EMAILS", new)
    assert world.run("accept", ORDERS) == 0
    assert "+ it is too long" in world.output
    assert world.said[-1] == f"wrote {ORDERS}"
    assert world.read(ORDERS) == new
    assert world.read(EMAILS) == OLD
    assert world.run() == 1
    assert EMAILS in world.output
    assert ORDERS not in world.output


def test_golden_accept_takes_an_absolute_path(world: GoldenFolder) -> None:
    world.change("ORDERS", {})
    assert world.run("accept", str(world.root / ORDERS)) == 0
    assert world.read(ORDERS) == {}


def test_golden_accept_without_a_name_writes_nothing_and_says_what_to_type(
    world: GoldenFolder,
) -> None:
    world.change("ORDERS", {})
    assert world.run("accept") == 2
    assert "Name the golden files to accept" in world.output
    assert f".venv/bin/python -m tests.golden accept {ORDERS}" in world.output
    assert world.read(ORDERS) == OLD


@pytest.mark.parametrize("name", ["golden/other.json", "golden/*.json", "golden", "all"])
def test_golden_accept_of_an_unknown_name_lists_the_known_files_and_writes_nothing(
    world: GoldenFolder, name: str
) -> None:
    world.change("ORDERS", {})
    assert world.run("accept", ORDERS, name) == 2
    assert f"{name} is not a golden file" in world.output
    assert f"  {ORDERS}\n  {EMAILS}" in world.output
    assert world.read(ORDERS) == OLD


def test_golden_command_with_an_unknown_word_exits_with_2_and_shows_its_usage(
    world: GoldenFolder,
) -> None:
    assert world.run("update") == 2
    assert "python -m tests.golden accept FILE" in world.output


def test_difference_of_a_long_sentence_shows_the_changed_words() -> None:
    before = "the visibility timeout of 30 s ends before its consumers are done with the messages"
    after = before.replace("are done", "finish")
    assert describe_differences({"a": before}, {"a": after}) == [
        "  a",
        f"    - {before}",
        f"    + {after}",
        (
            "    changed: the visibility timeout ... before its consumers "
            "[-are done-]{+finish+} with the messages"
        ),
    ]


def test_difference_names_added_and_removed_keys() -> None:
    before = {"queue": {"old": {"reason": "gone"}}}
    after = {"queue": {"new": ["one", 2]}}
    assert describe_differences(before, after) == [
        "  queue > old (removed)",
        "    - reason: gone",
        "  queue > new (added)",
        "    + one",
        "    + 2",
    ]


def test_difference_of_a_list_shows_an_inserted_line_alone() -> None:
    before, after = ["first", "second"], ["first", "between", "second"]
    assert describe_differences({"says": before}, {"says": after}) == ["  says", "    + between"]


def test_difference_in_a_list_of_objects_names_the_object() -> None:
    before = [{"name": "busy", "says": ["1 case"]}, {"name": "quiet", "says": []}]
    after = [{"name": "busy", "says": ["2 cases"]}, {"name": "quiet", "says": []}]
    assert describe_differences(before, after) == [
        "  number 1 busy > says",
        "    - 1 case",
        "    + 2 cases",
    ]
    assert describe_differences(before, before[:1])[0] == "  number 2 quiet (removed)"


def test_difference_of_a_text_shows_the_lines_around_the_change() -> None:
    before, after = "a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n"
    lines = describe_differences(before, after)
    assert lines == [
        "  the whole file",
        "    ...",
        "      b",
        "    - c",
        "    + C",
        "      d",
    ]


def test_equal_values_have_no_difference() -> None:
    assert describe_differences(OLD, json.loads(json.dumps(OLD))) == []


def test_every_golden_file_is_in_git_and_named_once() -> None:
    tracked = {path.relative_to(ROOT).as_posix() for path in list_files("tests/*")}
    paths = [golden_file.path for golden_file in GOLDEN_FILES]
    assert [path for path in paths if path not in tracked] == []
    assert len(set(paths)) == len(paths)


def test_only_slow_golden_file_is_the_synthesized_stack() -> None:
    slow = [golden_file.path for golden_file in GOLDEN_FILES if golden_file.is_slow]
    assert slow == ["tests/infra/stack.json"]


def test_no_test_file_has_a_main_block() -> None:
    programs = [
        path.relative_to(ROOT).as_posix()
        for path in list_files("tests/*.py")
        if path.name.startswith("test_") and _is_program(path.read_text())
    ]
    assert programs == []


def _is_program(source: str) -> bool:
    statements = ast.parse(source).body
    return any(
        isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test)
        for statement in statements
    )
