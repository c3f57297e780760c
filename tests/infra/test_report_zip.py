"""What the report's zip holds, and that it draws a page with nothing but boto3 beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.packaging.wheels import ROOT
from infra.packaging.zips import (
    AARCH64,
    LAMBDAS,
    REPORT,
    THIS_MACHINE,
    foreign_libraries,
    machine,
    stage,
)
from tests.infra.synthesized import asset_of
from tests.infra.zips import (
    digest,
    imported_from_elsewhere,
    in_isolation,
    megabytes,
    modules,
    ours,
    rooms,
)
from tests.report.weeks import busy_week

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
LIMIT_MEGABYTES = 250
# Beside the handlers of both zips.
SHARED = {"__init__.py", "entry.py", "telemetry.py"}
CHARTS = ("altair", "vl_convert")

DRAW = """
from functions.deliver_report import handler
from mendq.report import page, read, verdict_text

summary = read(sys.stdin.buffer.read())
drawn = {"page": page(summary), "verdict": verdict_text(summary), "outside": outside()}
print(json.dumps(drawn))
"""


@pytest.fixture(scope="module")
def host_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host-report-zip")
    stage(folder, REPORT, THIS_MACHINE)
    return folder


@pytest.fixture(scope="module")
def shipped() -> Path:
    return asset_of("DeliverReport")


def test_without_boto3_beside_it_it_does_not_even_import(host_zip: Path) -> None:
    with pytest.raises(AssertionError, match="No module named 'boto"):
        in_isolation(DRAW, "{}", [host_zip], {})


def test_alone_with_boto3_every_module_imports(host_zip: Path, runtime: Path) -> None:
    assert imported_from_elsewhere(host_zip, runtime) == []


def test_alone_with_boto3_it_draws_a_page(host_zip: Path, runtime: Path) -> None:
    drawn = in_isolation(DRAW, json.dumps(busy_week()), [host_zip, runtime], {})
    assert drawn["outside"] == []
    assert drawn["page"].startswith("<!doctype html>")
    assert "data:image/svg+xml" in drawn["page"], "the chart"
    assert drawn["verdict"]


def test_the_shipped_zip_holds_the_same_modules(shipped: Path, host_zip: Path) -> None:
    assert "functions/deliver_report" in modules(host_zip)
    assert modules(shipped) == modules(host_zip)


def test_its_native_libraries_are_for_arm64_alone(shipped: Path) -> None:
    libraries = [each for each in shipped.rglob("*.so") if machine(each) == AARCH64]
    found = {each.relative_to(shipped).parts[0] for each in libraries}
    assert found >= {"vl_convert", "rpds", "markupsafe"}
    assert list(foreign_libraries(shipped)) == []


def test_one_built_for_this_machine_would_be_seen(host_zip: Path) -> None:
    host = {machine(each) for each in host_zip.rglob("*.so")}
    if host == {AARCH64}:
        pytest.skip("this machine has Lambda's processor")
    assert list(foreign_libraries(host_zip))


def test_unpacked_it_fits_into_lambda(shipped: Path) -> None:
    size = megabytes(shipped)
    assert 50 < size < LIMIT_MEGABYTES / 2, size


def test_the_other_lambdas_do_not_carry_the_charts() -> None:
    others = asset_of("Heal")
    assert not [name for name in CHARTS if (others / name).exists()]
    assert "report" not in ours(others)
    assert megabytes(others) < 10


def test_it_holds_what_delivers_the_report_and_no_other_handler(shipped: Path) -> None:
    assert ours(shipped) == {*SHARED, "deliver_report.py"}
    assert rooms(shipped) == rooms(ROOT) - {"cli", "lint"}
    assert not list((shipped / "functions").rglob("requirements.*"))
    assert not list(shipped.rglob("__pycache__"))


def test_staging_twice_gives_the_same_bytes(shipped: Path, tmp_path: Path) -> None:
    stage(tmp_path, REPORT)
    assert digest(tmp_path) == digest(shipped)


def test_every_handler_is_shipped_once() -> None:
    handlers = {each.name for each in (ROOT / "functions").glob("*.py")} - SHARED
    lambdas, report = ours(asset_of("Heal")) - SHARED, ours(asset_of("DeliverReport")) - SHARED
    assert lambdas | report == handlers
    assert not lambdas & report
    assert LAMBDAS.lock != REPORT.lock
