"""Which faults of a parallel run would the user's inputs reveal? They are planted on the ranks one by one."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from reprod_align.base.console import track
from reprod_align.errors import ReprodError
from reprod_align.model import Side
from reprod_align.pair.file import PairFile, open_file
from reprod_align.parallel import parse_mesh
from reprod_align.parallel.align import SAME_EXAMPLES, NowhereToPlant, judge_ranks
from reprod_align.parallel.launch import TIME_LIMIT, Ranks
from reprod_align.selftest import NO_EFFECT, NO_REASON, FaultOutcome, SelfTest, shorten
from reprod_align.selftest.ranks import list_rank_faults


def selftest_parallel(
    file: str | Path, parallel: str, time_limit: float = TIME_LIMIT, logs: str | Path | None = None
) -> SelfTest:
    """Plant known faults in the port of a pair file on its ranks; say which of them are revealed.

    The arguments are those of `align_parallel`, which compares each. The file makes its port anew for
    every fault. Raises ReprodError as `align_parallel` does, unless a planted fault is the reason.
    """
    mesh = parse_mesh(parallel)
    with open_file(Path(file), PairFile) as pair_file, ExitStack() as stack:
        reference = pair_file.side("torch")
        start = partial(Ranks, mesh, None, time_limit, None if logs is None else Path(logs))
        ranks = stack.enter_context(start())
        unbroken, _ = judge_ranks(reference, pair_file, ranks)
        if not unbroken.passed:
            return SelfTest(unbroken, [])
        faults = list_rank_faults(mesh.axes) + [SAME_EXAMPLES] * (mesh.dp > 1)
        outcomes = []
        for fault in track(faults, "planting faults"):
            if ranks.broken is not None:  # by the fault before
                stack.close()
                ranks = stack.enter_context(start())
            outcomes.append(_try_fault(reference, pair_file, ranks, fault))
        return SelfTest(unbroken, outcomes)


def _try_fault(reference: Side, file: PairFile, ranks: Ranks, fault: str) -> FaultOutcome:
    try:
        report, place = judge_ranks(reference, file, ranks, fault)
    except NowhereToPlant as nowhere:
        return FaultOutcome(fault, "", None, str(nowhere))
    except ReprodError as error:
        return FaultOutcome(fault, "", True, shorten(f"the comparison stops: {error}"))
    if report.findings:
        return FaultOutcome(fault, place, True, shorten(str(report.findings[0])))
    if not any(ranks.ask("acted")):
        return FaultOutcome(fault, place, None, NO_EFFECT, without_effect=True)
    return FaultOutcome(fault, place, False, NO_REASON)
