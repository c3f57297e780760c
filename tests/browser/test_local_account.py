"""A web page that its reader's browser shows while the local account runs beside it."""

from __future__ import annotations

import base64
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.browser.chromium import Chromium
from tests.local_account.conftest import TINY

pytestmark = pytest.mark.account
FUNCTIONS = "/2015-03-31/functions"
# What JSON looks like in a form of type text/plain: one field, whose name and value it is.
FORM = """
<form method=post enctype=text/plain action='{url}' target=frame>
<input name='{start}' value='{end}'></form><iframe name=frame></iframe>
"""
ASK = """
(async () => {{
  const ask = async (path, options) => {{
    try {{
      const answer = await fetch({url} + path, options);
      return answer.type === "opaque" ? "not shown" : await answer.text();
    }} catch (error) {{ return "not shown"; }}
  }};
  const image = path => new Promise(done => {{
    const shown = new Image();
    shown.onload = shown.onerror = done;
    shown.src = {url} + path;
  }});
  const function_ = JSON.stringify({function});
  // MiniStack takes whoever calls himself `test` for the root user, and asks for no signature.
  const headers = {{
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20261110/us-east-1/lambda/aws4_request, "
      + "SignedHeaders=host, Signature=0",
  }};
  const answers = [
    await ask({functions}, {{method: "POST", headers, body: function_}}),
    await ask({functions} + "/" + {existing} + "/invocations",
              {{method: "POST", headers, body: "{{}}"}}),
    await ask({functions} + "/", {{headers}}),
    await ask({functions}, {{method: "POST", mode: "no-cors", body: function_}}),
    await ask({functions} + "/" + {existing} + "/invocations",
              {{method: "POST", mode: "no-cors", body: "{{}}"}}),
    await ask({functions} + "/"),
    await ask("/_mendq/account"),
    await ask("/_mendq/access-analyzer",
              {{method: "POST", mode: "no-cors", body: '{{"result": "PASS"}}'}}),
    await ask("/?Action=CreateQueue&QueueName=fetched", {{mode: "no-cors"}}),
  ];
  await image("/?Action=CreateQueue&QueueName=shown");
  const loaded = new Promise(done => document.querySelector("iframe").onload = done);
  document.querySelector("form").submit();
  await loaded;
  return answers;
}})()
"""


@pytest.fixture(scope="module")
def account() -> Iterator[LocalAccount]:
    with LocalAccount(options=("--assembly", str(TINY))) as running:
        yield running


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page of another origin; a test fills it by its script."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_origin_makes_nothing_and_reads_nothing(
    account: LocalAccount, page: str, browser: Chromium
) -> None:
    lambdas, logs, sqs = map(account.client, ("lambda", "logs", "sqs"))
    queues = sqs.list_queues()["QueueUrls"]
    (existing,) = lambdas.list_functions()["Functions"]
    roles = account.client("iam").list_roles()["Roles"]
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return 'as the developer'")
    function = {
        "FunctionName": "stranger",
        "Runtime": "python3.13",
        "Handler": "index.handler",
        "Role": roles[0]["Arn"],
        "Code": {"ZipFile": base64.b64encode(code.getvalue()).decode()},
    }
    posted = json.dumps({"Description": "=", **function, "FunctionName": "posted"})
    start, _, end = posted.partition("=")
    browser.visit(page)
    browser.evaluate(
        f"document.body.innerHTML = {json.dumps(FORM)}"
        f".replace('{{url}}', {json.dumps(account.endpoint_url + FUNCTIONS)})"
        f".replace('{{start}}', {json.dumps(start)}).replace('{{end}}', {json.dumps(end)})"
    )
    given = {
        "url": account.endpoint_url,
        "function": function,
        "functions": FUNCTIONS,
        "existing": existing["FunctionName"],
    }
    ask = ASK.format(**{name: json.dumps(value) for name, value in given.items()})
    assert set(browser.evaluate(ask)) == {"not shown"}
    made = [each["FunctionName"] for each in lambdas.list_functions()["Functions"]]
    assert made == [existing["FunctionName"]]
    assert sqs.list_queues()["QueueUrls"] == queues
    assert logs.describe_log_groups()["logGroups"] == []  # nobody invoked it


def test_its_developer_may_do_what_no_page_may(account: LocalAccount) -> None:
    """The same calls, signed: what refused them above was that nobody had signed them."""
    sqs = account.client("sqs")
    url = sqs.create_queue(QueueName="mine")["QueueUrl"]
    assert url in sqs.list_queues()["QueueUrls"]
    sqs.delete_queue(QueueUrl=url)
    assert "TLS" in " ".join(account.not_emulated)
