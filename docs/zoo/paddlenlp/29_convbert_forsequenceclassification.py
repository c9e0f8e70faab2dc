"""ConvBertForSequenceClassification: The head is given the pooler's output, which PyTorch's model does not
have, instead of the first token."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ConvBertConfig, ConvBertForSequenceClassification

paddle.seed(0)
config = ConvBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, embedding_size=16, head_ratio=2, conv_kernel_size=3,
    initializer_range=0.5
)
model = ConvBertForSequenceClassification(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
first = model(ids)
for each in model.convbert.pooler.parameters():
    each.set_value(paddle.zeros_like(each))
second = model(ids)
got = round(float((first - second).abs().max()), 3)
expected = 0.0
print("change of the logits when the pooler's weights become zero")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
