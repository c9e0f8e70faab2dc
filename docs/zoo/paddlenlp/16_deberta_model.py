"""DebertaModel: Masked scores become -inf."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import DebertaConfig, DebertaModel

paddle.seed(0)
config = DebertaConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=0, relative_attention=True, max_relative_positions=-1,
    pos_att_type=['c2p', 'p2c'], position_biased_input=False
)
model = DebertaModel(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
other = paddle.concat([ids[:, :7], ids[:, 7:] + 30], 1)  # other words under the padding
mask = paddle.concat([paddle.ones([2, 7], "int64"), paddle.zeros([2, 3], "int64")], 1)
out = model(ids, attention_mask=mask)[0]
got = bool(paddle.isnan(out).any())
expected = False
print("the output has NaN where the input is padded")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
