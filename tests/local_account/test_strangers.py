"""Only the holder of its keys can call the local account."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from local_account.permissions import MAXIMUM_BODY_BYTES
from local_account.process import LocalAccount
from local_account.where import (
    REGION,
    make_operator_variables,
    make_shell_environment,
    read_credentials,
)
from tests.local_account.callers import ALL_OF_SQS, OTHER_ACCOUNT, new_role, session_of, user

pytestmark = pytest.mark.account
NOBODY = 65534
CREATE = "/?Action=CreateQueue&QueueName=stolen"
Headers = dict[str, str]


def _sign_call(account: LocalAccount, host: str = "", signer: Any = SigV4Auth) -> AWSRequest:
    """A call that makes a queue, signed with the account's own key."""
    key, secret = read_credentials(account.endpoint_url).values()
    request = AWSRequest("GET", account.endpoint_url + CREATE, {"Host": host} if host else {})
    signer(Credentials(key, secret), "sqs", REGION).add_auth(request)
    return request


def _status(account: LocalAccount, path: str, headers: Headers) -> int:
    with closing(HTTPConnection(urlsplit(account.endpoint_url).netloc)) as connection:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


def _queues(account: LocalAccount) -> list[str]:
    return list(account.client("sqs").list_queues(QueueNamePrefix="stolen").get("QueueUrls", []))


def test_signed_call_to_the_local_account_creates_the_queue(tiny: LocalAccount) -> None:
    """The near miss of each refusal below."""
    assert _status(tiny, CREATE, dict(_sign_call(tiny).headers)) == 200
    (url,) = _queues(tiny)
    tiny.client("sqs").delete_queue(QueueUrl=url)


def _use_other_host(account: LocalAccount) -> tuple[str, Headers]:
    """DNS that suddenly leads here: the page's own origin, so that its browser asks nobody."""
    host = f"rebound.example:{urlsplit(account.endpoint_url).port}"
    return CREATE, {**_sign_call(account, host).headers, "Host": host}


def _name_key_twice(account: LocalAccount) -> tuple[str, Headers]:
    """Verified as one key, taken for another."""
    headers = dict(_sign_call(account).headers)
    scheme, _, rest = headers["Authorization"].partition(" ")
    other = f"Credential=test/20261110/{REGION}/sqs/aws4_request"
    return CREATE, {**headers, "Authorization": f"{scheme} {other}, {rest}"}


def _sign_another_call(account: LocalAccount) -> tuple[str, Headers]:
    return CREATE.replace("stolen", "stolen-too"), dict(_sign_call(account).headers)


def _sign_link(account: LocalAccount) -> tuple[str, Headers]:
    signed = urlsplit(str(_sign_call(account, signer=SigV4QueryAuth).url))
    return f"{signed.path}?{signed.query}", {}


@pytest.mark.parametrize(
    "asked",
    [
        lambda _: (CREATE, {}),
        lambda account: (CREATE, {**_sign_call(account).headers, "Origin": "http://other.example"}),
        _use_other_host,
        _name_key_twice,
        _sign_another_call,
        _sign_link,
    ],
)
def test_unsigned_forged_presigned_or_browser_call_gets_403_and_creates_no_queue(
    tiny: LocalAccount, asked: Callable[[LocalAccount], tuple[str, Headers]]
) -> None:
    assert _status(tiny, *asked(tiny)) == 403
    assert _queues(tiny) == []


def test_unsigned_call_is_refused_before_its_body_is_read(tiny: LocalAccount) -> None:
    """It is answered though none of the body comes; without end it would fill the memory."""
    with closing(HTTPConnection(urlsplit(tiny.endpoint_url).netloc, timeout=5)) as connection:
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", "300000000")
        connection.endheaders()
        assert connection.getresponse().status == 403


def test_signed_body_above_the_size_limit_is_refused_for_sqs_and_taken_by_s3(
    tiny: LocalAccount,
) -> None:
    body = b" " * (MAXIMUM_BODY_BYTES + 1)
    with pytest.raises(ClientError, match="as long here"):
        tiny.client("sqs").create_queue(QueueName="stolen", tags={"a": body.decode()})
    s3 = tiny.client("s3")
    s3.create_bucket(Bucket="files")
    s3.put_object(Bucket="files", Key="file", Body=body)


# JSON, query, XML and CBOR.
CALLS = (("sqs", "queues"), ("iam", "users"), ("s3", "buckets"), ("cloudwatch", "metrics"))


@pytest.mark.parametrize("access_key", ["test", "000000000000", OTHER_ACCOUNT, "AKIAUNKNOWN"])
@pytest.mark.parametrize(("service", "things"), CALLS)
def test_access_key_that_the_account_did_not_issue_is_refused_by_every_protocol(
    tiny: LocalAccount, access_key: str, service: str, things: str
) -> None:
    """Whatever it is signed with: MiniStack takes all but the last for root users."""
    theirs = read_credentials(tiny.endpoint_url)
    for keys in (theirs, {**theirs, "aws_secret_access_key": "test"}):
        client = tiny.client(service, **{**keys, "aws_access_key_id": access_key})
        with pytest.raises(ClientError) as refused:
            getattr(client, f"list_{things}")()
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 403)


def test_issued_access_key_works_only_with_its_own_secret(tiny: LocalAccount) -> None:
    arn, of_user = user(tiny, ALL_OF_SQS)
    of_role = session_of(tiny, new_role(tiny, {"AWS": "000000000000"}, ALL_OF_SQS))
    assert tiny.client("sts", **of_user).get_caller_identity()["Arn"] == arn
    for keys in (read_credentials(tiny.endpoint_url), of_user, of_role):
        tiny.client("sqs", **keys).list_queues()
        with pytest.raises(ClientError, match="signature"):
            tiny.client("sqs", **{**keys, "aws_secret_access_key": "x"}).list_queues()


def test_two_environment_variables_are_enough_to_use_both_accounts(
    tiny: LocalAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = make_operator_variables(tiny.endpoint_url)
    assert [*variables] == ["AWS_SHARED_CREDENTIALS_FILE", "AWS_ENDPOINT_URL"]
    for name in {*os.environ} - {*make_shell_environment(tiny.endpoint_url)}:
        monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert boto3.Session().region_name == REGION
    assert boto3.Session().client("sts").get_caller_identity()["Account"] == "000000000000"
    other = boto3.Session(profile_name="other-account").client("sts")
    assert other.get_caller_identity()["Account"] == OTHER_ACCOUNT


def _as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
    who: Any = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    return subprocess.run(command, capture_output=True, text=True, check=False, **who)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user of the machine")
def test_another_user_of_the_machine_cannot_read_the_files_of_the_local_account(
    tiny: LocalAccount,
) -> None:
    file = Path(make_operator_variables(tiny.endpoint_url)["AWS_SHARED_CREDENTIALS_FILE"])
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file)] == [0o700, 0o600]
    scratch = (file.parent / "scratch").readlink()
    for command in (("cat", f"{file}"), ("ls", f"{file.parent}"), ("find", f"{scratch}/s3")):
        done = _as_nobody(*command)
        assert done.stdout == ""
        assert "Permission denied" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user of the machine")
def test_another_user_of_the_machine_cannot_call_the_local_account(tiny: LocalAccount) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl to call the account with")
    call = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}")
    signed = ("--aws-sigv4", f"aws:amz:{REGION}:sqs", "--user", "test:test")
    for path in (CREATE, "/_mendq/mails"):
        assert _as_nobody(*call, *signed, tiny.endpoint_url + path).stdout == "403"
    assert _queues(tiny) == []
