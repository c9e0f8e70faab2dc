"""The stable codes of findings: what continuous integration filters by and tests assert on.

A finding whose cause is known from the table of APIs has the name of that entry
(`reprod-align api layer-norm-epsilon`); any other has one of these, by what differs.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

Kind = Literal[
    "module",
    "own-code",
    "mask",
    "port-raises",
    "outputs",
    "outputs-exchanged",
    "output-missing",
    "output-value",
    "axes-exchanged",
    "nothing-finite",
    "not-comparable",
    "predictions-flip",
    "float32-overflow",
    "kept-state",
    "running-statistics",
    "weight",
    "parameter-unpaired",
    "parameter-tied",
    "parameter-frozen",
    "parameter-gradient",
    "gradient",
    "gradient-cut",
    "input-gradient",
    "loss",
    "loss-gradient",
    "learning-rate",
    "optimizer-setting",
    "update",
    "training-loss",
    "rank-reduction",
    "rank-shard",
    "rank-apart",
    "rank-dropout",
    "rank-data",
]

KINDS: Final[Mapping[Kind, str]] = {
    "module": "A layer gets PyTorch's inputs and gives another output.",
    "own-code": "A module's children agree, and what its own code computes between them does not.",
    "mask": "A module's own code makes another mask, index, constant or input.",
    "port-raises": "The Paddle side raises an error where PyTorch's runs.",
    "outputs": "The outputs differ, and no single module makes the difference.",
    "outputs-exchanged": "An output is another one of PyTorch's.",
    "output-missing": "One side alone has an output.",
    "output-value": "An output that is no tensor differs.",
    "axes-exchanged": "An output holds PyTorch's numbers with its axes in another order.",
    "nothing-finite": "No output holds a finite number on either side.",
    "not-comparable": "No output can be compared.",
    "predictions-flip": "A predicted class is another one although every number is within its tolerance.",
    "float32-overflow": "In float32 the port overflows or gives NaN where PyTorch's float32 is finite.",
    "kept-state": "What a model keeps from call to call differs.",
    "running-statistics": "A running statistic differs after a step in train mode.",
    "weight": "A weight is not PyTorch's.",
    "parameter-unpaired": "A parameter has no counterpart on the other side.",
    "parameter-tied": "A parameter is tied to another on one side alone.",
    "parameter-frozen": "A parameter is trained on one side alone.",
    "parameter-gradient": "A parameter's gradient differs although all values at its module agree.",
    "gradient": "A backward pass gives another gradient.",
    "gradient-cut": "A gradient flows on one side alone.",
    "input-gradient": "The gradient of an input differs.",
    "loss": "The loss of the same outputs differs.",
    "loss-gradient": "The gradient of the loss differs.",
    "learning-rate": "A learning rate differs.",
    "optimizer-setting": "A setting of the optimizers differs.",
    "update": "The same gradients give another update of the weights.",
    "training-loss": "The losses of training steps differ.",
    "rank-reduction": "A gradient is not reduced over the ranks as it should be.",
    "rank-shard": "A rank holds another part of a tensor than its own.",
    "rank-apart": "Ranks hold different numbers where they should hold the same.",
    "rank-dropout": "Ranks draw the same random numbers for different parts, or different ones for the same.",
    "rank-data": "A replica sees other examples than it should.",
}
"""each kind in one sentence"""
assert set(KINDS) == set(get_args(Kind))
