"""Read the files beside a template that the template names.

A template may come from anyone, so only files below its own folder are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mendq.lint.template import MOST_TEMPLATE_BYTES, NotATemplate

# Most files beside one template that are read.
MOST_NAMED_FILES = 200


def explain_unread_file(path: Path, folder: Path) -> str:
    """Return why a file must not be read; empty if it may be.

    Opening a pipe would wait for ever, and a link may lead out of the folder or in a circle. A file
    that does not exist has no reason: the error of reading it says so.
    """
    if not is_inside_folder(path, folder):
        return "a link to a file outside the folder"
    return "not a regular file" if path.exists() and not path.is_file() else ""


def is_inside_folder(path: Path, folder: Path) -> bool:
    """Return True if a path is below a folder after all links are followed.

    Return False for a path that the operating system refuses, and for links that lead in a circle:
    Python before 3.13 raises RuntimeError for those.
    """
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


class UnreadableTemplateFile(Exception):
    """A file that a template names cannot be read. The message is the reason."""


@dataclass
class TemplateFolder:
    """The folder of a template. None if there is no folder, as for standard input."""

    path: Path | None = None
    # Name of the template in the folder. Empty if it is not known.
    template_name: str = ""

    def __post_init__(self) -> None:
        self._files_left = MOST_NAMED_FILES
        self._content_by_name = dict[str, bytes]()

    @property
    def is_used_up(self) -> bool:
        """True if the template names too many files."""
        return self._files_left < 0

    def read(self, name: str) -> bytes:
        """Return the bytes of a file. The same file again is not read again.

        Args:
            name: The path of the file, relative to the folder.

        Raises:
            UnreadableTemplateFile: There is no such file, it is not below the folder, it is a pipe
                or a folder, or it is too large.
            NotATemplate: The template names too many files.
        """
        if name in self._content_by_name:
            return self._content_by_name[name]
        if self.path is None:
            raise UnreadableTemplateFile("it is in another file")
        path = self.path / name
        if not is_inside_folder(path, self.path):
            raise UnreadableTemplateFile("it is not below the template's folder")
        self._files_left -= 1
        if self._files_left < 0:
            raise NotATemplate(f"it names more than {MOST_NAMED_FILES} other files")
        try:
            if path.exists() and not path.is_file():
                raise UnreadableTemplateFile("it is not a regular file")
            with path.open("rb") as file:
                content = file.read(MOST_TEMPLATE_BYTES + 1)
        except (OSError, ValueError) as error:
            raise UnreadableTemplateFile("there is no such file") from error
        if len(content) > MOST_TEMPLATE_BYTES:
            raise UnreadableTemplateFile(f"it is longer than {MOST_TEMPLATE_BYTES:,} bytes")
        self._content_by_name[name] = content
        return content
