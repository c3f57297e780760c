"""Recognize incidents that Mendq or its operators caused, which are not counted for people.

Drills, the probe and people who look at queues with `mendq` make calls fail. The table `incidents`
has such incidents. But all counts for people leave them out or count them separately: the nightly
run's output and its `nightly.json`, the weekly summary and the report, and an organization's sums.

This module has the only definition, for rows in Python and for columns in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as sf

from mendq.model.names import PROBE_QUEUE
from mendq.model.tags import DRILL_QUEUE_PREFIX

# The value of the column `why` if operators made all calls of the incident with the mendq command.
OPERATOR_CALLS_REASON = "own_look"


def is_own_queue(queue_arn: str) -> bool:
    """Return True for a queue that Mendq made for a drill or for the probe."""
    queue_name = queue_arn.rpartition(":")[2]
    return queue_name.startswith(DRILL_QUEUE_PREFIX) or queue_name == PROBE_QUEUE


def is_own_incident(row: Mapping[str, Any]) -> bool:
    """Return True if Mendq or its operators caused the incident."""
    return is_own_queue(row["queue_arn"] or "") or row["why"] == OPERATOR_CALLS_REASON


def make_own_incident_column() -> Column:
    """Return a column that is true if `is_own_incident` is True for the row. It is never null."""
    queue_name = sf.substring_index(sf.col("queue_arn"), ":", -1)
    is_of_own_queue = queue_name.startswith(DRILL_QUEUE_PREFIX) | (queue_name == PROBE_QUEUE)
    is_of_operators = sf.col("why") == OPERATOR_CALLS_REASON
    false_literal = sf.lit(False)
    return sf.coalesce(is_of_own_queue, false_literal) | sf.coalesce(is_of_operators, false_literal)


def remove_own_incidents(
    incidents_by_day: Mapping[date, Sequence[Mapping[str, Any]]],
) -> Mapping[date, Sequence[Mapping[str, Any]]]:
    """Return the incidents without those that Mendq or its operators caused.

    The incidents that are left out come from drills, the probe, or operators' calls with the mendq
    command.
    """
    kept_incidents_by_day: dict[date, list[Mapping[str, Any]]] = {}
    for day, rows in incidents_by_day.items():
        kept_incidents_by_day[day] = [row for row in rows if not is_own_incident(row)]
    return kept_incidents_by_day


class IncidentNumbers(NamedTuple):
    """The number of incidents that count, and the number that Mendq or its operators caused."""

    counted: int
    own: int


def count_incidents(rows: Iterable[Mapping[str, Any]]) -> IncidentNumbers:
    """Count the rows of the table `incidents`."""
    are_own = [is_own_incident(row) for row in rows]
    return IncidentNumbers(counted=are_own.count(False), own=are_own.count(True))
