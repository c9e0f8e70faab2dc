"""XLNetClassificationHead: The head drops out its input as well."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import XLNetConfig, XLNetForSequenceClassification

paddle.seed(0)
config = XLNetConfig(
    vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64
)
model = XLNetForSequenceClassification(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
calls = []
model.classifier.dropout.register_forward_post_hook(lambda *_: calls.append(1))
model(ids)
got = len(calls)
expected = 1
print("times that classifier.dropout runs in one forward pass")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
