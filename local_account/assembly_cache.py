"""Synthesizing the stack, or taking the assembly that the same sources and settings gave before.

`python -m local_account.assembly_cache FOLDER`: settings on standard input, an assembly in FOLDER.
A process of its own, so that a start can be broken off and the emulator never loads the CDK.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infra.node import NodeMissing, require_node
from local_account.cannot_start import FAILED, WRONG_USE, CannotStart
from local_account.where import CACHE, REGION, REPOSITORY

RETAINED = 4
# What goes into the stack and its zips; a change in any of it makes a new assembly.
SOURCES = ("analytics", "functions", "infra", "mendq", "app.py", "cdk.json", "requirements.txt")
SYNTHESIZE = "local_account.assembly_cache"


class Synthesis:
    """One synthesis, which can be broken off."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._ended = False

    def assembly_for(self, raw: Mapping[str, Any], say: Callable[[str], None]) -> Path:
        """Return the folder of the assembly for these settings.

        Raises CannotStart when the stack cannot be synthesized or build/ cannot be written.
        """
        settings = json.dumps(raw, sort_keys=True)
        retained = CACHE / digest_of(settings)
        if (retained / "manifest.json").is_file():
            say(f"the stack as synthesized before: build/account/{retained.name}")
            with contextlib.suppress(OSError):  # a folder that cannot be written holds it as well
                retained.touch()
            return retained
        say("synthesizing the stack (kept for the next start)")
        try:
            CACHE.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=".synth-", dir=CACHE))
        except OSError as error:
            raise CannotStart(f"the folder {CACHE} cannot be written ({error.strerror})") from error
        try:
            self._synthesize(settings, fresh)
            # Another start may have synthesized the same meanwhile: its assembly is as good.
            with contextlib.suppress(OSError):
                fresh.replace(retained)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        _forget_old()
        return retained

    def end(self) -> None:
        """Break it off, with the Node that jsii starts below it."""
        self._ended = True
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _synthesize(self, settings: str, folder: Path) -> None:
        try:
            node = require_node()
        except NodeMissing as missing:
            raise CannotStart(str(missing)) from missing
        environment = {
            "JSII_NODE": str(node),
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(CACHE.parent / "jsii"),  # not the scratch HOME
            "CDK_DEFAULT_REGION": REGION,
        }
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", SYNTHESIZE, str(folder)],
            cwd=REPOSITORY,
            env=dict(os.environ) | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own, to end as one
        )
        _, complaint = process.communicate(settings)
        if self._ended:
            raise CannotStart("stopped while synthesizing", FAILED)
        if process.returncode:
            lines = [line for line in complaint.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {process.returncode}"
            raise CannotStart(f"the stack cannot be synthesized: {reason}")


def digest_of(settings: str) -> str:
    """What names an assembly: its settings and every byte that goes into it."""
    digest = hashlib.sha256(settings.encode())
    for root in (REPOSITORY / name for name in SOURCES):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(REPOSITORY).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old() -> None:
    """Keep the newest assemblies only: each holds the Lambda zips' content."""
    retained = sorted(CACHE.glob("[!.]*"), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in retained[RETAINED:]:
        shutil.rmtree(old, ignore_errors=True)


def main() -> int:
    """Write the assembly; one line on standard error and 2 when something is missing."""
    from infra.packaging.wheels import WheelsUnavailable  # noqa: PLC0415  the CDK is loaded here
    from infra.packaging.zips import THIS_MACHINE, ForeignLibrary  # noqa: PLC0415
    from infra.settings.deployment import read  # noqa: PLC0415
    from infra.synthesis import new_app, synthesize  # noqa: PLC0415

    try:
        settings = read(json.load(sys.stdin), floors=False)
        folder = Path(sys.argv[1])
        # The zips hold libraries: here they are this machine's, as its Lambdas are.
        synthesize(settings, new_app(folder), THIS_MACHINE)
    except (WheelsUnavailable, ForeignLibrary) as missing:
        print(missing, file=sys.stderr)
        return WRONG_USE
    return 0


if __name__ == "__main__":
    sys.exit(main())
