"""`python -m infra.packaging.wheels` fills `.wheels/` with the packages of Lambda zips and job.

Synth installs from there and needs no network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / ".wheels"
LOCK = ROOT / "functions" / "requirements.txt"
REPORT_LOCK = ROOT / "functions" / "report" / "requirements.txt"
NIGHTLY_LOCK = ROOT / "analytics" / "requirements.txt"
REMEDY = "run `.venv/bin/python -m infra.packaging.wheels`"
LAMBDA_PYTHON = "3.13"
# What emr-7.14.0 has beside its default, 3.9.
EMR_PYTHON = "3.11"
# Every lock, with the Python of AWS's that it is for.
PYTHONS: Mapping[Path, str] = {
    LOCK: LAMBDA_PYTHON,
    REPORT_LOCK: LAMBDA_PYTHON,
    NIGHTLY_LOCK: EMR_PYTHON,
}

# The glibc of Amazon Linux 2023 is 2.34.
_GLIBCS = ("_2_28", "_2_27", "_2_24", "_2_17", "2014")
_ARM64 = tuple(word for each in _GLIBCS for word in ("--platform", f"manylinux{each}_aarch64"))


class WheelsUnavailable(Exception):
    """What the Lambda zips or the job's archive contain is not there; says the remedy."""


def fill(pythons: Mapping[Path, str] = PYTHONS, wheels: Path = WHEELS) -> None:
    """Replace `wheels` by what these locks name, for AWS and for this machine.

    Raises WheelsUnavailable, and keeps what was there, when something cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix=".wheels-", dir=wheels.parent) as folder:
        fresh = Path(folder) / "wheels"
        for lock, python in pythons.items():
            of_aws = ("--python-version", python, "--implementation", "cp", *_ARM64)
            for target in (of_aws, ()):  # and for this machine
                _download(lock, fresh, target)
        shutil.rmtree(wheels, ignore_errors=True)
        fresh.rename(wheels)


def _download(lock: Path, folder: Path, target: tuple[str, ...]) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    exactly = ["--require-hashes", "--only-binary", ":all:", "--no-deps"]
    done = subprocess.run(
        [*pip, *exactly, *target, "--dest", str(folder), "--requirement", str(lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        line = f"the wheels of {lock.parent.name}/{lock.name} could not be fetched: {last}"
        raise WheelsUnavailable(f"{line}; check that pip reaches its index, then {REMEDY}")


def main() -> int:
    """Fill `.wheels/`; 1 and one line where that fails."""
    try:
        fill()
    except WheelsUnavailable as unavailable:
        print(unavailable, file=sys.stderr)  # noqa: T201 - what a user of the command reads
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
