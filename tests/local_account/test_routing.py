"""Calls of services that the account adds to MiniStack find their way without a search."""

from __future__ import annotations

import ministack.app
import pytest
from ministack.core import iam_actions, router
from ministack.services.cloudformation import provisioners

from local_account import permissions
from local_account.emr_serverless import api


@pytest.mark.parametrize("service", [api.SERVICE, permissions.ANALYZER])
def test_an_added_service_is_routed_without_loading_every_model(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search takes seconds on the event loop: calls of Lambdas would time out meanwhile."""
    for owner, name in (
        (ministack.app, "SERVICE_HANDLERS"),
        (router, "SERVICE_PATTERNS"),
        (iam_actions, "SERVICE_TO_IAM_NAMESPACE"),
        (iam_actions, "_BOTOCORE_SERVICE_MAP"),
        (provisioners, "_RESOURCE_HANDLERS"),
    ):
        monkeypatch.setattr(owner, name, dict(getattr(owner, name)))
    monkeypatch.setattr(iam_actions, "extract_resource_arn", iam_actions.extract_resource_arn)
    searched: list[str] = []
    monkeypatch.setattr(router, "_is_aws_service_name", searched.append)
    api.EmrServerless(lambda _run: None).install()
    permissions.AccessAnalyzer().install()
    scope = f"test/20261122/us-east-1/{service}/aws4_request"
    headers = {"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host"}
    assert router.detect_service("GET", "/any", headers, {}) == service
    assert not searched
