"""What `make release` builds, installed into an environment that has nothing but what it names."""

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

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UV = str(Path(sys.executable).with_name("uv"))
RECORD = '{"eventSource": "sqs.amazonaws.com", "eventName": "DeleteMessage"}'
ARN = "arn:aws:sqs:us-east-1:123456789012:"
DAY = 1_767_225_600
# What no command asks for before it is told to draw, to read a template or to start Spark.
HEAVY = ("altair", "cfnlint", "css_inline", "pandas", "pyarrow", "pyspark", "vl_convert")
ASK = """
import sys
from mendq.cli.app import app
for command in sys.argv[1:]:
    try:
        app([command, "--region", "us-east-1"], prog_name="mendq")
    except SystemExit as ended:
        print(ended.code)
"""
LOAD = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        print(name, missing.name)
"""


class Ran(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    error: str


class Installed(NamedTuple):
    """The environment, and an empty folder to work in."""

    environment: Path
    folder: Path

    def run(self, program: str, *words: str) -> Ran:
        """Without the repository, credentials or a network to ask for some."""
        bare = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "AWS_EC2_METADATA_DISABLED": "1"}
        command = [str(self.environment / "bin" / program), *words]
        ended = subprocess.run(
            command, cwd=self.folder, env=bare, capture_output=True, check=False, text=True
        )
        return Ran(ended.returncode, ended.stdout, ended.stderr)


def _distributions(names: list[str], found: set[str]) -> Iterator[Path]:
    """What the lock has put into this environment for these, and for what they need."""
    for each in map(Requirement, names):
        if each.name in found or (each.marker and not each.marker.evaluate({"extra": ""})):
            continue
        found.add(each.name)
        there = distribution(each.name)
        for top in {file.parts[0] for file in there.files or ()} - {"..", "__pycache__"}:
            yield Path(str(there.locate_file(top)))
        yield from _distributions(there.requires or [], found)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of the files that git tracks or would add, and the wheel made of the sdist."""
    folder = tmp_path_factory.mktemp("built")
    for path in list_files("mendq", "analytics", ":(glob)*"):
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


def _installed(built: Path, at: Path, names: list[str]) -> Installed:
    """The wheel in an environment at `at`, and of the lock's packages no others than `names`."""
    environment = at / "venv"
    uv = (UV, "--quiet", "--offline")
    subprocess.run([*uv, "venv", "--python", sys.executable, str(environment)], check=True)
    (libraries,) = environment.glob("lib/python*/site-packages")
    for each in _distributions(names, set()):
        if each.suffix == ".dist-info":  # uv counts no links
            shutil.copytree(each, libraries / each.name)
        else:
            (libraries / each.name).symlink_to(each)
    python = ("--python", str(environment / "bin" / "python"))
    (wheel,) = built.glob("*.whl")
    subprocess.run([*uv, "pip", "install", *python, "--no-deps", str(wheel)], check=True)
    subprocess.run([*uv, "pip", "check", *python], check=True)
    folder = environment.with_name("empty")
    folder.mkdir()
    (folder / "record.json").write_text(RECORD)
    return Installed(environment, folder)


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """With what it names without an extra."""
    return _installed(built, tmp_path_factory.mktemp("installed"), PROJECT["dependencies"])


def test_sdist_and_wheel_contain_only_mendq_with_its_templates_and_types(built: Path) -> None:
    version = PROJECT["version"]
    assert {each.name for each in built.iterdir()} >= {
        f"mendq-{version}.tar.gz",
        f"mendq-{version}-py3-none-any.whl",
    }
    with tarfile.open(built / f"mendq-{version}.tar.gz") as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
        times = {each.mtime for each in sdist.getmembers()}
    assert {name.split("/")[0] for name in inside} == {
        *("mendq", "analytics", "CHANGELOG.md", "LICENSE", "README.md", "PKG-INFO"),
        *(".gitignore", "pyproject.toml"),
    }
    with ZipFile(next(built.glob("*.whl"))) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"mendq", f"mendq-{version}.dist-info"}, "no package called analytics"
    assert {"mendq/py.typed", "mendq/report/template/page.html.j2"} <= inside
    assert times == {DAY}, "the day of the commit, not of the build"


def test_package_index_page_has_only_absolute_links(built: Path) -> None:
    with ZipFile(next(built.glob("*.whl"))) as wheel:
        page = wheel.read(f"mendq-{PROJECT['version']}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert [each for each in links if not each.startswith("https://")] == []
    assert (len(links) > 0, "mendq scan --policy" in page, "![" in page) == (True, True, False)


def test_installed_wheel_runs_version_help_scan_policy_and_explain(installed: Installed) -> None:
    assert installed.run("mendq", "--version") == (0, f"mendq {PROJECT['version']}\n", "")
    shown = installed.run("mendq", "--help")
    assert (shown.code, "rollback" in shown.out) == (0, True)
    policy = installed.run("mendq", "scan", "--policy")
    assert (policy.code, policy.error) == (0, "")
    assert json.loads(policy.out)["Version"] == "2012-10-17"
    explained = installed.run("mendq", "explain", "record.json", "--json")
    assert '"not_failed"' in explained.out


def test_installed_wheel_backtest_without_pyspark_names_the_extra_to_install(
    installed: Installed,
) -> None:
    helped = installed.run("mendq", "backtest", "--help")
    assert (helped.code, "--trail" in helped.out) == (0, True)
    days = ("--from", "2026-11-02", "--to", "2026-11-03", "--region", "us-east-1")
    ran = installed.run("mendq", "backtest", "--trail", "none", *days)
    says = "mendq: pyspark is not installed: in a clone of Mendq, pip install '.[nightly]'\n"
    assert ran == (2, "", says)


@pytest.mark.long
def test_installed_wheel_backtest_with_the_nightly_extra_runs_without_a_clone(
    built: Path, tmp_path: Path
) -> None:
    extras = PROJECT["optional-dependencies"]
    _, *nightly = extras["nightly"]
    at = _installed(built, tmp_path, PROJECT["dependencies"] + extras["report"] + nightly)
    there = write_scene(tmp_path, 0, SceneSize(bursts=3, chained=3, records_of_largest_file=24))
    known = {"queue_arn": f"{ARN}orders", "attributes": {"VisibilityTimeout": "30"}, "tags": {}}
    (at.folder / "s.json").write_text(json.dumps(known))
    days = ("--from", str(there.days[0]), "--to", str(there.days[-1]), "--queues", "s.json")
    ran = at.run("mendq", "backtest", "--trail", str(there.trail), *days, "--json")
    assert ran.code in {0, 3}, ran.error
    said = json.loads(ran.out)
    assert (len(said["incidents"]) > 3, len(said["pages"])) == (True, 1)
    assert "Had Mendq been there" in (at.folder / said["pages"][0]).read_text()


def test_installed_wheel_commands_without_credentials_exit_1_and_say_so(
    installed: Installed,
) -> None:
    """One after the other in one process: what one loads, nobody lacks."""
    ran = installed.run("python", "-c", ASK, "cases", "cost", "doctor", "report", "scan")
    assert (ran.code, ran.out.split()) == (0, ["1"] * 5), ran.error
    assert [each[:21] for each in ran.error.splitlines()] == ["mendq: no credentials"] * 5


def test_installed_wheel_imports_every_module_except_lint_and_report_without_extras(
    installed: Installed,
) -> None:
    """Every other module of the engine loads without an extra, the page of a scan's among them."""
    files = [path for path in list_files("mendq/*.py") if not path.name.startswith("_")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    ran = installed.run("python", "-c", LOAD, *names)
    assert (ran.code, len(names) > 150) == (0, True), ran.error
    lacking = dict(line.split() for line in ran.out.splitlines())
    assert {name.rpartition(".")[0] for name in lacking} == {"mendq.lint", "mendq.report"}
    assert set(lacking.values()) <= {*HEAVY, "yaml", "hcl2"}
    assert "mendq.report.verdict" not in lacking
