"""The EMR Serverless application of the nightly job. test_nightly_grants checks its role."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from infra.nightly import EMR_RELEASE
from infra.packaging import emr
from infra.packaging.zips import LAMBDA_PLATFORM_OPTIONS
from mendq.model.settings import DEFAULT_SPARK_WORKER, StartNightlySettings
from tests.infra.synthesized import template_of, whole_assembly

# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html
SPARK_BY_EMR_RELEASE = {"emr-7.14.0": "3.5.8"}


def test_pinned_emr_release_runs_the_pinned_pyspark_version() -> None:
    assert SPARK_BY_EMR_RELEASE[EMR_RELEASE] == version("pyspark")


@pytest.mark.parametrize("name", ["default", "named"])
def test_emr_application_capacity_fits_the_driver_and_executors_and_no_further_worker(
    name: str,
) -> None:
    capacity = template_of(name).only("AWS::EMRServerless::Application")["MaximumCapacity"]
    starting = template_of(name).only("AWS::Lambda::Function", "StartNightly")["Environment"]
    executors = StartNightlySettings.from_environment(starting["Variables"]).maximum_executors
    worker_size = (
        DEFAULT_SPARK_WORKER.vcpu,
        DEFAULT_SPARK_WORKER.memory_gb,
        DEFAULT_SPARK_WORKER.disk_gb,
    )
    for unit, amount in zip(("Cpu", "Memory", "Disk"), worker_size, strict=True):
        unused = int(capacity[unit].split()[0]) - (1 + executors) * amount
        assert 0 <= unused < (1 if unit == "Disk" else amount * 3), unit


def test_cloud_assembly_contains_the_nightly_jobs_entry_point_modules_and_compiled_packages() -> (
    None
):
    shipped = {path.suffix: path for path in whole_assembly().glob("asset.*") if path.is_file()}
    assert set(shipped) == {".py", ".tgz"}
    assert shipped[".py"].read_text() == emr.ENTRY_POINT_SCRIPT
    assert shipped[".tgz"].read_bytes() == emr.build_archive(LAMBDA_PLATFORM_OPTIONS).read_bytes()
    (modules,) = (path.parent for path in whole_assembly().glob("asset.*/analytics"))
    assert {path.name for path in modules.iterdir()} == {"analytics", "mendq"}
