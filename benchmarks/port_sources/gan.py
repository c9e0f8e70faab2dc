"""Generator and critic with spectral norm, weights initialised by class name."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.nn.utils import weight_norm

NORMS = {"bn": nn.BatchNorm2d, "in": nn.InstanceNorm2d}
ACTS = {
    "relu": lambda: nn.ReLU(True),
    "lrelu": lambda: nn.LeakyReLU(0.2, inplace=True),
    "tanh": nn.Tanh,
}


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1 and hasattr(m, "weight"):
        m.weight.data.normal_(0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


class ResidualUp(nn.Module):
    def __init__(self, cin, cout, norm="bn", act="relu"):
        super().__init__()
        self.body = nn.Sequential(
            NORMS[norm](cin, affine=True),
            ACTS[act](),
            nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False),
            NORMS[norm](cout, eps=1e-4, momentum=0.2),
            ACTS["lrelu"](),
            nn.ReflectionPad2d(1),
            nn.Conv2d(cout, cout, 3),
        )
        self.skip = weight_norm(nn.Conv2d(cin, cout, 1)) if cin != cout else None

    def forward(self, x):
        y = x if self.skip is None else self.skip(x)
        y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return self.body(x).mul_(0.5).add_(y)


class Generator(nn.Module):
    def __init__(self, z_dim=8, ch=8, n_up=2, size=16):
        super().__init__()
        self.z_dim, self.base = z_dim, size // 2**n_up
        self.fc = nn.Linear(z_dim, ch * self.base**2)
        ups = []
        for i in range(n_up):
            ups += [ResidualUp(ch // 2**i, ch // 2 ** (i + 1), norm="bn" if i == 0 else "in")]
        self.ups = nn.Sequential(*ups)
        self.to_rgb = nn.Conv2d(
            ch // 2**n_up, 3, kernel_size=3, padding="same", padding_mode="reflect"
        )
        grid = np.stack(np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size)))
        self.register_buffer("grid", torch.from_numpy(grid).float().unsqueeze(0))
        self.apply(weights_init)

    def forward(self, z):
        x = self.fc(z).view(z.size(0), -1, self.base, self.base)
        x = torch.tanh(self.to_rgb(self.ups(x)))
        ring = (self.grid**2).sum(1, keepdim=True).sqrt().to(x.dtype)
        return x * torch.where(ring > 1, ring.new_tensor(0.5), torch.ones_like(ring))


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1).type_as(real)
    mix = Variable(alpha * real + (1 - alpha) * fake, requires_grad=True)
    grads = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)[0]
    return ((grads.view(grads.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


def train_step(gen, opt, real):
    opt.zero_grad()
    loss = F.mse_loss(gen(torch.randn(real.size(0), gen.z_dim)), real)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(gen.parameters(), 1.0)
    opt.step()
    return loss.item()
