"""Find the tags that an entry of the catalogue reads, by asking it about its own examples."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import replace

from mendq.catalogue.symptom import CallNearMiss, Symptom
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.tags import TAGS_OF_EVERY_QUEUE


class RecordingTags(Mapping[str, str]):
    """Tags that record each key that is looked up. Going through all of them records nothing."""

    def __init__(self, tags: Mapping[str, str], keys_read: set[str]) -> None:
        self._tags = dict(tags)
        self._keys_read = keys_read

    def __getitem__(self, key: str) -> str:
        self._keys_read.add(key)
        return self._tags[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tags)

    def __len__(self) -> int:
        return len(self._tags)

    def items(self) -> ItemsView[str, str]:
        return self._tags.items()


def find_tags_read_by(entry: Symptom) -> set[str]:
    """Return the keys of the tags that the entry looks up in any of its examples."""
    keys_read: set[str] = set()
    for example in entry.examples():
        if isinstance(example, CallNearMiss) or example.facts is None:
            continue
        facts = _recording(example.facts, keys_read)
        if entry.detection is not None:
            entry.detection.is_possible(facts)
            fault = entry.detection.detect(facts)
            facts = replace(facts, found=fault.because) if fault else facts
        if entry.plan is not None:
            entry.plan(facts, Limits())
        entry.extra_sections(facts)
    return keys_read


def _recording(facts: Facts, keys_read: set[str]) -> Facts:
    """Return the same facts, whose tags and whose sources' tags record what is read."""
    sources = tuple(
        replace(source, tags=RecordingTags(source.tags, keys_read))
        for source in facts.redrive_sources
    )
    return replace(facts, tags=RecordingTags(facts.tags, keys_read), redrive_sources=sources)


def explain_undeclared_tags(entry: Symptom) -> str:
    """Return a sentence about tags that the entry reads and does not declare; empty if none."""
    declared = {tag.key for tag in (*entry.tags, *TAGS_OF_EVERY_QUEUE)}
    undeclared = sorted(find_tags_read_by(entry) - declared)
    if not undeclared:
        return ""
    return (
        f"{entry.name} reads the tag {', '.join(undeclared)} and does not declare it, so "
        "tag_not_understood reports it to everybody who sets it. Add to the entry: "
        f'tags=(QueueTag(key="{undeclared[0]}", values=TagValues.SECONDS, meaning="..."),), '
        "with QueueTag and TagValues from mendq/model/tags.py; if that file has the tag already, "
        "list its constant."
    )


def explain_unread_tags(entry: Symptom) -> str:
    """Return a sentence about tags that the entry declares and no example reads; empty if none."""
    unread = sorted({tag.key for tag in entry.tags} - find_tags_read_by(entry))
    if not unread:
        return ""
    return (
        f"{entry.name} declares the tag {', '.join(unread)}, and none of its examples reads it: "
        "add an example of a queue with this tag, or remove the tag from `tags`."
    )
