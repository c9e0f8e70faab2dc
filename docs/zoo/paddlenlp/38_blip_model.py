"""BlipModel: The pooled output of the vision model lacks the second layer norm."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import BlipConfig, BlipModel

paddle.seed(0)
config = BlipConfig(
    text_config={'vocab_size': 100, 'hidden_size': 32, 'num_hidden_layers': 2, 'num_attention_heads': 4,
    'intermediate_size': 64, 'max_position_embeddings': 16, 'encoder_hidden_size': 32}, projection_dim=16,
    vision_config={'hidden_size': 32, 'intermediate_size': 64, 'num_hidden_layers': 2,
    'num_attention_heads': 4, 'image_size': 32, 'patch_size': 8, 'layer_norm_eps': 1e-12}
)
model = BlipModel(config)
model.eval()
calls = []
norm = model.vision_model.post_layernorm
norm.register_forward_post_hook(lambda *_: calls.append(1))
model.vision_model(paddle.zeros([1, 3, 32, 32]))
got = len(calls)
expected = 2
print("times that post_layernorm runs: for the sequence and for the pooled output")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
