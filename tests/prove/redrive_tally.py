"""Results of many redrives, and what must hold for them together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from mendq.model.limits import Bounds
from tests.prove.proof import Proving
from tests.prove.redriven_world import RedrivenWorld

MOST_MOVES = 2
# The shipped bounds stop at the first poison messages: with these they run through every stage.
LATE = Bounds(halt_returned=10_000, halt_share=1.0)
IN_PARTS = replace(LATE, mover_per_tick=10)


@dataclass
class Observation:
    """Statistics over many redrives."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, world: RedrivenWorld, announced: str) -> None:
        """Once it is over and its consumers have come to rest."""
        mix = world.mix
        counts = self.counts
        counts["runs"] += 1
        counts["runs_of_fifo_queues"] += bool(mix.groups)
        counts["messages"] += len(world.names)
        counts["moves"] += world.moves
        counts["lost"] += len(world.lost_names)
        counts["duplicates"] += world.duplicates
        counts["processed"] += len(world.consumers.processed)
        counts["processed_more_than_once"] += sum(
            times > 1 for times in world.consumers.processed.values()
        )
        counts["quarantined"] += len(world.quarantined_names)
        counts["left_in_dlqs"] += len(world.dead.bodies)
        counts["calls"] += len(world.calls)
        counts.update(world.happened)
        counts.update(world.sqs.happened)
        counts[f"ended_{world.ended or 'taken_back'}"] += 1
        if world.lost_names:
            self.wrong.append(f"{announced}: lost {sorted(world.lost_names)[:3]}")

    def claim(self, proving: Proving) -> None:
        moves_a_message = self.counts["moves"] / max(1, self.counts["messages"])
        proving.note({**self.counts, "moves_a_message": round(moves_a_message, 2)})
        for fault in self.wrong[:1]:
            proving.figure("wrong", fault)
        beside = self.counts["sent_beside_a_task"]
        proving.holding(
            {
                "at most two moves a message": moves_a_message <= MOST_MOVES,
                "no message is lost": self.counts["lost"] == 0,
                "nothing is sent back while somebody else's task runs": not beside,
                "each comes to an end, and its source to rest": not self.wrong,
            }
        )
