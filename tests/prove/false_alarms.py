"""Findings of a scan for faulty simulated queues and for healthy look-alikes.

`python -m tests.prove.false_alarms` writes what it heard into docs/precision.md: what the scan says
of the scenes of `look_alikes`, by symptom, and its score on those of `hidden_faults`.

`make evidence NAMES=false_alarms SEED=n` prints both for fresh seeds, drawn from n, and writes
nothing. `python -m tests.prove.false_alarms --fresh n` plays only these fresh seeds and stores
their score (`fresh_seeds.py`), which the page shows with its date.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.prove.exact_intervals import describe_share, find_exact_interval
from tests.prove.fault_score import FaultScore, ScannedQueue, score_scans
from tests.prove.fresh_seeds import FreshRun, describe_runs, read_runs, store_run
from tests.prove.hidden_faults import DEBATABLE, FAULTS, TWINS
from tests.prove.look_alikes import HEALTHY, ILL
from tests.prove.measured_account import MEASURED, scan_worlds
from tests.prove.proof import Proof, Proving
from tests.prove.simulated_queues import HOUR, chance

PAGE = Path(__file__).resolve().parents[2] / "docs" / "precision.md"
MARKED = re.compile(r"(<!-- measured: ([^>]+) -->\n).*?(<!-- end measured -->)", re.DOTALL)
BY_SYMPTOM_BLOCK = "python -m tests.prove.false_alarms"
SCORE_BLOCK = "python -m tests.prove.false_alarms, hidden faults"
FRESH_BLOCK = "python -m tests.prove.false_alarms --fresh SEED"
SEEDS = range(5)
# The score of these is on the page. `make evidence` adds fresh ones.
SCORE_SEEDS = range(3)
FRESH_SEEDS = 5
FRESH_LOOK_ALIKE_SEEDS = 2
SCENES = {**HEALTHY, **ILL}
# What the numbers of AWS do not tell apart; docs/precision.md says so of each.
INDISTINCT = frozenset(
    {
        ("stale readings expire by intent", "messages_expire"),
        ("poison, and a tag above the timeout", "visibility_timeout_too_short"),
    }
)


@dataclass(frozen=True)
class ScanTally:
    """Findings by scene and seed over three scans, and the number of measured queues."""

    scanned: Mapping[tuple[str, int], Collection[str]]
    measured: int

    def strays(self, symptom: str, scenes: Collection[str]) -> Counter[str]:
        """Count the false findings of a symptom by scene."""
        return Counter(
            name
            for (name, _), said in self.scanned.items()
            if name in scenes
            and symptom in said
            and symptom not in (*SCENES[name].ill, *SCENES[name].also)
        )

    def false_names(self, scene_name: str, seed: int) -> frozenset[str]:
        """The false findings on a healthy scene, without what AWS's numbers do not tell apart."""
        if scene_name not in HEALTHY:
            return frozenset()
        names = frozenset(self.scanned[scene_name, seed]).difference(
            SCENES[scene_name].ill, SCENES[scene_name].also
        )
        return frozenset(name for name in names if (scene_name, name) not in INDISTINCT)

    def count_misses(self, symptom: str) -> Counter[str]:
        return Counter(
            name
            for (name, _), said in self.scanned.items()
            if symptom in SCENES[name].ill and symptom not in said
        )

    def row(self, symptom: str) -> str:
        """A line of the table on the page."""
        ill = sum(symptom in SCENES[name].ill for name, _ in self.scanned)
        found = ill - self.count_misses(symptom).total()
        alike = sum(
            name in HEALTHY and symptom not in SCENES[name].also for name, _ in self.scanned
        )
        healthy, others = (self.strays(symptom, scenes).total() for scenes in (HEALTHY, ILL))
        heard = found + healthy + others
        precision = describe_share(found, heard) if ill and heard else "-"
        recall = describe_share(found, ill) if ill else "-"
        shown = f"{found} of {ill} | {healthy} of {alike} | {others}"
        return f"| `{symptom}` | {shown} | {precision} | {recall} |"

    def text(self) -> str:
        """The table, and below it every scene that was not told as it is."""
        titles = ("symptom", "ill: found", "look-alikes: told of", "other ills: told of")
        head = " | ".join((*titles, "precision", "recall"))
        lines = [f"| {head} |", f"|---|{'---:|' * 5}", *map(self.row, MEASURED), ""]
        for symptom in MEASURED:
            for name, times in sorted(self.strays(symptom, SCENES).items()):
                lines.append(f"- *{name}*: told of `{symptom}` in {times} of {self.seeds}")
            for name, times in sorted(self.count_misses(symptom).items()):
                lines.append(f"- *{name}*: `{symptom}` missed in {times} of {self.seeds}")
        return "\n".join([*lines, ""])

    @property
    def seeds(self) -> int:
        return len({seed for _, seed in self.scanned})


def tally_scans(
    seeds: Sequence[int], progress: Callable[[float], None] = lambda _: None
) -> ScanTally:
    """Three rounds over every scene for each seed, within two hours."""
    said = dict[tuple[str, int], set[str]]()
    measured = 0
    for n, seed in enumerate(seeds):
        worlds = {name: scene.play(name, seed) for name, scene in SCENES.items()}
        scene_of = {
            queue.arn: (name, seed) for name, world in worlds.items() for queue in world.queues
        }
        said |= {(name, seed): set() for name in SCENES}
        random = chance(f"{seed}")
        for seconds_ago in (random.uniform(HOUR, 2 * HOUR), random.uniform(60, HOUR), 0):
            done = scan_worlds(tuple(worlds.values()), seconds_ago)
            measured += done.measured
            for finding in done.findings:
                said[scene_of[finding.queue_arn]].add(finding.symptom)
        progress((n + 1) / len(seeds))
    return ScanTally(said, measured)


def false_alarms(proving: Proving) -> ScanTally:
    heard = tally_scans(SEEDS, proving.progress)
    for symptom in MEASURED:
        figures = [cell.strip() for cell in heard.row(symptom).split("|")[2:-1]]
        proving.figure(
            symptom, "found {}, told of {}, {}; precision {}, recall {}".format(*figures)
        )
    proving.note({"seeds": heard.seeds, "look_alikes": len(HEALTHY), "ills": len(ILL)})
    proving.figure("queues_measured", heard.measured)
    strays = {(name, symptom) for symptom in MEASURED for name in heard.strays(symptom, SCENES)}
    known = {symptom for name in ILL for symptom in ILL[name].ill} & set(MEASURED)
    often = {
        scene_name
        for scene_name in known
        if heard.row(scene_name).startswith(f"| `{scene_name}` | 0 of")
    }
    proving.holding(
        {
            f"nothing healthy is told of, but what is indistinct: {strays - INDISTINCT}": not (
                strays - INDISTINCT
            ),
            f"each ill that a scene shows is found at times: {often}": not often,
            "at least twenty look-alikes": len(HEALTHY) >= 20,
            "most are told apart by measuring": heard.measured > len(HEALTHY) * heard.seeds,
        }
    )
    return heard


@contextmanager
def score_meanwhile() -> Iterator[Future[FaultScore]]:
    """Score the scan with the page's fixed seeds, in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool.submit(score_scans, SCORE_SEEDS)


def note_score(proving: Proving, score: FaultScore) -> None:
    proving.note({f"hidden_{measure}": figure for measure, figure in score.figures.items()})
    proving.holding(
        {
            "at least twenty faults are hidden": len(FAULTS) >= 20,
            "at least twenty healthy queues look like them": len(TWINS) - len(DEBATABLE) >= 20,
        }
    )


def score_fresh_seeds(seed: int) -> FaultScore:
    """Score the scan with seeds drawn from `seed`."""
    return score_scans(draw_seeds("hidden faults", seed, FRESH_SEEDS))


def tally_fresh_seeds(seed: int) -> ScanTally:
    """Scan the look-alikes with seeds drawn from `seed`."""
    return tally_scans(draw_seeds("look-alikes", seed, FRESH_LOOK_ALIKE_SEEDS))


def compare_with_fresh_seeds(proving: Proving, page_score: FaultScore) -> None:
    """Score the scan with fresh seeds, print the score, and compare it with the page's score."""
    fresh_score = score_fresh_seeds(proving.seed)
    print(fresh_score.text(), flush=True)  # noqa: T201
    proving.note({f"fresh_{measure}": figure for measure, figure in fresh_score.figures.items()})
    for measure, (hits, queues) in fresh_score.counts.items():
        page_hits, page_queues = page_score.counts[measure]
        low, high = find_exact_interval(hits, queues)
        page_low, page_high = find_exact_interval(page_hits, page_queues)
        proving.holds(
            f"fresh seeds do not contradict the page: {measure}",
            whether=low <= page_high and page_low <= high,
        )


def draw_seeds(purpose: str, seed: int, count: int) -> list[int]:
    """Return seeds that nobody has used, the same for the same purpose and number."""
    random = chance(f"{purpose} {seed}")
    return [random.randrange(1_000, 1_000_000_000) for _ in range(count)]


def hear_fresh_seeds(proving: Proving) -> None:
    """Scan the look-alikes with fresh seeds, and print what was told of them."""
    heard = tally_fresh_seeds(proving.seed)
    print(heard.text(), flush=True)  # noqa: T201
    strays = {(name, symptom) for symptom in MEASURED for name in heard.strays(symptom, HEALTHY)}
    proving.holds(
        f"fresh seeds: nothing healthy is told of, but what is indistinct: {strays - INDISTINCT}",
        whether=not strays - INDISTINCT,
    )


def page_says(heard: ScanTally, score: FaultScore, text: str) -> str:
    """The page with what was heard, and the score."""
    return fill_blocks({BY_SYMPTOM_BLOCK: heard.text(), SCORE_BLOCK: score.text()}, text)


def fill_blocks(text_by_block: Mapping[str, str], text: str) -> str:
    """Return the page with these measured blocks. The stored runs fill the one of fresh seeds."""
    all_texts = {FRESH_BLOCK: describe_runs(read_runs()), **text_by_block}
    return MARKED.sub(
        lambda block: (
            block[1] + all_texts[block[2]] + block[3] if block[2] in all_texts else block[0]
        ),
        text,
    )


def prove_page(proving: Proving) -> FaultScore:
    text = PAGE.read_text()
    with score_meanwhile() as score_in_progress:
        heard = false_alarms(proving)
        score = score_in_progress.result()
    note_score(proving, score)
    proving.holds(
        "docs/precision.md says what was heard", whether=page_says(heard, score, text) == text
    )
    return score


def prove_precision_quickly(proving: Proving) -> None:
    prove_page(proving)


def prove_precision(proving: Proving) -> None:
    compare_with_fresh_seeds(proving, prove_page(proving))
    hear_fresh_seeds(proving)


FALSE_ALARMS = (
    Proof(
        "false_alarms",
        "A scan finds simulated queues that are ill, and tells of no healthy one that looks alike.",
        prove_precision,
        prove_precision_quickly,
    ),
)


def write_page() -> FaultScore:
    with score_meanwhile() as score_in_progress:
        heard = tally_scans(SEEDS)
        score = score_in_progress.result()
    PAGE.write_text(page_says(heard, score, PAGE.read_text()))
    return score


def run_fresh_seeds(seed: int) -> FreshRun:
    """Play the fresh seeds that `make evidence` draws from `seed`, and return their score."""
    tally = tally_fresh_seeds(seed)
    false_names_by_look_alike = {
        scene_and_seed: names
        for scene_and_seed in tally.scanned
        if (names := tally.false_names(*scene_and_seed))
    }
    score = score_fresh_seeds(seed)
    wrong_names = [
        f"*{queue.scene_name}*: {_name_first_finding(queue)} comes first"
        for queue in score.faulty
        if not queue.is_right_first
    ]
    false_names = [
        f"healthy, *{queue.scene_name}*: `{name}`"
        for queue in score.healthy
        for name in sorted(queue.false_names)
    ]
    false_names += [
        f"look-alike, *{scene_name}*: `{name}`"
        for (scene_name, _), names in false_names_by_look_alike.items()
        for name in sorted(names)
    ]
    return FreshRun(
        f"{datetime.now(UTC):%Y-%m-%d}",
        seed,
        FRESH_SEEDS,
        {
            **score.counts,
            "look-alikes above: a false finding": (
                len(false_names_by_look_alike),
                len(HEALTHY) * tally.seeds,
            ),
        },
        (*wrong_names, *false_names),
    )


def _name_first_finding(queue: ScannedQueue) -> str:
    return f"`{queue.names_by_look[-1][0]}`" if queue.is_found else "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", type=int, metavar="SEED", help="store the score of fresh seeds")
    seed = parser.parse_args().fresh
    if seed is None:
        print(write_page().text())  # noqa: T201
        return
    run = run_fresh_seeds(seed)
    store_run(run)
    PAGE.write_text(fill_blocks({}, PAGE.read_text()))
    print(describe_runs([run]))  # noqa: T201


if __name__ == "__main__":
    main()
