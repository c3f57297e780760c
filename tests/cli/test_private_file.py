"""Test the files that commands write: only their owner can read them, whatever was there before."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import mendq.cli
from mendq.cli.exit_codes import CommandError
from mendq.cli.output import Output
from mendq.cli.private_file import (
    WrittenFile,
    create_private_file,
    report_open_files,
    write_private_file,
)

CLI_FOLDER = Path(mendq.cli.__file__).parent
WRITE_METHODS = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "touch"}
# `record_failed_calls.py` runs without Mendq, and its files are private too (test_record.py).
FILES_THAT_MAY_WRITE = {"private_file.py", "record_failed_calls.py"}


@pytest.fixture(autouse=True)
def _most_open_umask() -> Iterator[None]:
    """Let the umask close nothing, so that only the code under test can."""
    umask_before = os.umask(0)
    yield
    os.umask(umask_before)


def _read_mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("mode_before", [None, 0o644, 0o666, 0o640, 0o604])
@pytest.mark.parametrize("text", ["{}", "new"])
def test_private_file_can_be_read_by_its_owner_only_whatever_its_mode_was(
    tmp_path: Path, mode_before: int | None, text: str
) -> None:
    path = tmp_path / "bundle.json"
    if mode_before is not None:
        path.write_text("{}")
        path.chmod(mode_before)
    write_private_file(path, text)
    assert (path.read_text(), _read_mode(path)) == (text, 0o600)


@pytest.mark.parametrize("mode_before", [None, 0o600, 0o644, 0o602])
@pytest.mark.parametrize("text", ["{}", "new"])
def test_written_file_reports_if_others_could_read_or_write_it_and_if_its_content_is_new(
    tmp_path: Path, mode_before: int | None, text: str
) -> None:
    path = tmp_path / "bundle.json"
    if mode_before is not None:
        path.write_text("{}")
        path.chmod(mode_before)
    written_file = write_private_file(path, text)
    assert written_file.was_open_to_others is (mode_before in {0o644, 0o602})
    assert written_file.is_content_new is (mode_before is None or text != "{}")


def test_process_that_has_the_open_file_cannot_read_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    path.write_text("old")
    path.chmod(0o644)
    with path.open() as file_of_another_user:
        write_private_file(path, "secret")
        assert file_of_another_user.read() == "old"


def test_private_file_that_differs_is_kept_with_its_mode_without_yes(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    path.chmod(0o644)
    with pytest.raises(CommandError, match="--yes overwrites it"):
        write_private_file(path, "theirs", yes=False)
    assert (path.read_text(), _read_mode(path)) == ("mine", 0o644)


def test_private_file_with_same_content_and_mode_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    write_private_file(path, "{}")
    before = (path.stat().st_ino, path.stat().st_mtime_ns)
    assert not write_private_file(path, "{}").is_content_new
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


def test_private_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.write_text("somebody's")
    link = tmp_path / "orders.json"
    link.symlink_to(others)
    with pytest.raises(CommandError, match="is a link, a folder or a device"):
        write_private_file(link, "{}")
    with pytest.raises(FileExistsError):
        create_private_file(link)
    assert others.read_text() == "somebody's"
    assert link.is_symlink()


def test_private_file_keeps_its_content_and_leaves_no_other_file_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.json"
    write_private_file(path, "{}")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CommandError, match="No space left on device"):
        write_private_file(path, "{1}")
    assert [file.name for file in tmp_path.iterdir()] == ["orders.json"]
    assert path.read_text() == "{}"


def test_operator_is_told_that_others_can_read_a_file_if_the_file_system_has_no_file_modes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Such file systems (some network and Windows drives) cannot be had in a test."""
    written_file = WrittenFile(Path("bundle.json"), True, 0, 0o777)
    report_open_files(Output(as_json=False), [written_file])
    output = " ".join(capsys.readouterr().out.split())
    assert output.startswith("bundle.json can be read or written by other users of this machine")
    assert "another file system" in output


def test_private_file_says_nothing_if_no_other_user_could_read_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_open_files(Output(as_json=False), [WrittenFile(Path("b.json"), True, 0o600, 0o600)])
    assert capsys.readouterr().out == ""


def _find_writes(path: Path) -> list[int]:
    """Return the lines at which a source file writes a file without `private_file`."""
    lines = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        function_name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        call_text = ast.unparse(node)
        is_open_for_writing = function_name == "open" and (
            "O_WRONLY" in call_text or "O_RDWR" in call_text or "'w" in call_text
        )
        if function_name in WRITE_METHODS or is_open_for_writing:
            lines.append(node.lineno)
    return lines


def test_commands_write_files_with_the_one_function_that_makes_them_private() -> None:
    writes = {}
    for path in CLI_FOLDER.rglob("*.py"):
        if path.name not in FILES_THAT_MAY_WRITE and (lines := _find_writes(path)):
            writes[path.name] = len(lines)
    # The one write of output.py opens os.devnull in place of a closed standard error, and the one
    # of os.devnull in place of a closed pipe: neither holds anything.
    assert writes == {"output.py": 2}
    assert _find_writes(CLI_FOLDER / "private_file.py")
