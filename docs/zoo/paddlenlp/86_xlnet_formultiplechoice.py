"""XLNetForMultipleChoice: The head returns num_labels numbers a choice in place of one, and without
return_dict the scores are not put into a row for each example."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import XLNetConfig, XLNetForMultipleChoice

paddle.seed(0)
config = XLNetConfig(
    vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64
)
model = XLNetForMultipleChoice(config)
model.eval()
choices = paddle.arange(3, 63).reshape([2, 3, 10])
got = list(model(choices).shape)
expected = [2, 3]
print("shape of the scores of 2 examples with 3 choices")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
