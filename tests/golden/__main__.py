"""Show how golden files differ from what the code produces, and accept single files.

python -m tests.golden                show every difference; exit code 1 if there is one
python -m tests.golden accept FILE    write the present content of these files, and no others
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.golden.checks import ACCEPT_COMMAND, describe_stale_file
from tests.golden.files import GOLDEN_FILES, GoldenFile, find_golden_file
from tests.source_files import ROOT

Say = Callable[[str], object]


def show_differences(files: Sequence[GoldenFile], root: Path, say: Say) -> int:
    """Say how each golden file differs that is quick to compute; return 1 if any does."""
    quick_files = [golden_file for golden_file in files if not golden_file.is_slow]
    differences = [describe_stale_file(golden_file, root) for golden_file in quick_files]
    stale = [difference for difference in differences if difference]
    for difference in stale:
        say(f"{difference}\n")
    if stale:
        say(
            f"{len(stale)} of {len(quick_files)} golden files differ. Read each difference: it is "
            "what your change does. If it is wrong, correct the code. No command accepts all files."
        )
        return 1
    left_to_tests = ", ".join(golden_file.path for golden_file in files if golden_file.is_slow)
    say(
        f"golden files: {len(quick_files)} are current"
        + (f"; `make test` compares {left_to_tests}" if left_to_tests else "")
    )
    return 0


def accept(paths: Sequence[str], files: Sequence[GoldenFile], root: Path, say: Say) -> int:
    """Write the present content of the named files, after showing what changes.

    Return 2, and write nothing, if no file is named or a name is unknown.
    """
    if not paths:
        say(
            "Name the golden files to accept, each after you have read its difference: "
            f"{ACCEPT_COMMAND} {files[0].path}\n"
            "`python -m tests.golden` shows the differences."
        )
        return 2
    try:
        chosen = [find_golden_file(_relative(path, root), files) for path in paths]
    except LookupError as error:
        say(f"{error.args[0]}\nNothing was written.")
        return 2
    for golden_file in chosen:
        difference = describe_stale_file(golden_file, root)
        if not difference:
            say(f"{golden_file.path} is already current")
            continue
        say(difference.rpartition("\n  If the new content")[0])
        (root / golden_file.path).write_text(golden_file.compute_text(), encoding="utf-8")
        say(f"wrote {golden_file.path}")
    return 0


def main(
    arguments: Sequence[str],
    files: Sequence[GoldenFile] = GOLDEN_FILES,
    root: Path = ROOT,
    say: Say = print,
) -> int:
    """Run the command; return its exit code."""
    if not arguments:
        return show_differences(files, root, say)
    if arguments[0] == "accept":
        return accept(arguments[1:], files, root, say)
    say(__doc__ or "")
    return 2


def _relative(path: str, root: Path) -> str:
    """Return a path as golden files are listed, whether it was given relative or absolute."""
    full_path = Path(path).resolve() if Path(path).is_absolute() else Path(root, path)
    if full_path.is_relative_to(root):
        return full_path.relative_to(root).as_posix()
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
