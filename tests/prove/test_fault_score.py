"""The score of a scan on hidden faults."""

from __future__ import annotations

from mendq.cases.finding import Finding
from tests.prove.fault_score import FaultScore, ScannedQueue, list_names_by_scene
from tests.prove.hidden_faults import DEBATABLE, FAULTS, TWINS
from tests.prove.look_alikes import LookAlike
from tests.prove.simulated_queues import SimulatedQueue, SimulatedWorld

FAULT = LookAlike(ill=("consumer_failing",), also=("dlq_messages_arriving",))
HEALTHY = LookAlike(also=("empty_receives",))
RIGHT = "faulty: the right name comes first"
FOUND = "faulty: any finding"
FALSE = "healthy: a false finding"
IN_ALL = "faulty, found in any of four scans: found in all four"
SAME_NAME = "faulty, found in any of four scans: the same name first in all four"


def scanned(scene: LookAlike, *names_by_look: tuple[str, ...], name: str = "a") -> ScannedQueue:
    return ScannedQueue(name, scene.ill, scene.also, names_by_look)


def test_score_counts_the_right_name_only_if_it_comes_first() -> None:
    right = scanned(FAULT, ("consumer_failing", "dlq_messages_arriving"))
    late = scanned(FAULT, ("dlq_messages_arriving", "consumer_failing"))
    counts = FaultScore([right, late]).counts
    assert counts[RIGHT] == (1, 2)
    assert counts[FOUND] == (2, 2)


def test_score_counts_recall_in_the_last_scan() -> None:
    lost = scanned(FAULT, ("consumer_failing",), ())
    counts = FaultScore([lost]).counts
    assert counts[RIGHT] == (0, 1)
    assert counts[FOUND] == (0, 1)


def test_score_counts_a_healthy_queue_that_only_an_earlier_scan_names() -> None:
    named_once = scanned(HEALTHY, ("consumer_failing",), ())
    assert FaultScore([named_once]).counts[FALSE] == (1, 1)


def test_score_forgives_a_true_name_on_a_healthy_queue() -> None:
    assert FaultScore([scanned(HEALTHY, ("empty_receives",))]).counts[FALSE] == (0, 1)


def test_score_keeps_debatable_queues_out_of_the_healthy_ones() -> None:
    (debatable_name, *_) = sorted(DEBATABLE)
    queue = scanned(LookAlike(), ("dlq_missing",), name=debatable_name)
    counts = FaultScore([queue]).counts
    assert counts[FALSE] == (0, 0)
    assert counts["debatable: a finding"] == (1, 1)


def test_score_compares_scans_only_for_queues_that_any_scan_found() -> None:
    steady = scanned(FAULT, ("consumer_failing",), ("consumer_failing",))
    renamed = scanned(FAULT, ("dlq_messages_arriving",), ("consumer_failing",))
    lost = scanned(FAULT, ("consumer_failing",), ())
    missed = scanned(FAULT, (), ())
    counts = FaultScore([steady, renamed, lost, missed]).counts
    assert counts[IN_ALL] == (2, 3)
    assert counts[SAME_NAME] == (1, 3)


def test_finding_on_a_dlq_counts_for_its_source_and_the_worst_comes_first() -> None:
    world = SimulatedWorld("order", 1)
    dlq = SimulatedQueue(world, "orders-dlq")
    queue = SimulatedQueue(world, "orders", dlq=dlq, receives=3)
    findings = [
        Finding(queue.arn, "empty_receives", ""),
        Finding(dlq.arn, "dlq_messages_arriving", "", seconds_left=60),
    ]
    assert list_names_by_scene(findings, {"scene": world, "quiet": SimulatedWorld("q", 1)}) == {
        "scene": ("dlq_messages_arriving", "empty_receives"),
        "quiet": (),
    }


def test_text_of_the_score_names_every_fault_and_each_false_finding() -> None:
    missed = [scanned(scene, (), name=name) for name, scene in FAULTS.items()]
    twin_name = next(name for name in TWINS if name not in DEBATABLE)
    false_alarm = scanned(TWINS[twin_name], ("consumer_stopped",), name=twin_name)
    text = FaultScore([*missed, false_alarm]).text()
    assert [name for name in FAULTS if f"| {name} |" not in text] == []
    assert f"- healthy, *{twin_name}*: `consumer_stopped` in 1 of 1" in text


def test_hidden_faults_have_a_right_name_and_healthy_twins_have_none() -> None:
    assert FAULTS.keys().isdisjoint(TWINS)
    assert TWINS.keys() >= DEBATABLE
    assert all(scene.ill for scene in FAULTS.values())
    assert not any(scene.ill for scene in TWINS.values())
