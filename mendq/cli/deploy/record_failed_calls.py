"""Record what CloudTrail writes about failed SQS calls: `python record_failed_calls.py DIR`.

This file runs alone, with boto3 and Python 3.9 or newer. `mendq drill --record DIR` runs the same.

A run makes some AWS resources, lets calls fail on them, saves the CloudTrail records of these calls
in DIR, and deletes what it made, also after Ctrl-C. `DIR/unfinished.json` exists while a run is not
cleaned up. If a run is killed, the next run with the same DIR cleans up after it, once you say yes.

Rules that keep the clean-up safe:

1. The file names a run and nothing else. Anybody can write a file, so nothing in it decides what is
   deleted. A file that is torn, or that names something else than a run here, ends the program.
2. The queue `events` is made first and deleted last. Its tag says who started the run, and SQS says
   when it was made. A run without this queue, or with another caller's tag, is left alone.
3. All resources but the key have names that contain the run's random id. They are deleted by name,
   in the caller's account and region only.
4. A KMS key has no name. An earlier run's key, or one whose CreateKey answer was lost, is deleted
   only if AWS says three things: its description is the one that the run gives, it was created
   while the run was making its resources, and its key policy allows something to the caller and to
   nobody else. Any other key stays as it is, and its id is printed if it seems to be the run's.
5. The clean-up of an earlier run asks first. The yes that starts a run covers its own clean-up.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import secrets
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, NamedTuple, NoReturn

from botocore.exceptions import BotoCoreError, ClientError

Say = Callable[[str], object]
Json = dict[str, Any]

# Every name begins like this. Mendq leaves queues with these tags alone, and its reports omit them.
PREFIX = "mendq-drill-record-"
TAGS = {"mendq": "off", "mendq:drill": "true"}
# Tags of the queue `events`: who started the run, and where its key is.
CALLER_TAG = "mendq-drill-caller"
KEY_TAG = "mendq-drill-key"
# The value of KEY_TAG if AWS refused to make a key.
NO_KEY = "refused"
UNFINISHED = "unfinished.json"
# A run's own file has about 100 bytes.
LONGEST_FILE_BYTES = 64 * 1024

MINUTES = 20.0
PAUSE_SECONDS = 5.0
LATE_SECONDS = 2.0
# KMS disables a key within a minute. If a call uses it before, SQS keeps its data key for five.
DISABLED_SECONDS = 60.0
# A run makes its key within this time of its queue `events`. The two services' clocks may differ.
MAKING_SECONDS = 900.0
CLOCK_SECONDS = 5.0
# Receives that provoke throttling, and how many are sent at the same time.
BURST = 1_000
AT_ONCE = 20
# KMS deletes a key 7 days after it is asked to, at the earliest.
KEY_DAYS = 7
# Prices in us-east-1: an SQS call and its data event, an S3 request (at most), a key's first hour.
DOLLARS = {"sqs": 1.4e-6, "s3": 5e-6, "kms.create_key": 0.0014}

PLAN = f"""This makes AWS resources named {PREFIX}...: a trail with a bucket, an
EventBridge rule, queues, a topic and a role, and a KMS key. It lets SQS calls fail on these queues
and saves their CloudTrail records. Then it deletes all of it. A KMS key cannot be deleted at once:
its deletion is scheduled, in {KEY_DAYS} days. It costs about $0.01. Use a sandbox account."""

# The way in which a record arrives, and the part that this way needs.
WAYS = {"trail": "logging", "event": "target"}
COLUMNS = ("error code", "matched as", "queue in", "role in", "error message")

# Errors that AWS answers or botocore raises.
_FROM_AWS = (ClientError, BotoCoreError)
# Codes of "there is no such thing", of all services here.
_GONE = re.compile("NotFound|NoSuch|NonExistent|QueueDoesNotExist|KMSInvalidState")
_RUN_ID = re.compile("[0-9a-f]{8}")
_KEY_ID = re.compile("[0-9A-Za-z-]{1,64}")
_PLACEHOLDER = re.compile(r"<([\w.-]+)>")


class Document(dict[str, Any]):
    """A policy or pattern. AWS takes it as JSON text; `Run.fill` makes that text."""


class Part(NamedTuple):
    """One step of a run: the AWS call that makes something, and the call that deletes it.

    `create` and `delete` are calls such as `sqs.create_queue`; `create_with` and `delete_with` are
    their arguments. `delete` is None if no call of its own is needed to delete it.
    """

    name: str
    create: str
    create_with: Json
    delete: str | None = None
    delete_with: Json | None = None


class FailingCall(NamedTuple):
    """One call that is meant to fail."""

    name: str
    operation: str
    arguments: Json


def policy(*statements: Json) -> Document:
    """Return a policy of these statements. A statement without an `Effect` allows."""
    return Document(
        Version="2012-10-17",
        Statement=[{"Effect": "Allow", **statement} for statement in statements],
    )


def allow_service(service: str, source_arn: str, action: Any, resource: Any) -> Json:
    """Return a statement that allows an AWS service to act for one source."""
    return {
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Condition": {"ArnEquals": {"aws:SourceArn": source_arn}},
        "Action": action,
        "Resource": resource,
    }


def on(kind: str, **arguments: Any) -> Json:
    """Return the arguments of a call on the run's queue of that kind."""
    return {"QueueUrl": f"<{kind}>", **arguments}


def queue(kind: str, tags: Json | None = None, **attributes: Any) -> Part:
    """Return the part that makes a queue."""
    if kind.endswith(".fifo"):
        attributes["FifoQueue"] = "true"
    arguments = {
        "QueueName": f"<name>-{kind}",
        "Attributes": attributes,
        "tags": {**TAGS, **(tags or {})},
    }
    return Part(kind, "sqs.create_queue", arguments, "sqs.delete_queue", on(kind))


# In all arguments below, `<word>` stands for a value that only a run knows: see `Run.__init__`.
# A word that is not listed there is a kind of queue and stands for its URL.
_BUCKET = {"Bucket": "<bucket>", "ExpectedBucketOwner": "<account>"}
_BUCKET_ARN = "arn:<partition>:s3:::<bucket>"
_BUCKET_POLICY = policy(
    allow_service(
        "cloudtrail",
        "<trail>",
        ["s3:GetBucketAcl", "s3:PutObject"],
        [_BUCKET_ARN, f"{_BUCKET_ARN}/*"],
    )
)
_SELECTORS = [
    {
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
            {"Field": "resources.ARN", "StartsWith": ["<sqs>-on-"]},
        ]
    }
]
_PATTERN = Document(
    source=["aws.sqs"],
    detail={"eventSource": ["sqs.amazonaws.com"], "errorCode": [{"exists": True}]},
)
# The whole key policy. It must let the caller change it, or CreateKey refuses it. It does not name
# the account, so an IAM policy alone lets nobody use or delete the key.
# https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html
KEY_ACTIONS = [
    "kms:PutKeyPolicy",
    "kms:DescribeKey",
    "kms:GetKeyPolicy",
    "kms:DisableKey",
    "kms:GenerateDataKey",
    "kms:Decrypt",
    "kms:ScheduleKeyDeletion",
]
KEY_DESCRIPTION = "<name>: for failing SQS calls, made by mendq drill"
_KEY_POLICY = policy(
    {"Principal": {"AWS": "<principal>"}, "Action": KEY_ACTIONS, "Resource": "*"},
)
_SEND_BY_SNS = allow_service("sns", "<topic>", "sqs:SendMessage", "<sqs>-on-encrypted")
_SEND_BY_ROLE = {
    "Principal": "*",
    "Action": "sqs:SendMessage",
    "Resource": "<sqs>-on-encrypted",
    "Condition": {"ArnEquals": {"aws:PrincipalArn": "<role>"}},
}
_DENY_SEND = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:SendMessage",
    "Resource": "<sqs>-on-denying",
}
_TRUST = policy(
    {
        "Principal": {"AWS": "arn:<partition>:iam::<account>:root"},
        "Action": "sts:AssumeRole",
    }
)

# Made in this order, deleted in the reverse order. The first one proves whose run it is (rule 2).
PARTS: tuple[Part, ...] = (
    queue(
        "events",
        tags={CALLER_TAG: "<caller>"},
        Policy=policy(allow_service("events", "<rule>", "sqs:SendMessage", "<sqs>-events")),
    ),
    # Second, so that it is made soon after the first (rule 4).
    Part(
        "key",
        "kms.create_key",
        {
            "Description": KEY_DESCRIPTION,
            "Policy": _KEY_POLICY,
        },
        "kms.schedule_key_deletion",
        {"KeyId": "<key>", "PendingWindowInDays": KEY_DAYS},
    ),
    Part(
        "bucket",
        "s3.create_bucket",
        {
            "Bucket": "<bucket>",
            "CreateBucketConfiguration": {"LocationConstraint": "<region>"},
        },
        "s3.delete_bucket",
        _BUCKET,
    ),
    Part("access", "s3.put_bucket_policy", {**_BUCKET, "Policy": _BUCKET_POLICY}),
    Part(
        "trail",
        "cloudtrail.create_trail",
        {"Name": "<name>", "S3BucketName": "<bucket>"},
        "cloudtrail.delete_trail",
        {"Name": "<name>"},
    ),
    Part(
        "selectors",
        "cloudtrail.put_event_selectors",
        {"TrailName": "<trail>", "AdvancedEventSelectors": _SELECTORS},
    ),
    Part("logging", "cloudtrail.start_logging", {"Name": "<trail>"}),
    Part(
        "rule",
        "events.put_rule",
        {"Name": "<name>", "EventPattern": _PATTERN},
        "events.delete_rule",
        {"Name": "<name>"},
    ),
    Part(
        "target",
        "events.put_targets",
        {"Rule": "<name>", "Targets": [{"Id": "queue", "Arn": "<sqs>-events"}]},
        "events.remove_targets",
        {"Rule": "<name>", "Ids": ["queue"]},
    ),
    queue("on-standard", MaximumMessageSize="1024"),
    queue("on-x.fifo"),
    queue("on-denying", Policy=policy(_DENY_SEND)),
    queue(
        "on-encrypted",
        KmsMasterKeyId="<key>",
        Policy=policy(_SEND_BY_SNS, _SEND_BY_ROLE),
    ),
    Part(
        "topic",
        "sns.create_topic",
        {"Name": "<name>"},
        "sns.delete_topic",
        {"TopicArn": "<topic>"},
    ),
    Part(
        "subscription",
        "sns.subscribe",
        {"TopicArn": "<topic>", "Protocol": "sqs", "Endpoint": "<sqs>-on-encrypted"},
    ),
    Part(
        "role",
        "iam.create_role",
        {"RoleName": "<name>", "AssumeRolePolicyDocument": _TRUST},
        "iam.delete_role",
        {"RoleName": "<name>"},
    ),
)
_FIRST = PARTS[0]

_BODY = {"MessageBody": "mendq drill"}
_LATE_EXTENSION = {"ReceiptHandle": "<late>", "VisibilityTimeout": 30}
_BY_ROLE = ("denied_by_key", "denied_by_role")
# The key is disabled last: before that, SNS and the role must be refused by its key policy.
CALLS: tuple[FailingCall, ...] = (
    FailingCall("by_a_service", "sns.publish", {"TopicArn": "<topic>", "Message": "x"}),
    FailingCall("denied_by_key", "sqs.send_message", on("on-encrypted", **_BODY)),
    FailingCall("denied_by_role", "sqs.send_message", on("on-standard", **_BODY)),
    FailingCall("denied_by_queue", "sqs.send_message", on("on-denying", **_BODY)),
    FailingCall("missing_queue", "sqs.send_message", on("on-missing", **_BODY)),
    FailingCall("bad_parameter", "sqs.receive_message", on("on-standard", WaitTimeSeconds=21)),
    FailingCall("long_message", "sqs.send_message", on("on-standard", MessageBody="x" * 2_000)),
    FailingCall(
        "no_deduplication_id",
        "sqs.send_message",
        on("on-x.fifo", **_BODY, MessageGroupId="x"),
    ),
    FailingCall("late_delete", "sqs.delete_message", on("on-x.fifo", ReceiptHandle="<late>")),
    FailingCall(
        "late_extension",
        "sqs.change_message_visibility",
        on("on-x.fifo", **_LATE_EXTENSION),
    ),
    FailingCall(
        "late_extension_standard",
        "sqs.change_message_visibility",
        on("on-standard", **_LATE_EXTENSION),
    ),
    FailingCall(
        "failing_in_batch",
        "sqs.delete_message_batch",
        on("on-x.fifo", Entries=[{"Id": "1", "ReceiptHandle": "<late>"}]),
    ),
    FailingCall("throttled", "sqs.receive_message", on("on-x.fifo")),
    FailingCall("disabled_key", "sqs.send_message", on("on-encrypted", **_BODY)),
)


class Caller:
    """The identity that runs this program, from STS."""

    def __init__(self, session: Any) -> None:
        identity = session.client("sts").get_caller_identity()
        self.arn: str = identity["Arn"]
        self.region: str = session.region_name
        _, self.partition, _, _, self.account, resource = self.arn.split(":", 5)
        self.is_role = resource.startswith("assumed-role/")
        # The name of a role or user. For the root user, its ARN.
        self.name = resource.split("/")[1] if self.is_role else self.arn.rpartition("/")[2]
        # The id is unique: a new role with an old role's name has another. Sessions of a role share
        # it. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
        user_id: str = identity["UserId"]
        self.unique_id = user_id.partition(":")[0] if self.is_role else user_id
        self.is_path_known = True
        self._session = session

    def principal(self) -> str:
        """Return the caller's ARN for a key policy. For a session it is the role's ARN.

        A session's ARN lacks the path of its role, so IAM is asked. If the caller may not ask IAM,
        the ARN is made without a path. If the role has a path, CreateKey then refuses the policy,
        because it names no existing role.
        """
        if not self.is_role:
            return self.arn
        with suppress(*_FROM_AWS):
            role = self._session.client("iam").get_role(RoleName=self.name)["Role"]
            return str(role["Arn"])
        self.is_path_known = False
        return f"arn:{self.partition}:iam::{self.account}:role/{self.name}"

    def is_alone_in(self, key_policy: str) -> bool:
        """Return True if the key policy allows something to the caller by name, and to nobody else.

        A run's own key policy does. A key that others may use as well is theirs too.
        """
        try:
            statements = json.loads(key_policy)["Statement"]
        except (ValueError, LookupError, TypeError):
            return False
        if isinstance(statements, dict):
            statements = [statements]
        principals: list[Any] = []
        for statement in statements:
            if not isinstance(statement, dict):
                return False
            if statement.get("Effect") != "Allow":
                continue
            principal = statement.get("Principal")
            if not isinstance(principal, dict) or [*principal] != ["AWS"]:
                return False
            arns = principal["AWS"]
            principals.extend(arns if isinstance(arns, list) else [arns])
        return bool(principals) and all(
            isinstance(arn, str) and self._is_caller(arn) for arn in principals
        )

    def _is_caller(self, arn: str) -> bool:
        if not self.is_role:
            return arn == self.arn
        # Role names are unique in an account, whatever their paths.
        of_roles = f"arn:{self.partition}:iam::{self.account}:role/"
        return arn.startswith(of_roles) and arn.rpartition("/")[2] == self.name


class UnfinishedRun(NamedTuple):
    """The run that `unfinished.json` names."""

    run_id: str
    # Id of a KMS key that earlier versions wrote into the file, or empty. A key is never deleted
    # only because the file names it.
    key: str = ""


def read_unfinished(file: Path, account: str, region: str) -> UnfinishedRun:
    """Return the run that `unfinished.json` names. Nothing in the file decides what is deleted.

    Raises SystemExit if the file names no run of this account and region. The error's text names
    the file and what to do.
    """
    try:
        if not file.is_file():
            _refuse_file(file, "is no regular file")
        with file.open("rb") as opened:
            content = opened.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        _refuse_file(file, f"cannot be read ({error.strerror})")
    if len(content) > LONGEST_FILE_BYTES:
        _refuse_file(file, "is too long to be written by this program")
    try:
        state = json.loads(content)
    except (ValueError, RecursionError):
        _refuse_file(file, "is torn or is no JSON")
    run_id = state.get("run") if isinstance(state, dict) else None
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        _refuse_file(file, "names no run of this program")
    if state.get("here") != f"{region}:{account}":
        raise SystemExit(
            f"{file} is of another account or region than {account} in {region}. "
            "Nothing was deleted. Use that account's credentials and region, or another DIR."
        )
    key = state.get("key")
    is_key = isinstance(key, str) and _KEY_ID.fullmatch(key)
    return UnfinishedRun(run_id, str(key) if is_key else "")


def _refuse_file(file: Path, what: str) -> NoReturn:
    raise SystemExit(
        f"{file} {what}, so it does not say which run it is about. Nothing was deleted. If a run "
        f"with this DIR was killed, delete by hand what is named {PREFIX}... and is yours. "
        f"Then delete the file: rm {shlex.quote(str(file))}"
    )


def places(value: Any, wanted: str, at: str = "") -> Iterator[str]:
    """Yield the paths of the fields that contain the text `wanted`, such as `userIdentity.arn`."""
    if isinstance(value, str) and wanted in value:
        yield at
    fields: Any = ()
    if isinstance(value, dict):
        fields = value.items()
    elif isinstance(value, list):
        fields = enumerate(value)
    for name, field in fields:
        yield from places(field, wanted, f"{at}.{name}".lstrip("."))


def name_symptom(record: Any) -> str:
    """Return the name of the symptom that Mendq sees in a record.

    If Mendq is not installed, or cannot read the record, the text says so.
    """
    try:
        from mendq.cli.look.explain import explain_record
    except ImportError:
        return "install mendq"
    explained = explain_record(record)
    return str(explained["symptom"] or f"not read: {explained['unreadable']}")


class Run:
    """A run that makes resources, makes calls on them fail, and records and deletes everything.

    Attributes:
        rows: What is known of each failed call, by the call's name.
        refused: Why AWS refused to make a resource, or why a call could not be made to fail, by
            name.
        left: Why a resource could not be deleted, by name.
        left_alone: Why a KMS key was not touched, by key id.
        dollars: The estimated cost so far.
    """

    def __init__(
        self, session: Any, folder: Path, say: Say, earlier: UnfinishedRun | None = None
    ) -> None:
        """Prepare a new run, or the clean-up of an earlier run."""
        self._session = session
        self._say = say
        self._clients: dict[tuple[str, bool], Any] = {}
        self.caller = Caller(session)
        account, region = self.caller.account, self.caller.region
        partition = self.caller.partition
        self.id = earlier.run_id if earlier else secrets.token_hex(4)
        self._key_in_file = earlier.key if earlier else ""
        self.file = folder / UNFINISHED
        self.folder = folder / self.id
        self.name = PREFIX + self.id
        here = f"{region}:{account}"
        # Values of the placeholders in PARTS and CALLS. The last three are set later.
        self._words: dict[str, str] = {
            "name": self.name,
            "bucket": f"{self.name}-{account}",
            "account": account,
            "region": region,
            "partition": partition,
            "caller": self.caller.unique_id,
            "sqs": f"arn:{partition}:sqs:{here}:{self.name}",
            "topic": f"arn:{partition}:sns:{here}:{self.name}",
            "trail": f"arn:{partition}:cloudtrail:{here}:trail/{self.name}",
            "rule": f"arn:{partition}:events:{here}:rule/{self.name}",
            "role": f"arn:{partition}:iam::{account}:role/{self.name}",
            "key": "",
            "late": "",
            "principal": "",
        }
        self._queue_url = f"{session.client('sqs').meta.endpoint_url}/{account}/{self.name}"
        # Names of the parts that may exist. Of an earlier run, any part may exist.
        self._maybe_made = {part.name for part in PARTS} if earlier else set[str]()
        self._keys: list[str] | None = None
        self._awaited: set[tuple[str, str]] = set()
        self.rows: dict[str, Json] = {}
        self.refused: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.left_alone: dict[str, str] = {}
        self.dollars = BURST * DOLLARS["sqs"]

    def fill(self, value: Any) -> Any:
        """Return arguments in which each `<word>` is replaced and each Document is JSON text."""
        if isinstance(value, str):
            return _PLACEHOLDER.sub(self._fill_word, value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if not isinstance(value, dict):
            return value
        filled = {name: self.fill(field) for name, field in value.items()}
        return json.dumps(filled) if isinstance(value, Document) else filled

    def _fill_word(self, found: re.Match[str]) -> str:
        word = found[1]
        return self._words.get(word, f"{self._queue_url}-{word}")

    def _client(self, service: str, *, is_once: bool = False) -> Any:
        """Return a client of a service. With `is_once` it never sends a request a second time."""
        if (service, is_once) not in self._clients:
            config = _config_once() if is_once else None
            self._clients[service, is_once] = self._session.client(service, config=config)
        return self._clients[service, is_once]

    def _call(self, operation: str, arguments: Json, *, is_once: bool = False) -> Any:
        """Send one call, such as `sqs.send_message`, with its placeholders filled in."""
        service, method = operation.split(".")
        self._count_dollars(operation)
        return getattr(self._client(service, is_once=is_once), method)(**self.fill(arguments))

    def _count_dollars(self, operation: str) -> None:
        service = operation.partition(".")[0]
        self.dollars += DOLLARS.get(service, 0) + DOLLARS.get(operation, 0)

    def _write_file(self) -> None:
        """Write `unfinished.json` as a whole. Do not follow a link with that name in DIR."""
        handle, new = tempfile.mkstemp(prefix=f"{UNFINISHED}.", dir=self.file.parent)
        with os.fdopen(handle, "w") as opened:
            here = f"{self.caller.region}:{self.caller.account}"
            json.dump({"run": self.id, "here": here}, opened)
        Path(new).replace(self.file)

    def make(self) -> None:
        """Make all parts. `unfinished.json` names the run before anything is made."""
        self._write_file()
        self._words["principal"] = self.caller.principal()
        for part in PARTS:
            self._make_part(part)
            if _FIRST.name in self.refused:
                return

    def _make_part(self, part: Part) -> None:
        arguments = dict(part.create_with)
        if part.name == "bucket" and self.caller.region == "us-east-1":
            del arguments["CreateBucketConfiguration"]  # S3 refuses this region as a constraint
        self._maybe_made.add(part.name)
        try:
            answer = self._call(part.create, arguments, is_once=True)
        except _FROM_AWS as error:
            self.refused[part.name] = str(error)
            if part.name == "key" and not self.caller.is_path_known:
                self.refused[part.name] += (
                    f". If the role {self.caller.name} has a path, allow yourself iam:GetRole on "
                    "it: the key policy must name the role with its path"
                )
            if _is_refusal(error):
                self._maybe_made.discard(part.name)
                if part.name == "key":
                    self._tag_key(NO_KEY)
            return
        if part.name == "key":
            self._words["key"] = answer["KeyMetadata"]["KeyId"]
            self._tag_key(self._words["key"])

    def _tag_key(self, value: str) -> None:
        """Store the key's id in a tag of the queue `events`, so that a later run finds it there."""
        with suppress(*_FROM_AWS):
            self._call("sqs.tag_queue", on(_FIRST.name, Tags={KEY_TAG: value}))

    def examine(self) -> str:
        """Return what AWS says about an earlier run. This reads only.

        Raises SystemExit if AWS does not say that the run is the caller's.
        """
        try:
            started = self._read_start()
            tags = self._read_tags()
        except ClientError as error:
            if not _is_gone(error):
                raise
            self._refuse_run(f"AWS has no queue {self.name}-{_FIRST.name}")
        if tags.get(CALLER_TAG) != self.caller.unique_id:
            self._refuse_run(
                f"the queue {self.name}-{_FIRST.name} is not tagged with your identity"
            )
        when = datetime.fromtimestamp(started, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        self._find_keys()
        text = (
            f"{self.file} names the run {self.name}. AWS says that you started it at {when}.\n"
            "The clean-up deletes what is left of it: the trail, the bucket with its files, the\n"
            "rule, the queues, the topic and the role of that name in "
            f"{self.caller.account}, {self.caller.region}.\n"
        )
        if self._keys is None:
            text += f"Its KMS key stays: {self.left['key']}\n"
        for key in self._keys or ():
            text += f"It schedules the deletion of the run's KMS key {key}, in {KEY_DAYS} days.\n"
        for why in self.left_alone.values():
            text += f"{why}\n"
        own_or_explained = (*(self._keys or ()), *self.left_alone)
        if self._key_in_file and self._key_in_file not in own_or_explained:
            text += f"{self._about_key_in_file()}\n"
        return f"{text}If another terminal is still running it, answer no."

    def _refuse_run(self, why: str) -> NoReturn:
        raise SystemExit(
            f"{self.file} names the run {self.name}, but {why}, so nothing shows that the run is "
            f"yours. Nothing was deleted. {self._about_key_in_file()}"
            "If the run is yours, delete by hand what has that name. "
            f"Then delete the file: rm {shlex.quote(str(self.file))}"
        )

    def _about_key_in_file(self) -> str:
        if not self._key_in_file:
            return ""
        return f"The KMS key {self._key_in_file}, which only the file names, is left alone. "

    def _read_start(self) -> float:
        """Return when SQS made the queue `events`, in seconds since 1970."""
        arguments = on(_FIRST.name, AttributeNames=["CreatedTimestamp"])
        answer = self._call("sqs.get_queue_attributes", arguments)
        return float(answer["Attributes"]["CreatedTimestamp"])

    def _read_tags(self) -> dict[str, str]:
        tags: dict[str, str] = self._call("sqs.list_queue_tags", on(_FIRST.name)).get("Tags", {})
        return tags

    def _find_keys(self) -> None:
        """Find the run's key by rule 4. If AWS does not answer, `left` says so."""
        self.left.pop("key", None)
        try:
            self._keys = self._search_keys()
        except _FROM_AWS as error:
            self._keys = None
            self.left["key"] = (
                f"the run's key could not be looked for: {error}. Look for a key whose description "
                f"begins with {self.name}: aws kms list-keys, aws kms describe-key --key-id KEY"
            )

    def _search_keys(self) -> list[str]:
        if self._words["key"]:
            return [self._words["key"]]  # CreateKey's own answer
        started = self._read_start()
        tagged = self._read_tags().get(KEY_TAG, "")
        if tagged == NO_KEY:
            return []
        if _KEY_ID.fullmatch(tagged) and self._is_own_key(tagged, started, is_tagged=True):
            return [tagged]
        keys: list[str] = []
        for page in self._client("kms").get_paginator("list_keys").paginate():
            keys.extend(key["KeyId"] for key in page["Keys"])
        return [key for key in keys if key != tagged and self._is_own_key(key, started)]

    def _is_own_key(self, key: str, started: float, *, is_tagged: bool = False) -> bool:
        """Return True if AWS's answers say that the key is the run's (rule 4).

        If only some of them do, `left_alone` says what differs. The tag of the queue `events` may
        lead to a key, but never decides.
        """
        try:
            metadata = self._call("kms.describe_key", {"KeyId": key})["KeyMetadata"]
        except ClientError as error:
            if not (_is_denied(error) or _is_gone(error)):
                raise
            if is_tagged and _is_denied(error):
                self._leave_alone(key, "AWS does not let you see it")
            return False
        created = metadata["CreationDate"].timestamp()
        if not re.search(rf"{self.name}\b", metadata.get("Description", "")):
            if is_tagged:
                self._leave_alone(key, "its description does not name the run")
            return False
        if metadata["Description"] != self.fill(KEY_DESCRIPTION):
            self._leave_alone(key, "its description is not the one that the run gives its key")
            return False
        if not started - CLOCK_SECONDS <= created <= started + MAKING_SECONDS:
            self._leave_alone(key, "it was not created while the run was making its resources")
            return False
        return self._is_for_the_caller_alone(key)

    def _is_for_the_caller_alone(self, key: str) -> bool:
        """Return True if the key policy names the caller alone. If not, `left_alone` says so."""
        try:
            answer = self._call("kms.get_key_policy", {"KeyId": key, "PolicyName": "default"})
        except ClientError as error:
            if not _is_denied(error):
                raise
            self._leave_alone(key, "AWS does not let you read its key policy")
            return False
        if not self.caller.is_alone_in(answer["Policy"]):
            self._leave_alone(
                key, f"its key policy names others than you or not you ({self.caller.arn})"
            )
            return False
        return True

    def _leave_alone(self, key: str, why: str) -> None:
        self.left_alone[key] = (
            f"The KMS key {key} is left alone. It looks like the key of {self.name}, but {why}. "
            f"Find out whose it is before you change it: aws kms describe-key --key-id {key}"
        )

    def clean(self) -> None:
        """Delete all parts by name, and the key if AWS says that it is this run's."""
        if "key" in self._maybe_made and self._keys is None:
            self._find_keys()
        for part in reversed(PARTS):
            if part.delete is None or part.name not in self._maybe_made:
                continue
            if part is _FIRST and self.left:
                self.left[part.name] = (
                    "kept, because it shows that the rest is yours. Delete it last: "
                    f"{self._command_that_deletes(part)}"
                )
            elif part.name == "key":
                for key in self._keys or ():
                    self._words["key"] = key
                    self._delete_part(part)
            else:
                self._delete_part(part)
        if not self.left:
            with suppress(FileNotFoundError):
                self.file.unlink()

    def _delete_part(self, part: Part) -> None:
        # The trail may deliver a last file between emptying the bucket and deleting it.
        for is_last_try in (False, True):
            try:
                if part.name == "bucket":
                    self._empty_bucket()
                self._call(str(part.delete), part.delete_with or {})
            except _FROM_AWS as error:
                if _is_gone(error):
                    return
                if is_last_try or "BucketNotEmpty" not in str(error):
                    self.left[part.name] = f"{error}: {self._command_that_deletes(part)}"
                    return
            else:
                return

    def _command_that_deletes(self, part: Part) -> str:
        """Return a command that deletes the part, to paste into a shell."""
        service, method = str(part.delete).split(".")
        if service == "s3":
            service = "s3api"
        arguments = shlex.quote(json.dumps(self.fill(part.delete_with)))
        return f"aws {service} {method.replace('_', '-')} --cli-input-json {arguments}"

    def _empty_bucket(self) -> None:
        for file in self._call("s3.list_objects_v2", _BUCKET).get("Contents", ()):
            self._call("s3.delete_object", {**_BUCKET, "Key": file["Key"]})

    def record(self, minutes: float) -> None:
        """Make all resources, let the calls fail, and wait for their records.

        A quarter of the time passes before the calls: a new trail logs a queue only after minutes.
        """
        # Ctrl-C must not stop this half-way: only the answers say what was made. So it runs in a
        # thread, and Ctrl-C takes effect after it.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.make).result()
        ways = [way for way, part in WAYS.items() if part not in self.refused]
        if not ways or _FIRST.name in self.refused:
            return
        self._say(f"waiting {minutes / 4:.1f} min: a trail logs new queues only after some minutes")
        time.sleep(minutes * 15)
        for call in CALLS:
            try:
                self.rows[call.name] = self._provoke(call)
            except (*_FROM_AWS, LookupError) as error:
                self.refused[call.name] = f"could not be provoked: {error}"
        self._say(f"waiting for the records, at most {minutes * 3 / 4:.1f} min")
        until = time.monotonic() + minutes * 45
        self._awaited = {(name, way) for name in self.rows for way in ways}
        while self._awaited and time.monotonic() < until:
            self._look_for_records()
            time.sleep(PAUSE_SECONDS)

    def _provoke(self, call: FailingCall) -> Json:
        """Let one call fail. Return the call's row: AWS's answer, the time and the request id."""
        if "<late>" in str(call.arguments):
            self._words["late"] = self._receive_late(call.arguments["QueueUrl"])
        if call.name == "disabled_key":
            self._call("kms.disable_key", {"KeyId": "<key>"})
            time.sleep(DISABLED_SECONDS)
        self._count_dollars(call.operation)
        service, method = call.operation.split(".")
        client = self._client(service, is_once=True)
        if call.name in _BY_ROLE:
            client = self._session_of_role().client(service, config=_config_once())
        arguments = self.fill(call.arguments)
        at = time.time()

        def answer_of(_: int) -> Any:
            try:
                return getattr(client, method)(**arguments)
            except ClientError as error:
                return error.response

        times = BURST if call.name == "throttled" else 1
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(answer_of, range(times)))
        failed_answers = [answer for answer in answers if "Error" in answer]
        answer = failed_answers[0] if failed_answers else answers[0]
        failed_entries = ", ".join(entry["Code"] for entry in answer.get("Failed", ()))
        error = answer.get("Error", {"Code": "answered with 200", "Message": failed_entries})
        text = error["Code"]
        if error["Message"]:
            text += f": {error['Message']}"
        request = answer["ResponseMetadata"]["RequestId"]
        return {"call": call.name, "answer": text, "at": at, "request": request, "records": {}}

    def _session_of_role(self) -> Any:
        arguments = {"RoleArn": "<role>", "RoleSessionName": "drill"}
        given = self._call("sts.assume_role", arguments)["Credentials"]
        return type(self._session)(
            given["AccessKeyId"],
            given["SecretAccessKey"],
            given["SessionToken"],
            self._session.region_name,
        )

    def _receive_late(self, queue_url: str) -> str:
        """Return the receipt handle of a message whose visibility timeout has passed."""
        fifo = {}
        if ".fifo" in queue_url:
            once = secrets.token_hex(8)
            fifo = {"MessageGroupId": once, "MessageDeduplicationId": once}
        self._call("sqs.send_message", {"QueueUrl": queue_url, **_BODY, **fifo})
        arguments = {"QueueUrl": queue_url, "VisibilityTimeout": 1, "WaitTimeSeconds": 20}
        (message,) = self._call("sqs.receive_message", arguments).get("Messages") or [{}]
        time.sleep(LATE_SECONDS)
        return str(message["ReceiptHandle"])

    def _look_for_records(self) -> None:
        """Read the new records in the trail's bucket and in the queue that EventBridge sends to.

        Either one is skipped if AWS refused a resource that it needs.
        """
        try:
            if WAYS["trail"] not in self.refused:
                self._look_in_bucket()
            if WAYS["event"] not in self.refused:
                self._look_in_queue()
        except _FROM_AWS as error:
            self._say(f"could not look for records, will try again: {error}")

    def _look_in_bucket(self) -> None:
        """Read the trail's files and delete them. One listing has up to 1,000 files: enough."""
        for file in self._call("s3.list_objects_v2", _BUCKET).get("Contents", ()):
            which = {**_BUCKET, "Key": file["Key"]}
            body = self._call("s3.get_object", which)["Body"].read()
            self._call("s3.delete_object", which)
            for record in json.loads(gzip.decompress(body))["Records"]:
                self._take("trail", file["LastModified"].timestamp(), record)

    def _look_in_queue(self) -> None:
        arguments = on(_FIRST.name, MaxNumberOfMessages=10, AttributeNames=["SentTimestamp"])
        while messages := self._call("sqs.receive_message", arguments).get("Messages"):
            for message in messages:
                sent = int(message["Attributes"]["SentTimestamp"]) / 1_000
                self._take("event", sent, json.loads(message["Body"]))

    def _take(self, way: str, at: float, record: Any) -> None:
        """Save a record in a file if it is about one of the failed calls.

        The call's row gets the record's important fields. `way` is a key of WAYS: how the record
        arrived. `at` is when it arrived, in seconds since 1970.
        """
        detail = record.get("detail", record)
        text = json.dumps(record, indent=2)
        who = {"userIdentity": detail.get("userIdentity")}
        code = detail.get("errorCode")
        request = detail.get("requestID")
        if code and "amazonaws.com" in str(who) and self.name in text:
            # SNS makes its own request to SQS. Its answer does not contain the id of that request.
            request = self.rows.get("by_a_service", {}).get("request")
        for row in self.rows.values():
            if row["request"] != request or way in row["records"]:
                continue
            name = row["call"]
            file = f"{name}.{way}.json"
            (self.folder / file).write_text(text)
            caller = self.name if name in _BY_ROLE else self.caller.name
            row["records"][way] = {
                "error code": code,
                "matched as": name_symptom(record),
                "queue in": ", ".join(places(detail, f"{self.name}-on")),
                "role in": ", ".join(places(who, caller)),
                "error message": detail.get("errorMessage"),
                "file": file,
                "seconds": round(at - row["at"]),
            }
            self._awaited.discard((name, way))
            if not code:
                self._awaited.discard((name, "event"))  # the rule takes errors only

    def document(self) -> Json:
        """Return the run's calls, records, failures and cost, as `index.json` stores them."""
        return {
            "run": self.name,
            "calls": list(self.rows.values()),
            "refused": self.refused,
            "left": self.left,
            "left_alone": self.left_alone,
            "cost": {"about": f"${self.dollars:.4f}"},
        }


def _config_once() -> Any:
    """Return the configuration of a client that sends each request once."""
    # Imported late: it takes a while, and `mendq --help` imports this file.
    from botocore.config import Config

    return Config(max_pool_connections=AT_ONCE, retries={"total_max_attempts": 1})


def _code_of(error: BaseException) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _is_denied(error: BaseException) -> bool:
    return "AccessDenied" in _code_of(error)


def _is_gone(error: BaseException) -> bool:
    """Return True if AWS says that the resource is gone, or that the key waits for deletion."""
    return bool(_GONE.search(_code_of(error)))


def _is_refusal(error: BaseException) -> bool:
    """Return True if it is certain that AWS did nothing.

    False if the answer was lost or AWS had an internal error: then AWS may have done it.
    """
    if not isinstance(error, ClientError):
        return False
    status: int = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return status < 500


def table(document: Json) -> Iterator[str]:
    """Yield the lines to print: a table of the calls, fields of the records, and all failures."""
    rows = [("call", *WAYS, "error code", "matched as")]
    calls_by_place: dict[str, list[str]] = {}
    for row in document["calls"]:
        records = row["records"]
        record = records.get("trail") or records.get("event") or {}
        delays = [f"{records[way]['seconds']} s" if way in records else "no" for way in WAYS]
        shown = [record.get(column) or "-" for column in ("error code", "matched as")]
        rows.append((row["call"], *delays, *shown))
        for column in ("queue in", "role in"):
            place = record.get(column, "no record") or "no field"
            calls_by_place.setdefault(f"{column} {place}", []).append(row["call"])
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    for cells in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
    for place, calls in sorted(calls_by_place.items()):
        yield f"{place}: {', '.join(calls)}"
    for what in ("refused", "left", "cost"):
        for name, why in document[what].items():
            yield f"{what}: {name}: {why}"
    yield from document["left_alone"].values()


def drill(session: Any, folder: Path, minutes: float, say: Say, confirm: Say) -> Json:
    """Clean up an earlier run if one is unfinished, then make a new run. Return its document.

    If the clean-up leaves something, there is no new run and the earlier run's document is
    returned.

    Args:
        confirm: gets a question and raises unless the answer is yes. It is asked before an earlier
            run's resources are deleted, and before a new run makes any.

    Raises:
        SystemExit: `unfinished.json` is torn, or names no run of the caller's. Nothing was changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(session, folder, say)
    if run.file.exists() or run.file.is_symlink():
        unfinished = read_unfinished(run.file, run.caller.account, run.caller.region)
        earlier = Run(session, folder, say, unfinished)
        say(earlier.examine())
        confirm(f"Delete what {earlier.name} left?")
        earlier.clean()
        if earlier.left:
            say(
                "Nothing new was made. Run this again to try again, or delete by hand what is "
                f"listed as left, and then the file: rm {shlex.quote(str(run.file))}"
            )
            return earlier.document()
        run.left_alone.update(earlier.left_alone)
        say(f"cleaned up what {earlier.name} left; a new run begins only after another yes")
    say(PLAN)
    confirm("Start?")
    run.folder.mkdir()
    try:
        run.record(minutes)
    except KeyboardInterrupt:
        run.refused["the rest"] = "interrupted"
    finally:
        say(f"deleting what it made; the records are in {run.folder}")
        run.clean()
    (run.folder / "index.json").write_text(json.dumps(run.document(), indent=2))
    return run.document()


def _confirm_at_terminal(question: str) -> None:
    """Raise SystemExit unless the operator at the terminal says yes."""
    if sys.stdin is None or not sys.stdin.isatty():
        _exit(2, f"not confirmed, nothing was changed: --yes answers yes to: {question}")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        _exit(2, "not confirmed, nothing was changed")


def _exit(code: int, line: str) -> NoReturn:
    print(line, file=sys.stderr)
    sys.exit(code)


def _folder(text: str) -> Path:
    """Return the folder that an argument names.

    An empty text, such as an unset shell variable, is refused. It must not mean the current folder.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: name a folder")
    return Path(text)


def main() -> int:
    """Run the program from the command line. Return its exit code."""
    parser = argparse.ArgumentParser(description=PLAN)
    parser.add_argument("folder", metavar="DIR", type=_folder, help="where the records are saved")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long, at most")
    parser.add_argument("--yes", action="store_true", help="answer yes to every question")
    given = parser.parse_args()
    import boto3

    try:
        document = drill(
            boto3.Session(),
            given.folder,
            given.minutes,
            print,
            str if given.yes else _confirm_at_terminal,
        )
    except SystemExit as refused:
        if isinstance(refused.code, str):  # about `unfinished.json`
            _exit(2, refused.code)
        raise
    except (*_FROM_AWS, OSError) as error:
        _exit(1, str(error))
    except KeyboardInterrupt:
        _exit(1, f"interrupted; if {given.folder / UNFINISHED} exists, run this again to clean up")
    for line in table(document):
        print(line)
    return int(any(document[what] for what in ("left", "left_alone", "refused")))


if __name__ == "__main__":
    sys.exit(main())
