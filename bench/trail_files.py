"""A made-up trail on disk, the same every time: `python -m bench.trail_files FOLDER`.

Some 1.77 KB a record and 7 : 1 by gzip, as the trails that the goals were set on. What was made
once lies below build/bench/ and is taken again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, astuple, dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

from bench.rounds import ROOT
from bench.trail_records import BRANCHES, DAY, DAY_SECONDS, Branch, records

# A part of the cache's name: another shape of the records is another trail.
SHAPE = 1
BLOCK_RECORDS = 100
DELIVERY = timedelta(minutes=5)
_TRUTH = "truth.json"


@dataclass(frozen=True)
class Truth:
    """What lies in a trail; `raw_bytes` is what its files hold when inflated."""

    files: int
    records: int
    failed_sqs_calls: int
    bytes: int
    raw_bytes: int

    def __add__(self, other: Truth) -> Truth:
        return Truth(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Trail:
    """A trail's root (the parent of AWSLogs), and what lies in it."""

    root: Path
    truth: Truth

    def files(self) -> list[Path]:
        return sorted(self.root.rglob("*.json.gz"))


def trail(files: int, records_per_file: int, folder: Path = ROOT / "build" / "bench") -> Trail:
    """The trail of that size below `folder`, made where it is not there yet.

    The same number of records gives the same failed calls, in however many files of hundreds.
    """
    root = folder / f"trail-{files}x{records_per_file}-v{SHAPE}"
    if not (root / _TRUTH).exists():
        shutil.rmtree(root, ignore_errors=True)
        truth = _make(root, files, records_per_file)
        (root / _TRUTH).write_text(json.dumps(asdict(truth)) + "\n")
    return Trail(root, Truth(**json.loads((root / _TRUTH).read_text())))


def _make(root: Path, files: int, records_per_file: int) -> Truth:
    with ProcessPoolExecutor(min(os.cpu_count() or 1, files)) as processes:
        write = partial(_write, root, files, records_per_file)
        chunk = max(1, files // 64)
        return sum(processes.map(write, range(files), chunksize=chunk), Truth(0, 0, 0, 0, 0))


def _write(root: Path, files: int, size: int, number: int) -> Truth:
    """Write a file; records follow each other through the day, from file to file."""
    branch = BRANCHES[number % len(BRANCHES)]
    first, every = number * size, files * size
    seconds = (DAY_SECONDS * each // every for each in range(first, first + size))
    blocks = [
        records(branch, seconds, str(first + start), min(BLOCK_RECORDS, size - start))
        for start in range(0, size, BLOCK_RECORDS)
    ]
    text = ",".join(each for block in blocks for each in block.texts)
    raw = f'{{"Records":[{text}]}}'.encode()
    content = _gzip(raw)
    path = root / _name(branch, number, DAY_SECONDS * (first + size - 1) // every)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return Truth(1, size, sum(each.failed_sqs_calls for each in blocks), len(content), len(raw))


def _gzip(raw: bytes) -> bytes:
    """One member without a time in it, at the level that gives 7 : 1 on these texts."""
    member = zlib.compressobj(level=2, wbits=31)
    return member.compress(raw) + member.flush()


def _name(branch: Branch, number: int, last_second: int) -> str:
    """As CloudTrail names them; the last files of a day lie in the next day's folder."""
    published = DAY + timedelta(seconds=last_second) + DELIVERY
    unique = sha256(str(number).encode()).hexdigest()[:16]
    folder = f"AWSLogs/{branch.account}/CloudTrail/{branch.region}/{published:%Y/%m/%d}"
    stem = f"{branch.account}_CloudTrail_{branch.region}_{published:%Y%m%dT%H%MZ}_{unique}"
    return f"{folder}/{stem}.json.gz"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.trail_files", description=__doc__)
    parser.add_argument("folder", type=Path, help="the trail is made in a folder of its own there")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--records-per-file", type=int, default=10_000)
    given = parser.parse_args(words)
    made = trail(given.files, given.records_per_file, given.folder)
    print(f"{made.root}: {json.dumps(asdict(made.truth))}")  # noqa: T201 - who calls it reads it
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
