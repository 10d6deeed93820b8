"""The PyTorch peers: eager loops with flat weights, preallocated buffers and in-place updates."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import workloads
from workloads import Workload

LIBRARY = f"torch {torch.__version__}"
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "tanh": torch.tanh_, "identity": lambda x: x}
Gradient = Callable[[Tensor, Tensor, Tensor], Tensor]  # x, y, out: puts the loss gradient in out, returns the losses [C]


def tensor(array: np.ndarray) -> Tensor:
    """On the device of the run; on the CPU it shares the array's memory."""
    return torch.from_numpy(array).to(torch.get_default_device())


def unflatten(w: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Views of flat weights [..., N]."""
    parts = w.split([int(np.prod(shape)) for shape in shapes], dim=-1)
    return [part.view(*w.shape[:-1], *shape) for part, shape in zip(parts, shapes)]


def forward(workload: Workload, arrays: list[Tensor], x: Tensor) -> Tensor:
    """Outputs of the net: one chain with matrices, many with leading batch dimensions [C, rows, inputs]."""
    for layer in range(len(workload.layers) - 1):
        if not workload.bias:
            x = x @ arrays[layer]
        elif x.dim() == 2:
            x = torch.addmm(arrays[2 * layer + 1], x, arrays[2 * layer])
        else:
            x = torch.baddbmm(arrays[2 * layer + 1].unsqueeze(1), x, arrays[2 * layer])
        x = ACTIVATIONS[workload.activation(layer)](x)
    return x


def losses(workload: Workload, out: Tensor, y: Tensor) -> Tensor:
    """Mean loss of each chain: [C], or a scalar for outputs [rows, outputs]."""
    rows = out.shape[-2]
    if workload.loss == "squared":
        return F.mse_loss(out, y, reduction="sum") / rows
    if out.dim() == 2:
        return F.cross_entropy(out, y)
    return F.cross_entropy(out.flatten(0, 1), y.flatten(), reduction="none").view(-1, rows).mean(1)


def loop_gradient(workload: Workload, w: Tensor) -> Gradient:
    """Autograd on leaves that share the memory of w [C, N]; for many chains the products are batched."""
    many = workload.chains > 1
    leaves = [leaf.requires_grad_() for leaf in unflatten(w.detach() if many else w.detach()[0], workload.shapes)]

    def gradient(x: Tensor, y: Tensor, out: Tensor) -> Tensor:
        loss = losses(workload, forward(workload, leaves, x), y)
        gradients = torch.autograd.grad(loss.sum() if many else loss, leaves)
        torch.cat([g.flatten(1) if many else g.view(1, -1) for g in gradients], dim=1, out=out)
        return loss.detach()

    return gradient


def vmap_gradient(workload: Workload, w: Tensor) -> Gradient:
    """torch.func over the chains, on the flat weights."""

    def loss(flat: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return losses(workload, forward(workload, unflatten(flat, workload.shapes), x), y)

    shared = workload.sampler == "hmc"
    mapped = torch.func.vmap(torch.func.grad_and_value(loss), in_dims=(0, None, None) if shared else (0, 0, 0))

    def gradient(x: Tensor, y: Tensor, out: Tensor) -> Tensor:
        gradients, values = mapped(w, x, y)
        out.copy_(gradients)
        return values

    return gradient


class Peer:
    """Data, weights [C, N] and gradient of a workload; a subclass says what a step is."""

    library, length = LIBRARY, 1  # steps between two looks at the clock

    def __init__(self, workload: Workload, peer: str) -> None:
        torch.set_flush_denormal(True)
        torch.manual_seed(3)
        self.workload, self.steps = workload, 0
        self.w = tensor(workloads.start(workload))
        self.g, self.noise = torch.empty_like(self.w), torch.empty_like(self.w)
        self.loss_sum = torch.zeros(workload.chains)
        self.temperatures = torch.tensor(workload.temperatures)
        if workload.rows:
            x, y = workloads.data(workload)
            self.x = tensor(x)
            self.y = tensor(y if y.dtype == np.float32 else y.astype(np.int64))
            make = vmap_gradient if peer == "pytorch-vmap" else loop_gradient
            self.gradient = make(workload, self.point())

    def point(self) -> Tensor:
        """The buffer at which gradients are taken."""
        return self.w

    def step(self) -> None:
        raise NotImplementedError

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        if self.w.is_cuda:
            torch.cuda.synchronize()
        self.steps += steps

    def warm_up(self) -> None:
        self.advance(3)
        if self.w.is_cuda:
            self.length = 20  # not to wait for the GPU after every step

    def weights(self) -> np.ndarray:
        return self.w.numpy(force=True).copy()

    def stats(self) -> dict[str, float]:
        return {"loss": float(self.loss_sum.mean()) / self.steps}


class Sgld(Peer):
    """SGLD, w <- w - (eps/2) g + sqrt(eps T) eta, on minibatches drawn with replacement, each chain its own."""

    def __init__(self, workload: Workload, peer: str) -> None:
        rows, many = workload.chains * workload.batch, workload.chains > 1
        self.index = torch.empty(rows, dtype=torch.int64)
        self.xb = torch.empty(rows, workload.layers[0])
        if workload.loss == "squared":
            self.yb = torch.empty(rows, workload.layers[-1])
        else:
            self.yb = torch.empty(rows, dtype=torch.int64)
        shape = (workload.chains, workload.batch) if many else (workload.batch,)
        self.x_view, self.y_view = (b.view(*shape, *b.shape[1:]) for b in (self.xb, self.yb))
        self.virial_sum = torch.zeros(workload.chains)
        self.scale = float(np.sqrt(workload.step * workload.temperatures[0]))  # every chain has the same temperature
        super().__init__(workload, peer)

    def minibatch_gradient(self) -> None:
        """Draw the minibatches, put the gradients of U in g, accumulate losses and virials."""
        torch.randint(len(self.x), self.index.shape, out=self.index)
        torch.index_select(self.x, 0, self.index, out=self.xb)
        torch.index_select(self.y, 0, self.index, out=self.yb)
        loss = self.gradient(self.x_view, self.y_view, self.g)
        if self.workload.prior:
            self.g.add_(self.w, alpha=self.workload.prior / self.workload.size)
        self.loss_sum += loss
        self.virial_sum += torch.linalg.vecdot(self.w, self.g)

    def step(self) -> None:
        self.minibatch_gradient()
        self.noise.normal_()
        self.w.add_(self.g, alpha=-self.workload.step / 2).add_(self.noise, alpha=self.scale)

    def stats(self) -> dict[str, float]:
        return {**super().stats(), "virial": float(self.virial_sum.mean()) / self.steps / self.workload.size}


class Rmsprop(Sgld):
    """RMSProp-preconditioned SGLD (Li et al. 2016): v <- a v + (1-a) g^2, G = 1/(floor + sqrt(v)),
    w <- w - (eps/2) G g + sqrt(eps T G) eta."""

    def __init__(self, workload: Workload, peer: str) -> None:
        self.v = torch.zeros(workload.chains, workload.size)
        self.root = torch.empty_like(self.v)
        super().__init__(workload, peer)

    def step(self) -> None:
        self.minibatch_gradient()
        self.v.mul_(self.workload.decay).addcmul_(self.g, self.g, value=1 - self.workload.decay)
        torch.sqrt(self.v, out=self.root).add_(self.workload.floor)
        self.noise.normal_()
        self.w.addcdiv_(self.g, self.root, value=-self.workload.step / 2)
        self.w.addcdiv_(self.noise, self.root.sqrt_(), value=self.scale)


class Hmc(Peer):
    """HMC at density exp(-U/T) with momenta N(0, T) and unit masses: a leapfrog trajectory and a Metropolis test, per chain.
    The gradient at the end of a trajectory serves the next one."""

    def __init__(self, workload: Workload, peer: str) -> None:
        many = workload.chains > 1
        self.q = tensor(workloads.start(workload))
        self.gq, self.accepted = torch.empty_like(self.q), torch.zeros(workload.chains)
        super().__init__(workload, peer)
        if many and peer == "pytorch":  # every chain sees all the rows
            self.x = self.x.expand(workload.chains, -1, -1)
            self.y = self.y.expand(workload.chains, -1).contiguous()
        self.u = self.energy()
        self.g.copy_(self.gq)

    def point(self) -> Tensor:
        return self.q

    def energy(self) -> Tensor:
        """U at q; puts its gradient in gq."""
        prior = self.workload.prior / self.workload.size
        loss = self.gradient(self.x, self.y, self.gq)
        self.gq.add_(self.q, alpha=prior)
        return loss + prior / 2 * torch.linalg.vecdot(self.q, self.q)

    def step(self) -> None:
        dt, steps, p = self.workload.step, self.workload.leapfrog, self.noise
        p.normal_().mul_(self.temperatures.sqrt().unsqueeze(1))
        before = self.u + torch.linalg.vecdot(p, p) / 2
        self.q.copy_(self.w)
        p.add_(self.g, alpha=-dt / 2)
        for k in range(steps):
            self.q.add_(p, alpha=dt)
            u = self.energy()
            p.add_(self.gq, alpha=-dt if k + 1 < steps else -dt / 2)
        after = u + torch.linalg.vecdot(p, p) / 2
        accept = torch.rand(self.workload.chains) < torch.exp((before - after) / self.temperatures)
        torch.where(accept.unsqueeze(1), self.q, self.w, out=self.w)
        torch.where(accept.unsqueeze(1), self.gq, self.g, out=self.g)
        self.u = torch.where(accept, u, self.u)
        self.accepted += accept
        self.loss_sum += self.u

    def stats(self) -> dict[str, float]:
        return {"energy": super().stats()["loss"], "accepted": float(self.accepted.mean()) / self.steps}


class Noise(Peer):
    """The update of SGLD alone, with a fixed gradient."""

    def __init__(self, workload: Workload, peer: str) -> None:
        super().__init__(workload, peer)
        self.g.normal_()
        self.scale = float(np.sqrt(workload.step * workload.temperatures[0]))

    def step(self) -> None:
        self.noise.normal_()
        self.w.add_(self.g, alpha=-self.workload.step / 2).add_(self.noise, alpha=self.scale)


def build(workload: Workload, peer: str, threads: int) -> Peer:
    torch.set_num_threads(threads)
    torch.set_default_device(os.environ["BENCH_DEVICE"])
    torch.backends.cuda.matmul.allow_tf32 = False  # as it is by default: single precision, as ours
    return {"sgld": Sgld, "rmsprop": Rmsprop, "hmc": Hmc, "noise": Noise}[workload.sampler](workload, peer)


def gradient(workload: Workload, peer: str, w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient [C, N] of the mean loss alone: for the self test."""
    point, rows = tensor(w), tensor(x)
    labels = tensor(y if y.dtype == np.float32 else y.astype(np.int64))
    shared = peer == "pytorch-vmap" and workload.sampler == "hmc"
    if workload.chains > 1 and not shared:
        rows, labels = rows.expand(workload.chains, -1, -1), labels.expand(workload.chains, -1).contiguous()
    out = torch.empty_like(point)
    (vmap_gradient if peer == "pytorch-vmap" else loop_gradient)(workload, point)(rows, labels, out)
    return out.numpy(force=True)
