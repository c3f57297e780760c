"""The incidents of the local account: how many there are, and what counts as right."""

from __future__ import annotations

from mendq.catalogue import CATALOGUE
from tests.prove.incidents import INCIDENTS, has_all_incidents, is_right, list_lines

FAULTY = "each message fails, maxReceiveCount 3"
HEALTHY = "healthy: steady"


def test_forty_incidents_are_faulty_eight_are_healthy_and_their_symptoms_exist() -> None:
    assert has_all_incidents()
    assert len(INCIDENTS) == 48
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
    assert len(lines) == 48 + 4
    assert lines[-1].startswith("The right name comes first for 0 of 40 faulty queues: 0.00")
    assert "Of 8 healthy queues, 0 are named" in lines[-1]


def test_table_counts_the_faulty_and_the_healthy_incidents_apart() -> None:
    found: dict[str, list[str]] = {name: [] for name in INCIDENTS}
    found[FAULTY] = ["consumer_failing"]
    found[HEALTHY] = ["consumer_failing"]
    last_line = list(list_lines(found))[-1]
    assert "for 1 of 40 faulty queues" in last_line
    assert "Of 8 healthy queues, 1 are named" in last_line
