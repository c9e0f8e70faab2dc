"""BlenderbotSmallModel: A given attention_mask is multiplied by -1e4 as it stands."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import BlenderbotSmallConfig, BlenderbotSmallModel

paddle.seed(0)
config = BlenderbotSmallConfig(
    vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40,
    attention_dropout=0.1, activation_dropout=0.1, scale_embedding=False, num_labels=3,
    classifier_dropout=0.1, pad_token_id=0, num_encoder_layers=2, num_decoder_layers=2
)
model = BlenderbotSmallModel(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
other = paddle.concat([ids[:, :7], ids[:, 7:] + 30], 1)  # other words under the padding
mask = paddle.concat([paddle.ones([2, 7], "int64"), paddle.zeros([2, 3], "int64")], 1)
first, second = [model(x, mask, decoder_input_ids=ids) for x in (ids, other)]
got = round(float((first - second).abs().max()), 3)
expected = 0.0
print("change of the output when the words under the padding change")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
