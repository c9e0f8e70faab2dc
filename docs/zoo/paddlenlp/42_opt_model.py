"""OPTModel: Padding is given a position."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import OPTConfig, OPTModel

paddle.seed(0)
config = OPTConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=40,
    word_embed_proj_dim=32, intermediate_size=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)
model = OPTModel(config)
model.eval()
table = model.embeddings.position_embeddings
numbers = paddle.arange(42, dtype='float32')
table.weight.set_value(numbers.unsqueeze(1).expand([42, 32]))
taken = table(paddle.to_tensor([[1, 1, 0, 0]]))[0, :, 0]
rows = [int(row) - table.offset for row in taken]
got = rows
expected = [0, 1, -1, -1]
print("positions of a padded row (attention_mask 1 1 0 0)")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
