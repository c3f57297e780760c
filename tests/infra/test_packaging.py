"""The Lambda zips hold what the handlers need and run with nothing but boto3 beside them."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra.packaging import wheels
from infra.packaging.wheels import ROOT, WHEELS_REMEDY, WheelsUnavailable
from infra.packaging.zips import (
    LAMBDAS_ZIP,
    REPORT_ZIP,
    THIS_MACHINE_PLATFORM_OPTIONS,
    LambdaZip,
    stage_lambda_code,
)
from tests.infra.elf_files import AARCH64, read_processors
from tests.infra.synthesized import REGION, asset_of
from tests.report.weeks import make_busy_week

# The packages that Lambda's runtime provides: boto3 and its dependencies.
RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
LIMIT_MEGABYTES = 250
SHARED_FILES = {"__init__.py", "entry.py"}
HANDLERS = {path.name for path in (ROOT / "functions").glob("*.py")} - SHARED_FILES
MENDQ_PACKAGES = {
    path.name for path in (ROOT / "mendq").iterdir() if path.is_dir() and path.name[0] != "_"
}
IMPORT_PATH_SCRIPT = """
import importlib, json, sys
sys.path[:0] = json.loads(sys.argv[1])
def list_outside_modules():
    paths = (getattr(module, "__file__", None) or "" for module in sys.modules.values())
    return [path for path in paths if "site-packages" in path]
"""
DRAW_SCRIPT = """
from functions.deliver_report import handler
from mendq.report.html_page import make_page
from mendq.report.summary import read_summary
from mendq.report.verdict import make_verdict_text
summary = read_summary(sys.stdin.buffer.read())
drawn = {"page": make_page(summary), "verdict": make_verdict_text(summary)}
drawn["outside"] = list_outside_modules()
print(json.dumps(drawn))
"""
IMPORT_SCRIPT = """
for name in json.load(sys.stdin):
    importlib.import_module(name)
print(json.dumps(list_outside_modules()))
"""
ZIPS = pytest.mark.parametrize("contents", [LAMBDAS_ZIP, REPORT_ZIP], ids=["lambdas", "report"])


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only the packages that Lambda's runtime provides."""
    folder = tmp_path_factory.mktemp("runtime")
    site_packages = Path(str(importlib.metadata.distribution("boto3").locate_file("")))
    for name in RUNTIME_PACKAGES:
        (folder / name).symlink_to(site_packages / name)
    return folder


@pytest.fixture(scope="session")
def host_zips(tmp_path_factory: pytest.TempPathFactory) -> Mapping[LambdaZip, Path]:
    """The folder of each zip, built for this machine."""
    root = tmp_path_factory.mktemp("host-zips")
    staged = {
        contents: root / contents.lock_file.parent.name for contents in (LAMBDAS_ZIP, REPORT_ZIP)
    }
    for contents, folder in staged.items():
        stage_lambda_code(folder, contents, THIS_MACHINE_PLATFORM_OPTIONS)
    return staged


def _find_shipped_folder(contents: LambdaZip) -> Path:
    return asset_of("Heal" if contents is LAMBDAS_ZIP else "DeliverReport")


def _run_alone(script: str, given: object, *folders: Path) -> Any:
    """Run a script that imports only from `folders`, and return the JSON of its last line."""
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-c", IMPORT_PATH_SCRIPT + script),
            json.dumps([str(folder) for folder in folders]),
        ],
        input=json.dumps(given),
        env={"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@ZIPS
def test_every_module_of_a_lambda_zip_imports_with_nothing_but_boto3_beside_the_zip(
    host_zips: Mapping[LambdaZip, Path], runtime: Path, contents: LambdaZip
) -> None:
    folder = host_zips[contents]
    names = [
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for package in ("functions", "mendq")
        for path in (folder / package).rglob("*.py")
    ]
    assert names
    assert _run_alone(IMPORT_SCRIPT, sorted(names), folder, runtime) == []
    with pytest.raises(AssertionError, match="No module named 'boto"):
        _run_alone(IMPORT_SCRIPT, sorted(names), folder)


def test_report_zip_draws_the_report_with_nothing_but_boto3_beside_the_zip(
    host_zips: Mapping[LambdaZip, Path], runtime: Path
) -> None:
    drawn = _run_alone(DRAW_SCRIPT, make_busy_week(), host_zips[REPORT_ZIP], runtime)
    assert drawn["outside"] == []
    assert drawn["page"].startswith("<!doctype html>")
    assert "data:image/svg+xml" in drawn["page"], "the page has a chart"
    assert drawn["verdict"]


@pytest.mark.parametrize(
    ("contents", "handlers", "without", "packages", "megabytes"),
    [
        (
            LAMBDAS_ZIP,
            HANDLERS - {"deliver_report.py"},
            {"cli", "report"},
            {"aws_lambda_powertools", "jmespath", "msgspec", "typing_extensions.py"},
            range(10),
        ),
        (
            REPORT_ZIP,
            {"deliver_report.py"},
            {"cli", "lint"},
            {"vl_convert", "rpds", "markupsafe"},
            range(50, LIMIT_MEGABYTES // 2),
        ),
    ],
    ids=["lambdas", "report"],
)
def test_lambda_zips_hold_only_needed_packages_and_are_below_the_size_limit(
    contents: LambdaZip, handlers: set[str], without: set[str], packages: set[str], megabytes: range
) -> None:
    shipped = _find_shipped_folder(contents)
    packages_of_mendq = {path.name for path in (shipped / "mendq").iterdir() if path.is_dir()}
    assert {path.name for path in (shipped / "functions").iterdir()} - SHARED_FILES == handlers
    assert packages_of_mendq == MENDQ_PACKAGES - without
    assert not [*shipped.rglob("__pycache__"), *(shipped / "functions").rglob("requirements.*")]
    names = {path.name for path in shipped.iterdir() if path.suffix != ".dist-info"}
    names -= {"mendq", "functions"}
    assert names == packages if contents is LAMBDAS_ZIP else names > packages
    sizes = [path.stat().st_size for path in shipped.rglob("*") if path.is_file()]
    assert sum(sizes) // 1_000_000 in megabytes


@ZIPS
def test_compiled_libraries_of_a_lambda_zip_are_for_arm64_only(contents: LambdaZip) -> None:
    assert read_processors(_find_shipped_folder(contents)) == {AARCH64}


def test_staging_lambda_code_without_wheels_or_with_an_empty_wheels_folder_says_the_remedy(
    tmp_path: Path,
) -> None:
    wheels = tmp_path / ".wheels"
    with pytest.raises(
        WheelsUnavailable, match=rf"^there are no wheels in .wheels/; {WHEELS_REMEDY}$"
    ):
        stage_lambda_code(tmp_path / "one", wheels_folder=wheels)
    wheels.mkdir()
    with pytest.raises(WheelsUnavailable, match=rf"^.*{WHEELS_REMEDY}: .*\Z"):
        stage_lambda_code(tmp_path / "two", wheels_folder=wheels)


def test_wheels_command_keeps_old_wheels_and_prints_one_line_if_a_fetch_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    lock = tmp_path / "requirements.txt"
    folder = tmp_path / ".wheels"
    lock.write_text(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    folder.mkdir()
    (folder / "kept.whl").write_bytes(b"")
    monkeypatch.setattr(
        wheels, "fill_wheels_folder", partial(wheels.fill_wheels_folder, {lock: "3.13"}, folder)
    )
    assert wheels.main() == 1
    error = capsys.readouterr().err
    assert error.endswith(f"{WHEELS_REMEDY}\n")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.glob(".wheels*")] == [".wheels"]
    assert [path.name for path in folder.iterdir()] == ["kept.whl"]


@pytest.mark.parametrize(
    "lock", wheels.PYTHON_VERSION_BY_LOCK_FILE, ids=lambda lock: lock.parent.name
)
def test_every_shipped_package_is_pinned_to_the_version_that_the_tests_use(lock: Path) -> None:
    shipped = _read_pinned_packages(lock)
    assert shipped
    assert shipped <= _read_pinned_packages(ROOT / "requirements.txt")


def _read_pinned_packages(lock: Path) -> set[str]:
    """Return the requirements of a lock file. Fail if one is not pinned to a single version."""
    lines = [line.partition(" #")[0].rstrip(" \\") for line in lock.read_text().splitlines()]
    requirements = {line for line in lines if line and line[0] not in " #-"}
    unpinned = {
        line
        for line in requirements
        if not re.match(r"[\w.-]+(\[[\w, -]+\])?==[^=; ]+( *;.*)?$", line)
    }
    assert unpinned == set(), f"{lock} does not pin these"
    return requirements
