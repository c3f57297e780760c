"""The hooks stand on names that MiniStack never promised."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from local_account import private_names

ROOM = Path(private_names.__file__).parent


def test_nothing_has_moved() -> None:
    """Run in a process that hooked nothing: the account's own is another one."""
    assert list(private_names.moved()) == []


def test_every_private_name_in_use_is_listed() -> None:
    listed = {
        (module.rpartition(".")[2], name)
        for module, names in private_names.NAMES.items()
        for name in names
    }
    used = {each for path in ROOM.rglob("*.py") for each in _private_names_in(path)}
    assert len(used) > 20
    assert used - listed == set()


def _private_names_in(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text("utf-8"))
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    ours = [each for each in imports if (each.module or "").startswith("ministack")]
    modules = {name.name for each in ours for name in each.names}
    for each in ours:
        module = (each.module or "").rpartition(".")[2]
        yield from ((module, name.name) for name in each.names if name.name.startswith("_"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and node.attr.startswith("_")
        ):
            yield node.value.id, node.attr
