"""Where a started account's settings lie until it has read them."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def settings_folder() -> Iterator[Path]:
    """One that an interrupt leaves behind at no point: its name is known before it is made."""
    folder = Path(tempfile.gettempdir()) / f"mendq-settings-{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
