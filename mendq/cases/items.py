"""Make the keys of the case store's items, and convert values to items and back.

The docstring of `mendq/cases/table.py` lists all keys. A function that reads an item raises one of
DECODE_ERRORS if the item is malformed, so call it within `convert_decode_errors`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases.attribute_record import AttributeRecord, AttributeWrite
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.view import CaseStoreView, HoldUp
from mendq.model.case import Case, Severity
from mendq.model.evidence import Evidence, Sighting
from mendq.model.time_text import format_time
from mendq.notifications.sent import NotificationRecord

# The attribute of the freeze's item with the set of freezes. Each is a text `AT BY REASON`, so that
# a second freeze adds a text and does not replace the first.
FREEZES_ATTRIBUTE = "freezes"
DEFAULT_FREEZE_REASON = "no reason given"
# The errors that decoding an item may raise if Mendq did not write its values.
DECODE_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
# The texts in a notification's item. They are removed after the notification was sent.
NOTIFICATION_TEXT_ATTRIBUTES = ("subject", "body", "news", "about", "team")
Record = TypeVar("Record")
Item = Mapping[str, Any]
Key = dict[str, dict[str, str]]


@contextmanager
def convert_decode_errors(item_name: str) -> Iterator[None]:
    """Turn DECODE_ERRORS in the `with` block into CaseStoreUnreadable.

    The message of the new error contains `item_name`.
    """
    try:
        yield
    except DECODE_ERRORS as error:
        raise CaseStoreUnreadable(f"{item_name}: {error!r}") from error


def item_key(partition: str, sort_key: str) -> Key:
    """Return the key of an item, in the form that DynamoDB takes."""
    return {"pk": {"S": partition}, "sk": {"S": sort_key}}


def transition_key(case_id: str, transition_number: int) -> Key:
    """Return the key of a case's transition, by its number in the case."""
    return item_key(f"case#{case_id}", f"{transition_number:06}")


def freeze_key() -> Key:
    """Return the key of the item that holds all freezes. The item exists only during a freeze."""
    return item_key(ACCOUNT_PARTITION, "freeze")


def case_key(queue_arn: str, symptom: str) -> Key:
    """Return the key of the newest case of a symptom on a queue."""
    return item_key(queue_arn, f"case#{symptom}")


def evidence_key(queue_arn: str, symptom: str) -> Key:
    """Return the key of the item with the failed calls that may open a case."""
    return item_key(queue_arn, f"evidence#{symptom}")


def notification_key(partition: str, symptom: str) -> Key:
    """Return the key of the newest notification about a symptom.

    `partition` is the queue's ARN. It is `ACCOUNT_PARTITION` for a notification about the account,
    such as one about a mass symptom.
    """
    return item_key(partition, f"page#{symptom}")


def notification_budget_key(severity: Severity, now: datetime) -> Key:
    """Return the key of the hour's budget of notifications of a severity."""
    return item_key(ACCOUNT_PARTITION, f"pages#{severity}#{now:%Y-%m-%dT%H}")


def attribute_key(queue_arn: str, attribute: str) -> Key:
    """Return the key of the record of Mendq's writes to one attribute."""
    return item_key(queue_arn, f"attribute#{attribute}")


def snapshot_key(case: Case) -> Key:
    """Return the key of the queue's configuration before this transition."""
    return item_key(case.queue_arn, f"snapshot#{case.case_id}#{case.n}")


def spread_key(spread_subject: str) -> Key:
    """Return the key of the item that lists the queues that show a symptom.

    `spread_subject` is the symptom's name, or its key from `mass_symptom_key`. With the subject
    `held_back`, the item lists the callers whose notifications wait.
    """
    return item_key(ACCOUNT_PARTITION, f"spread#{spread_subject}")


def to_attribute_value(value: Any) -> Mapping[str, Any]:
    """Return a value in DynamoDB's form, such as {"N": "5"}.

    Times become whole seconds since 1970. Booleans, integers and texts keep their type. A mapping
    is already in DynamoDB's form and is returned unchanged. Any other value must be an iterable of
    texts, and becomes a string set.
    """
    if isinstance(value, Mapping):
        return value
    if isinstance(value, datetime):
        return {"N": str(int(value.timestamp()))}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    return {"SS": sorted(value)}


def to_item_attributes(**values: Any) -> dict[str, Any]:
    """Return attributes for an item in DynamoDB's form. Leave out values that are None."""
    return {name: to_attribute_value(value) for name, value in values.items() if value is not None}


def encode_json(value: Any) -> str:
    """Return a value as JSON text for one attribute. `read_json` decodes it again."""
    plain_value = msgspec.to_builtins(value, builtin_types=(datetime,))
    return json.dumps(plain_value, default=format_time, sort_keys=True)


def read_time(seconds_attribute: Mapping[str, str]) -> datetime:
    """Read a time from seconds since 1970 in DynamoDB's form."""
    return datetime.fromtimestamp(int(seconds_attribute["N"]), UTC)


def read_text(item: Item, attribute_name: str, default_text: str = "") -> str:
    """Return the text of an attribute, or `default_text` if the item does not have it."""
    return str(item.get(attribute_name, {}).get("S", default_text))


def read_texts(item: Item, attribute_name: str) -> list[str]:
    """Return the texts of a string set, or an empty list if the item does not have it."""
    return list(item.get(attribute_name, {}).get("SS", []))


def read_json(item: Item, attribute_name: str, value_type: Any, default_json: str = "null") -> Any:
    """Return the value of type `value_type` in an attribute that `encode_json` encoded.

    If the item does not have the attribute, decode `default_json` instead.
    """
    return msgspec.json.decode(read_text(item, attribute_name, default_json), type=value_type)


def _read_attribute(attribute: Mapping[str, Any], declared_type: str) -> Any:
    """Return an attribute's value in the declared type of its field. Raise KeyError for others."""
    match declared_type.removesuffix(" | None"):
        case "bool":
            return attribute["BOOL"]
        case "datetime":
            return read_time(attribute)
        case "int":
            return int(attribute["N"])
        case "str":
            return attribute["S"]
    raise KeyError(declared_type)


def read_record(record_class: type[Record], item: Item, **given_values: Any) -> Record:
    """Return a record whose fields have the values of the item's attributes of the same names.

    Args:
        record_class: The class of the record. A field without an attribute gets its default.
        item: The item.
        given_values: The values of fields that the caller has read itself.
    """
    for name, declared_type in record_class.__annotations__.items():
        if name in item and name not in given_values:
            given_values[name] = _read_attribute(item[name], str(declared_type))
    return record_class(**given_values)


class Freeze(msgspec.Struct, frozen=True):
    """One freeze of all changes: why, by whom and since when.

    `by` and `at` are empty if a person wrote the item without using `mendq freeze`.
    """

    reason: str
    by: str = ""
    at: str = ""

    def __str__(self) -> str:
        author_text = f" by {self.by} at {self.at}" if self.by else ""
        return f"frozen{author_text}: {self.reason}"


def read_freezes(item: Item) -> list[Freeze]:
    """Return all freezes in the freeze's item; an empty list if the item does not exist.

    The freezes in FREEZES_ATTRIBUTE come first, oldest first, then the freeze in the attribute
    `reason`. An existing item freezes all changes, whatever it contains. So an item without any of
    these texts gives one freeze with DEFAULT_FREEZE_REASON.
    """
    freezes: list[Freeze] = []
    for freeze_text in sorted(read_texts(item, FREEZES_ATTRIBUTE)):
        # With the two spaces, any text has three parts, even one that Mendq did not write.
        at, by, reason = f"{freeze_text}  ".split(" ", 2)
        freezes.append(Freeze(reason.strip(), by, at))
    if item and ("reason" in item or not freezes):
        freezes.append(Freeze(read_text(item, "reason") or DEFAULT_FREEZE_REASON))
    return freezes


def list_view_keys(
    queue_arn: str, symptom: str, attributes: Sequence[str], spread_subject: str
) -> tuple[Key, ...]:
    """Return the keys of the items that `read_view` reads, in its order.

    If `spread_subject` is empty, the item of the spread (`spread_key`) is left out.
    """
    item_keys = [
        freeze_key(),
        case_key(queue_arn, symptom),
        evidence_key(queue_arn, symptom),
        notification_key(queue_arn, symptom),
    ]
    item_keys.extend(attribute_key(queue_arn, attribute) for attribute in attributes)
    if spread_subject:
        item_keys.append(spread_key(spread_subject))
    return tuple(item_keys)


def read_view(view_items: Sequence[Item], attributes: Sequence[str]) -> CaseStoreView:
    """Return the case store view that these items contain.

    `view_items` are the items at the keys of `list_view_keys`, in the same order. A missing item is
    an empty mapping. `attributes` is the argument with which `list_view_keys` was called.
    """
    freeze_item, case_item, evidence_item, notification_item, *other_items = view_items
    attribute_items = other_items[: len(attributes)]
    spread_items = other_items[len(attributes) :]
    failure_texts = read_json(case_item, "failures", list[str], "[]")
    freeze_reasons = [freeze.reason for freeze in read_freezes(freeze_item)]
    return CaseStoreView(
        freeze_reason="; ".join(freeze_reasons) if freeze_item else None,
        case=read_case(case_item),
        hold_up=read_json(case_item, "held_up", HoldUp | None),
        failures=Evidence.of(Sighting.from_text(text) for text in failure_texts),
        evidence=read_evidence(evidence_item),
        record_by_attribute=dict(
            zip(attributes, map(read_attribute_record, attribute_items), strict=True)
        ),
        notification=read_notification(notification_item),
        spread_item=spread_items[0] if spread_items else None,
    )


def read_evidence(item: Item) -> Evidence:
    """Return the failed calls in an evidence item."""
    return Evidence.of(Sighting.from_text(text) for text in read_texts(item, "sightings"))


def read_case(item: Item) -> Case | None:
    """Return the case in an item; None if the item has no transition."""
    if "document" not in item:
        return None
    document = json.loads(item["document"]["S"])
    opened_at = read_time(item["opened_at"]) if "opened_at" in item else None
    return Case.from_document(document, read_text(item, "code"), opened_at)


def format_failures(failures: Evidence) -> str:
    """Return failed calls as JSON text for the case's item."""
    return json.dumps([sighting.to_text() for sighting in failures.sightings])


def make_notification_attributes(record: NotificationRecord) -> dict[str, Any]:
    """Return the attributes of a notification's item, without its key.

    A notification that was sent or dropped has no texts and no `since`, the time since which it
    waits.
    """
    unsent_texts: dict[str, Any] = {}
    if record.body:
        unsent_texts = {name: getattr(record, name) for name in NOTIFICATION_TEXT_ATTRIBUTES}
        unsent_texts["since"] = record.since or record.at
    return to_item_attributes(
        at=record.at, urgent=record.urgent, announced=encode_json(record.announced), **unsent_texts
    )


def read_notification(item: Item) -> NotificationRecord | None:
    """Return the record in a notification's item; None if the item does not exist."""
    if not item:
        return None
    announced = read_json(item, "announced", dict[str, datetime])
    return read_record(NotificationRecord, item, announced=announced)


def make_record_attributes(record: AttributeRecord) -> dict[str, Any]:
    """Return the attributes of an attribute record's item, without its key.

    The claim is left out, so storing these attributes ends it.
    """
    return to_item_attributes(
        writes=encode_json(record.writes),
        person_value=record.person_value,
        owes_a_notification=record.owes_a_notification or None,
        overridden_until=record.overridden_until,
        queue_created_at=record.queue_created_at,
    )


def read_attribute_record(item: Item) -> AttributeRecord:
    """Return the record in an attribute's item; an empty record if the item does not exist."""
    writes = read_json(item, "writes", tuple[AttributeWrite, ...], "[]")
    intent = read_case({"document": item["intent"]}) if "intent" in item else None
    return read_record(AttributeRecord, item, writes=writes, intent=intent)
