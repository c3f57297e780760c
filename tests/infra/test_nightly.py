"""The nightly job's application; what its role may do is asked in test_nightly_grants."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from infra.nightly import EMR_RELEASE
from infra.packaging import emr
from infra.packaging.zips import LAMBDA_PLATFORM_OPTIONS
from mendq.model.settings import DEFAULT_SPARK_WORKER, StartNightlySettings
from tests.infra.synthesized import template_of, whole_assembly

# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html
SPARK_OF = {"emr-7.14.0": "3.5.8"}


def test_pinned_emr_release_runs_the_pinned_pyspark_version() -> None:
    assert SPARK_OF[EMR_RELEASE] == version("pyspark")


@pytest.mark.parametrize("name", ["default", "named"])
def test_emr_application_capacity_fits_the_driver_and_executors_and_no_further_worker(
    name: str,
) -> None:
    most = template_of(name).only("AWS::EMRServerless::Application")["MaximumCapacity"]
    starting = template_of(name).only("AWS::Lambda::Function", "StartNightly")["Environment"]
    executors = StartNightlySettings.from_environment(starting["Variables"]).maximum_executors
    taken = (
        DEFAULT_SPARK_WORKER.vcpu,
        DEFAULT_SPARK_WORKER.memory_gb,
        DEFAULT_SPARK_WORKER.disk_gb,
    )
    for unit, each in zip(("Cpu", "Memory", "Disk"), taken, strict=True):
        room = int(most[unit].split()[0]) - (1 + executors) * each
        assert 0 <= room < (1 if unit == "Disk" else each * 3), unit


def test_cloud_assembly_contains_the_nightly_jobs_entry_point_modules_and_compiled_packages() -> (
    None
):
    shipped = {each.suffix: each for each in whole_assembly().glob("asset.*") if each.is_file()}
    assert set(shipped) == {".py", ".tgz"}
    assert shipped[".py"].read_text() == emr.ENTRY_POINT_SCRIPT
    assert shipped[".tgz"].read_bytes() == emr.build_archive(LAMBDA_PLATFORM_OPTIONS).read_bytes()
    (modules,) = (each.parent for each in whole_assembly().glob("asset.*/analytics"))
    assert {each.name for each in modules.iterdir()} == {"analytics", "mendq"}
