"""ContextPooler: pooler_hidden_size and pooler_dropout are asked of a configuration whose class does not
define them."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import DebertaConfig, DebertaForSequenceClassification

paddle.seed(0)
config = DebertaConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=0, relative_attention=True, max_relative_positions=-1,
    pos_att_type=['c2p', 'p2c'], position_biased_input=False
)
try:
    DebertaForSequenceClassification(config)
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what DebertaForSequenceClassification(config) raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
