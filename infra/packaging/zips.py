"""Lambda zips: our own code and a lock's packages, nothing else."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from uv import find_uv_bin

from infra.packaging.wheels import LOCK, REMEDY, REPORT_LOCK, ROOT, WHEELS, WheelsUnavailable

_LEFT_OUT = ("__pycache__", "*.pyc", "requirements.in", "requirements.txt")


class LambdaZip(Struct, frozen=True):
    """A lock and what of our own code goes beside its packages."""

    lock: Path
    ours: tuple[str, ...]
    left_out: tuple[str, ...] = ()


# What stays behind is what operators run.
_ENGINE = tuple(
    f"mendq/{each}"
    for each in (
        *("__init__.py", "aws", "cases", "catalogue", "consumer", "follow_up", "heal", "model"),
        *("nightly", "notifications", "probe", "redrive", "scan"),
    )
)
# Of lint what needs no cfn-lint.
_JUDGES = tuple(
    f"mendq/lint/{each}.py"
    for each in ("__init__", "judging", "proposed", "queues", "remedies", "template", "values")
)
_SHARED = ("functions/__init__.py", "functions/entry.py")
# The Lambda that needs the charts goes where the charts are: 100 MB that the others do without.
_DELIVERS = "functions/deliver_report.py"
LAMBDAS = LambdaZip(
    LOCK, (*_ENGINE, *_JUDGES, "functions"), left_out=(_DELIVERS, "functions/report")
)
REPORT = LambdaZip(REPORT_LOCK, (*_ENGINE, "mendq/report", *_SHARED, _DELIVERS))

# Lambda's own Python and its glibc: Amazon Linux 2023 has 2.34.
LAMBDA = ("--python-version", "3.13", "--python-platform", "aarch64-manylinux_2_28")
THIS_MACHINE: tuple[str, ...] = ()


def stage(
    folder: Path,
    contents: LambdaZip = LAMBDAS,
    target: Sequence[str] = LAMBDA,
    wheels: Path = WHEELS,
) -> None:
    """Fill the new `folder` with what the zip contains: the same bytes each time.

    Raises what `install` raises.
    """
    install(folder, contents.lock, target, wheels)
    # Packages ask for each other's versions, and for no more.
    remove(*(each for each in folder.glob("*.dist-info/*") if each.name != "METADATA"))
    copy(folder, contents.ours)
    remove(*(folder / each for each in contents.left_out))


def copy(folder: Path, ours: Sequence[str]) -> None:
    """Copy files and folders of our own, sources alone."""
    for name in ours:
        source, to = ROOT / name, folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, to, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        else:
            shutil.copy(source, to)


def remove(*paths: Path) -> None:
    """Take files and folders away; what is gone already is."""
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


def install(folder: Path, lock: Path, target: Sequence[str], wheels: Path) -> None:
    """Put what `lock` names into `folder`, for `target`, from `wheels` alone.

    A lock's hashes let in no other wheels than those that were inspected. Raises
    WheelsUnavailable.
    """
    if not wheels.is_dir():
        raise WheelsUnavailable(f"there are no wheels in {wheels.name}/; {REMEDY}")
    offline = ("--no-index", "--offline", "--find-links", str(wheels), "--require-hashes")
    plain = ("--only-binary", ":all:", "--no-compile-bytecode", "--link-mode", "copy")
    done = subprocess.run(
        [
            *(find_uv_bin(), "pip", "install", "--quiet", "--no-config"),
            *("--python", sys.executable, "--target", str(folder)),
            *(*offline, *plain, *target),
            *("--requirement", str(lock)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        line = f"{wheels.name}/ does not hold what {lock.parent.name}/{lock.name} names"
        raise WheelsUnavailable(f"{line}; {REMEDY}: {' '.join(done.stderr.split())}")
    remove(folder / "bin", folder / ".lock")


def archived(source: Path, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A folder as a zip, without times and in the order of names; a file as it is."""
    if source.is_file():
        return source.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for each in sorted(each for each in source.rglob("*") if each.is_file()):
            member = zipfile.ZipInfo(each.relative_to(source).as_posix())
            member.external_attr = 0o644 << 16
            archive.writestr(member, each.read_bytes(), compression)
    return buffer.getvalue()
