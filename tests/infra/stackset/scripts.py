"""Run the stack set scripts with a fake `aws` that records its calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# The answers of the fake `aws` by operation. `!` begins an error. Of several answers, each call
# gets the next one, and the last answer is repeated.
Answers = Mapping[str, str | list[str]]
_AWS = """#!{python} -IS
import json, os, pathlib, sys
place = pathlib.Path({place!r})
with (place / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
answers = json.loads((place / "answers").read_text())
answer = answers.get(sys.argv[2], "")
if isinstance(answer, list):
    count = sum(json.loads(call)[1] == sys.argv[2] for call in (place / "calls").open())
    answer = answer[min(count, len(answer)) - 1]
if answer.startswith("!"):
    sys.exit(answer[1:])
print(answer)
"""


class ScriptRun:
    """A script's exit code, its output and the AWS calls that it made."""

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
        self.code = done.returncode
        self.output = done.stdout
        self.error = done.stderr
        lines = (place / "calls").read_text().splitlines()
        self.calls: list[list[str]] = [json.loads(line) for line in lines]

    def list_calls(self, operation: str) -> list[list[str]]:
        return [call for call in self.calls if call[1] == operation]

    @property
    def operations(self) -> list[str]:
        return [call[1] for call in self.calls]


def read_option(call: list[str], name: str) -> str:
    return call[call.index(name) + 1]
