"""Convert PyTorch weights of BERT to Paddle, show every tensor, and prove it by a forward pass.

reads   weights/torch_weight.bin            or --checkpoint FILE: any BERT checkpoint, heads included
        weights/config.json
writes  weights/paddle_weight.pdparams      for models/pd_bert.py
        weights/model_state.pdparams        with --target paddlenlp: under PaddleNLP's official names
"""

from argparse import ArgumentParser
from pathlib import Path

from pipeline.bert.conversion import convert_checkpoint
from pipeline.bert.exported import read_config, weight_files
from pipeline.run import Run, start
from reprod_align.base.text import shorten_path

from tabulate import tabulate

OUTPUTS = {"pd_bert": "paddle_weight.pdparams", "paddlenlp": "model_state.pdparams"}


def add_options(parser: ArgumentParser) -> None:
    """Add this script's own options."""
    parser.add_argument("--target", choices=OUTPUTS, default="pd_bert", help="whose names to use")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="convert this file instead")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write this file instead")


def main(run: Run) -> None:
    """Convert, write once both models' outputs agree in float64, and print one row a tensor."""
    checkpoint = run.options.checkpoint or weight_files(run, "torch")[0]
    output = run.options.output or run.home / "weights" / OUTPUTS[run.options.target]
    rows, agreement = convert_checkpoint(checkpoint, output, read_config(run), run.options.target)
    print(tabulate([row.cells() for row in rows], headers=rows[0].HEADERS, disable_numparse=True))
    print(f"wrote {shorten_path(output)}: {len(rows)} tensors")
    print(agreement)


if __name__ == "__main__":
    start(main, __doc__, add_options)
