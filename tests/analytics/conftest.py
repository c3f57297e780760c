"""Fixtures of the nightly job's tests. They share one Spark, which starts slowly."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.session import start_session
from tests.analytics.builders import NightlyFolders

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark 3.5 leaves the sockets of `collect` to the garbage collector."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def _no_socket_is_left_to_other_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" not in request.fixturenames:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Interpreted plans: compiling them takes longer than a handful of rows."""
    started = start_session()
    started.conf.set("spark.sql.codegen.wholeStage", value=False)
    started.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield started
    started.stop()


@pytest.fixture
def account(tmp_path: Path) -> NightlyFolders:
    return NightlyFolders(tmp_path)
