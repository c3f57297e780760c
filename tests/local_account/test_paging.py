"""Cases of the deployed Lambdas as PagerDuty's incidents, through the account's own EventBridge.

The rules are those that the stack has where the settings name PagerDuty; a server of this process
stands in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.infra.pagerduty import ROUTING_KEY, PagerDutyService
from tests.infra.synthesized import template_of
from tests.local_account.heal_role import remove_action_from_heal_role
from tests.local_account.mendq_here import mendq_here, wait_for_case
from tests.local_account.queues import eventually, fail_late, new_queue

pytestmark = pytest.mark.account


@contextmanager
def _listen(receiver: PagerDutyService) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.receive(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v2/enqueue"
        server.shutdown()


@contextmanager
def _connect_paging(account: LocalAccount, url: str) -> Iterator[None]:
    """The stack's two rules, with the destination where the server listens."""
    events: Any = account.client("events")
    authorized = template_of("named").only("AWS::Events::Connection")["AuthParameters"]
    authorized["InvocationHttpParameters"]["BodyParameters"][0]["Value"] = ROUTING_KEY
    connection = events.create_connection(
        Name="paging", AuthorizationType="API_KEY", AuthParameters=authorized
    )
    destination = events.create_api_destination(
        Name="paging",
        ConnectionArn=connection["ConnectionArn"],
        InvocationEndpoint=url,
        HttpMethod="POST",
    )
    rules = template_of("named").all("AWS::Events::Rule")
    mine = {name: rule["Properties"] for name, rule in rules.items() if name.startswith("PagerD")}
    for name, rule in mine.items():
        (target,) = rule["Targets"]
        aimed = {"Id": "1", "Arn": destination["ApiDestinationArn"]}
        events.put_rule(Name=name, EventPattern=json.dumps(rule["EventPattern"]))
        transformer = {"InputTransformer": target["InputTransformer"]}
        events.put_targets(Rule=name, Targets=[aimed | transformer])
    try:
        yield
    finally:
        for name in mine:
            events.remove_targets(Rule=name, Ids=["1"])
            events.delete_rule(Name=name)


def test_pagerduty_gets_one_incident_per_case_and_resolves_only_the_closed_one(
    account: LocalAccount,
) -> None:
    receiver = PagerDutyService()
    with _listen(receiver) as url, _connect_paging(account, url):
        tags = {"mendq": "heal"}
        queues = [new_queue(account, fifo=True, tags=tags, VisibilityTimeout="2") for _ in range(2)]
        with remove_action_from_heal_role(account, "sqs:SetQueueAttributes"):
            for queue in queues:
                fail_late(queue, times=4)
            first, second = (wait_for_case(account, queue, "escalated") for queue in queues)
        eventually(lambda: receiver.open_incidents.keys() == {first, second})
        assert mendq_here(account, "close", first, "--yes").exit_code == 0
        eventually(lambda: receiver.resolved_keys == [first])
    assert [*receiver.open_incidents] == [second]
