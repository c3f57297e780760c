"""Test that `mendq explain` reads records in each form in which AWS's tools write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.cli.look.explain import explain_record
from mendq.cli.look.record_formats import RecordEntry, find_record_entries
from mendq.model.failed_call import MAXIMUM_EVENT_BYTES, UnreadableRecord
from tests.cli.commands import explained_record

pytestmark = pytest.mark.usefixtures("no_account")
RECORD: dict[str, Any] = {
    **explained_record.RECORD,
    "userIdentity": {
        "type": "AssumedRole",
        "principalId": "AROAEXAMPLE:orders",
        "arn": "arn:aws:sts::123456789012:assumed-role/orders-worker/orders",
        "accountId": "123456789012",
        "sessionContext": {
            "sessionIssuer": {"arn": "arn:aws:iam::123456789012:role/app/orders-worker"},
            "attributes": {"creationDate": "2026-11-16T08:00:00Z", "mfaAuthenticated": "false"},
        },
    },
}
SUCCEEDED = {key: value for key, value in RECORD.items() if not key.startswith("error")}
ENVELOPE = {"detail-type": "AWS API Call via CloudTrail", "source": "aws.sqs", "detail": RECORD}
ENTRY_TOO_DEEP = "[" * 100_000 + "]" * 100_000


def make_lookup_event(record: Mapping[str, Any] | str = RECORD) -> dict[str, Any]:
    """Make an event as `aws cloudtrail lookup-events` prints it."""
    return {
        "EventId": RECORD["eventID"],
        "EventName": RECORD["eventName"],
        "EventSource": "sqs.amazonaws.com",
        "Username": "orders",
        "Resources": [],
        "CloudTrailEvent": record if isinstance(record, str) else json.dumps(record),
    }


def make_map_text(value: object) -> str:
    """Write a value as CloudTrail Lake prints structures: without quotes."""
    if isinstance(value, Mapping):
        pairs = (f"{key}={make_map_text(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(make_map_text, value)) + "]"
    return "null" if value is None else str(value)


def make_columns(**fields: Any) -> dict[str, Any]:
    """Make the columns of a row of CloudTrail Lake, with names in lower case."""
    record = {**RECORD, **fields}
    columns = {
        name.lower(): make_map_text(value) if isinstance(value, Mapping | list) else value
        for name, value in record.items()
        if value is None or isinstance(value, str | Mapping | list)
    }
    return {**columns, "eventtime": RECORD["eventTime"].replace("T", " ").rstrip("Z") + ".000"}


def make_row(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{name: value} for name, value in columns.items()]


def explain(content: str | bytes) -> Any:
    result = CliRunner().invoke(app, ["explain", "-", "--json"], input=content)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def read_explained(content: str | bytes) -> list[dict[str, Any]]:
    """Return what explain says of each record, without their places in the file."""
    explained = explain(content)["explained"]
    return [{key: value for key, value in one.items() if key != "place"} for one in explained]


def list_unreadable_places(content: str | bytes) -> dict[str, str]:
    return {
        entry["place"]: entry["unreadable"]
        for entry in explain(content)["explained"]
        if entry["unreadable"]
    }


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"Events": [make_lookup_event(), make_lookup_event(SUCCEEDED)]}),
        json.dumps([make_lookup_event(), make_lookup_event(SUCCEEDED)]),
        json.dumps([json.dumps(RECORD), json.dumps(SUCCEEDED)]),
        json.dumps({"QueryResultRows": [make_row({"eventJson": json.dumps(RECORD)})]}),
        json.dumps({"QueryResultRows": [[{"eventjson": json.dumps(RECORD)}, {"n": "1"}]]}),
        json.dumps([[{"eventJson": json.dumps(RECORD)}], [{"eventJson": json.dumps(SUCCEEDED)}]]),
        json.dumps([{"eventJson": json.dumps(RECORD)}, {"eventJson": json.dumps(SUCCEEDED)}]),
        json.dumps([ENVELOPE, {**ENVELOPE, "detail": SUCCEEDED}]),
        "\n".join(map(json.dumps, (RECORD, SUCCEEDED))) + "\n",
        "\r\n".join(map(json.dumps, (ENVELOPE, {**ENVELOPE, "detail": SUCCEEDED}))),
        "\n".join(map(json.dumps, (make_lookup_event(), make_lookup_event(SUCCEEDED)))),
        "\n".join(json.dumps(record, indent=4) for record in (RECORD, SUCCEEDED)),
        "\t".join(map(json.dumps, (RECORD, SUCCEEDED))),
        "\n".join(json.dumps({"Records": [record]}) for record in (SUCCEEDED, RECORD)),
        json.dumps({"Records": [RECORD]}).encode("utf-16"),
        "\n".join(map(json.dumps, (RECORD, SUCCEEDED))).encode("utf-8-sig"),
    ],
    ids=[
        *("lookup", "lookup_list", "texts", "lake_json", "lake_json_lower", "lake_rows"),
        *("lake_objects", "envelopes", "lines", "envelope_lines", "lookup_lines", "documents"),
        *("tabs", "file_lines", "utf_16", "byte_order_mark"),
    ],
)
def test_explain_reads_the_same_of_a_record_in_each_form(content: str | bytes) -> None:
    assert read_explained(content) == [explain_record(RECORD)]


@pytest.mark.parametrize("name", ["CloudTrailEvent", "eventJson"])
def test_explain_of_one_record_in_a_text_explains_it_alone(name: str) -> None:
    assert explain(json.dumps({name: json.dumps(RECORD)})) == explain_record(RECORD)


@pytest.mark.parametrize("is_row", [True, False])
def test_explain_reads_lake_columns_as_the_record_itself(is_row: bool) -> None:
    columns = make_columns()
    rows = [make_row(columns) if is_row else columns]
    (explained,) = read_explained(json.dumps({"QueryResultRows": rows}))
    assert explained == explain_record(RECORD)


def test_explain_reads_queue_and_timeout_from_lake_parameters_without_resources() -> None:
    columns = make_columns(
        resources=None,
        requestParameters={
            "queueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
            "visibilityTimeout": 45,
        },
    )
    (explained,) = read_explained(json.dumps({"QueryResultRows": [make_row(columns)]}))
    assert explained["read"]["queue_arn"] == "arn:aws:sqs:us-east-1:123456789012:orders"
    assert explained["read"]["requested_visibility_seconds"] == 45


def test_explain_leaves_out_a_lake_parameter_that_a_callers_text_may_have_added() -> None:
    url = "https://sqs.us-east-1.amazonaws.com/123456789012"
    columns = make_columns(resources=None) | {
        "requestparameters": f"{{messageGroupId=a, queueUrl={url}/other, queueUrl={url}/orders}}"
    }
    (explained,) = read_explained(json.dumps({"QueryResultRows": [make_row(columns)]}))
    assert explained["read"]["queue_arn"] is None


def test_explain_reads_json_in_a_lake_column() -> None:
    columns = make_columns() | {"useridentity": json.dumps(RECORD["userIdentity"])}
    (explained,) = read_explained(json.dumps({"QueryResultRows": [make_row(columns)]}))
    assert explained["read"]["principal_arn"] == explain_record(RECORD)["read"]["principal_arn"]


def test_explain_reads_no_record_as_a_lake_row() -> None:
    without_zone = {**RECORD, "eventTime": RECORD["eventTime"].rstrip("Z")}
    assert explain(json.dumps(without_zone))["unreadable"] == "without_id_name_or_time"


@pytest.mark.parametrize(
    ("content", "places"),
    [
        (f"{json.dumps(RECORD)}\n{{broken\n\n{json.dumps(RECORD)}\n", {"line 2": "no_json"}),
        (f"{ENTRY_TOO_DEEP}\n{json.dumps(RECORD)}\n{json.dumps(RECORD)}", {"line 1": "no_json"}),
        (
            json.dumps(RECORD).encode() + b'\n{"a": "\xff"}\n' + json.dumps(RECORD).encode(),
            {"line 2": "no_json"},
        ),
        (f"{json.dumps(RECORD)}\nNaN\n{json.dumps(RECORD)}", {"line 2": "no_json"}),
        (json.dumps([RECORD, 3, RECORD]), {"[1]": "not_a_record"}),
        (
            json.dumps(
                {
                    "Events": [
                        make_lookup_event(),
                        make_lookup_event("{"),
                        make_lookup_event(ENTRY_TOO_DEEP),
                        make_lookup_event(json.dumps("x" * MAXIMUM_EVENT_BYTES)),
                        {"EventId": "1", "EventName": "SendMessage"},
                        make_lookup_event(),
                    ]
                }
            ),
            {
                "Events[1]": "no_json",
                "Events[2]": "no_json",
                "Events[3]": "too_large",
                "Events[4]": "without_record",
            },
        ),
        (
            json.dumps([RECORD, [[[[[[[[RECORD]]]]]]]], RECORD]),
            {"[1][0][0][0][0][0][0]": "nested_too_deep"},
        ),
        (
            json.dumps(RECORD, indent=1) + "\n{\n" + json.dumps(RECORD, indent=1),
            {f"line {json.dumps(RECORD, indent=1).count(chr(10)) + 2}": "no_json"},
        ),
    ],
    ids=["line", "deep_line", "bytes", "nan", "number", "lookup", "lists", "documents"],
)
def test_explain_of_a_broken_entry_names_its_place_and_reads_the_others(
    content: str | bytes, places: dict[str, str]
) -> None:
    explanation = explain(content)
    assert list_unreadable_places(content) == places
    read_count = len(explanation["explained"]) - len(places)
    assert read_count == 2
    text = CliRunner().invoke(app, ["explain", "-"], input=content).stdout
    assert all(f"{place}:\nnot read: {reason}" in text for place, reason in places.items())


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"no\nJSON\n", b'{"a":\n"b"', b"{}\n{", b"3\n4"]
)
def test_explain_of_lines_without_a_record_exits_with_2(content: bytes) -> None:
    result = CliRunner().invoke(app, ["explain", "-"], input=content)
    assert (result.exit_code, "holds no JSON" in result.stderr) == (2, True)


def test_explain_of_an_empty_list_counts_no_record() -> None:
    assert explain(b'{"Events": []}') == {"records": 0, "left_out": 0, "explained": []}


def test_lake_column_nested_too_deep_stays_a_text() -> None:
    columns = make_columns(resources=None) | {"useridentity": "{a=" * 5_000 + "1" + "}" * 5_000}
    (explained,) = read_explained(json.dumps({"QueryResultRows": [make_row(columns)]}))
    assert explained["read"]["principal_arn"] == ""


_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=12))
_TEXT_KEYS = ("CloudTrailEvent", "eventJson", "eventsource", "requestparameters", "useridentity")
_KEYS = st.sampled_from([*_TEXT_KEYS, "Records", "Events", "QueryResultRows", "detail", "x"])
_DOCUMENTS = st.recursive(
    _LEAVES | st.text(alphabet="{}[]=, ab", max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(_DOCUMENTS)
def test_record_entries_of_any_document_are_explained_without_an_error(document: object) -> None:
    for entry in find_record_entries(json.dumps(document).encode()):
        assert isinstance(entry, RecordEntry)
        explanation = explain_record(entry.record)
        is_unreadable = isinstance(entry.record, UnreadableRecord)
        assert not is_unreadable or explanation["unreadable"]


@given(st.binary(max_size=60) | st.text(alphabet='{}[]"\n1:,\t', max_size=40).map(str.encode))
def test_record_entries_of_any_bytes_are_found_or_refused_with_value_error(content: bytes) -> None:
    try:
        entries = list(find_record_entries(content))
    except ValueError:
        return
    assert all(isinstance(entry, RecordEntry) for entry in entries)
