"""RemBertModel: A given attention_mask of two dimensions is added to the scores as it stands, 1 for a token
and 0 for padding."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import RemBertConfig, RemBertModel

paddle.seed(0)
config = RemBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, input_embedding_size=16, output_embedding_size=16,
    classifier_dropout_prob=0.1
)
model = RemBertModel(config)
model.eval()
for each in model.sublayers():  # report 26 mended, so that the model runs
    if type(each).__name__ == "RemBertSelfOutput":
        each.register_forward_pre_hook(lambda _, x: (x[0][0] if type(x[0]) is tuple else x[0], x[1]))
ids = paddle.arange(3, 23).reshape([2, 10])
other = paddle.concat([ids[:, :7], ids[:, 7:] + 30], 1)  # other words under the padding
mask = paddle.concat([paddle.ones([2, 7], "int64"), paddle.zeros([2, 3], "int64")], 1)
first, second = [model(x, attention_mask=mask)[0][:, :7] for x in (ids, other)]
got = round(float((first - second).abs().max()), 3)
expected = 0.0
print("change of the output when the words under the padding change")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
