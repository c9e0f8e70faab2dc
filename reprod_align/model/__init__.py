"""One side of a pair: a model, its settings, and the trace of what it computes.

What is built on `align` imports these names; the other names of the modules below are for the engine.
"""

from reprod_align.model.backward import Projection, pair_outputs
from reprod_align.model.functions import UserFunction
from reprod_align.model.local import LocalSide
from reprod_align.model.settings import SYNONYMS, ModuleSettings, OptimizerSettings
from reprod_align.model.side import (
    Inputs,
    ModelFailure,
    ModelInfo,
    RunOptions,
    Side,
    TensorInfo,
    TrainingStep,
    check_inputs,
    name_inputs,
)
from reprod_align.model.source import SourceLine
from reprod_align.model.source.coverage import IdleLines
from reprod_align.model.store import keep_copy, limit_memory
from reprod_align.model.trace import Call, Leaf, LeafPair, Trace, pair_leaves
from reprod_align.model.watch import NO_PINS, Keep, Pin, Pins, Watch

__all__ = [
    "Call",
    "IdleLines",
    "Inputs",
    "Keep",
    "Leaf",
    "LeafPair",
    "LocalSide",
    "ModelFailure",
    "ModelInfo",
    "ModuleSettings",
    "NO_PINS",
    "OptimizerSettings",
    "Pin",
    "Pins",
    "Projection",
    "RunOptions",
    "SYNONYMS",
    "Side",
    "SourceLine",
    "TrainingStep",
    "TensorInfo",
    "Trace",
    "UserFunction",
    "Watch",
    "check_inputs",
    "keep_copy",
    "limit_memory",
    "name_inputs",
    "pair_leaves",
    "pair_outputs",
]
