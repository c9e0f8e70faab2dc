"""A page as HTML: one file in two languages that needs no network and in which every text is escaped.

A sentence whose Chinese is not known here stays in English: it is the one that the terminal prints.
"""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from reprod_align.errors import one_line
from reprod_align.page import Layer, Page, Table, plots

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

CHINESE: Final[dict[str, str]] = {
    "faithful": "一致",
    "agrees to float32": "在 float32 精度内一致",
    "diverges": "不一致",
    "aligned": "已对齐",
    "NOT aligned": "未对齐",
    "passed": "通过", "failed": "未通过", "not run": "未运行", "not compared": "未比较",
    "not judged": "未判定",
    "ok": "一致", "DIFFERENT": "不同", "agrees": "一致", "parts": "分开", "spike": "尖峰",
    "the model": "整个模型",
    "step": "步骤", "official": "官方规则", "strict": "严格规则", "worst tensor": "差异最大的张量",
    "relative difference": "相对差异", "seconds": "秒",
    "stage": "阶段", "what": "内容", "result": "结果", "largest relative difference": "最大相对差异",
    "audit": "设置", "weights": "权重", "forward": "前向", "loss": "损失", "backward": "反向",
    "optimizer": "优化器", "schedule": "学习率", "data": "数据", "metric": "指标", "training": "训练",
    "Checks": "各项比较", "Weights": "权重", "Settings that differ": "不同的设置", "Inputs": "输入",
    "Pairs of tensors": "成对的张量", "Losses": "损失", "Curves": "曲线", "Values": "数值",
    "Tensors": "张量", "Only in one trace": "仅一方有", "trace": "轨迹",
    "PyTorch": "PyTorch", "Paddle": "Paddle", "module": "模块", "setting": "设置", "shape": "形状",
    "dtype": "类型", "name": "名称", "how": "转换", "tensor": "张量", "curve": "曲线", "steps": "步数",
    "largest difference": "最大差异", "first step outside": "首个超出的步", "verdict": "结论",
    "difference": "差异", "limit": "上限", "phase": "阶段", "effect": "影响",
    "part swapped": "交换的部分", "gap left with PyTorch's": "换成 PyTorch 后剩余的差距",
    "gap that Paddle's makes alone": "仅换成 Paddle 时产生的差距",
    "as it is": "不变", "transposed": "转置", "not paired": "没有对应",
    "changes the numbers": "影响数值", "may have no effect here": "此处可能没有影响",
    "mean (float64)": "平均差异 (float64)", "max (float64)": "最大差异 (float64)",
    "mean (float32)": "平均差异 (float32)", "max (float32)": "最大差异 (float32)",
    "fix": "修复", "evidence": "证据", "settings": "设置", "see": "参见",
    "date": "日期", "command": "命令", "machine": "机器", "band": "噪声带", "profile": "配置",
    "its inputs agree and its output does not": "其输入一致而输出不一致",
    "its children agree and its own code does not": "其子模块一致而其自身代码不一致",
    "the gradient diverges here": "梯度从这里开始不一致",
    "the port is faithful": "移植是忠实的", "Pairs of modules": "成对的模块",
}  # fmt: skip
_PATTERNS: Final = [(re.compile(pattern), chinese) for pattern, chinese in (
    (r"its inputs agree and its output does not", "其输入一致而输出不一致"),
    (r"its children agree and its own code does not", "其子模块一致而其自身代码不一致"),
    (r"the gradient diverges here", "梯度从这里开始不一致"),
    (r"its own code makes another mask or index", "其自身代码产生了不同的掩码或索引"),
    (r" in (train|eval) mode", r"（\1 模式）"),
    (r"at (\([^)]*\)) expected (\S+), got (\S+)", r"在 \1 处期望 \2，得到 \3"),
    (r"shape (\([^)]*\)) expected, got (\([^)]*\))", r"期望形状 \1，得到 \2"),
    (r"[Ss]ettings differ: ", "设置不同："),
    (r"(`[^`]*`) in place of (`[^`]*`) gives PyTorch's numbers", r"以 \1 代替 \2，即得 PyTorch 的数值"),
    (r"; its output: ", "；其输出："),
    (r"; its input: ", "；其输入："),
    (r"\(see (`[^`]*`)\)", r"（参见 \1）"),
    (r"difference (\S+), tolerance (\S+)", r"差异 \1，容差 \2"),
    (r"; set (\S+) in Paddle", r"；请在 Paddle 中设置 \1"),
    (r"(\d+) of (\d+) predictions flip", r"\2 个预测中有 \1 个翻转"),
    (r"no prediction can flip", "没有预测会翻转"),
    (r"all (\d+) predictions stay the same here, but some could flip",
     r"这里 \1 个预测都不变，但有些可能翻转"),
    (r"\(largest difference (\S+), smallest top-1 margin (\S+)\)",
     r"（最大差异 \1，最小的首位差距 \2）"),
    (r"KL divergence (\S+) on average, (\S+) at most", r"KL 散度平均 \1，最大 \2"),
    (r"loss on each side's own outputs: (\S+) in PyTorch, (\S+) in Paddle",
     r"各自输出上的损失：PyTorch \1，Paddle \2"),
    (r"settings differ without an effect seen here: ", "设置不同，但此处未见影响："),
    (r"settings differ; the port raised before it could show their effect: ",
     "设置不同；移植版在显出影响之前就报错了："),
    (r"learning rate at step (\d+): (\S+) in PyTorch, (\S+) in Paddle",
     r"第 \1 步的学习率：PyTorch \2，Paddle \3"),
    (r"the loss of the same outputs is (\S+) in Paddle and (\S+) in PyTorch",
     r"对相同的输出，损失在 Paddle 中为 \1，在 PyTorch 中为 \2"),
    (r"(.+) leaves the noise band at step (\d+)", r"\1 在第 \2 步离开噪声带"),
    (r"the logs agree: (\d+) curves? within the band", r"两份日志一致：\1 条曲线都在噪声带内"),
    (r"(\d+) findings?; the first is where the two models diverge",
     r"\1 处发现；第一处是两个模型开始不一致的地方"),
    (r"(\d+) comparisons?, all within tolerance", r"\1 项比较，均在容差之内"),
    (r"all (\d+) comparisons? passed", r"\1 项比较全部通过"),
    (r"(\d+) of (\d+) comparisons? did not pass, the first is (\S+)",
     r"\2 项比较中有 \1 项未通过，第一项是 \3"),
    (r"Which part of a step makes (.+) differ at step (\d+)", r"\1 在第 \2 步的差距由哪一部分造成"),
    (r"(\d+) pairs of tensors agree", r"\1 对张量一致"),
)]  # fmt: skip
_WIDE: Final = {",": "，", ";": "；", ":": "："}
_HAN: Final = "[\u3400-\u9fff，。；：（）]"
_MARK_BESIDE_CHINESE: Final = re.compile(f"(?<={_HAN})([,;:]) ?|([,;:]) ?(?={_HAN})| (?=（)")
_SHOWN: Final = 20  # rows of a table; the page shows the others when asked
_TREE: Final = 3  # with fewer modules a tree tells nothing


@dataclass
class _Node:
    """A module, or a part of names that is no module that was called (a list of layers)."""

    name: str
    layer: Layer | None = None
    inside: dict[str, "_Node"] = field(default_factory=dict)


def flatten_tree(layers: Sequence[Layer], limit: float) -> list[list[Any]]:
    """Return a row for each module, parents before children, both in call order.

    A row: depth, last part of the name, PyTorch's name, Paddle's name if it is another one, class,
    calls, introduced, inherited, total, backward, state. A figure is None where it is not known;
    state: 2 a finding is about it, 1 its difference or one inside it is above `limit`, 0 it agrees.
    """
    rows = list(_walk(_grow(layers), 0, "", limit))
    for row, above in reversed(list(zip(rows, _find_parents(rows), strict=True))):
        if row[-1] and above is not None and not above[-1]:  # what differs inside shows outside
            above[-1] = 1
    return rows


def _find_parents(rows: Sequence[list[Any]]) -> list[list[Any] | None]:
    """Return the row above each in the tree; None for the first."""
    parents: list[list[Any] | None] = []
    open_rows: list[list[Any]] = []
    for row in rows:
        del open_rows[row[0] :]
        parents.append(open_rows[-1] if open_rows else None)
        open_rows.append(row)
    return parents


def _grow(layers: Sequence[Layer]) -> _Node:
    root = _Node("")
    for layer in layers:
        node = root
        for part in layer.torch_name.split(".") if layer.torch_name else ():
            node = node.inside.setdefault(part, _Node(part))
        node.layer = layer
    return root


def _walk(node: _Node, depth: int, path: str, limit: float) -> Iterator[list[Any]]:
    yield [depth, one_line(node.name), one_line(path), *_describe(node.layer, path, limit)]
    for part, inner in node.inside.items():
        yield from _walk(inner, depth + 1, f"{path}.{part}" if path else part, limit)


def _describe(layer: Layer | None, path: str, limit: float) -> list[Any]:
    if layer is None:
        return ["", "", 0, None, None, None, None, 0]
    other = one_line(layer.paddle_name) if layer.paddle_name != path else ""
    forward = None if layer.forward is None else layer.forward.relative
    backward = None if layer.backward is None else layer.backward.relative
    figures = [layer.introduced, layer.inherited, forward, backward]
    differs = any(one is not None and not one <= limit for one in figures)
    state = 2 if layer.failed else int(differs)
    return [other, one_line(layer.kind), layer.calls, *map(_shorten, figures), state]


def _shorten(figure: float | None) -> float | str | None:
    """Return a figure as JSON has it, with as many digits as are read."""
    if figure is None:
        return None
    return float(f"{figure:.2e}") if math.isfinite(figure) else str(figure)


def translate(text: str) -> str:
    """Return the Chinese of a word or a sentence, as far as it is known.

    Commas, semicolons and colons beside Chinese are full-width, and no space stands before （.
    """
    if text in CHINESE:
        return CHINESE[text]
    chinese = text
    for pattern, words in _PATTERNS:
        chinese = pattern.sub(words, chinese)
    if chinese == text:
        return text
    return _MARK_BESIDE_CHINESE.sub(lambda found: _WIDE.get(found[0].strip(), ""), chinese)


def render_page(page: Page) -> str:
    """Return the page as text."""
    environment = Environment(
        loader=DictLoader({"page": _read("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_make_printable,
    )
    environment.filters |= {"say": _speak, "chinese": translate}
    script = _read("page.js")
    return environment.get_template("page").render(
        page=page,
        shown=_SHOWN,
        style=Markup(_read("page.css")),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        data=Markup(encode_data(collect_data(page))),
        plots={name: list(map(Markup, pictures)) for name, pictures in _draw(page).items()},
        numbered=choose_layers(page.layers),
        has_tree=len(page.layers) >= _TREE,
    )


def _make_printable(value: object) -> object:
    """Escape what is not printable in a text of the user's; markup is ours."""
    user = isinstance(value, str) and not isinstance(value, Markup)
    return one_line(str(value)) if user else value


def _speak(text: object) -> Markup:
    """Return a text in both languages, of which the page shows one."""
    english = one_line(str(text))
    chinese = translate(english)
    if chinese == english:
        return _mark_code(english)
    both = Markup('<span lang="en">{}</span><span lang="zh">{}</span>')
    return both.format(_mark_code(english), _mark_code(chinese))


def _mark_code(text: str) -> Markup:
    """Return a text as markup, what stands in it between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one of them has no partner: it is a character as any other
        return escape(text)
    shown = (
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(parts)
    )
    return Markup("").join(shown)


def find_mark(page: Page) -> float:
    """Return the relative difference from which a module is marked: in a page that passed, none is."""
    return math.inf if page.passed else page.limit


def choose_layers(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers that the plot by layer shows: those with a figure."""
    return [one for one in layers if one.forward is not None or one.backward is not None]


def collect_data(page: Page) -> Mapping[str, Any]:
    """Return what the page's script reads: the tree, the layers of the plot, the rest of tables."""
    return {
        "limit": None if page.passed else page.limit,
        "tree": flatten_tree(page.layers, find_mark(page)) if len(page.layers) >= _TREE else [],
        "layers": [
            [one_line(one.torch_name), *_show_figures(one)] for one in choose_layers(page.layers)
        ],
        "tables": [_find_rest(table) for table in page.tables],
    }


def _show_figures(layer: Layer) -> list[str]:
    figures = (layer.forward, layer.backward)
    floor = "" if layer.floor is None else f"{layer.floor:.1e}"
    return [*("" if one is None else f"{one.relative:.1e}" for one in figures), floor]


def _find_rest(table: Table) -> list[Any]:
    """Return the rows beyond those that stand in the page, each with whether it is marked."""
    rest = list(enumerate(table.rows))[_SHOWN:]
    return [[int(number in table.failed), *map(one_line, row)] for number, row in rest]


def encode_data(data: object) -> str:
    """Return JSON that can stand in a script element: no text in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _draw(page: Page) -> Mapping[str, list[str]]:
    """Return the pictures of each kind."""
    layers = choose_layers(page.layers)
    picture = page.picture
    return {
        "layers": [plots.draw_layers(layers, page.limit, find_mark(page))]
        if len(layers) >= _TREE
        else [],
        "heat": [] if picture is None else [plots.draw_heat(picture)],
        "histograms": [] if picture is None else [plots.draw_histograms(picture)],
        "curves": [
            "" if curve.constant is not None else plots.draw_curve(curve, at)
            for at, curve in enumerate(page.curves)
        ],
        "more": [plots.adopt_svg(draw("svg"), f"more{at}") for at, draw in enumerate(page.plots)],
    }


def _read(name: str) -> str:
    return files("reprod_align.page").joinpath(name).read_text(encoding="utf-8")
