"""TinyBertForMultipleChoice: The number of choices is a setting (num_choices) and not the input's second
axis, as it is in PaddleNLP's ALBERT and RoBERTa."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import TinyBertConfig, TinyBertForMultipleChoice

paddle.seed(0)
config = TinyBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, num_choices=2
)
model = TinyBertForMultipleChoice(config)
model.eval()
choices = paddle.arange(3, 63).reshape([2, 3, 10])
got = list(model(choices).shape)
expected = [2, 3]
print("shape of the scores of 2 examples with 3 choices")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
