"""`python -m infra.packaging.wheels`: download the packages of the Lambdas and the nightly job.

They go to `.wheels/`. A synthesis installs them from there and needs no network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS_FOLDER = ROOT / ".wheels"
LAMBDA_LOCK_FILE = ROOT / "functions" / "requirements.txt"
REPORT_LOCK_FILE = ROOT / "functions" / "report" / "requirements.txt"
NIGHTLY_LOCK_FILE = ROOT / "analytics" / "requirements.txt"
WHEELS_REMEDY = "run `.venv/bin/python -m infra.packaging.wheels`"
LAMBDA_PYTHON_VERSION = "3.13"
# A Python that emr-7.14.0 has besides its default, 3.9.
EMR_PYTHON_VERSION = "3.11"
# The version of Python at AWS that each lock file is for.
PYTHON_VERSION_BY_LOCK_FILE: Mapping[Path, str] = {
    LAMBDA_LOCK_FILE: LAMBDA_PYTHON_VERSION,
    REPORT_LOCK_FILE: LAMBDA_PYTHON_VERSION,
    NIGHTLY_LOCK_FILE: EMR_PYTHON_VERSION,
}

# Options of pip for the platform of Lambda and EMR. Amazon Linux 2023 has glibc 2.34, so wheels for
# these older versions of glibc run there.
_ARM64_OPTIONS = (
    *("--platform", "manylinux_2_28_aarch64"),
    *("--platform", "manylinux_2_27_aarch64"),
    *("--platform", "manylinux_2_24_aarch64"),
    *("--platform", "manylinux_2_17_aarch64"),
    *("--platform", "manylinux2014_aarch64"),
)


class WheelsUnavailable(Exception):
    """A package that a Lambda zip or the nightly job needs is missing. The text has the remedy."""


def fill_wheels_folder(
    python_version_by_lock_file: Mapping[Path, str] = PYTHON_VERSION_BY_LOCK_FILE,
    wheels_folder: Path = WHEELS_FOLDER,
) -> None:
    """Download the packages of lock files, for AWS and this machine, and replace `wheels_folder`.

    If a package cannot be downloaded, raise WheelsUnavailable and leave `wheels_folder` unchanged.

    Args:
        python_version_by_lock_file: the lock files, each with the version of Python at AWS that it
            is for.
        wheels_folder: the folder of packages.
    """
    with tempfile.TemporaryDirectory(prefix=".wheels-", dir=wheels_folder.parent) as folder:
        new_wheels_folder = Path(folder) / "wheels"
        for lock_file, python_version in python_version_by_lock_file.items():
            aws_options = (
                "--python-version",
                python_version,
                "--implementation",
                "cp",
                *_ARM64_OPTIONS,
            )
            _download_packages(lock_file, new_wheels_folder, aws_options)
            this_machine_options = ()
            _download_packages(lock_file, new_wheels_folder, this_machine_options)
        shutil.rmtree(wheels_folder, ignore_errors=True)
        new_wheels_folder.rename(wheels_folder)


def _download_packages(lock_file: Path, folder: Path, platform_options: tuple[str, ...]) -> None:
    """Download the packages of a lock file.

    Raise WheelsUnavailable, with the last line of pip's errors, if pip fails.
    """
    pip_command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
    ]
    lock_file_options = ["--require-hashes", "--only-binary", ":all:", "--no-deps"]
    finished_process = subprocess.run(
        [
            *pip_command,
            *lock_file_options,
            *platform_options,
            "--dest",
            str(folder),
            "--requirement",
            str(lock_file),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished_process.returncode:
        error_lines = finished_process.stderr.strip().splitlines() or ["pip said nothing"]
        fault = (
            f"the wheels of {lock_file.parent.name}/{lock_file.name} could not be fetched: "
            f"{error_lines[-1]}"
        )
        raise WheelsUnavailable(f"{fault}; check that pip reaches its index, then {WHEELS_REMEDY}")


def main() -> int:
    """Fill `.wheels/` and return 0. If that fails, print one line and return 1."""
    try:
        fill_wheels_folder()
    except WheelsUnavailable as unavailable:
        print(unavailable, file=sys.stderr)  # noqa: T201 - a message for the user of the command
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
