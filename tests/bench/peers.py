#!/usr/bin/env python3
"""The other libraries' side of the benchmark. tests/bench/run starts this; by hand:

    peers.py --list                        the workloads and their peers, as JSON
    peers.py WORKLOAD PEER [--threads N] [--device cuda]
                                           build, warm up, print {"ready": true, ...}; then for each line "go SECONDS" on
                                           stdin run for about that long and print one JSON line; end of input ends it
    peers.py --check [WORKLOAD...]         self test: gradients, noise scales, acceptance, finite losses

A step is one step of all the chains; for HMC one trajectory of each.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import resource
import sys
import time
from typing import Any

import numpy as np

import workloads
from workloads import WORKLOADS, Workload

MODULES = {
    "pytorch": "torch_peers",
    "pytorch-vmap": "torch_peers",
    "jax": "jax_peers",
    "jax-vmap": "jax_peers",
    "blackjax": "blackjax_peers",
}


def limit(threads: int, device: str) -> None:
    """Before the libraries are imported: XLA sizes its pools by the cores it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["NPROC"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = os.environ["BENCH_DEVICE"] = device
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # the others need memory of the GPU, too
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"  # single precision, as ours: a GPU would take TF32


def peak_rss_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def serve(workload: Workload, peer: str, threads: int, device: str) -> None:
    """The protocol of the module's docstring. What the libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    limit(threads, device)
    built = importlib.import_module(MODULES[peer]).build(workload, peer, threads)
    built.warm_up()
    print(json.dumps({"ready": True, "library": built.library}), file=answers)
    for line in sys.stdin:
        words = line.split()
        try:
            command, seconds = words[0], float(words[1])
            if command != "go" or len(words) != 2 or not 0 < seconds < 1e6:
                raise ValueError
        except (IndexError, ValueError):
            sys.exit(f"peers.py: expected 'go SECONDS' on stdin, got {line.strip()!r}")
        begin, steps, elapsed = time.perf_counter(), 0, 0.0
        while elapsed < seconds:
            built.advance(built.length)
            steps += built.length
            elapsed = time.perf_counter() - begin
        answer = {"seconds_per_step": elapsed / steps, "steps": steps, "peak_rss_bytes": peak_rss_bytes()}
        print(json.dumps(answer), file=answers)


def check_gradient(workload: Workload, peer: str, module: Any) -> tuple[float, bool]:
    """Largest difference from the float64 gradient by hand, relative to the largest entry, over chains."""
    x, y = (a[:200] for a in workloads.data(workload))
    w = workloads.start(workload)
    rng = np.random.default_rng(9)
    w += 0.02 * rng.standard_normal(w.shape, dtype=np.float32)  # biases too
    got = module.gradient(workload, peer, w.copy(), x, y)
    bare = dataclasses.replace(workload, prior=0.0)
    wanted = np.stack([workloads.reference(bare, row, x, y)[1] for row in w])
    error = float(np.abs(got - wanted).max() / np.abs(wanted).max())
    return error, error < 2e-5


def check_scale(workload: Workload, peer: str, module: Any, threads: int) -> tuple[float, bool]:
    """At T = 1 noise or momenta outweigh forces: the displacement of a few steps over what it should then be."""
    hot = dataclasses.replace(workload, temperatures=(1.0,) * workload.chains)
    built = module.build(hot, peer, threads)
    before, steps = built.weights(), 1 if workload.sampler == "hmc" else 4
    built.advance(steps)
    moved = float(np.sqrt(np.mean((built.weights() - before) ** 2)))
    wanted = workload.leapfrog * workload.step if workload.sampler == "hmc" else np.sqrt(steps * workload.step)
    ratio = moved / wanted
    return ratio, workload.sampler == "rmsprop" or abs(ratio - 1) < 0.03  # RMSProp: to compare among peers


def check(names: list[str], threads: int, device: str) -> bool:
    """Self test of the peers; True when all is well."""
    limit(threads, device)
    good = True
    for workload in (WORKLOADS[name] for name in names):
        for peer in workload.peers:
            module = importlib.import_module(MODULES[peer])
            results, passed = {}, []
            if workload.sampler != "noise":
                results["gradient error"], ok = check_gradient(workload, peer, module)
                passed.append(ok)
            results["scale"], ok = check_scale(workload, peer, module, threads)
            passed.append(ok)
            built = module.build(workload, peer, threads)
            built.warm_up()
            begin, goal = time.perf_counter(), 30 if workload.sampler == "hmc" else 1000
            while built.steps < goal and time.perf_counter() - begin < 40:
                built.advance(built.length)
            w = built.weights()
            results |= {"steps": built.steps, **built.stats(), "norm2": float((w.astype(np.float64) ** 2).sum(1).mean())}
            if workload.rows:
                x, y = (a[:2000] for a in workloads.data(workload))
                results["energy now"] = float(np.mean([workloads.reference(workload, row, x, y)[0] for row in w]))
            passed.append(all(np.isfinite(value) for value in results.values()))
            passed.append(results.get("accepted", 1.0) > 0.5)
            good &= all(passed)
            shown = "  ".join(f"{name} {value:.4g}" for name, value in results.items())
            print(f"{'ok    ' if all(passed) else 'FAILED'} {workload.name} {peer}: {shown}", flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="WORKLOAD PEER")
    parser.add_argument("--list", action="store_true", help="print the workloads and their peers as JSON")
    parser.add_argument("--check", action="store_true", help="self test of the named workloads, or of all")
    parser.add_argument("--threads", type=int, default=2, help="threads of a peer (default 2)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where a peer computes (default cpu)")
    options = parser.parse_args()
    if options.threads < 1:
        parser.error(f"--threads must be at least 1, got {options.threads}")
    if options.list:
        print(json.dumps({name: workload.peers for name, workload in WORKLOADS.items()}))
        return
    for name in options.names if options.check else options.names[:1]:
        if name not in WORKLOADS:
            parser.error(f"unknown workload {name!r}; the workloads are {', '.join(WORKLOADS)}")
    if options.check:
        sys.exit(0 if check(options.names or list(WORKLOADS), options.threads, options.device) else 1)
    if len(options.names) != 2:
        parser.error("expected WORKLOAD PEER, --list or --check")
    workload, peer = WORKLOADS[options.names[0]], options.names[1]
    if peer not in workload.peers:
        parser.error(f"{workload.name} has no peer {peer!r}; its peers are {', '.join(workload.peers)}")
    serve(workload, peer, workload.threads or options.threads, options.device)


if __name__ == "__main__":
    main()
