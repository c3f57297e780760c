"""An account in moto: a queue, a case store, a case bucket and two topics."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import boto3
import pytest
from botocore.auth import SigV4Auth
from moto import mock_aws
from moto.cloudtrail.responses import CloudTrailResponse
from moto.dynamodb.models import dynamodb_backends
from moto.kms.utils import AbstractPrivateKey, generate_private_key
from moto.s3.models import s3_backends
from moto.sns.models import sns_backends
from moto.sqs.models import Queue

from mendq.aws.clients import CallRateLimit, Clients
from mendq.cases import open_case_index
from mendq.cases.context import FixContext
from mendq.heal.apply import write_attributes
from mendq.heal.batch import BatchResult, heal_failed_calls
from mendq.model.consent import Consent
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner
from tests.account.retained_clients import RetainedSession, remember

ACCOUNT = "123456789012"
REGION = "us-east-1"
PROBE_ROLE = f"arn:aws:iam::{ACCOUNT}:role/mendq-probe-{REGION}"
WORKER = f"arn:aws:iam::{ACCOUNT}:role/orders-worker"
EXPIRED = (
    "Value AQEB for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
)

# Where tests of hours and days begin: far from the end of either. The month is long over, so that
# no test that takes the present time by mistake passes.
STARTS_AT = datetime(2026, 3, 10, 12, 10, tzinfo=UTC)

remember()


def list_clients(clients: Clients) -> tuple[Any, ...]:
    """The clients that a case's life uses."""
    return (
        clients.sqs,
        clients.sqs_for_writing,
        clients.dynamodb,
        clients.s3,
        clients.functions,
        clients.functions_with_long_timeout,
        clients.sns,
        clients.events,
        clients.cloudtrail,
        clients.cloudtrail_in_full,
        clients.access_analyzer,
        clients.cloudwatch,
    )


@dataclass
class Account:
    """What a test sees of the account, and the events it makes up."""

    clients: Clients
    settings: OwnerSettings
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    deliveries: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def queue(self, name: str = "orders.fifo", tag: str | None = "heal", **attributes: str) -> str:
        """Make a queue and return its ARN."""
        fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        tags = {} if tag is None else {"mendq": tag}
        self.clients.sqs.create_queue(
            QueueName=name,
            Attributes={**fifo, **attributes},  # type: ignore[dict-item]
            tags=tags,
        )
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"

    def url(self, queue_arn: str) -> str:
        return f"{self.clients.sqs.meta.endpoint_url}/{ACCOUNT}/{queue_arn.rpartition(':')[2]}"

    def visibility(self, queue_arn: str) -> int:
        return int(self.attributes(queue_arn)["VisibilityTimeout"])

    def attributes(self, queue_arn: str) -> dict[str, str]:
        answer = self.clients.sqs.get_queue_attributes(
            QueueUrl=self.url(queue_arn), AttributeNames=["All"]
        )
        return {str(name): value for name, value in answer["Attributes"].items()}

    def set(self, queue_arn: str, **attributes: str) -> None:
        url = self.url(queue_arn)
        given = cast("Any", attributes)
        self.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes=given)

    def set_visibility(self, queue_arn: str, seconds: int) -> None:
        self.set(queue_arn, VisibilityTimeout=str(seconds))

    def record(self, queue_arn: str, event_id: str, **over: Any) -> dict[str, Any]:
        """A CloudTrail record of a late delete."""
        return {
            "eventVersion": "1.11",
            "userIdentity": {
                "type": "AssumedRole",
                "arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/orders-worker/i-1",
                "sessionContext": {"sessionIssuer": {"arn": WORKER}},
            },
            "eventTime": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "eventSource": "sqs.amazonaws.com",
            "eventName": "DeleteMessage",
            "awsRegion": REGION,
            "errorCode": "InvalidParameterValueException",
            "errorMessage": EXPIRED,
            "requestID": f"request-{event_id}",
            "eventID": event_id,
            "resources": [{"ARN": queue_arn, "type": "AWS::SQS::Queue"}],
            "recipientAccountId": ACCOUNT,
            **over,
        }

    def late_deletes(self, queue_arn: str, *event_ids: str, **over: Any) -> dict[str, str]:
        """Intake messages, by id."""
        return {
            f"message-{event_id}": json.dumps({"detail": self.record(queue_arn, event_id, **over)})
            for event_id in event_ids
        }

    def run(self, *, remaining_seconds: float = 60) -> FixContext:
        """An invocation of its own."""
        self.deliveries += 1
        return FixContext(
            clients=self.clients,
            settings=self.settings,
            owner=f"invocation-{self.deliveries}",
            now=self.now,
            remaining_seconds=lambda: remaining_seconds,
            write_steps=write_attributes,
            writer=Owner.HEAL,
        )

    def heal(self, bodies: dict[str, str], *, remaining_seconds: float = 60) -> BatchResult:
        """One delivery of a batch."""
        return heal_failed_calls(bodies, self.run(remaining_seconds=remaining_seconds))

    def tag(self, queue_arn: str, **tags: str) -> None:
        self.clients.sqs.tag_queue(QueueUrl=self.url(queue_arn), Tags=tags)

    def freeze(self) -> None:
        """As `mendq freeze` does."""
        item = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "Black Friday"}}
        self.clients.dynamodb.put_item(TableName="case_store", Item=item)

    def attribute_item(self, queue_arn: str) -> dict[str, Any]:
        """What the case store holds about the queue's visibility timeout."""
        return self.case_store_items().get((queue_arn, "attribute#VisibilityTimeout"), {})

    def later(self, **delta: float) -> None:
        self.now += timedelta(**delta)

    def transitions(self) -> list[dict[str, Any]]:
        """The transitions that the case bucket holds, oldest first."""
        s3 = self.clients.s3
        answer = s3.list_objects_v2(Bucket=self.settings.case_bucket, Prefix="cases/")
        listed = answer.get("Contents", [])
        found = [
            json.loads(
                s3.get_object(Bucket=self.settings.case_bucket, Key=item["Key"])["Body"].read()
            )
            for item in listed
        ]
        return sorted(found, key=lambda each: str(each["at"]))

    def pages(self, severity: str = "info") -> list[tuple[str, str]]:
        """Subject and body of what was published, oldest first."""
        topic = sns_backends[ACCOUNT][REGION].topics[f"arn:aws:sns:{REGION}:{ACCOUNT}:{severity}"]
        return [(subject or "", message) for _, message, subject, *_ in topic.sent_notifications]

    @contextmanager
    def bus(self, failing: int = 0) -> Iterator[list[dict[str, Any]]]:
        """The events that are put on the default bus meanwhile; the first `failing` are refused."""
        put: list[dict[str, Any]] = []
        tried = iter(range(failing))

        def answer(params: Any, **_: Any) -> Any:
            refused = next(tried, None) is not None
            (entry,) = json.loads(params["body"])["Entries"]
            put.extend([] if refused else [entry])
            said = {"ErrorCode": "ThrottlingException"} if refused else {"EventId": "1"}
            return SimpleNamespace(status_code=200), {"Entries": [said]}

        events: Any = self.clients.events.meta.events
        events.register("before-call.events.PutEvents", answer)
        yield put
        events.unregister("before-call.events.PutEvents", answer)

    def case_store_items(self) -> dict[tuple[str, str], dict[str, Any]]:
        items = self.clients.dynamodb.scan(TableName=self.settings.case_table)["Items"]
        return {(item["pk"]["S"], item["sk"]["S"]): dict(item) for item in items}


def make_settings(**over: Any) -> OwnerSettings:
    fields: dict[str, Any] = {
        "account": ACCOUNT,
        "case_table": "case_store",
        "case_bucket": "cases",
        "urgent_topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:urgent",
        "info_topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:info",
        "limits": Limits(),
    }
    consent = {name: over.pop(name) for name in Consent.__dataclass_fields__.keys() & over.keys()}
    fields["consent"] = Consent(**{"tag_may_raise_to": Mode.HEAL, **consent})
    return OwnerSettings(**{**fields, **over})


def _lookup_events_of(made: Account) -> Callable[[object], str]:
    """moto knows no LookupEvents: the account's own `history`, newest first, answers in pages."""

    def answer(response: Any) -> str:
        asked = json.loads(response.body)
        (wanted,) = asked["LookupAttributes"]
        found = [entry for entry in made.history if _has(entry, wanted)]
        begin = int(asked.get("NextToken", 0))
        end = begin + asked.get("MaxResults", 50)
        more = {"NextToken": str(end)} if found[end:] else {}
        return json.dumps({"Events": found[begin:end], **more}, default=datetime.timestamp)

    return answer


def _has(event: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a record has the attribute; one that cannot be read is found by any."""
    try:
        record = json.loads(event["CloudTrailEvent"])
        name = wanted["AttributeKey"]
        return bool(record[f"{name[0].lower()}{name[1:]}"] == wanted["AttributeValue"])
    except (KeyError, TypeError, ValueError):
        return True


def _keys(partition: str, sort: str) -> list[Any]:
    kinds = ((partition, "HASH"), (sort, "RANGE"))
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def furnish_account(clients: Clients) -> Account:
    """An account with what the stack deploys: case store, case bucket, topics."""
    types = {
        "pk": "S",
        "sk": "S",
        open_case_index.PARTITION_ATTRIBUTE: "S",
        open_case_index.SORT_ATTRIBUTE: "N",
    }
    projection = {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": list(open_case_index.INCLUDED_ATTRIBUTES),
    }
    index = {
        "IndexName": open_case_index.OPEN_CASES,
        "KeySchema": _keys(open_case_index.PARTITION_ATTRIBUTE, open_case_index.SORT_ATTRIBUTE),
        "Projection": projection,
    }
    clients.dynamodb.create_table(
        TableName="case_store",
        KeySchema=_keys("pk", "sk"),
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}  # type: ignore[typeddict-item]
            for name, kind in types.items()
        ],
        GlobalSecondaryIndexes=[index],  # type: ignore[list-item]
        BillingMode="PAY_PER_REQUEST",
    )
    clients.dynamodb.create_table(
        TableName="seals",
        KeySchema=_keys("pk", "sk"),
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    clients.s3.create_bucket(Bucket="cases")
    for name in ("urgent", "info"):
        clients.sns.create_topic(Name=name)
    return _make_account(clients)


def _make_account(clients: Clients) -> Account:
    clients.__dict__["event_history_pace"] = CallRateLimit(None)
    return Account(clients, make_settings())


@dataclass
class _MotoResources:
    """What an account is furnished with, as moto's backends hold it."""

    tables: Any
    buckets: Any
    topics: Any

    @classmethod
    def read(cls) -> _MotoResources:
        return cls(
            dynamodb_backends[ACCOUNT][REGION].tables,
            s3_backends[ACCOUNT]["aws"].buckets,
            sns_backends[ACCOUNT][REGION].topics,
        )


# The resources of the first account, pickled.
_furnishings: list[bytes] = []


def _furnish_moto_account(clients: Clients) -> Account:
    """Furnish an account in moto as `furnish_account` does.

    Only the first account calls moto. The others get copies of its resources, because five calls
    to moto take longer than most tests.
    """
    if not _furnishings:
        account = furnish_account(clients)
        _furnishings.append(pickle.dumps(_MotoResources.read()))
        return account
    furnishings = pickle.loads(_furnishings[0])  # noqa: S301 - our own
    resources = _MotoResources.read()
    resources.tables.update(furnishings.tables)
    resources.buckets.update(furnishings.buckets)
    resources.topics.update(furnishings.topics)
    for name, bucket in furnishings.buckets.items():
        s3_backends.bucket_accounts[name] = (bucket.partition, ACCOUNT)
    return _make_account(clients)


@cache
def _make_private_key(key_spec: str) -> AbstractPrivateKey:
    """Return the private key that all KMS keys of this kind share in tests.

    moto makes an RSA key for each KMS key, a tenth of a second each. No test signs with one.
    """
    return generate_private_key(key_spec)


@contextmanager
def moto_account(clients: Clients | None = None) -> Iterator[Account]:
    """Yield an empty account whose queues follow its clock. It starts at the present time.

    `clients` may be those of an earlier account that is gone.
    """
    with mock_aws():
        made = _furnish_moto_account(
            clients or Clients(cast("boto3.Session", RetainedSession(REGION)))
        )
        with (
            patch.object(CloudTrailResponse, "lookup_events", _lookup_events_of(made), create=True),
            # moto reads who signed and for where, and no signature.
            patch.object(SigV4Auth, "canonical_request", lambda *_: ""),
            patch("moto.kms.models.generate_private_key", _make_private_key),
            # A call is tried again at once.
            patch("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None)),
            patch("moto.sqs.models.unix_time", lambda: made.now.timestamp()),  # noqa: PLW0108 - `now` moves
            # moto knows no RedriveAllowPolicy either: it is kept and shown, and refuses nothing.
            patch.object(Queue, "BASE_ATTRIBUTES", [*Queue.BASE_ATTRIBUTES, "RedriveAllowPolicy"]),
            patch.object(Queue, "redrive_allow_policy", None, create=True),
        ):
            yield made


@pytest.fixture
def account() -> Iterator[Account]:
    """An account whose clock starts at STARTS_AT."""
    with moto_account() as made:
        made.now = STARTS_AT
        yield made
