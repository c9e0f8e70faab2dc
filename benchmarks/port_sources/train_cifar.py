"""Wide residual network for CIFAR with mixup and cosine schedule: python train_cifar.py --data-dir DIR"""

import argparse
import math
import os

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
STD = torch.tensor([0.2471, 0.2435, 0.2616]).view(1, 3, 1, 1)


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class PreActBlock(nn.Module):
    def __init__(self, in_planes, planes, stride, drop=0.0):
        super(PreActBlock, self).__init__()
        self.bn1 = nn.BatchNorm2d(in_planes)
        self.conv1 = conv3x3(in_planes, planes, stride)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv2 = conv3x3(planes, planes)
        self.drop = drop
        self.equal = in_planes == planes and stride == 1
        self.shortcut = None if self.equal else nn.Conv2d(in_planes, planes, 1, stride, bias=False)

    def forward(self, x):
        if not self.equal:
            x = F.relu(self.bn1(x), inplace=True)
            out = x
        else:
            out = F.relu(self.bn1(x), inplace=True)
        out = F.relu(self.bn2(self.conv1(out)), inplace=True)
        if self.drop > 0:
            out = F.dropout(out, p=self.drop, training=self.training)
        out = self.conv2(out)
        return torch.add(x if self.equal else self.shortcut(x), out)


class WideResNet(nn.Module):
    def __init__(self, depth=28, widen=10, num_classes=10, drop=0.3):
        super(WideResNet, self).__init__()
        assert (depth - 4) % 6 == 0, "depth should be 6n+4"
        n = (depth - 4) // 6
        planes = [16, 16 * widen, 32 * widen, 64 * widen]
        self.register_buffer("mean", MEAN.clone())
        self.register_buffer("std", STD.clone())
        self.conv1 = conv3x3(3, planes[0])
        for i in range(3):
            stride = 1 if i == 0 else 2
            setattr(
                self,
                "layer%d" % (i + 1),
                self._make_layer(planes[i], planes[i + 1], n, stride, drop),
            )
        self.bn = nn.BatchNorm2d(planes[3], momentum=0.9)
        self.fc = nn.Linear(planes[3], num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                fan = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                m.weight.data.normal_(0, math.sqrt(2.0 / fan))
            elif isinstance(m, nn.BatchNorm2d):
                m.weight.data.fill_(1)
                m.bias.data.zero_()
            elif isinstance(m, nn.Linear):
                m.bias.data.zero_()

    @staticmethod
    def _make_layer(in_planes, planes, n, stride, drop):
        layers = []
        for i in range(int(n)):
            layers.append(
                PreActBlock(in_planes if i == 0 else planes, planes, stride if i == 0 else 1, drop)
            )
        return nn.Sequential(*layers)

    def forward(self, x):
        x = (x - self.mean) / self.std
        out = self.conv1(x)
        out = self.layer3(self.layer2(self.layer1(out)))
        out = F.relu(self.bn(out))
        out = F.avg_pool2d(out, out.size(3)).view(out.size(0), -1)
        return self.fc(out)


def mixup(x, y, alpha):
    lam = np.random.beta(alpha, alpha) if alpha > 0 else 1.0
    index = torch.randperm(x.size(0), device=x.device)
    return lam * x + (1 - lam) * x[index], y, y[index], lam


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += model(x.to(device)).argmax(1).cpu().eq(y).sum().item()
    return 100.0 * correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description="CIFAR-10 training")
    parser.add_argument("--data-dir", default="./data")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("-b", "--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", default="", type=str, metavar="PATH")
    parser.add_argument("--out", default=".")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cudnn.benchmark = True
    augment = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
        ]
    )
    train_set = datasets.CIFAR10(args.data_dir, train=True, transform=augment, download=True)
    test_set = datasets.CIFAR10(args.data_dir, train=False, transform=transforms.ToTensor())
    train_loader = DataLoader(
        train_set, args.batch_size, shuffle=True, num_workers=4, pin_memory=True
    )
    test_loader = DataLoader(test_set, 256, num_workers=4)
    model = nn.DataParallel(WideResNet()).to(device)
    optimizer = torch.optim.SGD(
        model.parameters(), args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    scheduler = LambdaLR(
        optimizer, lambda epoch: 0.5 * (1 + math.cos(math.pi * epoch / args.epochs))
    )
    start, best = 0, 0.0
    if args.resume:
        state = torch.load(args.resume, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start, best = state["epoch"], state["best"]
    for epoch in range(start, args.epochs):
        model.train()
        for x, y in train_loader:
            x, ya, yb, lam = mixup(x.to(device), y.to(device), args.alpha)
            out = model(x)
            loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        scheduler.step()
        acc = evaluate(model, test_loader, device)
        print("epoch %3d  loss %.4f  acc %.2f" % (epoch, loss.item(), acc))
        best = max(best, acc)
        state = {
            "epoch": epoch + 1,
            "best": best,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        torch.save(state, os.path.join(args.out, "last.pth"))


if __name__ == "__main__":
    main()
