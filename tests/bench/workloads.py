"""The workloads: networks, data, energies and step sizes, the same for every peer. NumPy only.

The energy of weights w on rows (x, y) is U(w) = mean loss + prior/(2N) |w|^2, N the number of weights. Weights lie in one
flat vector, layer by layer: W as [inputs, outputs] row-major, then the bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Workload:
    """What is sampled, and how."""

    name: str
    peers: tuple[str, ...]
    sampler: str  # "sgld", "rmsprop", "hmc" or "noise"
    layers: tuple[int, ...]
    hidden: str  # "relu", "tanh" or "identity"
    output: str
    bias: bool
    loss: str  # "cross_entropy" or "squared": summed over outputs, averaged over rows
    prior: float
    data: str  # "spins", "gaussian" or "teacher"
    rows: int
    batch: int  # rows of a minibatch, drawn with replacement at every step; the rows of all the data for HMC
    step: float  # epsilon of SGLD, dt of HMC
    temperatures: tuple[float, ...]  # of each chain
    leapfrog: int = 10  # HMC: leapfrog steps of a trajectory
    decay: float = 0.99  # RMSProp: alpha
    floor: float = 1e-5  # RMSProp: lambda
    threads: int | None = None  # fixed by the workload

    @property
    def chains(self) -> int:
        return len(self.temperatures)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the weight arrays, in their order in the flat vector."""
        shapes: list[tuple[int, ...]] = []
        for inputs, outputs in zip(self.layers, self.layers[1:]):
            shapes.append((inputs, outputs))
            if self.bias:
                shapes.append((outputs,))
        return shapes

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def activation(self, layer: int) -> str:
        return self.output if layer == len(self.layers) - 2 else self.hidden


def _spin_net(name: str, hidden: int, batch: int, chains: int = 1, **changes: object) -> Workload:
    many = chains > 1
    fields: dict[str, object] = dict(
        name=name,
        peers=("pytorch", "pytorch-vmap", "jax", "jax-vmap", "blackjax") if many else ("pytorch", "jax", "blackjax"),
        sampler="sgld", layers=(100, hidden, 100, 10), hidden="relu", output="relu", bias=True, loss="cross_entropy",
        prior=10.0, data="spins", rows=55_800, batch=batch, step=1e-3, temperatures=(1e-5,) * chains,
    )  # fmt: skip
    return Workload(**{**fields, **changes})  # type: ignore[arg-type]


def _deep_linear(name: str, sampler: str, peers: tuple[str, ...]) -> Workload:
    return Workload(
        name, peers, sampler, layers=(300,) * 5, hidden="identity", output="identity", bias=False, loss="squared",
        prior=0.0, data="teacher", rows=10_000, batch=500, step=1e-3, temperatures=(1e-5,),
    )  # fmt: skip


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _spin_net("sgld-11k", 50, 558),
        _spin_net("sgld-11k-16", 50, 558, chains=16),
        _spin_net("sgld-102k", 500, 5080),
        _spin_net("sgld-1m", 5000, 2000),
        _deep_linear("deep-linear", "sgld", ("pytorch", "jax", "blackjax")),
        _deep_linear("deep-linear-rmsprop", "rmsprop", ("pytorch", "jax")),
        _spin_net("hmc-11k", 50, 55_800, sampler="hmc", step=0.05),
        Workload(
            "replicas-32", ("pytorch", "pytorch-vmap", "jax", "jax-vmap", "blackjax"), "hmc",
            layers=(256, 40, 40, 40, 10), hidden="tanh", output="identity", bias=True, loss="cross_entropy", prior=10.0,
            data="gaussian", rows=500, batch=500, step=0.02,
            temperatures=tuple(float(t) for t in np.geomspace(1e-4, 1e-2, 32)),
        ),
        Workload(
            "noise-1m", ("pytorch", "jax"), "noise", layers=(1_000_000, 1), hidden="identity", output="identity",
            bias=False, loss="squared", prior=0.0, data="none", rows=0, batch=0, step=1e-3, temperatures=(1e-5,), threads=1,
        ),
    )
}  # fmt: skip


def start(workload: Workload, seed: int = 1) -> Array:
    """Starting weights, float32 [chains, N]: W from N(0, 1/inputs), biases 0; every chain its own."""
    rng = np.random.default_rng(seed)
    parts = []
    for shape in workload.shapes:
        scale = 1 / np.sqrt(shape[0]) if len(shape) == 2 else 0.0
        parts.append(rng.standard_normal((workload.chains, int(np.prod(shape))), dtype=np.float32) * np.float32(scale))
    return np.concatenate(parts, axis=1)


def data(workload: Workload, seed: int = 2) -> tuple[Array, Array]:
    """Inputs, float32 [rows, inputs], and targets: int32 [rows] labels or float32 [rows, outputs] values."""
    rng = np.random.default_rng(seed)
    rows, inputs, outputs = workload.rows, workload.layers[0], workload.layers[-1]
    labels = rng.integers(outputs, size=rows, dtype=np.int32)
    if workload.data == "spins":  # noisy copies of one vector of +-1 per class
        classes = rng.integers(2, size=(outputs, inputs)) * 2 - 1
        keep = np.where(rng.random((rows, inputs), dtype=np.float32) < 0.355, -1, 1)
        return (classes[labels] * keep).astype(np.float32), labels
    x = rng.standard_normal((rows, inputs), dtype=np.float32)
    if workload.data == "gaussian":
        return x, labels
    y = x
    for shape in workload.shapes:  # the teacher
        y = y @ (rng.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[0])))
    return x, y + np.float32(0.1) * rng.standard_normal(y.shape, dtype=np.float32)


def reference(workload: Workload, w: Array, x: Array, y: Array) -> tuple[float, Array]:
    """U(w) on the rows (x, y) and its gradient in float64, by hand: what the peers are checked against."""
    w, x = w.astype(np.float64), x.astype(np.float64)
    arrays, at = [], 0
    for shape in workload.shapes:
        arrays.append(w[at : at + int(np.prod(shape))].reshape(shape))
        at += int(np.prod(shape))
    weights, biases = (arrays[::2], arrays[1::2]) if workload.bias else (arrays, [])
    values = [x]
    for layer, weight in enumerate(weights):
        z = values[-1] @ weight + (biases[layer] if workload.bias else 0.0)
        kind = workload.activation(layer)
        values.append(np.maximum(z, 0) if kind == "relu" else np.tanh(z) if kind == "tanh" else z)
    out, rows = values[-1], np.arange(len(x))
    if workload.loss == "cross_entropy":
        log_p = out - out.max(1, keepdims=True)
        log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
        loss, delta = -log_p[rows, y].mean(), np.exp(log_p)
        delta[rows, y] -= 1
    else:
        loss, delta = ((out - y) ** 2).sum(1).mean(), 2 * (out - y)
    delta = delta / len(x)
    gradients: list[Array] = []
    for layer in reversed(range(len(weights))):
        kind, value = workload.activation(layer), values[layer + 1]
        delta = delta * (value > 0) if kind == "relu" else delta * (1 - value**2) if kind == "tanh" else delta
        gradients = [values[layer].T @ delta, *([delta.sum(0)] if workload.bias else []), *gradients]
        delta = delta @ weights[layer].T
    prior = workload.prior / workload.size
    return float(loss + prior / 2 * w @ w), np.concatenate([g.ravel() for g in gradients]) + prior * w
