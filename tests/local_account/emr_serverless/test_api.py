"""StartJobRun, ListJobRuns and GetJobRun, as the service model has them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from local_account.emr_serverless.api import Request
from tests.local_account.emr_serverless.runs import PROPERTIES, ROLE, Emr


@pytest.fixture
def emr() -> Emr:
    return Emr()


@pytest.mark.parametrize(
    ("over", "about"),
    [
        ({"clientToken": ""}, "clientToken"),
        ({"clientToken": "2026-11-21T02:00:00Z"}, "clientToken"),
        ({"clientToken": "x" * 65}, "clientToken"),
        ({"executionRoleArn": "night"}, "executionRoleArn"),
        ({"jobDriver": {}}, "entryPoint"),
        ({"jobDriver": {"sparkSubmit": {"entryPoint": ""}}}, "entryPoint"),
    ],
)
def test_what_the_model_does_not_allow_starts_nothing(
    emr: Emr, over: dict[str, Any], about: str
) -> None:
    status, body = emr.start(**over)
    assert (status, about in body["message"]) == (400, True)
    assert (emr.begun, emr.told) == ([], [])


def test_a_role_that_the_caller_may_not_pass_starts_nothing(emr: Emr) -> None:
    request = b'{"clientToken": "t", "executionRoleArn": "%b"}' % ROLE.encode()
    status, body = emr.call("POST", body=request, refuse_role=lambda role: f"no {role}")
    assert (status, body) == (403, {"message": f"no {ROLE}"})
    assert emr.begun == []


@pytest.mark.parametrize(
    ("method", "path", "more", "expected"),
    [
        ("GET", "", {"application": "00none"}, 404),
        ("GET", "/00none", {}, 404),
        ("POST", "", {"application": "00none"}, 404),
        ("POST", "", {"body": b"<xml>"}, 400),
        ("DELETE", "/00none", {}, 400),
        ("GET", "", {"query": {"states": ["RUNNING", "ASLEEP"]}}, 400),
    ],
)
def test_what_is_not_there_is_an_error(
    emr: Emr, method: str, path: str, more: dict[str, Any], expected: int
) -> None:
    assert emr.call(method, path, **more)[0] == expected


def test_an_operation_that_is_not_emulated_says_so(emr: Emr) -> None:
    status, headers, body = emr.api.answer(Request("GET", "/applications"))
    assert (status, headers["x-amzn-errortype"]) == (400, "ValidationException")
    assert b"not emulated" in body


def test_one_token_is_one_run(emr: Emr) -> None:
    _, first = emr.start()
    assert emr.start() == (200, first)
    _, other = emr.start(clientToken="t-2")
    assert other["jobRunId"] != first["jobRunId"]
    assert [run.id for run in emr.begun] == [first["jobRunId"], other["jobRunId"]]


def test_a_token_that_was_used_for_another_run_is_a_conflict(emr: Emr) -> None:
    emr.start()
    status, body = emr.start(name="another")
    assert (status, "t-1" in body["message"]) == (409, True)
    assert len(emr.begun) == 1


def test_the_same_token_serves_another_application(emr: Emr) -> None:
    other, _ = emr.applications.resource_handler["create"]("B", PROPERTIES, "S")
    emr.start()
    body = emr.api.answer(Request("GET", f"/applications/{other}/jobruns"))[2]
    assert body == b'{"jobRuns": []}'


def test_runs_are_listed_by_state_and_page(emr: Emr) -> None:
    for token in ("a", "b", "c"):
        emr.start(clientToken=token, name=f"night-{token}")
    emr.runs.move(emr.begun[0], "RUNNING")
    emr.runs.move(emr.begun[1], "SUCCESS")
    active = {"states": ["SUBMITTED", "RUNNING"]}
    _, listed = emr.call("GET", query=active)
    assert {run["name"] for run in listed["jobRuns"]} == {"night-a", "night-c"}
    _, page = emr.call("GET", query={**active, "maxResults": ["1"]})
    _, rest = emr.call("GET", query={**active, "nextToken": [page["nextToken"]]})
    assert page["jobRuns"] + rest["jobRuns"] == listed["jobRuns"]
    assert "nextToken" not in rest


def test_a_run_is_described_as_it_was_asked_for(emr: Emr) -> None:
    _, started = emr.start(name="night-1", executionTimeoutMinutes=3)
    _, body = emr.call("GET", f"/{started['jobRunId']}")
    run = body["jobRun"]
    assert run["arn"] == started["arn"] == f"{emr.arn}/jobruns/{started['jobRunId']}"
    assert (run["state"], run["name"], run["executionRole"]) == ("SUBMITTED", "night-1", ROLE)
    assert (run["createdBy"], run["executionTimeoutMinutes"]) == ("arn:caller", 3)
    assert run["jobDriver"]["sparkSubmit"]["entryPointArguments"] == ["x"]
    assert re.fullmatch(r"[0-9a-z]+", run["jobRunId"])


def test_every_state_is_told_and_the_last_one_stays(emr: Emr) -> None:
    emr.start()
    (run,) = emr.begun
    emr.runs.move(run, "RUNNING")
    emr.runs.move(run, "FAILED", "x" * 300)
    emr.runs.move(run, "SUCCESS")
    assert (run.state, run.details) == ("FAILED", "x" * 256)
    assert emr.told == [("SUBMITTED", None), ("RUNNING", "SUBMITTED"), ("FAILED", "RUNNING")]


@pytest.mark.parametrize("missing", ["ReleaseLabel", "Type"])
def test_an_application_needs_its_release_and_its_type(emr: Emr, missing: str) -> None:
    properties = {name: value for name, value in PROPERTIES.items() if name != missing}
    with pytest.raises(ValueError, match=missing):
        emr.applications.resource_handler["create"]("A", properties, "S")


def test_a_deleted_application_takes_no_run(emr: Emr) -> None:
    emr.applications.resource_handler["delete"](emr.id, PROPERTIES)
    assert emr.start()[0] == 404
