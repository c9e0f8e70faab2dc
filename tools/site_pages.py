"""What mkdocs.yml needs beyond mkdocs: files stay where GitHub shows them, and each page has its language.

A page's address on the site is its path in the repository, so one relative link works in both places.
A linked file of code becomes a page that shows it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

CHINESE = "_cn.md"
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
NODE = re.compile(r'^ +(\w+)[\[{]"(?:<b>)?(.*?)(?:</b>)?(?:<br/>(.*))?"[\]}]$', re.MULTILINE)
ARROW = re.compile(r" --(?: (\S+) --)?> ")
SHOWN = {".py": "python", ".sh": "bash", ".yml": "yaml", ".toml": "toml", ".txt": "text"}


class Source(File):
    """A file of code, shown as a page."""

    def is_documentation_page(self) -> bool:
        """Let mkdocs render it."""
        return True


def make_slug(heading: str, separator: str) -> str:
    """Return a heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> None:
    """Name anchors as GitHub does."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = make_slug


def list_pages(nav: object) -> Iterator[str]:
    """Yield the paths in a navigation of lists and of titles with their pages."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from list_pages(part)


def list_links(root: Path, page: str) -> Iterator[str]:
    """Yield the files in the repository that a page links to, by their paths in it."""
    path = root / page
    for target in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        linked = (path.parent / target).resolve()
        if linked.is_file() and linked.is_relative_to(root):
            yield linked.relative_to(root).as_posix()


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Take the pages of the navigation and what they link to, from the whole repository."""
    root = Path(config.config_file_path).resolve().parent
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    pages = [*list_pages(config.nav)]
    linked = {at for page in pages for at in list_links(root, page)} - {*pages}
    for at in [*pages, *sorted(linked)]:
        kind = Source if Path(at).suffix in SHOWN else File
        file = kind(at, str(root), config.site_dir, config.use_directory_urls)
        file.inclusion = InclusionLevel.NOT_IN_NAV if at in linked else InclusionLevel.INCLUDED
        files.append(file)


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    """Show a file of code in a fence; the search leaves it out."""
    if not isinstance(page.file, Source):
        return None
    at = page.file.src_uri
    front = f"---\ntitle: {at}\nsearch:\n  exclude: true\n---\n"
    return f"{front}# {at}\n\n`````{SHOWN[Path(at).suffix]}\n{page.file.content_string}\n`````\n"


def list_arrows(graph: str) -> Iterator[tuple[str, str, str]]:
    """Yield start, word and end of the arrows of a Mermaid graph: `a --> b --> c`, `a -- word --> b`."""
    for line in graph.splitlines():
        parts = ARROW.split(line.strip())
        for at in range(0, len(parts) - 2, 2):
            yield parts[at], parts[at + 1] or "", parts[at + 2]


def tabulate_graph(graph: str) -> str:
    """Return a Mermaid graph as a table: its library would have to come from elsewhere."""
    names = {key: name for key, name, _ in NODE.findall(graph)}
    arrows = [*list_arrows(graph)]
    rows = [f"| {' | '.join(row)} |" for row in (["", "", "→"], ["---"] * 3)]
    for key, name, note in NODE.findall(graph):
        to = ", ".join(
            f"{word}: {names[end]}" if word else names[end]
            for start, word, end in arrows
            if start == key
        )
        rows.append(f"| `{name}` | {note.replace('<br/>', ', ')} | {to} |")
    return "\n".join(["", *rows, ""])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Find the page's twin; indent what belongs to a list by four, where GitHub takes two."""
    if twin := find_twin(page.file.src_uri, files):
        page.meta["twin"] = twin.url
    if isinstance(page.file, Source):
        return markdown
    parts = re.split(f"({FENCE.pattern})", markdown, flags=FENCE.flags)
    parts[::2] = [re.sub(r"^  ", "    ", part, flags=re.MULTILINE) for part in parts[::2]]
    shown = (tabulate_graph(part) if part.startswith("```mermaid") else part for part in parts)
    return "".join(shown)


def find_twin(at: str, files: Files) -> File | None:
    """Return the page in the other language: the twin, or the one that leads to a page of English alone."""
    if at.endswith(CHINESE):
        return files.get_file_from_path(f"{at.removesuffix(CHINESE)}.md")
    folder = Path(at).parent.as_posix()
    names = (
        f"{at.removesuffix('.md')}{CHINESE}",
        f"{folder}/README{CHINESE}",
        f"{folder}{CHINESE}",
    )
    found = (files.get_file_from_path(name) for name in (*names, f"README{CHINESE}"))
    return next((file for file in found if file), None)


def show_language(nav: Navigation, chinese: bool) -> Navigation:
    """Return one language's part of the navigation."""
    section = nav.items[-1 if chinese else 0]
    return Navigation(section.children or [], nav.pages) if isinstance(section, Section) else nav


def on_page_context(
    context: dict[str, object], page: Page, config: MkDocsConfig, nav: Navigation
) -> None:
    """Give a page its language: the theme's words, the navigation, and the way to the other language."""
    chinese = page.file.src_uri.endswith(CHINESE)
    config.theme["language"] = "zh" if chinese else "en"
    context["nav"] = show_language(nav, chinese)
    names = (("English", "en"), ("中文", "zh"))
    ours, theirs = reversed(names) if chinese else names
    config.extra["alternate"] = [{"name": ours[0], "lang": ours[1], "link": page.url}]
    if twin := page.meta.get("twin"):
        config.extra["alternate"].append({"name": theirs[0], "lang": theirs[1], "link": twin})
