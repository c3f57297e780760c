"""What the heal Lambda costs: cold starts, warm mendings, storms of one queue."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.endpoint import endpoint
from bench.measures import Bench, cold_ways, storm_ways, warm_ways
from bench.rounds import Measure
from bench.taking import Take
from tests.prove.heal_lambda import heal_lambda

COLD_ROUNDS, WARM_ROUNDS, STORM_ROUNDS = 11, 21, 5


def measures(take: Take) -> Iterator[Measure]:
    with endpoint(), tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
        bench = Bench(Path(folder))
        cold = "Cold: a whole process, from start to end"
        yield take("cold", cold, cold_ways(bench), COLD_ROUNDS, floor=1)
        with heal_lambda(bench.account) as lambda_:
            warm = "Warm: one invocation, three events of one queue"
            yield take("warm", warm, warm_ways(bench, lambda_), WARM_ROUNDS)
            storm = "Storms: batches of at most 1,000 events, warm"
            yield take("storm", storm, storm_ways(bench, lambda_), STORM_ROUNDS)
