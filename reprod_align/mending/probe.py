"""A quick look at an edit: does it change anything at the modules at fault, on the reference's numbers?

One forward pass of the port tells, a tenth of what the pair's judgement takes. What it turns down would
not have mended the fault; what it lets pass is judged.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.faults import list_differences
from reprod_align.alignment.locating.pinning import ReferencePins, run_pinned
from reprod_align.alignment.pair_models import pair_models
from reprod_align.alignment.runner import Runner
from reprod_align.errors import ReprodError
from reprod_align.explain.overlay import NotAppliedError
from reprod_align.explain.trials import Texts
from reprod_align.mending.bench import Bench, Fault
from reprod_align.model.side import ModelFailure

Known = Mapping[tuple[object, ...], float]
"""what differs -> how far float32 inside may leave it apart when it is gone"""


@dataclass(frozen=True)
class Probe:
    """The port's run on the reference's numbers, in eval mode, and what differs there."""

    bench: Bench
    runner: Runner
    run: PinnedRun
    known: Known

    def may_mend(self, texts: Texts) -> bool:
        """Tell whether any of the differences is gone with these texts, as far as can be told."""
        try:
            with self.bench.port_with(texts) as port, ExitStack() as stack:
                stack.enter_context(port.working("float64", self.bench.widened, at_rest=True))
                if port.describe().tensors.keys() != self.runner.pairing.paddle.tensors.keys():
                    return True  # no value is known for a new one: the pair's judgement tells
                runner = replace(self.runner, port=port, moved=set())
                runner.load_port()
                pins = ReferencePins(self.run.counterparts, self.run.reference, constants=False)
                trace = runner.run_port(False, "all", pins, backward=False)
                left = list_differences(replace(self.run, port=trace))
                stays = {one.key for one in left if one.gap.relative > self.known.get(one.key, 0.0)}
                return not self.known.keys() <= stays
        except (NotAppliedError, ModelFailure):
            return False
        except Exception:  # other modules, other tensors: the pair's judgement tells
            return True


def make_probe(bench: Bench, texts: Texts, fault: Fault) -> Probe | None:
    """Return the probe of a fault of the forward pass in eval mode; None where there is none."""
    if fault[0] != "forward":
        return None
    try:
        with bench.port_with(texts) as port, ExitStack() as stack:
            stack.enter_context(bench.reference.working("float64", bench.widened))
            stack.enter_context(port.working("float64", bench.widened, at_rest=True))
            given, findings = bench.pair, Findings()
            runner = pair_models(given.reference, port, given.inputs, "float64", given.name_map,
                                 given.copy_weights, findings)  # fmt: skip
            done = compare_pass(runner, runner.expected, False, until_one_differs=True)
            if done.outputs_ok:
                return None
            run, _ = run_pinned(runner, done)
            known = {fault.key: fault.residue for fault in list_differences(run)}
            return Probe(bench, runner, run, known) if known else None
    except (NotAppliedError, ModelFailure, ReprodError):
        return None
