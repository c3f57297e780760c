"""A listing that fails: what is known is scanned, and the next scan tries again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from mendq.aws.errors import FactsUnavailable
from mendq.aws.queue import managed_queues
from mendq.catalogue.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from tests.scan.scanning import Scanning, an_hour_on, scanning
from tests.scan.test_scan import dlq

SYMPTOMS = [DLQ_RETENTION_TOO_SHORT]
Answer = tuple[Any, dict[str, Any]]


@pytest.fixture
def scanned() -> Iterator[Scanning]:
    with scanning() as made:
        made.account.settings = replace(made.account.settings, queues=("orders*",))
        an_hour_on(made.account)
        yield made


class _Refused:
    status_code = 403


def _fail(scanned: Scanning, service: str = "sqs", name: str = "ListQueues") -> Callable[[], None]:
    """Until the answer is called."""

    def answer(model: Any, **_: Any) -> Answer | None:
        if model.name != name:
            return None
        error = {"Code": "AccessDenied", "Message": "not you"}
        return _Refused(), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}

    events = getattr(scanned.account.clients, service).meta.events
    handler = cast("Callable[..., None]", answer)
    events.register_first("before-call", handler)
    return lambda: events.unregister("before-call", handler)


def test_tagged_queues_are_scanned_where_a_prefix_cannot_be_listed(scanned: Scanning) -> None:
    queue = dlq(scanned, "tagged")
    _fail(scanned)
    done = scanned.done(SYMPTOMS)
    assert [(each, type(error)) for each, error in done.failed.items()] == [
        ("orders*", FactsUnavailable)
    ]
    assert "ListQueues" in str(done.failed["orders*"])
    assert queue in {arn for arn, _ in scanned.named()}
    document = scanned.findings()
    assert (document["managed"], document["managed_whole"]) == ([queue], False)


def test_whoever_needs_all_of_them_is_told_that_they_are_not_known(scanned: Scanning) -> None:
    dlq(scanned, "tagged")
    clients, settings = scanned.account.clients, scanned.settings()
    assert managed_queues(clients, settings.account, settings.consent)
    _fail(scanned)
    with pytest.raises(FactsUnavailable, match="orders"):
        managed_queues(clients, settings.account, settings.consent)


@pytest.mark.parametrize("tag", [None, "heal"])
def test_a_quarantine_is_left_out_although_the_prefix_fits_it(
    scanned: Scanning, tag: str | None
) -> None:
    """Else it would get a DLQ, and heal and redrive might write to it."""
    source = scanned.account.queue("orders", tag=tag)
    for name in ("orders-quarantine", "orders-quarantine.fifo"):
        fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        scanned.account.queue(name, tag=tag, **fifo)
    settings = scanned.settings()
    listed = managed_queues(scanned.account.clients, settings.account, settings.consent)
    assert [each.queue_arn for each in listed] == [source]
    done = scanned.done()
    assert done.queues == 1
    assert {arn for arn, _ in scanned.named()} <= {source}


@pytest.mark.parametrize(("service", "call"), [("sqs", "ListQueues"), ("tagging", "GetResources")])
def test_a_round_that_fails_is_begun_again_by_the_next_scan(
    scanned: Scanning, service: str, call: str
) -> None:
    dlq(scanned, tag=None)
    fix = _fail(scanned, service, call)
    with pytest.raises(FactsUnavailable):
        scanned.scan(SYMPTOMS)
    fix()
    scanned.account.later(minutes=10)
    done = scanned.done(SYMPTOMS)
    assert done.queues
    assert scanned.named()
    scanned.account.later(minutes=10)
    assert scanned.scan(SYMPTOMS) is None, "the hour's round is done"


def test_a_case_store_that_fails_as_well_does_not_hide_why_the_round_failed(
    scanned: Scanning,
) -> None:
    def then_the_case_store_too(model: Any, **_: Any) -> None:
        if model.name == "ListQueues":
            _fail(scanned, "dynamodb", "UpdateItem")

    _fail(scanned)
    scanned.account.clients.sqs.meta.events.register_first("before-call", then_the_case_store_too)
    with pytest.raises(FactsUnavailable, match="ListQueues"):
        scanned.scan(SYMPTOMS)
