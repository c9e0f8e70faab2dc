"""A binarized CNN: signs with a clipped straight-through gradient, real scales per output channel."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class BinaryActivation(torch.autograd.Function):
    """sign(x) whose gradient is that of the piecewise quadratic of Bi-Real Net."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = torch.where(x < 0, 2 + 2 * x, 2 - 2 * x)
        return grad_output * slope * x.abs().lt(1).to(grad_output.dtype)


class BinarizeWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, clip=1.0):
        ctx.clip = clip
        ctx.save_for_backward(w)
        scale = w.abs().mean(dim=[1, 2, 3], keepdim=True)
        return scale * torch.sign(w)

    @staticmethod
    def backward(ctx, grad_output):
        w = ctx.saved_tensors[0]
        grad = grad_output.clone()
        grad[w.ge(ctx.clip)] = 0
        grad[w.le(-ctx.clip)] = 0
        return grad, None


class BinConv2d(nn.Conv2d):
    def __init__(self, *args, clip=1.0, **kwargs):
        super().__init__(*args, bias=False, **kwargs)
        self.clip = clip
        nn.init.uniform_(self.weight, -0.5, 0.5)

    def forward(self, input):
        weight = BinarizeWeight.apply(self.weight, self.clip)
        return F.conv2d(input, weight, None, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self):
        return f"{super().extra_repr()}, clip={self.clip}"


class LearnableBias(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1), requires_grad=True)

    def forward(self, x):
        return x + self.bias.expand_as(x)


class RPReLU(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.move_in = LearnableBias(channels)
        self.prelu = nn.PReLU(channels)
        self.move_out = LearnableBias(channels)

    def forward(self, x):
        return self.move_out(self.prelu(self.move_in(x)))


class BasicBlock(nn.Module):
    def __init__(self, inp, oup, stride=1):
        super().__init__()
        self.move = LearnableBias(inp)
        self.conv = BinConv2d(inp, inp, kernel_size=3, stride=stride, padding=1)
        self.bn1 = nn.BatchNorm2d(inp)
        self.act1 = RPReLU(inp)
        self.pool = nn.AvgPool2d(2, 2) if stride == 2 else nn.Identity()
        self.move2 = LearnableBias(inp)
        self.point = nn.ModuleList([BinConv2d(inp, inp, kernel_size=1) for _ in range(oup // inp)])
        self.bn2 = nn.ModuleList([nn.BatchNorm2d(inp) for _ in range(oup // inp)])
        self.act2 = RPReLU(oup)

    def forward(self, x):
        out = self.bn1(self.conv(BinaryActivation.apply(self.move(x))))
        out = self.act1(out + self.pool(x))
        signs = BinaryActivation.apply(self.move2(out))
        halves = [self.bn2[i](conv(signs)) + out for i, conv in enumerate(self.point)]
        return self.act2(torch.cat(halves, dim=1))


class BinaryNet(nn.Module):
    def __init__(self, width=32, n_classes=1000, cfg=((2, 2), (1, 1), (2, 2))):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardtanh(inplace=True),
        )
        blocks, inp = [], width
        for mult, stride in cfg:
            blocks.append(BasicBlock(inp, inp * mult, stride))
            inp *= mult
        self.blocks = nn.ModuleList(blocks)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inp, n_classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.fc(self.pool(x).squeeze(-1).squeeze(-1))

    def regularizer(self):
        """Sum of (1 - w^2)^2, which pulls the latent weights towards -1 and 1."""
        total = 0.0
        for m in self.modules():
            if isinstance(m, BinConv2d):
                total = total + (1 - m.weight.pow(2)).pow(2).sum()
        return total


def distill_loss(student, teacher, temperature=4.0):
    p = F.log_softmax(student / temperature, dim=1)
    q = F.softmax(teacher.detach() / temperature, dim=1)
    return F.kl_div(p, q, reduction="batchmean") * temperature**2
