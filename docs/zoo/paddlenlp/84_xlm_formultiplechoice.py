"""XLMForMultipleChoice: The head is one layer."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import XLMConfig, XLMForMultipleChoice

paddle.seed(0)
config = XLMConfig(
    vocab_size=100, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=40
)
model = XLMForMultipleChoice(config)
model.eval()
got = sum(isinstance(each, paddle.nn.Linear) for each in model.children())
expected = 2
print("linear layers of the head")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
