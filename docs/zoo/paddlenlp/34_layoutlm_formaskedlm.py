"""LayoutLMForMaskedLM: The head is a parameter of its own although the configuration says
tie_word_embeddings=True."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import LayoutLMConfig, LayoutLMForMaskedLM

paddle.seed(0)
config = LayoutLMConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, max_2d_position_embeddings=64
)
model = LayoutLMForMaskedLM(config)
model.eval()
got = sum(sorted(each.shape) == [32, 100] for each in model.parameters())
expected = 1
print("parameters of the tied table's size, 100 x 32")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
