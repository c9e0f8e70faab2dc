"""Other releases of transformers and PaddleNLP: a pair of each kind that the main table has.

Encoders, decoders, both in one, images, images with words, experts; about half of them with a known fault.
"""

from collections.abc import Mapping
from typing import Final

from examples.zoo import transformers_table

NAMES = (
    "albert ForQuestionAnswering",
    "bart ForConditionalGeneration",
    "bert ForMultipleChoice",
    "bert Model",
    "bit ForImageClassification",
    "clip Model",
    "distilbert Model",
    "electra ForTokenClassification",
    "ernie Model",
    "gpt LMHeadModel",
    "llama ForCausalLM",
    "mixtral ForCausalLM",
    "roberta ForSequenceClassification",
    "t5 ForConditionalGeneration",
    "xlnet Model",
)
NOTES: Final[Mapping[str, str]] = {
    "clip Model": "since transformers 5 the pooled output that CLIPModel returns is projected; logits and "
    "embeddings agree",
}
PAIRS = tuple({pair.name: pair for pair in transformers_table.PAIRS}[name] for name in NAMES)
