"""RemBertForMultipleChoice: The number of choices is a setting (num_choices) and not the input's second
axis, as it is in PaddleNLP's ALBERT and RoBERTa."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import RemBertConfig, RemBertForMultipleChoice

paddle.seed(0)
config = RemBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, input_embedding_size=16, output_embedding_size=16,
    classifier_dropout_prob=0.1, num_choices=2
)
model = RemBertForMultipleChoice(config)
model.eval()
for each in model.sublayers():  # report 26 mended, so that the model runs
    if type(each).__name__ == "RemBertSelfOutput":
        each.register_forward_pre_hook(lambda _, x: (x[0][0] if type(x[0]) is tuple else x[0], x[1]))
choices = paddle.arange(3, 63).reshape([2, 3, 10])
got = list(model(choices).shape)
expected = [2, 3]
print("shape of the scores of 2 examples with 3 choices")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
