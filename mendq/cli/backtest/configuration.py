"""Queue configuration for a backtest: read from AWS now, or from a snapshot file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mendq.aws.errors import QueueGone
from mendq.aws.queue import read_tags_if_allowed
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.scan.dry_run import MetricBudget
from mendq.cli.scan.region_scan import RegionScan
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.queue import (
    DEFAULT_NUMBER_BY_ATTRIBUTE,
    parse_queue_arn,
    read_number_attribute,
    to_compact_json,
)
from mendq.notifications.configuration import select_configuration

Tags = Mapping[str, str]
# What --queues takes, for error messages.
_EXPECTED_SNAPSHOT_CONTENT = (
    'what `mendq export` writes, or a list of {"queue_arn", "attributes", "tags"}'
)


class Configuration(Struct, frozen=True):
    """Tags and facts of the queues of a backtest.

    A queue's own attributes leave out message counts and timestamps, because today's values say
    nothing about the time of the incidents. Metrics are left out for the same reason.
    """

    # Tags of all known queues by ARN.
    tags: Mapping[str, Tags]
    # Returns the facts about a queue. Raises FactsUnavailable or QueueRefusesUs.
    read_facts: Callable[[str, Collection[Need]], Facts]


def read_current_configuration(account: Account) -> Configuration:
    """Return the current configuration of the account's queues.

    The queues are listed now. The facts about a queue are read when they are first needed, with the
    operator's credentials.
    """
    region_scan = RegionScan(account, datetime.now(UTC), MetricBudget(0))
    fact_reader = region_scan.reader

    def read_facts(queue_arn: str, needs: Collection[Need]) -> Facts:
        if region_scan.is_queue_absent(queue_arn):
            return _make_facts_without_queue(queue_arn, needs, "the region")
        tags = fact_reader.ask(read_tags_if_allowed, queue_arn)
        facts = fact_reader.read_queue(queue_arn, tags, needs)
        if Need.LAMBDA_CONSUMERS in needs:
            facts = fact_reader.with_consumers(facts)
        if Need.DLQ in needs:
            facts = fact_reader.with_dlq(facts)
        return replace(facts, attributes=select_configuration(facts.attributes))

    return Configuration({queue.queue_arn: queue.tags for queue in region_scan.queues}, read_facts)


def _make_facts_without_queue(
    queue_arn: str, needs: Collection[Need], searched_place: str
) -> Facts:
    """Return empty facts about a missing queue. Raise QueueGone if the symptom needs facts.

    `searched_place` tells the error message where the queue was not found.
    """
    if needs:
        raise QueueGone(f"{searched_place} does not have it")
    return Facts(queue_arn, {}, {})


class _SnapshotQueue(Struct, frozen=True):
    """One queue of a snapshot file.

    The constructor raises ValueError if the ARN is not that of a queue, if an attribute that must
    be a number is not one, or if the queue has no attributes.
    """

    queue_arn: str
    attributes: dict[str, Any]
    tags: dict[str, str] = {}

    def __post_init__(self) -> None:
        parse_queue_arn(self.queue_arn)
        attribute_text_by_name = self.attribute_text_by_name
        # Raises ValueError if an attribute that must be a number is not one.
        numeric_attribute_values = (
            [
                read_number_attribute(attribute_text_by_name, name)
                for name in DEFAULT_NUMBER_BY_ATTRIBUTE
            ]
            if attribute_text_by_name
            else []
        )
        if sum(numeric_attribute_values) == 0:
            raise ValueError(f"{self.queue_arn} has no attributes")

    @property
    def attribute_text_by_name(self) -> dict[str, str]:
        """The attributes that configure the queue, as SQS spells them: every value is a text."""
        text_by_attribute_name = {}
        for name, attribute in self.attributes.items():
            is_document = isinstance(attribute, dict)
            text_by_attribute_name[name] = (
                to_compact_json(attribute) if is_document else str(attribute)
            )
        return select_configuration(text_by_attribute_name)


def read_configuration(path: Path) -> Configuration:
    """Return the configuration in a snapshot file, or in all JSON files of a folder.

    Raises CommandError if a file cannot be read, or if no file contains a queue.
    """
    try:
        queues = _read_snapshot(path)
    except (OSError, ValueError, RecursionError) as error:
        problem = f"--queues {path} is not {_EXPECTED_SNAPSHOT_CONTENT}: {error}"
        raise CommandError(problem, Exit.USAGE) from error
    if not queues:
        raise CommandError(
            f"--queues {path} holds no queue: give {_EXPECTED_SNAPSHOT_CONTENT}", Exit.USAGE
        )
    attributes_by_queue_arn = {
        queue_arn: queue.attribute_text_by_name for queue_arn, queue in queues.items()
    }
    tags_by_queue_arn = {queue_arn: queue.tags for queue_arn, queue in queues.items()}

    def read_facts(queue_arn: str, needs: Collection[Need]) -> Facts:
        if queue_arn not in queues:
            return _make_facts_without_queue(queue_arn, needs, path.name)
        facts = Facts(queue_arn, attributes_by_queue_arn[queue_arn], tags_by_queue_arn[queue_arn])
        dlq_arn = facts.dlq_arn if Need.DLQ in needs else None
        dlq = QueueFacts(dlq_arn, attributes_by_queue_arn.get(dlq_arn, {})) if dlq_arn else None
        return replace(facts, dlq=dlq)

    return Configuration(tags_by_queue_arn, read_facts)


def _read_snapshot(path: Path) -> dict[str, _SnapshotQueue]:
    """Return the queues of the snapshot files by ARN.

    Raises OSError, ValueError or RecursionError if a file cannot be read.
    """
    snapshot_files = [path]
    if path.is_dir():
        # Read regular files only: reading a named pipe would never end.
        snapshot_files = sorted(filter(Path.is_file, path.glob("*.json")))
    snapshot_type: Any = _SnapshotQueue | list[_SnapshotQueue]
    queues = dict[str, _SnapshotQueue]()
    for snapshot_file in snapshot_files:
        snapshot = msgspec.json.decode(snapshot_file.read_bytes(), type=snapshot_type)
        for queue in snapshot if isinstance(snapshot, list) else [snapshot]:
            queues[queue.queue_arn] = queue
    return queues
