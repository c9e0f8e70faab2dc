"""LukeModel: The layer norms' epsilon is a constant, 1e-6, where the published configurations say 1e-12."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import LukeConfig, LukeModel

paddle.seed(0)
config = LukeConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, entity_vocab_size=20, entity_emb_size=16,
    layer_norm_eps=1e-12
)
model = LukeModel(config)
model.eval()
got = model.embeddings.layer_norm._epsilon
expected = config.layer_norm_eps
print("model.embeddings.layer_norm._epsilon")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
