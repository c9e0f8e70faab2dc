"""Convert PyTorch weights of BERT to Paddle, show every tensor, and prove it by a forward pass.

reads   weights/torch_weight.bin            or --checkpoint FILE: any BERT checkpoint, heads included
        weights/config.json
writes  weights/paddle_weight.pdparams      for models/pd_bert.py
        weights/model_state.pdparams        with --target paddlenlp: under PaddleNLP's official names
"""

from argparse import ArgumentParser
from pathlib import Path

from pipeline.bert.conversion import convert_checkpoint, verify
from pipeline.bert.exported import read_config, weight_files
from pipeline.run import Run, start
from reprod_align.backends.paddle import write_weights

from tabulate import tabulate

OUTPUTS = {"pd_bert": "paddle_weight.pdparams", "paddlenlp": "model_state.pdparams"}


def add_options(parser: ArgumentParser) -> None:
    """Add this script's own options."""
    parser.add_argument("--target", choices=OUTPUTS, default="pd_bert", help="whose names to use")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="convert this file instead")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write this file instead")


def main(run: Run) -> None:
    """Convert, print one row a tensor, compare both models' outputs in float64, and only then write."""
    checkpoint = run.options.checkpoint or weight_files(run, "torch")[0]
    output = run.options.output or run.home / "weights" / OUTPUTS[run.options.target]
    pair, rows = convert_checkpoint(checkpoint, read_config(run), run.options.target)
    print(tabulate([row.cells() for row in rows], headers=rows[0].HEADERS, disable_numparse=True))
    difference = verify(pair, rows)
    write_weights(output, {row.paddle_name: row.paddle for row in rows})
    print(f"wrote {output}: {len(rows)} tensors")
    print(f"the outputs of both models agree to {difference:.1e} (float64, relative)")


if __name__ == "__main__":
    start(main, __doc__, add_options)
