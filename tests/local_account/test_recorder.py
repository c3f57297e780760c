"""The recorder alone on the local account, with records in three shapes, as none is known of AWS.

The account delivers its own; the other two are made of them on the way to the recorder.
"""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ReadTimeoutError
from typer.testing import CliRunner

from local_account.process import LocalAccount
from local_account.where import ACCOUNT, REGION
from mendq.aws.operator_session import make_operator_session
from mendq.cli import account as cli_account
from mendq.cli.app import app
from mendq.cli.deploy import record_failed_calls as recorder
from mendq.cli.permissions import make_record_policy
from tests.cli.account_resources import list_account_resources
from tests.local_account.callers import session_of, user
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import PATIENCE_SECONDS

pytestmark = pytest.mark.account
Record = dict[str, Any]
# What SQS answers here and every shape tells.
MATCHED = {
    "denied_by_role": "access_denied",
    "denied_by_queue": "access_denied",
    "denied_by_key": "kms_denied",
    "disabled_key": "kms_key_unusable",
    "missing_queue": "queue_missing",
    "bad_parameter": "invalid_request",
    "long_message": "message_too_long",
    "late_delete": "visibility_timeout_too_short",
    "late_extension": "visibility_timeout_too_short",
}
# The queue's kind decides, so that it has to be named.
ON_A_FIFO_QUEUE = {"no_deduplication_id": "dedup_id_missing"}
NOT_FAILED = ("late_extension_standard", "failing_in_batch", "throttled")
JSON_NAMES = {
    "AWS.SimpleQueueService.NonExistentQueue": "QueueDoesNotExist",
    "KMS.AccessDeniedException": "KmsAccessDenied",
    "KMS.DisabledException": "KmsDisabled",
}


def _make_older_shape(given: Record) -> list[Record]:
    """The issuer is spelled as a session is, no resources, and codes as Java's SDK names them."""
    made = {name: value for name, value in given.items() if name != "resources"}
    if issuer := given["userIdentity"].get("sessionContext", {}).get("sessionIssuer"):
        name = issuer["arn"].partition(":role/")[2]
        arn = f"arn:aws:sts::{issuer['accountId']}:assumed-role/{name}"
        session = {
            **given["userIdentity"]["sessionContext"],
            "sessionIssuer": {**issuer, "arn": arn},
        }
        made["userIdentity"] = {**given["userIdentity"], "sessionContext": session}
    if code := given.get("errorCode"):
        bare = JSON_NAMES.get(code, code.removeprefix("AWS.SimpleQueueService."))
        made["errorCode"] = f"{bare}Exception"
    return [made]


def _make_bare_shape(given: Record) -> list[Record]:
    """Nothing of what a failed call asked; and the call of a service, which has no ARN."""
    if not given.get("errorCode"):
        return [given]
    made = {**given, "requestParameters": None, "responseElements": None}
    made.pop("resources", None)
    if "denied" not in given.get("errorMessage", "") and "role/" not in str(given["userIdentity"]):
        return [made]
    service = {"type": "AWSService", "invokedBy": "sns.amazonaws.com"}
    by_sns = {**given, "userIdentity": service, "userAgent": "sns.amazonaws.com", "requestID": "s"}
    denied = {"errorCode": "KMS.AccessDeniedException", "errorMessage": "sns may not use the key"}
    return [made, {**by_sns, **denied, "eventID": f"{given['eventID']}-sns"}]


SHAPES = {
    "as delivered": lambda given: [given],
    "older": _make_older_shape,
    "bare": _make_bare_shape,
}
LONG = ("older", "bare")


def _reshape_body(body: str, shape: Callable[[Record], list[Record]]) -> list[str]:
    if not body.startswith("{"):
        return [body]
    event = json.loads(body)
    return [json.dumps({**event, "detail": detail}) for detail in shape(event["detail"])]


def _reshape_records(session: boto3.Session, shape: Callable[[Record], list[Record]]) -> None:
    def file(parsed: Any, **_: Any) -> None:
        records = json.loads(gzip.decompress(parsed["Body"].read()))["Records"]
        made = json.dumps({"Records": [new for record in records for new in shape(record)]})
        parsed["Body"] = io.BytesIO(gzip.compress(made.encode()))

    def messages(parsed: Any, **_: Any) -> None:
        given = parsed.get("Messages", [])
        parsed["Messages"] = []
        for message in given:
            bodies = _reshape_body(message["Body"], shape)
            parsed["Messages"] += [{**message, "Body": body} for body in bodies]

    session.events.register("after-call.s3.GetObject", file)
    session.events.register("after-call.sqs.ReceiveMessage", messages)


# As it is delivered will do to see the recorder work; which shapes are read, tests/model tell.
@pytest.mark.parametrize(
    "shape", ["as delivered", *(pytest.param(shape, marks=pytest.mark.long) for shape in LONG)]
)
@pytest.mark.clock
def test_recorder_saves_each_record_and_explain_matches_the_recorded_symptom(
    account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.setattr(recorder, "POLL_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(recorder, "KEY_DISABLING_SECONDS", 0)
    monkeypatch.setattr(recorder, "BURST_CALL_COUNT", 20)  # nothing is throttled there

    def reshaped_session(*arguments: Any) -> boto3.Session:
        session = make_operator_session(*arguments)
        _reshape_records(session, SHAPES[shape])
        return session

    monkeypatch.setattr(cli_account, "make_operator_session", reshaped_session)
    before = list_account_resources(account.client)
    minutes = 0.5 if shape == "bare" else 0.25
    words = ("drill", "--record", f"{tmp_path}", "--minutes", f"{minutes}", "--yes", "--json")
    done = mendq_here(account, *words)
    ended = time.time()
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    whole_wait = ended - found["calls"][-1]["at"] > minutes * 45
    # Only there the service's call leaves a record; what did not fail comes as no event.
    assert whole_wait == (shape != "bare")
    assert (found["left"], found["refused"], list_account_resources(account.client)) == (
        {},
        {},
        before,
    )
    rows = {call["call"]: call for call in found["calls"]}
    expected = MATCHED if shape == "bare" else MATCHED | ON_A_FIFO_QUEUE
    for call, symptom in expected.items():
        ways = rows[call]["records"]
        assert {source: seen_record["matched as"] for source, seen_record in ways.items()} == {
            "trail": symptom,
            "event": symptom,
        }, call
        for seen_record in ways.values():
            assert -2 < seen_record["seconds"] < PATIENCE_SECONDS
        assert rows[call]["answer"].startswith(ways["event"]["error code"][:11]) or shape == "older"
    for call in NOT_FAILED:
        matched = {record["matched as"] for record in rows[call]["records"].values()}
        assert matched <= {"not read: not_failed"}
    _assert_places(rows, shape)
    if shape == "bare":
        first = rows["by_a_service"]["records"]["trail"]
        assert (first["error code"], first["role in"]) == ("KMS.AccessDeniedException", "")
        assert first["matched as"] in ("kms_denied", "service_cannot_use_key")
    _assert_explained(tmp_path / found["run"].removeprefix(recorder.NAME_PREFIX), rows)


def _assert_places(rows: dict[str, Any], shape: str) -> None:
    queue = {
        "as delivered": "requestParameters.queueUrl, resources.0.ARN",
        "older": "requestParameters.queueUrl",
        "bare": "",
    }
    late, refused = (rows[call]["records"]["trail"] for call in ("late_delete", "denied_by_role"))
    assert late["queue in"] == queue[shape]
    assert refused["queue in"].startswith("errorMessage")
    assert "userIdentity.arn" in late["role in"]
    assert "userIdentity.sessionContext.sessionIssuer.arn" in refused["role in"]


def _assert_explained(folder: Path, rows: dict[str, Any]) -> None:
    """By the command, what the table says; untouched, with nothing but the record in the file."""
    for row in rows.values():
        for record in row["records"].values():
            path = str(folder / record["file"])
            result = CliRunner().invoke(app, ["explain", path, "--json"])
            explained = json.loads(result.stdout)
            match = explained["symptom"] or f"not read: {explained['unreadable']}"
            assert match == record["matched as"]


def _run_as(
    account: LocalAccount, keys: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], list[str]]:
    """Run the recorder with some credentials, for seconds. Return its document and its calls."""
    for name in ("POLL_PAUSE", "VISIBILITY_WAIT", "KEY_DISABLING"):
        monkeypatch.setattr(recorder, f"{name}_SECONDS", 1 if name == "VISIBILITY_WAIT" else 0)
    monkeypatch.setattr(recorder, "BURST_CALL_COUNT", 20)
    monkeypatch.setenv("AWS_ENDPOINT_URL", account.endpoint_url)
    session = boto3.Session(**keys, region_name=REGION)  # type: ignore[arg-type]
    asked: list[str] = []
    session.events.register("before-call", lambda model, **_: asked.append(model.name))
    return recorder.clean_up_and_record(session, folder, 0.05, str, str), asked


def _record_policy() -> list[dict[str, Any]]:
    text = json.dumps(make_record_policy()).replace("REGION", REGION).replace("ACCOUNT", ACCOUNT)
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    return statements


def _own_key(account: LocalAccount, run: str) -> dict[str, Any]:
    """The run's key, as the root user sees it."""
    kms = account.client("kms")
    keys = [kms.describe_key(KeyId=key["KeyId"]) for key in kms.list_keys()["Keys"]]
    (metadata,) = [
        key["KeyMetadata"] for key in keys if run in key["KeyMetadata"].get("Description", "")
    ]
    return dict(metadata)


def test_recorder_with_the_record_policy_is_refused_nothing_and_leaves_only_a_key_pending_deletion(
    account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list_account_resources(account.client)
    _, keys = user(account, *_record_policy())
    document, _ = _run_as(account, keys, tmp_path, monkeypatch)
    assert (document["refused"], document["left"], document["left_alone"]) == ({}, {}, {})
    assert list_account_resources(account.client) == before
    assert _own_key(account, document["run"])["KeyState"] == "PendingDeletion"


def test_recorders_key_policy_names_its_user(
    account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn, keys = user(account, *_record_policy())
    document, _ = _run_as(account, keys, tmp_path, monkeypatch)
    key = _own_key(account, document["run"])
    assert arn in account.client("kms").get_key_policy(KeyId=key["KeyId"])["Policy"]


def test_recorder_that_knows_its_keys_id_does_not_list_the_accounts_keys(
    account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, keys = user(account, *_record_policy())
    _, asked = _run_as(account, keys, tmp_path, monkeypatch)
    assert "CreateKey" in asked
    assert "ListKeys" not in asked


def test_recorder_deletes_its_own_key_even_if_the_answer_to_create_key_was_lost(
    account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, keys = user(account, *_record_policy())
    send = BaseClient._make_api_call  # type: ignore[attr-defined]

    def lose_key(client: Any, operation: str, params: Any) -> Any:
        answer = send(client, operation, params)
        if operation == "CreateKey":
            raise ReadTimeoutError(endpoint_url="https://kms")
        return answer

    foreign = account.client("kms").create_key(Description="production")["KeyMetadata"]["KeyId"]
    monkeypatch.setattr(BaseClient, "_make_api_call", lose_key)
    document, asked = _run_as(account, keys, tmp_path, monkeypatch)
    assert "Read timeout" in document["refused"]["key"]
    assert (document["left"], document["left_alone"]) == ({}, {})
    assert "ListKeys" in asked
    assert _own_key(account, document["run"])["KeyState"] == "PendingDeletion"
    state = account.client("kms").describe_key(KeyId=foreign)["KeyMetadata"]["KeyState"]
    assert state == "Enabled"


@pytest.mark.parametrize("may_get_role", [True, False])
def test_recorder_as_a_role_with_a_path_needs_iam_get_role_to_create_its_key(
    account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_get_role: bool
) -> None:
    iam = account.client("iam")
    name = f"sandbox-{tmp_path.name[-30:]}-{may_get_role}"
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName=name, Path="/teams/a/", AssumeRolePolicyDocument=document)
    arn = role["Role"]["Arn"]
    statements = _record_policy()
    if may_get_role:
        statements.append({"Effect": "Allow", "Action": "iam:GetRole", "Resource": arn})
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName=name, PolicyName="record", PolicyDocument=policy)
    found, _ = _run_as(account, session_of(account, arn), tmp_path, monkeypatch)
    assert found["left"] == {}
    if may_get_role:
        assert found["refused"] == {}
        key = _own_key(account, found["run"])
        assert key["KeyState"] == "PendingDeletion"
        assert arn in account.client("kms").get_key_policy(KeyId=key["KeyId"])["Policy"]
    else:
        assert "invalid principals" in found["refused"]["key"]
        assert "allow yourself iam:GetRole on it" in found["refused"]["key"]
