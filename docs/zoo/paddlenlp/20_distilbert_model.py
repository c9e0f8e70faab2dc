"""DistilBertModel: Paddle's TransformerEncoderLayer drops out the attention's output."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import DistilBertConfig, DistilBertModel

paddle.seed(0)
config = DistilBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40
)
model = DistilBertModel(config)
model.eval()
got = model.encoder.layers[0].dropout1.p
expected = 0.0
print("rate of the dropout after the attention, where DistilBERT has none")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
