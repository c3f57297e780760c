"""What a night on EMR Serverless is given: our own modules, the entry point, compiled packages.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from infra.night_packages import archive
from infra.wheels import ROOT

OURS = ("analytics", "functions/__init__.py", "functions/catalogue", "functions/healing")
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
