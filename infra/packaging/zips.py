"""Stage the code of Lambda zips: Mendq's own code and the packages of a lock file."""

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

from infra.packaging.wheels import (
    LAMBDA_LOCK_FILE,
    REPORT_LOCK_FILE,
    ROOT,
    WHEELS_FOLDER,
    WHEELS_REMEDY,
    WheelsUnavailable,
)

_UNCOPIED_FILE_PATTERNS = ("__pycache__", "*.pyc", "requirements.in", "requirements.txt")


class LambdaZip(Struct, frozen=True):
    """The contents of a Lambda zip.

    Attributes:
        lock_file: the lock file whose packages the zip contains.
        own_source_paths: files and folders of this repository that the zip contains.
        excluded_paths: files and folders below `own_source_paths` that the zip does not contain.
    """

    lock_file: Path
    own_source_paths: tuple[str, ...]
    excluded_paths: tuple[str, ...] = ()


# The engine without the packages that only operators run, such as `mendq.cli`.
_ENGINE_SOURCES = (
    "mendq/__init__.py",
    "mendq/aws",
    "mendq/cases",
    "mendq/catalogue",
    "mendq/consumer",
    "mendq/follow_up",
    "mendq/heal",
    "mendq/model",
    "mendq/nightly",
    "mendq/notifications",
    "mendq/probe",
    "mendq/redrive",
    "mendq/scan",
)
# The modules of lint that do not need cfn-lint.
_LINT_MODULES = (
    "mendq/lint/__init__.py",
    "mendq/lint/folder.py",
    "mendq/lint/ignores.py",
    "mendq/lint/judging.py",
    "mendq/lint/producers.py",
    "mendq/lint/proposed.py",
    "mendq/lint/queues.py",
    "mendq/lint/remedies.py",
    "mendq/lint/serverless.py",
    "mendq/lint/serverless_producers.py",
    "mendq/lint/template.py",
    "mendq/lint/terraform.py",
    "mendq/lint/terraform_parts.py",
    "mendq/lint/terraform_types.py",
    "mendq/lint/times.py",
    "mendq/lint/values.py",
)
_SHARED_MODULES = ("functions/__init__.py", "functions/entry.py")
# This Lambda has a zip of its own, because it needs 100 MB of packages that draw charts.
_DELIVER_REPORT_MODULE = "functions/deliver_report.py"
LAMBDAS_ZIP = LambdaZip(
    LAMBDA_LOCK_FILE,
    (*_ENGINE_SOURCES, *_LINT_MODULES, "functions"),
    excluded_paths=(_DELIVER_REPORT_MODULE, "functions/report"),
)
REPORT_ZIP = LambdaZip(
    REPORT_LOCK_FILE, (*_ENGINE_SOURCES, "mendq/report", *_SHARED_MODULES, _DELIVER_REPORT_MODULE)
)

# Options of `uv pip install` for Lambda's Python and platform. Its glibc, of Amazon Linux 2023, is
# 2.34.
LAMBDA_PLATFORM_OPTIONS = (
    "--python-version",
    "3.13",
    "--python-platform",
    "aarch64-manylinux_2_28",
)
THIS_MACHINE_PLATFORM_OPTIONS: tuple[str, ...] = ()


def stage_lambda_code(
    folder: Path,
    zip_contents: LambdaZip = LAMBDAS_ZIP,
    platform_options: Sequence[str] = LAMBDA_PLATFORM_OPTIONS,
    wheels_folder: Path = WHEELS_FOLDER,
) -> None:
    """Write the contents of a zip to a new folder. The same sources give the same bytes.

    Args:
        folder: the folder. It must not exist: this function makes it.
        zip_contents: the contents of the zip.
        platform_options: options of `uv pip install` for the platform that the packages run on.
        wheels_folder: the folder of downloaded packages.

    Raises:
        WheelsUnavailable: A package is missing.
    """
    install_packages(folder, zip_contents.lock_file, platform_options, wheels_folder)
    # Packages read each other's versions from METADATA. The other metadata is not needed.
    metadata_files = folder.glob("*.dist-info/*")
    remove_paths(*(path for path in metadata_files if path.name != "METADATA"))
    copy_sources(folder, zip_contents.own_source_paths)
    remove_paths(*(folder / name for name in zip_contents.excluded_paths))


def copy_sources(folder: Path, source_paths: Sequence[str]) -> None:
    """Copy files and folders of this repository to `folder`, without caches and lock files."""
    for source_path in source_paths:
        source = ROOT / source_path
        target = folder / source_path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_UNCOPIED_FILE_PATTERNS))
        else:
            shutil.copy(source, target)


def remove_paths(*paths: Path) -> None:
    """Delete files and folders. A path that does not exist is ignored."""
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


def install_packages(
    folder: Path, lock_file: Path, platform_options: Sequence[str], wheels_folder: Path
) -> None:
    """Install the packages of a lock file into `folder`, without network.

    A package is installed only if its hash is in the lock file.

    Args:
        folder: the folder to install into.
        lock_file: the lock file.
        platform_options: options of `uv pip install` for the platform that the packages run on.
        wheels_folder: the folder of downloaded packages.

    Raises:
        WheelsUnavailable: The folder of packages is missing, or uv fails, as it does if a package
            is missing.
    """
    if not wheels_folder.is_dir():
        raise WheelsUnavailable(f"there are no wheels in {wheels_folder.name}/; {WHEELS_REMEDY}")
    offline_options = (
        "--no-index",
        "--offline",
        "--find-links",
        str(wheels_folder),
        "--require-hashes",
    )
    wheel_options = ("--only-binary", ":all:", "--no-compile-bytecode", "--link-mode", "copy")
    finished_process = subprocess.run(
        [
            *(find_uv_bin(), "pip", "install", "--quiet", "--no-config"),
            *("--python", sys.executable, "--target", str(folder)),
            *(*offline_options, *wheel_options, *platform_options),
            *("--requirement", str(lock_file)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished_process.returncode:
        fault = (
            f"{wheels_folder.name}/ does not hold what {lock_file.parent.name}/{lock_file.name} "
            "names"
        )
        raise WheelsUnavailable(
            f"{fault}; {WHEELS_REMEDY}: {' '.join(finished_process.stderr.split())}"
        )
    remove_paths(folder / "bin", folder / ".lock")


def make_zip_bytes(source: Path, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return the bytes of a zip of a folder. If `source` is a file, return its bytes unchanged.

    The zip has no times, and its files are in the order of their names, so that the same sources
    give the same bytes.
    """
    if source.is_file():
        return source.read_bytes()
    buffer = io.BytesIO()
    files = sorted(path for path in source.rglob("*") if path.is_file())
    with zipfile.ZipFile(buffer, "w") as zip_archive:
        for file in files:
            member = zipfile.ZipInfo(file.relative_to(source).as_posix())
            member.external_attr = 0o644 << 16
            zip_archive.writestr(member, file.read_bytes(), compression)
    return buffer.getvalue()
