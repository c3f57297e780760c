"""No test reaches a real account: credentials are made up, endpoints are local or moto's."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# The machine's speed is nobody's bug here; `make bench` measures.
settings.register_profile("mendq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mendq")


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
