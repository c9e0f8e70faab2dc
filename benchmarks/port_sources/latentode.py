"""
Latent ODE with an ODE-RNN recognition network and a neural CDE head for irregularly
sampled multivariate series (PhysioNet-like): joint interpolation and classification.

All solvers are fixed-step, so that the number of function evaluations is the same for
every batch.
"""

import math
from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

import torch
from torch import nn, Tensor
from torch.distributions import Normal, kl_divergence


@dataclass
class LatentODEConfig:
    input_dim: int = 41
    latent_dim: int = 20
    rec_dim: int = 40
    cde_dim: int = 16
    units: int = 50
    ode_layers: int = 2
    n_classes: int = 2
    method: str = "rk4"
    steps_per_interval: int = 1
    obsrv_std: float = 0.1
    kl_coef: float = 1.0
    ce_coef: float = 10.0


def init_network_weights(net, std=0.1):
    for m in net.modules():
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, mean=0, std=std)
            nn.init.constant_(m.bias, val=0)


def create_net(n_inputs, n_outputs, n_layers=1, n_units=100, nonlinear=nn.Tanh):
    layers = [nn.Linear(n_inputs, n_units)]
    for i in range(n_layers):
        layers.append(nonlinear())
        layers.append(nn.Linear(n_units, n_units))
    layers.append(nonlinear())
    layers.append(nn.Linear(n_units, n_outputs))
    return nn.Sequential(*layers)


# ----------------------------------------------------------------------------------------
# Solvers
# ----------------------------------------------------------------------------------------
def euler_step(func, t, dt, y):
    return dt * func(t, y)


def midpoint_step(func, t, dt, y):
    half = y + func(t, y) * dt / 2
    return dt * func(t + dt / 2, half)


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 3, y + dt * k1 / 3)
    k3 = func(t + dt * 2 / 3, y + dt * (k2 - k1 / 3))
    k4 = func(t + dt, y + dt * (k1 - k2 + k3))
    return (k1 + 3 * (k2 + k3) + k4) * dt * 0.125


SOLVERS = {"euler": euler_step, "midpoint": midpoint_step, "rk4": rk4_step}


def odeint(func: Callable, y0: Tensor, t: Tensor, method: str = "rk4", n_steps: int = 1) -> Tensor:
    """Returns the solution at every point of t, stacked along dim 0."""
    if method not in SOLVERS:
        raise NotImplementedError(f"solver {method}")
    step = SOLVERS[method]
    ys: List[Tensor] = [y0]
    y = y0
    for t0, t1 in zip(t[:-1], t[1:]):
        dt = (t1 - t0) / n_steps
        for k in range(n_steps):
            y = y + step(func, t0 + k * dt, dt, y)
        ys.append(y)
    return torch.stack(ys, dim=0)


# ----------------------------------------------------------------------------------------
# Networks
# ----------------------------------------------------------------------------------------
class ODEFunc(nn.Module):
    def __init__(self, dim, n_layers, units, backwards=False):
        super().__init__()
        self.net = create_net(dim, dim, n_layers, units)
        self.backwards = backwards
        init_network_weights(self.net)

    def forward(self, t, y):
        grad = self.net(y)
        return -grad if self.backwards else grad


class GRUUnit(nn.Module):
    """GRU on mean and standard deviation; keeps the old state where nothing was observed."""

    def __init__(self, latent_dim, input_dim, n_units=100):
        super().__init__()
        n_in = latent_dim * 2 + input_dim
        self.update_gate = nn.Sequential(
            nn.Linear(n_in, n_units), nn.Tanh(), nn.Linear(n_units, latent_dim), nn.Sigmoid()
        )
        self.reset_gate = nn.Sequential(
            nn.Linear(n_in, n_units), nn.Tanh(), nn.Linear(n_units, latent_dim), nn.Sigmoid()
        )
        self.new_state_net = nn.Sequential(
            nn.Linear(n_in, n_units), nn.Tanh(), nn.Linear(n_units, latent_dim * 2)
        )
        for net in (self.update_gate, self.reset_gate, self.new_state_net):
            init_network_weights(net)

    def forward(self, y_mean, y_std, x, mask):
        y_concat = torch.cat([y_mean, y_std, x], -1)
        update_gate = self.update_gate(y_concat)
        reset_gate = self.reset_gate(y_concat)
        concat = torch.cat([y_mean * reset_gate, y_std * reset_gate, x], -1)
        new_state, new_state_std = self.new_state_net(concat).chunk(2, dim=-1)
        new_state_std = new_state_std.abs()

        new_y = (1 - update_gate) * new_state + update_gate * y_mean
        new_y_std = (1 - update_gate) * new_state_std + update_gate * y_std

        observed = (mask.sum(-1, keepdim=True) > 0).to(new_y.dtype)
        new_y = observed * new_y + (1 - observed) * y_mean
        new_y_std = observed * new_y_std + (1 - observed) * y_std
        return new_y, new_y_std.abs()


class EncoderZ0ODERNN(nn.Module):
    def __init__(self, cfg: LatentODEConfig):
        super().__init__()
        self.cfg = cfg
        self.func = ODEFunc(cfg.rec_dim, cfg.ode_layers, cfg.units, backwards=True)
        self.gru = GRUUnit(cfg.rec_dim, cfg.input_dim * 2, cfg.units)
        self.transform_z0 = nn.Sequential(
            nn.Linear(cfg.rec_dim * 2, cfg.units),
            nn.Tanh(),
            nn.Linear(cfg.units, cfg.latent_dim * 2),
        )
        init_network_weights(self.transform_z0)

    def forward(self, x: Tensor, mask: Tensor, t: Tensor) -> Tuple[Tensor, Tensor]:
        batch = x.size(0)
        h = x.new_zeros(batch, self.cfg.rec_dim)
        std = x.new_zeros(batch, self.cfg.rec_dim)
        inputs = torch.cat([x, mask], -1)
        prev_t = t[-1] + 0.01
        for i in reversed(range(t.size(0))):
            dt = prev_t - t[i]
            if self.cfg.method == "euler":
                h = h + euler_step(self.func, prev_t, dt, h)
            else:
                h = h + midpoint_step(self.func, prev_t, dt, h)
            h, std = self.gru(h, std, inputs[:, i], mask[:, i])
            prev_t = t[i]
        mean, std = self.transform_z0(torch.cat([h, std], -1)).split(self.cfg.latent_dim, dim=-1)
        return mean, std.abs() + 1e-4


class CDEFunc(nn.Module):
    def __init__(self, hidden, channels, units):
        super().__init__()
        self.hidden = hidden
        self.channels = channels
        self.linear1 = nn.Linear(hidden, units)
        self.linear2 = nn.Linear(units, hidden * channels)

    def forward(self, z):
        z = self.linear1(z).relu()
        z = self.linear2(z).tanh()
        return z.view(*z.shape[:-1], self.hidden, self.channels)


class NeuralCDE(nn.Module):
    """Controlled by the linear interpolation of the (forward filled) observations."""

    def __init__(self, cfg: LatentODEConfig):
        super().__init__()
        channels = cfg.input_dim + 1
        self.step = SOLVERS[cfg.method]
        self.initial = nn.Linear(channels, cfg.cde_dim)
        self.func = CDEFunc(cfg.cde_dim, channels, cfg.units)

    @staticmethod
    def forward_fill(x, mask):
        index = torch.arange(x.size(1), device=x.device)[None, :, None].expand_as(x)
        index = torch.where(mask > 0, index, torch.zeros_like(index))
        index, _ = index.cummax(dim=1)
        return torch.gather(x * mask, 1, index)

    def forward(self, x, mask, t):
        path = torch.cat(
            [t.view(1, -1, 1).expand(x.size(0), -1, 1), self.forward_fill(x, mask)], -1
        )
        z = self.initial(path[:, 0])
        for i in range(t.size(0) - 1):
            dt = t[i + 1] - t[i]
            dxdt = (path[:, i + 1] - path[:, i]) / dt

            def vector_field(_, z):
                return torch.matmul(self.func(z), dxdt.unsqueeze(-1)).squeeze(-1)

            z = z + self.step(vector_field, t[i], dt, z)
        return z


class LatentODE(nn.Module):
    def __init__(self, cfg: LatentODEConfig):
        super().__init__()
        self.cfg = cfg
        self.encoder = EncoderZ0ODERNN(cfg)
        self.ode_func = ODEFunc(cfg.latent_dim, cfg.ode_layers, cfg.units)
        self.decoder = nn.Sequential(nn.Linear(cfg.latent_dim, cfg.input_dim))
        self.cde = NeuralCDE(cfg)
        self.classifier = nn.Sequential(
            nn.Linear(cfg.latent_dim + cfg.cde_dim, cfg.units),
            nn.ReLU(),
            nn.Linear(cfg.units, cfg.n_classes),
        )
        init_network_weights(self.decoder)
        self.register_buffer("obsrv_std", torch.tensor([cfg.obsrv_std]))
        self.register_buffer("prior_mean", torch.tensor([0.0]))
        self.register_buffer("prior_std", torch.tensor([1.0]))

    def gaussian_log_likelihood(self, pred, target, mask):
        log_prob = -0.5 * ((pred - target) / self.obsrv_std) ** 2
        log_prob = log_prob - torch.log(self.obsrv_std) - 0.5 * math.log(2 * math.pi)
        per_dim = (log_prob * mask).sum(1)
        count = mask.sum(1)
        per_dim = torch.where(count > 0, per_dim / count.clamp(min=1), torch.zeros_like(per_dim))
        return per_dim.mean(-1)

    def forward(
        self,
        observed_data: Tensor,
        observed_mask: Tensor,
        observed_tp: Tensor,
        data_to_predict: Tensor,
        mask_predicted: Tensor,
        tp_to_predict: Tensor,
        labels: Optional[Tensor] = None,
    ):
        x = observed_data * observed_mask
        mean, std = self.encoder(x, observed_mask, observed_tp)
        q_z0 = Normal(mean, std)
        z0 = q_z0.rsample() if self.training else q_z0.mean

        # the initial state lives at the first observation
        t = torch.cat([observed_tp[:1] - 0.01, tp_to_predict])
        sol = odeint(
            self.ode_func, z0, t, method=self.cfg.method, n_steps=self.cfg.steps_per_interval
        )
        sol = sol[1:].permute(1, 0, 2)
        pred = self.decoder(sol)

        h = self.cde(x, observed_mask, observed_tp)
        logits = self.classifier(torch.cat([z0, h], -1))

        rec = self.gaussian_log_likelihood(pred, data_to_predict, mask_predicted)
        kl = kl_divergence(q_z0, Normal(self.prior_mean, self.prior_std)).mean(-1)
        loss = -torch.mean(rec - self.cfg.kl_coef * kl)
        results = {
            "pred": pred,
            "logits": logits,
            "likelihood": rec.mean().detach(),
            "kl": kl.mean(),
        }
        if labels is not None:
            ce = nn.functional.cross_entropy(logits, labels)
            results["ce_loss"] = ce
            loss = loss + self.cfg.ce_coef * ce
        with torch.no_grad():
            err = ((pred - data_to_predict) ** 2 * mask_predicted).sum() / mask_predicted.sum()
            results["mse"] = err
        results["loss"] = loss
        return results
