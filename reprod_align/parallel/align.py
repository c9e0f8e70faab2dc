"""One call on a pair whose port runs on several ranks: is it faithful to one PyTorch process?

The ranks' parts are put together to whole tensors, and these go to the one judge, `alignment`, in
float64. What putting together hides is judged beside it: ranks that disagree where they should hold
the same. Each finding names the parameter or the module, the ranks, and the axis of the mesh.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from reprod_align.alignment import Findings, judge_in_float64
from reprod_align.errors import ReprodError
from reprod_align.model import Inputs, Side, name_inputs
from reprod_align.pair import PairSpec
from reprod_align.pair.file import PairFile, open_file
from reprod_align.parallel import Mesh, find_order, list_batched, parse_mesh
from reprod_align.parallel.examine import examine
from reprod_align.parallel.launch import TIME_LIMIT, Ranks
from reprod_align.parallel.side import Overheard, ParallelSide
from reprod_align.report import STAGES, Report

import numpy as np

SAME_EXAMPLES: Final = "replicas given the same examples"
"""a fault that is planted here, where the replicas' inputs are divided; the others are on the ranks"""


def align_parallel(
    file: str | Path,
    parallel: str,
    time_limit: float = TIME_LIMIT,
    logs: str | Path | None = None,
    paddle_python: str | None = None,
    ranks: Ranks | None = None,
) -> Report:
    """Compare the PyTorch model of a pair file with its Paddle port on several ranks.

    file: as for `reprod-align pair`. parallel: the ranks, as "tp=2", "dp=2", "tp=2,sp", "dp=2,tp=2".
    time_limit: seconds that the ranks get for one answer. logs: a folder for the ranks' logs.
    paddle_python: an interpreter that has Paddle. ranks: of an earlier call, with the same mesh.
    Raises ReprodError if the pair cannot be judged, or a rank ends, hangs or does not start.
    """
    mesh, path = parse_mesh(parallel), Path(file)
    if ranks is not None and ranks.mesh != mesh:
        raise ReprodError(f"ranks: they run as {ranks.mesh.name}, and {mesh.name} is asked for")
    with ExitStack() as stack:
        pair_file = stack.enter_context(open_file(path, PairFile))
        reference = pair_file.side("torch")
        if ranks is None:
            folder = None if logs is None else Path(logs)
            ranks = stack.enter_context(Ranks(mesh, paddle_python, time_limit, folder))
        return judge_ranks(reference, pair_file, ranks)[0]


class NowhereToPlant(ReprodError):
    """The port has no place for the fault that was to be planted."""


def judge_ranks(
    reference: Side, file: PairFile, ranks: Ranks, fault: str = ""
) -> tuple[Report, str]:
    """Judge the port of a pair file on ranks that run; return the report, and where the fault is.

    fault: planted first, SAME_EXAMPLES or one of `list_rank_faults`. Raises NowhereToPlant where it has
    no place.
    """
    inputs, settings = file.inputs(), file.settings()
    replicas = _find_replicas(file, inputs, ranks.mesh)
    if fault == SAME_EXAMPLES:
        fault, replicas = "", [replicas[0]] * ranks.mesh.dp
    mesh, seen_wrong = _order_replicas(ranks.mesh, inputs, replicas)
    overheard = Overheard(reference)
    port = ParallelSide(ranks, str(file.path.resolve()), overheard, mesh, file.fused(), fault)
    if port.no_place:
        raise NowhereToPlant(port.no_place)
    port.replicas = replicas
    pair = PairSpec(overheard, port, inputs, **settings, further=False, places_only=True)
    report = judge_in_float64(pair)
    examine(pair, port, report)
    if seen_wrong:
        findings = Findings()
        findings.add("forward", "", "", "; ".join(seen_wrong), kind="rank-data")
        report.findings[:0] = findings.report.findings
    report.findings.sort(key=lambda finding: STAGES.index(finding.stage))
    if report.findings:
        report.verdict = "diverges"
    where = "CPUs, gloo" if ranks.stands_in else "GPUs, nccl"
    ran = [f"the port ran on {ranks.mesh.size} ranks ({ranks.mesh.name}; {where})"]
    if ranks.stands_in:
        names = ", ".join(dict.fromkeys(name.lstrip("_") for name in ranks.stands_in))
        ran.append(f"CPU stand-ins took the place of {names}: their kernels were not judged")
    report.remarks = [*ran, *report.remarks, *file.remarks()]
    return report, port.planted


def _find_replicas(file: PairFile, inputs: Inputs, mesh: Mesh) -> Sequence[Inputs]:
    if mesh.dp == 1:
        return ()
    given = file.replica_inputs(inputs, mesh.dp)
    if given:
        return given
    named = name_inputs(inputs)
    batched = list_batched(named)
    size = len(named[batched[0]]) if batched else 1
    if size % mesh.dp:
        raise ReprodError(f"inputs: {size} examples do not divide among {mesh.dp} replicas")
    parts = {name: np.split(named[name], mesh.dp) for name in batched}
    cut = [named | {name: of[replica] for name, of in parts.items()} for replica in range(mesh.dp)]
    return cut if isinstance(inputs, Mapping) else [tuple(one.values()) for one in cut]


def _order_replicas(
    mesh: Mesh, inputs: Inputs, replicas: Sequence[Inputs]
) -> tuple[Mesh, list[str]]:
    """Return the mesh with the order of the examples, and what is wrong with who sees which."""
    if not replicas:
        return mesh, []
    whole = name_inputs(inputs)
    order = find_order(whole, [name_inputs(one) for one in replicas])
    total = next(len(array) for array in whole.values() if array.ndim)
    seen = [*map(int, order)]
    wrong = []
    twice = sorted({n for n in seen if seen.count(n) > 1})
    missing = sorted(set(range(total)) - set(seen))
    if twice:
        rows = len(seen) // len(replicas)
        where = sorted({at // rows for at, n in enumerate(seen) if n in twice})
        wrong.append(f"replicas {where} of dp both see examples {twice}")
    if missing:
        wrong.append(f"no replica sees examples {missing}")
    return replace(mesh, order=order), wrong
