"""A page as Markdown: what porters paste into a pull request, which they used to write by hand."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from reprod_align.errors import one_line
from reprod_align.page import CurvePlot, Figures, Layer, Page, StepResult, Table

_MOST: Final = 60  # rows of a table: what differs, and the first of the others
_STEPS: Final = 20  # of a curve
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~!])")


def render_markdown(page: Page) -> str:
    """Return the text: verdict, first finding, a table by stage and layer, losses, versions, command."""
    parts = [
        _say_verdict(page),
        _list_steps(page.steps),
        _list_layers(page),
        *_list_curves(page.curves),
    ]
    parts += [_list_table(table) for table in page.tables if table.paste and table.rows]
    if page.unjudged:
        parts.append(
            "\n".join(["**Not judged**:", "", *(f"- {escape(one)}" for one in page.unjudged)])
        )
    parts.append(_list_facts(page))
    return "\n\n".join(filter(None, parts)) + "\n"


def escape(text: str) -> str:
    """Return a text in which nothing is Markdown, HTML or a mention."""
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("@", "&#64;")


def quote(name: str) -> str:
    """Return a name as code; "" for none."""
    plain = one_line(name).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else ""


def _say_verdict(page: Page) -> str:
    mark = "✅" if page.passed else "❌"
    lines = [f"### {mark} {quote(page.name)}: {escape(page.verdict)}", "", escape(page.sentence)]
    if page.diagnostics:
        first = page.diagnostics[0]
        code = f"{quote(first.code)} " if first.code else ""
        lines += ["", f"**First difference**: {code}{escape(first.stage)}: {quote(first.place)}: "
                      f"{escape(first.message)}"]  # fmt: skip
        lines += [
            f"- {escape(line.side)} {quote(line.place)}: {quote(line.code)}" for line in first.lines
        ]
        lines += [f"- {escape(name)}: {escape(words)}" for name, words in first.notes]
    lines += ["", *(f"- {escape(text)}" for text in page.meaning)] if page.meaning else []
    return "\n".join(lines)


def _list_steps(steps: Sequence[StepResult]) -> str:
    rows = [
        (
            escape(one.name),
            escape(one.official),
            escape(one.strict),
            quote(one.worst),
            escape(one.difference),
        )
        for one in steps
    ]
    heads = ("step", "official", "strict", "worst tensor (float64)", "relative difference")
    return make_table(heads, rows) if rows else ""


def _list_layers(page: Page) -> str:
    """Return a row for each layer and stage: mean and largest difference in both precisions."""
    rows = [*_show_stage("forward", page.layers), *_show_stage("backward", page.layers)]
    wide = [row for differs, row in rows if differs]
    near = [row for differs, row in rows if not differs]
    kept = [row for _, row in rows] if len(rows) <= _MOST else [*wide, *near][:_MOST]
    if not kept:
        return ""
    heads = ("stage", "layer", "mean (float64)", "max (float64)", "mean (float32)", "max (float32)")
    table = make_table(heads, kept)
    if len(kept) < len(rows):
        left = len(rows) - max(len(kept), len(wide))
        table += (
            f"\n\nand {len(rows) - len(kept)} rows more, {left} of them with no difference to tell"
        )
    return f"<details><summary>by layer ({len(rows)} rows)</summary>\n\n{table}\n\n</details>"


def _show_stage(stage: str, layers: Sequence[Layer]) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Yield whether a layer differs visibly, and its row."""
    for layer in layers:
        found = layer.forward if stage == "forward" else layer.backward
        rounded = layer.rounded if stage == "forward" else None
        if found is not None or rounded is not None:
            name = quote(layer.torch_name or "the model")
            row = (stage, name, *show_cells(found), *show_cells(rounded))
            yield found is not None and not found.relative <= 1e-9, row


def show_cells(figures: Figures | None) -> list[str]:
    """Return the mean and the largest difference as cells; what was not measured (NaN) is empty."""
    numbers = (math.nan, math.nan) if figures is None else figures[:2]
    return ["" if math.isnan(one) else f"{one:.1e}" for one in numbers]


def _list_curves(curves: Sequence[CurvePlot]) -> Iterator[str]:
    """Yield a table for each curve: the value of each step on both sides, and their difference."""
    for curve in curves:
        steps = list(zip(curve.steps, curve.expected, curve.actual, strict=True))
        every = max(1, math.ceil(len(steps) / _STEPS))
        rows = [
            (f"{step:g}", f"{ours:.10g}", f"{theirs:.10g}", f"{abs(theirs - ours):.1e}")
            for step, ours, theirs in steps[::every]
        ]
        yield make_table(("step", f"{escape(curve.name)}, PyTorch", "Paddle", "difference"), rows)


def _list_table(table: Table) -> str:
    rows = [tuple(map(escape, row)) for row in table.rows[:_MOST]]
    return f"**{escape(table.title)}**\n\n{make_table(tuple(map(escape, table.headers)), rows)}"


def _list_facts(page: Page) -> str:
    facts = dict(page.facts)
    command = facts.pop("command", "")
    told = ", ".join(f"{escape(name)} {escape(value)}" for name, value in facts.items())
    return "\n".join(filter(None, [told, f"Command: {quote(command)}" if command else ""]))


def make_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
