"""transformers against PaddleNLP: every architecture that both have, with its heads."""

from examples.zoo.pair import Architecture, Pair, image, padded, sequences, tokens, unmasked

import numpy as np

DECODER = dict(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, max_position_embeddings=40,
)  # fmt: skip
ENCODER = dict(DECODER, type_vocab_size=2)
SMALL = dict(ENCODER, embedding_size=16)
VISION = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    image_size=32, patch_size=8,
)  # fmt: skip
TEXT = dict(DECODER, max_position_embeddings=16)
SEQ2SEQ = dict(
    vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40,
    attention_dropout=0.1, activation_dropout=0.1, scale_embedding=False, num_labels=3,
    classifier_dropout=0.1,
)  # fmt: skip
DEPTH = dict(num_encoder_layers=2, num_decoder_layers=2)  # Paddle's names for the same
GPT = dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=40, pad_token_id=0)
T5 = dict(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
FALCON = dict(
    vocab_size=100, hidden_size=32, num_attention_heads=4, parallel_attn=True, multi_query=True
)
MOBILE = dict(SMALL, intra_bottleneck_size=16, num_feedforward_networks=2)
LUKE = dict(ENCODER, entity_vocab_size=20, entity_emb_size=16)
XLNET = dict(vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64)
DEBERTA = dict(
    ENCODER, type_vocab_size=0, relative_attention=True, max_relative_positions=-1,
    pos_att_type=["c2p", "p2c"], position_biased_input=False,
)  # fmt: skip
CLASSIFIERS = "ForSequenceClassification ForTokenClassification ForQuestionAnswering"
HEADS = f"Model ForMaskedLM {CLASSIFIERS}"
CHOICES = f"{HEADS} ForMultipleChoice"
WORDS = "Model ForConditionalGeneration"


def boxes(head: str) -> dict[str, np.ndarray]:
    """Return padded token ids and the boxes (2, 10, 4) in which they stand."""
    corner = np.random.default_rng(1).integers(0, 25, size=(2, 10, 2))
    return {**padded(), "bbox": np.concatenate([corner, corner + 5], -1)}


def captions(head: str) -> dict[str, np.ndarray]:
    """Return token ids that end with 99, and images."""
    ids = tokens()
    ids[:, -1] = 99
    return {"input_ids": ids, "pixel_values": image()}


def described(head: str) -> dict[str, np.ndarray]:
    """Return images and, unless the head takes images alone, token ids."""
    return {"pixel_values": image()} if head == "VisionModel" else captions(head)


def pictures(head: str) -> dict[str, np.ndarray]:
    """Return images."""
    return {"pixel_values": image()}


def speech(head: str) -> dict[str, np.ndarray]:
    """Return waves (2, 400) or token ids, and what the decoder is given."""
    random = np.random.default_rng(0)
    wave = random.standard_normal((2, 400)).astype("float32")
    frames = random.standard_normal((2, 6, 8)).astype("float32")
    first = {"input_ids": padded()["input_ids"], "attention_mask": padded()["attention_mask"]}
    if head == "ForTextToSpeech":
        return {**first, "decoder_input_values": frames}
    return {"input_values": wave, "decoder_input_ids": tokens(7, 3)}


def sounds(head: str) -> dict[str, np.ndarray]:
    """Return token ids and spectrograms (2, 1, 64, 8)."""
    wave = np.random.default_rng(0).standard_normal((2, 1, 64, 8)).astype("float32")
    return {**padded(), "input_features": wave}


ARCHITECTURES = (
    Architecture("albert", "Albert", f"{CHOICES} ForPreTraining=ForPretraining",
                 dict(SMALL, hidden_act="gelu")),
    Architecture("bart", "Bart", f"{WORDS} ForSequenceClassification ForQuestionAnswering",
                 dict(SEQ2SEQ, pad_token_id=1), paddle_only=DEPTH, batch=sequences),
    Architecture("bert", "Bert", f"{CHOICES} ForPreTraining=ForPretraining", ENCODER),
    Architecture("bigbird", "BigBird", f"{CHOICES} ForPreTraining=ForPretraining",
                 dict(ENCODER, hidden_act="gelu", hidden_dropout_prob=0.0),
                 torch_only=dict(attention_type="original_full"),
                 paddle_only=dict(
                     num_layers=2, nhead=4, dim_feedforward=64, activation="gelu", dropout=0.0,
                     attn_dropout=0.1, act_dropout=0.0, attention_type="default_attention",
                     block_size=1, window_size=1, num_global_blocks=1, num_rand_blocks=1),
                 batch=unmasked),
    Architecture("bit", "Bit", "Model ForImageClassification",
                 dict(embedding_size=16, hidden_sizes=[32, 64], depths=[1, 2], num_groups=4),
                 batch=pictures),
    Architecture("blenderbot", "Blenderbot", WORDS, dict(SEQ2SEQ, pad_token_id=0, scale_embedding=True),
                 paddle_only=DEPTH, batch=sequences),
    Architecture("blenderbot_small", "BlenderbotSmall", WORDS, dict(SEQ2SEQ, pad_token_id=0),
                 paddle_only=DEPTH, batch=sequences),
    Architecture("blip", "Blip", "Model ForConditionalGeneration",
                 dict(text_config=dict(TEXT, encoder_hidden_size=32), projection_dim=16,
                      vision_config=dict(VISION, layer_norm_eps=1e-12)), batch=captions),
    Architecture("bloom", "Bloom",
                 "Model ForCausalLM ForSequenceClassification ForTokenClassification",
                 dict(vocab_size=100, hidden_size=32, n_layer=2, n_head=4, pad_token_id=3)),
    Architecture("chineseclip", "ChineseCLIP", "Model",
                 dict(text_config=ENCODER, vision_config=VISION, projection_dim=16),
                 batch=captions),
    Architecture("clap", "Clap", "Model",
                 dict(text_config=ENCODER, projection_dim=16, audio_config=dict(
                     num_mel_bins=8, spec_size=32, hidden_size=32, patch_embeds_hidden_size=16,
                     depths=[1, 1], num_attention_heads=[2, 4], num_hidden_layers=2,
                     window_size=4)), batch=sounds),
    Architecture("clip", "CLIP", "Model",
                 dict(text_config=dict(TEXT, eos_token_id=99), vision_config=VISION,
                      projection_dim=16), batch=captions),
    Architecture("clipseg", "CLIPSeg", "Model",
                 dict(text_config=dict(TEXT, eos_token_id=99), vision_config=VISION,
                      projection_dim=16, extract_layers=[0, 1], reduce_dim=16), batch=captions),
    Architecture("codegen", "CodeGen", "Model ForCausalLM", dict(GPT, rotary_dim=4, n_ctx=40)),
    Architecture("convbert", "ConvBert",
                 "Model ForMaskedLM=Generator ForSequenceClassification ForTokenClassification "
                 "ForQuestionAnswering ForMultipleChoice",
                 dict(SMALL, head_ratio=2, conv_kernel_size=3)),
    Architecture("ctrl", "CTRL", "Model LMHeadModel ForSequenceClassification", dict(GPT, dff=64)),
    Architecture("deberta", "Deberta", f"Model {CLASSIFIERS}", DEBERTA),
    Architecture("deberta_v2", "DebertaV2", f"Model {CLASSIFIERS} ForMultipleChoice", DEBERTA),
    Architecture("distilbert", "DistilBert", HEADS, DECODER,
                 torch_only=dict(hidden_dim=64, seq_classif_dropout=0.1, qa_dropout=0.1)),
    Architecture("dpt", "DPT", "Model",
                 dict(VISION, backbone_out_indices=[0, 1, 0, 1], is_hybrid=False), batch=pictures),
    Architecture("electra", "Electra",
                 f"Model ForMaskedLM=Generator ForPreTraining=Discriminator {CLASSIFIERS} "
                 "ForMultipleChoice", SMALL),
    Architecture("ernie", "Ernie", f"{CHOICES} ForPreTraining=ForPretraining", ENCODER),
    Architecture("ernie_m", "ErnieM", f"Model {CLASSIFIERS} ForMultipleChoice", DECODER),
    Architecture("falcon", "Falcon", "Model ForCausalLM", FALCON, paddle="RW",
                 torch_only=dict(num_hidden_layers=2, new_decoder_architecture=False),
                 paddle_only=dict(n_layer=2, n_head=4)),
    Architecture("fnet", "FNet",
                 f"{CHOICES} ForPreTraining ForNextSentencePrediction",
                 {k: v for k, v in ENCODER.items() if k != "num_attention_heads"}, batch=unmasked),
    Architecture("funnel", "Funnel", f"Model {CLASSIFIERS}",
                 dict(vocab_size=100, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8,
                      d_inner=64)),
    Architecture("gpt", "GPT2",
                 "Model LMHeadModel ForSequenceClassification ForTokenClassification", {},
                 paddle="GPT", torch_only=GPT, paddle_only=dict(DECODER, intermediate_size=128),
                 batch=unmasked),
    Architecture("gptj", "GPTJ", "Model ForCausalLM ForSequenceClassification ForQuestionAnswering",
                 dict(GPT, rotary_dim=4)),
    Architecture("layoutlm", "LayoutLM",
                 "Model ForMaskedLM ForSequenceClassification ForTokenClassification",
                 dict(ENCODER, max_2d_position_embeddings=64), batch=boxes),
    Architecture("llama", "Llama", "Model ForCausalLM", dict(DECODER, num_key_value_heads=2)),
    Architecture("luke", "Luke", "Model ForMaskedLM ForQuestionAnswering", LUKE),
    Architecture("mbart", "MBart", f"{WORDS} ForSequenceClassification ForQuestionAnswering",
                 dict(SEQ2SEQ, pad_token_id=1, scale_embedding=True), paddle_only=DEPTH,
                 batch=sequences),
    Architecture("megatronbert", "MegatronBert",
                 f"{CHOICES} ForPreTraining ForNextSentencePrediction ForCausalLM", ENCODER),
    Architecture("mixtral", "Mixtral", "Model ForCausalLM",
                 dict(DECODER, num_key_value_heads=2, num_local_experts=4),
                 torch_only=dict(experts_implementation="eager")),  # transformers 5's own has no float64
    Architecture("mobilebert", "MobileBert",
                 "Model ForSequenceClassification ForQuestionAnswering ForPreTraining",
                 dict(MOBILE, classifier_activation=True)),
    Architecture("mpnet", "MPNet", CHOICES, dict(ENCODER, layer_norm_eps=1e-12)),
    Architecture("mt5", "MT5", f"{WORDS} EncoderModel",
                 dict(T5, decoder_start_token_id=0, tie_word_embeddings=False),
                 batch=lambda head: padded() if head == "EncoderModel" else sequences(head)),
    Architecture("nezha", "Nezha",
                 f"Model {CLASSIFIERS} ForMultipleChoice ForPreTraining=ForPretraining",
                 dict(ENCODER, max_relative_position=8), paddle="NeZha",
                 paddle_only=dict(use_relative_position=True)),
    Architecture("nystromformer", "Nystromformer", CHOICES,
                 dict(ENCODER, segment_means_seq_len=8, num_landmarks=8, conv_kernel_size=3)),
    Architecture("opt", "OPT", "Model ForCausalLM",
                 dict({k: v for k, v in DECODER.items() if k != "intermediate_size"},
                      word_embed_proj_dim=32),
                 torch_only=dict(ffn_dim=64, dropout=0.0),
                 paddle_only=dict(intermediate_size=64, hidden_dropout_prob=0.0,
                                  attention_probs_dropout_prob=0.0)),
    Architecture("pegasus", "Pegasus", WORDS,
                 dict(SEQ2SEQ, pad_token_id=0, scale_embedding=True, activation_function="relu"),
                 paddle_only=DEPTH, batch=sequences),
    Architecture("prophetnet", "ProphetNet", WORDS,
                 dict(vocab_size=100, hidden_size=32, encoder_ffn_dim=64, decoder_ffn_dim=64,
                      num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
                      num_decoder_attention_heads=4, max_position_embeddings=40,
                      relative_max_distance=16, num_buckets=8), batch=sequences),
    Architecture("reformer", "Reformer", "Model ForMaskedLM ForSequenceClassification "
                 "ForQuestionAnswering",
                 dict(vocab_size=100, hidden_size=32, num_attention_heads=4, attention_head_size=8,
                      feed_forward_size=64, attn_layers=["local", "local"], is_decoder=False,
                      axial_pos_shape=[2, 5], axial_pos_embds_dim=[16, 16],
                      max_position_embeddings=10, local_attn_chunk_length=5, hidden_act="relu",
                      hidden_dropout_prob=0.1, local_attention_probs_dropout_prob=0.1),
                 paddle_only=dict(num_hidden_layers=2)),
    Architecture("rembert", "RemBert", CHOICES,
                 dict(ENCODER, input_embedding_size=16, output_embedding_size=16,
                      classifier_dropout_prob=0.1)),
    Architecture("roberta", "Roberta", f"{CHOICES} ForCausalLM", dict(ENCODER, pad_token_id=1)),
    Architecture("roformer", "RoFormer", f"{CHOICES} ForCausalLM", dict(ENCODER, embedding_size=32)),
    Architecture("speecht5", "SpeechT5", "ForSpeechToText ForTextToSpeech",
                 dict(vocab_size=100, hidden_size=32, encoder_layers=2, decoder_layers=2,
                      encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                      decoder_ffn_dim=64, conv_dim=(16, 16), conv_stride=(4, 2), conv_kernel=(8, 2),
                      num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, num_mel_bins=8,
                      speech_decoder_prenet_units=16, speech_decoder_postnet_units=16,
                      speaker_embedding_dim=16, encoder_max_relative_position=8,
                      encoder_layerdrop=0.0, decoder_layerdrop=0.0, apply_spec_augment=False),
                 batch=speech),
    Architecture("squeezebert", "SqueezeBert",
                 f"Model {CLASSIFIERS}",
                 dict(ENCODER, embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
                      post_attention_groups=1, intermediate_groups=2, output_groups=2)),
    Architecture("t5", "T5", f"{WORDS} EncoderModel", T5,
                 batch=lambda head: padded() if head == "EncoderModel" else sequences(head)),
    Architecture("tinybert", "Bert", "Model ForSequenceClassification ForQuestionAnswering "
                 "ForMultipleChoice", ENCODER, paddle="TinyBert"),
    Architecture("xlm", "XLM", "Model WithLMHeadModel ForSequenceClassification "
                 "ForTokenClassification ForQuestionAnsweringSimple ForMultipleChoice",
                 dict(vocab_size=100, emb_dim=32, n_layers=2, n_heads=4,
                      max_position_embeddings=40)),
    Architecture("xlnet", "XLNet", "Model LMHeadModel ForSequenceClassification "
                 "ForTokenClassification ForMultipleChoice", XLNET,
                 batch=unmasked),
)  # fmt: skip

PAIRS: tuple[Pair, ...] = tuple(pair for one in ARCHITECTURES for pair in one.pairs())
