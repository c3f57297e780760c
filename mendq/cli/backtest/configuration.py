"""How the queues of a backtest are configured: as they stand now, or as a snapshot has them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mendq.aws.errors import QueueGone
from mendq.aws.queue import tags_if_readable
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.scan.dry_run import MetricBudget
from mendq.cli.scan.region_scan import RegionScan
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.queue import DEFAULTS, number_in, parts_of, to_compact_json
from mendq.notifications.configuration import select_configuration

Tags = Mapping[str, str]
_FORM = 'what `mendq export` writes, or a list of {"queue_arn", "attributes", "tags"}'


class Configuration(Struct, frozen=True):
    """The tags of every queue that is known, and `look`, which gives the facts about one.

    No counter, clock or measurement is in them: those are of another time. `look` raises
    FactsUnavailable or QueueRefusesUs.
    """

    tags: Mapping[str, Tags]
    look: Callable[[str, Collection[Need]], Facts]


def read_current_configuration(account: Account) -> Configuration:
    """Read with the operator's credentials; each thing once."""
    region = RegionScan(account, datetime.now(UTC), MetricBudget(0))
    reader = region.reader

    def look(queue_arn: str, needs: Collection[Need]) -> Facts:
        if region.is_absent(queue_arn):
            return _gone(queue_arn, needs, "the region")
        facts = reader.read_queue(queue_arn, reader.ask(tags_if_readable, queue_arn), needs)
        facts = reader.with_consumers(facts) if Need.LAMBDA_CONSUMERS in needs else facts
        facts = reader.with_dlq(facts) if Need.DLQ in needs else facts
        return replace(facts, attributes=select_configuration(facts.attributes))

    return Configuration({each.queue_arn: each.tags for each in region.queues}, look)


def _gone(queue_arn: str, needs: Collection[Need], where: str) -> Facts:
    """Of what a call named and is not there: that may be all that is asked."""
    if needs:
        raise QueueGone(f"{where} does not have it")
    return Facts(queue_arn, {}, {})


class _Known(Struct, frozen=True):
    queue_arn: str
    attributes: dict[str, Any]
    tags: dict[str, str] = {}

    def __post_init__(self) -> None:
        parts_of(self.queue_arn)
        if not sum(number_in(self.texts, name) for name in DEFAULTS if self.texts):
            raise ValueError(f"{self.queue_arn} has no attributes")

    @property
    def texts(self) -> dict[str, str]:
        """As SQS spells them: a policy is its text."""
        given = self.attributes.items()
        return select_configuration(
            {k: to_compact_json(v) if isinstance(v, dict) else str(v) for k, v in given}
        )


def read_configuration(path: Path) -> Configuration:
    """Of a file, or of a folder's files; raise CommandError where there is none in it."""
    try:
        # In a folder a pipe of that name would be waited for.
        files = sorted(filter(Path.is_file, path.glob("*.json"))) if path.is_dir() else [path]
        form: Any = _Known | list[_Known]
        found = [msgspec.json.decode(each.read_bytes(), type=form) for each in files]
        every = (of if isinstance(of, list) else [of] for of in found)
        known = {it.queue_arn: it for of in every for it in of}
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"--queues {path} is not {_FORM}: {error}", Exit.USAGE) from error
    if not known:
        raise CommandError(f"--queues {path} holds no queue: give {_FORM}", Exit.USAGE)
    texts = {arn: it.texts for arn, it in known.items()}
    tags = {arn: it.tags for arn, it in known.items()}

    def look(queue_arn: str, needs: Collection[Need]) -> Facts:
        if queue_arn not in known:
            return _gone(queue_arn, needs, path.name)
        facts = Facts(queue_arn, texts[queue_arn], tags[queue_arn])
        dlq = facts.dlq_arn if Need.DLQ in needs else None
        return replace(facts, dlq=QueueFacts(dlq, texts.get(dlq, {})) if dlq else None)

    return Configuration(tags, look)
