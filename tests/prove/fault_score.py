"""How many hidden faults a scan names, and how often it names healthy queues.

Rules of the score:

1. A queue's findings are those on the queue and those on its DLQ, which speak about their source.
   They are taken in the order in which a scan prints them: the worst first. Findings that wait for
   another one do not count.

2. The fleet is scanned four times, 20 minutes apart. Recall is counted in the last scan, so that it
   is the recall of one scan. A healthy queue counts as named if any of the four scans names it.

3. A name counts as right if it is one of the scene's `ill`. A name in `also` is true, but it is not
   the right one. On healthy queues, any finding that is not in `also` is false.

4. A symptom that does not exist yet is not found. That is a miss like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mendq.cases.finding import Finding
from mendq.catalogue import CATALOGUE
from mendq.scan.severity import sort_worst_first
from tests.prove.exact_intervals import describe_share
from tests.prove.hidden_faults import DEBATABLE, FAULTS, TWINS
from tests.prove.measured_account import MEASURED, scan_worlds
from tests.prove.simulated_queues import MINUTE, SimulatedWorld, chance

LOOKS = 4
SECONDS_BETWEEN_LOOKS = 20 * MINUTE
RIGHT_NAMES = frozenset(name for fault in FAULTS.values() for name in fault.ill)
# Configuration alone shows the other symptoms, and these queues are configured well.
JUDGED = frozenset(MEASURED) | RIGHT_NAMES
DETECTED_NAMES = frozenset(symptom.name for symptom in CATALOGUE if symptom.detection)


@dataclass(frozen=True)
class ScannedQueue:
    """One scene with one seed, and what each of the four scans said of it.

    Attributes:
        scene_name: The name of the scene in FAULTS or TWINS.
        right_names: The symptoms of which one should come first; none for a healthy queue.
        other_true_names: Symptoms that are true as well.
        names_by_look: The symptoms that each scan found, the worst first. The last scan is the last
            item.
    """

    scene_name: str
    right_names: tuple[str, ...]
    other_true_names: tuple[str, ...]
    names_by_look: tuple[tuple[str, ...], ...]

    @property
    def is_found(self) -> bool:
        return bool(self.names_by_look[-1])

    @property
    def is_right_first(self) -> bool:
        return self.is_found and self.names_by_look[-1][0] in self.right_names

    @property
    def is_found_in_any_look(self) -> bool:
        return any(self.names_by_look)

    @property
    def is_found_in_all_looks(self) -> bool:
        return all(self.names_by_look)

    @property
    def has_same_first_name(self) -> bool:
        """True if all scans found the queue, and the same name came first."""
        return self.is_found_in_all_looks and len({names[0] for names in self.names_by_look}) == 1

    @property
    def false_names(self) -> frozenset[str]:
        """The symptoms that any of the scans found and that are not true."""
        names = {name for names in self.names_by_look for name in names}
        return frozenset(names.difference(self.right_names, self.other_true_names))


@dataclass(frozen=True)
class FaultScore:
    """The score of some scans of all scenes."""

    queues: Sequence[ScannedQueue]

    @property
    def faulty(self) -> list[ScannedQueue]:
        return [queue for queue in self.queues if queue.right_names]

    @property
    def healthy(self) -> list[ScannedQueue]:
        """The healthy queues, except the debatable ones."""
        return [
            queue
            for queue in self.queues
            if not queue.right_names and queue.scene_name not in DEBATABLE
        ]

    @property
    def debatable(self) -> list[ScannedQueue]:
        return [queue for queue in self.queues if queue.scene_name in DEBATABLE]

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Each measure with its hits and the number of queues."""
        found = [queue for queue in self.faulty if queue.is_found_in_any_look]
        return {
            "faulty: the right name comes first": count_share(
                self.faulty, lambda queue: queue.is_right_first
            ),
            "faulty: any finding": count_share(self.faulty, lambda queue: queue.is_found),
            "healthy: a false finding": count_share(
                self.healthy, lambda queue: bool(queue.false_names)
            ),
            "debatable: a finding": count_share(
                self.debatable, lambda queue: bool(queue.false_names)
            ),
            "faulty, found in any of four scans: found in all four": count_share(
                found, lambda queue: queue.is_found_in_all_looks
            ),
            "faulty, found in any of four scans: the same name first in all four": count_share(
                found, lambda queue: queue.has_same_first_name
            ),
        }

    @property
    def figures(self) -> dict[str, str]:
        """Each measure with its share and the exact 95 % interval."""
        return {
            measure: f"{hits} of {queues}, {describe_share(hits, queues)}" if queues else "0 of 0"
            for measure, (hits, queues) in self.counts.items()
        }

    def text(self) -> str:
        """The tables for the page: the measures, each fault, each false finding."""
        lines = ["| measure | queues | share |", "|---|---:|---:|"]
        for measure, (hits, queues) in self.counts.items():
            share = describe_share(hits, queues) if queues else "-"
            lines.append(f"| {measure} | {hits} of {queues} | {share} |")
        if missing_names := sorted(RIGHT_NAMES - DETECTED_NAMES):
            named = ", ".join(f"`{name}`" for name in missing_names)
            lines += ["", f"No scan detects these yet, so their faults are missed: {named}."]
        lines += ["", "| fault | right name | it comes first | what else comes first |"]
        lines += ["|---|---|---:|---|"]
        lines += [self._describe_fault(scene_name) for scene_name in FAULTS]
        lines.append("")
        false_findings = [
            line for scene_name in TWINS for line in self._describe_false_names(scene_name)
        ]
        return "\n".join([*lines, *(false_findings or ["- no healthy queue is named"]), ""])

    def _describe_fault(self, scene_name: str) -> str:
        queues = [queue for queue in self.queues if queue.scene_name == scene_name]
        right_count = sum(queue.is_right_first for queue in queues)
        others = Counter(
            f"`{queue.names_by_look[-1][0]}`" if queue.is_found else "nothing"
            for queue in queues
            if not queue.is_right_first
        )
        described_others = ", ".join(f"{name} ({times})" for name, times in sorted(others.items()))
        right_names = " or ".join(f"`{name}`" for name in FAULTS[scene_name].ill)
        right_share = f"{right_count} of {len(queues)}"
        return f"| {scene_name} | {right_names} | {right_share} | {described_others or '-'} |"

    def _describe_false_names(self, scene_name: str) -> list[str]:
        queues = [queue for queue in self.queues if queue.scene_name == scene_name]
        times_by_name = Counter(name for queue in queues for name in queue.false_names)
        kind = "debatable" if scene_name in DEBATABLE else "healthy"
        return [
            f"- {kind}, *{scene_name}*: `{name}` in {times} of {len(queues)}"
            for name, times in sorted(times_by_name.items())
        ]


def count_share(
    queues: Collection[ScannedQueue], is_hit: Callable[[ScannedQueue], bool]
) -> tuple[int, int]:
    """Return how many of the queues are hits, and how many there are."""
    return sum(is_hit(queue) for queue in queues), len(queues)


def score_scans(
    seeds: Sequence[int], progress: Callable[[float], None] = lambda _: None
) -> FaultScore:
    """Scan all scenes four times for each seed."""
    queues = list[ScannedQueue]()
    for number, seed in enumerate(seeds, 1):
        queues += _scan_fleet(seed)
        progress(number / len(seeds))
    return FaultScore(queues)


def _scan_fleet(seed: int) -> Iterable[ScannedQueue]:
    """Simulate all scenes with one seed, and scan them four times at a chance minute."""
    scenes = {**FAULTS, **TWINS}
    worlds = {name: scene.play(name, seed) for name, scene in scenes.items()}
    last_look = chance(f"looks {seed}").uniform(MINUTE, SECONDS_BETWEEN_LOOKS)
    names_by_look = list[Mapping[str, tuple[str, ...]]]()
    for look in reversed(range(LOOKS)):
        seconds_ago = last_look + look * SECONDS_BETWEEN_LOOKS
        result = scan_worlds(tuple(worlds.values()), seconds_ago, JUDGED)
        names_by_look.append(list_names_by_scene(result.findings, worlds))
    return [
        ScannedQueue(name, scene.ill, scene.also, tuple(names[name] for names in names_by_look))
        for name, scene in scenes.items()
    ]


def list_names_by_scene(
    findings: Iterable[Finding], worlds: Mapping[str, SimulatedWorld]
) -> dict[str, tuple[str, ...]]:
    """Return the symptoms found on each scene's queue and its DLQ, the worst first."""
    scene_by_arn = {
        queue.arn: scene_name for scene_name, world in worlds.items() for queue in world.queues
    }
    names_by_scene: dict[str, tuple[str, ...]] = dict.fromkeys(worlds, ())
    for finding in sort_worst_first(findings):
        names_by_scene[scene_by_arn[finding.queue_arn]] += (finding.symptom,)
    return names_by_scene
