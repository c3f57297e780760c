"""docs/performance.md with its picture, and EMR's part of docs/cost.md, from what was measured.

`make bench KEEP=1` writes them; the figures are those of one machine on one day, so that nothing
checks them for staleness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import cost_page, kept
from bench.goals import GOALS, Goal
from bench.kept import Part
from bench.picture import Bar, picture
from bench.rounds import ROOT, Measure, middle, paired_ratio, wall
from bench.taking import lasting, shown

DOCS = ROOT / "docs"
TEXT = Path(__file__).parent / "texts" / "performance.md"
NOTES = {
    "ingest": "The limit inflates into a buffer of the right size and parses the two fields that "
    "tell; it makes neither rows nor labels. The readers do: the night goes on with them. "
    "The standard library reads where native wheels are missing: the same rows, from "
    "files however hostile; `spark.read.json` is what one would write first, and is right on files "
    "like these.",
    "growth": "Ratios are against the limit at the smaller size.",
    "peers": "The same files and the same question for all: how many calls of SQS failed? All must "
    "give the known answer. DuckDB's `read_json` is told the two fields, and Polars' too, file by "
    "file in two threads, after isal has inflated them for it. The native reader answers more than "
    "that: whose calls they were, and what went wrong.",
    "sessions": "Bursts of 20 calls on each of 2,000 queues, computed where they are needed.",
    "nights": "With Java's and Spark's start, listing, joining and writing.",
}


def write(parts: Mapping[str, Part], docs: Path = DOCS) -> list[Path]:
    """Raise ValueError where the night was not measured yet."""
    if "night" not in parts:
        raise ValueError("the night was never measured here: run make bench ONLY=night KEEP=1")
    night = parts["night"]
    cost = docs / "cost.md"
    texts = {
        docs / "performance.md": performance(parts),
        docs / "performance.svg": _picture(night),
        cost: cost_page.with_emr(cost.read_text() if cost.exists() else "", night),
    }
    for path, text in texts.items():
        path.write_text(text)
    return list(texts)


def performance(parts: Mapping[str, Part]) -> str:
    goals = [_goal(each, parts) for each in GOALS]
    missed = [text for text, _, _, verdict in goals if verdict == "missed"]
    sections = {
        name: "\n\n".join(_measure(each) for each in parts[name].measures.values())
        if name in parts
        else ""
        for name in ("night", "handler")
    }
    taken = {f"{name}_taken": _taken(parts.get(name)) for name in sections}
    return TEXT.read_text().format(
        goals=markdown_table(("goal", "asked", "measured", ""), goals),
        missed=f"Missed: {'; '.join(missed)}."
        if missed
        else "None of what was measured is missed.",
        **taken,
        **sections,
    )


def _goal(goal: Goal, parts: Mapping[str, Part]) -> tuple[str, str, str, str]:
    """(goal, asked, measured, verdict)."""
    measures = {name: each for part in parts.values() for name, each in part.measures.items()}
    found = goal.found(measures)
    if found is None:
        return (goal.text, goal.bound, "not measured", "")
    return (goal.text, goal.bound, goal.worded(found), goal.verdict(found))


def _taken(part: Part | None) -> str:
    if part is None:
        return "Not measured."
    return f"Taken {part.taken_at} by `{part.command}` on {part.machine}."


def _measure(measure: Measure) -> str:
    headings, rows = shown(measure)
    note = f"{NOTES[measure.name]}\n\n" if measure.name in NOTES else ""
    return f"### {measure.title}\n\n{note}{markdown_table(headings, rows)}"


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = tuple("---" if n == 0 else "---:" for n in range(len(headings)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))


def _picture(night: Part) -> str:
    """The ingest, and the peers where they were asked."""
    ingest, peers = night.measures["ingest"], night.measures.get("peers")
    bars = [_bar(ingest, name, is_ours=name.endswith("reader")) for name in ingest.costs]
    if peers:
        bars += [_bar(peers, name) for name in peers.costs if name != peers.floor]
    return picture(bars, ingest.title)


def _bar(measure: Measure, name: str, *, is_ours: bool = False) -> Bar:
    costs, floor = measure.costs[name], measure.costs[measure.floor]
    time, ratio = middle(costs, wall), paired_ratio(costs, floor, wall)
    against = measure.floor.partition(" (")[0]
    ending = "" if name == measure.floor else f", {ratio:.1f} x {against}"
    return Bar(name, time / 1000, f"{lasting(time)}{ending}", is_ours)


if __name__ == "__main__":
    write(kept.read())
