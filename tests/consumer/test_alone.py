"""Test that people can copy the folder `mendq/consumer` without the rest of Mendq."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from mendq import consumer

TAKEN = """
import sys
before = {module.partition(".")[0] for module in sys.modules}
from consumer import VisibilityHeartbeat, idempotent

with VisibilityHeartbeat(None, "url", seconds=30) as visibility:
    assert visibility.held == frozenset()
loaded = {module.partition(".")[0] for module in sys.modules} - before - sys.stdlib_module_names
# The last four belong to boto3.
assert loaded <= {"consumer", "botocore", "dateutil", "jmespath", "six", "urllib3"}, loaded
"""


def test_consumer_package_copied_alone_works_without_the_rest_of_mendq(tmp_path: Path) -> None:
    shutil.copytree(Path(consumer.__file__).parent, tmp_path / "consumer")
    subprocess.run([sys.executable, "-c", TAKEN], cwd=tmp_path, check=True, timeout=60)
