"""Record what CloudTrail writes about failed SQS calls: `python record_failed_calls.py DIR`.

This file runs alone, with boto3 and Python 3.9 or newer. `mendq drill --record DIR` does the same.

A run makes some AWS resources, lets calls fail on them, saves the CloudTrail records of these calls
in DIR, and deletes what it made, also after Ctrl-C. `DIR/unfinished.json` exists while a run is not
cleaned up. If a run is killed, the next run with the same DIR cleans up after it, once you say yes.

Rules that keep the clean-up safe:

1. The file `unfinished.json` only names a run. Anybody can write a file, so nothing in it decides
   what is deleted. If it is torn, or names no run of this account and region, the program ends.
2. The queue `events` is made first and deleted last. Its tag says who started the run, and SQS says
   when it was made. A run without this queue, or with another caller's tag, is left alone.
3. All resources except the KMS key have names that contain the run's random id. They are deleted by
   name, in the caller's account and region only.
4. A KMS key has no name. An earlier run's key, or one whose CreateKey answer was lost, is deleted
   only if AWS says three things: the description is the one that the run gives its key, the key was
   created while the run was making its resources, and its key policy allows something to the caller
   and to nobody else. Any other key stays as it is, and its id is printed if it seems to be the
   run's.
5. Before the clean-up of an earlier run, the program asks the operator. The yes that starts a run
   also covers the run's own clean-up.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shlex
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, NamedTuple, NoReturn

from botocore.exceptions import BotoCoreError, ClientError

FunctionOfText = Callable[[str], object]
JsonObject = dict[str, Any]

# The names of all resources of a run except the KMS key begin with this.
NAME_PREFIX = "mendq-drill-record-"
# Tags of a run's queues. Mendq leaves queues with these tags alone, and its reports omit them.
QUEUE_TAGS = {"mendq": "off", "mendq:drill": "true"}
# Tags of the queue `events`: the id of the identity that started the run, and its KMS key's id.
CALLER_TAG = "mendq-drill-caller"
KMS_KEY_TAG = "mendq-drill-key"
# The value of KMS_KEY_TAG if AWS refused to make a key.
NO_KMS_KEY_TAG_VALUE = "refused"
UNFINISHED_FILE_NAME = "unfinished.json"
# A run's own file has about 100 bytes.
MAXIMUM_UNFINISHED_FILE_BYTES = 64 * 1024

DEFAULT_MINUTES = 20.0
# Pause between two looks for new records.
POLL_PAUSE_SECONDS = 5.0
# After this time the visibility timeout of a received message, one second, is over.
VISIBILITY_WAIT_SECONDS = 2.0
# KMS disables a key within a minute. If a call uses the key earlier,
# SQS keeps a data key of it for five minutes.
KEY_DISABLING_SECONDS = 60.0
# A run makes its key within this time after its queue `events`.
KEY_CREATION_WINDOW_SECONDS = 900.0
# The clocks of KMS and SQS may differ by this much.
MAXIMUM_CLOCK_DIFFERENCE_SECONDS = 5.0
# Number of receives that provoke throttling, and how many of them are sent at the same time.
BURST_CALL_COUNT = 1_000
PARALLEL_CALL_COUNT = 20
# The shortest time that KMS allows between the request to delete a key and its deletion.
KEY_DELETION_DAYS = 7
# Prices in us-east-1: an SQS call and its data event, an S3 request (at most), a key's first hour.
DOLLARS_BY_SERVICE_OR_CALL = {"sqs": 1.4e-6, "s3": 5e-6, "kms.create_key": 0.0014}

RECORDING_PLAN_TEXT = (
    f"This makes AWS resources named {NAME_PREFIX}...: a trail with a bucket, an\n"
    "EventBridge rule, queues, a topic and a role, and a KMS key. It lets SQS calls fail on these "
    "queues\n"
    "and saves their CloudTrail records. Then it deletes all of it. A KMS key cannot be deleted at "
    "once:\n"
    f"its deletion is scheduled, in {KEY_DELETION_DAYS} days. It costs about $0.01. Use a sandbox "
    "account."
)

# How a record arrives: in a file of the trail, or as an event of EventBridge. The value is the
# setup step that this delivery needs.
SETUP_STEP_NAME_BY_DELIVERY = {"trail": "logging", "event": "target"}

# A trail's file has at most 50 MB unpacked. zlib reads gzip with these bits.
_MOST_TRAIL_FILE_BYTES = 64 * 1024**2
_GZIP_WINDOW_BITS = 31
# Real records have fewer levels. Python's recursion would end at about 1,000.
_MOST_RECORD_LEVELS = 100
# The calls of a run leave far fewer records.
_MOST_RECEIVES_PER_LOOK = 100
# Errors that AWS answers or botocore raises.
_AWS_ERRORS = (ClientError, BotoCoreError)
# Error codes of all services used here for a resource that does not exist.
_MISSING_RESOURCE_PATTERN = re.compile(
    "NotFound|NoSuch|NonExistent|QueueDoesNotExist|KMSInvalidState"
)
_RUN_ID_PATTERN = re.compile("[0-9a-f]{8}")
_KEY_ID_PATTERN = re.compile("[0-9A-Za-z-]{1,64}")
_PLACEHOLDER_PATTERN = re.compile(r"<([\w.-]+)>")


class JsonDocument(dict[str, Any]):
    """A policy or event pattern, which AWS takes as JSON text. See `fill_placeholders`."""


class SetupStep(NamedTuple):
    """One step of a run's setup: an AWS call, and the call that deletes what it made.

    Operations are named as in boto3, such as `sqs.create_queue`. `delete_operation` is None if the
    deletion of another step's resource also removes what this step made.
    """

    name: str
    create_operation: str
    create_arguments: JsonObject
    delete_operation: str | None = None
    delete_arguments: JsonObject | None = None


class FailingCall(NamedTuple):
    """A call that is meant to fail.

    `operation` is boto3's client and method, such as `sqs.send_message`.
    """

    name: str
    operation: str
    arguments: JsonObject


def make_policy(*statements: JsonObject) -> JsonDocument:
    """Return a policy of these statements. A statement without an `Effect` allows."""
    return JsonDocument(
        Version="2012-10-17",
        Statement=[{"Effect": "Allow", **statement} for statement in statements],
    )


def make_service_statement(service: str, source_arn: str, action: Any, resource: Any) -> JsonObject:
    """Return a statement that lets an AWS service act on behalf of one source ARN."""
    return {
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Condition": {"ArnEquals": {"aws:SourceArn": source_arn}},
        "Action": action,
        "Resource": resource,
    }


def add_queue_url(queue_kind: str, **arguments: Any) -> JsonObject:
    """Return a call's arguments and the placeholder `<queue_kind>` for the queue's URL."""
    return {"QueueUrl": f"<{queue_kind}>", **arguments}


def make_queue_step(
    queue_kind: str, tags: JsonObject | None = None, **attributes: Any
) -> SetupStep:
    """Return the setup step that makes a queue. The queue's name ends in `queue_kind`."""
    if queue_kind.endswith(".fifo"):
        attributes["FifoQueue"] = "true"
    arguments = {
        "QueueName": f"<name>-{queue_kind}",
        "Attributes": attributes,
        "tags": {**QUEUE_TAGS, **(tags or {})},
    }
    return SetupStep(
        queue_kind, "sqs.create_queue", arguments, "sqs.delete_queue", add_queue_url(queue_kind)
    )


# In all arguments below, `<word>` is a placeholder for a value that only a run knows: see
# `RecordingRun.__init__`. Any other word is a kind of queue and stands for that queue's URL.
_BUCKET_CALL_ARGUMENTS = {"Bucket": "<bucket>", "ExpectedBucketOwner": "<account>"}
_BUCKET_ARN = "arn:<partition>:s3:::<bucket>"
_BUCKET_POLICY = make_policy(
    make_service_statement(
        "cloudtrail",
        "<trail>",
        ["s3:GetBucketAcl", "s3:PutObject"],
        [_BUCKET_ARN, f"{_BUCKET_ARN}/*"],
    )
)
_EVENT_SELECTORS = [
    {
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
            {"Field": "resources.ARN", "StartsWith": ["<sqs>-on-"]},
        ]
    }
]
_EVENT_PATTERN = JsonDocument(
    source=["aws.sqs"],
    detail={"eventSource": ["sqs.amazonaws.com"], "errorCode": [{"exists": True}]},
)
# The actions that the key policy allows the caller. CreateKey refuses a policy that the caller
# could not change. The policy does not name the account, so no IAM policy alone allows anybody to
# use or delete the key.
# https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html
KEY_POLICY_ACTIONS = [
    "kms:PutKeyPolicy",
    "kms:DescribeKey",
    "kms:GetKeyPolicy",
    "kms:DisableKey",
    "kms:GenerateDataKey",
    "kms:Decrypt",
    "kms:ScheduleKeyDeletion",
]
KEY_DESCRIPTION = "<name>: for failing SQS calls, made by mendq drill"
_KEY_POLICY = make_policy(
    {"Principal": {"AWS": "<principal>"}, "Action": KEY_POLICY_ACTIONS, "Resource": "*"},
)
_ALLOW_SNS_STATEMENT = make_service_statement(
    "sns", "<topic>", "sqs:SendMessage", "<sqs>-on-encrypted"
)
_ALLOW_ROLE_STATEMENT = {
    "Principal": "*",
    "Action": "sqs:SendMessage",
    "Resource": "<sqs>-on-encrypted",
    "Condition": {"ArnEquals": {"aws:PrincipalArn": "<role>"}},
}
_DENY_SENDS_STATEMENT = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:SendMessage",
    "Resource": "<sqs>-on-denying",
}
_ROLE_TRUST_POLICY = make_policy(
    {
        "Principal": {"AWS": "arn:<partition>:iam::<account>:root"},
        "Action": "sts:AssumeRole",
    }
)

# Resources are made in this order and deleted in the reverse order. The tag of the first one, the
# queue `events`, proves whose run it is (rule 2).
SETUP_STEPS: tuple[SetupStep, ...] = (
    make_queue_step(
        "events",
        tags={CALLER_TAG: "<caller>"},
        Policy=make_policy(
            make_service_statement("events", "<rule>", "sqs:SendMessage", "<sqs>-events")
        ),
    ),
    # The key comes second, so that KMS makes it soon after the queue `events` (rule 4).
    SetupStep(
        "key",
        "kms.create_key",
        {
            "Description": KEY_DESCRIPTION,
            "Policy": _KEY_POLICY,
        },
        "kms.schedule_key_deletion",
        {"KeyId": "<key>", "PendingWindowInDays": KEY_DELETION_DAYS},
    ),
    SetupStep(
        "bucket",
        "s3.create_bucket",
        {
            "Bucket": "<bucket>",
            "CreateBucketConfiguration": {"LocationConstraint": "<region>"},
        },
        "s3.delete_bucket",
        _BUCKET_CALL_ARGUMENTS,
    ),
    SetupStep(
        "access", "s3.put_bucket_policy", {**_BUCKET_CALL_ARGUMENTS, "Policy": _BUCKET_POLICY}
    ),
    SetupStep(
        "trail",
        "cloudtrail.create_trail",
        {"Name": "<name>", "S3BucketName": "<bucket>"},
        "cloudtrail.delete_trail",
        {"Name": "<name>"},
    ),
    SetupStep(
        "selectors",
        "cloudtrail.put_event_selectors",
        {"TrailName": "<trail>", "AdvancedEventSelectors": _EVENT_SELECTORS},
    ),
    SetupStep("logging", "cloudtrail.start_logging", {"Name": "<trail>"}),
    SetupStep(
        "rule",
        "events.put_rule",
        {"Name": "<name>", "EventPattern": _EVENT_PATTERN},
        "events.delete_rule",
        {"Name": "<name>"},
    ),
    SetupStep(
        "target",
        "events.put_targets",
        {"Rule": "<name>", "Targets": [{"Id": "queue", "Arn": "<sqs>-events"}]},
        "events.remove_targets",
        {"Rule": "<name>", "Ids": ["queue"]},
    ),
    make_queue_step("on-standard", MaximumMessageSize="1024"),
    make_queue_step("on-x.fifo"),
    make_queue_step("on-denying", Policy=make_policy(_DENY_SENDS_STATEMENT)),
    make_queue_step(
        "on-encrypted",
        KmsMasterKeyId="<key>",
        Policy=make_policy(_ALLOW_SNS_STATEMENT, _ALLOW_ROLE_STATEMENT),
    ),
    SetupStep(
        "topic",
        "sns.create_topic",
        {"Name": "<name>"},
        "sns.delete_topic",
        {"TopicArn": "<topic>"},
    ),
    SetupStep(
        "subscription",
        "sns.subscribe",
        {"TopicArn": "<topic>", "Protocol": "sqs", "Endpoint": "<sqs>-on-encrypted"},
    ),
    SetupStep(
        "role",
        "iam.create_role",
        {"RoleName": "<name>", "AssumeRolePolicyDocument": _ROLE_TRUST_POLICY},
        "iam.delete_role",
        {"RoleName": "<name>"},
    ),
)
_EVENTS_QUEUE_STEP = SETUP_STEPS[0]

_MESSAGE_BODY_ARGUMENT = {"MessageBody": "mendq drill"}
_LATE_EXTENSION_ARGUMENTS = {"ReceiptHandle": "<late>", "VisibilityTimeout": 30}
_NAMES_OF_CALLS_BY_ROLE = ("denied_by_key", "denied_by_role")
# The key is disabled last: before that, SNS and the role must be refused by its key policy.
FAILING_CALLS: tuple[FailingCall, ...] = (
    FailingCall("by_a_service", "sns.publish", {"TopicArn": "<topic>", "Message": "x"}),
    FailingCall(
        "denied_by_key", "sqs.send_message", add_queue_url("on-encrypted", **_MESSAGE_BODY_ARGUMENT)
    ),
    FailingCall(
        "denied_by_role", "sqs.send_message", add_queue_url("on-standard", **_MESSAGE_BODY_ARGUMENT)
    ),
    FailingCall(
        "denied_by_queue", "sqs.send_message", add_queue_url("on-denying", **_MESSAGE_BODY_ARGUMENT)
    ),
    FailingCall(
        "missing_queue", "sqs.send_message", add_queue_url("on-missing", **_MESSAGE_BODY_ARGUMENT)
    ),
    FailingCall(
        "bad_parameter", "sqs.receive_message", add_queue_url("on-standard", WaitTimeSeconds=21)
    ),
    FailingCall(
        "long_message", "sqs.send_message", add_queue_url("on-standard", MessageBody="x" * 2_000)
    ),
    FailingCall(
        "no_deduplication_id",
        "sqs.send_message",
        add_queue_url("on-x.fifo", **_MESSAGE_BODY_ARGUMENT, MessageGroupId="x"),
    ),
    FailingCall(
        "late_delete", "sqs.delete_message", add_queue_url("on-x.fifo", ReceiptHandle="<late>")
    ),
    FailingCall(
        "late_extension",
        "sqs.change_message_visibility",
        add_queue_url("on-x.fifo", **_LATE_EXTENSION_ARGUMENTS),
    ),
    FailingCall(
        "late_extension_standard",
        "sqs.change_message_visibility",
        add_queue_url("on-standard", **_LATE_EXTENSION_ARGUMENTS),
    ),
    FailingCall(
        "failing_in_batch",
        "sqs.delete_message_batch",
        add_queue_url("on-x.fifo", Entries=[{"Id": "1", "ReceiptHandle": "<late>"}]),
    ),
    FailingCall("throttled", "sqs.receive_message", add_queue_url("on-x.fifo")),
    FailingCall(
        "disabled_key", "sqs.send_message", add_queue_url("on-encrypted", **_MESSAGE_BODY_ARGUMENT)
    ),
)


class Caller:
    """The identity that runs this program, as STS reports it."""

    def __init__(self, session: Any) -> None:
        identity = session.client("sts").get_caller_identity()
        self.arn: str = identity["Arn"]
        self.region: str = session.region_name
        _, self.partition, _, _, self.account, arn_resource = self.arn.split(":", 5)
        self.is_role = arn_resource.startswith("assumed-role/")
        # The name of a role or user. For the root user, its ARN.
        self.name = arn_resource.split("/")[1] if self.is_role else self.arn.rpartition("/")[2]
        # The id is unique: a new role with an old role's name has another. Sessions of a role share
        # it. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
        user_id: str = identity["UserId"]
        self.unique_id = user_id.partition(":")[0] if self.is_role else user_id
        self.is_role_path_known = True
        self._session = session

    def find_principal_arn(self) -> str:
        """Return the ARN that a key policy must name to allow the caller.

        For a session this is the ARN of its role. A session's own ARN does not contain the role's
        path, so IAM is asked for the role. If the caller may not ask IAM, the result has no path.
        If the role has a path, CreateKey then refuses the policy, because the policy names no
        existing role.
        """
        if not self.is_role:
            return self.arn
        with suppress(*_AWS_ERRORS):
            role = self._session.client("iam").get_role(RoleName=self.name)["Role"]
            return str(role["Arn"])
        self.is_role_path_known = False
        return f"arn:{self.partition}:iam::{self.account}:role/{self.name}"

    def is_only_principal_of(self, key_policy: str) -> bool:
        """Return True if the key policy allows something to the caller by name, and to nobody else.

        A run's own key has such a policy. A key that others may use too may belong to them.
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
            principal_arns = principal["AWS"]
            principals.extend(
                principal_arns if isinstance(principal_arns, list) else [principal_arns]
            )
        return bool(principals) and all(
            isinstance(arn, str) and self._is_own_arn(arn) for arn in principals
        )

    def _is_own_arn(self, arn: str) -> bool:
        if not self.is_role:
            return arn == self.arn
        # Role names are unique in an account, whatever their paths.
        role_arn_prefix = f"arn:{self.partition}:iam::{self.account}:role/"
        return arn.startswith(role_arn_prefix) and arn.rpartition("/")[2] == self.name


class UnfinishedRun(NamedTuple):
    """The run that `unfinished.json` names."""

    run_id: str
    # Id of a KMS key that earlier versions wrote into the file, or empty. A key is never deleted
    # only because the file names it.
    kms_key_id: str = ""


def read_unfinished_run(file: Path, account: str, region: str) -> UnfinishedRun:
    """Return the run that `unfinished.json` names.

    Raises SystemExit if the file names no run of this account and region. The error's text names
    the file and says what to do.
    """
    try:
        if not file.is_file():
            _refuse_unfinished_file(file, "is not a regular file")
        with file.open("rb") as open_file:
            content = open_file.read(MAXIMUM_UNFINISHED_FILE_BYTES + 1)
    except OSError as error:
        _refuse_unfinished_file(file, f"cannot be read ({error.strerror})")
    if len(content) > MAXIMUM_UNFINISHED_FILE_BYTES:
        _refuse_unfinished_file(file, "is too long to be written by this program")
    try:
        stored_run = json.loads(content)
    except (ValueError, RecursionError):
        _refuse_unfinished_file(file, "is torn or is not JSON")
    run_id = stored_run.get("run") if isinstance(stored_run, dict) else None
    if not isinstance(run_id, str) or not _RUN_ID_PATTERN.fullmatch(run_id):
        _refuse_unfinished_file(file, "names no run of this program")
    if stored_run.get("here") != f"{region}:{account}":
        raise SystemExit(
            f"{file} is of another account or region than {account} in {region}. "
            "Nothing was deleted. Use that account's credentials and region, or another DIR."
        )
    kms_key_id = stored_run.get("key")
    has_valid_key_id = isinstance(kms_key_id, str) and _KEY_ID_PATTERN.fullmatch(kms_key_id)
    return UnfinishedRun(run_id, str(kms_key_id) if has_valid_key_id else "")


def _refuse_unfinished_file(file: Path, fault: str) -> NoReturn:
    raise SystemExit(
        f"{file} {fault}, so it does not say which run it is about. Nothing was deleted. If a run "
        f"with this DIR was killed, delete by hand what is named {NAME_PREFIX}... and is yours. "
        f"Then delete the file: rm {shlex.quote(str(file))}"
    )


def _write_private_file(path: Path, text: str) -> None:
    """Write a new file that only its owner can read: CloudTrail records name people and roles."""
    file_descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file_descriptor, "w") as open_file:
        open_file.write(text)


def find_field_paths(value: Any, text_to_find: str, path: str = "") -> Iterator[str]:
    """Yield the paths of text fields that contain `text_to_find`, such as `userIdentity.arn`."""
    if isinstance(value, str) and text_to_find in value:
        yield path
    inner_value_by_name: Any = ()
    if isinstance(value, dict):
        inner_value_by_name = value.items()
    elif isinstance(value, list):
        inner_value_by_name = enumerate(value)
    for name, inner_value in inner_value_by_name:
        yield from find_field_paths(inner_value, text_to_find, f"{path}.{name}".lstrip("."))


def name_symptom(record: Any) -> str:
    """Return the name of the symptom that Mendq sees in a record.

    If there is none, return a text that says why: Mendq is not installed, or cannot read the
    record.
    """
    try:
        from mendq.cli.look.explain import explain_record
    except ImportError:
        return "install mendq"
    record_explanation = explain_record(record)
    return str(record_explanation["symptom"] or f"not read: {record_explanation['unreadable']}")


class RecordingRun:
    """A run: it makes resources, lets calls on them fail, saves the records, and cleans up.

    Attributes:
        row_by_call: AWS's answer to each failing call and the call's records, by the call's name.
        refusal_by_name: Why AWS refused a setup step, or why a call could not be sent, by the name
            of the step or call.
        deletion_failure_by_name: Why a resource could not be deleted, and the command that deletes
            it, by the name of its setup step.
        text_by_undeleted_key_id: Why a KMS key that looks like the run's was not deleted, by the
            key's id.
        cost_dollars: The estimated cost so far, in US dollars.
    """

    def __init__(
        self,
        session: Any,
        folder: Path,
        print_line: FunctionOfText,
        unfinished_run: UnfinishedRun | None = None,
    ) -> None:
        """Prepare a new run, or the clean-up of `unfinished_run` if that is given."""
        self._session = session
        self._print_line = print_line
        self._clients: dict[tuple[str, bool], Any] = {}
        self.caller = Caller(session)
        account, region = self.caller.account, self.caller.region
        partition = self.caller.partition
        self.run_id = unfinished_run.run_id if unfinished_run else secrets.token_hex(4)
        self._key_id_in_file = unfinished_run.kms_key_id if unfinished_run else ""
        self.unfinished_file = folder / UNFINISHED_FILE_NAME
        self.records_folder = folder / self.run_id
        self.name = NAME_PREFIX + self.run_id
        region_and_account = f"{region}:{account}"
        # Values of the placeholders in SETUP_STEPS and FAILING_CALLS. The last three are set later.
        self._value_by_placeholder: dict[str, str] = {
            "name": self.name,
            "bucket": f"{self.name}-{account}",
            "account": account,
            "region": region,
            "partition": partition,
            "caller": self.caller.unique_id,
            "sqs": f"arn:{partition}:sqs:{region_and_account}:{self.name}",
            "topic": f"arn:{partition}:sns:{region_and_account}:{self.name}",
            "trail": f"arn:{partition}:cloudtrail:{region_and_account}:trail/{self.name}",
            "rule": f"arn:{partition}:events:{region_and_account}:rule/{self.name}",
            "role": f"arn:{partition}:iam::{account}:role/{self.name}",
            "key": "",
            "late": "",
            "principal": "",
        }
        self._queue_url_prefix = f"{session.client('sqs').meta.endpoint_url}/{account}/{self.name}"
        # Names of the setup steps that may have made something: of an earlier run, all of them.
        self._possible_step_names = (
            {step.name for step in SETUP_STEPS} if unfinished_run else set[str]()
        )
        # Ids of the run's KMS keys. None if they were not searched, or AWS did not answer.
        self._key_ids: list[str] | None = None
        # Records that have not arrived yet: names of calls and deliveries.
        self._awaited_records: set[tuple[str, str]] = set()
        self.row_by_call: dict[str, JsonObject] = {}
        self.refusal_by_name: dict[str, str] = {}
        self.deletion_failure_by_name: dict[str, str] = {}
        self.text_by_undeleted_key_id: dict[str, str] = {}
        self.cost_dollars = BURST_CALL_COUNT * DOLLARS_BY_SERVICE_OR_CALL["sqs"]

    def fill_placeholders(self, value: Any) -> Any:
        """Return a copy of a call's arguments as AWS takes them.

        Each `<word>` is replaced by its value, and each JsonDocument by its JSON text.
        """
        if isinstance(value, str):
            return _PLACEHOLDER_PATTERN.sub(self._find_placeholder_value, value)
        if isinstance(value, list):
            return [self.fill_placeholders(item) for item in value]
        if not isinstance(value, dict):
            return value
        filled_arguments = {
            name: self.fill_placeholders(argument_value) for name, argument_value in value.items()
        }
        return json.dumps(filled_arguments) if isinstance(value, JsonDocument) else filled_arguments

    def _find_placeholder_value(self, match: re.Match[str]) -> str:
        placeholder = match[1]
        return self._value_by_placeholder.get(
            placeholder, f"{self._queue_url_prefix}-{placeholder}"
        )

    def _get_client(self, service: str, *, has_retries: bool = True) -> Any:
        """Return a client of an AWS service.

        Without retries the client sends each request only once.
        """
        if (service, has_retries) not in self._clients:
            config = None if has_retries else _make_config_without_retries()
            self._clients[service, has_retries] = self._session.client(service, config=config)
        return self._clients[service, has_retries]

    def _call_aws(self, operation: str, arguments: JsonObject, *, has_retries: bool = True) -> Any:
        """Fill in a call's placeholders, send the call, and return AWS's answer."""
        service, method = operation.split(".")
        self._add_cost(operation)
        return getattr(self._get_client(service, has_retries=has_retries), method)(
            **self.fill_placeholders(arguments)
        )

    def _add_cost(self, operation: str) -> None:
        service = operation.partition(".")[0]
        self.cost_dollars += DOLLARS_BY_SERVICE_OR_CALL.get(service, 0)
        self.cost_dollars += DOLLARS_BY_SERVICE_OR_CALL.get(operation, 0)

    def _write_unfinished_file(self) -> None:
        """Write `unfinished.json` in one step, so that a killed run leaves no half-written file.

        If DIR contains a link of that name, the link is replaced and not followed.
        """
        file_descriptor, temporary_file = tempfile.mkstemp(
            prefix=f"{UNFINISHED_FILE_NAME}.", dir=self.unfinished_file.parent
        )
        with os.fdopen(file_descriptor, "w") as open_file:
            region_and_account = f"{self.caller.region}:{self.caller.account}"
            json.dump({"run": self.run_id, "here": region_and_account}, open_file)
        Path(temporary_file).replace(self.unfinished_file)

    def make_resources(self) -> None:
        """Write `unfinished.json`, then run all setup steps.

        Stop if AWS refuses the first resource, the queue `events`. `refusal_by_name` gets the error
        of each step that AWS refuses.
        """
        self._write_unfinished_file()
        self._value_by_placeholder["principal"] = self.caller.find_principal_arn()
        for step in SETUP_STEPS:
            self._run_setup_step(step)
            if _EVENTS_QUEUE_STEP.name in self.refusal_by_name:
                return

    def _run_setup_step(self, step: SetupStep) -> None:
        arguments = dict(step.create_arguments)
        if step.name == "bucket" and self.caller.region == "us-east-1":
            del arguments["CreateBucketConfiguration"]  # S3 refuses this region as a constraint
        self._possible_step_names.add(step.name)
        try:
            answer = self._call_aws(step.create_operation, arguments, has_retries=False)
        except _AWS_ERRORS as error:
            self.refusal_by_name[step.name] = str(error)
            if step.name == "key" and not self.caller.is_role_path_known:
                self.refusal_by_name[step.name] += (
                    f". If the role {self.caller.name} has a path, allow yourself iam:GetRole on "
                    "it: the key policy must name the role with its path"
                )
            if _is_certain_refusal(error):
                self._possible_step_names.discard(step.name)
                if step.name == "key":
                    self._store_key_tag(NO_KMS_KEY_TAG_VALUE)
            return
        if step.name == "key":
            self._value_by_placeholder["key"] = answer["KeyMetadata"]["KeyId"]
            self._store_key_tag(self._value_by_placeholder["key"])

    def _store_key_tag(self, key_tag_value: str) -> None:
        """Store the KMS key's id in a tag of the queue `events`, where a later run finds it.

        `key_tag_value` is the key's id, or NO_KMS_KEY_TAG_VALUE. Errors of AWS are ignored.
        """
        with suppress(*_AWS_ERRORS):
            self._call_aws(
                "sqs.tag_queue",
                add_queue_url(_EVENTS_QUEUE_STEP.name, Tags={KMS_KEY_TAG: key_tag_value}),
            )

    def describe_unfinished_run(self) -> str:
        """Return a text about an unfinished run: when it started, and what a clean-up would delete.

        The text is for the operator. Nothing is changed. Raises SystemExit if AWS does not confirm
        that the caller started the run.
        """
        try:
            start_seconds = self._read_start_seconds()
            tags = self._read_queue_tags()
        except ClientError as error:
            if not _is_missing_resource(error):
                raise
            self._refuse_unfinished_run(f"AWS has no queue {self.name}-{_EVENTS_QUEUE_STEP.name}")
        if tags.get(CALLER_TAG) != self.caller.unique_id:
            self._refuse_unfinished_run(
                f"the queue {self.name}-{_EVENTS_QUEUE_STEP.name} is not tagged with your identity"
            )
        start_time = datetime.fromtimestamp(start_seconds, timezone.utc)
        self._find_own_keys()
        description = (
            f"{self.unfinished_file} names the run {self.name}. AWS says that you started it at "
            f"{start_time:%Y-%m-%d %H:%M:%S UTC}.\n"
            "The clean-up deletes what is left of it: the trail, the bucket with its files, the\n"
            "rule, the queues, the topic and the role of that name in "
            f"{self.caller.account}, {self.caller.region}.\n"
        )
        if self._key_ids is None:
            description += f"Its KMS key stays: {self.deletion_failure_by_name['key']}\n"
        for key_id in self._key_ids or ():
            description += (
                f"It schedules the deletion of the run's KMS key {key_id}, in "
                f"{KEY_DELETION_DAYS} days.\n"
            )
        for undeleted_key_text in self.text_by_undeleted_key_id.values():
            description += f"{undeleted_key_text}\n"
        already_mentioned_key_ids = (*(self._key_ids or ()), *self.text_by_undeleted_key_id)
        if self._key_id_in_file and self._key_id_in_file not in already_mentioned_key_ids:
            description += f"{self._describe_key_in_file()}\n"
        return f"{description}If another terminal is still running it, answer no."

    def _refuse_unfinished_run(self, reason: str) -> NoReturn:
        raise SystemExit(
            f"{self.unfinished_file} names the run {self.name}, but {reason}, so nothing shows "
            f"that the run is yours. Nothing was deleted. {self._describe_key_in_file()}"
            "If the run is yours, delete by hand what has that name. "
            f"Then delete the file: rm {shlex.quote(str(self.unfinished_file))}"
        )

    def _describe_key_in_file(self) -> str:
        if not self._key_id_in_file:
            return ""
        return f"The KMS key {self._key_id_in_file}, which only the file names, is left alone. "

    def _read_start_seconds(self) -> float:
        """Return the time at which SQS made the queue `events`, in seconds since 1970."""
        arguments = add_queue_url(_EVENTS_QUEUE_STEP.name, AttributeNames=["CreatedTimestamp"])
        answer = self._call_aws("sqs.get_queue_attributes", arguments)
        return float(answer["Attributes"]["CreatedTimestamp"])

    def _read_queue_tags(self) -> dict[str, str]:
        tags: dict[str, str] = self._call_aws(
            "sqs.list_queue_tags", add_queue_url(_EVENTS_QUEUE_STEP.name)
        ).get("Tags", {})
        return tags

    def _find_own_keys(self) -> None:
        """Search for the run's KMS keys by rule 4 and store their ids in `_key_ids`.

        If AWS refuses or does not answer, `_key_ids` is None and `deletion_failure_by_name` gets
        the error.
        """
        self.deletion_failure_by_name.pop("key", None)
        try:
            self._key_ids = self._search_own_keys()
        except _AWS_ERRORS as error:
            self._key_ids = None
            self.deletion_failure_by_name["key"] = (
                f"the run's key could not be looked for: {error}. Look for a key whose description "
                f"begins with {self.name}: aws kms list-keys, aws kms describe-key --key-id KEY"
            )

    def _search_own_keys(self) -> list[str]:
        if self._value_by_placeholder["key"]:
            return [self._value_by_placeholder["key"]]  # CreateKey's own answer
        start_seconds = self._read_start_seconds()
        tagged_key_id = self._read_queue_tags().get(KMS_KEY_TAG, "")
        if tagged_key_id == NO_KMS_KEY_TAG_VALUE:
            return []
        if _KEY_ID_PATTERN.fullmatch(tagged_key_id) and self._is_own_key(
            tagged_key_id, start_seconds, is_tagged=True
        ):
            return [tagged_key_id]
        listed_key_ids: list[str] = []
        for page in self._get_client("kms").get_paginator("list_keys").paginate():
            listed_key_ids.extend(key["KeyId"] for key in page["Keys"])
        return [
            key_id
            for key_id in listed_key_ids
            if key_id != tagged_key_id and self._is_own_key(key_id, start_seconds)
        ]

    def _is_own_key(self, key_id: str, start_seconds: float, *, is_tagged: bool = False) -> bool:
        """Return True if AWS's answers say that the key is the run's (rule 4).

        If the key only seems to be the run's, `text_by_undeleted_key_id` gets the reason why it
        is left alone. `is_tagged` is True if the tag of the queue `events` contains the key's id.
        The tag alone never proves that the key is the run's.
        """
        try:
            key_metadata = self._call_aws("kms.describe_key", {"KeyId": key_id})["KeyMetadata"]
        except ClientError as error:
            if not (_is_access_denied(error) or _is_missing_resource(error)):
                raise
            if is_tagged and _is_access_denied(error):
                self._note_undeleted_key(key_id, "AWS does not let you see it")
            return False
        creation_seconds = key_metadata["CreationDate"].timestamp()
        if not re.search(rf"{self.name}\b", key_metadata.get("Description", "")):
            if is_tagged:
                self._note_undeleted_key(key_id, "its description does not name the run")
            return False
        if key_metadata["Description"] != self.fill_placeholders(KEY_DESCRIPTION):
            self._note_undeleted_key(
                key_id, "its description is not the one that the run gives its key"
            )
            return False
        earliest_seconds = start_seconds - MAXIMUM_CLOCK_DIFFERENCE_SECONDS
        latest_seconds = start_seconds + KEY_CREATION_WINDOW_SECONDS
        if not earliest_seconds <= creation_seconds <= latest_seconds:
            self._note_undeleted_key(
                key_id, "it was not created while the run was making its resources"
            )
            return False
        return self._has_policy_for_caller_only(key_id)

    def _has_policy_for_caller_only(self, key_id: str) -> bool:
        """Return True if the caller is the only principal to which the key policy allows anything.

        Otherwise `text_by_undeleted_key_id` gets the reason.
        """
        try:
            answer = self._call_aws(
                "kms.get_key_policy", {"KeyId": key_id, "PolicyName": "default"}
            )
        except ClientError as error:
            if not _is_access_denied(error):
                raise
            self._note_undeleted_key(key_id, "AWS does not let you read its key policy")
            return False
        if not self.caller.is_only_principal_of(answer["Policy"]):
            self._note_undeleted_key(
                key_id, f"its key policy names others than you or not you ({self.caller.arn})"
            )
            return False
        return True

    def _note_undeleted_key(self, key_id: str, reason: str) -> None:
        self.text_by_undeleted_key_id[key_id] = (
            f"The KMS key {key_id} is left alone. It looks like the key of {self.name}, but "
            f"{reason}. Find out whose it is before you change it: "
            f"aws kms describe-key --key-id {key_id}"
        )

    def delete_resources(self) -> None:
        """Delete all resources by name, and the KMS key if AWS says that it is this run's.

        `deletion_failure_by_name` gets what could not be deleted. If it is empty, `unfinished.json`
        is deleted too.
        """
        if "key" in self._possible_step_names and self._key_ids is None:
            self._find_own_keys()
        for step in reversed(SETUP_STEPS):
            if step.delete_operation is not None and step.name in self._possible_step_names:
                self._delete_resources_of_step(step)
        if not self.deletion_failure_by_name:
            with suppress(FileNotFoundError):
                self.unfinished_file.unlink()

    def _delete_resources_of_step(self, step: SetupStep) -> None:
        """Delete what a setup step made: each KMS key of the run, or the resource by its name.

        The queue `events` is kept if something else could not be deleted (rule 2).
        """
        if step.name == "key":
            for key_id in self._key_ids or ():
                self._value_by_placeholder["key"] = key_id
                self._delete_resource(step)
        elif step is _EVENTS_QUEUE_STEP and self.deletion_failure_by_name:
            self.deletion_failure_by_name[step.name] = (
                "kept, because it shows that the rest is yours. Delete it last: "
                f"{self._make_delete_command(step)}"
            )
        else:
            self._delete_resource(step)

    def _delete_resource(self, step: SetupStep) -> None:
        # The trail may deliver a last file between emptying the bucket and deleting it.
        for is_last_attempt in (False, True):
            try:
                if step.name == "bucket":
                    self._empty_bucket()
                self._call_aws(str(step.delete_operation), step.delete_arguments or {})
            except _AWS_ERRORS as error:
                if _is_missing_resource(error):
                    return
                if is_last_attempt or "BucketNotEmpty" not in str(error):
                    self.deletion_failure_by_name[step.name] = (
                        f"{error}: {self._make_delete_command(step)}"
                    )
                    return
            else:
                return

    def _make_delete_command(self, step: SetupStep) -> str:
        """Return an AWS CLI command, to paste into a shell, that deletes what the step made."""
        service, method = str(step.delete_operation).split(".")
        if service == "s3":
            service = "s3api"
        quoted_arguments = shlex.quote(json.dumps(self.fill_placeholders(step.delete_arguments)))
        return f"aws {service} {method.replace('_', '-')} --cli-input-json {quoted_arguments}"

    def _empty_bucket(self) -> None:
        for listed_file in self._call_aws("s3.list_objects_v2", _BUCKET_CALL_ARGUMENTS).get(
            "Contents", ()
        ):
            self._call_aws(
                "s3.delete_object", {**_BUCKET_CALL_ARGUMENTS, "Key": listed_file["Key"]}
            )

    def record_failing_calls(self, minutes: float) -> None:
        """Make all resources, let the calls fail, and save the CloudTrail records of the calls.

        Wait a quarter of `minutes` before the calls, because a new trail logs a queue only after
        some minutes. Then wait for the records, for at most the other three quarters. Make no call
        if AWS refused the queue `events`, or the setup steps of both deliveries.
        """
        # Ctrl-C must not stop the setup half-way, because only AWS's answers say what was made. So
        # the setup runs in a thread, and Ctrl-C takes effect when the thread has ended.
        with ThreadPoolExecutor(1) as executor:
            executor.submit(self.make_resources).result()
        available_deliveries = [
            delivery
            for delivery, step in SETUP_STEP_NAME_BY_DELIVERY.items()
            if step not in self.refusal_by_name
        ]
        if not available_deliveries or _EVENTS_QUEUE_STEP.name in self.refusal_by_name:
            return
        self._print_line(
            f"waiting {minutes / 4:.1f} min: a trail logs new queues only after some minutes"
        )
        time.sleep(minutes * 15)
        for call in FAILING_CALLS:
            try:
                self.row_by_call[call.name] = self._make_call_fail(call)
            except (*_AWS_ERRORS, LookupError) as error:
                self.refusal_by_name[call.name] = f"could not be provoked: {error}"
        self._print_line(f"waiting for the records, at most {minutes * 3 / 4:.1f} min")
        deadline = time.monotonic() + minutes * 45
        self._awaited_records = {
            (call_name, delivery)
            for call_name in self.row_by_call
            for delivery in available_deliveries
        }
        while self._awaited_records and time.monotonic() < deadline:
            self._collect_records()
            time.sleep(POLL_PAUSE_SECONDS)

    def _make_call_fail(self, call: FailingCall) -> JsonObject:
        """Send a call that fails. Return its row for `row_by_call`, with no records yet.

        The row contains AWS's answer, the time of the call and the request id. To provoke
        throttling, the call is sent BURST_CALL_COUNT times, and the row is about the first error.
        """
        if "<late>" in str(call.arguments):
            self._value_by_placeholder["late"] = self._receive_expired_handle(
                call.arguments["QueueUrl"]
            )
        if call.name == "disabled_key":
            self._call_aws("kms.disable_key", {"KeyId": "<key>"})
            time.sleep(KEY_DISABLING_SECONDS)
        self._add_cost(call.operation)
        service, method = call.operation.split(".")
        client_without_retries = self._get_client(service, has_retries=False)
        if call.name in _NAMES_OF_CALLS_BY_ROLE:
            client_without_retries = self._assume_role().client(
                service, config=_make_config_without_retries()
            )
        arguments = self.fill_placeholders(call.arguments)
        sent_at_seconds = time.time()

        def send_call(_number: int) -> Any:
            try:
                return getattr(client_without_retries, method)(**arguments)
            except ClientError as error:
                return error.response

        call_count = BURST_CALL_COUNT if call.name == "throttled" else 1
        with ThreadPoolExecutor(PARALLEL_CALL_COUNT) as executor:
            answers_of_all_calls = list(executor.map(send_call, range(call_count)))
        failed_answers = [answer for answer in answers_of_all_calls if "Error" in answer]
        answer = failed_answers[0] if failed_answers else answers_of_all_calls[0]
        failed_entries = ", ".join(entry["Code"] for entry in answer.get("Failed", ()))
        error_fields = answer.get("Error", {"Code": "answered with 200", "Message": failed_entries})
        error_text = error_fields["Code"]
        if error_fields["Message"]:
            error_text += f": {error_fields['Message']}"
        request_id = answer["ResponseMetadata"]["RequestId"]
        return {
            "call": call.name,
            "answer": error_text,
            "at": sent_at_seconds,
            "request": request_id,
            "records": {},
        }

    def _assume_role(self) -> Any:
        arguments = {"RoleArn": "<role>", "RoleSessionName": "drill"}
        credentials = self._call_aws("sts.assume_role", arguments)["Credentials"]
        return type(self._session)(
            credentials["AccessKeyId"],
            credentials["SecretAccessKey"],
            credentials["SessionToken"],
            self._session.region_name,
        )

    def _receive_expired_handle(self, queue_url: str) -> str:
        """Return the receipt handle of a message whose visibility timeout is over.

        The message is sent and received for this. Raises KeyError if it does not arrive.
        """
        fifo_arguments = {}
        if ".fifo" in queue_url:
            unique_id = secrets.token_hex(8)
            fifo_arguments = {"MessageGroupId": unique_id, "MessageDeduplicationId": unique_id}
        self._call_aws(
            "sqs.send_message", {"QueueUrl": queue_url, **_MESSAGE_BODY_ARGUMENT, **fifo_arguments}
        )
        arguments = {"QueueUrl": queue_url, "VisibilityTimeout": 1, "WaitTimeSeconds": 20}
        (message,) = self._call_aws("sqs.receive_message", arguments).get("Messages") or [{}]
        time.sleep(VISIBILITY_WAIT_SECONDS)
        return str(message["ReceiptHandle"])

    def _collect_records(self) -> None:
        """Save the new records in the trail's bucket and in the queue that EventBridge sends to.

        The bucket or the queue is skipped if AWS refused the setup step that it needs.
        """
        try:
            if SETUP_STEP_NAME_BY_DELIVERY["trail"] not in self.refusal_by_name:
                self._collect_records_from_bucket()
            if SETUP_STEP_NAME_BY_DELIVERY["event"] not in self.refusal_by_name:
                self._collect_records_from_queue()
        except _AWS_ERRORS as error:
            self._print_line(f"could not look for records, will try again: {error}")

    def _collect_records_from_bucket(self) -> None:
        """Save the records in the trail's files, and delete the files.

        Only the first page of the bucket's listing is read. It has up to 1,000 files, which is
        enough.
        """
        for listed_file in self._call_aws("s3.list_objects_v2", _BUCKET_CALL_ARGUMENTS).get(
            "Contents", ()
        ):
            object_arguments = {**_BUCKET_CALL_ARGUMENTS, "Key": listed_file["Key"]}
            body = self._call_aws("s3.get_object", object_arguments)["Body"]
            compressed_records = body.read(_MOST_TRAIL_FILE_BYTES)
            self._call_aws("s3.delete_object", object_arguments)
            for record in _decode_trail_file(compressed_records):
                self._save_record("trail", listed_file["LastModified"].timestamp(), record)

    def _collect_records_from_queue(self) -> None:
        """Save the records in the queue `events`.

        A look ends after _MOST_RECEIVES_PER_LOOK receives: whoever may send to the queue could
        otherwise keep it going for ever.
        """
        arguments = add_queue_url(
            _EVENTS_QUEUE_STEP.name, MaxNumberOfMessages=10, AttributeNames=["SentTimestamp"]
        )
        for _ in range(_MOST_RECEIVES_PER_LOOK):
            messages = self._call_aws("sqs.receive_message", arguments).get("Messages")
            if not messages:
                return
            for message in messages:
                sent_at_seconds = int(message["Attributes"]["SentTimestamp"]) / 1_000
                for record in _decode_records(message["Body"]):
                    self._save_record("event", sent_at_seconds, record)

    def _save_record(self, delivery: str, arrived_at_seconds: float, record: JsonObject) -> None:
        """Save a record in a file if it is about one of the failed calls.

        The important fields of the record are also added to the call's row. `delivery` is a key of
        SETUP_STEP_NAME_BY_DELIVERY. `arrived_at_seconds` is a time in seconds since 1970. `record`
        is one of `_decode_records`.
        """
        event_detail = record.get("detail", record)
        record_text = json.dumps(record, indent=2)
        identity = {"userIdentity": event_detail.get("userIdentity")}
        error_code = event_detail.get("errorCode")
        request_id = event_detail.get("requestID")
        if error_code and "amazonaws.com" in str(identity) and self.name in record_text:
            # SNS makes its own request to SQS. Its answer does not contain the id of that request.
            request_id = self.row_by_call.get("by_a_service", {}).get("request")
        for call_row in self.row_by_call.values():
            if call_row["request"] != request_id or delivery in call_row["records"]:
                continue
            call_name = call_row["call"]
            file_name = f"{call_name}.{delivery}.json"
            _write_private_file(self.records_folder / file_name, record_text)
            caller_name = self.name if call_name in _NAMES_OF_CALLS_BY_ROLE else self.caller.name
            call_row["records"][delivery] = {
                "error code": error_code,
                "matched as": name_symptom(record),
                "queue in": ", ".join(find_field_paths(event_detail, f"{self.name}-on")),
                "role in": ", ".join(find_field_paths(identity, caller_name)),
                "error message": event_detail.get("errorMessage"),
                "file": file_name,
                "seconds": round(arrived_at_seconds - call_row["at"]),
            }
            self._awaited_records.discard((call_name, delivery))
            if not error_code:
                self._awaited_records.discard((call_name, "event"))  # the rule matches errors only

    def make_document(self) -> JsonObject:
        """Return the run's calls, records, failures and cost: the content of `index.json`."""
        return {
            "run": self.name,
            "calls": list(self.row_by_call.values()),
            "refused": self.refusal_by_name,
            "left": self.deletion_failure_by_name,
            "left_alone": self.text_by_undeleted_key_id,
            "cost": {"about": f"${self.cost_dollars:.4f}"},
        }


def _decode_trail_file(compressed_records: bytes) -> list[JsonObject]:
    """Return the records in a trail's file; none if it is not one.

    Whoever may write to the run's bucket can put other files there, also a few bytes that unpack to
    gigabytes.
    """
    try:
        text = zlib.decompressobj(_GZIP_WINDOW_BITS).decompress(
            compressed_records, _MOST_TRAIL_FILE_BYTES
        )
        file_content = json.loads(text)
    except (zlib.error, ValueError, RecursionError):
        return []
    records = file_content.get("Records") if isinstance(file_content, dict) else None
    if not isinstance(records, list):
        return []
    return [record for record in records if _is_record(record)]


def _decode_records(text: str) -> list[JsonObject]:
    """Return the record in a message in a list; an empty list if the message holds none.

    Whoever may send to the run's queue can send other messages.
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [record] if _is_record(record) else []


def _is_record(record: Any) -> bool:
    """Return True for an object that can be saved, with an object in `detail` if it has one."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("detail", {}), dict)
        and not _is_nested_too_deep(record, _MOST_RECORD_LEVELS)
    )


def _is_nested_too_deep(value: Any, most_levels: int) -> bool:
    """Return True if a JSON value has more levels than `most_levels`."""
    if most_levels == 0:
        return True
    members: Iterable[Any] = ()
    if isinstance(value, dict):
        members = value.values()
    elif isinstance(value, list):
        members = value
    return any(_is_nested_too_deep(member, most_levels - 1) for member in members)


def _make_config_without_retries() -> Any:
    """Return the configuration of a client that sends each request only once."""
    # Imported here because it takes a while, and `mendq --help` imports this file.
    from botocore.config import Config

    return Config(max_pool_connections=PARALLEL_CALL_COUNT, retries={"total_max_attempts": 1})


def _find_error_code(error: BaseException) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _is_access_denied(error: BaseException) -> bool:
    return "AccessDenied" in _find_error_code(error)


def _is_missing_resource(error: BaseException) -> bool:
    """Return True if AWS says that the resource is gone, or that the key waits for deletion."""
    return bool(_MISSING_RESOURCE_PATTERN.search(_find_error_code(error)))


def _is_certain_refusal(error: BaseException) -> bool:
    """Return True if it is certain that AWS refused the call and did nothing.

    False if the answer was lost or AWS had an internal error: then AWS may have done what was
    asked.
    """
    if not isinstance(error, ClientError):
        return False
    http_status: int = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return http_status < 500


def list_report_lines(document: JsonObject) -> Iterator[str]:
    """Yield the lines of the report on a run.

    The report has a table of the calls, the fields in which the records name queue and role, what
    AWS refused, what was not deleted, and the cost.
    """
    yield from _align_columns(_make_call_rows(document["calls"]))
    yield from _list_field_lines(document["calls"])
    for document_key in ("refused", "left", "cost"):
        for name, text in document[document_key].items():
            yield f"{document_key}: {name}: {text}"
    yield from document["left_alone"].values()


def _make_call_rows(calls: list[JsonObject]) -> list[tuple[str, ...]]:
    """Return the table's header, and one row for each call.

    A row has the call's name, the delay of each delivery, the error code and the symptom.
    """
    table_rows: list[tuple[str, ...]] = [
        ("call", *SETUP_STEP_NAME_BY_DELIVERY, "error code", "matched as")
    ]
    for call in calls:
        records = call["records"]
        arrival_delay_texts = []
        for delivery in SETUP_STEP_NAME_BY_DELIVERY:
            has_arrived = delivery in records
            arrival_delay_texts.append(f"{records[delivery]['seconds']} s" if has_arrived else "no")
        record = records.get("trail") or records.get("event") or {}
        error_code = record.get("error code") or "-"
        symptom = record.get("matched as") or "-"
        table_rows.append((call["call"], *arrival_delay_texts, error_code, symptom))
    return table_rows


def _align_columns(table_rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield one line for each row. All cells of a column have the same width."""
    column_widths = [
        max(len(cell_text) for cell_text in column_texts) for column_texts in zip(*table_rows)
    ]
    for row_cells in table_rows:
        yield "  ".join(
            cell_text.ljust(width) for cell_text, width in zip(row_cells, column_widths)
        ).rstrip()


def _list_field_lines(calls: list[JsonObject]) -> Iterator[str]:
    """Yield lines that say in which fields the records name the queue and the role.

    Each line also has the names of the calls whose records use these fields.
    """
    call_names_by_field_paths_text: dict[str, list[str]] = {}
    for call in calls:
        records = call["records"]
        record = records.get("trail") or records.get("event") or {}
        for record_column in ("queue in", "role in"):
            field_paths_text = record.get(record_column, "no record") or "no field"
            call_names_by_field_paths_text.setdefault(
                f"{record_column} {field_paths_text}", []
            ).append(call["call"])
    for field_paths_text, call_names in sorted(call_names_by_field_paths_text.items()):
        yield f"{field_paths_text}: {', '.join(call_names)}"


def clean_up_and_record(
    session: Any,
    folder: Path,
    minutes: float,
    print_line: FunctionOfText,
    confirm: FunctionOfText,
) -> JsonObject:
    """Clean up an earlier run if one is unfinished, then make a new run and return its document.

    If the clean-up cannot delete everything, start no new run, and return the earlier run's
    document.

    Args:
        session: the boto3 session.
        folder: DIR, the folder for `unfinished.json` and for the records.
        minutes: how long the run waits at most: before the failing calls, and for their records.
        print_line: prints one line of progress.
        confirm: gets a question and raises an exception unless the answer is yes. Called before the
            resources of an earlier run are deleted, and before a new run makes resources.

    Raises:
        SystemExit: `unfinished.json` is torn, or names no run of the caller's. Nothing was changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    new_run = RecordingRun(session, folder, print_line)
    if new_run.unfinished_file.exists() or new_run.unfinished_file.is_symlink():
        unfinished_run = read_unfinished_run(
            new_run.unfinished_file, new_run.caller.account, new_run.caller.region
        )
        earlier_run = RecordingRun(session, folder, print_line, unfinished_run)
        print_line(earlier_run.describe_unfinished_run())
        confirm(f"Delete what {earlier_run.name} left?")
        earlier_run.delete_resources()
        if earlier_run.deletion_failure_by_name:
            print_line(
                "Nothing new was made. Run this again to try again, or delete by hand what is "
                f"listed as left, and then the file: rm {shlex.quote(str(new_run.unfinished_file))}"
            )
            return earlier_run.make_document()
        new_run.text_by_undeleted_key_id.update(earlier_run.text_by_undeleted_key_id)
        print_line(
            f"cleaned up what {earlier_run.name} left; a new run begins only after another yes"
        )
    print_line(RECORDING_PLAN_TEXT)
    confirm("Start?")
    new_run.records_folder.mkdir(mode=0o700)
    try:
        new_run.record_failing_calls(minutes)
    except KeyboardInterrupt:
        new_run.refusal_by_name["the rest"] = "interrupted"
    finally:
        print_line(f"deleting what it made; the records are in {new_run.records_folder}")
        new_run.delete_resources()
    index_text = json.dumps(new_run.make_document(), indent=2)
    _write_private_file(new_run.records_folder / "index.json", index_text)
    return new_run.make_document()


def _confirm_at_terminal(question: str) -> None:
    """Raise SystemExit unless the operator at the terminal says yes."""
    if sys.stdin is None or not sys.stdin.isatty():
        _exit_with_error(2, f"not confirmed, nothing was changed: --yes answers yes to: {question}")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        _exit_with_error(2, "not confirmed, nothing was changed")


def _exit_with_error(exit_code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(exit_code)


def _parse_folder(text: str) -> Path:
    """Return the folder that an argument names.

    Raises ArgumentTypeError for an empty text, such as an unset shell variable: it must not mean
    the current folder.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: name a folder")
    return Path(text)


def main() -> int:
    """Run the program from the command line. Return its exit code."""
    parser = argparse.ArgumentParser(description=RECORDING_PLAN_TEXT)
    parser.add_argument(
        "folder", metavar="DIR", type=_parse_folder, help="where the records are saved"
    )
    parser.add_argument("--minutes", type=float, default=DEFAULT_MINUTES, help="how long, at most")
    parser.add_argument("--yes", action="store_true", help="answer yes to every question")
    arguments = parser.parse_args()
    import boto3

    try:
        document = clean_up_and_record(
            boto3.Session(),
            arguments.folder,
            arguments.minutes,
            print,
            str if arguments.yes else _confirm_at_terminal,
        )
    except SystemExit as error:
        if isinstance(error.code, str):  # about `unfinished.json`
            _exit_with_error(2, error.code)
        raise
    except (*_AWS_ERRORS, OSError) as error:
        _exit_with_error(1, str(error))
    except KeyboardInterrupt:
        _exit_with_error(
            1,
            f"interrupted; if {arguments.folder / UNFINISHED_FILE_NAME} exists, run this again to "
            "clean up",
        )
    for line in list_report_lines(document):
        print(line)
    return int(any(document[document_key] for document_key in ("left", "left_alone", "refused")))


if __name__ == "__main__":
    sys.exit(main())
