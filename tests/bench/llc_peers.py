#!/usr/bin/env python3
"""devinterp's estimate of the local learning coefficient of a deep linear network, to hold against ours.

    llc_peers.py PROBLEM.safetensors --steps 50000 --burn-in 45000 --step 1e-9 --chains 4     both samplers
    llc_peers.py PROBLEM.safetensors --sampler rmsprop_sgld --step 1e-6 --alpha 0.99 --stability 0.1 ...
    llc_peers.py --check                                                                      self test of the conventions

PROBLEM holds the true weights w1 .. wM, float32, each [outputs, inputs]; the widths follow from them. With W = wM .. w1 the data
are n rows x ~ U[-10, 10]^H0, y = W x + N(0, I/4); the loss of a row is |y - W x|^2, without a half. Chains start at the true
weights. One JSON object per sampler on stdout, each from a process of its own, so that the peak memory is that sampler's.

Conventions (devinterp 1.3.2). With p.grad = grad L_B, the gradient of the mean minibatch loss,

    SGMCMC.sgld          w <- w - (lr/2) (nbeta grad L_B + localization (w - w0)) + sqrt(lr) N(0, noise_level^2)
    SGMCMC.rmsprop_sgld  the same with lr/(sqrt(v) + eps) for lr, v <- alpha v + (1 - alpha) (grad L_B)^2, v = 0 at first

(devinterp/optim/sgmcmc.py:352-396, preconditioner.py:168-182). So ours are theirs: step size = lr, n beta = nbeta, gamma =
localization, temperature 1 = noise_level 1, RMSProp's decay b = alpha, stability a = eps. RMSProp starts otherwise: theirs with
v = 0 and no correction of the bias, so its first steps are up to 10 times too long; ours (and the paper's) with v = 1 and
v/(1 - b^(t+1)), so they are shorter; after some hundred steps the two agree. Minibatches are drawn without replacement within
an epoch.

The library's L(w0) is the mean over CHAINS minibatches other than those of the chains, one for all the chains: its noise is in
"llc" and not in "llc_std". "llc_full_baseline" sets the same draws against the loss of all the rows at the true weights. The
library copies the data with every chain (cloudpickle), which "peak_rss_bytes" shows.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

os.environ.setdefault("TQDM_DISABLE", "1")

import torch
from devinterp.optim.sgmcmc import SGMCMC
from devinterp.slt.sampler import estimate_learning_coeff_with_summary
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLERS = ("sgld", "rmsprop_sgld")
CHUNK = 10_000  # rows of a full-data pass


# ---- what a user of the library writes; its lines are counted


class Rows(TensorDataset):
    """Whole minibatches by index: DataLoader's collation row by row would dominate the time."""

    def __getitems__(self, rows: list[int]) -> tuple[Tensor, ...]:
        return tuple(tensor[rows] for tensor in self.tensors)


def network(weights: list[Tensor]) -> nn.Sequential:
    layers = [nn.Linear(w.shape[1], w.shape[0], bias=False) for w in weights]
    for layer, w in zip(layers, weights):
        layer.weight.data.copy_(w)
    return nn.Sequential(*layers)


def squared_error(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
    x, y = data
    return (model(x) - y).square().sum(dim=1).mean()


def estimate(model: nn.Module, x: Tensor, y: Tensor, options: argparse.Namespace, sampler: str) -> dict[str, Any]:
    kwargs = {"lr": options.step, "nbeta": options.nbeta, "localization": options.gamma}
    if sampler == "rmsprop_sgld":
        kwargs |= {"alpha": options.alpha, "eps": options.stability}
    if options.loader == "rows":
        loader = DataLoader(Rows(x, y), batch_size=options.batch, shuffle=True, drop_last=True, collate_fn=whole)
    else:
        loader = DataLoader(TensorDataset(x, y), batch_size=options.batch, shuffle=True, drop_last=True)
    return estimate_learning_coeff_with_summary(
        model, loader, evaluate=squared_error, sampling_method=SGMCMC.get_method(sampler), optimizer_kwargs=kwargs,
        num_chains=options.chains, num_draws=options.steps - options.burn_in, num_burnin_steps=options.burn_in,
        init_loss=options.init_loss, seed=options.seed, verbose=False,
    )  # fmt: skip


def whole(batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return batch


USER_CODE = (Rows, network, squared_error, estimate, whole)


# ---- the problem and the report


def load_weights(path: str) -> list[Tensor]:
    tensors = load_file(path)
    weights = [tensors[f"w{layer}"] for layer in range(1, len(tensors) + 1)]
    if any(w.dtype != torch.float32 or w.dim() != 2 for w in weights):
        raise ValueError("expected float32 matrices")
    if any(after.shape[1] != before.shape[0] for before, after in zip(weights, weights[1:])):
        raise ValueError("the widths of neighbouring layers differ")
    return weights


def make_data(weights: list[Tensor], rows: int, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    product = weights[0].double()
    for w in weights[1:]:
        product = w.double() @ product
    x = torch.empty(rows, product.shape[1]).uniform_(-10, 10, generator=random)
    y = torch.empty(rows, product.shape[0]).normal_(0, 0.5, generator=random)
    for block in range(0, rows, CHUNK):
        y[block : block + CHUNK] += (x[block : block + CHUNK].double() @ product.T).float()
    return x, y


@torch.no_grad()
def full_loss(model: nn.Module, x: Tensor, y: Tensor) -> float:
    parts = zip(x.split(CHUNK), y.split(CHUNK))
    return sum(squared_error(model, part).double().item() * len(part[0]) for part in parts) / len(x)


def peak_rss_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def standard(value: Any) -> Any:
    """Without the NaN and infinity that JSON has not: null."""
    if isinstance(value, list):
        return [standard(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def code_lines() -> int:
    """Of USER_CODE, without empty lines and docstrings."""
    lines = (line.strip() for code in USER_CODE for line in inspect.getsource(code).splitlines())
    return sum(bool(line) and not line.startswith(('"""', "#")) for line in lines)


def run(options: argparse.Namespace, sampler: str) -> dict[str, Any]:
    torch.set_num_threads(options.threads)
    weights = load_weights(options.problem)
    x, y = make_data(weights, options.rows, options.seed)
    torch.manual_seed(options.seed)  # devinterp draws its baseline's minibatches from the global generator
    model = network(weights)
    true_loss = full_loss(model, x, y)
    options.init_loss = true_loss if options.baseline == "full" else None
    report: dict[str, Any] = {
        "library": f"devinterp {importlib.metadata.version('devinterp')}, torch {torch.__version__}", "sampler": sampler,
        "widths": [weights[0].shape[1], *(w.shape[0] for w in weights)], "parameters": sum(w.numel() for w in weights),
        "rows": options.rows, "batch": options.batch, "steps": options.steps, "burn_in": options.burn_in,
        "step": options.step, "gamma": options.gamma, "beta": options.beta, "nbeta": options.nbeta,
        "chains": options.chains, "seed": options.seed, "baseline": options.baseline, "loader": options.loader,
        "threads": options.threads, "user_code_lines": code_lines(), "rss_before_bytes": peak_rss_bytes(),
    }  # fmt: skip
    if sampler == "rmsprop_sgld":
        report |= {"alpha": options.alpha, "stability": options.stability}
    start = time.perf_counter()
    try:
        results = estimate(model, x, y, options, sampler)
    except RuntimeError as error:  # devinterp gives up on all the chains when one loss is NaN
        results = {"failed": str(error)}
    report |= {"seconds": time.perf_counter() - start, "peak_rss_bytes": peak_rss_bytes()}
    if "failed" in results:
        return report | results
    means = torch.from_numpy(results["loss/trace"]).double().mean(dim=1)
    least = int(means.argmin())  # the chain whose float32 estimate says most exactly what L(w0) was
    against_full = options.nbeta * (means - true_loss)
    report |= {
        "llc": results["llc/mean"], "llc_std": results["llc/std"],  # over chains; null for one
        "llc_chains": [results[f"llc-chain/{chain}"] for chain in range(options.chains)],
        "init_loss": means[least].item() - results[f"llc-chain/{least}"] / options.nbeta, "full_loss": true_loss,
        # the same draws against the loss of all the rows at the true weights
        "llc_full_baseline": against_full.mean().item(), "llc_full_baseline_chains": against_full.tolist(),
    }  # fmt: skip
    return report


# ---- self test


def check() -> bool:
    """Three steps of each sampler against the formulas of the module's docstring."""
    torch.manual_seed(0)
    weights = [torch.randn(4, 5), torch.randn(5, 4)]
    x, y = make_data(weights, 100, 0)
    step, nbeta, gamma, alpha, stability = 1e-3, 7.0, 3.0, 0.9, 0.05
    good = True
    for sampler in SAMPLERS:
        model = network(weights)
        extra = {"alpha": alpha, "eps": stability} if sampler == "rmsprop_sgld" else {}
        optimizer = SGMCMC.get_method(sampler)(model.parameters(), lr=step, nbeta=nbeta, localization=gamma, **extra)
        v = [torch.zeros_like(w) for w in weights]
        worst = 0.0
        for turn in range(3):
            optimizer.zero_grad()
            squared_error(model, (x, y)).backward()
            w = [p.detach().clone() for p in model.parameters()]
            g = [p.grad.clone() for p in model.parameters()]
            torch.manual_seed(turn)
            optimizer.step()
            torch.manual_seed(turn)
            for i, p in enumerate(model.parameters()):
                noise = torch.normal(0.0, 1.0, p.shape)
                v[i] = alpha * v[i] + (1 - alpha) * g[i] ** 2
                size = step / (v[i].sqrt() + stability) if extra else torch.tensor(step)
                expected = w[i] - size / 2 * (nbeta * g[i] + gamma * (w[i] - weights[i])) + size.sqrt() * noise
                worst = max(worst, ((p.detach() - expected).abs().max() / (p.detach() - w[i]).abs().max()).item())
        print(f"{sampler}: largest difference from the formula, of the update: {worst:.1e}", file=sys.stderr)
        good &= worst < 1e-4
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?", help="safetensors file with w1 .. wM")
    parser.add_argument("--check", action="store_true", help="self test")
    parser.add_argument("--sampler", choices=SAMPLERS, help="one only; else both, each in a process of its own")
    parser.add_argument("--rows", "-n", type=int, default=1_000_000, help="n")
    parser.add_argument("--batch", "-m", type=int, default=500, help="m")
    parser.add_argument("--steps", type=int, default=50_000, help="with burn-in")
    parser.add_argument("--burn-in", type=int, help="default: 0.9 of the steps")
    parser.add_argument("--step", type=float, required="--check" not in sys.argv, help="epsilon")
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--beta", type=float, help="default: 1/ln n; n beta is the library's nbeta")
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=0.99, help="RMSProp: decay")
    parser.add_argument("--stability", type=float, default=0.1, help="RMSProp: a")
    baseline = "L(w0): the library's own, of CHAINS minibatches; or of all the rows"
    parser.add_argument("--baseline", choices=("default", "full"), default="default", help=baseline)
    loader = "whole minibatches by index; or TensorDataset as it comes"
    parser.add_argument("--loader", choices=("rows", "plain"), default="rows", help=loader)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.check:
        sys.exit(0 if check() else 1)
    if options.problem is None:
        parser.error("name a problem")
    options.burn_in = options.steps * 9 // 10 if options.burn_in is None else options.burn_in
    options.beta = 1 / math.log(options.rows) if options.beta is None else options.beta
    options.nbeta = options.rows * options.beta
    if options.sampler:
        print(json.dumps({name: standard(value) for name, value in run(options, options.sampler).items()}), flush=True)
        return
    codes = [subprocess.run([sys.executable, *sys.argv, "--sampler", sampler]).returncode for sampler in SAMPLERS]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
