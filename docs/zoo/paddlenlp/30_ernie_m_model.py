"""ErnieMModel: config.intermediate_size is ignored."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ErnieMConfig, ErnieMModel

paddle.seed(0)
config = ErnieMConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40
)
model = ErnieMModel(config)
model.eval()
got = list(model.encoder.layers[0].linear1.weight.shape)
expected = [config.hidden_size, config.intermediate_size]
print("list(model.encoder.layers[0].linear1.weight.shape)")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
