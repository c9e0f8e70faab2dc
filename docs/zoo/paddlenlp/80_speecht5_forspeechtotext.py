"""SpeechT5ForSpeechToText: masked_fill returns its result, which is dropped."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers.speecht5.modeling import _make_causal_mask

paddle.seed(0)
mask = _make_causal_mask([1, 3], paddle.float32)[0, 0]
got = (mask == 0).astype('int64').tolist()
expected = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
print("which of three positions each may attend to")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
