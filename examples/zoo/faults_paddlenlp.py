"""Faults of PaddleNLP 2.8.1's models, each with its remedy."""

from examples.zoo.mending import Fault
from examples.zoo.symptom import (
    IDS,
    MASK,
    MENDED,
    Symptom,
    count_calls,
    count_tables,
    raise_error,
    read,
    see_neighbour,
    see_padding,
    use_pooler,
)

_HEAD = (
    "        self.lm_head_weight = self.create_parameter(\n"
    "            shape=[config.vocab_size, config.d_model],\n"
    "            dtype=self.{0}.shared.weight.dtype,\n"
    "            is_bias=False,\n"
    "        )\n"
)
_HEAD_IN_TWO = (
    "        self.lm_head_weight = self.create_parameter(\n"
    "            shape=[config.vocab_size, config.d_model], "
    "dtype=self.{0}.shared.weight.dtype, is_bias=False\n"
    "        )\n"
)
WORDS = "Model ForConditionalGeneration"
_UNTIED = (
    "The head is a parameter of its own although the configuration says tie_word_embeddings=True: a "
    "checkpoint that stores the table alone leaves the head random, and training moves the two apart"
)
_MASK = (
    "A given attention_mask of two dimensions is added to the scores as it stands, 1 for a token and 0 "
    "for padding: padding is not hidden at all"
)
_INVERTED = (
    "A given attention_mask is multiplied by -1e4 as it stands: "
    "it hides the tokens and shows the padding"
)
_SQUEEZE = (
    "squeeze() without an axis also takes the batch away where it has one example, and the sequence where "
    "it has one token"
)


def _in(
    name: str,
    heads: str,
    what: str,
    *edits: tuple[str, str],
    symptom: Symptom | None = None,
    left: str = "",
) -> Fault:
    """Return a fault of one architecture; `heads` are those that show it."""
    shown = ", ".join(f"{name} {head}" for head in heads.split())
    return Fault(
        shown, f"paddlenlp.transformers.{name}.modeling", what, edits, symptom=symptom, left=left
    )


def _untied(name: str, form: str) -> Fault:
    """Return the fault that a sequence-to-sequence model's head is not its table."""
    tied = f"        self.lm_head_weight = self.{name}.shared.weight\n"
    after = f"        self.{name} = {{}}Model(config)\n"
    class_name = {"bart": "Bart", "mbart": "MBart", "pegasus": "Pegasus"}[name]
    start = after.format(class_name)
    return _in(name, "ForConditionalGeneration", _UNTIED,
               (start + form.format(name), start + tied),
               symptom=read(f"model.lm_head_weight is model.{name}.shared.weight", "True"))  # fmt: skip


def _masked(name: str, heads: str) -> Fault:
    """Return the fault that a mask is not turned into an addend."""
    old = "                attention_mask = attention_mask.unsqueeze(axis=[1, 2])\n"
    new = "                attention_mask = (1 - attention_mask.unsqueeze(axis=[1, 2])) * -1e4\n"
    mended = MENDED if name == "rembert" else ""
    return _in(name, heads, _MASK, (old, new),
               symptom=see_padding("model(x, attention_mask=mask)[0][:, :7]", mended))  # fmt: skip


def _banned(name: str) -> Fault:
    """Return the fault that DeBERTa's softmax fills with -inf."""
    return _in(
        name,
        "Model ForSequenceClassification ForTokenClassification ForQuestionAnswering"
        + (" ForMultipleChoice" if name == "deberta_v2" else ""),
        "Masked scores become -inf: a row that is masked throughout (each padded query) is NaN after the "
        "softmax, where transformers' finfo.min gives equal shares",
        ('-float("inf"), x.dtype)', "paddle.finfo(x.dtype).min, x.dtype)"),
        symptom=read(
            "bool(paddle.isnan(out).any())",
            "False",
            f"{MASK}out = model(ids, attention_mask=mask)[0]",
            "the output has NaN where the input is padded",
        ),
    )


def _two_gradients(name: str) -> Fault:
    """Return the fault that DeBERTa's dropout returns a gradient too many."""
    return _in(
        name,
        "Model ForTokenClassification ForQuestionAnswering ForSequenceClassification"
        + (" ForMultipleChoice" if name == "deberta_v2" else ""),
        "XDropout.backward returns two gradients, and Paddle wants one for each tensor that forward was "
        "given: training raises ValueError",
        (
            "            return grad_output.masked_fill(mask, 0) * ctx.scale, None\n",
            "            return grad_output.masked_fill(mask, 0) * ctx.scale\n",
        ),
        ("            return grad_output, None\n", "            return grad_output\n"),
        symptom=raise_error("model(ids)[0].sum().backward()", f"{IDS}\nmodel.train()"),
    )


def _causal(name: str, heads: str, mask: str) -> Fault:
    """Return the fault that paddle.where is given a mask of floats."""
    return _in(
        name,
        heads,
        "paddle.where takes a condition of booleans, and the mask is a float buffer: the model raises "
        "ValueError on every input with Paddle 3",
        (
            f"causal_mask = self.{mask}[:, :, key_length - query_length : key_length, :key_length]",
            f"causal_mask = self.{mask}[\n"
            '            :, :, key_length - query_length : key_length, :key_length\n        ].astype("bool")',
        ),
        symptom=raise_error(),
    )


FAULTS = (
    _in(
        "albert",
        "ForQuestionAnswering",
        "end_logits is made from start_logits: an answer always ends where it starts",
        (
            "        end_logits = start_logits.squeeze(axis=-1)\n\n        total_loss",
            "        end_logits = end_logits.squeeze(axis=-1)\n\n        total_loss",
        ),
        symptom=read(
            "bool((start == end).all())",
            "False",
            f"{IDS}\nstart, end = model(ids)",
            "start_logits and end_logits are the same",
        ),
    ),
    _in(
        "albert",
        "ForMaskedLM ForPreTraining",
        "The head's LayerNorm ignores config.layer_norm_eps (1e-12) and keeps the default 1e-5",
        (
            "self.layer_norm = nn.LayerNorm(config.embedding_size)\n",
            "self.layer_norm = nn.LayerNorm(config.embedding_size, epsilon=config.layer_norm_eps)\n",
        ),
        symptom=read("model.predictions.layer_norm._epsilon", "config.layer_norm_eps"),
    ),
    _in(
        "albert",
        "ForPreTraining",
        _UNTIED,
        (
            "        self.sop_classifier = AlbertSOPHead(config)\n        self.config = config\n",
            "        self.sop_classifier = AlbertSOPHead(config)\n        self.config = config\n"
            "        self.tie_weights()\n",
        ),
        symptom=count_tables(width=16),
    ),
    _in(
        "albert",
        "ForTokenClassification",
        "The dropout before the classifier is built and never called, and its rate is that of the hidden "
        "states instead of classifier_dropout_prob",
        (
            "        logits = self.classifier(sequence_output)\n\n        loss = None",
            "        logits = self.classifier(self.dropout(sequence_output))\n\n        loss = None",
        ),
        (
            "        self.dropout = nn.Dropout(config.hidden_dropout_prob)\n"
            "        self.classifier = nn.Linear(config.hidden_size, self.num_labels)\n\n"
            "    def forward(\n        self,\n        input_ids,\n        attention_mask=None,\n"
            "        token_type_ids=None,\n        position_ids=None,\n        head_mask=None,\n"
            "        inputs_embeds=None,\n        labels=None,\n        output_hidden_states=False,\n"
            "        output_attentions=False,\n        return_dict=False,\n    ):\n"
            '        r"""\n        The AlbertForTokenClassification',
            "        self.dropout = nn.Dropout(config.classifier_dropout_prob)\n"
            "        self.classifier = nn.Linear(config.hidden_size, self.num_labels)\n\n"
            "    def forward(\n        self,\n        input_ids,\n        attention_mask=None,\n"
            "        token_type_ids=None,\n        position_ids=None,\n        head_mask=None,\n"
            "        inputs_embeds=None,\n        labels=None,\n        output_hidden_states=False,\n"
            "        output_attentions=False,\n        return_dict=False,\n    ):\n"
            '        r"""\n        The AlbertForTokenClassification',
        ),
        symptom=read(
            "bool((model(ids) == model(ids)).all())",
            "False",
            f"{IDS}\nmodel.train()",
            "two passes in train mode give the same, although classifier_dropout_prob=0.5",
            classifier_dropout_prob=0.5,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        ),
    ),
    _in(
        "albert",
        "ForMultipleChoice",
        "The classifier's dropout has the rate of the hidden states instead of classifier_dropout_prob",
        (
            "        self.dropout = nn.Dropout(config.hidden_dropout_prob)\n"
            "        self.classifier = nn.Linear(config.hidden_size, 1)\n",
            "        self.dropout = nn.Dropout(config.classifier_dropout_prob)\n"
            "        self.classifier = nn.Linear(config.hidden_size, 1)\n",
        ),
        symptom=read("model.dropout.p", "config.classifier_dropout_prob", classifier_dropout_prob=0.3),
    ),
    _untied("bart", _HEAD_IN_TWO),
    _untied("mbart", _HEAD_IN_TWO),
    _untied("pegasus", _HEAD),
    _in(
        "blenderbot",
        "Model ForConditionalGeneration",
        "Encoder and decoder have word tables of their own: `shared` is made and never used",
        ("        self.encoder = BlenderbotEncoder(config)\n",
         "        self.encoder = BlenderbotEncoder(config, embed_tokens=self.shared)\n"),
        ("        self.decoder = BlenderbotDecoder(config)\n",
         "        self.decoder = BlenderbotDecoder(config, embed_tokens=self.shared)\n"),
        symptom=count_tables(),
    ),
    _in(
        "blenderbot",
        "Model ForConditionalGeneration",
        f"{_INVERTED}; the decoder is given no mask but that of the padding's id",
        ("            attention_mask = attention_mask.unsqueeze([1, 2]) * -1e4\n",
         "            attention_mask = (1 - attention_mask.unsqueeze([1, 2])) * -1e4\n"),
        ("        if input_ids is not None:\n            memory_mask = (\n",
         "        if attention_mask is not None:\n"
         "            memory_mask = (1 - attention_mask.unsqueeze([1, 2])) * -1e4\n"
         "        elif input_ids is not None:\n            memory_mask = (\n"),
        symptom=see_padding("model(x, mask, decoder_input_ids=ids)"),
    ),
    _in(
        "blenderbot",
        "ForConditionalGeneration",
        _UNTIED,
        ("        self.pad_token_id = config.pad_token_id\n" + _HEAD.format("blenderbot"),
         "        self.pad_token_id = config.pad_token_id\n"
         "        self.lm_head_weight = self.blenderbot.shared.weight\n"),
        symptom=read("model.lm_head_weight is model.blenderbot.shared.weight", "True"),
    ),
    _in(
        "blenderbot_small",
        "Model ForConditionalGeneration",
        _INVERTED,
        ("            attention_mask = attention_mask.unsqueeze([1, 2]) * -1e4\n",
         "            attention_mask = (1 - attention_mask.unsqueeze([1, 2])) * -1e4\n"),
        ("            memory_mask = attention_mask.unsqueeze([1, 2]) * -1e4\n",
         "            memory_mask = (1 - attention_mask.unsqueeze([1, 2])) * -1e4\n"),
        symptom=see_padding("model(x, mask, decoder_input_ids=ids)"),
    ),
    _in(
        "blenderbot_small",
        "ForConditionalGeneration",
        _UNTIED,
        ("        self.blenderbot_small = BlenderbotSmallModel(config)\n"
         + _HEAD.format("blenderbot_small") + "\n        if",
         "        self.blenderbot_small = BlenderbotSmallModel(config)\n"
         "        self.lm_head_weight = self.blenderbot_small.shared.weight\n\n        if"),
        symptom=read("model.lm_head_weight is model.blenderbot_small.shared.weight", "True"),
    ),
    _causal("codegen", "Model ForCausalLM", "causal_mask"),
    _causal("gptj", "Model ForCausalLM ForSequenceClassification ForQuestionAnswering", "bias"),
    _banned("deberta"),
    _banned("deberta_v2"),
    _two_gradients("deberta"),
    _two_gradients("deberta_v2"),
    _in(
        "distilbert",
        "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering",
        "Paddle's TransformerEncoderLayer drops out the attention's output; DistilBERT does not",
        ("        self.encoder = nn.TransformerEncoder(encoder_layer, config.num_hidden_layers)\n",
         "        self.encoder = nn.TransformerEncoder(encoder_layer, config.num_hidden_layers)\n"
         "        for layer in self.encoder.layers:\n"
         "            layer.dropout1 = nn.Dropout(0.0)\n"),
        symptom=read(
            "model.encoder.layers[0].dropout1.p",
            "0.0",
            what="rate of the dropout after the attention, where DistilBERT has none",
        ),
    ),
    _in(
        "distilbert",
        "ForMaskedLM",
        _UNTIED,
        ("        self.vocab_projector = nn.Linear(config.hidden_size, config.vocab_size)\n",
         "        self.vocab_bias = self.create_parameter([config.vocab_size], is_bias=True)\n"),
        ("        prediction_logits = self.vocab_projector(prediction_logits)\n",
         "        table = self.distilbert.embeddings.word_embeddings.weight\n"
         "        prediction_logits = paddle.matmul(prediction_logits, table, transpose_y=True)\n"
         "        prediction_logits = prediction_logits + self.vocab_bias\n"),
        symptom=count_tables(),
    ),
    _in(
        "electra",
        "ForPreTraining",
        _SQUEEZE,
        ("self.dense_prediction(hidden_states).squeeze()",
         "self.dense_prediction(hidden_states).squeeze(-1)"),
        symptom=read("list(model(ids[:1]).shape)", "[1, 10]", IDS),
    ),
    _in(
        "fnet",
        "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForMultipleChoice "
        "ForPreTraining ForNextSentencePrediction ForQuestionAnswering",
        "The Fourier transform runs over the batch as well: an example's output depends on its neighbours",
        ("        self.fourier_transform = paddle.fft.fftn\n",
         "        self.fourier_transform = lambda x: paddle.fft.fftn(x, axes=(1, 2))\n"),
        symptom=see_neighbour("model(x)[0][:1]"),
    ),
    _masked("megatronbert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification "
            "ForQuestionAnswering ForMultipleChoice ForPreTraining ForNextSentencePrediction "
            "ForCausalLM"),
    _in("roberta", "ForSequenceClassification",
        "The words are dropped out once more before the head, which drops them out itself",
        ("        sequence_output = outputs[0]\n\n"
         "        sequence_output = self.dropout(sequence_output)\n"
         "        logits = self.classifier(sequence_output)\n\n"
         "        loss = None\n        if labels is not None:\n"
         "            if self.config.num_labels == 1:",
         "        sequence_output = outputs[0]\n\n"
         "        logits = self.classifier(sequence_output)\n\n"
         "        loss = None\n        if labels is not None:\n"
         "            if self.config.num_labels == 1:"),
        symptom=count_calls("dropout", 0)),
    _in("rembert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification "
        "ForQuestionAnswering ForMultipleChoice",
        "The attention's output layer is given the pair of values and probabilities: the model raises "
        "ValueError on every input",
        ("        attention_output = self.output(self_outputs, hidden_states)\n",
         "        attention_output = self.output(self_outputs[0], hidden_states)\n"),
        symptom=raise_error()),
    _masked("rembert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification "
            "ForQuestionAnswering ForMultipleChoice"),
    _in("clap", "Model",
        "The batch norm's momentum is PyTorch's 0.1, which in Paddle keeps a tenth of the old mean in place "
        "of nine tenths",
        ("nn.BatchNorm2D(config.num_mel_bins, momentum=0.1)", "nn.BatchNorm2D(config.num_mel_bins)"),
        symptom=read(
            "model.audio_model.audio_encoder.batch_norm._momentum",
            "0.9",
            what="momentum of the batch norm, 0.1 in PyTorch's convention",
        ),
        left="bicubic interpolation with align_corners=True computes its ratio in float32 in Paddle's "
        "kernel, 1.3e-5 in float64"),
    _in("convbert", "ForSequenceClassification",
        "The head is given the pooler's output, which PyTorch's model does not have, instead of the first "
        "token: published weights leave the pooler random",
        ("        pooled_output = outputs[1]\n        logits = self.classifier(pooled_output)\n\n"
         "        loss = None\n        if labels is not None:\n            if self.config.problem_type",
         "        logits = self.classifier(outputs[0][:, 0])\n\n"
         "        loss = None\n        if labels is not None:\n            if self.config.problem_type"),
        symptom=use_pooler("convbert")),
    _in("ernie_m", "Model ForSequenceClassification ForTokenClassification ForQuestionAnswering "
        "ForMultipleChoice",
        "config.intermediate_size is ignored: the feed-forward part is always four times as wide",
        ("dim_feedforward=4 * config.hidden_size,", "dim_feedforward=config.intermediate_size,"),
        symptom=read(
            "list(model.encoder.layers[0].linear1.weight.shape)",
            "[config.hidden_size, config.intermediate_size]",
        )),
    Fault("falcon ForCausalLM", "paddlenlp.transformers.rw.modeling", _UNTIED,
          (("        self.lm_head = CausalLMHead(config.vocab_size, config.hidden_size, "
            "bias_attr=False)\n",
            "        self.lm_head = CausalLMHead(config.vocab_size, config.hidden_size, "
            "bias_attr=False)\n"
            "        self.lm_head.weight = self.transformer.word_embeddings.weight\n"),),
        symptom=count_tables()),
    _in("fnet", "ForMaskedLM ForPreTraining ForNextSentencePrediction",
        "Without return_dict the base model returns a tuple, which is indexed with a name: the model raises "
        "TypeError unless return_dict=True",
        ("        return prediction_scores, seq_relationship_score, outputs[\"all_hidden_states\"]\n",
         "        return prediction_scores, seq_relationship_score, *outputs[2:]\n"),
        ("        return prediction_scores, outputs[\"all_hidden_states\"]\n",
         "        return (prediction_scores, *outputs[2:])\n"),
        ("        return seq_relationship_score, outputs[\"all_hidden_states\"]\n",
         "        return (seq_relationship_score, *outputs[2:])\n"),
        symptom=raise_error()),
    _in("fnet", "ForQuestionAnswering",
        "The constructor asks for num_labels beside the configuration, so that from_pretrained and every "
        "caller of the other heads' kind raise TypeError",
        ("    def __init__(self, config: FNetConfig, num_labels):\n"
         "        super(FNetForQuestionAnswering, self).__init__(config)\n"
         "        self.num_labels = num_labels\n",
         "    def __init__(self, config: FNetConfig):\n"
         "        super(FNetForQuestionAnswering, self).__init__(config)\n"
         "        self.num_labels = config.num_labels\n"),
        symptom=raise_error("FNetForQuestionAnswering(config)", "", make="")),
    _in("layoutlm", "ForMaskedLM", _UNTIED,
        ("        self.cls = LayoutLMOnlyMLMHead(config)\n",
         "        self.cls = LayoutLMOnlyMLMHead(config)\n"
         "        table = self.layoutlm.embeddings.word_embeddings.weight\n"
         "        self.cls.predictions.decoder.weight = table\n"),
        symptom=count_tables()),
    _in("luke", "Model ForMaskedLM ForQuestionAnswering",
        "The layer norms' epsilon is a constant, 1e-6, where the published configurations say 1e-12",
        ("layer_norm_eps = 1e-6\n", "layer_norm_eps = 1e-12\n"),
        symptom=read(
            "model.embeddings.layer_norm._epsilon", "config.layer_norm_eps", layer_norm_eps=1e-12
        )),
    _in("luke", "ForMaskedLM",
        "Without entities the head is given None, and raises ValueError: entity_ids are optional by the "
        "signature",
        ("        entity_logits = self.entity_predictions(outputs[1])\n\n"
         "        return logits, entity_logits\n",
         "        if entity_ids is None:\n            return logits\n\n"
         "        return logits, self.entity_predictions(outputs[1])\n"),
        symptom=raise_error()),
    _in("megatronbert", "ForMaskedLM ForCausalLM ForPreTraining", _UNTIED,
        *(
            (f"        super(MegatronBert{head}, self).__init__(config)\n\n"
             "        self.megatronbert = MegatronBertModel(config)\n"
             f"        self.cls = MegatronBert{made}(config)\n",
             f"        super(MegatronBert{head}, self).__init__(config)\n\n"
             "        self.megatronbert = MegatronBertModel(config)\n"
             f"        self.cls = MegatronBert{made}(config)\n"
             "        table = self.megatronbert.embeddings.word_embeddings.weight\n"
             "        self.cls.predictions.decoder_weight = table\n")
            for head, made in (("ForMaskedLM", "OnlyMLMHead"), ("ForCausalLM", "OnlyMLMHead"),
                               ("ForPreTraining", "PreTrainingHeads"))
        ),
        symptom=count_tables()),
    _in("blip", "Model",
        "The pooled output of the vision model lacks the second layer norm",
        ("        pooled_output = last_hidden_state[:, 0, :]\n",
         "        pooled_output = self.post_layernorm(last_hidden_state[:, 0, :])\n"),
        symptom=read(
            "len(calls)",
            "2",
            "calls = []\nnorm = model.vision_model.post_layernorm\n"
            "norm.register_forward_post_hook(lambda *_: calls.append(1))\n"
            "model.vision_model(paddle.zeros([1, 3, 32, 32]))",
            "times that post_layernorm runs: for the sequence and for the pooled output",
        )),
    _in("mixtral", "Model ForCausalLM",
        "paddle.where returns vectors since Paddle 3, so an expert's weights have one axis and do not "
        "multiply its rows: the model raises ValueError",
        ("routing_weights[top_x, idx]\n", "routing_weights[top_x, idx].unsqueeze(-1)\n"),
        symptom=raise_error()),
    _in("mobilebert", "ForPreTraining", _UNTIED,
        ("        self.decoder = nn.Linear(config.embedding_size, config.vocab_size)\n",
         "        self.decoder_bias = self.create_parameter([config.vocab_size], is_bias=True)\n"),
        ("        hidden_states += self.decoder.bias\n",
         "        hidden_states += self.decoder_bias\n"),
        ("        param_concat = paddle.concat([self.decoder.weight, self.dense.weight.t()], axis=0)\n",
         "        param_concat = paddle.concat([self.table.t(), self.dense.weight.t()], axis=0)\n"),
        ("        self.cls = MobileBertPreTrainingHeads(config)\n",
         "        self.cls = MobileBertPreTrainingHeads(config)\n"
         "        self.cls.predictions.table = self.mobilebert.embeddings.word_embeddings.weight\n"),
        symptom=count_tables(width=8, embedding_size=8)),
    _in("nystromformer", "ForMaskedLM", _UNTIED,
        ("        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias_attr=False)\n",
         ""),
        ("shape=(config.vocab_size,), dtype=self.decoder.weight.dtype)\n",
         "shape=(config.vocab_size,), dtype=self.transform.dense.weight.dtype)\n"),
        ("        self.decoder.bias = self.bias\n\n    def forward(self, hidden_states: Tensor):\n"
         "        hidden_states = self.transform(hidden_states)\n"
         "        hidden_states = self.decoder(hidden_states)\n",
         "    def forward(self, hidden_states: Tensor):\n"
         "        hidden_states = self.transform(hidden_states)\n"
         "        hidden_states = paddle.matmul(hidden_states, self.table, transpose_y=True)\n"
         "        hidden_states = hidden_states + self.bias\n"),
        ("        self.nystromformer = NystromformerModel(config)\n"
         "        self.cls = NystromformerOnlyMLMHead(config)\n",
         "        self.nystromformer = NystromformerModel(config)\n"
         "        self.cls = NystromformerOnlyMLMHead(config)\n"
         "        table = self.nystromformer.embeddings.word_embeddings.weight\n"
         "        self.cls.predictions.table = table\n"),
        symptom=count_tables()),
    _in("opt", "Model ForCausalLM",
        "Padding is given a position: transformers sets it to -1 before the offset, and so a padded row "
        "differs there",
        ("        position_ids = paddle.cumsum(paddle.cast(attention_mask, \"int64\"), axis=-1) - 1\n",
         "        mask = paddle.cast(attention_mask, \"int64\")\n"
         "        position_ids = paddle.cumsum(mask, axis=-1) * mask - 1\n"),
        symptom=read(
            "rows",
            "[0, 1, -1, -1]",
            "table = model.embeddings.position_embeddings\n"
            "numbers = paddle.arange(42, dtype='float32')\n"
            "table.weight.set_value(numbers.unsqueeze(1).expand([42, 32]))\n"
            "taken = table(paddle.to_tensor([[1, 1, 0, 0]]))[0, :, 0]\n"
            "rows = [int(row) - table.offset for row in taken]",
            "positions of a padded row (attention_mask 1 1 0 0)",
        )),
    _in("opt", "ForCausalLM", _UNTIED,
        ("        self.lm_head = OPTLMHead(\n            config,\n        )\n",
         "        table = self.opt.embeddings.word_embeddings.weight\n"
         "        self.lm_head = OPTLMHead(config, table)\n"),
        symptom=count_tables()),
    _in("prophetnet", WORDS,
        "The mask is tiled example by example, and the heads lie example after example: with more than one "
        "example, an example's heads are given the masks of others",
        ("                paddle.tile(\n"
         "                    1.0 - attention_mask.unsqueeze(1), "
         "repeat_times=[self.config.num_encoder_attention_heads, 1, 1]\n                )\n",
         "                paddle.repeat_interleave(\n"
         "                    1.0 - attention_mask.unsqueeze(1), "
         "self.config.num_encoder_attention_heads, axis=0\n                )\n"),
        ("                - paddle.tile(\n"
         "                    encoder_attention_mask[:, None, :], "
         "repeat_times=[self.config.num_decoder_attention_heads, 1, 1]\n                )\n",
         "                - paddle.repeat_interleave(\n"
         "                    encoder_attention_mask[:, None, :], "
         "self.config.num_decoder_attention_heads, axis=0\n                )\n"),
        symptom=see_neighbour(
            "model.encoder(x, mask[: len(x)])[:1]", "mask = paddle.ones([2, 10])\nmask[1, 3:] = 0\n"
        )),
    _in("prophetnet", "ForConditionalGeneration", _UNTIED,
        ("        self.lm_head = Linear_wo_bias(config.hidden_size, config.vocab_size)\n", ""),
        ("        predicting_streams = paddle.reshape(outputs[1], (batch_size, self.config.ngram, "
         "sequence_length, -1))\n        predict_logits = self.lm_head(predicting_streams)\n",
         "        predicting_streams = paddle.reshape(outputs[1], (batch_size, self.config.ngram, "
         "sequence_length, -1))\n        table = self.prophetnet.word_embeddings.weight\n"
         "        predict_logits = paddle.matmul(predicting_streams, table, transpose_y=True)\n"),
        symptom=count_tables()),
    _in("mpnet", "ForSequenceClassification",
        "The head lacks the dropout before its dense layer: it classifies with the pooler instead",
        ("        _, pooled_output = self.mpnet(input_ids, position_ids=position_ids, "
         "attention_mask=attention_mask)\n        pooled_output = self.dropout(pooled_output)\n\n"
         "        logits = self.classifier(pooled_output)\n",
         "        words, _ = self.mpnet(input_ids, position_ids=position_ids, "
         "attention_mask=attention_mask)\n        first = self.dropout(words[:, :1])\n"
         "        pooled_output = self.dropout(self.mpnet.pooler(first))\n\n"
         "        logits = self.classifier(pooled_output)\n"),
        symptom=count_calls("dropout", 2)),
)  # fmt: skip
