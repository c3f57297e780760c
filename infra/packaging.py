"""What a Lambda zip contains: our own code and the sub-lock's packages, nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from uv import find_uv_bin

from infra.elf import foreign_libraries
from infra.wheels import CURE, LOCK, ROOT, WHEELS, WheelsUnavailable

OURS = ("__init__.py", "settings.py", "handlers", "catalogue", "healing", "aws")
_LEFT_OUT = ("__pycache__", "*.pyc")
# Lambda's own Python and its glibc: Amazon Linux 2023 has 2.34.
LAMBDA = ("--python-version", "3.13", "--python-platform", "aarch64-manylinux_2_28")
THIS_MACHINE: tuple[str, ...] = ()


class ForeignLibrary(Exception):
    """The zip would hold a library that Lambda cannot load."""


def stage(folder: Path, target: Sequence[str] = LAMBDA, wheels: Path = WHEELS) -> None:
    """Fill the empty `folder` with what the zip contains: the same bytes each time.

    Raises WheelsUnavailable, and ForeignLibrary where a library is not for Lambda's processor.
    """
    _install(folder, target, wheels)
    source = ROOT / "functions"
    for name in OURS:
        if (source / name).is_dir():
            ignored = shutil.ignore_patterns(*_LEFT_OUT)
            shutil.copytree(source / name, folder / "functions" / name, ignore=ignored)
        else:
            (folder / "functions").mkdir(exist_ok=True)
            shutil.copy(source / name, folder / "functions" / name)
    if target == LAMBDA:
        refuse_foreign_libraries(folder)


def refuse_foreign_libraries(folder: Path) -> None:
    """Raise ForeignLibrary for the first library that is not for arm64."""
    for library in foreign_libraries(folder):
        raise ForeignLibrary(f"{library} is not built for arm64; {CURE}")


def _install(folder: Path, target: Sequence[str], wheels: Path) -> None:
    if not wheels.is_dir():
        raise WheelsUnavailable(f"there are no wheels in {wheels.name}/; {CURE}")
    offline = ("--no-index", "--offline", "--find-links", str(wheels), "--require-hashes")
    plain = ("--only-binary", ":all:", "--no-compile-bytecode", "--link-mode", "copy")
    done = subprocess.run(
        [
            *(find_uv_bin(), "pip", "install", "--quiet", "--no-config"),
            *("--python", sys.executable, "--target", str(folder)),
            *(*offline, *plain, *target),
            *("--requirement", str(LOCK)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        why = " ".join(done.stderr.split())
        raise WheelsUnavailable(
            f"{wheels.name}/ does not hold what {LOCK.name} names; {CURE}: {why}"
        )
    for pattern in ("*.dist-info", "bin", ".lock", *_LEFT_OUT):
        for each in folder.rglob(pattern) if pattern in _LEFT_OUT else folder.glob(pattern):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
