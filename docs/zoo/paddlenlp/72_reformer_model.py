"""ReformerEmbeddings: The words are dropped out after the positions are added, together with them."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ReformerConfig, ReformerModel

paddle.seed(0)
config = ReformerConfig(
    vocab_size=100, hidden_size=32, num_attention_heads=4, attention_head_size=8, feed_forward_size=64,
    attn_layers=['local', 'local'], is_decoder=False, axial_pos_shape=[2, 5], axial_pos_embds_dim=[16, 16],
    max_position_embeddings=10, local_attn_chunk_length=5, hidden_act='relu', hidden_dropout_prob=0.5,
    local_attention_probs_dropout_prob=0.1, num_hidden_layers=2
)
model = ReformerModel(config)
model.eval()
ids = paddle.arange(3, 13).reshape([1, 10])
layer = model.embeddings
layer.word_embeddings.weight.set_value(paddle.zeros([100, 32]))
layer.training = True  # positions alone, and their own dropout in eval mode
out = layer(ids)
got = round(float((out == 0).astype('float32').mean()), 1)
expected = 0.0
print("share of the position embeddings that the words' dropout makes zero")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
