"""What MkDocs does beside mkdocs.yml: the root's pages are the site's too, and links lead there.

It runs in the site's own environment, which has none of Mendq's packages.
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
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# What `make docs-site` has put into build/docs-site before.
MADE = ("sample-report.html", "javascripts/iframe-worker.js", "javascripts/mermaid.min.js")
NOTE = """<main><p style="margin: 0 0 1.5rem">
<strong>A sample: this week, its accounts and its queues are made up.</strong>
<a href="index.html">The documents</a></p>"""
_CELL = re.compile(r"(<td>(?:<a [^>]*>)?<code>)([\w.]+)(?=</code>)")
_WORD = re.compile(r"(?<=[a-z])([_.]|(?=[A-Z]))")
_LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s:#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name every runbook in the navigation, which mkdocs.yml does not."""
    (section,) = [each["Runbooks"] for each in config.nav or () if "Runbooks" in each]
    pages = sorted((ROOT / "docs" / "runbooks").glob("[a-z]*.md"))
    section += [f"runbooks/{each.name}" for each in pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and what `make docs-site` has made or fetched."""
    for name, uri in BESIDE.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text("utf-8")))
    for uri in MADE:
        text = (ROOT / "build" / "docs-site" / uri).read_text("utf-8")
        if uri.endswith(".html"):
            text = text.replace("<main>", NOTE, 1)
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """Return the page with links that lead where the repository's do, and none out of the site."""
    here = page.file.src_uri
    source = {uri: name for name, uri in BESIDE.items()}.get(here, f"docs/{here}")

    def anew(found: re.Match[str]) -> str:
        text, path, anchor = found.groups("")
        target = normpath(join(dirname(source), path))
        uri = BESIDE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(uri):
            return f"[{text}]({relpath(uri, dirname(here) or '.')}{anchor})"
        if target.startswith("docs/"):
            return found[0]
        return f'<span title="{escape(target)}">{text}</span>'

    return _LINK.sub(anew, re.sub(r'((?:src|srcset)=")docs/', r"\1", markdown))


def on_page_content(html: str, **_: object) -> str:
    """Return the page with names in tables that may break between their words."""
    return _CELL.sub(lambda name: name[1] + _WORD.sub(r"\1<wbr>", name[2]), html)
