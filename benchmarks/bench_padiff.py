"""`align` beside PaDiff's `auto_diff`: time and memory on a bert-base, and what each finds in the suite.

    python benchmarks/bench_padiff.py                  (--rounds 3, --layers 12, --every 8, --part bert|suite)

Needs `pip install padiff==0.2.0`, best in an environment of its own: it patches both frameworks.

Both tools get the same pairs in the same run, in turns, each turn in a process of its own: PaDiff
patches PyTorch and Paddle when it is imported. What is timed is the tool's one call. PaDiff runs in
eval mode, forward and backward, in float32 with its default rule (means, rtol 1e-7) and with a
stricter one (every element, rtol and atol 1e-4); `align` does what it always does: eval and train
mode, in float64, and the search for the culprit.

The suite's part is every n-th case of its families that PaDiff can run: no optimizer, no names to be
mapped, and no fault that only train mode shows. A culprit is named if the first place that a tool
names is one of the case's; of PaDiff, the marked layer or the first parameter listed.
"""

import argparse
import importlib
import inspect
import io
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

TOOLS = ("align", "padiff", "padiff strict")
RULES = {
    "padiff": {},
    "padiff strict": {"compare_mode": "strict", "rtol": 1e-4, "atol": 1e-4},
}
FAMILIES = ("bert", "cnn", "mlp", "norms", "embedding", "encoder", "rnn")
TRAIN_MODE_ALONE = re.compile("drop|train|eval|momentum|running|optimi|decay|schedul", re.I)
BATCH, LENGTH = 2, 64


# -------------------------------------------------------------------- one tool, one pair


def judge(tool: str, pair: Any) -> dict[str, Any]:
    """Run the tool on the pair: seconds, whether it flags the pair, and the first place it names."""
    if tool == "align":
        return _with_align(pair)
    return _with_padiff(pair, RULES[tool])


def _with_align(pair: Any) -> dict[str, Any]:
    from reprod_align.alignment import align

    began = _clocks()
    report = align(pair.torch_model, pair.paddle_model, pair.inputs, **pair.options)
    taken = _since(began)
    first = report.findings[0] if report.findings else None
    places = [first.torch_name, first.paddle_name] if first else []
    return {**taken, "flagged": not report.passed, "places": places}


def _with_padiff(pair: Any, rule: dict[str, Any]) -> dict[str, Any]:
    from padiff import auto_diff

    pair.torch_model.eval()
    pair.paddle_model.eval()
    losses = [pair.options.get(f"{side}_loss") for side in ("paddle", "torch")]
    named, places, said = _named_inputs(pair), [], io.StringIO()
    with _places_into(places), redirect_stdout(said):
        began = _clocks()
        same = auto_diff(
            pair.paddle_model,
            pair.torch_model,
            named,
            auto_weights=pair.options.get("copy_weights", True),
            options=dict(rule),  # PaDiff writes into it
            loss_fn=losses if None not in losses else None,
        )
        taken = _since(began)
    paths = {id(layer): path for path, layer in pair.paddle_model.named_sublayers()}
    named_places = [p if isinstance(p, str) else _path_of(p, paths) for p in places]
    return {**taken, "flagged": not same, "places": named_places[:1]}


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(began: tuple[float, float]) -> dict[str, float]:
    """Return the seconds passed since, and those that the processor worked: a busy machine shows."""
    now = _clocks()
    return {"seconds": now[0] - began[0], "work": now[1] - began[1]}


def _named_inputs(pair: Any) -> list[dict[str, Any]]:
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


class _places_into:
    """Note the layers and parameters that PaDiff reports, in its order, while the block lasts."""

    def __init__(self, places: list[Any]) -> None:
        self._checker, self._places = importlib.import_module("padiff.trainer.Checker"), places

    def __enter__(self) -> None:
        self._own = self._checker.print_info, self._checker.log_file
        self._checker.print_info = self._info
        self._checker.log_file = self._log

    def __exit__(self, *_error: object) -> None:
        self._checker.print_info, self._checker.log_file = self._own

    def _info(self, *_args: Any, p_root: Any = None, **_given: Any) -> None:
        self._places.append(p_root)

    def _log(self, _name: str, _mode: str, text: str) -> None:
        found = re.search(r"paddle path:\s+\w+\.(\S+)", text)  # after the model's class
        self._places.append(found[1] if found else "")


def _path_of(node: Any, paths: dict[int, str]) -> str:
    """Return the name of the layer at the marked node; a function's is the layer's around it."""
    while node is not None and id(node.net) not in paths:
        node = node.father
    return "" if node is None else paths[id(node.net)]


# -------------------------------------------------------------------- what is run


def bert_base(layers: int) -> Any:
    """Return the project's BERT pair in bert-base's shape, of so many layers, with random weights."""
    from models import pd_bert, pt_bert
    from models.bert_config import BertConfig
    from tests.pairs.case import Pair

    import paddle
    import torch

    torch.manual_seed(0)
    paddle.seed(0)
    config = BertConfig(num_hidden_layers=layers, num_labels=2)
    models = [part.BertForSequenceClassification(config) for part in (pt_bert, pd_bert)]
    ids = np.random.default_rng(0).integers(1, config.vocab_size, (BATCH, LENGTH))
    mask = np.ones_like(ids)
    mask[1, LENGTH // 2 :] = 0
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return Pair(*models, inputs)


def cases(family: str, every: int) -> Iterator[tuple[Any, Any]]:
    """Yield every n-th case of the family that PaDiff can run, and its pair."""
    listed = importlib.import_module(f"tests.pairs.{family}").CASES
    for case in listed[::every]:
        if TRAIN_MODE_ALONE.search(" ".join([case.name, *case.culprits])):
            continue
        pair = case.build()
        if not pair.options.keys() & {"name_map", "torch_optimizer", "torch_scheduler"}:
            yield case, pair


def work(tool: str, what: str, number: int, out: Path) -> None:
    """Run one tool on one part; write its results as JSON. number: layers, or every n-th case."""
    if tool != "align":
        sys.path.insert(0, str(out.parent))  # where PaDiff makes, and empties, a folder diff_log
        import padiff  # noqa: F401  it must come before the frameworks that it patches
    if what == "base":
        pair = bert_base(number)
        before = _peak()
        result = judge(tool, pair) | {"before": before, "peak": _peak()}
        out.write_text(json.dumps([result]))
        return
    results = [_on_case(tool, case, pair) for case, pair in cases(what, number)]
    out.write_text(json.dumps(results))


def _on_case(tool: str, case: Any, pair: Any) -> dict[str, Any]:
    known = {"name": case.name, "faulty": bool(case.culprits)}
    try:
        result = judge(tool, pair)
    except Exception as error:  # a tool that can't judge a case is a result too
        return known | {"error": f"{type(error).__name__}: {str(error)[:80]}"}
    return known | result | {"named": _is_named(tool, case, pair, result["places"])}


def _is_named(tool: str, case: Any, pair: Any, places: list[str]) -> bool:
    """Tell whether a place is a culprit; PaDiff may name a parameter's layer, or a layer's parameter."""
    exact = bool(set(places) & case.culprits)
    if tool == "align":
        return exact
    held = pair.paddle_model.state_dict().keys()
    ours, theirs = _with_owners(places, held), _with_owners(case.culprits, held)
    return exact or bool(ours & theirs)


def _with_owners(names: Iterable[str], parameters: Collection[str]) -> set[str]:
    """Return the names, and for those of parameters the layers that hold them."""
    owners = {name.rpartition(".")[0] for name in names if name in parameters}
    return {*names, *owners} - {""}


def _peak() -> float:
    """Return the process' largest resident memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# -------------------------------------------------------------------- the run


def turn(tool: str, what: str, number: int) -> list[dict[str, Any]]:
    """Let a process of its own run the tool on one part, and return the results."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        words = [sys.executable, __file__, "--tool", tool, "--what", what, "--out", str(out)]
        done = subprocess.run(
            [*words, "--number", str(number)], capture_output=True, text=True, env=_environment()
        )
        if done.returncode:
            raise SystemExit(f"{tool} on {what}: {done.stderr[-500:]}")
        results: list[dict[str, Any]] = json.loads(out.read_text())
        return results


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": root, "PADIFF_CUDA_MEMORY": "OFF"}


def time_bert(rounds: int, layers: int) -> None:
    """Print seconds and memory on bert-base, medians of turns."""
    taken: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    for _ in range(rounds):
        for tool in TOOLS:
            taken[tool] += turn(tool, "base", layers)
    print(
        f"bert-base with {layers} layers, random weights, {BATCH} x {LENGTH}, {rounds} turn(s) each:"
    )
    for tool, results in taken.items():
        seconds, work, before, peak = (
            statistics.median(one[key] for one in results)
            for key in ("seconds", "work", "before", "peak")
        )
        ratio = _ratio(results, taken["padiff"])
        said = "flags it" if results[0]["flagged"] else "passes it"
        print(f"  {tool:<14} {seconds:7.1f} s, {work:7.1f} s of work ({ratio:.1f} x padiff)  "
              f"peak {peak:.1f} GiB, of which before the call {before:.1f}; {said}")  # fmt: skip
    print(f"  load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, one thread each")


def _ratio(results: list[dict[str, Any]], others: list[dict[str, Any]]) -> float:
    """Return the median ratio of the work of two tools on the same parts, each of the same turn."""
    return statistics.median(
        one["work"] / other["work"] for one, other in zip(results, others, strict=True)
    )


def compare_suite(every: int) -> None:
    """Print what each tool catches, names and wrongly flags, and the time per case."""
    found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    for family in FAMILIES:
        for tool in TOOLS:
            found[tool] += turn(tool, family, every)
        print(f"so far, with {family}:", file=sys.stderr)
        for tool, results in found.items():
            print(f"  {tool:<14} {_summary(results)}", file=sys.stderr)
    print(f"\nevery {every}th case of {', '.join(FAMILIES)}, where PaDiff can run it:")
    for tool, results in found.items():
        print(f"  {tool:<14} {_summary(results)}")
    for tool, results in found.items():
        print(f"  {tool:<14} {_times(results, found['padiff'])}")
    for tool, results in found.items():
        _exceptions(tool, results)


def _summary(results: list[dict[str, Any]]) -> str:
    faulty = [one for one in results if one["faulty"]]
    correct = [one for one in results if not one["faulty"]]
    caught, named, flagged = (sum(bool(one.get(key)) for one in some) for some, key in
                              ((faulty, "flagged"), (faulty, "named"), (correct, "flagged")))  # fmt: skip
    errors = sum("error" in one for one in results)
    return (f"bugs caught {caught} of {len(faulty)}, culprit named first {named}, correct pairs "
            f"flagged {flagged} of {len(correct)}, cases it can't judge {errors}")  # fmt: skip


def _times(results: list[dict[str, Any]], padiff: list[dict[str, Any]]) -> str:
    both = [(one, other) for one, other in zip(results, padiff, strict=True)
            if "error" not in one and "error" not in other]  # fmt: skip
    if not both:
        return "no case that both can judge"
    own, others = [one for one, _ in both], [other for _, other in both]
    work = statistics.median(one["work"] for one in own)
    return f"{work:.2f} s of work a case (median), {_ratio(own, others):.1f} x padiff"


def _exceptions(tool: str, results: list[dict[str, Any]]) -> None:
    judged = [one for one in results if "error" not in one]
    missed = [one["name"] for one in judged if one["faulty"] and not one["flagged"]]
    wrong = [one["name"] for one in judged if not one["faulty"] and one["flagged"]]
    failed = [f"{one['name']} ({one['error']})" for one in results if "error" in one]
    print(f"  {tool}: missed {missed}; wrongly flagged {wrong}; not judged {failed}")


def main() -> None:
    """Run both parts, or one tool's turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="turns on bert-base")
    parser.add_argument("--layers", type=int, default=12, help="of bert-base")
    parser.add_argument("--every", type=int, default=8, help="every n-th case of the suite")
    parser.add_argument("--part", choices=("bert", "suite"), help="only this part")
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    for word in ("--tool", "--what", "--out"):
        parser.add_argument(word, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tool:
        work(options.tool, options.what, options.number, Path(options.out))
        return
    if find_spec("padiff") is None:
        raise SystemExit("PaDiff is missing; install it with: pip install padiff==0.2.0")
    if options.part != "suite":
        time_bert(options.rounds, options.layers)
    if options.part != "bert":
        compare_suite(options.every)


if __name__ == "__main__":
    main()
