"""Which queues were managed when, as the hourly sweeps listed them beside their findings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.days import microseconds

SPARK_MANAGED = "managed_arn string, managed_at array<bigint>"
SPARK_WHOLE = "whole_at array<bigint>"
MAXIMUM_BYTES = 20_000_000
# Twice as far apart as they come: further away, a sweep says nothing of the incident.
_NEAR_MICROSECONDS = 2 * 3_600 * 1_000_000
LATER_DAYS = 7
_LATER_MICROSECONDS = LATER_DAYS * 86_400 * 1_000_000


class Round(NamedTuple):
    """One sweep's list; `whole` where every managed queue is on it."""

    at: int
    queue_arns: tuple[str, ...]
    whole: bool


@dataclass(frozen=True)
class Managed:
    """By queue when it was listed; and, one row, when a sweep listed them all."""

    queues: DataFrame
    whole: DataFrame


def read_round(content: bytes) -> Round | None:
    """None where `content` is no round that lists what is managed; nothing is raised."""
    if len(content) > MAXIMUM_BYTES:
        return None
    try:
        document = json.loads(content)
        at = datetime.fromisoformat(document["at"])
        arns = _texts(document["managed"])
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return Round(microseconds(at), arns, document["managed_whole"] is True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None


def _texts(listed: object) -> tuple[str, ...]:
    """An empty text or object would say that nothing is managed."""
    if not isinstance(listed, list):
        raise TypeError(f"{type(listed).__name__} is no list")
    for each in listed:
        each.encode()
    return tuple(listed)


def managed(spark: SparkSession, rounds: Iterable[Round]) -> Managed:
    """The same rounds in any order give the same."""
    listed_at: dict[str, set[int]] = defaultdict(set)
    whole: set[int] = set()
    for each in rounds:
        whole |= {each.at} if each.whole else set()
        for arn in each.queue_arns:
            listed_at[arn].add(each.at)
    rows = [(arn, sorted(listed_at[arn])) for arn in sorted(listed_at)]
    return Managed(
        spark.createDataFrame(rows, SPARK_MANAGED),
        spark.createDataFrame([(sorted(whole),)], SPARK_WHOLE),
    )


def seen_by_sweeps(incidents: DataFrame, known: Managed) -> DataFrame:
    """`was_managed`, `was_unmanaged` from the sweep before an incident to the one after it.

    Neither where one of the two is not near; `managed_later` within seven days.
    """
    listed = sf.coalesce("managed_at", sf.array())
    first, last = sf.unix_micros("first_failure"), sf.unix_micros("last_failure")
    return (
        incidents.join(known.queues, on=sf.col("queue_arn") == sf.col("managed_arn"), how="left")
        .crossJoin(sf.broadcast(known.whole))
        .withColumn("sweep_before", _newest(sf.col("whole_at"), first))
        .withColumn("sweep_after", _oldest(sf.col("whole_at"), last))
        .withColumn("was_unmanaged", _unlisted(listed))
        .withColumn("was_managed", _listed(listed))
        .withColumn("managed_later", _within(listed, last + 1, last + _LATER_MICROSECONDS))
    )


def _newest(moments: Column, until: Column) -> Column:
    near = sf.filter(moments, lambda each: each.between(until - _NEAR_MICROSECONDS, until))
    return sf.array_max(near)


def _oldest(moments: Column, since: Column) -> Column:
    near = sf.filter(moments, lambda each: each.between(since, since + _NEAR_MICROSECONDS))
    return sf.array_min(near)


def _unlisted(listed: Column) -> Column:
    before, after = sf.col("sweep_before"), sf.col("sweep_after")
    known = before.isNotNull() & after.isNotNull()
    return known & ~sf.coalesce(_within(listed, before, after), sf.lit(False))


def _listed(listed: Column) -> Column:
    both = sf.array_contains(listed, sf.col("sweep_before")) & sf.array_contains(
        listed, sf.col("sweep_after")
    )
    return sf.coalesce(both, sf.lit(False))


def _within(moments: Column, since: Column, until: Column) -> Column:
    return sf.exists(moments, lambda each: each.between(since, until))
