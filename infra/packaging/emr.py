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

from infra.packaging.wheels import EMR_PYTHON_VERSION, NIGHTLY_LOCK_FILE, WHEELS_FOLDER
from infra.packaging.zips import (
    LAMBDA_PLATFORM_OPTIONS,
    copy_sources,
    install_packages,
    remove_paths,
)

# Options of `uv pip install` for EMR's Python and platform, Amazon Linux 2023.
EMR_PLATFORM_OPTIONS = (
    "--python-version",
    EMR_PYTHON_VERSION,
    "--python-platform",
    "aarch64-manylinux_2_28",
)
# Folders and files of packages that the job does not need. They are half of the packages' size.
_UNUSED_FOLDERS = ("tests", "include", "__pycache__", "bin", "*.dist-info")
_UNUSED_FILES = ("*.pyx", "*.pxd", "*.pxi", "*.pyi", "*.h", "*.a", "*.lib")
_GZIP_LEVEL = 4


def build_archive(platform_options: Sequence[str], wheels_folder: Path = WHEELS_FOLDER) -> Path:
    """Return the .tgz of the job's packages. The same lock file gives the same bytes.

    The archive is built once and kept below `wheels_folder`. Raises WheelsUnavailable if a package
    is missing.

    Args:
        platform_options: options of `uv pip install` for the platform. LAMBDA_PLATFORM_OPTIONS are
            replaced by EMR_PLATFORM_OPTIONS.
        wheels_folder: the folder of downloaded packages.
    """
    platform_options = (
        EMR_PLATFORM_OPTIONS if platform_options == LAMBDA_PLATFORM_OPTIONS else platform_options
    )
    archive = wheels_folder / "archives" / f"{_compute_archive_digest(platform_options)}.tgz"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(prefix="mendq-packages-") as folder:
            packages_folder = Path(folder)
            install_packages(packages_folder, NIGHTLY_LOCK_FILE, platform_options, wheels_folder)
            for unused_path_pattern in (*_UNUSED_FOLDERS, *_UNUSED_FILES):
                remove_paths(*packages_folder.rglob(unused_path_pattern))
            archive.parent.mkdir(exist_ok=True)
            # Rename the finished file, so that another synthesis never reads half of it.
            unfinished_archive = archive.with_name(f".{os.getpid()}-{archive.name}")
            _pack_archive(packages_folder, unfinished_archive)
            unfinished_archive.replace(archive)
    return archive


def _compute_archive_digest(platform_options: Sequence[str]) -> str:
    """Return a digest of the lock file, the platform options and this module.

    It is the archive's name.
    """
    digested_bytes = NIGHTLY_LOCK_FILE.read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(repr(tuple(platform_options)).encode() + digested_bytes).hexdigest()[:16]


def _pack_archive(packages: Path, archive: Path) -> None:
    """Write all files below `packages` to a .tgz, in the order of their names."""
    with (
        archive.open("wb") as archive_file,
        gzip.GzipFile("", "wb", _GZIP_LEVEL, archive_file, mtime=0) as gzip_file,
        tarfile.open(fileobj=gzip_file, mode="w", format=tarfile.PAX_FORMAT) as tar_file,
    ):
        for file in sorted(packages.rglob("*")):
            name_in_archive = file.relative_to(packages).as_posix()
            tar_file.add(file, name_in_archive, recursive=False, filter=_strip_metadata)


def _strip_metadata(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member of the archive without times and owners, which differ between machines."""
    member_without_metadata = tarfile.TarInfo(member.name)
    member_without_metadata.type = member.type
    member_without_metadata.size = member.size
    member_without_metadata.mode = 0o755 if member.isdir() else 0o644
    return member_without_metadata


# Code of this repository that the job loads.
JOB_SOURCE_PATHS = (
    "analytics",
    "mendq/__init__.py",
    "mendq/catalogue",
    "mendq/model",
    "mendq/notifications",
    "mendq/nightly/__init__.py",
    "mendq/nightly/verdict.py",
)
# Modules in JOB_SOURCE_PATHS that only Lambdas need. They import the compiled package msgspec when
# they are loaded. The job's own modules must load even where no compiled package can be loaded.
_LAMBDA_ONLY_MODULES = (
    "mendq/model/mutes.py",
    "mendq/model/prices.py",
    "mendq/model/seal.py",
    "mendq/model/settings.py",
    "mendq/notifications/announcements.py",
    "mendq/notifications/notification.py",
    "mendq/notifications/scan_report.py",
    "mendq/notifications/sent.py",
)

ENTRY_POINT_SCRIPT = """\
import sys

from analytics.job import main

sys.exit(main(sys.argv[1:]))
"""


class EmrPackage(NamedTuple):
    """Staged code of the nightly job.

    Attributes:
        modules_path: folder that is zipped for `spark.submit.pyFiles`.
        entry_point: the script of the driver.
        package_archive: archive of packages for `spark.archives`.
    """

    modules_path: Path
    entry_point: Path
    package_archive: Path


def stage_job_code(folder: Path, platform_options: Sequence[str]) -> EmrPackage:
    """Write Mendq's own code to `folder`, and build the archive of packages.

    The packages run on the platform of `platform_options`. Raises WheelsUnavailable if a package is
    missing.
    """
    package = EmrPackage(
        modules_path=folder / "modules",
        entry_point=folder / "job.py",
        package_archive=build_archive(platform_options),
    )
    copy_sources(package.modules_path, JOB_SOURCE_PATHS)
    for name in _LAMBDA_ONLY_MODULES:
        (package.modules_path / name).unlink()
    package.entry_point.write_text(ENTRY_POINT_SCRIPT)
    return package
