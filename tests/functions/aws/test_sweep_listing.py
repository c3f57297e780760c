"""A listing that fails: what is known is swept, and the next sweep tries again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from functions.aws.errors import FactsUnavailable
from functions.aws.managed_queues import managed_queues
from functions.catalogue.dead_letters_expire_first import DEAD_LETTERS_EXPIRE_FIRST
from tests.functions.aws.sweeping import Sweeping, an_hour_on, sweeping
from tests.functions.aws.test_sweep_round import dead_letters

SYMPTOMS = [DEAD_LETTERS_EXPIRE_FIRST]
Answer = tuple[Any, dict[str, Any]]


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        made.account.settings = replace(made.account.settings, queues=("orders*",))
        an_hour_on(made.account)
        yield made


class _Refused:
    status_code = 403


def _fail(swept: Sweeping, service: str = "sqs", name: str = "ListQueues") -> Callable[[], None]:
    """Until the answer is called."""

    def answer(model: Any, **_: Any) -> Answer | None:
        if model.name != name:
            return None
        error = {"Code": "AccessDenied", "Message": "not you"}
        return _Refused(), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}

    events = getattr(swept.account.clients, service).meta.events
    handler = cast("Callable[..., None]", answer)
    events.register_first("before-call", handler)
    return lambda: events.unregister("before-call", handler)


def test_tagged_queues_are_swept_where_a_prefix_cannot_be_listed(swept: Sweeping) -> None:
    queue = dead_letters(swept, "tagged")
    _fail(swept)
    done = swept.sweep(SYMPTOMS)
    assert done is not None
    assert [(each, type(error)) for each, error in done.failed.items()] == [
        ("orders*", FactsUnavailable)
    ]
    assert "ListQueues" in str(done.failed["orders*"])
    assert queue in {arn for arn, _ in swept.named()}
    document = swept.findings()
    assert (document["managed"], document["managed_whole"]) == ([queue], False)


def test_whoever_needs_all_of_them_is_told_that_they_are_not_known(swept: Sweeping) -> None:
    dead_letters(swept, "tagged")
    clients, settings = swept.account.clients, swept.settings()
    assert managed_queues(clients, settings.account, settings.consent)
    _fail(swept)
    with pytest.raises(FactsUnavailable, match="orders"):
        managed_queues(clients, settings.account, settings.consent)


@pytest.mark.parametrize("tag", [None, "heal"])
def test_a_quarantine_is_left_out_although_the_prefix_fits_it(
    swept: Sweeping, tag: str | None
) -> None:
    """Else it would get a dead-letter queue, and heal and redrive might write to it."""
    source = swept.account.queue("orders", tag=tag)
    for name in ("orders-quarantine", "orders-quarantine.fifo"):
        fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        swept.account.queue(name, tag=tag, **fifo)
    settings = swept.settings()
    listed = managed_queues(swept.account.clients, settings.account, settings.consent)
    assert [each.queue_arn for each in listed] == [source]
    done = swept.sweep()
    assert done is not None
    assert done.queues == 1
    assert {arn for arn, _ in swept.named()} <= {source}


@pytest.mark.parametrize(("service", "call"), [("sqs", "ListQueues"), ("tagging", "GetResources")])
def test_a_round_that_fails_is_begun_again_by_the_next_sweep(
    swept: Sweeping, service: str, call: str
) -> None:
    dead_letters(swept, tag=None)
    mend = _fail(swept, service, call)
    with pytest.raises(FactsUnavailable):
        swept.sweep(SYMPTOMS)
    mend()
    swept.account.later(minutes=10)
    done = swept.sweep(SYMPTOMS)
    assert done is not None
    assert done.queues
    assert swept.named()
    swept.account.later(minutes=10)
    assert swept.sweep(SYMPTOMS) is None, "the hour's round is done"


def test_a_ledger_that_fails_as_well_does_not_hide_why_the_round_failed(swept: Sweeping) -> None:
    def then_the_ledger_too(model: Any, **_: Any) -> None:
        if model.name == "ListQueues":
            _fail(swept, "dynamodb", "UpdateItem")

    _fail(swept)
    swept.account.clients.sqs.meta.events.register_first("before-call", then_the_ledger_too)
    with pytest.raises(FactsUnavailable, match="ListQueues"):
        swept.sweep(SYMPTOMS)
