"""A page taken apart by Python's own parser."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "wbr"}


class PageParts(HTMLParser):
    """The elements of a page in order, each attribute's value, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.values: set[tuple[str, str, str]] = set()
        self.alone: list[str] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.values |= {(tag, name, value or "") for name, value in attrs}
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self._texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.alone.append(data)

    def handle_pi(self, data: str) -> None:
        self.alone.append(data)

    def unknown_decl(self, data: str) -> None:
        self.alone.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self._texts).split())
