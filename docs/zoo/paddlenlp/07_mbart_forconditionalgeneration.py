"""MBartForConditionalGeneration: The head is a parameter of its own although the configuration says
tie_word_embeddings=True."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import MBartConfig, MBartForConditionalGeneration

paddle.seed(0)
config = MBartConfig(
    vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40,
    attention_dropout=0.1, activation_dropout=0.1, scale_embedding=True, num_labels=3,
    classifier_dropout=0.1, pad_token_id=1, num_encoder_layers=2, num_decoder_layers=2
)
model = MBartForConditionalGeneration(config)
model.eval()
got = model.lm_head_weight is model.mbart.shared.weight
expected = True
print("model.lm_head_weight is model.mbart.shared.weight")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
