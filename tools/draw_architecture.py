"""Draw the packages and their imports into docs/architecture.md and its Chinese twin.

usage   python tools/draw_architecture.py           write both pages
        python tools/draw_architecture.py --check   exit 1 if a page shows other imports than the code has
"""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

from reprod_align.base.files import whole_file

import grimp

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "docs" / name for name in ("architecture.md", "architecture_cn.md")]
ROOTS = ("reprod_align", "pipeline", "models")
STEPS = "pipeline.Step1 to Step5"

Arrows = dict[str, set[str]]


def main() -> int:
    """Write the pictures, or compare them with the pages; return the exit code."""
    pictures = {root: draw(root) for root in ("reprod_align", "pipeline")}
    stale = []
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = old
        for root, picture in pictures.items():
            new = replace_picture(new, root, picture)
        if new != old:
            stale.append(str(page.relative_to(REPOSITORY)))
            if "--check" not in sys.argv:
                with whole_file(page) as handle:
                    handle.write(new.encode())
    if stale and "--check" in sys.argv:
        print(f"{', '.join(stale)}: not current; run python tools/draw_architecture.py")
        return 1
    return 0


def replace_picture(text: str, root: str, picture: str) -> str:
    """Return a page's text with the block after the marker of `root` replaced."""
    block = re.compile(rf"(?<=<!-- imports of {root} -->\n)```mermaid\n.*?^```$", re.DOTALL | re.M)
    new, found = block.subn(lambda _: picture, text)
    if found != 1:
        raise SystemExit(f"expected one block after '<!-- imports of {root} -->', got {found}")
    return new


def draw(root: str) -> str:
    """Return a Mermaid block: a box for each package below `root`, an arrow for each import."""
    graph = grimp.build_graph(*ROOTS, exclude_type_checking_imports=True, cache_dir=None)
    modules = defaultdict(list)
    for module in sorted(graph.modules):
        modules[box_of(module, root)].append(module)
    arrows = {box: set() for box in modules}
    for box, inside in modules.items():
        for module in inside:
            arrows[box] |= {
                box_of(name, root) for name in graph.find_modules_directly_imported_by(module)
            }
    if root == "pipeline":
        arrows[STEPS] = {box_of(name, root) for name in imports_of_steps() & graph.modules}
    arrows = {box: found - {box, root} for box, found in arrows.items()}
    shown = {box for box in arrows if box.startswith(f"{root}.")}
    shown |= {target for box in shown for target in arrows[box]}
    arrows = reduce_arrows({box: arrows[box] & shown for box in sorted(shown)})
    lines = [f'    {key(box)}["{label(box, root, modules[box])}"]' for box in arrows]
    lines += [f"    {key(box)} --> {key(to)}" for box in arrows for to in sorted(arrows[box])]
    return "\n".join(["```mermaid", "graph TD", *lines, "```"])


def box_of(module: str, root: str) -> str:
    """Return the box of a module: the package or module right below `root`, or another root."""
    words = module.split(".")
    return ".".join(words[:2]) if words[0] == root else words[0]


def imports_of_steps() -> set[str]:
    """Return what the scripts of the steps import; they are files, not modules of a package."""
    found = set()
    for path in REPOSITORY.glob("pipeline/Step*/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def reduce_arrows(arrows: Arrows) -> Arrows:
    """Leave out each arrow to a box that the others reach as well; refuse circles."""
    reached = {box: reach(box, arrows) for box in arrows}
    circles = sorted(box for box, found in reached.items() if box in found)
    if circles:
        raise SystemExit(f"imports run in a circle: {', '.join(circles)}")
    return {
        box: {to for to in found if not any(to in reached[other] for other in found)}
        for box, found in arrows.items()
    }


def reach(box: str, arrows: Arrows) -> set[str]:
    """Return all boxes that can be reached from `box` by one arrow or more."""
    found, open_ones = set(), set(arrows[box])
    while open_ones:
        found |= open_ones
        open_ones = {to for one in open_ones for to in arrows[one]} - found
    return found


def label(box: str, root: str, modules: list[str]) -> str:
    """Return a box's text: its name, and the packages inside it."""
    name = box.removeprefix(f"{root}.")
    if name == box or not modules:  # another root, or the steps: only their name
        return name
    inner = sorted({".".join(module.split(".")[:3]) for module in modules if module.count(".") > 2})
    inside = ", ".join(package.rpartition(".")[2] for package in inner)
    return f"<b>{name}</b>" + (f"<br/>with {inside}" if inside else "")


def key(box: str) -> str:
    """Return a box's name in the Mermaid source, where dots and blanks have a meaning."""
    return re.sub(r"\W", "_", box)


if __name__ == "__main__":
    sys.exit(main())
