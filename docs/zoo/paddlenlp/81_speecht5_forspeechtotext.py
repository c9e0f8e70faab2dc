"""SpeechT5FeatureEncoder: A typing error, stop_gradiet."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import SpeechT5Config, SpeechT5ForSpeechToText

paddle.seed(0)
config = SpeechT5Config(
    vocab_size=100, hidden_size=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, conv_dim=(16, 16), conv_stride=(4,
    2), conv_kernel=(8, 2), num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, num_mel_bins=8,
    speech_decoder_prenet_units=16, speech_decoder_postnet_units=16, speaker_embedding_dim=16,
    encoder_max_relative_position=8, encoder_layerdrop=0.0, decoder_layerdrop=0.0, apply_spec_augment=False
)
model = SpeechT5ForSpeechToText(config)
model.eval()
layer = next(each for each in model.sublayers() if type(each).__name__ == 'SpeechT5FeatureEncoder')
stopped = []
layer.conv_layers[0].register_forward_pre_hook(
    lambda _, given: stopped.append(given[0].stop_gradient)
)
layer.train()
layer(paddle.ones([1, 400]))
got = stopped
expected = [False]
print("stop_gradient of what the feature encoder's first layer is given in train mode")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
