"""RoFormerForMultipleChoice: The head is given the pooler's output, dropped out."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import RoFormerConfig, RoFormerForMultipleChoice

paddle.seed(0)
config = RoFormerConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, embedding_size=32, initializer_range=0.5, num_choices=2
)
model = RoFormerForMultipleChoice(config)
model.eval()
ids = paddle.arange(3, 23).reshape([1, 2, 10])
first = model(ids)
for each in model.roformer.pooler.parameters():
    each.set_value(paddle.zeros_like(each))
second = model(ids)
got = round(float((first - second).abs().max()), 3)
expected = 0.0
print("change of the logits when the pooler's weights become zero")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
