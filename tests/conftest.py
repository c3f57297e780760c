"""Settings of every test run: made-up credentials, order of the tests, parallel runs.

No test reaches a real AWS account: endpoints are local or moto's.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.loaders import Loader
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from mendq.aws.clients import CallRateLimit

# No deadline: a slow machine is no fault, and `make bench` measures speed. Derandomized: the same
# tree gets the same verdict twice. The fuzz of `make prove` tries other inputs, by seeds.
settings.register_profile(
    "mendq", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mendq")

# A hung test ends some time; no test may fail because the machine is slow.
LONG_TEST_TIMEOUT_SECONDS = 1_800

# What a worker takes that runs Spark or synthesizes a stack.
WORKER_MEMORY_BYTES = 2 * 1024**3

# The folders whose tests take longest, in the order in which they start.
_LONGEST = ("local_account", "analytics", "infra")

pytest_plugins = ["tests.skips"]

_ROOT = Path(__file__).parents[1]

_load = botocore.session.create_loader
_models: dict[Any, Any] = {}


def _loader_that_knows(search_path_string: str | None = None) -> Loader:
    """Make a loader that shares the services' models: parsing them takes longer than most tests."""
    loader = _load(search_path_string)
    vars(loader)["_cache"] = _models
    return loader


botocore.session.create_loader = _loader_that_knows

# No test waits for a call rate. A test of the rate brings its own clock.
CallRateLimit.__init__.__defaults__ = (lambda _: None, time.monotonic)


def pytest_configure() -> None:
    """Accept interrupts again: a shell lets commands that it starts with `&` ignore them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected: imported modules are no garbage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest folders first, and give `long` tests more time.

    A worker that begins with a slow file at the end would work alone. A fixture of a long test
    builds and deploys stacks, which takes minutes on a busy machine.
    """
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_TEST_TIMEOUT_SECONDS))
    items.sort(key=lambda item: [f"tests/{each}/" not in item.nodeid for each in _LONGEST])


class _SharedProcesses(LoadFileScheduling):  # type: ignore[misc]
    """Send files whose tests share a process that starts slowly to the same worker.

    Each story of the demo gets a worker of its own: it waits more than it works.
    """

    def _split_scope(self, nodeid: str) -> str:
        is_story = "/demo/test_demo.py::" in nodeid
        return nodeid if is_story else _find_shared_scope(str(super()._split_scope(nodeid)))


@cache
def _find_shared_scope(file: str) -> str:
    """Return the name of what the file's tests share with other files, or the file."""
    if file.endswith("test_nightly_grants.py"):
        return "analytics"  # Spark
    # In each process, the first stack takes seconds longer to synthesize than later ones.
    if found := re.match(r"tests/(analytics|browser|docs|infra)/", file):
        return found[1]
    text = (_ROOT / file).read_text()
    if "tiny: LocalAccount" in text:
        return "tiny"
    has_its_own = "with LocalAccount(" in text
    asks = re.search(r"\(\s*account: LocalAccount", text)
    return "account" if asks and not has_its_own else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers of `-n auto`.

    One more than there are processors, because some tests wait for processes of their own, but not
    more than the memory allows.
    """
    processors = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(0))
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(2, min(1 + processors, memory_bytes // WORKER_MEMORY_BYTES))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return _SharedProcesses(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Exclude imported modules from garbage collection, which would take seconds a minute."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def _made_up_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove credentials and region, so that any call to AWS fails at once."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
