"""The incidents of the local account: how many there are, and what counts as right."""

from __future__ import annotations

from mendq.catalogue import CATALOGUE
from tests.prove.incidents import INCIDENTS, is_right, list_lines

FAULTY = "each message fails, maxReceiveCount 3"
HEALTHY = "healthy: steady"


def test_eight_of_forty_incidents_are_healthy_and_the_others_name_symptoms_that_exist() -> None:
    assert len(INCIDENTS) == 40
    assert sum(not incident.right_names for incident in INCIDENTS.values()) == 8
    names = {name for incident in INCIDENTS.values() for name in incident.right_names}
    assert names <= {symptom.name for symptom in CATALOGUE}


def test_incident_is_right_only_if_the_right_name_comes_first() -> None:
    assert is_right(FAULTY, {FAULTY: ["consumer_failing", "dlq_missing"]})
    assert not is_right(FAULTY, {FAULTY: ["dlq_missing", "consumer_failing"]})
    assert not is_right(FAULTY, {FAULTY: []})


def test_healthy_incident_is_right_only_if_nothing_is_found() -> None:
    assert is_right(HEALTHY, {HEALTHY: []})
    assert not is_right(HEALTHY, {HEALTHY: ["consumer_failing"]})


def test_table_names_each_incident_and_counts_those_that_are_right() -> None:
    lines = list(list_lines({name: [] for name in INCIDENTS}))
    assert len(lines) == 40 + 4
    assert lines[-1].startswith("right: 8 of 40")
