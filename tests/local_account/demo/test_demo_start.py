"""Exit codes and messages of a demo that cannot start or is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local_account.demo import run as demo
from local_account.where import REPOSITORY

COMMAND = [sys.executable, "-m", "local_account.demo"]


def test_demo_exits_2_with_one_line_if_its_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build").touch()
    monkeypatch.setattr(demo, "RESULT_PATH", tmp_path / "build" / "demo" / "result.json")
    assert demo.main([]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert f"make demo: the folder {tmp_path / 'build' / 'demo'} cannot be written" in line


def test_second_demo_at_the_same_time_exits_2_instead_of_sharing_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "RESULT_PATH", tmp_path / "result.json")
    monkeypatch.setattr(demo, "_run_stories", lambda *_: 0)
    assert [demo.main([]), demo.main([])] == [0, 2]
    assert f"another demo writes to {tmp_path}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--port", "abc"), "PORT abc is not a port: give a number from 0 to 65535"),
        (("--story", "x"), "STORY 'x' is not known: give one of visibility, catalogue, life, "),
    ],
)
def test_demo_with_an_invalid_port_or_story_exits_2_with_one_line(
    given: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(given) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"make demo: {said}")


@pytest.mark.account
@pytest.mark.parametrize("after", ["Mendq demo", pytest.param("failed", marks=pytest.mark.long)])
def test_interrupted_demo_prints_one_line_exits_130_and_leaves_no_files(
    tmp_path: Path, after: str
) -> None:
    with subprocess.Popen(
        COMMAND,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(after in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        *_, last = process.stdout
        assert last == "interrupted: the account and its queues are gone\n"
        assert process.stderr.read() == ""
    assert process.returncode == 130
    assert list(tmp_path.glob("mendq-*")) == []
