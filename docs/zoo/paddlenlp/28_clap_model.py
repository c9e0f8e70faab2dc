"""ClapModel: The batch norm's momentum is PyTorch's 0.1, which in Paddle keeps a tenth of the old mean in
place of nine tenths."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ClapConfig, ClapModel

paddle.seed(0)
config = ClapConfig(
    text_config={'vocab_size': 100, 'hidden_size': 32, 'num_hidden_layers': 2, 'num_attention_heads': 4,
    'intermediate_size': 64, 'max_position_embeddings': 40, 'type_vocab_size': 2}, projection_dim=16,
    audio_config={'num_mel_bins': 8, 'spec_size': 32, 'hidden_size': 32, 'patch_embeds_hidden_size': 16,
    'depths': [1, 1], 'num_attention_heads': [2, 4], 'num_hidden_layers': 2, 'window_size': 4}
)
model = ClapModel(config)
model.eval()
got = model.audio_model.audio_encoder.batch_norm._momentum
expected = 0.9
print("momentum of the batch norm, 0.1 in PyTorch's convention")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
