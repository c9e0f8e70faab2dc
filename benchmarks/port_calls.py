"""Writes PyTorch's own samples of its functions in Paddle, one call at a time, and proves each.

    python -m benchmarks.port_calls [NAME ...] [--json FILE]

The samples are those that PyTorch's tests run: torch.testing's table of operators, in float64, up to four
calls of each as a function and as a method, their gradients too. Needs `pip install expecttest`, which that
table imports.

exit 0 if at least two thirds of the calls are proven
"""

import json
import subprocess
import sys
import types
import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reprod_align.base.console import quieten
from reprod_align.explain.code import Code
from reprod_align.porting.calls.record import CallRecorder, load_noted, number_nodes
from reprod_align.porting.calls.write import write_paddle

from tqdm import tqdm

_MOST = 4  # calls of one operator, evenly among its first samples
_AMONG = 40
_WORKER = "--worker"
_ROW = "row "
_REFUSED = "PyTorch refuses"


def main() -> int:
    """Print how many calls are proven; what ends the process is a row, and the rest goes on."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of operators, as torch.testing names them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows too")
    options = parser.parse_args()
    names = options.names or list(dict.fromkeys(one.name for one in _list_operators()))
    rows = dict(run_apart(names))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    found = Counter(state for calls in rows.values() for state, _ in calls)
    tried = sum(found.values()) - found.pop("PyTorch refuses", 0)
    whole = sum(
        bool(calls) and all(state == "proven" for state, _ in calls) for calls in rows.values()
    )
    print(", ".join(f"{state} {count}" for state, count in found.most_common()))
    print(
        f"{found['proven']} of {tried} calls, {whole} of {len(rows)} operators in all their calls"
    )
    return int(3 * found["proven"] < 2 * tried)


def run_apart(names: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each operator with the state and the text of its calls, tried in processes of their own."""
    left = list(names)
    with tqdm(total=len(left), disable=None) as bar:
        while left:
            words = [sys.executable, "-m", "benchmarks.port_calls", _WORKER, *left]
            with subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as child:
                assert child.stdout is not None
                for line in child.stdout:
                    if not line.startswith(_ROW):
                        continue  # something that a kernel prints
                    yield left.pop(0), json.loads(line.removeprefix(_ROW))
                    bar.update()
            if left:
                yield left.pop(0), [("ended the process", "")]
                bar.update()


def _list_operators() -> Sequence[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def work(names: Sequence[str]) -> None:
    """Print a line of JSON for each operator."""
    quieten()
    warnings.simplefilter("ignore")
    operators: dict[str, list[Any]] = {}
    for one in _list_operators():
        operators.setdefault(one.name, []).append(one)
    for name in names:
        rows = [row for one in operators[name] for row in try_operator(one)]
        print(_ROW + json.dumps(rows), flush=True)


def try_operator(operator: Any) -> Iterator[tuple[str, str]]:
    """Yield the state and the text of each call of one operator."""
    import torch

    torch.manual_seed(0)
    kinds = (torch.float64, torch.int64, torch.bool)
    dtype = next((one for one in kinds if one in operator.dtypes), torch.float64)
    graded = dtype is torch.float64 and operator.supports_autograd
    try:
        given = operator.sample_inputs("cpu", dtype, requires_grad=graded)
        samples = [one for one, _ in zip(given, range(_AMONG), strict=False)]
    except Exception:
        return
    last = operator.name.rpartition(".")[2]
    is_method = "." not in operator.name and operator.method_variant is not None
    for sample in samples[:: max(1, len(samples) // _MOST)][:_MOST]:
        given = []
        texts = [_write(one, given) for one in (sample.input, *sample.args)]
        words = [f"{name}={_write(one, given)}" for name, one in sample.kwargs.items()]
        yield try_call(f"torch.{operator.name}({', '.join(texts + words)})", given)
        if is_method and isinstance(sample.input, torch.Tensor) and hasattr(torch.Tensor, last):
            yield try_call(f"{texts[0]}.{last}({', '.join(texts[1:] + words)})", given)


def _write(value: Any, given: list[Any]) -> str:
    """Return the text of an argument; what is no literal is a variable, whose value is given."""
    import torch

    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, tuple | list):
        parts = ", ".join(_write(one, given) for one in value)
        comma = "," if len(value) == 1 else ""
        return f"({parts}{comma})" if isinstance(value, tuple) else f"[{parts}]"
    given.append(value)
    return f"x{len(given) - 1}"


def try_call(call: str, given: Sequence[Any]) -> tuple[str, str]:
    """Return what becomes of one call, and its text in PyTorch and in Paddle."""
    names = ", ".join(f"x{at}" for at in range(len(given)))
    text = f"import torch\n\n\ndef made({names}):\n    return {call}\n"
    code, recorder, name = Code(text), CallRecorder(), "reprod_align_sample"
    number_nodes(code.tree)
    with TemporaryDirectory() as folder:
        try:
            module: types.ModuleType = load_noted(code, name, Path(folder, "made.py"), recorder)
            module.made(*given)
        except Exception:
            return _REFUSED, call
        finally:
            sys.modules.pop(name, None)
    written = write_paddle(code, recorder.facts, {})
    state = "not written" if written.unknown else "proven" if written.proven else "not proven"
    if any("another gradient" in one for one in written.unproven):
        state = "another gradient"
    return state, f"{call} -> {written.text.rpartition('return ')[2].strip()}"


if __name__ == "__main__":
    if sys.argv[1:2] == [_WORKER]:
        work(sys.argv[2:])
    else:
        sys.exit(main())
