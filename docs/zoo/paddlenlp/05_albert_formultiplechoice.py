"""AlbertForMultipleChoice: The classifier's dropout has the rate of the hidden states instead of
classifier_dropout_prob."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import AlbertConfig, AlbertForMultipleChoice

paddle.seed(0)
config = AlbertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, embedding_size=16, hidden_act='gelu',
    classifier_dropout_prob=0.3
)
model = AlbertForMultipleChoice(config)
model.eval()
got = model.dropout.p
expected = config.classifier_dropout_prob
print("model.dropout.p")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
