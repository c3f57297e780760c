"""The compiled packages of the job in one archive, the same for driver and executors.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.packaging import LAMBDA, install, refuse_foreign_libraries
from infra.wheels import EMR_PYTHON, NIGHT_LOCK, WHEELS

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
    kept = wheels / "archives" / f"{_digest(target)}.tgz"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(prefix="mendq-packages-") as folder:
            packages = Path(folder) / "packages"
            install(packages, NIGHT_LOCK, target, wheels)
            _strip(packages)
            if target == EMR:
                refuse_foreign_libraries(packages)
            fresh = Path(folder) / kept.name
            _pack(packages, fresh)
            kept.parent.mkdir(exist_ok=True)
            _keep(fresh, kept)
    return kept


def _digest(target: Sequence[str]) -> str:
    """What names an archive: its lock, its target and how it is made."""
    made_by = NIGHT_LOCK.read_bytes() + Path(__file__).read_bytes()
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


def _keep(fresh: Path, kept: Path) -> None:
    """Whole or not at all, also beside another synthesis."""
    beside = kept.with_name(f".{os.getpid()}-{kept.name}")
    shutil.copyfile(fresh, beside)
    beside.replace(kept)
