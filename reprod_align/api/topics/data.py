"""Data, tokenizers and metrics."""

import tempfile
from pathlib import Path
from typing import Any

from reprod_align.api.entry import Entry, numbers, paddle, paddlenlp, torch, transformers

import numpy as np

CHINESE = "数据、分词与评估指标"

_WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "film", "bad", "very")
_TEXTS = ("a very good film", "a bad")


def _vocabulary() -> str:
    """Return the path of a file of ten words, in a folder that stays for this process."""
    path = Path(tempfile.gettempdir()) / "reprod_align_ten_words.txt"
    path.write_text("\n".join(_WORDS) + "\n", encoding="utf-8")
    return str(path)


class _Squares:
    """A data set of eight numbers, each with a label."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, at: int) -> Any:
        return np.float64(at**2), at % 2


class DatasetClass(Entry):
    """__getitem__ and __len__ are all that either Dataset needs."""

    chinese = "两边的 Dataset 都只需要 __getitem__ 和 __len__。"
    apis = "torch.utils.data.Dataset", "paddle.io.Dataset"
    sources = ("quick start 4.2 API table", "guide 3.2")
    keywords = "dataset map style"

    def torch_side(self) -> Any:
        Squares = type("Squares", (_Squares, torch.utils.data.Dataset), {})
        return len(Squares()), Squares()[3][0]

    def paddle_side(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        return len(Squares()), Squares()[3][0]


class DataLoaderBatches(Entry):
    """Without shuffling both make the same batches; the last, smaller one is kept (drop_last=False)."""

    chinese = "不打乱时两边的批次相同；最后不足一批的默认都保留（drop_last=False）。"
    apis = "torch.utils.data.DataLoader", "paddle.io.DataLoader"
    sources = ("guide 3.2", "guide 4.3", "quick start 4.2 API table")
    keywords = "drop_last batch_size last batch return_list"

    def torch_side(self) -> Any:
        loader = torch.utils.data.DataLoader(_Squares(), batch_size=3)
        return [[len(loader)], [batch[0] for batch in loader]]

    def paddle_side(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        loader = paddle.io.DataLoader(Squares(), batch_size=3)
        return [[len(loader)], [batch[0] for batch in loader]]

    def plain(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        loader = paddle.io.DataLoader(Squares(), batch_size=3, drop_last=True)
        return [[len(loader)], [batch[0] for batch in loader]]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(expected[0][0] == 3 and found[0][0] == 2)


class DataLoaderPinMemory(Entry):
    """Paddle's DataLoader has no pin_memory; it has use_shared_memory and use_buffer_reader."""

    chinese = "Paddle 的 DataLoader 没有 pin_memory；有 use_shared_memory 与 use_buffer_reader。"
    apis = "torch.utils.data.DataLoader(pin_memory=)", "paddle.io.DataLoader(use_shared_memory=)"
    sources = ("quick start 4.2 API table", "guide 3.2")
    keywords = "pin_memory shared memory num_workers"

    def torch_side(self) -> Any:
        loader = torch.utils.data.DataLoader(_Squares(), batch_size=4, pin_memory=False)
        return [batch[0] for batch in loader]

    def paddle_side(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        loader = paddle.io.DataLoader(Squares(), batch_size=4, use_shared_memory=True)
        return [batch[0] for batch in loader]

    def plain(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        return paddle.io.DataLoader(Squares(), batch_size=4, pin_memory=True)

    raises = "TypeError: pin_memory"


class Samplers(Entry):
    """SequentialSampler is SequenceSampler; a sampler goes into a BatchSampler, which has the batch size."""

    chinese = (
        "SequentialSampler 对应 SequenceSampler；采样器先放进 BatchSampler，批大小也写在那里。"
    )
    apis = "torch.utils.data.SequentialSampler", "paddle.io.SequenceSampler, BatchSampler"
    sources = ("quick start 4.2", "quick start 1.1", "guide 3.12.1")
    keywords = "sampler RandomSampler BatchSampler shuffle batch_sampler"

    def torch_side(self) -> Any:
        sampler = torch.utils.data.SequentialSampler(range(8))
        loader = torch.utils.data.DataLoader(_Squares(), batch_size=4, sampler=sampler)
        return [batch[1] for batch in loader]

    def paddle_side(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        sampler = paddle.io.SequenceSampler(Squares())
        batches = paddle.io.BatchSampler(sampler=sampler, batch_size=4)
        return [batch[1] for batch in paddle.io.DataLoader(Squares(), batch_sampler=batches)]

    def plain(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        return paddle.io.DataLoader(Squares(), sampler=paddle.io.SequenceSampler(Squares()))

    raises = "TypeError: sampler"


class ShuffleOrder(Entry):
    """The same seed shuffles to another order: draw the order once, with numpy, for both."""

    chinese = "相同随机种子打乱后的顺序不同：用 numpy 生成一次顺序，两边共用。"
    apis = "torch.utils.data.RandomSampler", "paddle.io.RandomSampler"
    sources = ("guide 3.9", "guide 3.12.1", "guide 4.9.2")
    keywords = "shuffle seed order random"

    def torch_side(self) -> Any:
        order = np.random.default_rng(0).permutation(8)
        loader = torch.utils.data.DataLoader(_Squares(), batch_size=4, sampler=order.tolist())
        return [batch[0] for batch in loader]

    def paddle_side(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        order = np.random.default_rng(0).permutation(8)
        batches = order.reshape(2, 4).tolist()
        return [batch[0] for batch in paddle.io.DataLoader(Squares(), batch_sampler=batches)]

    def plain(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        return [batch[0] for batch in paddle.io.DataLoader(Squares(), batch_size=4, shuffle=True)]

    def as_described(self, expected: Any, found: Any) -> bool:
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(_Squares(), batch_size=4, shuffle=True)
        return not np.array_equal([batch[0].numpy() for batch in loader], found)


class Seeds(Entry):
    """The same seed gives other random numbers: draw with numpy, or save what one side drew."""

    chinese = "相同种子得到不同的随机数：用 numpy 生成，或保存一边的结果。"
    apis = "torch.manual_seed", "paddle.seed"
    sources = ("guide 3.9", "guide 3.1.3")
    keywords = "random seed reproducible"

    def torch_side(self) -> Any:
        return torch.tensor(np.random.default_rng(0).random(4))

    def paddle_side(self) -> Any:
        return paddle.to_tensor(np.random.default_rng(0).random(4))

    def plain(self) -> Any:
        paddle.seed(0)
        return paddle.rand([4])

    def as_described(self, expected: Any, found: Any) -> bool:
        torch.manual_seed(0)
        return not np.allclose(found, torch.rand(4).numpy())


class DistributedSampler(Entry):
    """Rank r of n takes every n-th example in PyTorch; in Paddle every n-th batch of neighbours."""

    chinese = "第 r 个进程取的数据：PyTorch 是每隔 n 个取一个，Paddle 是每隔 n 批取一批。"
    apis = "torch.utils.data.DistributedSampler", "paddle.io.DistributedBatchSampler"
    sources = ("guide 3.12.1",)
    keywords = "distributed rank num_replicas multi gpu"

    def torch_side(self) -> Any:
        sampler = torch.utils.data.DistributedSampler(range(8), 2, rank=0, shuffle=False)
        return list(sampler)

    def paddle_side(self) -> Any:
        return list(range(0, 8, 2))

    def plain(self) -> Any:
        Squares = type("Squares", (_Squares, paddle.io.Dataset), {})
        sampler = paddle.io.DistributedBatchSampler(Squares(), 2, num_replicas=2, rank=0)
        return [at for batch in sampler for at in batch]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found == [0, 1, 4, 5])


class CollateDtypes(Entry):
    """Python floats collate to float64 and integers to int64 on both sides, whatever the default dtype."""

    chinese = "默认整理函数把 Python 浮点数变为 float64、整数变为 int64，与默认类型无关，两边相同。"
    apis = "torch.utils.data.default_collate", "paddle.io.dataloader.collate.default_collate_fn"
    keywords = "collate float32 float64 dtype labels"

    def torch_side(self) -> Any:
        torch.set_default_dtype(torch.float32)
        batch = torch.utils.data.default_collate([(0.5, 1), (1.5, 0)])
        return [str(part.dtype).removeprefix("torch.") for part in batch]

    def paddle_side(self) -> Any:
        paddle.set_default_dtype("float32")
        batch = paddle.io.dataloader.collate.default_collate_fn([(0.5, 1), (1.5, 0)])
        return [str(part.dtype).removeprefix("paddle.") for part in batch]


class TokenizerLength(Entry):
    """paddlenlp takes max_length and truncation=True too; the sources' max_seq_len still does the same."""

    chinese = "paddlenlp 也接受 max_length 与 truncation=True；原文档的 max_seq_len 仍然有效。"
    apis = (
        "transformers.BertTokenizer(max_length=)",
        "paddlenlp.transformers.BertTokenizer(max_length=)",
    )
    sources = ("quick start 4.2", "guide 4.2", "guide 4.9.2")
    keywords = "truncation padding max_seq_len input_ids token_type_ids"

    def torch_side(self) -> Any:
        tokenizer = transformers.BertTokenizer(_vocabulary())
        made = tokenizer(_TEXTS[0], max_length=5, truncation=True)
        return made["input_ids"], made["input_ids"], made["token_type_ids"]

    def paddle_side(self) -> Any:
        tokenizer = paddlenlp.transformers.BertTokenizer(_vocabulary())
        made = tokenizer(_TEXTS[0], max_length=5, truncation=True)
        return (
            made["input_ids"],
            tokenizer(_TEXTS[0], max_seq_len=5)["input_ids"],
            made["token_type_ids"],
        )


class TokenizerMask(Entry):
    """transformers' tokenizer returns an attention_mask by default, paddlenlp's only if asked."""

    chinese = (
        "transformers 的分词器默认返回 attention_mask，paddlenlp 要写 return_attention_mask=True。"
    )
    apis = (
        "transformers.BertTokenizer",
        "paddlenlp.transformers.BertTokenizer(return_attention_mask=)",
    )
    sources = ("quick start 4.2",)
    keywords = "attention_mask return_attention_mask keys"

    def torch_side(self) -> Any:
        return sorted(transformers.BertTokenizer(_vocabulary())(_TEXTS[0]))

    def paddle_side(self) -> Any:
        tokenizer = paddlenlp.transformers.BertTokenizer(_vocabulary())
        return sorted(tokenizer(_TEXTS[0], return_attention_mask=True))

    def plain(self) -> Any:
        return sorted(paddlenlp.transformers.BertTokenizer(_vocabulary())(_TEXTS[0]))

    def as_described(self, expected: Any, found: Any) -> bool:
        return set(expected) - set(found) == {"attention_mask"}


class TokenizerPadding(Entry):
    """pad_to_max_seq_len=True of the sources is padding="max_length" in both today."""

    chinese = '原文档的 pad_to_max_seq_len=True 如今两边都写 padding="max_length"。'
    apis = (
        'transformers.BertTokenizer(padding="max_length")',
        "paddlenlp.transformers.BertTokenizer(padding=)",
    )
    sources = ("quick start 1.1", "guide 4.2", "guide 4.9.2")
    keywords = "pad_to_max_seq_len padding max_length"

    def torch_side(self) -> Any:
        tokenizer = transformers.BertTokenizer(_vocabulary())
        return tokenizer(_TEXTS[1], max_length=6, padding="max_length")["input_ids"]

    def paddle_side(self) -> Any:
        tokenizer = paddlenlp.transformers.BertTokenizer(_vocabulary())
        return tokenizer(_TEXTS[1], max_length=6, padding="max_length")["input_ids"]


class NumLabels(Entry):
    """transformers' num_labels is num_classes in paddlenlp's older calls, which still set the same."""

    chinese = "transformers 的 num_labels 在 paddlenlp 旧接口中叫 num_classes，仍然有效。"
    apis = "transformers.BertConfig(num_labels=)", "paddlenlp.transformers.BertConfig(num_classes=)"
    sources = ("quick start 1.1 and 5.2.2", "guide 3.8")
    keywords = "num_classes classes from_pretrained"

    def torch_side(self) -> Any:
        return transformers.BertConfig(num_labels=5).num_labels

    def paddle_side(self) -> Any:
        return paddlenlp.transformers.BertConfig(num_classes=5).num_labels


class PaddingCollator(Entry):
    """DataCollatorWithPadding has the same name in paddlenlp.data; its return_tensors are "pd"."""

    chinese = 'DataCollatorWithPadding 在 paddlenlp.data 中同名；return_tensors 是 "pd"。'
    apis = "transformers.DataCollatorWithPadding", "paddlenlp.data.DataCollatorWithPadding"
    sources = ("quick start 4.2", "quick start 1.1")
    keywords = "collator Pad Stack Dict padding batch"

    def torch_side(self) -> Any:
        tokenizer = transformers.BertTokenizer(_vocabulary())
        batch = transformers.DataCollatorWithPadding(tokenizer)([tokenizer(t) for t in _TEXTS])
        return batch["input_ids"], batch["token_type_ids"]

    def paddle_side(self) -> Any:
        tokenizer = paddlenlp.transformers.BertTokenizer(_vocabulary())
        collate = paddlenlp.data.DataCollatorWithPadding(tokenizer, return_tensors="pd")
        batch = collate([tokenizer(text) for text in _TEXTS])
        return batch["input_ids"], batch["token_type_ids"]


class PadStack(Entry):
    """paddlenlp's Pad and Stack make numpy arrays: pad to the longest, then stack."""

    chinese = "paddlenlp 的 Pad、Stack 得到 numpy 数组：填充到最长再堆叠。"
    apis = "torch.nn.utils.rnn.pad_sequence, torch.stack", "paddlenlp.data.Pad, Stack"
    sources = ("quick start 4.3",)
    keywords = "Dict Tuple collate pad_val"

    def torch_side(self) -> Any:
        rows = [torch.tensor([1, 2, 3]), torch.tensor([4])]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=9)
        return padded, torch.stack([torch.tensor(0), torch.tensor(1)])

    def paddle_side(self) -> Any:
        padded = paddlenlp.data.Pad(axis=0, pad_val=9)([np.array([1, 2, 3]), np.array([4])])
        return padded, paddlenlp.data.Stack(dtype="int64")([0, 1])


class AccuracyMetric(Entry):
    """paddle.metric.Accuracy takes compute, update, accumulate; it is the share of right argmaxes."""

    chinese = "paddle.metric.Accuracy 依次调用 compute、update、accumulate；即 argmax 正确的比例。"
    apis = "(logits.argmax(-1) == labels).mean()", "paddle.metric.Accuracy"
    sources = ("quick start 5.1.1", "guide 3.3")
    keywords = "metric accumulate update reset evaluate"
    tolerance = 1e-7
    because = "paddle.metric computes in float32"

    def torch_side(self) -> Any:
        logits, labels = torch.tensor(numbers(7, 3)), torch.arange(7) % 3
        return (logits.argmax(-1) == labels).double().mean()

    def paddle_side(self) -> Any:
        metric, logits = paddle.metric.Accuracy(), paddle.to_tensor(numbers(7, 3))
        metric.update(metric.compute(logits, paddle.arange(7) % 3))
        return float(metric.accumulate())


class PrecisionRecall(Entry):
    """paddle.metric's Precision and Recall take probabilities of class 1 and cut them at 0.5."""

    chinese = "paddle.metric 的 Precision、Recall 接收类别 1 的概率并以 0.5 为界。"
    apis = "true positives over predicted, over actual", "paddle.metric.Precision, Recall"
    sources = ("quick start 5.1.1", "guide 3.3")
    keywords = "metric f1 precision recall"

    def torch_side(self) -> Any:
        p, labels = torch.tensor([0.1, 0.6, 0.8, 0.3]) > 0.5, torch.tensor([0, 1, 0, 1]) > 0
        right = (p & labels).sum()
        return (right / p.sum()).double(), (right / labels.sum()).double()

    def paddle_side(self) -> Any:
        p, labels = np.array([0.1, 0.6, 0.8, 0.3]), np.array([0, 1, 0, 1])
        metrics = paddle.metric.Precision(), paddle.metric.Recall()
        for metric in metrics:
            metric.update(p, labels)
        return [float(metric.accumulate()) for metric in metrics]


class AucMetric(Entry):
    """paddle.metric.Auc counts in 4095 bins, so scores closer than 1/4095 are ties to it."""

    chinese = "paddle.metric.Auc 分 4095 个桶统计，相差小于 1/4095 的分数被当作并列。"
    apis = "share of pairs in order", "paddle.metric.Auc"
    sources = ("quick start 5.1.1", "guide 3.3")
    keywords = "auc roc bins num_thresholds"

    def torch_side(self) -> Any:
        scores, labels = torch.tensor([0.5, 0.50001, 0.2, 0.9]), torch.tensor([0, 1, 0, 1])
        pairs = scores[labels == 1][:, None] > scores[labels == 0]
        return pairs.double().mean()

    def paddle_side(self) -> Any:
        scores, labels = paddle.to_tensor([0.5, 0.50001, 0.2, 0.9]), paddle.to_tensor([0, 1, 0, 1])
        pairs = scores[labels == 1].unsqueeze(1) > scores[labels == 0]
        return pairs.astype("float64").mean()

    def plain(self) -> Any:
        metric, scores = paddle.metric.Auc(), np.array([0.5, 0.50001, 0.2, 0.9])
        metric.update(np.stack([1 - scores, scores], 1), np.array([[0], [1], [0], [1]]))
        return float(metric.accumulate())


class MatthewsMetric(Entry):
    """paddlenlp's Mcc is 0 as soon as one of tp, fp, tn, fn is 0: a perfect classifier scores 0."""

    chinese = "paddlenlp 的 Mcc 只要 tp、fp、tn、fn 有一个为 0 就得 0：完全正确也得 0 分。"
    apis = "torchmetrics MatthewsCorrCoef", "paddlenlp.metrics.Mcc"
    sources = ("guide 3.3",)
    keywords = "CoLA correlation matthews mcc"

    def torch_side(self) -> Any:
        return float(np.corrcoef([0, 1, 1, 0], [0, 1, 1, 0])[0, 1])

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([0.0, 1.0, 1.0, 0.0])
        return paddle.linalg.corrcoef(paddle.stack([x, x]))[0, 1]

    def plain(self) -> Any:
        metric, labels = paddlenlp.metrics.Mcc(), paddle.to_tensor([[0], [1], [1], [0]])
        logits = paddle.to_tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
        metric.update(metric.compute(logits, labels))
        return float(metric.accumulate()[0])

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(np.isclose(expected, 1) and found == 0)


class SpearmanMetric(Entry):
    """paddlenlp's Spearman ranks equal values in the order of a sort, not by their mean rank."""

    chinese = "paddlenlp 的 Spearman 对并列值按排序先后编号，而不是取平均名次。"
    apis = "scipy.stats.spearmanr", "paddlenlp.metrics.PearsonAndSpearman"
    sources = ("guide 3.3",)
    keywords = "STS-B rank correlation ties"

    def torch_side(self) -> Any:
        x, y = torch.tensor([1.0, 2.5, 2.5, 4.0]), torch.tensor([1.0, 3.0, 2.0, 4.0])
        return torch.corrcoef(torch.stack([x, y]))[0, 1]  # these are mean ranks already

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor([1.0, 2.5, 2.5, 4.0]), paddle.to_tensor([1.0, 3.0, 2.0, 4.0])
        return paddle.linalg.corrcoef(paddle.stack([x, y]))[0, 1]

    def plain(self) -> Any:
        metric = paddlenlp.metrics.PearsonAndSpearman()
        metric.update(
            (paddle.to_tensor([1.0, 2.5, 2.5, 4.0]), paddle.to_tensor([1.0, 3.0, 2.0, 4.0]))
        )
        return float(metric.accumulate()[1])
