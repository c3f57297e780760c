from __future__ import annotations

from typing import Any

import pytest

from mendq.catalogue.in_flight_limit import IN_FLIGHT_LIMIT
from mendq.catalogue.message_too_long import MESSAGE_TOO_LONG
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.cli.doctor.visibility import OUTSIDE, Trail, logged, not_logged, outside, sights, why_not

ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
OTHERS = "arn:aws:sqs:us-east-1:123456789012:others"
OF_SQS = (
    {"Field": "eventCategory", "Equals": ["Data"]},
    {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
)


def _trail(*more: dict[str, Any], base: tuple[dict[str, Any], ...] = OF_SQS) -> Trail:
    return Trail("mendq", ({"FieldSelectors": [*base, *more]},))


def _field(name: str, **operators: list[str]) -> dict[str, Any]:
    return {"Field": name, **operators}


@pytest.mark.parametrize(
    "trail",
    [
        Trail("basic", ()),
        _trail(base=(_field("eventCategory", Equals=["Management"]),)),
        _trail(base=(OF_SQS[0], _field("resources.type", Equals=["AWS::S3::Object"]))),
        _trail(_field("resources.ARN", StartsWith=[OTHERS])),
        _trail(_field("resources.ARN", NotEquals=[ORDERS])),
        _trail(_field("resources.ARN", NotStartsWith=["arn:aws:sqs:"])),
        _trail(_field("resources.ARN", EndsWith=["dlq"])),
        _trail(_field("resources.ARN", StartsWith=["arn:aws"], NotEndsWith=[".fifo"])),
        _trail(_field("eventName", Equals=["SendMessage"])),
        _trail(_field("eventName", NotEquals=["DeleteMessage"])),
        _trail(_field("eventSource", Equals=["s3.amazonaws.com"])),
    ],
)
def test_what_is_not_logged(trail: Trail) -> None:
    assert not trail.logs(ORDERS, "DeleteMessage")


@pytest.mark.parametrize(
    "trail",
    [
        _trail(),
        _trail(_field("resources.ARN", StartsWith=[OTHERS, ORDERS[:-5]])),
        _trail(_field("resources.ARN", Equals=[ORDERS])),
        _trail(_field("eventName", NotEquals=["SendMessage"])),
        _trail(_field("userIdentity.arn", NotStartsWith=["arn:aws:sts::123456789012:"])),
        _trail(_field("readOnly", Equals=["false"])),
    ],
)
def test_what_is_logged(trail: Trail) -> None:
    assert trail.logs(ORDERS, "DeleteMessage")


def test_several_trails_add_up() -> None:
    sends = _trail(_field("eventName", Equals=["SendMessage"]))
    deletes = _trail(_field("eventName", Equals=["DeleteMessage"]))
    names = ("SendMessage", "DeleteMessage", "ReceiveMessage")
    assert logged([sends, deletes], ORDERS, names) == {"SendMessage", "DeleteMessage"}


def test_a_queue_outside_is_blind_to_everything() -> None:
    trail = _trail(_field("resources.ARN", Equals=[ORDERS]))
    assert outside([trail], [ORDERS, OTHERS]) == [OTHERS]
    for each in sights([trail], [ORDERS, OTHERS]):
        on_standard_queues_alone = each.symptom == "empty_receives"
        assert ORDERS in each.visible or on_standard_queues_alone or each.is_scanned_only, each
        assert set(each.blind.items()) <= {(OTHERS, OUTSIDE)}


def test_what_only_fifo_queues_show_is_not_asked_of_others() -> None:
    (situation,) = (
        each for each in sights([], [ORDERS, OTHERS]) if each.symptom == "dedup_id_missing"
    )
    assert (situation.visible, situation.partly, list(situation.blind)) == ((), {}, [ORDERS])


def test_events_that_are_not_logged_are_named() -> None:
    deletes = _trail(_field("eventName", Equals=["DeleteMessage"]))
    why, is_blind = why_not(VISIBILITY_TIMEOUT_TOO_SHORT, [deletes], ORDERS)
    assert why is not None
    assert "ChangeMessageVisibility" in why
    assert "DeleteMessage" not in why.split(", ")
    assert not is_blind


def test_a_symptom_none_of_whose_events_are_logged_is_blind() -> None:
    lists = _trail(_field("eventName", Equals=["ListQueueTags"]))
    _, is_blind = why_not(MESSAGE_TOO_LONG, [lists], ORDERS)
    assert is_blind


def test_a_late_delete_on_a_standard_queue_answers_200() -> None:
    why, is_blind = why_not(VISIBILITY_TIMEOUT_TOO_SHORT, [_trail()], OTHERS)
    assert (why is not None, is_blind) == (True, False)
    assert why_not(IN_FLIGHT_LIMIT, [_trail()], OTHERS) == (None, False)


def test_a_trail_of_everything_shows_every_symptom_of_a_fifo_queue() -> None:
    for each in sights([_trail()], [ORDERS]):
        assert not each.partly, each
        assert not each.blind, each


def test_calls_that_no_trail_logs_are_said_by_queue() -> None:
    most = _trail(
        _field("resources.ARN", Equals=[ORDERS]), _field("eventName", NotEquals=["DeleteMessage"])
    )
    found = not_logged([most], [ORDERS, OTHERS])
    assert found[ORDERS] == {"DeleteMessage"}
    assert {"DeleteMessage", "SendMessage"} < found[OTHERS]
    assert not_logged([_trail()], [ORDERS, OTHERS]) == {}


def test_before_a_queue_is_managed_a_symptom_has_its_calls() -> None:
    only_orders = _field("resources.ARN", Equals=[ORDERS])
    lists = _trail(only_orders, _field("eventName", Equals=["ListQueueTags"]))
    sends = _trail(only_orders, _field("eventName", Equals=["SendMessage"]))
    (blind,) = (each for each in sights([lists], []) if each.symptom == "message_too_long")
    (seen,) = (each for each in sights([sends], []) if each.symptom == "message_too_long")
    assert (blind.calls_logged, seen.calls_logged) == ((), ("SendMessage",))
    assert {*blind.calls_not_logged} == {"SendMessage", *seen.calls_not_logged}
