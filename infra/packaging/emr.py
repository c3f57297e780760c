"""What the nightly job is given on EMR Serverless: modules, entry point, compiled packages."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from infra.packaging.wheels import EMR_PYTHON, NIGHTLY_LOCK, WHEELS
from infra.packaging.zips import LAMBDA, copy, install, remove

# What EMR's Python loads, on workers of Amazon Linux 2023.
EMR = ("--python-version", EMR_PYTHON, "--python-platform", "aarch64-manylinux_2_28")
# For whoever compiles against them or tests them: half of what they take.
_LEFT_OUT = ("tests", "include", "__pycache__", "bin", "*.dist-info")
_LEFT_OUT_FILES = ("*.pyx", "*.pxd", "*.pxi", "*.pyi", "*.h", "*.a", "*.lib")
_COMPRESSION = 4


def archive(target: Sequence[str], wheels: Path = WHEELS) -> Path:
    """The .tgz for `target`, Lambda's (EMR's then) or this machine's: the same bytes each time.

    Made once of `wheels` and kept beside them. Raises what `install` raises.
    """
    target = EMR if target == LAMBDA else target
    retained = wheels / "archives" / f"{_digest(target)}.tgz"
    if not retained.is_file():
        with tempfile.TemporaryDirectory(prefix="mendq-packages-") as folder:
            packages = Path(folder)
            install(packages, NIGHTLY_LOCK, target, wheels)
            for pattern in (*_LEFT_OUT, *_LEFT_OUT_FILES):
                remove(*packages.rglob(pattern))
            retained.parent.mkdir(exist_ok=True)
            # Whole or not at all, also beside another synthesis.
            fresh = retained.with_name(f".{os.getpid()}-{retained.name}")
            _pack(packages, fresh)
            fresh.replace(retained)
    return retained


def _digest(target: Sequence[str]) -> str:
    """What names an archive: its lock, its target and how it is made."""
    made_by = NIGHTLY_LOCK.read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(repr(tuple(target)).encode() + made_by).hexdigest()[:16]


def _pack(packages: Path, archive: Path) -> None:
    """In the order of names."""
    with (
        archive.open("wb") as opened,
        gzip.GzipFile("", "wb", _COMPRESSION, opened, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(packages.rglob("*")):
            name = file.relative_to(packages).as_posix()
            tar.add(file, name, recursive=False, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """No times, no owners."""
    plain = tarfile.TarInfo(member.name)
    plain.type, plain.size = member.type, member.size
    plain.mode = 0o755 if member.isdir() else 0o644
    return plain


OURS = (
    "analytics",
    *(f"mendq/{each}" for each in ("__init__.py", "catalogue", "model", "notifications")),
    *(f"mendq/nightly/{each}.py" for each in ("__init__", "verdict")),
)
# The Lambdas' own: they need msgspec, and the job runs where nothing compiled loads.
_COMPILED = (
    "model/prices",
    "model/settings",
    "notifications/announcements",
    "notifications/notification",
    "notifications/sent",
)

ENTRY_POINT = """\
import sys

from analytics.job import main

sys.exit(main(sys.argv[1:]))
"""


class EmrPackage(NamedTuple):
    """For spark.submit.pyFiles, a folder that is zipped; for the driver; for spark.archives."""

    modules: Path
    entry_point: Path
    compiled: Path


def stage(folder: Path, target: Sequence[str]) -> EmrPackage:
    """Write our own into `folder`; the compiled are for `target`. Raises what `install` raises."""
    package = EmrPackage(folder / "modules", folder / "job.py", archive(target))
    copy(package.modules, OURS)
    for each in _COMPILED:
        (package.modules / f"mendq/{each}.py").unlink()
    package.entry_point.write_text(ENTRY_POINT)
    return package
