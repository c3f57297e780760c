"""What the nightly job is given on EMR Serverless: modules, entry point, compiled packages."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from infra.packaging.wheels import EMR_PYTHON, NIGHTLY_LOCK, ROOT, WHEELS
from infra.packaging.zips import LAMBDA, install, refuse_foreign_libraries

# What EMR's Python loads, on workers of Amazon Linux 2023.
EMR = ("--python-version", EMR_PYTHON, "--python-platform", "aarch64-manylinux_2_28")
# For whoever compiles against them or tests them: half of what they take.
_LEFT_OUT = ("tests", "include", "__pycache__", "bin")
_LEFT_OUT_ENDINGS = (".pyx", ".pxd", ".pxi", ".pyi", ".h", ".a", ".lib")
_COMPRESSION = 4


def archive(target: Sequence[str], wheels: Path = WHEELS) -> Path:
    """The .tgz for `target`, Lambda's (EMR's then) or this machine's: the same bytes each time.

    Made once of `wheels` and kept beside them. Raises WheelsUnavailable, and ForeignLibrary where
    a library is not for EMR's processor.
    """
    target = EMR if target == LAMBDA else target
    retained = wheels / "archives" / f"{_digest(target)}.tgz"
    if not retained.is_file():
        with tempfile.TemporaryDirectory(prefix="mendq-packages-") as folder:
            packages = Path(folder) / "packages"
            install(packages, NIGHTLY_LOCK, target, wheels)
            _strip(packages)
            if target == EMR:
                refuse_foreign_libraries(packages)
            fresh = Path(folder) / retained.name
            _pack(packages, fresh)
            retained.parent.mkdir(exist_ok=True)
            _keep(fresh, retained)
    return retained


def _digest(target: Sequence[str]) -> str:
    """What names an archive: its lock, its target and how it is made."""
    made_by = NIGHTLY_LOCK.read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(repr(tuple(target)).encode() + made_by).hexdigest()[:16]


def _strip(packages: Path) -> None:
    (packages / ".lock").unlink(missing_ok=True)
    for folder in sorted(packages.rglob("*")):
        if folder.is_dir() and (folder.name in _LEFT_OUT or folder.name.endswith(".dist-info")):
            shutil.rmtree(folder)
    for file in packages.rglob("*"):
        if file.name.endswith(_LEFT_OUT_ENDINGS):
            file.unlink()


def _pack(packages: Path, archive: Path) -> None:
    """No times, no owners, in the order of names."""
    with (
        archive.open("wb") as opened,
        gzip.GzipFile("", "wb", _COMPRESSION, opened, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(packages.rglob("*")):
            member = tarfile.TarInfo(file.relative_to(packages).as_posix())
            if file.is_dir():
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
                continue
            member.size, member.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                tar.addfile(member, content)


def _keep(fresh: Path, retained: Path) -> None:
    """Whole or not at all, also beside another synthesis."""
    beside = retained.with_name(f".{os.getpid()}-{retained.name}")
    shutil.copyfile(fresh, beside)
    beside.replace(retained)


OURS = (
    "analytics",
    *(f"mendq/{each}" for each in ("__init__.py", "catalogue", "model", "notifications")),
    *(f"mendq/nightly/{each}.py" for each in ("__init__", "jobs", "verdict", "outcome")),
)

ENTRY_POINT = """\
import sys

from analytics.job import main

sys.exit(main(sys.argv[1:]))
"""

# The earliest time that a zip can hold: the same modules give the same bytes.
_WRITTEN_AT = (1980, 1, 1, 0, 0, 0)


class EmrPackage(NamedTuple):
    """For spark.submit.pyFiles, for the job driver and for spark.archives."""

    modules: Path
    entry_point: Path
    compiled: Path


def stage(folder: Path, target: Sequence[str]) -> EmrPackage:
    """Write our own into `folder`, the same bytes each time; the compiled are for `target`.

    Raises what `archive` raises.
    """
    folder.mkdir(parents=True, exist_ok=True)
    package = EmrPackage(folder / "mendq.zip", folder / "job.py", archive(target))
    with zipfile.ZipFile(package.modules, "w", zipfile.ZIP_DEFLATED) as zipped:
        for source in _sources():
            member = zipfile.ZipInfo(source.relative_to(ROOT).as_posix(), _WRITTEN_AT)
            member.compress_type = zipfile.ZIP_DEFLATED
            zipped.writestr(member, source.read_bytes())
    package.entry_point.write_text(ENTRY_POINT)
    return package


def _sources() -> Iterator[Path]:
    for name in OURS:
        path = ROOT / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)
