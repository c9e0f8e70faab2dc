"""What `align` and PaDiff's `auto_diff` say of a pair, and of cases of the suite.

PaDiff patches PyTorch and Paddle when it is imported, so it must come before them, in a process of its own.

The suite's part is every n-th case of its families that PaDiff can run: no optimizer, no names to be
mapped, and no fault that only train mode shows. A culprit is named if the first place that a tool
names is one of the case's; of PaDiff, the marked layer or the first parameter listed.
"""

import importlib
import inspect
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any

RULES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "strict": {"compare_mode": "strict", "rtol": 1e-4, "atol": 1e-4},
}
"""PaDiff's own rule, the means to 1e-7; and every element to 1e-4"""
FAMILIES = ("bert", "cnn", "mlp", "norms", "embedding", "encoder", "rnn")
_TRAIN_MODE_ALONE = re.compile("drop|train|eval|momentum|running|optimi|decay|schedul", re.I)

Found = list[str] | None
"""the names of the first place that differs; None: nothing does"""


def judge_cases(tool: str, every: int) -> Iterator[dict[str, bool]]:
    """Yield of every n-th case: is it faulty, is it flagged, is a culprit named first, was it judged?"""
    for family in FAMILIES:
        for case, pair in _choose_cases(family, every):
            try:
                found = ask_align(pair) if tool == "align" else ask_padiff(pair, tool)
            except Exception:  # a tool that can't judge a case is a result too
                yield {
                    "faulty": bool(case.culprits),
                    "flagged": False,
                    "named": False,
                    "judged": False,
                }
                continue
            named = _is_named(case, pair, found or [], exactly=tool == "align")
            yield {"faulty": bool(case.culprits), "flagged": found is not None, "named": named,
                   "judged": True}  # fmt: skip


def _choose_cases(family: str, every: int) -> Iterator[tuple[Any, Any]]:
    listed = importlib.import_module(f"tests.pairs.{family}").CASES
    for case in listed[::every]:
        if _TRAIN_MODE_ALONE.search(" ".join([case.name, *case.culprits])):
            continue
        pair = case.build()
        if not pair.options.keys() & {"name_map", "torch_optimizer", "torch_scheduler"}:
            yield case, pair


def ask_align(pair: Any) -> Found:
    """Return what `align` finds first."""
    from reprod_align.alignment import align

    report = align(pair.torch_model, pair.paddle_model, pair.inputs, **pair.options)
    if report.passed:
        return None
    return [report.findings[0].torch_name, report.findings[0].paddle_name]


def ask_padiff(pair: Any, rule: str) -> Found:
    """Return what PaDiff reports first, both models in eval mode."""
    from padiff import auto_diff

    pair.torch_model.eval()
    pair.paddle_model.eval()
    losses = [pair.options.get(f"{side}_loss") for side in ("paddle", "torch")]
    places: list[Any] = []
    with _Places(places), redirect_stdout(io.StringIO()):
        same = auto_diff(
            pair.paddle_model,
            pair.torch_model,
            _name_inputs(pair),
            auto_weights=pair.options.get("copy_weights", True),
            options=dict(RULES[rule]),  # PaDiff writes into it
            loss_fn=losses if None not in losses else None,
        )
    if same:
        return None
    paths = {id(layer): path for path, layer in pair.paddle_model.named_sublayers()}
    return [place if isinstance(place, str) else _path_of(place, paths) for place in places[:1]]


def _name_inputs(pair: Any) -> list[dict[str, Any]]:
    """Return the inputs as PaDiff takes them: by keyword, for Paddle and for PyTorch."""
    import paddle
    import torch

    if isinstance(pair.inputs, dict):
        makers = paddle.to_tensor, torch.tensor
        return [{name: make(value) for name, value in pair.inputs.items()} for make in makers]
    made = []
    for model, make in ((pair.paddle_model, paddle.to_tensor), (pair.torch_model, torch.tensor)):
        names = inspect.signature(model.forward).parameters
        made.append({name: make(value) for name, value in zip(names, pair.inputs, strict=False)})
    return made


class _Places:
    """Note the layers and parameters that PaDiff reports, in its order, while the block lasts."""

    def __init__(self, places: list[Any]) -> None:
        self._checker, self._places = importlib.import_module("padiff.trainer.Checker"), places

    def __enter__(self) -> None:
        self._own = self._checker.print_info, self._checker.log_file
        self._checker.print_info = self._note_layer
        self._checker.log_file = self._note_parameter

    def __exit__(self, *_error: object) -> None:
        self._checker.print_info, self._checker.log_file = self._own

    def _note_layer(self, *_args: Any, p_root: Any = None, **_given: Any) -> None:
        self._places.append(p_root)

    def _note_parameter(self, _name: str, _mode: str, text: str) -> None:
        found = re.search(r"paddle path:\s+\w+\.(\S+)", text)  # after the model's class
        self._places.append(found[1] if found else "")


def _path_of(node: Any, paths: dict[int, str]) -> str:
    """Return the name of the layer at the marked node; a function's is the layer's around it."""
    while node is not None and id(node.net) not in paths:
        node = node.father
    return "" if node is None else paths[id(node.net)]


def _is_named(case: Any, pair: Any, places: list[str], exactly: bool) -> bool:
    """Tell whether a place is a culprit; PaDiff may name a parameter's layer, or a layer's parameter."""
    if exactly or set(places) & case.culprits:
        return bool(set(places) & case.culprits)
    held = pair.paddle_model.state_dict().keys()
    return bool(_with_owners(places, held) & _with_owners(case.culprits, held))


def _with_owners(names: Iterable[str], parameters: Collection[str]) -> set[str]:
    """Return the names, and for those of parameters the layers that hold them."""
    owners = {name.rpartition(".")[0] for name in names if name in parameters}
    return {*names, *owners} - {""}
