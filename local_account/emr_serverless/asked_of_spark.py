"""What a run's sparkSubmitParameters ask of EMR Serverless itself, which Spark here cannot do.

EMR unpacks archives into the folder that driver and executors start in, and gives them variables.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

URI = re.compile(r"s3://[^\s,]+")
_ARCHIVES = re.compile(r"--conf\s+spark\.archives=(\S+)")
_VARIABLE = re.compile(r"--conf\s+spark\.emr-serverless\.driverEnv\.(\w+)=(\S+)")
# Which Python it is stays this machine's.
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


@dataclass(frozen=True)
class Asked:
    """`parameters` are for Spark; `archives` are URIs, each with the folder that it is to be."""

    parameters: str
    archives: tuple[tuple[str, str], ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Asked:
        """What `sparkSubmitParameters` say; a later variable of a name wins."""
        found = [each for names in _ARCHIVES.findall(text) for each in names.split(",")]
        archives = (each.partition("#") for each in found)
        variables = {name: value for name, value in _VARIABLE.findall(text) if name not in _PYTHONS}
        return cls(
            _VARIABLE.sub("", _ARCHIVES.sub("", text)),
            tuple((uri, folder or uri.rpartition("/")[2]) for uri, _, folder in archives),
            variables,
        )

    def environment(self, release: dict[str, str]) -> dict[str, str]:
        """The driver's variables; what EMR looks for modules in comes after what was asked."""
        paths = [each["PYTHONPATH"] for each in (self.variables, release) if "PYTHONPATH" in each]
        return {**release, **self.variables, "PYTHONPATH": os.pathsep.join(paths)}


def with_files_here(text: str, fetch: Callable[[str], Path]) -> str:
    """`text` with every s3 URI replaced by the file that `fetch` put here for it."""
    return URI.sub(lambda found: str(fetch(found[0])), text)
