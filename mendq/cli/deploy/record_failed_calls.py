"""Record what CloudTrail writes of failed SQS calls: `python record_failed_calls.py DIR`.

This file runs alone, with boto3 and Python 3.9 or newer; `mendq drill --record DIR` runs the same.
Ctrl-C ends it with everything deleted; what a killed run left, the next with the same DIR deletes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Callable

from botocore.exceptions import BotoCoreError, ClientError

# Mendq leaves queues of such a name with these tags alone, and its reports leave them out.
PREFIX, TAGS = "mendq-drill-record-", {"mendq": "off", "mendq:drill": "true"}
KEY_TAG, UNFINISHED = "mendq:record", "unfinished.json"
# A key is disabled within a minute; a call before that, and SQS uses its data key for five.
MINUTES, PAUSE_SECONDS, LATE_SECONDS, DISABLED_SECONDS = 20.0, 5.0, 2.0, 60.0
BURST, AT_ONCE = 1_000, 20
# In us-east-1: a call of SQS with its data event, at most an S3 request, and a key's first hour.
DOLLARS = {"sqs": 1.4e-6, "s3": 5e-6, "kms.create_key": 0.0014}
PLAN = f"""makes, each named {PREFIX}...: a trail with a bucket, an EventBridge rule, queues, a
topic, a role, a KMS key. Lets calls fail on these queues. Deletes it all again; of the key, which
cannot go at once, the deletion is scheduled, in 7 days. Costs about $0.01. Use a sandbox account"""
WAYS = {"trail": "logging", "event": "target"}
COLUMNS = ("error code", "matched as", "queue in", "role in", "error message")
_ONCE: dict[str, Any] = {"retries": {"total_max_attempts": 1}, "max_pool_connections": AT_ONCE}
_GONE = re.compile("NotFound|NoSuch|NonExistent|KMSInvalidState")
_WORD = re.compile(r"<([\w.-]+)>")
_ARNS = "ResourceTagMappingList[].ResourceARN"
_FROM_AWS = (ClientError, BotoCoreError)
Say = Callable[[str], object]
Json = dict[str, Any]


def policy(*statements: Json) -> str:
    stated = [{"Effect": "Allow", **each} for each in statements]
    return json.dumps({"Version": "2012-10-17", "Statement": stated})


def lets(service: str, source: str, action: Any, resource: Any) -> Json:
    who, only = {"Service": f"{service}.amazonaws.com"}, {"ArnEquals": {"aws:SourceArn": source}}
    return {"Principal": who, "Condition": only, "Action": action, "Resource": resource}


def queue(kind: str, **attributes: str) -> tuple[Any, ...]:
    fifo = {"FifoQueue": "true"} if kind.endswith(".fifo") else {}
    asked = {"QueueName": f"<name>-{kind}", "Attributes": {**fifo, **attributes}, "tags": TAGS}
    return (kind, "sqs.create_queue", asked, "sqs.delete_queue", on(kind))


def on(kind: str, **asked: Any) -> Json:
    return {"QueueUrl": f"<{kind}>", **asked}


_NAMED, _ROLE, _TOPIC = {"Name": "<name>"}, {"RoleName": "<name>"}, {"TopicArn": "<topic>"}
_BUCKET = {"Bucket": "<bucket>", "ExpectedBucketOwner": "<account>"}
_TRAIL, _NO_TARGET = {**_NAMED, "S3BucketName": "<bucket>"}, {"Rule": "<name>", "Ids": ["queue"]}
_NEW = {"Bucket": "<bucket>", "CreateBucketConfiguration": {"LocationConstraint": "<region>"}}
_IN_BUCKET = [f"arn:<partition>:s3:::<bucket>{each}" for each in ("", "/*")]
_LOGS = lets("cloudtrail", "<trail>", ["s3:GetBucketAcl", "s3:PutObject"], _IN_BUCKET)
_OF_SQS = {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]}
_OURS = {"Field": "resources.ARN", "StartsWith": ["<sqs>-on-"]}
_FIELDS = [{"Field": "eventCategory", "Equals": ["Data"]}, _OF_SQS, _OURS]
_SELECTORS = {"TrailName": "<trail>", "AdvancedEventSelectors": [{"FieldSelectors": _FIELDS}]}
_FAILED = {"eventSource": ["sqs.amazonaws.com"], "errorCode": [{"exists": True}]}
_RULE = {**_NAMED, "EventPattern": json.dumps({"source": ["aws.sqs"], "detail": _FAILED})}
_TARGET = {"Rule": "<name>", "Targets": [{"Id": "queue", "Arn": "<sqs>-events"}]}
_SEND, _ENCRYPTED = "sqs:SendMessage", "<sqs>-on-encrypted"
_EVENTS = lets("events", "<rule>", _SEND, "<sqs>-events")
_DELIVERIES = lets("sns", "<topic>", _SEND, _ENCRYPTED)
_OF_ROLE = {"ArnEquals": {"aws:PrincipalArn": "<role>"}}
_SENDS = {"Principal": "*", "Action": _SEND, "Resource": _ENCRYPTED, "Condition": _OF_ROLE}
_DENIED = {"Effect": "Deny", "Principal": "*", "Action": _SEND, "Resource": "<sqs>-on-denying"}
_KEY = {"Tags": [{"TagKey": KEY_TAG, "TagValue": "<name>"}]}
_NO_KEY = {"KeyId": "<key>", "PendingWindowInDays": 7}
_TAGGED = {"TagFilters": [{"Key": KEY_TAG, "Values": ["<name>"]}]}
_SUBSCRIBED = {**_TOPIC, "Protocol": "sqs", "Endpoint": _ENCRYPTED}
_ASSUMED = {"Principal": {"AWS": "arn:<partition>:iam::<account>:root"}, "Action": "sts:AssumeRole"}
_NEW_ROLE = {**_ROLE, "AssumeRolePolicyDocument": policy(_ASSUMED)}
# A name, a call, what it asks, and what deletes that; <> holds a word of `Run`, or a queue's kind.
PARTS: tuple[tuple[Any, ...], ...] = (
    ("bucket", "s3.create_bucket", _NEW, "s3.delete_bucket", _BUCKET),
    ("access", "s3.put_bucket_policy", {**_BUCKET, "Policy": policy(_LOGS)}),
    ("trail", "cloudtrail.create_trail", _TRAIL, "cloudtrail.delete_trail", _NAMED),
    ("selectors", "cloudtrail.put_event_selectors", _SELECTORS),
    ("logging", "cloudtrail.start_logging", {"Name": "<trail>"}),
    queue("events", Policy=policy(_EVENTS)),
    ("rule", "events.put_rule", _RULE, "events.delete_rule", _NAMED),
    ("target", "events.put_targets", _TARGET, "events.remove_targets", _NO_TARGET),
    ("key", "kms.create_key", _KEY, "kms.schedule_key_deletion", _NO_KEY),
    queue("on-standard", MaximumMessageSize="1024"),
    queue("on-x.fifo"),
    queue("on-denying", Policy=policy(_DENIED)),
    queue("on-encrypted", KmsMasterKeyId="<key>", Policy=policy(_DELIVERIES, _SENDS)),
    ("topic", "sns.create_topic", _NAMED, "sns.delete_topic", _TOPIC),
    ("subscription", "sns.subscribe", _SUBSCRIBED),
    ("role", "iam.create_role", _NEW_ROLE, "iam.delete_role", _ROLE),
)
_BODY, _LATE = {"MessageBody": "mendq drill"}, {"ReceiptHandle": "<late>"}
_LONGER, _BATCH = {**_LATE, "VisibilityTimeout": 30}, {"Entries": [{"Id": "1", **_LATE}]}
_BY_ROLE = ("denied_by_key", "denied_by_role")
# The key is disabled last: a service and the role are to be refused by it before.
CALLS = (
    ("by_a_service", "sns.publish", {**_TOPIC, "Message": "x"}),
    ("denied_by_key", "sqs.send_message", on("on-encrypted", **_BODY)),
    ("denied_by_role", "sqs.send_message", on("on-standard", **_BODY)),
    ("denied_by_queue", "sqs.send_message", on("on-denying", **_BODY)),
    ("missing_queue", "sqs.send_message", on("on-missing", **_BODY)),
    ("bad_parameter", "sqs.receive_message", on("on-standard", WaitTimeSeconds=21)),
    ("long_message", "sqs.send_message", on("on-standard", MessageBody="x" * 2_000)),
    ("no_deduplication_id", "sqs.send_message", on("on-x.fifo", **_BODY, MessageGroupId="x")),
    ("late_delete", "sqs.delete_message", on("on-x.fifo", **_LATE)),
    ("late_extension", "sqs.change_message_visibility", on("on-x.fifo", **_LONGER)),
    ("late_extension_standard", "sqs.change_message_visibility", on("on-standard", **_LONGER)),
    ("failing_in_batch", "sqs.delete_message_batch", on("on-x.fifo", **_BATCH)),
    ("throttled", "sqs.receive_message", on("on-x.fifo")),
    ("disabled_key", "sqs.send_message", on("on-encrypted", **_BODY)),
)


def places(value: Any, wanted: str, at: str = "") -> Iterator[str]:
    """The paths of the fields in which a text stands."""
    if isinstance(value, str) and wanted in value:
        yield at
    named = value.items() if isinstance(value, dict) else ()
    for path, each in named or (enumerate(value) if isinstance(value, list) else ()):
        yield from places(each, wanted, f"{at}.{path}".lstrip("."))


def matched_as(record: Any) -> str:
    """The symptom that Mendq takes a record for."""
    with suppress(ImportError):
        from mendq.cli.look.explain import explained_record

        found = explained_record(record)
        return str(found["symptom"] or f"not read: {found['unreadable']}")
    return "install mendq"


class Run:
    """What was `refused`, and is `left`, by name. DIR has its id before anything is made."""

    def __init__(self, session: Any, folder: Path, say: Say) -> None:
        self._session, self._say, self.file = session, say, folder / UNFINISHED
        who, region = session.client("sts").get_caller_identity()["Arn"], session.region_name
        _, partition, _, _, account, _ = who.split(":", 5)
        here, self._caller = f"{region}:{account}", who.split("/")[:2][-1]
        self._state: Json = {"run": secrets.token_hex(4), "here": here, "key": "", "made": []}
        if self.file.exists():
            self._state = json.loads(self.file.read_text())
            if self._state["here"] != here or not re.fullmatch("[0-9a-f]{8}", self._state["run"]):
                raise SystemExit(f"{self.file} is of {self._state['here']}: delete it from there")
        name, self.folder = PREFIX + self._state["run"], folder / self._state["run"]
        arns = {"sqs": f"sqs:{here}:", "topic": f"sns:{here}:", "role": f"iam::{account}:role/"}
        arns |= {"trail": f"cloudtrail:{here}:trail/", "rule": f"events:{here}:rule/"}
        self._words = {word: f"arn:{partition}:{each}{name}" for word, each in arns.items()}
        self._words |= {"name": name, "bucket": f"{name}-{account}", "key": self._state["key"]}
        self._words |= {"account": account, "region": region, "partition": partition}
        self._url = f"{session.client('sqs').meta.endpoint_url}/{account}/{name}"
        self.name, self.rows, self.refused, self.left = name, Json(), Json(), Json()
        self.dollars = BURST * DOLLARS["sqs"]

    def _operation(self, does: str, session: Any = None) -> Any:
        service, name = does.split(".")
        self.dollars += DOLLARS.get(service, 0) + DOLLARS.get(does, 0)
        config = import_module("botocore.config").Config(**_ONCE)
        return getattr((session or self._session).client(service, config=config), name)

    def _filled(self, asked: Any) -> Any:
        words, url, text = self._words, self._url, json.dumps(asked)
        return json.loads(_WORD.sub(lambda it: words.get(it[1], f"{url}-{it[1]}"), text))

    def _ask(self, does: str, asked: Any) -> Any:
        return self._operation(does)(**self._filled(asked))

    def _note(self, made: list[str]) -> None:
        """Keep for the next run what there may be; whole, whenever this one is killed."""
        self._state |= {"made": made, "key": self._words["key"]}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self._state))
        new.replace(self.file)

    def make(self) -> None:
        for name, does, asked, *_ in PARTS:
            made, wanted = self._state["made"], dict(asked)
            self._note([*made, name])
            if self._words["region"] == "us-east-1":
                wanted.pop("CreateBucketConfiguration", None)
            try:
                answer = self._ask(does, wanted)
                if name == "key":
                    self._words["key"] = answer["KeyMetadata"]["KeyId"]
            except _FROM_AWS as error:
                self.refused[name] = str(error)
                if isinstance(error, ClientError):
                    self._note(made)

    def clean(self) -> None:
        """Delete by name, and the key by its tag; of what was never made, AWS may refuse it."""
        for name, _, _, does, asked in reversed([each for each in PARTS if len(each) > 3]):
            try:
                if name == "bucket":
                    list(self._files())
                if name != "key" or self._find_key():
                    self._ask(does, asked)
            except _FROM_AWS as error:
                if name in self._state["made"] and not _GONE.search(str(error)):
                    command = does.replace("s3.", "s3api.").replace("_", "-").replace(".", " ")
                    by = json.dumps(self._filled(asked))
                    self.left[name] = f"{error}: aws {command} --cli-input-json '{by}'"
        self._note([*self.left])
        if not self.left:
            self.file.unlink()

    def _find_key(self) -> str:
        pages = self._session.client("resourcegroupstaggingapi").get_paginator("get_resources")
        found = pages.paginate(**self._filled(_TAGGED)).search(_ARNS)
        self._words["key"] = self._words["key"] or next(found, "").rpartition("/")[2]
        return self._words["key"]

    def record(self, minutes: float) -> None:
        """Make, provoke, wait. A quarter of the time is the trail's, which begins late."""
        with ThreadPoolExecutor(1) as pool:  # Ctrl-C waits for the answers: they say what was made
            pool.submit(self.make).result()
        ways = [way for way, part in WAYS.items() if part not in self.refused]
        if not ways:
            return
        self._say(f"waits {minutes / 4:.1f} min, as a trail logs new queues only after some")
        time.sleep(minutes * 15)
        for call, does, asked in CALLS:
            try:
                self.rows[call] = self._provoked(call, does, asked)
            except (*_FROM_AWS, LookupError) as error:
                self.refused[call] = f"could not be provoked: {error}"
        self._say(f"waits for the records, at most {minutes * 3 / 4:.1f} min")
        until, self._awaited = time.monotonic() + minutes * 45, set(product(self.rows, ways))
        while self._awaited and time.monotonic() < until:
            self._look()
            time.sleep(PAUSE_SECONDS)

    def _provoked(self, call: str, does: str, asked: Json) -> Json:
        """The row of a call: what its caller was told, when, and of which request."""
        if "<late>" in str(asked):
            self._words["late"] = self._late_handle(asked["QueueUrl"])
        if call == "disabled_key":
            self._ask("kms.disable_key", {"KeyId": "<key>"})
            time.sleep(DISABLED_SECONDS)
        operation = self._operation(does, self._as_role() if call in _BY_ROLE else None)
        filled, at = self._filled(asked), time.time()

        def answer_of(_: int) -> Any:
            try:
                return operation(**filled)
            except ClientError as error:
                return error.response

        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(answer_of, range(BURST if call == "throttled" else 1)))
        found = next((each for each in answers if "Error" in each), answers[0])
        failed = [each["Code"] for each in found.get("Failed", ())]
        error = found.get("Error", {"Code": "answered with 200", "Message": ", ".join(failed)})
        answer = f"{error['Code']}: {error['Message']}".removesuffix(": ")
        request = found["ResponseMetadata"]["RequestId"]
        return {"call": call, "answer": answer, "at": at, "request": request, "records": {}}

    def _as_role(self) -> Any:
        asked = {"RoleArn": "<role>", "RoleSessionName": "drill"}
        given = self._ask("sts.assume_role", asked)["Credentials"]
        key, secret, token = map(given.get, ("AccessKeyId", "SecretAccessKey", "SessionToken"))
        return type(self._session)(key, secret, token, self._session.region_name)

    def _late_handle(self, queue: str) -> str:
        once, is_fifo = secrets.token_hex(8), ".fifo" in queue
        fifo = {"MessageGroupId": once, "MessageDeduplicationId": once} if is_fifo else {}
        self._ask("sqs.send_message", {"QueueUrl": queue, **_BODY, **fifo})
        asked = {"QueueUrl": queue, "VisibilityTimeout": 1, "WaitTimeSeconds": 20}
        (message,) = self._ask("sqs.receive_message", asked)["Messages"]
        time.sleep(LATE_SECONDS)
        return str(message["ReceiptHandle"])

    def _look(self) -> None:
        """Take what has come by the trail, and as events; what AWS refused, is not looked for."""
        try:
            if "logging" not in self.refused:
                for at, body in self._files():
                    for each in json.loads(gzip.decompress(body))["Records"]:
                        self._take("trail", at, each)
            if "target" not in self.refused:
                asked = on("events", MaxNumberOfMessages=10, AttributeNames=["SentTimestamp"])
                while messages := self._ask("sqs.receive_message", asked).get("Messages"):
                    for each in messages:
                        sent = int(each["Attributes"]["SentTimestamp"]) / 1_000
                        self._take("event", sent, json.loads(each["Body"]))
        except _FROM_AWS as error:
            self._say(f"looked in vain: {error}")

    def _files(self) -> Iterator[tuple[float, bytes]]:
        """The trail's, which are deleted; far fewer than the thousand that one answer takes."""
        for each in self._ask("s3.list_objects_v2", _BUCKET).get("Contents", ()):
            which = {**_BUCKET, "Key": each["Key"]}
            body = self._ask("s3.get_object", which)["Body"].read()
            self._ask("s3.delete_object", which)
            yield each["LastModified"].timestamp(), body

    def _take(self, way: str, at: float, record: Any) -> None:
        """Keep a call's record as it came, and what is to be known of it."""
        detail, text = record.get("detail", record), json.dumps(record, indent=2)
        who = {"userIdentity": detail.get("userIdentity")}
        request, code, said = map(detail.get, ("requestID", "errorCode", "errorMessage"))
        if code and "amazonaws.com" in str(who) and self.name in text:
            request = self.rows.get("by_a_service", {}).get("request")
        for row in self.rows.values():
            if row["request"] == request and way not in row["records"]:
                name, seconds = row["call"], round(at - row["at"])
                (self.folder / (file := f"{name}.{way}.json")).write_text(text)
                caller = self.name if name in _BY_ROLE else self._caller
                stand = (places(detail, f"{self.name}-on"), places(who, caller))
                known = (code, matched_as(record), *map(", ".join, stand), said)
                row["records"][way] = dict(zip(COLUMNS, known), file=file, seconds=seconds)
                # The rule takes no record without an error code.
                self._awaited -= {(name, way), (name, way if code else "event")}

    def document(self) -> Json:
        found = {"run": self.name, "calls": [*self.rows.values()], "refused": self.refused}
        return {**found, "left": self.left, "cost": {"about": f"${self.dollars:.4f}"}}


def table(document: Json) -> Iterator[str]:
    """What is short, in columns; where queue and role stand; index.json holds the rest."""
    rows, stand = [("call", *WAYS, *COLUMNS[:2])], dict[str, list[str]]()
    for row in document["calls"]:
        came = row["records"]
        known = came.get("trail") or came.get("event") or {}
        delays = (f"{came[way]['seconds']} s" if way in came else "no" for way in WAYS)
        rows.append((row["call"], *delays, *(known.get(each) or "-" for each in COLUMNS[:2])))
        for what in COLUMNS[2:4]:
            where = known.get(what, "no record") or "no field"
            stand.setdefault(f"{what} {where}", []).append(row["call"])
    widths = [max(map(len, each)) for each in zip(*rows)]
    yield from ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows)
    yield from (f"{where}: {', '.join(calls)}" for where, calls in sorted(stand.items()))
    for what in ("refused", "left", "cost"):
        yield from (f"{what}: {name}: {why}" for name, why in document[what].items())


def drill(session: Any, folder: Path, minutes: float, say: Say, confirm: Say) -> Json:
    """Record, and delete what was made and was left before; `confirm` raises unless it is yes."""
    folder.mkdir(parents=True, exist_ok=True)
    is_left, run = (folder / UNFINISHED).exists(), Run(session, folder, say)
    if is_left:
        say(f"deletes what {run.name} left")
        run.clean()
        if run.left:
            say(f"nothing new is made before; if all that is deleted by hand, delete {run.file}")
            return run.document()
        run = Run(session, folder, say)
    say(PLAN)
    confirm("Start?")
    run.folder.mkdir()
    try:
        run.record(minutes)
    except KeyboardInterrupt:
        run.refused["the rest"] = "interrupted"
    finally:
        say(f"deletes what it made; the records are in {run.folder}")
        run.clean()
    (run.folder / "index.json").write_text(json.dumps(run.document(), indent=2))
    return run.document()


def main() -> int:
    parser = argparse.ArgumentParser(description=PLAN)
    parser.add_argument("folder", metavar="DIR", type=Path, help="takes the records")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long, at most")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args()
    sure = str if given.yes else lambda _: parser.exit(2, "nothing was made: --yes starts it\n")
    try:
        found = drill(import_module("boto3").Session(), given.folder, given.minutes, print, sure)
    except _FROM_AWS as error:
        parser.exit(1, f"{error}\n")
    print(*table(found), sep="\n")
    return int(bool(found["left"] or found["refused"]))


if __name__ == "__main__":
    sys.exit(main())
