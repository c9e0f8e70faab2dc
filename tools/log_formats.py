"""Write the formats that `reprod-align curves` reads into docs/curves.md and its Chinese twin.

usage   python tools/log_formats.py
"""

from pathlib import Path

from reprod_align.curves.readers import list_formats

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- table: tools/log_formats.py -->", "<!-- end -->"
PAGES = {  # page -> the table's head, and the row of a format
    ROOT / "docs" / "curves.md": (("log", "remarks"), lambda each: each.row),
    ROOT / "docs" / "curves_cn.md": (("日志", "说明"), lambda each: each.row_cn),
}


def fill(page: Path) -> str:
    """Return the page's text with the table as the formats make it now."""
    head, row = PAGES[page]
    rows = [head, ("---", "---"), *map(row, list_formats())]
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    table = "\n".join(f"| {log} | {remarks} |" for log, remarks in rows)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    for each in PAGES:
        text = fill(each)
        each.write_text(text, encoding="utf-8")
