"""Hooks for MkDocs: add pages to the docs site, make their links work, and let long names break.

MkDocs calls these functions by their names. It runs in an environment of its own, without Mendq's
packages. https://www.mkdocs.org/dev-guide/plugins/#events
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# The pages of the repository's root, and their names on the site.
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# The files that `make docs-site` puts into build/docs-site before it starts MkDocs.
PREPARED_FILES = (
    "sample-report.html",
    "javascripts/iframe-worker.js",
    "javascripts/mermaid.min.js",
)
SAMPLE_REPORT_NOTE = """<main><p style="margin: 0 0 1.5rem">
<strong>A sample: this week, its accounts and its queues are made up.</strong>
<a href="index.html">The documents</a></p>"""
# A name in code at the beginning of a table cell.
_NAME_IN_CELL_PATTERN = re.compile(r"(<td>(?:<a [^>]*>)?<code>)([\w.]+)(?=</code>)")
# The places in a name after which a line may break: `_`, `.`, and before a capital letter.
_WORD_END_PATTERN = re.compile(r"(?<=[a-z])([_.]|(?=[A-Z]))")
# A Markdown link to a file: text, path and anchor.
_MARKDOWN_LINK_PATTERN = re.compile(r"\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s:#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add every runbook to the section `Runbooks` of the navigation; mkdocs.yml has it empty."""
    (runbook_section,) = [
        navigation_entry["Runbooks"]
        for navigation_entry in config.nav or ()
        if "Runbooks" in navigation_entry
    ]
    runbook_paths = sorted((ROOT / "docs" / "runbooks").glob("[a-z]*.md"))
    runbook_section.extend(f"runbooks/{runbook_path.name}" for runbook_path in runbook_paths)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root and PREPARED_FILES to the site's files."""
    for root_page_name, site_uri in ROOT_PAGES.items():
        files.append(
            File.generated(config, site_uri, content=(ROOT / root_page_name).read_text("utf-8"))
        )
    for site_uri in PREPARED_FILES:
        file_text = (ROOT / "build" / "docs-site" / site_uri).read_text("utf-8")
        if site_uri.endswith(".html"):
            file_text = file_text.replace("<main>", SAMPLE_REPORT_NOTE, 1)
        files.append(File.generated(config, site_uri, content=file_text))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """Return a page's Markdown with links that work on the site.

    A link to a file outside docs/ that is not on the site becomes text. A dead link to a file in
    docs/ is unchanged, so that MkDocs reports it.
    """
    page_uri = page.file.src_uri
    source_path = f"docs/{page_uri}"
    for root_page_name, site_uri in ROOT_PAGES.items():
        if site_uri == page_uri:
            source_path = root_page_name

    def replace_link(link_match: re.Match[str]) -> str:
        link_text, link_path, link_anchor = link_match.groups("")
        target_path = normpath(join(dirname(source_path), link_path))
        site_uri = ROOT_PAGES.get(target_path, target_path.removeprefix("docs/"))
        if files.get_file_from_path(site_uri):
            return f"[{link_text}]({relpath(site_uri, dirname(page_uri) or '.')}{link_anchor})"
        if target_path.startswith("docs/"):
            return link_match[0]  # a dead link: MkDocs reports it
        return f'<span title="{escape(target_path)}">{link_text}</span>'

    markdown_with_pictures = re.sub(r'((?:src|srcset)=")docs/', r"\1", markdown)
    return _MARKDOWN_LINK_PATTERN.sub(replace_link, markdown_with_pictures)


def on_page_content(html: str, **_: object) -> str:
    """Return a page's HTML in which long names in tables can break between their words."""

    def add_breaks(name_match: re.Match[str]) -> str:
        return name_match[1] + _WORD_END_PATTERN.sub(r"\1<wbr>", name_match[2])

    return _NAME_IN_CELL_PATTERN.sub(add_breaks, html)
