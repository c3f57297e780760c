"""A web page that its reader's browser shows while the local account runs beside it.

What its developer may do all the same, `tests/local_account/test_strangers.py` shows.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from local_account.process import LocalAccount
from tests.browser.chromium import Chromium
from tests.local_account.accounts import TINY_ASSEMBLY

pytestmark = pytest.mark.account


@pytest.fixture(scope="module")
def account() -> Iterator[LocalAccount]:
    with LocalAccount(options=("--assembly", str(TINY_ASSEMBLY))) as running:
        yield running


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page of another origin."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(Path(__file__).parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/stranger.html"
        server.shutdown()


def test_web_page_of_another_origin_cannot_call_or_read_the_local_account(
    account: LocalAccount, page: str, browser: Chromium
) -> None:
    lambdas, logs, sqs = map(account.client, ("lambda", "logs", "sqs"))
    queues = sqs.list_queues()["QueueUrls"]
    (existing,) = lambdas.list_functions()["Functions"]
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return 'as the developer'")
    stranger = {name: existing[name] for name in ("Runtime", "Handler", "Role")}
    stranger["FunctionName"] = "stranger"
    stranger["Code"] = {"ZipFile": base64.b64encode(code.getvalue()).decode()}
    browser.visit(page)
    given = map(json.dumps, (account.endpoint_url, existing["FunctionName"], stranger))
    answers = browser.evaluate(f"attack({', '.join(given)})")
    assert answers == ["not shown"] * 9
    assert [function["FunctionName"] for function in lambdas.list_functions()["Functions"]] == [
        existing["FunctionName"]
    ]
    assert sqs.list_queues()["QueueUrls"] == queues
    assert logs.describe_log_groups()["logGroups"] == [], "nobody invoked it"
