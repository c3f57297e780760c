"""The EMR Serverless application of the nightly job. test_nightly_grants checks its role."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import get_args, get_type_hints

import pytest
from msgspec.structs import replace

from infra.nightly import EMR_RELEASE
from infra.packaging import emr
from infra.packaging.zips import LAMBDA_PLATFORM_OPTIONS
from infra.settings.deployment import NightlySettings
from mendq.model.limits import Range
from mendq.model.settings import (
    DEFAULT_SPARK_WORKER,
    StartNightlySettings,
    count_executors_within,
)
from mendq.nightly.jobs import format_spark_parameters
from tests.infra.synthesized import template_of, whole_assembly

# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html
SPARK_BY_EMR_RELEASE = {"emr-7.14.0": "3.5.8"}


def test_pinned_emr_release_runs_the_pinned_pyspark_version() -> None:
    assert SPARK_BY_EMR_RELEASE[EMR_RELEASE] == version("pyspark")


def _read_start_settings(name: str) -> StartNightlySettings:
    """Return the settings that start_nightly gets in one of the synthesized templates."""
    function = template_of(name).only("AWS::Lambda::Function", "StartNightly")
    return StartNightlySettings.from_environment(function["Environment"]["Variables"])


@pytest.mark.parametrize("name", ["default", "named"])
def test_emr_application_capacity_fits_the_driver_and_executors_and_no_further_worker(
    name: str,
) -> None:
    capacity = template_of(name).only("AWS::EMRServerless::Application")["MaximumCapacity"]
    executors = _read_start_settings(name).maximum_executors
    worker_size = (
        DEFAULT_SPARK_WORKER.vcpu,
        DEFAULT_SPARK_WORKER.memory_gb,
        DEFAULT_SPARK_WORKER.disk_gb,
    )
    for unit, amount in zip(("Cpu", "Memory", "Disk"), worker_size, strict=True):
        unused = int(capacity[unit].split()[0]) - (1 + executors) * amount
        assert 0 <= unused < (1 if unit == "Disk" else amount * 3), unit


def _range_of(field_name: str) -> range:
    """Return the values that a field of NightlySettings may have."""
    field_type = get_type_hints(NightlySettings, include_extras=True)[field_name]
    _, bounds = get_args(field_type)
    assert isinstance(bounds, Range)
    return range(int(bounds.begins()), int(bounds.most) + 1)


def _read_executor_count(spark_parameters: str, kind: str) -> int:
    """Return the number of executors in the parameter `initial`, `min` or `max`."""
    (count,) = re.findall(
        rf"--conf spark\.dynamicAllocation\.{kind}Executors=(\d+)(?: |$)", spark_parameters
    )
    return int(count)


def test_every_accepted_limit_lets_emr_start_the_driver_and_the_first_executors() -> None:
    start_settings = _read_start_settings("default")
    smallest_limits: dict[int, tuple[int, int]] = {}
    for vcpu in _range_of("maximum_vcpu"):
        for memory_gb in _range_of("maximum_memory_gb"):
            maximum = count_executors_within(vcpu, memory_gb)
            smallest_vcpu, smallest_memory_gb = smallest_limits.get(maximum, (vcpu, memory_gb))
            smallest_limits[maximum] = (
                min(vcpu, smallest_vcpu),
                min(memory_gb, smallest_memory_gb),
            )
    assert min(smallest_limits) == 3
    for maximum, (vcpu, memory_gb) in smallest_limits.items():
        parameters = format_spark_parameters(replace(start_settings, maximum_executors=maximum))
        initial = _read_executor_count(parameters, "initial")
        assert _read_executor_count(parameters, "min") <= initial
        assert initial <= _read_executor_count(parameters, "max") == maximum
        assert (1 + initial) * DEFAULT_SPARK_WORKER.vcpu <= vcpu
        assert (1 + initial) * DEFAULT_SPARK_WORKER.memory_gb <= memory_gb


def test_nightly_run_starts_with_one_executor_and_keeps_at_least_one() -> None:
    parameters = format_spark_parameters(_read_start_settings("default"))
    assert [_read_executor_count(parameters, kind) for kind in ("initial", "min")] == [1, 1]
    assert "--conf spark.executor.instances=1 " in parameters


def test_cloud_assembly_contains_the_nightly_jobs_modules_and_packages() -> None:
    shipped = {path.suffix: path for path in whole_assembly().glob("asset.*") if path.is_file()}
    assert set(shipped) == {".py", ".tgz"}
    assert shipped[".py"].read_text() == emr.ENTRY_POINT_SCRIPT
    assert shipped[".tgz"].read_bytes() == emr.build_archive(LAMBDA_PLATFORM_OPTIONS).read_bytes()
    (modules,) = (path.parent for path in whole_assembly().glob("asset.*/analytics"))
    assert {path.name for path in modules.iterdir()} == {"analytics", "mendq"}
