"""The scripts of the folder, run against an `aws` that notes what it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# By the operation of the AWS CLI: what it answers, and `!` where it fails. Several answers are one
# call's each, and the last one's ever after.
Answers = Mapping[str, str | list[str]]
_AWS = """#!{python} -IS
import json, os, pathlib, sys
place = pathlib.Path({place!r})
with (place / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
answers = json.loads((place / "answers").read_text())
said = answers.get(sys.argv[2], "")
if isinstance(said, list):
    done = sum(json.loads(each)[1] == sys.argv[2] for each in (place / "calls").open())
    said = said[min(done, len(said)) - 1]
if said.startswith("!"):
    sys.exit(said[1:])
print(said)
"""


class Run:
    """How a script ended, and the calls it made."""

    def __init__(self, script: Path, place: Path, answers: Answers, *arguments: str) -> None:
        (place / "answers").write_text(json.dumps(answers))
        (place / "calls").write_text("")
        python = sys.executable
        for name, text in (
            ("aws", _AWS.format(python=python, place=str(place))),
            ("sleep", "#!/bin/sh\n"),
        ):
            (place / name).write_text(text)
            (place / name).chmod(0o755)
        path = f"{place}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", str(script), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        self.code, self.said, self.refused = done.returncode, done.stdout, done.stderr
        lines = (place / "calls").read_text().splitlines()
        self.calls: list[list[str]] = [json.loads(each) for each in lines]

    def of(self, operation: str) -> list[list[str]]:
        return [each for each in self.calls if each[1] == operation]

    @property
    def operations(self) -> list[str]:
        return [each[1] for each in self.calls]


def option(call: list[str], name: str) -> str:
    return call[call.index(name) + 1]
