"""A small classifier trained on both sides, as a file for `curves --explain`. PLANTED: Paddle's faults."""

import json
from pathlib import Path

import numpy as np

PLANTED = ()
DTYPE = "float64"  # of the runs
STEPS, WARMUP, RATE, DECAY = 20, 4, 1e-2, 0.125
LATE = 9  # from this step on, what is planted late
HERE = Path(__file__).resolve().parent
copy_weights = True


def examples(step):
    """Return tokens (8, 6) and labels (8,)."""
    data = np.random.default_rng(1)
    tokens, labels = data.integers(0, 11, (200, 6)), data.integers(0, 3, 200)
    rows = np.random.default_rng(2).permutation(200)[(step - 1) * 8 : step * 8]
    return {"tokens": tokens[rows]}, labels[rows]


def torch_batch(step):
    return examples(step)


def paddle_batch(step):
    if "data" in PLANTED:
        return examples(step + 1)
    if "order" in PLANTED:
        inputs, labels = examples(step)
        return {"tokens": inputs["tokens"][::-1].copy()}, labels[::-1].copy()
    if "labels" in PLANTED and step >= LATE:
        inputs, labels = examples(step)
        return inputs, (labels + (np.arange(8) == 3)) % 3
    return examples(step)


def draws(step):
    from reprod_align.randomness import SharedRandom

    return SharedRandom(3, 0, step)


def torch_model():
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(11, 8)
            self.norm = nn.LayerNorm(8, eps=1e-5)
            self.hidden = nn.Linear(8, 16)
            self.drop = nn.Dropout(0.1)
            self.classifier = nn.Linear(16, 3)

        def forward(self, tokens):
            pooled = self.norm(self.embedding(tokens)).mean(1)
            return self.classifier(self.drop(nn.functional.gelu(self.hidden(pooled))))

    model, source = Model(), np.random.default_rng(5)
    with torch.no_grad():
        for parameter in model.parameters():
            values = source.normal(0, 0.5, parameter.shape)
            parameter.copy_(torch.from_numpy(values.astype("float32")))
    return model.to(getattr(torch, DTYPE))


def paddle_model():
    from paddle import nn

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(11, 8)
            self.norm = nn.LayerNorm(8, epsilon=1e-3 if "eps of the norm" in PLANTED else 1e-5)
            self.hidden = nn.Linear(8, 16)
            self.drop = nn.Dropout(0.1)
            self.classifier = nn.Linear(16, 3)

        def forward(self, tokens):
            pooled = self.norm(self.embedding(tokens)).mean(1)
            if "detach" in PLANTED:
                pooled = pooled.detach()
            hidden = nn.functional.gelu(self.hidden(pooled), approximate="gelu" in PLANTED)
            return self.classifier(self.drop(hidden))

    return Model().to(dtype=DTYPE)


def torch_loss(output, labels):
    import torch

    return torch.nn.functional.cross_entropy(output, labels)


def paddle_loss(output, labels):
    import paddle

    reduction = "sum" if "reduction" in PLANTED else "mean"
    return paddle.nn.functional.cross_entropy(output, labels, reduction=reduction)


def torch_optimizer(model):
    import torch

    return torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)


def paddle_optimizer(model):
    import paddle

    return paddle.optimizer.AdamW(
        RATE,
        parameters=model.parameters(),
        weight_decay=2 * DECAY if "decay" in PLANTED else DECAY,
        epsilon=1e-6 if "eps" in PLANTED else 1e-8,
    )


def torch_scheduler(optimizer):
    import torch

    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / WARMUP, 1.0))


def paddle_scheduler(optimizer):
    import paddle

    warmup = WARMUP + 2 if "warm-up" in PLANTED else WARMUP
    return paddle.optimizer.lr.LambdaDecay(RATE, lambda step: min((step + 1) / warmup, 1.0))


def checkpoints():
    return [int(path.stem.removeprefix("torch_")) for path in HERE.glob("torch_*.pt")]


def torch_restore(model, optimizer, step):
    import torch

    saved = torch.load(HERE / f"torch_{step}.pt", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])


def paddle_restore(model, optimizer, step):
    import paddle

    model.set_state_dict(paddle.load(str(HERE / f"paddle_{step}.pdparams")))
    optimizer.set_state_dict(paddle.load(str(HERE / f"paddle_{step}.pdopt")))


# ------------------------------------------------------------------ the two runs, for the tests


def train(save=()):
    """Train both sides, write their logs, and their checkpoints after the steps `save`."""
    import paddle
    import torch

    torch.set_default_dtype(getattr(torch, DTYPE))
    paddle.set_default_dtype(DTYPE)
    try:
        _train_torch(save)
        _train_paddle(save)
    finally:
        torch.set_default_dtype(torch.float32)
        paddle.set_default_dtype("float32")


def _train_torch(save):
    from reprod_align.backends.torch.random import shared_random

    import torch

    model = torch_model().train()
    optimizer = torch_optimizer(model)
    scheduler = torch_scheduler(optimizer)
    rows = []
    for step in range(1, STEPS + 1):
        inputs, labels = torch_batch(step)
        with shared_random(draws(step)):
            loss = torch_loss(model(torch.from_numpy(inputs["tokens"])), torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        rows.append({"step": step, "loss": loss.item(), "lr": optimizer.param_groups[0]["lr"]})
        optimizer.step()
        scheduler.step()
        if step in save:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, HERE / f"torch_{step}.pt")
    write("torch", rows)


def _train_paddle(save):
    from reprod_align.backends.paddle.random import shared_random

    import paddle

    model = paddle_model()
    model.train()
    for name, tensor in torch_model().state_dict().items():
        values = tensor.double().numpy()
        linear = name in ("hidden.weight", "classifier.weight")
        parameter = dict(model.named_parameters())[name]
        parameter.set_value(paddle.to_tensor(values.T if linear else values, dtype=DTYPE))
    optimizer = paddle_optimizer(model)
    scheduler = paddle_scheduler(optimizer)
    optimizer.set_lr_scheduler(scheduler)
    rows = []
    for step in range(1, STEPS + 1):
        inputs, labels = paddle_batch(step)
        with shared_random(draws(step)):
            output = model(paddle.to_tensor(inputs["tokens"]))
            loss = paddle_loss(output, paddle.to_tensor(labels))
        loss.backward()
        rows.append({"step": step, "loss": float(loss.item()), "lr": optimizer.get_lr()})
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step()
        if "memory" in PLANTED and step == LATE:
            model.classifier.weight.set_value(model.classifier.weight * 1.01)
        if step in save:
            paddle.save(model.state_dict(), str(HERE / f"paddle_{step}.pdparams"))
            paddle.save(optimizer.state_dict(), str(HERE / f"paddle_{step}.pdopt"))
    write("paddle", rows)


def write(name, rows):
    """Write a log of JSON lines beside this file."""
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (HERE / f"{name}.jsonl").write_text(text)
