"""Step 5 check: do both sides start from the same distributions? (Guide, section 3.10.)

reads   log_reprod/strict/init_torch.npy, init_paddle.npy
writes  log_reprod/strict/init_diff.log, init_diff.json
exit    0 no difference seen, 1 different, 2 cannot be compared

--table prints instead what each framework's initialisers and layers were measured to draw.
"""

import argparse

from pipeline.run import REPOSITORY, Run, start
from reprod_align.errors import MissingInputError
from reprod_align.initialisation import ALPHA, check_initialisation
from reprod_align.initialisation.family import describe_facts, read_facts
from reprod_align.initialisation.sample import ParameterSample, from_record
from reprod_align.records import load_record


def main(run: Run) -> int:
    """Compare both sides' samples at the level of --alpha, or print the table."""
    if run.options.table:
        print(describe_facts(read_facts()))
        return 0
    log = run.output("init_diff").with_suffix(".log")
    return check_initialisation(read(run, "pt"), read(run, "pd"), log, run.options.alpha)


def read(run: Run, side: str) -> dict[str, ParameterSample]:
    """Return a side's samples; MissingInputError if its model changed since they were drawn."""
    script = f"pipeline/Step5/{side}_init.py"
    record = run.output("init_torch" if side == "pt" else "init_paddle")
    model = REPOSITORY / "models" / f"{side}_bert.py"
    if model.stat().st_mtime_ns > run.require(record, script).stat().st_mtime_ns:
        raise MissingInputError(f"{record} is older than {model}: run {run.command(script)} again")
    return from_record(load_record(record))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this check's own options."""
    parser.add_argument(
        "--alpha", type=float, default=ALPHA, help="chance to refuse a faithful port"
    )
    parser.add_argument(
        "--table", action="store_true", help="print the initialisers' measured facts"
    )


if __name__ == "__main__":
    start(main, __doc__, add_options)
