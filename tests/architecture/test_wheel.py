"""The wheel of `make release` works in an environment with only its declared dependencies."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.analytics.recount.scene import SceneSize, write_scene
from tests.source_files import ROOT, list_files

# The wheel is built, and installed into environments of its own.
pytestmark = pytest.mark.long

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UV = str(Path(sys.executable).with_name("uv"))
RECORD = '{"eventSource": "sqs.amazonaws.com", "eventName": "DeleteMessage"}'
ARN = "arn:aws:sqs:us-east-1:123456789012:"
DAY = 1_767_225_600
# Packages that only drawing, reading templates and Spark need.
OPTIONAL_PACKAGES = (
    "altair",
    "cfnlint",
    "css_inline",
    "pandas",
    "pyarrow",
    "pyspark",
    "samtranslator",
    "vl_convert",
)
RUN_COMMANDS_SCRIPT = """
import sys
from mendq.cli.app import app
for command in sys.argv[1:]:
    try:
        app([command, "--region", "us-east-1"], prog_name="mendq")
    except SystemExit as ended:
        print(ended.code)
"""
IMPORT_SCRIPT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        print(name, missing.name)
"""


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    error: str


class Installation(NamedTuple):
    """The environment, and an empty folder to work in."""

    environment: Path
    folder: Path

    def run(self, program: str, *words: str) -> CommandResult:
        """Run a program without the repository, credentials and the metadata service."""
        bare = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "AWS_EC2_METADATA_DISABLED": "1"}
        command = [str(self.environment / "bin" / program), *words]
        ended = subprocess.run(
            command, cwd=self.folder, env=bare, capture_output=True, check=False, text=True
        )
        return CommandResult(ended.returncode, ended.stdout, ended.stderr)


def _list_package_paths(names: list[str], listed: set[str]) -> Iterator[Path]:
    """Yield the paths of these packages and their dependencies in this environment.

    `listed` holds the names of the packages already yielded.
    """
    for requirement in map(Requirement, names):
        marker = requirement.marker
        if requirement.name in listed or (marker and not marker.evaluate({"extra": ""})):
            continue
        listed.add(requirement.name)
        package = distribution(requirement.name)
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            yield Path(str(package.locate_file(top)))
        yield from _list_package_paths(package.requires or [], listed)


@pytest.fixture(scope="module")
def release_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist of the files in git and the wheel made from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    for path in list_files("mendq", "analytics", "docs/runbooks", ":(glob)*"):
        copy = folder / "source" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    offline = ("--quiet", "--offline", "--no-build-isolation", "--python", sys.executable)
    subprocess.run(
        [UV, "build", *offline, "--out-dir", str(folder / "dist"), str(folder / "source")],
        check=True,
        env=os.environ | {"SOURCE_DATE_EPOCH": f"{DAY}"},
    )
    return folder / "dist"


def _install(release_folder: Path, at: Path, names: list[str]) -> Installation:
    """Install the wheel into an environment at `at` that has only the packages `names`."""
    environment = at / "venv"
    uv = (UV, "--quiet", "--offline")
    subprocess.run([*uv, "venv", "--python", sys.executable, str(environment)], check=True)
    (libraries,) = environment.glob("lib/python*/site-packages")
    for path in _list_package_paths(names, set()):
        if path.suffix == ".dist-info":  # uv ignores symbolic links
            shutil.copytree(path, libraries / path.name)
        else:
            (libraries / path.name).symlink_to(path)
    python = ("--python", str(environment / "bin" / "python"))
    (wheel,) = release_folder.glob("*.whl")
    subprocess.run([*uv, "pip", "install", *python, "--no-deps", str(wheel)], check=True)
    subprocess.run([*uv, "pip", "check", *python], check=True)
    folder = environment.with_name("empty")
    folder.mkdir()
    (folder / "record.json").write_text(RECORD)
    return Installation(environment, folder)


@pytest.fixture(scope="module")
def installation(release_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel with its dependencies and without extras."""
    return _install(release_folder, tmp_path_factory.mktemp("installed"), PROJECT["dependencies"])


def test_wheel_holds_only_mendq_and_the_sdist_also_analytics_with_templates_and_types(
    release_folder: Path,
) -> None:
    version = PROJECT["version"]
    assert {path.name for path in release_folder.iterdir()} >= {
        f"mendq-{version}.tar.gz",
        f"mendq-{version}-py3-none-any.whl",
    }
    with tarfile.open(release_folder / f"mendq-{version}.tar.gz") as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {name.split("/")[0] for name in inside} == {
        *("mendq", "analytics", "docs", "CHANGELOG.md", "LICENSE", "README.md", "PKG-INFO"),
        *(".gitignore", "pyproject.toml"),
    }
    with ZipFile(next(release_folder.glob("*.whl"))) as wheel:
        wheel_names = wheel.namelist()
    tops = {name.partition("/")[0] for name in wheel_names}
    assert tops == {"mendq", f"mendq-{version}.dist-info"}, (
        "the wheel must not install a package called analytics"
    )
    assert {"mendq/py.typed", "mendq/report/template/page.html.j2"} <= inside
    assert "mendq/runbooks/dlq_missing.md" in wheel_names, "`mendq runbook` prints it"


def test_sdist_files_have_the_time_of_the_commit_and_not_of_the_build(
    release_folder: Path,
) -> None:
    """The release sets SOURCE_DATE_EPOCH to the commit's time."""
    with tarfile.open(release_folder / f"mendq-{PROJECT['version']}.tar.gz") as sdist:
        times = {member.mtime for member in sdist.getmembers()}
    assert times == {DAY}


def test_package_index_page_has_only_absolute_links_and_no_pictures(release_folder: Path) -> None:
    with ZipFile(next(release_folder.glob("*.whl"))) as wheel:
        page = wheel.read(f"mendq-{PROJECT['version']}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert [link for link in links if not link.startswith("https://")] == []
    assert links
    assert "mendq scan --policy" in page
    assert "![" not in page


def test_installed_wheel_runs_version_help_scan_policy_and_explain(
    installation: Installation,
) -> None:
    assert installation.run("mendq", "--version") == (0, f"mendq {PROJECT['version']}\n", "")
    shown = installation.run("mendq", "--help")
    assert shown.code == 0
    assert "rollback" in shown.out
    policy = installation.run("mendq", "scan", "--policy")
    assert policy.code == 0
    assert policy.error == ""
    assert json.loads(policy.out)["Version"] == "2012-10-17"
    explained = installation.run("mendq", "explain", "record.json", "--json")
    assert '"not_failed"' in explained.out


def test_installed_wheel_backtest_without_pyspark_shows_its_help_and_names_the_missing_extra(
    installation: Installation,
) -> None:
    shown = installation.run("mendq", "backtest", "--help")
    assert shown.code == 0
    assert "--trail" in shown.out
    days = ("--from", "2026-11-02", "--to", "2026-11-03", "--region", "us-east-1")
    ran = installation.run("mendq", "backtest", "--trail", "none", *days)
    message = "mendq: pyspark is not installed: in a clone of Mendq, pip install '.[nightly]'\n"
    assert ran == (2, "", message)


def test_installed_wheel_backtest_with_the_nightly_extra_runs_without_a_clone(
    release_folder: Path, tmp_path: Path
) -> None:
    extras = PROJECT["optional-dependencies"]
    _, *nightly = extras["nightly"]
    with_extras = _install(
        release_folder, tmp_path, PROJECT["dependencies"] + extras["report"] + nightly
    )
    trail_scene = write_scene(
        tmp_path, 0, SceneSize(bursts=3, chained=3, records_of_largest_file=24)
    )
    known = {"queue_arn": f"{ARN}orders", "attributes": {"VisibilityTimeout": "30"}, "tags": {}}
    (with_extras.folder / "s.json").write_text(json.dumps(known))
    days = (
        "--from",
        str(trail_scene.days[0]),
        "--to",
        str(trail_scene.days[-1]),
        "--queues",
        "s.json",
    )
    ran = with_extras.run("mendq", "backtest", "--trail", str(trail_scene.trail), *days, "--json")
    assert ran.code in {0, 3}, ran.error
    document = json.loads(ran.out)
    assert len(document["incidents"]) > 3
    assert len(document["pages"]) == 1
    page = with_extras.folder / document["pages"][0]
    assert "Had Mendq been there" in page.read_text()


def test_installed_wheel_commands_without_credentials_exit_1_and_say_so(
    installation: Installation,
) -> None:
    """All commands run in one process, so one import of a package serves all of them."""
    ran = installation.run(
        "python", "-c", RUN_COMMANDS_SCRIPT, "cases", "cost", "doctor", "report", "scan"
    )
    assert ran.code == 0, ran.error
    assert ran.out.split() == ["1"] * 5, ran.error
    assert [line[:21] for line in ran.error.splitlines()] == ["mendq: no credentials"] * 5


def test_installed_wheel_imports_every_module_except_lint_and_report_without_extras(
    installation: Installation,
) -> None:
    """The module of the scan's page is among those that import without extras."""
    files = [path for path in list_files("mendq/*.py") if not path.name.startswith("_")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    ran = installation.run("python", "-c", IMPORT_SCRIPT, *names)
    assert ran.code == 0, ran.error
    assert len(names) > 150
    missing_by_module = dict(line.split() for line in ran.out.splitlines())
    assert {name.rpartition(".")[0] for name in missing_by_module} == {"mendq.lint", "mendq.report"}
    assert set(missing_by_module.values()) <= {*OPTIONAL_PACKAGES, "yaml", "hcl2"}
    assert "mendq.report.verdict" not in missing_by_module
