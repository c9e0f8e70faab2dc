"""The PyTorch scripts of the plain steps: `python -m benchmarks.plain.pt STEP HOME DATA`."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.bert_config import BertConfig
from models.pt_bert import BertForSequenceClassification
from pipeline import settings

import numpy as np
import torch
import torch.nn.functional as F
from reprod_log import ReprodLogger

Batch = tuple[dict[str, torch.Tensor], torch.Tensor]


def forward(home: Path, data: Path) -> dict[str, Any]:
    """Step 1: the logits of the fake batch."""
    ids, labels = load_fake(home)
    with torch.no_grad():
        logits = load_model(home)(ids)  # (4, 2)
    return {"fake_data": ids, "fake_label": labels, "logits": logits}


def metric(home: Path, data: Path) -> dict[str, Any]:
    """Step 2: the accuracy on the dev sentences."""
    return {"accuracy": evaluate(load_model(home), home, data)}


def loss(home: Path, data: Path) -> dict[str, Any]:
    """Step 3: the loss of the fake batch."""
    ids, labels = load_fake(home)
    with torch.no_grad():
        return {"loss": F.cross_entropy(load_model(home)(ids), labels)}


def lr(home: Path, data: Path) -> dict[str, Any]:
    """Step 4: the learning rates of a schedule."""
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=settings.LEARNING_RATE)
    schedule = get_linear_schedule_with_warmup(
        optimizer, settings.SCHEDULE_WARMUP, settings.SCHEDULE_STEPS
    )
    rates = []
    for _ in range(settings.SCHEDULE_STEPS):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return {"lr": np.array(rates)}


def bp_align(home: Path, data: Path) -> dict[str, Any]:
    """Step 4: the losses of some iterations on the fake batch, in eval mode."""
    model, (ids, labels) = load_model(home), load_fake(home)
    optimizer = make_optimizer(model)
    losses = {}
    for iteration in range(settings.BP_ITERATIONS):
        losses[f"loss_{iteration}"] = train_once(model, optimizer, {"input_ids": ids}, labels)
    return losses


def train_align(home: Path, data: Path) -> dict[str, Any]:
    """Step 5: the accuracy after an epoch."""
    torch.manual_seed(settings.SEED)
    model = load_model(home)
    optimizer = make_optimizer(model)
    model.train()
    for inputs, labels in read_batches(home, data / "train.tsv", settings.TRAIN_BATCH_SIZE):
        train_once(model, optimizer, inputs, labels)
    model.eval()
    return {"acc": evaluate(model, home, data)}


def load_model(home: Path) -> BertForSequenceClassification:
    """Build BERT and load its weights, in eval mode."""
    model = BertForSequenceClassification(BertConfig.from_json_file(home / "weights/config.json"))
    bert = torch.load(home / "weights/torch_weight.bin")
    classifier = torch.load(home / "classifier_weights/torch_classifier_weights.bin")
    model.load_state_dict({f"bert.{name}": value for name, value in bert.items()} | classifier)
    model.eval()
    return model


def load_fake(home: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the fake batch: ids (4, 64) and labels (4,)."""
    names = "fake_data", "fake_label"
    ids, labels = (torch.from_numpy(np.load(home / f"fake_data/{name}.npy")) for name in names)
    return ids, labels


def make_optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """Return AdamW; biases and LayerNorms do not decay."""
    groups: tuple[list[Any], list[Any]] = ([], [])
    for name, parameter in model.named_parameters():
        groups[any(part in name for part in settings.NO_DECAY)].append(parameter)
    decay = {"params": groups[0], "weight_decay": settings.WEIGHT_DECAY}
    return torch.optim.AdamW(
        [decay, {"params": groups[1], "weight_decay": 0.0}],
        lr=settings.LEARNING_RATE,
        eps=settings.EPSILON,
    )


def train_once(model: Any, optimizer: Any, inputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """Take one optimizer step, and return the loss."""
    loss = F.cross_entropy(model(**inputs), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def evaluate(model: Any, home: Path, data: Path) -> float:
    """Return the share of dev sentences that the model gets right."""
    right = []
    for inputs, labels in read_batches(home, data / "dev.tsv", settings.EVAL_BATCH_SIZE):
        with torch.no_grad():
            right += (model(**inputs).argmax(-1) == labels).tolist()
    return float(np.mean(right))


def read_batches(home: Path, file: Path, size: int) -> Iterator[Batch]:
    """Yield the sentences of a TSV file, tokenized and padded, with their labels."""
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(str(home / "weights/vocab.txt"))
    with file.open() as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        texts = [row["sentence"] for row in part]
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=settings.MAX_LENGTH)
        tensors = {name: torch.tensor(ids) for name, ids in inputs.items()}  # (B, L)
        yield tensors, torch.tensor([int(row["label"]) for row in part])


if __name__ == "__main__":
    name, home, data = sys.argv[1:]
    logger = ReprodLogger()
    for key, value in globals()[name](Path(home), Path(data)).items():
        logger.add(key, value.numpy() if isinstance(value, torch.Tensor) else np.array(value))
    logger.save(f"{home}/plain/{name}_torch.npy")
