"""Ignores inside a template: a person says that a fault is meant so, and why.

In CloudFormation and SAM an ignore is in the `Metadata` of the queue. An entry of the list is the
name of a symptom, or a mapping with the reason:

    Metadata: {mendq: {ignore: [{symptom: dlq_missing, reason: every record is kept by hand}]}}

In a `serverless.yml` and in Terraform files, also those beside a Terraform plan, it is a comment in
the block of the queue or of the function, or directly above it:

    # mendq: ignore dlq_missing: every record is kept by hand

Rules:

- An ignore is about one symptom in one place. It never hides a finding about another queue.
- A comment without a reason ignores nothing, and is reported.
- An ignore that no finding needs is reported as stale, because it would hide the fault if it came
  back. If lint cannot check the symptom in this template, the ignore is left alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mendq.lint.folder import TemplateFolder, explain_unread_file
from mendq.lint.serverless import is_serverless_file
from mendq.lint.template import Template, TemplatePlace, TemplateResource, get_mapping, to_list
from mendq.lint.terraform import TerraformTemplate

MISSING_REASON = (
    "this comment is not used, because it gives no reason. Write `# mendq: ignore SYMPTOM: reason`"
)
WRONG_ENTRY = "an entry of `ignore` is the name of a symptom, or a mapping of symptom and reason"
_COMMENT_REGEX = re.compile(
    r"(?:^|\s)(?:#|//)\s*mendq:\s*ignore\b[ \t]*([a-z_]{0,64})[ \t]*(?::[ \t]*(.*))?$"
)
_COMMENT_LINE_REGEX = re.compile(r"\s*(?:(?:#|//).*)?$")
_TERRAFORM_RESOURCE_REGEX = re.compile(r'\s*resource\s+"([\w-]+)"\s+"([\w-]+)"')
_INDEX_REGEX = re.compile(r"\[[^\]]*\]")
# Of a folder with Terraform files, at most this many files of at most this many bytes are read.
_MOST_TERRAFORM_FILES = 200
_MOST_TERRAFORM_BYTES = 256 * 1024
_MOST_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class StaleEntry:
    """An entry that tells lint to leave something out, and that no finding needs any more.

    Attributes:
        where: The place of the entry, such as the file and the line.
        symptom: The symptom that the entry names.
        because: Why it is stale, and what to do.
    """

    where: str
    symptom: str
    because: str


@dataclass(frozen=True)
class InlineIgnore:
    """One symptom that a person ignores in one place of a template.

    Attributes:
        symptom: The symptom's name. Empty if the entry is not valid.
        reason: The person's reason; empty if none is given.
        where: The place of the ignore, in words.
        place: The path and the line in the template. The line is None if it is in another file.
        resources: Logical IDs of the resources whose findings are ignored.
        paths: Findings at these paths, or below them, are ignored too.
        problem: Why the entry is not valid; empty if it is.
    """

    symptom: str
    reason: str
    where: str
    place: TemplatePlace
    resources: frozenset[str]
    paths: tuple[str, ...] = ()
    problem: str = ""

    def is_about(self, symptom: str, resource: str, path: str) -> bool:
        """Return True if a finding of this symptom at this resource and path is ignored."""
        return symptom == self.symptom and (
            resource in self.resources
            or any(f"{path}.".startswith(f"{ignored_path}.") for ignored_path in self.paths)
        )


def list_metadata_ignores(template: Template) -> Iterator[InlineIgnore]:
    """Yield the ignores in the `Metadata` of the template's resources."""
    for resource in template.resources.values():
        metadata = get_mapping(resource.definition, "Metadata", "mendq") or {}
        for entry in to_list(metadata.get("ignore")):
            yield _read_metadata_entry(template, resource, entry)


def _read_metadata_entry(
    template: Template, resource: TemplateResource, entry: Any
) -> InlineIgnore:
    place = template.find_place("Resources", resource.logical_id, "Metadata", "mendq", "ignore")
    symptom = entry.get("symptom") if isinstance(entry, dict) else entry
    reason = entry.get("reason") if isinstance(entry, dict) else ""
    is_valid = isinstance(symptom, str) and bool(symptom) and isinstance(reason, str | None)
    return InlineIgnore(
        symptom=str(symptom) if is_valid else "",
        reason=str(reason or "")[:_MOST_REASON_CHARACTERS],
        where=f"Metadata of {resource.logical_id}",
        place=place,
        resources=frozenset({resource.logical_id}),
        problem="" if is_valid else WRONG_ENTRY,
    )


def list_comment_ignores(
    template: Template, content: bytes, folder: TemplateFolder | None
) -> Iterator[InlineIgnore]:
    """Yield the ignores in comments, which only some languages have here (see the module).

    Args:
        template: The decoded template.
        content: The bytes of the file.
        folder: The folder of the file; None if it is not known.
    """
    if is_serverless_file(template.root):
        yield from _list_serverless_ignores(template, content, folder)
    elif folder is not None and folder.path is not None and isinstance(template, TerraformTemplate):
        yield from _list_terraform_ignores(template, folder.path)


class _Block(NamedTuple):
    """The part of a file that declares a resource, or a function with its events."""

    path: str
    resources: frozenset[str]


def _list_serverless_ignores(
    template: Template, content: bytes, folder: TemplateFolder | None
) -> Iterator[InlineIgnore]:
    """Yield the ignores in the comments of a `serverless.yml` and of the files that it includes."""
    blocks_by_file = _list_blocks_by_file(template)
    blocks_by_file.setdefault("", {})
    for file, block_by_line in blocks_by_file.items():
        lines = _read_lines(file, content, folder)
        block_finder = _BlockFinder(lines, sorted(block_by_line))
        file_text = f" of {file}" if file else ""
        for line_number, symptom, reason in _list_comments(lines):
            block_line = block_finder.find_block_line(line_number)
            block = block_by_line.get(block_line, _Block("", frozenset()))
            yield InlineIgnore(
                symptom,
                reason,
                f"comment in line {line_number}{file_text}",
                TemplatePlace(block.path, line_number, file),
                block.resources,
                (block.path,) if block.path else (),
                "" if symptom and reason else MISSING_REASON,
            )


def _read_lines(file: str, content: bytes, folder: TemplateFolder | None) -> list[str]:
    """Return the lines of the template, or of a file beside it that it includes."""
    if file and folder is not None:
        content = folder.read(file)  # kept since the template was read
    return content.decode("utf-8-sig", "replace").splitlines()


def _list_blocks_by_file(template: Template) -> dict[str, dict[int, _Block]]:
    """Return the blocks of each file by their first line. The template itself has the name ""."""
    sources = template.expansion.source_keys_by_logical_id if template.expansion else {}
    blocks_by_file = dict[str, dict[int, _Block]]()
    for logical_id in template.resources:
        keys = sources.get(logical_id, ("Resources", logical_id))
        place = template.find_own_place(keys[:2] if keys[0] == "functions" else keys)
        if place.line is None:
            continue
        block_by_line = blocks_by_file.setdefault(place.file, {})
        earlier_block = block_by_line.get(place.line, _Block("", frozenset()))
        resources = earlier_block.resources | {logical_id}
        block_by_line[place.line] = _Block(place.path, resources)
    return blocks_by_file


def _list_comments(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the symptom and the reason of each comment that ignores something."""
    for line_number, line in enumerate(lines, start=1):
        comment = _COMMENT_REGEX.search(line)
        if comment:
            symptom, reason = comment.groups()
            yield line_number, symptom, (reason or "").strip()[:_MOST_REASON_CHARACTERS]


class _BlockFinder:
    """Finds the blocks that the comments of a file are about.

    Each line is examined once, so that a file of nothing but comments takes no longer than another.
    """

    def __init__(self, lines: Sequence[str], block_lines: Sequence[int]) -> None:
        self._block_lines = block_lines
        self._first_lines = frozenset(block_lines)
        self._code_lines = [
            number
            for number, line in enumerate(lines, start=1)
            if not _COMMENT_LINE_REGEX.match(line)
        ]

    def find_block_line(self, line_number: int) -> int:
        """Return the first line of the block that a comment is about. 0 if it is before all blocks.

        A comment directly above a block is about it. Any other is about the block that it is in.
        """
        position = bisect_left(self._code_lines, line_number)
        if position < len(self._code_lines) and self._code_lines[position] in self._first_lines:
            return self._code_lines[position]
        position = bisect_right(self._block_lines, line_number)
        return self._block_lines[position - 1] if position else 0


def _list_terraform_ignores(template: TerraformTemplate, folder: Path) -> Iterator[InlineIgnore]:
    """Yield the ignores in the comments of `.tf` files.

    They are about the resources with the block's address, with any index, in every instance of the
    module that the file belongs to. Of a plan, only the root module's files are known. A file that
    cannot be read has none.
    """
    ids_by_address = dict[str, list[str]]()
    for logical_id in template.resources:
        ids_by_address.setdefault(_INDEX_REGEX.sub("", logical_id), []).append(logical_id)
    module_addresses_by_folder = dict[Path, set[str]]()
    for module_folder, module_address in template.list_module_folders(folder):
        module_addresses = module_addresses_by_folder.setdefault(module_folder.resolve(), set())
        module_addresses.add(_INDEX_REGEX.sub("", module_address))
    files_left = _MOST_TERRAFORM_FILES
    for module_folder, module_addresses in module_addresses_by_folder.items():
        paths = sorted(module_folder.glob("*.tf"))[:files_left]
        files_left -= len(paths)
        folder_text = "" if module_folder == folder.resolve() else f"{module_folder.name}/"
        for path in paths:
            if not explain_unread_file(path, module_folder):
                yield from _list_file_ignores(
                    path, f"{folder_text}{path.name}", sorted(module_addresses), ids_by_address
                )


def _list_file_ignores(
    path: Path,
    file: str,
    module_addresses: Sequence[str],
    ids_by_address: Mapping[str, Sequence[str]],
) -> Iterator[InlineIgnore]:
    """Yield the ignores in the comments of one `.tf` file, which has the name `file` in results."""
    for address, line_number, symptom, reason in _read_terraform_comments(path):
        logical_ids = list[str]()
        for module_address in module_addresses:
            full_address = f"{module_address}.{address}".lstrip(".")
            logical_ids += ids_by_address.get(full_address, [])
        yield InlineIgnore(
            symptom,
            reason,
            f"{file}, line {line_number}",
            TemplatePlace(f"{file}: {address}", None),
            frozenset(logical_ids),
            tuple(logical_ids),
            "" if symptom and reason else MISSING_REASON,
        )


def _read_terraform_comments(path: Path) -> Iterator[tuple[str, int, str, str]]:
    """Yield the block's address, the line number, the symptom and the reason of each comment."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_TERRAFORM_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    lines = text.splitlines()
    address_by_line = dict[int, str]()
    for line_number, line in enumerate(lines, start=1):
        resource = _TERRAFORM_RESOURCE_REGEX.match(line)
        if resource:
            address_by_line[line_number] = ".".join(resource.groups())
    block_finder = _BlockFinder(lines, sorted(address_by_line))
    for line_number, symptom, reason in _list_comments(lines):
        block_line = block_finder.find_block_line(line_number)
        yield address_by_line.get(block_line, ""), line_number, symptom, reason


def list_stale_ignores(
    ignores: Iterable[InlineIgnore],
    used_ignores: Collection[InlineIgnore],
    symptoms_not_checked: Collection[str],
    checked_symptoms: Collection[str],
) -> list[StaleEntry]:
    """Return the ignores that no finding needs.

    Args:
        ignores: All ignores of the template.
        used_ignores: The ignores of which a finding was left out.
        symptoms_not_checked: Symptoms that lint could not check everywhere in the template.
        checked_symptoms: All symptoms that lint can check. An ignore of any other is a mistake.
    """
    return [
        StaleEntry(
            ignore.where,
            ignore.symptom,
            "it ignores no finding: remove it, so that the fault is found if it comes back",
        )
        for ignore in ignores
        if not ignore.problem
        and ignore not in used_ignores
        and ignore.symptom not in symptoms_not_checked
        and ignore.symptom in checked_symptoms
    ]
