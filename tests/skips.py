"""The reasons for which a test may be skipped if CI=true. Any other skip fails there.

A test that is skipped everywhere protects nothing, and nobody notices. So a skip is allowed only
for something that a machine may lack and that `make setup` cannot install.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping

import pytest

# The reason for a skip begins with one of these texts. Each has why it may be missing.
WHY_BY_SKIP_REASON = {
    "no browser is installed": "Debian's package of chromium cannot be installed without root",
    "npm could not install": "npm's registry is on the network",
    "npx could not fetch": "npm's registry is on the network",
    "npx aws-cdk": "npm's registry is on the network",
    "pip install": "PyPI is on the network",
    "throw 'axe-core": "npm's registry is on the network",
    "a driver takes 1 GB and an executor 2 GB": "a small machine has less memory",
    "only root may act as another user": "most people are not root on their machine",
    "there is no curl": "a container may lack curl",
}


def find_unlisted_skip(reason: str, environment: Mapping[str, str]) -> str | None:
    """Return why a test must not be skipped, None if it may be.

    Args:
        reason: The reason that pytest prints for the skip, such as `Skipped: there is no curl`.
        environment: The environment variables. Any skip is allowed unless CI is `true`.
    """
    text = reason.removeprefix("Skipped: ")
    if environment.get("CI") != "true" or text.startswith(tuple(WHY_BY_SKIP_REASON)):
        return None
    return (
        f"skipped where CI=true: {text!r}. Make the test run there, or add the reason to "
        "WHY_BY_SKIP_REASON in tests/skips.py, with why a machine may lack what the test needs"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a skip that is not listed count as a failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        problem = find_unlisted_skip(report.longrepr[2], os.environ)
        if problem is not None:
            report.outcome = "failed"
            report.longrepr = problem
    return report
