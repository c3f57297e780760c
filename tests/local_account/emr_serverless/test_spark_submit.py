"""The driver's command and what it sees of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from local_account.emr_serverless.asked_of_spark import with_files_here
from local_account.emr_serverless.spark_submit import Release, command

FILE = "/scratch/mendq.zip"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    made = Release(tmp_path_factory.mktemp("emr") / "release")
    made.install()
    return made


def test_files_are_fetched_once_each_and_the_rest_stays() -> None:
    fetched: list[str] = []

    def fetch(uri: str) -> Path:
        fetched.append(uri)
        return Path("/scratch", uri.rpartition("/")[2])

    text = "--conf spark.submit.pyFiles=s3://code/mendq.zip,s3://code/b.zip --conf spark.x=s3x"
    here = with_files_here(text, fetch)
    assert here == f"--conf spark.submit.pyFiles={FILE},/scratch/b.zip --conf spark.x=s3x"
    assert fetched == ["s3://code/mendq.zip", "s3://code/b.zip"]


def test_sizes_are_this_machines_and_the_arguments_come_last() -> None:
    given = "--conf spark.driver.memory=6g --conf 'spark.app.name=a b'"
    line = command(Path("/scratch/job.py"), ["weekly", "--week", "2026-W46"], given)
    assert line[-4:] == ["/scratch/job.py", "weekly", "--week", "2026-W46"]
    assert "spark.app.name=a b" in line
    memory = [each for each in line if each.startswith("spark.driver.memory=")]
    assert memory[0] == "spark.driver.memory=6g"
    assert memory[-1] != memory[0]


def test_a_driver_sees_its_own_variables_only(release: Release, tmp_path: Path) -> None:
    machine = {"PATH": "/bin", "AUTH": "true", "VIRTUAL_ENV": "x", "AWS_PROFILE": "mine"}
    variables = release.environment(machine, {"AWS_ACCESS_KEY_ID": "ASIA"}, tmp_path)
    assert (variables["PATH"], variables["AWS_ACCESS_KEY_ID"]) == ("/bin", "ASIA")
    assert not {"AUTH", "VIRTUAL_ENV", "AWS_PROFILE"} & variables.keys()


@pytest.mark.parametrize(
    ("module", "is_there"),
    [
        ("pyspark", True),
        ("pyarrow", True),
        ("pandas", False),
        ("analytics", False),
        ("functions", False),
        ("boto3", False),
        ("msgspec", False),
    ],
)
def test_python_has_what_emr_brings_and_nothing_of_the_checkout(
    release: Release, tmp_path: Path, module: str, is_there: bool
) -> None:
    line = f"import importlib.util; print(importlib.util.find_spec({module!r}) is not None)"
    done = subprocess.run(
        [release.python, "-c", line],
        cwd=tmp_path,
        env=release.environment({}, {}, tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(is_there)
