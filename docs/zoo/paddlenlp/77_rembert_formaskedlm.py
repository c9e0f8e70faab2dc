"""RemBertLMPredictionHead: The head returns hidden_size numbers a token in place of vocab_size, its inner
size is not output_embedding_size, and its LayerNorm ignores config.layer_norm_eps."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import RemBertConfig, RemBertForMaskedLM

paddle.seed(0)
config = RemBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, input_embedding_size=16, output_embedding_size=16,
    classifier_dropout_prob=0.1
)
model = RemBertForMaskedLM(config)
model.eval()
layer = next(each for each in model.sublayers() if type(each).__name__ == 'RemBertLMPredictionHead')
got = [list(each.weight.shape) for each in (layer.transform, layer.decoder)]
expected = [[32, 16], [16, 100]]
print("shapes of the head: hidden_size, output_embedding_size, vocab_size")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
