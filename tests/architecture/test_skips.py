"""A skip that is not on the list in tests/skips.py fails if CI=true."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import find_unlisted_skip
from tests.source_files import ROOT

SKIPPED_TESTS = """
import pytest

@pytest.mark.skipif(True, reason="{reason}")
def test_skipped_by_mark():
    raise AssertionError

def test_skipped_in_its_body():
    pytest.skip("{reason}")

@pytest.mark.xfail
def test_expected_to_fail():
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("reason", "is_ci", "exit_code"),
    [
        ("there is no curl to call the account with", "true", 0),
        ("records.json is not here", "", 0),
        ("records.json is not here", "false", 0),
        ("records.json is not here", "true", 1),
    ],
)
def test_skip_fails_only_if_it_is_unlisted_and_ci_is_true(
    reason: str, is_ci: str, exit_code: int, tmp_path: Path
) -> None:
    test_file = tmp_path / "test_skipped.py"
    test_file.write_text(SKIPPED_TESTS.format(reason=reason))
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.skips", "-c", os.devnull, str(test_file)],
        cwd=ROOT,
        env={**os.environ, "CI": is_ci, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == exit_code, finished.stdout
    assert ("1 failed, 1 xfailed, 1 error" in finished.stdout) == bool(exit_code)


def test_problem_of_an_unlisted_skip_names_the_reason_and_the_file_to_edit() -> None:
    problem = find_unlisted_skip("Skipped: records.json is not here", {"CI": "true"})
    assert problem is not None
    assert "'records.json is not here'" in problem
    assert "tests/skips.py" in problem
