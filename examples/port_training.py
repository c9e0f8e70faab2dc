"""A PyTorch training script: `reprod-align port` ports its model and its loop (docs/porting.md)."""

import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """A convolution, a norm and a classifier."""

    def __init__(self, classes=4):
        """Make the layers."""
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        """Return logits (B, classes) of images (B, 3, H, W)."""
        x = F.relu(self.norm(self.conv(x)))
        return self.head(self.drop(x.mean((2, 3))))


def torch_model():
    """Return the model that is ported."""
    return Net()


def inputs():
    """Return a batch of images."""
    return (np.random.default_rng(0).standard_normal((2, 3, 8, 8)),)


def train_epoch(model, loader, optimizer, schedule, args):
    """Go over the data once; return the mean loss."""
    model.train()
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(args.device)), y.to(args.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        schedule.step()
        total += loss.item()
    return total / len(loader)


def main():
    """Train as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", default="checkpoints")
    args = parser.parse_args()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 3, 8, 8), torch.randint(0, 4, (32,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2, pin_memory=True)
    model = Net().to(args.device)
    matrices = [one for one in model.parameters() if one.ndim > 1]
    vectors = [one for one in model.parameters() if one.ndim < 2]
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, optimizer, schedule, args)
        print(f"epoch {epoch}: {loss:.4f}, rate {optimizer.param_groups[0]['lr']:.2e}")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, os.path.join(args.out, f"{epoch}.pt"))


if __name__ == "__main__":
    main()
