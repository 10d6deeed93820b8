#!/usr/bin/env python3
"""PyTorch's time for a step of an attention-only transformer on the CPU, to hold against ours.

    transformer_peer.py --threads 2                              small: 2 layers, width 64, N = 45,440
    transformer_peer.py --paper --threads 2 --steps 10           Hitchcock & Hoogland (2025): 4 layers, width 256, N = 3,873,280
    transformer_peer.py --layers 3 --width 128 --method sgld     other sizes, what is not given as in small; one method only

Needs torch alone, but for --method devinterp. One JSON object per method on stdout. The times are of whole steps: a minibatch
drawn with replacement, forward and backward pass, update; "ms" is their median after --warm-up steps, "ms_quartiles" say how
steady the machine was. The methods run in one process, one after the other.

The network is `model::transformer` without biases, as in tests/interop/test_transformer.py; the loss is the mean cross entropy
over all positions; the data are random tokens, since a step does the same work for any. With g = grad of that loss on the
minibatch,

    adamw  torch.optim.AdamW, fused
    sgld   w <- w - (step/2) (nbeta g + gamma (w - w0)) + sqrt(step) N(0, 1)

The second is SGMCMC.sgld of devinterp 1.3.2 with localization = gamma and lr = step, but in place, where the library copies
every tensor several times; --method devinterp times the library's own.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALL = {"layers": 2, "width": 64, "heads": 4, "vocabulary": 64, "context": 64, "batch": 32}
PAPER = {"layers": 4, "width": 256, "heads": 8, "vocabulary": 5000, "context": 1024, "batch": 4}
METHODS = ("adamw", "sgld", "devinterp")
ROWS = 1024  # of the data
STEP, NBETA, GAMMA = 1e-7, ROWS / math.log(ROWS), 100.0  # of SGLD: small enough that the loss stays finite


class Attention(nn.Module):
    """Heads whose keys and queries see learned positions, and whose values do not."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # Queries and keys read the same input: one product, as in our program.
        self.query_key = nn.Linear(width, 2 * width, bias=False)
        self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        q, k = self.query_key(x + position).chunk(2, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, self.value(x)))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, context: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.empty(context, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.blocks = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.final_norm = nn.LayerNorm(width)
        self.unembed = nn.Linear(width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:  # ours, and TransformerLens's
                nn.init.normal_(p, std=0.8 / math.sqrt(width))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for norm, block in zip(self.norms, self.blocks):
            x = x + block(norm(x), self.position)
        return self.unembed(self.final_norm(x))


class Sgld(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Tensor], step: float, nbeta: float, gamma: float) -> None:
        super().__init__(params, {"step": step, "nbeta": nbeta, "gamma": gamma})
        for p in self.param_groups[0]["params"]:
            self.state[p] = {"w0": p.detach().clone(), "noise": torch.empty_like(p, requires_grad=False)}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        group = self.param_groups[0]
        half, scale = group["step"] / 2, math.sqrt(group["step"])
        for p in group["params"]:
            w0, noise = self.state[p]["w0"], self.state[p]["noise"].normal_()
            # w + half gamma (w0 - w) first, before g and the noise have moved w.
            p.lerp_(w0, half * group["gamma"]).add_(p.grad, alpha=-half * group["nbeta"]).add_(noise, alpha=scale)


def optimizer(method: str, model: nn.Module) -> torch.optim.Optimizer:
    if method == "adamw":
        # On the CPU the default is a Python loop over the tensors.
        return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    if method == "sgld":
        return Sgld(model.parameters(), STEP, NBETA, GAMMA)
    from devinterp.optim.sgmcmc import SGMCMC

    return SGMCMC.sgld(model.parameters(), lr=STEP, nbeta=NBETA, localization=GAMMA)


def measure(options: argparse.Namespace, method: str) -> dict[str, Any]:
    torch.manual_seed(0)
    model = Transformer(options.vocabulary, options.context, options.layers, options.width, options.heads)
    tokens = torch.randint(options.vocabulary, (ROWS, options.context + 1))
    update = optimizer(method, model)

    def step() -> float:
        rows = tokens[torch.randint(ROWS, (options.batch,))]
        update.zero_grad()
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        update.step()
        return loss.item()  # a sampler records it

    first = step()  # the first of the warm-up: allocates, chooses kernels
    for _ in range(options.warm_up - 1):
        step()
    seconds = []
    for _ in range(options.steps):
        before = time.perf_counter()
        last = step()
        seconds.append(time.perf_counter() - before)
    if not math.isfinite(last):  # NaN and infinity take other paths than numbers do
        sys.exit(f"{method}: the loss became {last}; its time would mean nothing")
    low, median, high = (round(1e3 * s, 3) for s in statistics.quantiles(seconds, n=4, method="inclusive"))
    return {
        "library": f"torch {torch.__version__}", "method": method, **{name: getattr(options, name) for name in SMALL},
        "threads": torch.get_num_threads(), "steps": options.steps, "parameters": sum(p.numel() for p in model.parameters()),
        "ms": median, "ms_quartiles": [low, high], "first_loss": round(first, 4), "last_loss": round(last, 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", action="store_true", help=f"defaults {PAPER}")
    for name, value in SMALL.items():
        parser.add_argument(f"--{name}", type=int, help=f"default: {value}, with --paper {PAPER[name]}")
    parser.add_argument("--method", choices=METHODS, action="append", help="may be repeated; default: adamw and sgld")
    parser.add_argument("--steps", type=int, default=50, help="that are timed, at least 2")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before, at least 1")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for name, value in (PAPER if options.paper else SMALL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.width % options.heads or min(options.warm_up, options.steps - 1) < 1:
        parser.error("--width must be a multiple of --heads, --warm-up at least 1, --steps at least 2")
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)  # as in torch_peers.py
    for method in options.method or ("adamw", "sgld"):
        print(json.dumps(measure(options, method)), flush=True)


if __name__ == "__main__":
    main()
