"""transformers against PaddleFormers 1.2.0: to be run on a GPU, where paddlefleet's kernels exist."""

from examples.zoo.pair import Architecture, Pair
from examples.zoo.transformers_table import DECODER

GROUPED = dict(DECODER, num_key_value_heads=2)
HEADS = "Model ForCausalLM"

ARCHITECTURES = (
    Architecture("llama", "Llama", HEADS, GROUPED),
    Architecture("qwen2", "Qwen2", HEADS, GROUPED),
    Architecture("qwen3", "Qwen3", HEADS, dict(GROUPED, head_dim=8)),
    Architecture("phi3", "Phi3", HEADS, dict(GROUPED, pad_token_id=0)),
)
PAIRS: tuple[Pair, ...] = tuple(pair for one in ARCHITECTURES for pair in one.pairs())
