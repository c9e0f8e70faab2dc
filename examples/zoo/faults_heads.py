"""Further faults of PaddleNLP 2.8.1's models, most of them in the heads, each with its remedy."""

from examples.zoo.mending import Fault
from examples.zoo.symptom import (
    CHOICES,
    FIND,
    IDS,
    MENDED,
    Symptom,
    count_calls,
    count_tables,
    raise_error,
    read,
    see_neighbour,
    use_pooler,
)

_CHOICES = (
    "The number of choices is a setting (num_choices) and not the input's second axis, as it is in "
    "PaddleNLP's ALBERT and RoBERTa: with num_choices=2 and three or four choices the scores of several "
    "examples are put into rows of two, without an error"
)
_TOKEN = (
    "The head is given the pooler's output, dropped out; PyTorch's is given the last token's own: published "
    "weights leave the pooler random"
)
_HEAD = (
    "The head is a dropout and one layer on the pooler's output; PyTorch's is dropout, dense, {0}, dropout "
    "and a projection on the first token: a published head has no place to go, and the pooler stays random"
)
_UNTIED = (
    "The head is a parameter of its own although the configuration says tie_word_embeddings=True: a "
    "checkpoint that stores the table alone leaves the head random, and training moves the two apart"
)
_RATE = (
    "The dropout before the classifier has the rate of the hidden states instead of "
    "classifier_dropout_prob"
)


def _in(
    name: str,
    head: str,
    what: str,
    *edits: tuple[str, str],
    within: str = "",
    symptom: Symptom | None = None,
    left: str = "",
) -> Fault:
    """Return a fault of one head, or of several, separated by commas, in one class or in the module."""
    shown = ", ".join(f"{name} {each}" for each in head.split(", "))
    module = f"paddlenlp.transformers.{name}.modeling"
    return Fault(shown, module, what, edits, within=within, symptom=symptom, left=left)


def _choices(name: str, prefix: str, form: str = "shape=") -> Fault:
    """Return the fault that a head for multiple choice takes the number of choices from the settings."""
    flat = f"input_ids = input_ids.reshape({form}(-1, input_ids.shape[-1]))"
    put = f"logits.reshape({form}(-1, self.num_choices))"
    return _in(name, "ForMultipleChoice", _CHOICES,
               (put, f"logits.reshape({form}(-1, num_choices))"),
               (flat, f"num_choices, {flat.replace(' = ', ' = input_ids.shape[1], ', 1)}"),
               within=f"{prefix}ForMultipleChoice",
               symptom=read("list(model(choices).shape)", "[2, 3]",
                            f"{MENDED if name == 'rembert' else ''}{CHOICES}",
                            "shape of the scores of 2 examples with 3 choices", num_choices=2))  # fmt: skip


def _classify(name: str, prefix: str, head: str, layer: str, function: str) -> Fault:
    """Return the fault that a classifier is the pooler and one layer."""
    hidden = "config.hidden_size"
    made = f"        self.{layer} = nn.Linear({hidden}, {head})\n"
    dense = f"        self.dense = nn.Linear({hidden}, {hidden})\n"
    return _in(name, "ForSequenceClassification", _HEAD.format("GELU"),
               (made, f"{dense}{made}"),
               ("        pooled_output = outputs[1]\n", "        pooled_output = outputs[0][:, 0]\n"),
               (f"        logits = self.{layer}(pooled_output)\n",
                f"        pooled_output = {function}(self.dense(pooled_output))\n"
                f"        logits = self.{layer}(self.dropout(pooled_output))\n"),
               within=f"{prefix}ForSequenceClassification", symptom=use_pooler(name))  # fmt: skip


def _take_last(name: str, prefix: str) -> Fault:
    """Return the fault that a head for multiple choice uses the pooler."""
    return _in(name, "ForMultipleChoice", _TOKEN,
               ("        pooled_output = outputs[1]\n", "        pooled_output = outputs[0][:, -1]\n"),
               ("        pooled_output = self.dropout(pooled_output)\n", ""),
               within=f"{prefix}ForMultipleChoice",
               symptom=use_pooler(name, "[1, 2, 10]", num_choices=2))  # fmt: skip


FAULTS = (
    _choices("bert", "Bert"),
    _choices("bigbird", "BigBird"),
    _choices("convbert", "ConvBert", ""),
    _choices("electra", "Electra", ""),
    _choices("ernie", "Ernie"),
    _choices("ernie_m", "ErnieM"),
    _choices("mpnet", "MPNet"),
    _choices("nezha", "NeZha", ""),
    _choices("rembert", "RemBert"),
    _choices("roformer", "RoFormer", ""),
    _choices("tinybert", "TinyBert"),
    _take_last("convbert", "ConvBert"),
    _take_last("roformer", "RoFormer"),
    _classify("roformer", "RoFormer", "config.num_labels", "classifier",
              "get_activation(self.config.hidden_act)"),
    _classify("bigbird", "BigBird", "self.num_labels", "linear",
              "getattr(nn.functional, self.config.activation)"),
    _in("bigbird", "ForMaskedLM, ForPreTraining",
        "The decoder is a Linear whose bias nobody adds, beside decoder_bias: dead numbers in each "
        "checkpoint, and the bias of PyTorch's decoder has two places to go",
        ("self.decoder = nn.Linear(config.vocab_size, config.hidden_size)",
         "self.decoder = nn.Linear(config.vocab_size, config.hidden_size, bias_attr=False)"),
        within="BigBirdLMPredictionHead",
        symptom=read(
            "[name for name in model.state_dict() if 'decoder' in name and 'bias' in name]",
            "['lm_head.decoder_bias']",
            what="biases of the decoder in a checkpoint",
        )),
    _in("bigbird", "ForPreTraining", _UNTIED,
        ("        self.cls = BigBirdPretrainingHeads(config)\n",
         "        self.cls = BigBirdPretrainingHeads(config)\n"
         "        self.cls.predictions.decoder.weight = self.bigbird.embeddings.word_embeddings.weight\n"),
        within="BigBirdForPretraining",
        symptom=count_tables()),
    _in("bigbird", "ForQuestionAnswering",
        "The head is one layer; PyTorch's has a block of its own before it (BigBirdIntermediate and "
        "BigBirdOutput, which the port has too and does not use), marks the question by token types and bars "
        "its positions (prepare_question_mask, unused as well)",
        ('        self.classifier = nn.Linear(self.bigbird.config["hidden_size"], 2)\n',
         '        self.classifier = nn.Linear(self.bigbird.config["hidden_size"], 2)\n'
         "        self.intermediate = BigBirdIntermediate(config)\n"
         "        self.output = BigBirdOutput(config)\n"
         "        self.output.LayerNorm = nn.LayerNorm(config.hidden_size, epsilon=1e-12)\n"),
        ("        outputs = self.bigbird(\n",
         "        ends = (input_ids == self.config.sep_token_id).astype(\"int64\")\n"
         "        lengths = paddle.argmax(ends, axis=-1, keepdim=True) + 1\n"
         "        question = self.prepare_question_mask(lengths, input_ids.shape[1]).astype(\"int64\")\n"
         "        if token_type_ids is None:\n            token_type_ids = 1 - question\n"
         "        question[:, 0] = 0\n"
         "        outputs = self.bigbird(\n"),
        ("        logits = self.classifier(sequence_output)\n",
         "        hidden = self.intermediate(self.dropout(sequence_output))\n"
         "        logits = self.classifier(self.output(hidden, sequence_output))\n"
         "        logits = logits - question.unsqueeze(2).astype(logits.dtype) * 1e6\n"),
        within="BigBirdForQuestionAnswering",
        symptom=read(
            "bool((start[:, 1:3] < -1e5).all())",
            "True",
            f"{IDS}\nids[:, 3] = config.sep_token_id  # ends the question\nstart, end = model(ids)",
            "the question's own tokens are barred as answers",
        )),
    _in("deberta", "ForSequenceClassification",
        "pooler_hidden_size and pooler_dropout are asked of a configuration whose class does not define "
        "them: one that does not name them raises AttributeError",
        ("config.pooler_hidden_size if config.pooler_hidden_size is not None else config.hidden_size",
         'getattr(config, "pooler_hidden_size", None) or config.hidden_size'),
        ("StableDropout(config.pooler_dropout)", 'StableDropout(getattr(config, "pooler_dropout", 0))'),
        within="ContextPooler",
        symptom=raise_error("DebertaForSequenceClassification(config)", "", make="")),
    _in("fnet", "ForPreTraining", _UNTIED,
        ("        self.cls = FNetPreTrainingHeads(config)\n",
         "        self.cls = FNetPreTrainingHeads(config)\n        self.tie_weights()\n"),
        within="FNetForPreTraining",
        symptom=count_tables()),
    _in("fnet", "ForQuestionAnswering",
        "end_logits is made from start_logits: an answer always ends where it starts",
        ("        end_logits = start_logits.squeeze(axis=-1)\n",
         "        end_logits = end_logits.squeeze(axis=-1)\n"),
        within="FNetForQuestionAnswering",
        symptom=Symptom(
            "start_logits and end_logits are the same",
            "bool((start == end).all())",
            "False",
            f"{IDS}\nstart, end = model(ids)",
            make="try:\n    model = FNetForQuestionAnswering(config)\n"
            "except TypeError:  # report 33\n"
            "    model = FNetForQuestionAnswering(config, 2)\nmodel.eval()",
        )),
    _in("funnel", "Model, ForTokenClassification, ForQuestionAnswering",
        "Without return_dict encoder and decoder return tuples, which are asked for names: the model raises "
        "AttributeError unless return_dict=True",
        ("                return_dict=return_dict,\n            )\n        decoder_outputs",
         "                return_dict=True,\n            )\n        decoder_outputs"),
        ("            return_dict=return_dict,\n        )\n        if not return_dict:",
         "            return_dict=True,\n        )\n        if not return_dict:"),
        within="FunnelModel",
        symptom=raise_error()),
    _in("luke", "ForMaskedLM",
        "The entities' head is a parameter of its own; PyTorch's is the entities' table",
        ("        self.decoder = nn.Linear(config.entity_emb_size, config.entity_vocab_size)\n",
         "        self.bias = self.create_parameter([config.entity_vocab_size], is_bias=True)\n"),
        ("        hidden_states = self.decoder(hidden_states)\n",
         "        hidden_states = paddle.matmul(hidden_states, self.table, transpose_y=True) + self.bias\n"),
        ("        self.entity_predictions = EntityPredictionHead(config)\n",
         "        self.entity_predictions = EntityPredictionHead(config)\n"
         "        self.entity_predictions.table = self.luke.entity_embeddings.entity_embeddings.weight\n"),
        symptom=count_tables(20, 16)),
    _in("prophetnet", "Model, ForConditionalGeneration",
        "The streams that predict lie as (ngram, batch, time) and are reshaped, not transposed, to "
        "(ngram, time, batch): with more than one example, an example's relative positions are weighted with "
        "the words of others",
        ("        predict_hidden_states = paddle.reshape(\n"
         "            paddle.concat(hidden_states_predict_list, axis=0), "
         "(self.ngram, sequence_length, batch_size, hidden_size)\n        )\n",
         "        predict_hidden_states = paddle.stack(hidden_states_predict_list, axis=0)\n"
         "        predict_hidden_states = paddle.transpose(predict_hidden_states, (0, 2, 1, 3))\n"),
        within="ProphetNetNgramSelfAttention",
        symptom=see_neighbour("model(x, decoder_input_ids=x)[1][:1]"),
        left="transformers permutes its relative positions by (0, 2, 1, 4, 3) and reads them as "
        "(batch, ngram, head, time), modeling_prophetnet.py:868"),
    _in("prophetnet", "ForConditionalGeneration",
        "With use_cache the cache stands before the n-grams' logits in what is returned, where the original "
        "has it after them",
        ("            return logits, past_key_values, predict_logits\n",
         "            return logits, predict_logits, past_key_values\n"),
        within="ProphetNetForConditionalGeneration",
        symptom=read(
            "type(model(ids, decoder_input_ids=ids, use_cache=True)[1]).__name__",
            "'Tensor'",
            IDS,
            "what follows the logits: the n-grams' logits, a Tensor, or the cache, a tuple",
        )),
    _in("reformer", "Model",
        "The words are dropped out after the positions are added, together with them; PyTorch drops them out "
        "before",
        ("        # dropout\n"
         "        embeddings = F.dropout(embeddings, p=self.dropout, training=self.training)\n",
         ""),
        ("        embeddings = inputs_embeds + position_embeddings\n",
         "        embeddings = words + position_embeddings\n"),
        ("        position_embeddings = self.position_embeddings(position_ids)\n",
         "        words = F.dropout(inputs_embeds, p=self.dropout, training=self.training)\n"
         "        position_embeddings = self.position_embeddings(position_ids)\n"),
        within="ReformerEmbeddings",
        symptom=read(
            "round(float((out == 0).astype('float32').mean()), 1)",
            "0.0",
            "ids = paddle.arange(3, 13).reshape([1, 10])\nlayer = model.embeddings\n"
            "layer.word_embeddings.weight.set_value(paddle.zeros([100, 32]))\n"
            "layer.training = True  # positions alone, and their own dropout in eval mode\n"
            "out = layer(ids)",
            "share of the position embeddings that the words' dropout makes zero",
            hidden_dropout_prob=0.5,
        )),
    _in("rembert", "ForSequenceClassification", _RATE,
        ("nn.Dropout(config.hidden_dropout_prob)", "nn.Dropout(config.classifier_dropout_prob)"),
        within="RemBertForSequenceClassification",
        symptom=read("model.dropout.p", "config.classifier_dropout_prob", classifier_dropout_prob=0.3)),
    _in("rembert", "ForTokenClassification", _RATE,
        ("nn.Dropout(config.hidden_dropout_prob)", "nn.Dropout(config.classifier_dropout_prob)"),
        within="RemBertForTokenClassification",
        symptom=read("model.dropout.p", "config.classifier_dropout_prob", classifier_dropout_prob=0.3)),
    _in("rembert", "ForMultipleChoice", _RATE,
        ("nn.Dropout(config.hidden_dropout_prob)", "nn.Dropout(config.classifier_dropout_prob)"),
        within="RemBertForMultipleChoice",
        symptom=read("model.dropout.p", "config.classifier_dropout_prob", classifier_dropout_prob=0.3)),
    _in("rembert", "ForQuestionAnswering",
        "The logits keep an axis of one, (batch, length, 1), where the docstring promises (batch, length)",
        ("        return start_logits, end_logits\n",
         "        return start_logits.squeeze(-1), end_logits.squeeze(-1)\n"),
        within="RemBertForQuestionAnswering",
        symptom=read(
            "[list(each.shape) for each in model(ids)]",
            "[[2, 10], [2, 10]]",
            f"{MENDED}{IDS}",
            "shapes of start_logits and end_logits",
        )),
    _in("rembert", "ForMaskedLM",
        "The head returns hidden_size numbers a token in place of vocab_size, its inner size is not "
        "output_embedding_size, and its LayerNorm ignores config.layer_norm_eps",
        ("        self.transform = nn.Linear(config.hidden_size, config.hidden_size)\n",
         "        self.transform = nn.Linear(config.hidden_size, config.output_embedding_size)\n"),
        ("        self.layer_norm = nn.LayerNorm(config.hidden_size)\n"
         "        self.decoder = nn.Linear(config.hidden_size, config.hidden_size)\n",
         "        size = config.output_embedding_size\n"
         "        self.layer_norm = nn.LayerNorm(size, epsilon=config.layer_norm_eps)\n"
         "        self.decoder = nn.Linear(size, config.vocab_size)\n"),
        within="RemBertLMPredictionHead",
        symptom=read(
            "[list(each.weight.shape) for each in (layer.transform, layer.decoder)]",
            "[[32, 16], [16, 100]]",
            FIND.format("RemBertLMPredictionHead"),
            "shapes of the head: hidden_size, output_embedding_size, vocab_size",
        )),
    _in("speecht5", "ForSpeechToText",
        "The positional convolution is built without weight_norm, so that a checkpoint's magnitudes and "
        "directions have no place to go; and its forward pass prints the weight",
        ('        # self.conv = nn.utils.weight_norm(self.conv, name="weight")\n',
         '        self.conv = nn.utils.weight_norm(self.conv, name="weight", dim=2)\n'),
        ("        print(self.conv.weight)\n", ""),
        within="SpeechT5PositionalConvEmbedding",
        symptom=read(
            "sorted(name for name, _ in layer.conv.named_parameters())",
            "['bias', 'weight_g', 'weight_v']",
            FIND.format("SpeechT5PositionalConvEmbedding"),
            "parameters of the positional convolution",
        )),
    _in("speecht5", "ForTextToSpeech",
        "The prenet's dropout draws a mask for each example; PyTorch's is one for the whole batch",
        ("            inputs_embeds = nn.functional.dropout(\n"
         "                inputs_embeds, self.config.speech_decoder_prenet_dropout, training=True\n"
         "            )\n",
         "            kept = 1 - self.config.speech_decoder_prenet_dropout\n"
         "            mask = paddle.bernoulli(paddle.full_like(inputs_embeds[:1], kept))\n"
         "            inputs_embeds = inputs_embeds * mask / kept\n"),
        within="SpeechT5SpeechDecoderPrenet",
        symptom=read(
            "bool((out[0] == out[1]).all())",
            "True",
            FIND.format("SpeechT5SpeechDecoderPrenet") + "\nout = layer(paddle.ones([2, 6, 8]))",
            "two equal examples of a batch get one mask",
        )),
    _in("speecht5", "ForSpeechToText, ForTextToSpeech",
        "masked_fill returns its result, which is dropped: the decoder's causal mask bars every position, "
        "those before as well, so that attention is uniform over all of them, later ones included",
        ("    masked_fill(mask, mask_cond <", "    mask = masked_fill(mask, mask_cond <"),
        symptom=Symptom(
            "which of three positions each may attend to",
            "(mask == 0).astype('int64').tolist()",
            "[[1, 0, 0], [1, 1, 0], [1, 1, 1]]",
            "mask = _make_causal_mask([1, 3], paddle.float32)[0, 0]",
            make="from paddlenlp.transformers.speecht5.modeling import _make_causal_mask\n",
        )),
    _in("speecht5", "ForSpeechToText",
        "A typing error, stop_gradiet: the input's gradient stays stopped",
        ("hidden_states.stop_gradiet = False", "hidden_states.stop_gradient = False"),
        within="SpeechT5FeatureEncoder",
        symptom=read(
            "stopped",
            "[False]",
            FIND.format("SpeechT5FeatureEncoder")
            + "\nstopped = []\nlayer.conv_layers[0].register_forward_pre_hook(\n"
              "    lambda _, given: stopped.append(given[0].stop_gradient)\n)\nlayer.train()\n"
              "layer(paddle.ones([1, 400]))",
            "stop_gradient of what the feature encoder's first layer is given in train mode",
        )),
    _in("speecht5", "ForSpeechToText", _UNTIED,
        ("        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias_attr=False)\n", ""),
        ("        return self.lm_head(hidden_states)\n",
         "        return paddle.matmul(hidden_states, self.table, transpose_y=True)\n"),
        ("        self.text_decoder_postnet = SpeechT5TextDecoderPostnet(config)\n",
         "        self.text_decoder_postnet = SpeechT5TextDecoderPostnet(config)\n"
         "        self.text_decoder_postnet.table = text_decoder.prenet.embed_tokens.weight\n"),
        symptom=count_tables()),
    _in("squeezebert", "ForQuestionAnswering",
        "forward takes no attention_mask: padding is hidden by its id alone, and a batch as the tokenizer "
        "makes it raises TypeError",
        ("    def forward(self, input_ids, token_type_ids=None):\n",
         "    def forward(self, input_ids, token_type_ids=None, attention_mask=None):\n"),
        ("position_ids=None, attention_mask=None\n", "position_ids=None, attention_mask=attention_mask\n"),
        within="SqueezeBertForQuestionAnswering",
        symptom=raise_error("model(ids, attention_mask=paddle.ones_like(ids))")),
    _in("xlm", "ForMultipleChoice",
        "The head is one layer; PyTorch's has a projection to num_labels before it, which a checkpoint's "
        "sequence_summary belongs to",
        ("        self.classifier = nn.Linear(config.hidden_size, 1)\n",
         "        self.summary = nn.Linear(config.hidden_size, config.num_classes)\n"
         "        self.classifier = nn.Linear(config.num_classes, 1)\n"),
        ("        sequence_output = self.dropout(sequence_output)\n"
         "        pooled_output = sequence_output[:, 0]\n",
         "        pooled_output = self.summary(self.dropout(sequence_output[:, 0]))\n"),
        within="XLMForMultipleChoice",
        symptom=read(
            "sum(isinstance(each, paddle.nn.Linear) for each in model.children())",
            "2",
            what="linear layers of the head",
        )),
    _in("xlnet", "ForSequenceClassification, ForMultipleChoice",
        "The head drops out its input as well; PyTorch's drops out after the activation alone",
        ("        x = self.dropout(x)\n        x = self.dense(x)\n", "        x = self.dense(x)\n"),
        within="XLNetClassificationHead",
        symptom=count_calls("classifier.dropout", 1)),
    _in("xlnet", "ForMultipleChoice",
        "The head returns num_labels numbers a choice in place of one, and without return_dict the scores "
        "are not put into a row for each example",
        ("        self.classifier = XLNetClassificationHead(config)\n",
         "        self.classifier = XLNetClassificationHead(config)\n"
         "        self.classifier.out_proj = nn.Linear(config.d_model, 1)\n"),
        ("            output = (logits,) + transformer_outputs[1:]\n",
         "            output = (reshaped_logits,) + transformer_outputs[1:]\n"),
        within="XLNetForMultipleChoice",
        symptom=read(
            "list(model(choices).shape)",
            "[2, 3]",
            "choices = paddle.arange(3, 63).reshape([2, 3, 10])",
            "shape of the scores of 2 examples with 3 choices",
        )),
)  # fmt: skip

# Differences that are no mistake of the port, by the end of the pair's name.
NOTES = {
    "tinybert ForSequenceClassification": "by design: the ReLU before the classifier is TinyBERT's own",
    "xlm ForSequenceClassification": "none: the port drops out the words and takes the first, PyTorch the "
    "other way round; the distribution is one",
}
