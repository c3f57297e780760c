from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError, EndpointConnectionError

from cli.doctor.check import Check, Status, guarded
from cli.exit_codes import Stopped


def _denied(message: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "DescribeTrails")


def _raising(error: Exception) -> Iterator[Check]:
    yield Check("before", Status.OK, "")
    raise error


def test_what_was_found_before_an_error_stays() -> None:
    error = EndpointConnectionError(endpoint_url="http://nowhere")
    before, after = guarded("trails", lambda: _raising(error))
    assert (before.status, after.status) == (Status.OK, Status.UNKNOWN)


def test_a_refusal_names_the_action_that_is_missing() -> None:
    message = "User: x is not authorized to perform: cloudtrail:DescribeTrails because no policy"
    *_, unknown = guarded("trails", lambda: _raising(_denied(message)))
    assert unknown.status is Status.UNKNOWN
    assert unknown.cure == "allow cloudtrail:DescribeTrails"


def test_a_refusal_that_names_no_action_names_the_call() -> None:
    *_, unknown = guarded("trails", lambda: _raising(_denied("no")))
    assert "DescribeTrails" in unknown.cure


def test_an_older_stack_is_unknown_not_an_end() -> None:
    *_, unknown = guarded("life", lambda: _raising(Stopped("no output FollowUpFunction")))
    assert unknown.status is Status.UNKNOWN
