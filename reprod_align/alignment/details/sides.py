"""What the two sides are: their weights, the settings that differ, the inputs, the training curves."""

from collections.abc import Mapping, Sequence

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.pairing import Pairing
from reprod_align.model.side import Inputs, Step
from reprod_align.model.tensor_pair import TensorPair
from reprod_align.page.content import CurvePlot
from reprod_align.report.details import Setting, Weight

import numpy as np

_LONGEST = 60  # characters of a setting


def describe_inputs(inputs: Inputs) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return name, dtype and shape of each array."""
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    arrays = [(str(name), np.asarray(array)) for name, array in named]
    return [(name, str(array.dtype), array.shape) for name, array in arrays]


def add_weights(pairing: Pairing, findings: Findings) -> None:
    """Note every tensor of both models, with and without a counterpart."""
    ours, theirs = pairing.torch.tensors, pairing.paddle.tensors
    found = [
        Weight(
            " + ".join(pair.torch), " + ".join(pair.paddle), ours[pair.torch[0]].shape, _how(pair)
        )
        for pair in pairing.match.pairs
    ]
    found += [Weight(one, "", ours[one].shape, "not paired") for one in pairing.match.torch_left]
    found += [Weight("", one, theirs[one].shape, "not paired") for one in pairing.match.paddle_left]
    findings.report.details.weights = found


def _how(pair: TensorPair) -> str:
    words = "transposed" if any(lay.transposed for lay in pair.lay) else ""
    if not pair.is_fused:
        return words
    parts = "in parts" if len(pair.paddle) > 1 else "joined"
    return f"{parts}, {words}" if words else parts


def add_setting_table(pairing: Pairing, findings: Findings) -> None:
    """Note every setting of paired modules that differs."""
    findings.report.details.settings = [
        Setting(
            ours,
            theirs,
            one.name,
            _shorten(one.torch_value),
            _shorten(one.paddle_value),
            one.conclusive,
        )
        for ours, theirs in pairing.modules.items()
        for one in pairing.compare_settings(ours, theirs)
    ]


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def add_curves(findings: Findings, taken: Sequence[Step], natural: Sequence[Step]) -> None:
    """Note losses and learning rates of the training steps, each side on its own way."""
    steps = list(range(min(len(taken), len(natural))))
    sides = taken[: len(steps)], natural[: len(steps)]
    losses = [[float(step.loss) for step in side] for side in sides]
    curves = [CurvePlot("loss", steps, losses[0], losses[1])]
    if all(step.rates for side in sides for step in side):
        rates = [[float(step.rates[0]) for step in side] for side in sides]
        curves.append(CurvePlot("learning rate", steps, rates[0], rates[1]))
    findings.report.details.curves = curves
