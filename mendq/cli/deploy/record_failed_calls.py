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
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# Mendq leaves queues of such a name with these tags alone, and its reports leave them out.
PREFIX, TAGS = "mendq-drill-record-", {"mendq": "off", "mendq:drill": "true"}
KEY_TAG, UNFINISHED = "mendq:record", "unfinished.json"
MINUTES, PAUSE_SECONDS, LATE_SECONDS = 20.0, 5.0, 2.0
BURST, AT_ONCE, TRIES = 1_000, 20, 3
# Dollars for one, in us-east-1; a key that waits for its deletion costs nothing.
PRICES = {"data events": 1e-6, "SQS calls": 4e-7, "trail files": 5e-6, "hours of a key": 1 / 730}
PLAN = f"""makes, each named {PREFIX}...: a trail with a bucket, an EventBridge rule, queues, a
topic, a role, a KMS key. Lets calls fail on these queues. Deletes it all again; of the key, which
cannot go at once, the deletion is scheduled, in 7 days. Costs about $0.01. Use a sandbox account"""
COLUMNS = ("error code", "error message", "queue in", "role in", "matched as")
NOT_PROVOKED = "could not be provoked"
_ONCE = Config(retries={"total_max_attempts": 1}, max_pool_connections=AT_ONCE)
_GONE = re.compile("NotFound|NoSuch|NonExistent|KMSInvalidState")
_FROM_AWS = (ClientError, BotoCoreError)
Say = Callable[[str], object]


class Step(NamedTuple):
    """One call: of a part that is made, and by which it is deleted; or of one that is to fail.

    What stands between < and > is filled in for each run. Every name holds the run's id, so that
    the next run can delete by name what this one could not.
    """

    name: str
    does: str
    asked: dict[str, Any]
    needs: tuple[str, ...] = ()
    undo: str = ""
    by: Any = None
    times: int = 1


def policy(who: Any, action: Any, resource: Any, source: str = "", effect: str = "Allow") -> str:
    """One statement, without what is empty; `who` is a service where a `source` is named."""
    principal = {"Service": f"{who}.amazonaws.com"} if source else who
    only = source and {"ArnEquals": {"aws:SourceArn": source}}
    said = {"Principal": principal, "Action": action, "Resource": resource, "Condition": only}
    statement = {"Effect": effect, **{name: each for name, each in said.items() if each}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def queue(kind: str, *needs: str, **attributes: str) -> Step:
    fifo = {"FifoQueue": "true"} if kind.endswith(".fifo") else {}
    asked = {"QueueName": f"<name>-{kind}", "Attributes": {**fifo, **attributes}, "tags": TAGS}
    return Step(kind, "sqs.create_queue", asked, needs, "sqs.delete_queue", on(kind))


def on(kind: str, **asked: Any) -> dict[str, Any]:
    return {"QueueUrl": f"<url>-{kind}", **asked}


_NAMED, _ROLE, _TOPIC = {"Name": "<name>"}, {"RoleName": "<name>"}, {"TopicArn": "<topic>"}
_BUCKET = {"Bucket": "<name>-<account>", "ExpectedBucketOwner": "<account>"}
_ELSEWHERE = {"CreateBucketConfiguration": {"LocationConstraint": "<region>"}}
_LOGS, _LOGGING = ["<logs>-<account>", "<logs>-<account>/*"], ["s3:GetBucketAcl", "s3:PutObject"]
_LETS_TRAIL_IN = policy("cloudtrail", _LOGGING, _LOGS, "<trail>")
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
_FIELDS = [
    {"Field": "eventCategory", "Equals": ["Data"]},
    {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
    {"Field": "resources.ARN", "StartsWith": ["<sqs>-on-"]},
]
_SELECTORS = {"TrailName": "<name>", "AdvancedEventSelectors": [{"FieldSelectors": _FIELDS}]}
_FAILED = {"eventSource": ["sqs.amazonaws.com"], "errorCode": [{"exists": True}]}
_PATTERN = json.dumps({"source": ["aws.sqs"], "detail": _FAILED})
_TARGET = {"Rule": "<name>", "Targets": [{"Id": "queue", "Arn": "<sqs>-events"}]}
_LETS_RULE_IN = policy("events", "sqs:SendMessage", "<sqs>-events", "<rule>")
_LETS_TOPIC_IN = policy("sns", "sqs:SendMessage", "<sqs>-on-encrypted", "<topic>")
_REFUSES = policy("*", "sqs:SendMessage", "<sqs>-on-denying", effect="Deny")
_KEY = {"Tags": [{"TagKey": KEY_TAG, "TagValue": "<name>"}]}
_NO_KEY = {"KeyId": "<key>", "PendingWindowInDays": 7}
_SUBSCRIBED = {**_TOPIC, "Protocol": "sqs", "Endpoint": "<sqs>-on-encrypted"}
_TRUSTS = policy({"AWS": "arn:<partition>:iam::<account>:root"}, "sts:AssumeRole", "")
_RIGHT = {**_ROLE, "PolicyName": "sends"}
_SENDS = {**_RIGHT, "PolicyDocument": policy("", "sqs:SendMessage", "<sqs>-on-encrypted")}
# Made in this order, deleted in the other; each row ends with what deletes it.
# fmt: off
PARTS = (
    Step("bucket", "s3.create_bucket", {"Bucket": "<name>-<account>", **_ELSEWHERE}, (),
         "s3.delete_bucket", _BUCKET),
    Step("access", "s3.put_bucket_policy", {**_BUCKET, "Policy": _LETS_TRAIL_IN}, ("bucket",)),
    Step("trail", "cloudtrail.create_trail", {**_NAMED, "S3BucketName": "<name>-<account>"},
         ("access",), "cloudtrail.delete_trail", _NAMED),
    Step("selectors", "cloudtrail.put_event_selectors", _SELECTORS, ("trail",)),
    Step("logging", "cloudtrail.start_logging", _NAMED, ("selectors",)),
    queue("events", Policy=_LETS_RULE_IN),
    Step("rule", "events.put_rule", {**_NAMED, "EventPattern": _PATTERN}, ("events",),
         "events.delete_rule", _NAMED),
    Step("target", "events.put_targets", _TARGET, ("rule",),
         "events.remove_targets", {"Rule": "<name>", "Ids": ["queue"]}),
    queue("on-standard", MaximumMessageSize="1024"),
    queue("on-x.fifo"),
    queue("on-denying", Policy=_REFUSES),
    Step("key", "kms.create_key", _KEY, (), "kms.schedule_key_deletion", _NO_KEY),
    queue("on-encrypted", "key", KmsMasterKeyId="<key>", Policy=_LETS_TOPIC_IN),
    Step("topic", "sns.create_topic", _NAMED, (), "sns.delete_topic", _TOPIC),
    Step("subscription", "sns.subscribe", _SUBSCRIBED, ("topic", "on-encrypted")),
    Step("role", "iam.create_role", {**_ROLE, "AssumeRolePolicyDocument": _TRUSTS}, (),
         "iam.delete_role", _ROLE),
    Step("right", "iam.put_role_policy", _SENDS, ("role",), "iam.delete_role_policy", _RIGHT),
)
# fmt: on
_SEND, _RECEIVE, _EXTEND = (
    f"sqs.{each}" for each in ("send_message", "receive_message", "change_message_visibility")
)
_BODY, _LATE = {"MessageBody": "mendq drill"}, {"ReceiptHandle": "<late>"}
_LONGER, _BATCH = {**_LATE, "VisibilityTimeout": 30}, {"Entries": [{"Id": "1", **_LATE}]}
_STANDARD, _FIFO, _ENCRYPTED = ("on-standard",), ("on-x.fifo",), ("on-encrypted",)
# The first that a call needs is its queue. The key is disabled last: a service and the role are to
# be refused by it before.
CALLS = (
    Step("by_a_service", "sns.publish", {**_TOPIC, "Message": "x"}, (*_ENCRYPTED, "subscription")),
    Step("denied_by_key", _SEND, on("on-encrypted", **_BODY), (*_ENCRYPTED, "right")),
    Step("denied_by_role", _SEND, on("on-standard", **_BODY), (*_STANDARD, "right")),
    Step("denied_by_queue", _SEND, on("on-denying", **_BODY), ("on-denying",)),
    Step("missing_queue", _SEND, on("on-missing", **_BODY), ("on-missing",)),
    Step("bad_parameter", _RECEIVE, on("on-standard", WaitTimeSeconds=21), _STANDARD),
    Step("long_message", _SEND, on("on-standard", MessageBody="x" * 2_000), _STANDARD),
    Step("no_deduplication_id", _SEND, on("on-x.fifo", **_BODY, MessageGroupId="x"), _FIFO),
    Step("late_delete", "sqs.delete_message", on("on-x.fifo", **_LATE), _FIFO),
    Step("late_extension", _EXTEND, on("on-x.fifo", **_LONGER), _FIFO),
    Step("late_extension_standard", _EXTEND, on("on-standard", **_LONGER), _STANDARD),
    Step("failing_in_batch", "sqs.delete_message_batch", on("on-x.fifo", **_BATCH), _FIFO),
    Step("throttled", _RECEIVE, on("on-x.fifo"), _FIFO, times=BURST),
    Step("disabled_key", _SEND, on("on-encrypted", **_BODY), _ENCRYPTED),
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
    """One run. DIR has its id before it makes anything, so that nothing is forgotten."""

    def __init__(self, session: boto3.Session, folder: Path, say: Say) -> None:
        self._session, self._say, self._file = session, say, folder / UNFINISHED
        who, region = session.client("sts").get_caller_identity()["Arn"], session.region_name
        _, partition, _, _, account, caller = who.split(":", 5)
        self._caller = caller.split("/")[1 if caller.startswith("assumed-role/") else -1]
        self._state = {"run": secrets.token_hex(4), "here": f"{region}:{account}", "key": ""}
        self.is_left = self._file.exists()
        if self.is_left:
            here, self._state = self._state["here"], json.loads(self._file.read_text())
            if self._state["here"] != here or not re.fullmatch("[0-9a-f]{8}", self._state["run"]):
                raise SystemExit(f"{self._file} is of {self._state['here']}: delete it from there")
        self.name, self.folder = PREFIX + self._state["run"], folder / self._state["run"]
        arns = {"sqs": f"sqs:{region}:{account}:", "topic": f"sns:{region}:{account}:"}
        arns |= {"rule": f"events:{region}:{account}:rule/", "role": f"iam::{account}:role/"}
        arns |= {"trail": f"cloudtrail:{region}:{account}:trail/", "logs": "s3:::"}
        words = {word: f"arn:{partition}:{each}{self.name}" for word, each in arns.items()}
        words["url"] = f"{session.client('sqs').meta.endpoint_url}/{account}/{self.name}"
        words |= {"name": self.name, "account": account, "region": region, "partition": partition}
        self._words = {**words, "key": self._state["key"]}
        self.refused, self.rows = dict[str, str](), dict[str, Any]()
        self._read, self._seen, self._calls = set[str](), set[str](), 0

    def _call(self, does: str, mark: str = "", session: Any = None) -> Callable[[Any], Any]:
        """One operation of AWS, which is not tried again; its user agent names the run."""
        service, operation = does.split(".")
        config = _ONCE.merge(Config(user_agent_extra=f"{self.name}/{mark}"))
        client = (session or self._session).client(service, config=config)

        def ask(asked: Any) -> Any:
            self._calls += service == "sqs"
            text = re.sub(r"<(\w+)>", lambda at: self._words[at[1]], json.dumps(asked))
            return getattr(client, operation)(**json.loads(text))

        return ask

    def _ask(self, does: str, asked: Any) -> Any:
        return self._call(does)(asked)

    def _why_not(self, step: Step) -> str:
        return next((self.refused[each] for each in step.needs if each in self.refused), "")

    def make(self) -> None:
        """Make all that AWS lets be made; `refused` says why the rest is not there."""
        self._file.write_text(json.dumps(self._state))
        for part in PARTS:
            asked, why = dict(part.asked), self._why_not(part)
            if self._words["region"] == "us-east-1":
                asked.pop("CreateBucketConfiguration", None)
            try:
                answer = {} if why else self._ask(part.does, asked)
                if part.name == "key":
                    self._state["key"] = self._words["key"] = answer["KeyMetadata"]["KeyId"]
                    self._file.write_text(json.dumps(self._state))
            except _FROM_AWS as error:
                why = f"{part.does}: {error}"
            if why:
                self.refused[part.name] = why

    def clean(self) -> dict[str, str]:
        """Delete what was made; by name, what is still there, and why."""
        left: dict[str, str] = {}
        for part in reversed([each for each in PARTS if each.undo]):
            try:
                if part.name == "bucket":
                    for key, _ in self._files():
                        self._ask("s3.delete_object", {**_BUCKET, "Key": key})
                if part.name != "key" or self._words["key"]:
                    self._ask(part.undo, part.by)
            except _FROM_AWS as error:
                if part.name not in self.refused and not _GONE.search(str(error)):
                    left[part.name] = str(error)
        if not left:
            self._file.unlink(missing_ok=True)
        return left

    def record(self, minutes: float) -> None:
        """Make, provoke, wait. A quarter of the time is the trail's, which begins late."""
        with ThreadPoolExecutor(1) as pool:  # Ctrl-C waits for the answers: they say what was made
            pool.submit(self.make).result()
        if {"logging", "target"} <= self.refused.keys():
            return
        self._wait(minutes * 15, lambda: "a trail logs new queues only after some minutes")
        for call in CALLS:
            self._say(f"calls: {call.name}")
            why, found = self._why_not(call), dict[str, Any]()
            try:
                found = {} if why else self._provoked(call)
            except (*_FROM_AWS, LookupError) as error:
                why = str(error)
            told = {"told": f"{NOT_PROVOKED}: {why}", **found}
            self.rows[call.name] = {"call": call.name, **told, "records": []}
        self._wait(minutes * 45, self._awaited)

    def _wait(self, seconds: float, awaited: Callable[[], str]) -> None:
        until, said = time.monotonic() + seconds, ""
        while (words := awaited()) and (left := until - time.monotonic()) > 0:
            if words != said:
                self._say(f"waits, at most {left / 60:.1f} min: {words}")
            said = words
            time.sleep(min(PAUSE_SECONDS, left))

    def _provoked(self, call: Step) -> dict[str, Any]:
        """What the caller was told, when, and of which request."""
        session = self._as_role() if "right" in call.needs else None
        if "<late>" in json.dumps(call.asked):
            self._words["late"] = self._late_handle(call.needs[0])
        if call.name == "disabled_key":
            self._ask("kms.disable_key", {"KeyId": "<key>"})
        ask = self._call(call.does, call.name, session)

        def answer(_: int) -> dict[str, Any]:
            try:
                return dict(ask(call.asked))
            except ClientError as error:
                return dict(error.response)

        at, found = datetime.now(timezone.utc), dict[str, Any]()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in range(0, call.times, AT_ONCE):
                if "Error" not in found:
                    answers = list(pool.map(answer, range(min(AT_ONCE, call.times))))
                    found = next((each for each in answers if "Error" in each), answers[0])
        error = found.get("Error", {})
        failed = "".join(f", within it {each['Code']}" for each in found.get("Failed", []))
        is_none = not failed and call.does != "sns.publish"
        taken = f"{NOT_PROVOKED}: {call.times:,} " * is_none + "answered with 200" + failed
        told = f"{error['Code']}: {error['Message']}" if error else taken
        return {"told": told, "at": str(at), "request": found["ResponseMetadata"]["RequestId"]}

    def _as_role(self) -> boto3.Session:
        given = self._ask("sts.assume_role", {"RoleArn": "<role>", "RoleSessionName": "drill"})
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        key, secret, token = (given["Credentials"][each] for each in names)
        return boto3.Session(key, secret, token, self._session.region_name)

    def _late_handle(self, kind: str) -> str:
        """Of a message whose visibility timeout has run out."""
        once = secrets.token_hex(8)
        fifo = {"MessageGroupId": once, "MessageDeduplicationId": once} if "fifo" in kind else {}
        self._ask(_SEND, on(kind, **_BODY, **fifo))
        answer = self._ask(_RECEIVE, on(kind, VisibilityTimeout=1, WaitTimeSeconds=20))
        time.sleep(LATE_SECONDS)
        return str(answer["Messages"][0]["ReceiptHandle"])

    def _awaited(self) -> str:
        """What has not come yet, after a look at what has; empty where all is there."""
        ways = {"trail": ("logging", self._logged), "event": ("target", self._sent)}
        for way, (needs, look) in ways.items():
            try:
                for at, record in look() if needs not in self.refused else ():
                    self._take(way, at, record)
            except _FROM_AWS as error:
                self._say(f"{way}: {error}")
        made = [row["records"] for row in self.rows.values() if "request" in row]
        trail, event = (sum(way in str(each) for each in made) for way in (".trail", ".event"))
        said = f"of {len(made)} calls, {trail} came by the trail, {event} as events"
        return said if min(trail, event) < len(made) else ""

    def _files(self) -> list[tuple[str, datetime]]:
        """A run's are far fewer than the thousand that one answer takes."""
        answer = self._ask("s3.list_objects_v2", _BUCKET)
        return [(each["Key"], each["LastModified"]) for each in answer.get("Contents", [])]

    def _logged(self) -> Iterator[tuple[datetime, Any]]:
        for key, at in self._files():
            if key.endswith(".json.gz") and key not in self._read:
                body = self._ask("s3.get_object", {**_BUCKET, "Key": key})["Body"].read()
                self._read.add(key)
                yield from ((at, each) for each in json.loads(gzip.decompress(body))["Records"])

    def _sent(self) -> Iterator[tuple[datetime, Any]]:
        asked = on("events", MaxNumberOfMessages=10, AttributeNames=["SentTimestamp"])
        while messages := self._ask(_RECEIVE, asked).get("Messages"):
            for each in messages:
                at = int(each["Attributes"]["SentTimestamp"]) / 1_000
                yield datetime.fromtimestamp(at, timezone.utc), json.loads(each["Body"])

    def _take(self, way: str, at: datetime, record: Any) -> None:
        """Keep a record of this run's as it came, and what is to be known of it."""
        detail, text = record.get("detail", record), json.dumps(record, indent=2)
        name, event = self._call_of(detail), f"{way} {detail.get('eventID')}"
        if self.name not in text or not name or event in self._seen:
            return
        self._seen.add(event)
        row = self.rows.setdefault(name, {"call": name, "told": "", "at": str(at), "records": []})
        earlier = sum(f".{way}" in each["file"] for each in row["records"])
        file = f"{name}.{way}{earlier or ''}.json"
        self.folder.mkdir(exist_ok=True)
        (self.folder / file).write_text(text)
        needs = next((each.needs for each in CALLS if each.name == name), ("on-",))
        who = self.name if "right" in needs else self._caller
        seconds = round((at - datetime.fromisoformat(row["at"])).total_seconds())
        known = (detail.get("errorCode"), detail.get("errorMessage"))
        queue = ", ".join(places(detail, f"{self.name}-{needs[0]}"))
        role = ", ".join(places({"userIdentity": detail.get("userIdentity")}, who))
        found = dict(zip(COLUMNS, (*known, queue, role, matched_as(record))))
        row["records"].append({"file": file, "seconds": seconds, **found})

    def _call_of(self, detail: dict[str, Any]) -> str:
        """By the request, else by the user agent; empty where nothing failed."""
        by_request = {row.get("request"): name for name, row in self.rows.items()}
        if detail.get("requestID") in by_request or not detail.get("errorCode"):
            return str(by_request.get(detail.get("requestID"), ""))
        marked = re.search(rf"{self.name}/(\w+)", str(detail.get("userAgent")))
        is_service = "amazonaws.com" in str(detail.get("userIdentity"))
        return marked[1] if marked else "by_a_service" if is_service else "other"

    def document(self, left: dict[str, str]) -> dict[str, Any]:
        """What index.json holds; each SQS call is taken for a data event that is billed."""
        counts = (self._calls, self._calls, len(self._read), bool(self._state["key"]))
        dollars = sum(price * count for price, count in zip(PRICES.values(), counts))
        found = {"run": self.name, "calls": [*self.rows.values()], "refused": self.refused}
        cost = {name: int(count) for name, count in zip(PRICES, counts)}
        return {**found, "left": left, "cost": cost, "dollars": round(dollars, 4)}


def table(document: dict[str, Any]) -> Iterator[str]:
    """In Markdown, for people and for whoever gives the records back."""
    rows = [["call", "told", "trail", "event", *COLUMNS], ["---"] * (4 + len(COLUMNS))]
    for row in document["calls"]:
        ways = {each["file"].split(".")[1][:5]: each for each in reversed(row["records"])}
        came = [f"{ways[e]['seconds']} s" if e in ways else "no" for e in ("trail", "event")]
        first: dict[str, Any] = next(iter(ways.values()), {})
        known = [str(first.get(each) or "-") for each in COLUMNS]
        rows.append([row["call"], row["told"], *came, *known])
    for cells in rows:
        yield f"| {' | '.join(' '.join(each.replace('|', '/').split()) for each in cells)} |"
    counts = ", ".join(f"{each:,} {name}" for name, each in document["cost"].items())
    yield f"\nabout ${document['dollars']:.4f}, at prices of us-east-1: {counts}"
    for what in ("refused", "left"):
        yield from (f"{what}: {name}: {why}" for name, why in document[what].items())


def drill(session: boto3.Session, given: Any, say: Say, confirm: Say) -> dict[str, Any]:
    """Record, and delete what was made however it ends; what an earlier run left, first.

    `given` has folder, minutes and clean; `confirm` raises where nobody says yes.
    """
    given.folder.mkdir(parents=True, exist_ok=True)
    run = Run(session, given.folder, say)
    say(f"deletes what {run.name} left" if run.is_left else "nothing is left of an earlier run")
    say("and records nothing" if given.clean else PLAN)
    confirm("Start?")
    left = run.clean() if run.is_left else {}
    if given.clean or left:
        return run.document(left)
    run = Run(session, given.folder, say)
    try:
        run.record(given.minutes)
    except KeyboardInterrupt:
        run.refused["the rest"] = "interrupted"
    finally:
        say("deletes what it made")
        for _ in range(TRIES):  # a last file may come into the bucket meanwhile
            left = run.clean()
            if not left:
                break
            time.sleep(PAUSE_SECONDS)
    found = run.document(left)
    if run.rows:
        run.folder.mkdir(exist_ok=True)
        (run.folder / "index.json").write_text(json.dumps(found, indent=2))
        (run.folder / "table.md").write_text("\n".join(table(found)))
    return found


def main() -> int:
    """Run alone."""
    parser = argparse.ArgumentParser(description=PLAN)
    parser.add_argument("folder", metavar="DIR", type=Path, help="takes the records")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long, at most")
    parser.add_argument("--clean", action="store_true", help="only delete what a run left")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args()

    def confirm(question: str) -> None:
        if not given.yes and not (sys.stdin.isatty() and input(f"{question} [y/N] ") == "y"):
            parser.exit(2, "not confirmed, nothing was made: --yes confirms\n")

    try:
        found = drill(boto3.Session(), given, print, confirm)
    except _FROM_AWS as error:
        parser.exit(1, f"{error}\n")
    print(*table(found), sep="\n")
    return int(bool(found["left"] or found["refused"]))


if __name__ == "__main__":
    sys.exit(main())
