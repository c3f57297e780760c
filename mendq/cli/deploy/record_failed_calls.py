"""Record what CloudTrail writes of failed SQS calls: `python record_failed_calls.py DIR`.

This file runs alone, with boto3 and Python 3.9 or newer; `mendq drill --record DIR` runs the same.
In a sandbox account it makes a trail, an EventBridge rule, queues, a key and a role, lets calls
fail on them, keeps the raw records of both ways in DIR, and deletes what it made. Ctrl-C ends it
with everything deleted; what a killed run left, the next run with the same DIR deletes first.
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
from pathlib import Path
from typing import Any, Callable, NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# Mendq leaves queues of such a name with these tags alone, and its reports leave them out.
PREFIX, TAGS = "mendq-drill-record-", {"mendq": "off", "mendq:drill": "true"}
KEY_TAG, UNFINISHED = "mendq:record", "unfinished.json"
MINUTES, PAUSE_SECONDS, LATE_SECONDS = 20.0, 5.0, 2.0
BURST, AT_ONCE = 1_000, 20
# In us-east-1: an SQS call with its data event, and the first hour of a key.
CALL_DOLLARS, KEY_DOLLARS = 1.4e-6, 1 / 730
PLAN = f"""makes, each named {PREFIX}...: a trail with a bucket, an EventBridge rule, queues, a
topic, a role, a KMS key. Lets calls fail on these queues. Deletes it all again; of the key, which
cannot go at once, the deletion is scheduled, in 7 days. Costs about $0.01. Use a sandbox account"""
COLUMNS = ("error code", "error message", "queue in", "role in", "matched as")
_ONCE = Config(retries={"total_max_attempts": 1}, max_pool_connections=AT_ONCE)
_GONE = re.compile("NotFound|NoSuch|NonExistent|KMSInvalidState")
_FROM_AWS = (ClientError, BotoCoreError)
Say = Callable[[str], object]


class Step(NamedTuple):
    """One call: of a part that is made, and by which it is deleted; or of one that is to fail.

    Between < and > stands a word of `Run`, or a queue's kind; each name holds the run's id.
    """

    name: str
    does: str
    asked: dict[str, Any]
    undo: str = ""
    by: Any = None


def policy(*statements: dict[str, Any]) -> str:
    stated = [{"Effect": "Allow", **each} for each in statements]
    return json.dumps({"Version": "2012-10-17", "Statement": stated})


def lets(service: str, source: str, action: Any, resource: Any) -> dict[str, Any]:
    """The statement that lets one source of another service in."""
    only = {"ArnEquals": {"aws:SourceArn": source}}
    who = {"Principal": {"Service": f"{service}.amazonaws.com"}, "Condition": only}
    return {**who, "Action": action, "Resource": resource}


def queue(kind: str, **attributes: str) -> Step:
    fifo = {"FifoQueue": "true"} if kind.endswith(".fifo") else {}
    asked = {"QueueName": f"<name>-{kind}", "Attributes": {**fifo, **attributes}, "tags": TAGS}
    return Step(kind, "sqs.create_queue", asked, "sqs.delete_queue", on(kind))


def on(kind: str, **asked: Any) -> dict[str, Any]:
    return {"QueueUrl": f"<{kind}>", **asked}


_NAMED, _ROLE, _TOPIC = {"Name": "<name>"}, {"RoleName": "<name>"}, {"TopicArn": "<topic>"}
_BUCKET = {"Bucket": "<bucket>", "ExpectedBucketOwner": "<account>"}
_IN_REGION = {"CreateBucketConfiguration": {"LocationConstraint": "<region>"}}
_IN_BUCKET = [f"arn:<partition>:s3:::<bucket>{each}" for each in ("", "/*")]
_LOGS = lets("cloudtrail", "<trail>", ["s3:GetBucketAcl", "s3:PutObject"], _IN_BUCKET)
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
_FIELDS = [
    {"Field": "eventCategory", "Equals": ["Data"]},
    {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
    {"Field": "resources.ARN", "StartsWith": ["<sqs>-on-"]},
]
_SELECTORS = {"TrailName": "<trail>", "AdvancedEventSelectors": [{"FieldSelectors": _FIELDS}]}
_FAILED = {"eventSource": ["sqs.amazonaws.com"], "errorCode": [{"exists": True}]}
_PATTERN = json.dumps({"source": ["aws.sqs"], "detail": _FAILED})
_TARGET = {"Rule": "<name>", "Targets": [{"Id": "queue", "Arn": "<sqs>-events"}]}
_SEND = "sqs:SendMessage"
_EVENTS = lets("events", "<rule>", _SEND, "<sqs>-events")
_DELIVERIES = lets("sns", "<topic>", _SEND, "<sqs>-on-encrypted")
# The role may do this one thing: the key is what it is refused for.
_OF_ROLE = {"ArnEquals": {"aws:PrincipalArn": "<role>"}}
_SENDS = {"Principal": "*", "Action": _SEND, "Resource": "<sqs>-on-encrypted"}
_DENIED = {"Effect": "Deny", "Principal": "*", "Action": _SEND, "Resource": "<sqs>-on-denying"}
_KEY = {"Tags": [{"TagKey": KEY_TAG, "TagValue": "<name>"}]}
_NO_KEY = {"KeyId": "<key>", "PendingWindowInDays": 7}
_SUBSCRIBED = {**_TOPIC, "Protocol": "sqs", "Endpoint": "<sqs>-on-encrypted"}
_ASSUMED = {"Principal": {"AWS": "arn:<partition>:iam::<account>:root"}, "Action": "sts:AssumeRole"}
# Made in this order, deleted in the other; each row ends with what deletes it.
# fmt: off
PARTS = (
    Step("bucket", "s3.create_bucket", {"Bucket": "<bucket>", **_IN_REGION},
         "s3.delete_bucket", _BUCKET),
    Step("access", "s3.put_bucket_policy", {**_BUCKET, "Policy": policy(_LOGS)}),
    Step("trail", "cloudtrail.create_trail", {**_NAMED, "S3BucketName": "<bucket>"},
         "cloudtrail.delete_trail", _NAMED),
    Step("selectors", "cloudtrail.put_event_selectors", _SELECTORS),
    Step("logging", "cloudtrail.start_logging", {"Name": "<trail>"}),
    queue("events", Policy=policy(_EVENTS)),
    Step("rule", "events.put_rule", {**_NAMED, "EventPattern": _PATTERN},
         "events.delete_rule", _NAMED),
    Step("target", "events.put_targets", _TARGET,
         "events.remove_targets", {"Rule": "<name>", "Ids": ["queue"]}),
    Step("key", "kms.create_key", _KEY, "kms.schedule_key_deletion", _NO_KEY),
    queue("on-standard", MaximumMessageSize="1024"),
    queue("on-x.fifo"),
    queue("on-denying", Policy=policy(_DENIED)),
    queue("on-encrypted", KmsMasterKeyId="<key>",
          Policy=policy(_DELIVERIES, {**_SENDS, "Condition": _OF_ROLE})),
    Step("topic", "sns.create_topic", _NAMED, "sns.delete_topic", _TOPIC),
    Step("subscription", "sns.subscribe", _SUBSCRIBED),
    Step("role", "iam.create_role", {**_ROLE, "AssumeRolePolicyDocument": policy(_ASSUMED)},
         "iam.delete_role", _ROLE),
)
# fmt: on
_BODY, _LATE = {"MessageBody": "mendq drill"}, {"ReceiptHandle": "<late>"}
_LONGER, _BATCH = {**_LATE, "VisibilityTimeout": 30}, {"Entries": [{"Id": "1", **_LATE}]}
_BY_ROLE = ("denied_by_key", "denied_by_role")
# The key is disabled last: a service and the role are to be refused by it before.
CALLS = (
    Step("by_a_service", "sns.publish", {**_TOPIC, "Message": "x"}),
    Step("denied_by_key", "sqs.send_message", on("on-encrypted", **_BODY)),
    Step("denied_by_role", "sqs.send_message", on("on-standard", **_BODY)),
    Step("denied_by_queue", "sqs.send_message", on("on-denying", **_BODY)),
    Step("missing_queue", "sqs.send_message", on("on-missing", **_BODY)),
    Step("bad_parameter", "sqs.receive_message", on("on-standard", WaitTimeSeconds=21)),
    Step("long_message", "sqs.send_message", on("on-standard", MessageBody="x" * 2_000)),
    Step("no_deduplication_id", "sqs.send_message", on("on-x.fifo", **_BODY, MessageGroupId="x")),
    Step("late_delete", "sqs.delete_message", on("on-x.fifo", **_LATE)),
    Step("late_extension", "sqs.change_message_visibility", on("on-x.fifo", **_LONGER)),
    Step("late_extension_standard", "sqs.change_message_visibility", on("on-standard", **_LONGER)),
    Step("failing_in_batch", "sqs.delete_message_batch", on("on-x.fifo", **_BATCH)),
    Step("throttled", "sqs.receive_message", on("on-x.fifo")),
    Step("disabled_key", "sqs.send_message", on("on-encrypted", **_BODY)),
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
    try:
        from mendq.catalogue import symptom_of
        from mendq.model.failed_call import FailedCall, read
    except ImportError:
        return "install mendq"
    found = read(record)
    return symptom_of(found) if isinstance(found, FailedCall) else f"not read: {found.reason}"


class Run:
    """What was `refused`, and is `left`, by name. DIR has its id before anything is made."""

    def __init__(self, session: boto3.Session, folder: Path, say: Say) -> None:
        self._session, self._say, self._file = session, say, folder / UNFINISHED
        who, region = session.client("sts").get_caller_identity()["Arn"], session.region_name
        _, partition, _, _, account, _ = who.split(":", 5)
        here, self._caller = f"{region}:{account}", who.split("/")[:2][-1]
        self._state = {"run": secrets.token_hex(4), "here": here, "key": ""}
        self.is_left = self._file.exists()
        if self.is_left:
            self._state = json.loads(self._file.read_text())
            if self._state["here"] != here or not re.fullmatch("[0-9a-f]{8}", self._state["run"]):
                raise SystemExit(f"{self._file} is of {self._state['here']}: delete it from there")
        name, self.folder = PREFIX + self._state["run"], folder / self._state["run"]
        arns = {"sqs": f"sqs:{here}:", "topic": f"sns:{here}:", "role": f"iam::{account}:role/"}
        arns |= {"trail": f"cloudtrail:{here}:trail/", "rule": f"events:{here}:rule/"}
        self._words = {word: f"arn:{partition}:{each}{name}" for word, each in arns.items()}
        self._words |= {"name": name, "bucket": f"{name}-{account}", "key": self._state["key"]}
        self._words |= {"account": account, "region": region, "partition": partition}
        self._url = f"{session.client('sqs').meta.endpoint_url}/{account}/{name}"
        self.name, self.rows = name, dict[str, Any]()
        self.refused, self.left, self._calls = dict[str, str](), dict[str, str](), 0

    def _operation(self, does: str, session: Any = None) -> Any:
        service, name = does.split(".")
        return getattr((session or self._session).client(service, config=_ONCE), name)

    def _filled(self, asked: Any) -> Any:
        text = json.dumps(asked)
        for word in re.findall(r"<([\w.-]+)>", text):
            text = text.replace(f"<{word}>", self._words.get(word, f"{self._url}-{word}"))
        return json.loads(text)

    def _ask(self, does: str, asked: Any) -> Any:
        self._calls += does.startswith("sqs.")
        return self._operation(does)(**self._filled(asked))

    def make(self) -> None:
        """Make all that AWS lets be made."""
        self._file.write_text(json.dumps(self._state))
        for part in PARTS:
            asked = dict(part.asked)
            if self._words["region"] == "us-east-1":
                asked.pop("CreateBucketConfiguration", None)
            try:
                answer = self._ask(part.does, asked)
                if part.name == "key":
                    self._state["key"] = self._words["key"] = answer["KeyMetadata"]["KeyId"]
                    self._file.write_text(json.dumps(self._state))
            except _FROM_AWS as error:
                self.refused[part.name] = f"{part.does}: {error}"

    def clean(self) -> None:
        """Delete by name; what AWS refused to make may be there all the same."""
        for part in reversed([each for each in PARTS if each.undo]):
            try:
                if part.name == "bucket":
                    list(self._files())
                if part.name != "key" or self._words["key"]:
                    self._ask(part.undo, part.by)
            except _FROM_AWS as error:
                if part.name not in self.refused and not _GONE.search(str(error)):
                    self.left[part.name] = str(error)
        if not self.left:
            self._file.unlink(missing_ok=True)

    def record(self, minutes: float) -> None:
        """Make, provoke, wait. A quarter of the time is the trail's, which begins late."""
        with ThreadPoolExecutor(1) as pool:  # Ctrl-C waits for the answers: they say what was made
            pool.submit(self.make).result()
        if {"logging", "target"} <= self.refused.keys():
            return
        self._say(f"waits {minutes / 4:.1f} min, as a trail logs new queues only after some")
        time.sleep(minutes * 15)
        for call in CALLS:
            try:
                self.rows[call.name] = self._provoked(call)
            except (*_FROM_AWS, LookupError) as error:
                self.refused[call.name] = f"could not be provoked: {error}"
        self._say(f"waits for the records, at most {minutes * 3 / 4:.1f} min")
        until, rows = time.monotonic() + minutes * 45, self.rows.values()
        while any(len(each["records"]) < 2 for each in rows) and time.monotonic() < until:
            self._look()
            time.sleep(PAUSE_SECONDS)

    def _provoked(self, call: Step) -> dict[str, Any]:
        """The row of a call: what its caller was told, when, and of which request."""
        if "<late>" in str(call.asked):
            self._words["late"] = self._late_handle(call.asked["QueueUrl"])
        if call.name == "disabled_key":
            self._ask("kms.disable_key", {"KeyId": "<key>"})
        operation = self._operation(call.does, self._as_role() if call.name in _BY_ROLE else None)
        asked, at = self._filled(call.asked), time.time()

        def answer_of(_: int) -> Any:
            try:
                return operation(**asked)
            except ClientError as error:
                return error.response

        times = BURST if call.name == "throttled" else 1
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(answer_of, range(times)))
        self._calls += times
        found = next((each for each in answers if "Error" in each), answers[0])
        within = [each["Code"] for each in found.get("Failed", ())]
        error = found.get("Error", {"Code": "answered with 200", "Message": ", ".join(within)})
        answer = f"{error['Code']}: {error['Message']}"
        request = found["ResponseMetadata"]["RequestId"]
        return {"call": call.name, "answer": answer, "at": at, "request": request, "records": {}}

    def _as_role(self) -> boto3.Session:
        given = self._ask("sts.assume_role", {"RoleArn": "<role>", "RoleSessionName": "drill"})
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        key, secret, token = (given["Credentials"][each] for each in names)
        return boto3.Session(key, secret, token, self._session.region_name)

    def _late_handle(self, queue: str) -> str:
        """The handle of a message whose visibility timeout has run out."""
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
        request, code = detail.get("requestID"), detail.get("errorCode")
        if code and "amazonaws.com" in str(who) and self.name in text:
            request = self.rows.get("by_a_service", {}).get("request")
        for row in self.rows.values():
            if row["request"] == request and way not in row["records"]:
                name, seconds = row["call"], round(at - row["at"])
                (self.folder / f"{name}.{way}.json").write_text(text)
                caller = self.name if name in _BY_ROLE else self._caller
                stand = (places(detail, f"{self.name}-on"), places(who, caller))
                known = (code, detail.get("errorMessage"), *map(", ".join, stand))
                found = dict(zip(COLUMNS, (*known, matched_as(record))))
                row["records"][way] = {"file": f"{name}.{way}.json", "seconds": seconds, **found}

    def document(self) -> dict[str, Any]:
        """What index.json holds."""
        dollars = self._calls * CALL_DOLLARS + bool(self._state["key"]) * KEY_DOLLARS
        found = {"run": self.name, "calls": [*self.rows.values()], "refused": self.refused}
        return {**found, "left": self.left, "dollars": round(dollars, 4)}


def table(document: dict[str, Any]) -> Iterator[str]:
    """In Markdown."""
    rows = [["call", "answer", "trail", "event", *COLUMNS], ["---"] * (4 + len(COLUMNS))]
    for row in document["calls"]:
        came = [row["records"].get(way, {}) for way in ("trail", "event")]
        delays = [f"{each['seconds']} s" if each else "no" for each in came]
        known = [str((came[0] or came[1]).get(each) or "-") for each in COLUMNS]
        rows.append([row["call"], row["answer"], *delays, *known])
    for cells in rows:
        yield f"| {' | '.join(' '.join(each.replace('|', '/').split()) for each in cells)} |"
    yield f"\nabout ${document['dollars']:.4f}, at prices of us-east-1"
    for what in ("refused", "left"):
        yield from (f"{what}: {name}: {why}" for name, why in document[what].items())


def drill(
    session: boto3.Session, folder: Path, minutes: float, say: Say, confirm: Say
) -> dict[str, Any]:
    """Record, and delete what was made and was left before; `confirm` raises unless it is yes."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(session, folder, say)
    if run.is_left:
        say(f"deletes what {run.name} left")
        run.clean()
        if run.left:
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
        say("deletes what it made")
        run.clean()
    (run.folder / "index.json").write_text(json.dumps(run.document(), indent=2))
    return run.document()


def main() -> int:
    """Run alone."""
    parser = argparse.ArgumentParser(description=PLAN)
    parser.add_argument("folder", metavar="DIR", type=Path, help="takes the records")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long, at most")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args()

    def confirm(question: str) -> None:
        if not given.yes and not (sys.stdin.isatty() and input(f"{question} [y/N] ") == "y"):
            parser.exit(2, "not confirmed, nothing was made: --yes confirms\n")

    try:
        found = drill(boto3.Session(), given.folder, given.minutes, print, confirm)
    except _FROM_AWS as error:
        parser.exit(1, f"{error}\n")
    print(*table(found), sep="\n")
    return int(bool(found["left"] or found["refused"]))


if __name__ == "__main__":
    sys.exit(main())
