"""Record what the product does, or compare the tree at hand with the record.

`python -m tests.before record [SUBJECT ...]` writes `tests/before/recorded/`.
`python -m tests.before compare [SUBJECT ...]` runs the same recorders on the tree at hand,
translates the record with `names.json` (old names to new ones) and prints the differences; those
that `wanted.json` ({"SUBJECT/start/of/a/path": reason}, in new names) wants are listed under their
reason. It exits with 1 only where a recorder fails. MENDQ_RECORDED names the folder of records that
nobody here wrote; without it the parts that read them are compared with nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.before import (
    catalogue,
    commands,
    lifecycle,
    nightly,
    redrive,
    refusals,
    report,
    stack,
    stories,
    telemetry,
)
from tests.before.differences import Difference, alike, differences, shown
from tests.before.names import Names
from tests.before.stored import load, plain, store

HERE = Path(__file__).parent
SUBJECTS: Mapping[str, Callable[[], Any]] = {
    "catalogue": catalogue.record,
    "commands": commands.record,
    "lifecycle": lifecycle.record,
    "nightly": nightly.record,
    "redrive": redrive.record,
    "refusals": refusals.record,
    "report": report.record,
    "stack": stack.record,
    "stories": stories.record,
    "telemetry": telemetry.record,
}
# Whatever the shell says: no real account, no width, no colour of a terminal.
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    "COLUMNS": "100",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "TZ": "UTC",
}
_UNSET = ("AWS_PROFILE", "AWS_ENDPOINT_URL", "CDK_DEFAULT_REGION", "CDK_DEFAULT_ACCOUNT")


def main(arguments: list[str]) -> int:
    """Run the asked recorders; 1 where one of them fails."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.before",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--brief", action="store_true", help="the counts alone")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.subjects) - set(SUBJECTS)):
        parser.error(f"no subject is called {', '.join(unknown)}")
    _normalise_environment()
    names, wanted = Names.read(HERE / "names.json"), _wanted()
    failed, counts = [], {}
    for subject in given.subjects or SUBJECTS:
        started = time.monotonic()
        try:
            now = plain(SUBJECTS[subject]())
        except Exception:  # noqa: BLE001 - the other recorders still run
            failed.append(subject)
            _say(f"== {subject}: the recorder failed\n{traceback.format_exc()}")
            continue
        seconds = time.monotonic() - started
        if given.what == "record":
            _say(f"{subject}: {_stored(subject, now)} ({seconds:.0f} s)")
        else:
            counts[subject] = _compare(subject, now, names, wanted, brief=given.brief)
    if counts:
        _say("\n".join(["", "differences (of them wanted)", *_table(counts)]))
    if failed:
        _say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _stored(subject: str, now: Any) -> str:
    if now is None:
        return "nothing to record"
    written = store(subject, now)
    return f"{written.name}, {written.stat().st_size:,} bytes"


def _compare(
    subject: str, now: Any, names: Names, wanted: Mapping[str, str], *, brief: bool
) -> tuple[int, int]:
    """Print the differences of a subject; how many there are, and how many of them are wanted."""
    before = load(subject)
    if before is None or now is None:
        _say(f"== {subject}: {'no record' if before is None else 'nothing at hand'}")
        return 0, 0
    found = differences(names.translated(before), now)
    by_reason: dict[str, list[Difference]] = {}
    for each in found:
        by_reason.setdefault(_reason(f"{subject}/{each.path}", wanted), []).append(each)
    unwanted = by_reason.pop("", [])
    _say(f"== {subject}: {len(unwanted)} differences, {len(found) - len(unwanted)} wanted ones")
    if not brief:
        for paths, each in alike(unwanted):
            _say(shown(paths, each))
        for reason, several in sorted(by_reason.items()):
            _say(f"-- wanted: {reason} ({len(several)})")
            for each in several:
                _say(f"   {each.path}")
    return len(found), len(found) - len(unwanted)


def _reason(path: str, wanted: Mapping[str, str]) -> str:
    """The reason of the longest prefix that wants it; empty where none does."""
    fits = [each for each in wanted if path == each or path.startswith(each)]
    return wanted[max(fits, key=len)] if fits else ""


def _wanted() -> Mapping[str, str]:
    found: Mapping[str, str] = json.loads((HERE / "wanted.json").read_text())
    return found


def _table(counts: Mapping[str, tuple[int, int]]) -> list[str]:
    lines = [f"  {name:<12}{every:>6} ({good})" for name, (every, good) in counts.items()]
    every, good = (sum(each) for each in zip(*counts.values(), strict=True))
    return [*lines, f"  {'in all':<12}{every:>6} ({good})"]


def _normalise_environment() -> None:
    for name in _UNSET:
        os.environ.pop(name, None)
    os.environ.update(_ENVIRONMENT)
    time.tzset()
    tempfile.tempdir = None


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
