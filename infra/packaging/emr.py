"""Stage the code of the nightly job for EMR Serverless.

A job run loads three files: Mendq's own modules, the entry point, and an archive of packages.
"""

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
from infra.packaging.zips import LAMBDA, copy_sources, install_packages, remove_paths

# Options of `uv pip install` for EMR's Python and platform, Amazon Linux 2023.
EMR = ("--python-version", EMR_PYTHON, "--python-platform", "aarch64-manylinux_2_28")
# Folders and files of packages that the job does not need. They are half of the packages' size.
_UNUSED_FOLDERS = ("tests", "include", "__pycache__", "bin", "*.dist-info")
_UNUSED_FILES = ("*.pyx", "*.pxd", "*.pxi", "*.pyi", "*.h", "*.a", "*.lib")
_COMPRESSION = 4


def build_archive(target: Sequence[str], wheels: Path = WHEELS) -> Path:
    """Return the .tgz of the job's packages. The same lock file gives the same bytes.

    It is built once and kept beside the wheels. Raises WheelsUnavailable if a package is missing.

    Args:
        target: options of `uv pip install` for the platform; those of Lambda mean EMR's.
        wheels: the folder of downloaded packages.
    """
    target = EMR if target == LAMBDA else target
    archive = wheels / "archives" / f"{_archive_digest(target)}.tgz"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(prefix="mendq-packages-") as folder:
            packages = Path(folder)
            install_packages(packages, NIGHTLY_LOCK, target, wheels)
            for pattern in (*_UNUSED_FOLDERS, *_UNUSED_FILES):
                remove_paths(*packages.rglob(pattern))
            archive.parent.mkdir(exist_ok=True)
            # Rename the finished file, so that another synthesis never reads half of it.
            unfinished = archive.with_name(f".{os.getpid()}-{archive.name}")
            _pack(packages, unfinished)
            unfinished.replace(archive)
    return archive


def _archive_digest(target: Sequence[str]) -> str:
    """Return a digest of the lock file, the platform and this module. It names the archive."""
    sources = NIGHTLY_LOCK.read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(repr(tuple(target)).encode() + sources).hexdigest()[:16]


def _pack(packages: Path, archive: Path) -> None:
    """Write all files below `packages` to a .tgz, in the order of their names."""
    with (
        archive.open("wb") as opened,
        gzip.GzipFile("", "wb", _COMPRESSION, opened, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(packages.rglob("*")):
            name = file.relative_to(packages).as_posix()
            tar.add(file, name, recursive=False, filter=_strip_metadata)


def _strip_metadata(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member of the archive without times and owners, which differ between machines."""
    stripped = tarfile.TarInfo(member.name)
    stripped.type = member.type
    stripped.size = member.size
    stripped.mode = 0o755 if member.isdir() else 0o644
    return stripped


# Code of this repository that the job loads.
OWN_CODE = (
    "analytics",
    "mendq/__init__.py",
    "mendq/catalogue",
    "mendq/model",
    "mendq/notifications",
    "mendq/nightly/__init__.py",
    "mendq/nightly/verdict.py",
)
# Modules in OWN_CODE that only Lambdas need. They import the compiled package msgspec at once; the
# job's own modules must load where no compiled package can be loaded.
_LAMBDA_ONLY = (
    "mendq/model/prices.py",
    "mendq/model/settings.py",
    "mendq/notifications/announcements.py",
    "mendq/notifications/notification.py",
    "mendq/notifications/sent.py",
)

ENTRY_POINT = """\
import sys

from analytics.job import main

sys.exit(main(sys.argv[1:]))
"""


class EmrPackage(NamedTuple):
    """Staged code of the nightly job.

    Attributes:
        modules: folder that is zipped for `spark.submit.pyFiles`.
        entry_point: the script of the driver.
        compiled: archive of packages for `spark.archives`.
    """

    modules: Path
    entry_point: Path
    compiled: Path


def stage(folder: Path, target: Sequence[str]) -> EmrPackage:
    """Write Mendq's own code to `folder`, and build the archive of packages for `target`.

    Raises WheelsUnavailable if a package is missing.
    """
    package = EmrPackage(
        modules=folder / "modules", entry_point=folder / "job.py", compiled=build_archive(target)
    )
    copy_sources(package.modules, OWN_CODE)
    for name in _LAMBDA_ONLY:
        (package.modules / name).unlink()
    package.entry_point.write_text(ENTRY_POINT)
    return package
