"""The Python that `make` builds its environment with, on machines that have other ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = shutil.which("make") or "make"
REMEDY = "Install Python 3.11 or name one: make demo PYTHON=/path/to/python3.11"
NONE_FOUND = (
    "Mendq needs Python 3.11 or later. None of these is: python3.11 python3.12 python3.13 python3."
)


class Machine:
    """A folder with the Makefile, and a PATH on which only stubs of Python are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "bin"
        self.path.mkdir()
        (self.path / "rm").symlink_to(shutil.which("rm") or "/bin/rm")
        shutil.copy(ROOT / "Makefile", root)
        # The files that set-up depends on. The stubs end it before it reads them.
        for name in (
            *("requirements.txt", "analytics/requirements.txt", "functions/requirements.txt"),
            *("functions/report/requirements.txt", "infra/packaging/wheels.py", "pyproject.toml"),
        ):
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    def install(self, name: str, version: str) -> Path:
        """Put a stub there: it says that it has this version, and makes no environment."""
        numbers = tuple(int(number) for number in version.split("."))
        pretend = f"import sys; sys.version_info = {numbers}; exec(sys.argv[1])"
        stub = self.path / name
        stub.write_text(
            dedent(f"""\
            #!/bin/sh
            if [ "$1" = -c ]; then exec '{sys.executable}' -c '{pretend}' "$2"; fi
            echo "{name} makes the environment" >&2
            exit 1
            """)
        )
        stub.chmod(0o755)
        return stub

    def install_broken(self, name: str) -> None:
        """Put a command there that runs no Python, as a version manager does."""
        stub = self.path / name
        stub.write_text(f"#!/bin/sh\necho '{name}: command not found' >&2\nexit 127\n")
        stub.chmod(0o755)

    def run_make(self, *words: str) -> str:
        """Return what `make demo` says on standard error. The stubs end it early."""
        made = subprocess.run(
            [MAKE, "demo", *words],
            cwd=self.root,
            env={"PATH": str(self.path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert made.returncode != 0
        return made.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("installed", "taken"),
    [
        ({"python3.13": "3.13.0"}, "python3.13"),
        ({"python3.12": "3.12.4"}, "python3.12"),
        ({"python3": "3.14.0"}, "python3"),
        ({"python3.13": "3.13.0", "python3.12": "3.12.4"}, "python3.12"),
        ({"python3": "3.13.0", "python3.13": "3.13.0", "python3.11": "3.11.0"}, "python3.11"),
        # A name promises nothing.
        ({"python3.11": "3.10.9", "python3.13": "3.13.0"}, "python3.13"),
    ],
)
def test_make_takes_first_python_that_is_new_enough(
    machine: Machine, installed: dict[str, str], taken: str
) -> None:
    for name, version in installed.items():
        machine.install(name, version)
    assert f"{taken} makes the environment" in machine.run_make()


def test_make_skips_python_that_does_not_run(machine: Machine) -> None:
    machine.install_broken("python3.11")
    machine.install("python3.12", "3.12.4")
    said = machine.run_make()
    assert "python3.12 makes the environment" in said
    assert "command not found" not in said


@pytest.mark.parametrize("installed", [{}, {"python3": "3.9.2"}, {"python3.10": "3.10.9"}])
def test_make_without_new_enough_python_says_what_to_install(
    machine: Machine, installed: dict[str, str]
) -> None:
    for name, version in installed.items():
        machine.install(name, version)
    said = machine.run_make()
    assert f"{NONE_FOUND} {REMEDY}" in said
    assert "makes the environment" not in said
    assert not (machine.root / ".venv").exists()


def test_make_takes_python_that_is_named_before_those_it_finds(machine: Machine) -> None:
    machine.install("python3.11", "3.11.7")
    named = machine.install("a python", "3.12.4")
    assert "a python makes the environment" in machine.run_make(f"PYTHON={named}")


def test_make_refuses_named_python_that_is_too_old(machine: Machine) -> None:
    machine.install("python3.11", "3.11.7")
    machine.install("python3.10", "3.10.9")
    said = machine.run_make("PYTHON=python3.10")
    assert f"PYTHON=python3.10 is not Python 3.11 or later. {REMEDY}" in said
    assert "makes the environment" not in said


def test_make_refuses_named_python_that_is_not_there(machine: Machine) -> None:
    machine.install("python3.11", "3.11.7")
    assert f"PYTHON=/not/there is not Python 3.11 or later. {REMEDY}" in machine.run_make(
        "PYTHON=/not/there"
    )


def test_make_removes_a_half_made_environment_if_python_fails_to_make_it(machine: Machine) -> None:
    """Otherwise the next `make` would take it for a whole one, and find no pip in it."""
    stub = machine.install("python3.11", "3.11.7")
    half_made = "mkdir -p .venv/bin; : > .venv/bin/python; chmod +x .venv/bin/python"
    (machine.path / "mkdir").symlink_to(shutil.which("mkdir") or "/bin/mkdir")
    (machine.path / "chmod").symlink_to(shutil.which("chmod") or "/bin/chmod")
    stub.write_text(stub.read_text().replace("exit 1\n", f"{half_made}\nexit 1\n"))
    assert "python3.11 makes the environment" in machine.run_make()
    assert not (machine.root / ".venv").exists()
