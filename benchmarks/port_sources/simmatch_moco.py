"""
Semi-supervised learning with a momentum encoder and a queue.

A compact mix of MoCo v2 (queue + EMA key encoder), FixMatch (confidence-thresholded pseudo labels),
and SimMatch (semantic/instance similarity propagation).  CIFAR sized WideResNet backbone.
"""

import copy
import math
from functools import partial
from typing import Dict

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv3x3(i_c, o_c, stride=1):
    return nn.Conv2d(i_c, o_c, 3, stride, 1, bias=False)


class BatchNorm2d(nn.BatchNorm2d):
    def __init__(self, channels, momentum=1e-3, eps=1e-3):
        super().__init__(channels)
        self.update_batch_stats = True
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        if self.update_batch_stats or not self.training:
            return super().forward(x)
        else:
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, self.momentum, self.eps
            )


relu = partial(nn.LeakyReLU, 0.1)


class BasicUnit(nn.Module):
    def __init__(self, i_c, o_c, stride=1, activate_before_residual=False):
        super().__init__()
        layer = []
        if activate_before_residual:
            self.pre_act = nn.Sequential(BatchNorm2d(i_c), relu())
        else:
            self.pre_act = nn.Identity()
            layer += [BatchNorm2d(i_c), relu()]
        layer += [conv3x3(i_c, o_c, stride), BatchNorm2d(o_c), relu(), conv3x3(o_c, o_c)]
        self.layer = nn.Sequential(*layer)
        if stride != 1 or i_c != o_c:
            self.shortcut = nn.Conv2d(i_c, o_c, 1, stride, 0, bias=False)
        else:
            self.shortcut = nn.Sequential()

    def forward(self, x):
        x = self.pre_act(x)
        return self.shortcut(x) + self.layer(x)


class WRN(nn.Module):
    """Wide-ResNet as in "Realistic Evaluation of Deep SSL Algorithms" """

    def __init__(self, width=1, depth=10, base=16):
        super().__init__()
        n = (depth - 4) // 6
        filters = [base, base * width, 2 * base * width, 4 * base * width]
        unit = [conv3x3(3, filters[0])]
        for stage, stride in enumerate([1, 2, 2]):
            unit.append(BasicUnit(filters[stage], filters[stage + 1], stride, stage == 0))
            unit.extend(BasicUnit(filters[stage + 1], filters[stage + 1]) for _ in range(1, n))
        unit += [BatchNorm2d(filters[3]), relu(), nn.AdaptiveAvgPool2d(1)]
        self.unit = nn.Sequential(*unit)
        self.out_dim = filters[3]
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, a=0.1, nonlinearity="leaky_relu")

    def forward(self, x):
        return self.unit(x).flatten(1)

    def update_batch_stats(self, flag):
        for m in self.modules():
            if isinstance(m, BatchNorm2d):
                m.update_batch_stats = flag


class Encoder(nn.Module):
    def __init__(self, backbone, num_classes, dim=32):
        super().__init__()
        self.net = backbone
        h = backbone.out_dim
        self.fc = nn.Linear(h, num_classes)
        self.head = nn.Sequential(
            nn.Linear(h, h, bias=False),
            nn.BatchNorm1d(h),
            nn.ReLU(inplace=True),
            nn.Linear(h, dim),
        )

    def forward(self, x):
        feat = self.net(x)
        logits = self.fc(feat)
        embedding = F.normalize(self.head(feat), p=2, dim=1)
        return logits, embedding


class SimMatchMoCo(nn.Module):
    def __init__(
        self,
        num_classes=5,
        dim=32,
        K=64,
        m=0.99,
        T=0.2,
        tt=0.1,
        st=0.1,
        threshold=0.3,
        c_smooth=0.9,
        DA_len=16,
        lambda_u=1.0,
        lambda_in=0.5,
        width=1,
        depth=10,
    ):
        super().__init__()
        assert K % 2 == 0
        self.num_classes, self.K, self.m, self.T = num_classes, K, m, T
        self.tt, self.st = tt, st
        self.threshold, self.c_smooth = threshold, c_smooth
        self.weights = {"x": 1.0, "u": lambda_u, "in": lambda_in, "nce": 0.2}

        self.main = Encoder(WRN(width, depth), num_classes, dim)
        # build ema model, no gradient
        self.ema = copy.deepcopy(self.main)
        for param_k in self.ema.parameters():
            param_k.requires_grad = False

        # create the queue
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_labels", torch.randint(0, num_classes, (K,)))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))
        # distribution alignment
        self.register_buffer("DA_queue", torch.full((DA_len, num_classes), 1.0 / num_classes))
        self.register_buffer("DA_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum_update_ema(self):
        for param_train, param_eval in zip(self.main.parameters(), self.ema.parameters()):
            param_eval.data = param_eval.data * self.m + param_train.detach().data * (1 - self.m)
        for (name, buf_train), buf_eval in zip(self.main.named_buffers(), self.ema.buffers()):
            if "num_batches_tracked" in name:
                buf_eval.copy_(buf_train)
            else:
                buf_eval.mul_(self.m).add_(buf_train, alpha=1 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys, labels):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0  # for simplicity
        self.queue[:, ptr : ptr + batch_size] = keys.T
        self.queue_labels[ptr : ptr + batch_size] = labels
        self.queue_ptr[0] = (ptr + batch_size) % self.K  # move pointer

    @torch.no_grad()
    def distribution_alignment(self, probs):
        if self.training:
            ptr = int(self.DA_ptr)
            self.DA_queue[ptr] = probs.mean(0)
            self.DA_ptr[0] = (ptr + 1) % len(self.DA_queue)
        probs = probs / self.DA_queue.mean(0)
        return probs / probs.sum(dim=1, keepdim=True)

    def semantic_propagation(self, bank, bank_labels, prob_ku, feat_ku):
        """refine pseudo labels with neighbours, and instance sims with semantics"""
        teacher_logits = feat_ku @ bank
        teacher_prob_orig = F.softmax(teacher_logits / self.tt, dim=1)
        index = bank_labels.expand([prob_ku.size(0), -1])
        factor = prob_ku.gather(1, index)
        teacher_prob = teacher_prob_orig * factor
        teacher_prob /= torch.sum(teacher_prob, dim=1, keepdim=True)
        if self.c_smooth < 1:
            aggregated = torch.zeros_like(prob_ku).scatter_add(1, index, teacher_prob_orig)
            prob_ku = prob_ku * self.c_smooth + aggregated * (1 - self.c_smooth)
        return prob_ku, teacher_prob

    def forward(self, im_x, im_u_w, im_u_s, labels_x) -> Dict[str, torch.Tensor]:
        """
        Args:
            im_x: labelled images;  labels_x: their classes
            im_u_w / im_u_s: weakly / strongly augmented views of the unlabelled images
        """
        batch_size_x, batch_size_u = im_x.shape[0], im_u_w.shape[0]
        # snapshot: the queue is modified in place below
        bank = self.queue.clone().detach()
        bank_labels = self.queue_labels.clone().detach()

        logits_q, feat_q = self.main(torch.cat([im_x, im_u_s]))
        logits_qx, logits_qu = logits_q[:batch_size_x], logits_q[batch_size_x:]
        _, feat_qu = torch.split(feat_q, [batch_size_x, batch_size_u])

        with torch.no_grad():
            if self.training:
                self.momentum_update_ema()
            logits_k, feat_k = self.ema(torch.cat([im_x, im_u_w]))
            feat_kx, feat_ku = feat_k[:batch_size_x], feat_k[batch_size_x:]
            prob_ku_orig = F.softmax(logits_k[batch_size_x:], dim=-1)
            prob_ku_orig = self.distribution_alignment(prob_ku_orig)
            prob_ku, teacher_prob = self.semantic_propagation(
                bank, bank_labels, prob_ku_orig, feat_ku
            )

        # 1. supervised
        loss_x = F.cross_entropy(logits_qx, labels_x, reduction="mean", label_smoothing=0.05)

        # 2. pseudo label
        max_probs, pseudo = torch.max(prob_ku, dim=-1)
        mask = max_probs.ge(self.threshold).type_as(max_probs)
        loss_u = torch.sum(-F.log_softmax(logits_qu, dim=-1) * prob_ku, dim=-1) * mask

        # 3. instance similarity consistency
        student_logits = feat_qu @ bank
        loss_in = torch.sum(
            -teacher_prob.detach() * F.log_softmax(student_logits / self.st, dim=1), dim=1
        )

        # 4. InfoNCE; negatives with the same pseudo label are ignored
        l_pos = torch.einsum("nc,nc->n", [feat_qu, feat_ku]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [feat_qu, bank])
        same = bank_labels.unsqueeze(0) == pseudo.unsqueeze(1)
        l_neg.masked_fill_(same & mask.bool().unsqueeze(1), -1e4)
        nce_logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        target = torch.zeros(nce_logits.shape[0], dtype=torch.long, device=nce_logits.device)
        loss_nce = F.cross_entropy(nce_logits, target)

        if self.training:
            self._dequeue_and_enqueue(feat_kx, labels_x)

        losses = {"x": loss_x, "u": loss_u.mean(), "in": loss_in.mean(), "nce": loss_nce}
        total = sum(self.weights[k] * v for k, v in losses.items())
        out = {"loss": total, **{"loss_" + k: v for k, v in losses.items()}}
        out.update(logits_x=logits_qx, feat_u=feat_qu, pseudo_label=pseudo, mask_ratio=mask.mean())
        return out


def cosine_momentum(base, step, total):
    return 1 - (1 - base) * (math.cos(math.pi * step / total) + 1) / 2


if __name__ == "__main__":
    model = SimMatchMoCo()
    out = model(
        torch.randn(4, 3, 32, 32),
        torch.randn(8, 3, 32, 32),
        torch.randn(8, 3, 32, 32),
        torch.randint(0, 5, (4,)),
    )
    print({k: tuple(v.shape) for k, v in out.items()}, out["loss"].item())
