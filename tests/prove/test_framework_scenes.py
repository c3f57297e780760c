"""The scan names the faults of frameworks' queues first, and no healthy queue."""

from __future__ import annotations

from tests.prove.framework_scenes import score_frameworks


def test_scan_names_the_faults_of_frameworks_first_and_no_healthy_queue() -> None:
    score = score_frameworks([4])
    wrong = {
        queue.scene_name: queue.names_by_look
        for queue in score.queues
        if queue.false_names or (queue.right_names and not queue.is_right_first)
    }
    assert wrong == {}
