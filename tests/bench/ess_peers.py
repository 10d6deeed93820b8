#!/usr/bin/env python3
"""How well BlackJAX's HMC and NUTS sample: effective sample sizes per gradient on targets whose answers are known.

    ess_peers.py                           every target, sampler and precision: JSON on stdout, a table on stderr
    ess_peers.py --only funnel --samplers hmc --steps 16 --precisions float64

The recipe is the standard one: blackjax.window_adaptation (diagonal mass matrix, its own in every chain, target acceptance
0.8) for the warm-up, then draws at the adapted settings; chains by vmap, started at standard normal draws. HMC takes a fixed
number of integration steps: --gaussian-steps for the Gaussian, --steps for the others. Nothing jitters their length, so that
a trajectory near a half or a whole period spoils HMC's numbers: compare at the same number, and at several.

ESS is ArviZ's bulk ESS (split chains, ranks, normal scores) of every coordinate of w, and of w squared, in the coordinates
that are sampled; the smallest counts. A gradient is one integration step: velocity Verlet keeps the last one. NUTS counts the
steps of subtrees that it rejects as well. Gradients are summed over chains; "per gradient" divides by those after the warm-up.

Every number is a mean over seeds with its standard error. "checks" compares the draws of all the seeds with exact values.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

CONDITION = 1e4  # of the Gaussian
SIZE = 100
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])  # eight schools: y, sigma
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
FUNNEL = 10  # v and nine x

Check = tuple[np.ndarray, float]  # a function of the draws, its exact mean


@dataclass(frozen=True)
class Target:
    """A density on R^size, up to a constant, and functions of w whose means are known."""

    size: int
    logdensity: Callable[[Any], Any]
    checks: Callable[[np.ndarray], dict[str, Check]]  # of draws [..., size]


# ---- the targets


def gaussian() -> Target:
    """U = 1/2 sum k_i (w_i - 1)^2, curvatures k_i from 1 to CONDITION in geometric steps."""
    curvatures = CONDITION ** (np.arange(SIZE) / (SIZE - 1))

    def logdensity(w: Any) -> Any:
        return -0.5 * (curvatures.astype(w.dtype) * (w - 1) ** 2).sum()

    def checks(w: np.ndarray) -> dict[str, Check]:
        found: dict[str, Check] = {}
        for i in (0, SIZE // 2, SIZE - 1):
            found[f"w[{i}]"] = w[..., i], 1.0
            found[f"k (w[{i}] - 1)^2"] = curvatures[i] * (w[..., i] - 1) ** 2, 1.0
        found["U"] = 0.5 * (curvatures * (w - 1) ** 2).sum(-1), SIZE / 2
        return found

    return Target(SIZE, logdensity, checks)


def schools_exact() -> dict[str, float]:
    """Posterior means of the eight schools by quadrature over log tau: given tau everything else is Gaussian."""
    log_tau = np.linspace(-25, 12, 200_001)
    tau = np.exp(log_tau)
    precisions = 1 / (ERRORS**2 + tau[:, None] ** 2)  # of y given mu
    variance = 1 / (1 / 25 + precisions.sum(1))  # of mu
    mean = variance * (precisions @ EFFECTS)
    log_p = 0.5 * (np.log(precisions).sum(1) - precisions @ EFFECTS**2 + mean**2 / variance + np.log(variance))
    log_p += log_tau - np.log1p(tau**2 / 25)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    theta = mean + tau**2 * precisions[:, 0] * (EFFECTS[0] - mean)  # of the first school
    return {
        "mu": float(p @ mean),
        "mu^2": float(p @ (variance + mean**2)),
        "log tau": float(p @ log_tau),
        "tau": float(p @ tau),
        "theta[0]": float(p @ theta),
    }


def schools(centred: bool) -> Target:
    """w = mu, log tau, then the eight theta, or (theta - mu) / tau where not centred."""

    def logdensity(w: Any) -> Any:
        import jax.numpy as jnp

        mu, log_tau, rest = w[0], w[1], w[2:]
        tau = jnp.exp(log_tau)
        theta = rest if centred else mu + tau * rest
        prior = -0.5 * (mu / 5) ** 2 - jnp.log1p((tau / 5) ** 2) + log_tau
        if centred:
            prior += -0.5 * (((theta - mu) / tau) ** 2).sum() - len(EFFECTS) * log_tau
        else:
            prior += -0.5 * (rest**2).sum()
        return prior - 0.5 * (((EFFECTS.astype(w.dtype) - theta) / ERRORS.astype(w.dtype)) ** 2).sum()

    def checks(w: np.ndarray) -> dict[str, Check]:
        exact = schools_exact()
        mu, log_tau, first = w[..., 0], w[..., 1], w[..., 2]
        tau = np.exp(log_tau)
        theta = first if centred else mu + tau * first
        values = {"mu": mu, "mu^2": mu**2, "log tau": log_tau, "tau": tau, "theta[0]": theta}
        return {name: (value, exact[name]) for name, value in values.items()}

    return Target(2 + len(EFFECTS), logdensity, checks)


def funnel() -> Target:
    """Neal's: w = v, x_1 ... x_9 with v ~ N(0, 3^2) and x_i ~ N(0, e^v)."""

    def logdensity(w: Any) -> Any:
        import jax.numpy as jnp

        v, x = w[0], w[1:]
        return -0.5 * (v / 3) ** 2 - 0.5 * jnp.exp(-v) * (x**2).sum() - 0.5 * (FUNNEL - 1) * v

    def checks(w: np.ndarray) -> dict[str, Check]:
        v = w[..., 0]
        scaled = np.exp(-v) * (w[..., 1:] ** 2).mean(-1)
        return {"v": (v, 0.0), "v^2": (v**2, 9.0), "v < -3": ((v < -3) * 1.0, 0.15865525), "x^2 / e^v": (scaled, 1.0)}

    return Target(FUNNEL, logdensity, checks)


TARGETS: dict[str, Callable[[], Target]] = {
    "gaussian": gaussian,
    "schools-noncentred": lambda: schools(centred=False),
    "schools-centred": lambda: schools(centred=True),
    "funnel": funnel,
}
SAMPLERS = ("hmc", "nuts")
PRECISIONS = ("float64", "float32")


# ---- sampling


@dataclass
class Draws:
    """One seed's draws [chain, draw, coordinate], and what they cost."""

    w: np.ndarray
    numbers: dict[str, float]


def sample(target: Target, sampler: str, precision: str, options: argparse.Namespace, steps: int | None) -> list[Draws]:
    """The draws of every seed; compiles once, untimed."""
    import blackjax
    import jax

    jax.config.update("jax_enable_x64", precision == "float64")
    algorithm = {"hmc": blackjax.hmc, "nuts": blackjax.nuts}[sampler]
    extra = {} if steps is None else {"num_integration_steps": steps}

    def warm_up(key: jax.Array, start: jax.Array) -> Any:
        adaptation = blackjax.window_adaptation(
            algorithm,
            target.logdensity,
            is_mass_matrix_diagonal=True,
            target_acceptance_rate=options.acceptance,
            adaptation_info_fn=lambda state, info, adapted: info.num_integration_steps,
            **extra,
        )
        (state, parameters), gradients = adaptation.run(key, start, num_steps=options.warmup)
        return state, parameters["step_size"], parameters["inverse_mass_matrix"], gradients.sum()

    def draw(key: jax.Array, state: Any, step_size: jax.Array, inverse_mass_matrix: jax.Array) -> Any:
        kernel = algorithm(target.logdensity, step_size, inverse_mass_matrix, **extra)

        def one(state: Any, key: jax.Array) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps, info.is_divergent, info.acceptance_rate)

        return jax.lax.scan(one, state, jax.random.split(key, options.draws))[1]

    def run(seed: int) -> Draws:
        warm_key, draw_key = jax.random.split(jax.random.key(seed))
        start = np.random.default_rng(seed).standard_normal((options.chains, target.size)).astype(precision)
        warm_arguments = jax.random.split(warm_key, options.chains), jax.numpy.asarray(start)
        if "warm" not in compiled:
            compiled["warm"] = jax.jit(jax.vmap(warm_up)).lower(*warm_arguments).compile()
        begin = time.perf_counter()
        state, step_size, inverse_mass_matrix, warm_gradients = jax.block_until_ready(compiled["warm"](*warm_arguments))
        warm_seconds = time.perf_counter() - begin
        arguments = jax.random.split(draw_key, options.chains), state, step_size, inverse_mass_matrix
        if "draw" not in compiled:
            compiled["draw"] = jax.jit(jax.vmap(draw)).lower(*arguments).compile()
        begin = time.perf_counter()
        w, gradients, divergent, acceptance = jax.block_until_ready(compiled["draw"](*arguments))
        seconds = time.perf_counter() - begin
        assert w.dtype == precision and w.shape == (options.chains, options.draws, target.size)
        numbers = {
            "gradients": int(np.asarray(gradients, np.int64).sum()),
            "warmup_gradients": int(np.asarray(warm_gradients, np.int64).sum()),
            "seconds": seconds,
            "warmup_seconds": warm_seconds,
            "divergences": int(divergent.sum()),
            "acceptance": float(np.asarray(acceptance, np.float64).mean()),
            "step_size": float(np.asarray(step_size, np.float64).mean()),
        }
        return Draws(np.asarray(w, np.float64), numbers)

    compiled: dict[str, Any] = {}
    return [run(seed) for seed in range(options.first_seed, options.first_seed + options.seeds)]


# ---- what the draws are worth


def worst(statistic: Callable[..., Any], w: np.ndarray, pick: Callable[[np.ndarray], Any], **arguments: Any) -> float:
    """An ArviZ statistic of every coordinate; the one that `pick` picks."""
    import arviz

    return float(pick(statistic(arviz.convert_to_dataset({"w": w}), **arguments)["w"].values))


def spread(values: list[float]) -> dict[str, Any]:
    """Mean and standard error over seeds."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "se": error, "seeds": values}


def check(target: Target, draws: list[Draws]) -> dict[str, Any]:
    """Means over all the chains of all the seeds against exact ones; the error is ArviZ's."""
    import arviz

    found = {}
    for name, (values, exact) in target.checks(np.concatenate([one.w for one in draws])).items():
        error = float(arviz.mcse(values, method="mean"))
        mean = float(values.mean())
        found[name] = {"mean": mean, "mcse": error, "exact": exact, "z": (mean - exact) / error}
    return found


def measure(name: str, sampler: str, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    import arviz

    target = TARGETS[name]()
    steps = None if sampler == "nuts" else options.gaussian_steps if name == "gaussian" else options.steps
    draws = sample(target, sampler, precision, options, steps)
    for one in draws:
        numbers = one.numbers
        numbers["ess_w"] = worst(arviz.ess, one.w, np.min, method="bulk")
        numbers["ess_w2"] = worst(arviz.ess, one.w**2, np.min, method="bulk")
        numbers["ess"] = min(numbers["ess_w"], numbers["ess_w2"])
        for ess in ("ess_w", "ess_w2", "ess"):
            numbers[f"{ess}_per_gradient"] = numbers[ess] / numbers["gradients"]
        numbers["rhat"] = worst(arviz.rhat, one.w, np.max)
    return {
        "target": name,
        "sampler": sampler,
        "precision": precision,
        "size": target.size,
        "integration_steps": steps,
        **{key: spread([one.numbers[key] for one in draws]) for key in draws[0].numbers},
        "checks": check(target, draws),
    }


# ---- the command


def limit_threads(threads: int) -> None:
    """Before the libraries are imported: XLA sizes its pools by the cores it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["NPROC"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"


def table(results: list[dict[str, Any]]) -> str:
    head = (
        "target", "sampler", "precision", "steps", "ESS/gradient", "of w", "of w²", "ESS", "gradients", "in warm-up",
        "s", "warm-up s", "divergent", "accepted", "step", "R̂", "worst z",
    )  # fmt: skip

    def error(value: dict[str, Any], digits: str) -> str:
        return format(value["mean"], digits) + ("" if value["se"] is None else " ± " + format(value["se"], ".1g"))

    lines = [head]
    for result in results:
        mean = {key: value["mean"] for key, value in result.items() if isinstance(value, dict) and "mean" in value}
        name, z = max(((key, found["z"]) for key, found in result["checks"].items()), key=lambda pair: abs(pair[1]))
        lines.append((
            result["target"], result["sampler"], result["precision"], str(result["integration_steps"] or "-"),
            error(result["ess_per_gradient"], ".3g"), error(result["ess_w_per_gradient"], ".3g"),
            error(result["ess_w2_per_gradient"], ".3g"), f"{mean['ess']:.0f}", f"{mean['gradients']:.0f}",
            f"{mean['warmup_gradients']:.0f}", f"{mean['seconds']:.3f}", f"{mean['warmup_seconds']:.3f}",
            f"{mean['divergences']:.1f}", f"{mean['acceptance']:.3f}", f"{mean['step_size']:.3g}", f"{mean['rhat']:.3f}",
            f"{z:+.1f} ({name})",
        ))  # fmt: skip
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    text.append("the draws of all the seeds against exact values (mean ± MCSE, exact):")
    for result in results:
        found = [f"{key} {one['mean']:.3f} ± {one['mcse']:.1g} ({one['exact']:.3f})" for key, one in result["checks"].items()]
        text.append(f"{result['target']} {result['sampler']} {result['precision']}: {', '.join(found)}")
    return "\n".join(text)


def chosen_options() -> argparse.Namespace:
    def some_of(known: tuple[str, ...]) -> Callable[[str], list[str]]:
        def parse(text: str) -> list[str]:
            names = [name.strip() for name in text.split(",") if name.strip()]
            for name in names:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"unknown {name!r}; there are {', '.join(known)}")
            return names

        return parse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", type=some_of(tuple(TARGETS)), default=list(TARGETS), metavar="A,B", help=f"of {', '.join(TARGETS)}")
    add("--samplers", type=some_of(SAMPLERS), default=list(SAMPLERS), metavar="A,B", help=f"of {', '.join(SAMPLERS)}")
    add("--precisions", type=some_of(PRECISIONS), default=list(PRECISIONS), metavar="A,B", help=f"of {', '.join(PRECISIONS)}")
    add("--steps", type=int, default=10, metavar="L", help="integration steps of HMC (default 10)")
    add("--gaussian-steps", type=int, default=20, metavar="L", help="the same for the Gaussian (default 20)")
    add("--acceptance", type=float, default=0.8, metavar="A", help="target acceptance (default 0.8)")
    add("--chains", type=int, default=4, metavar="N", help="chains (default 4)")
    add("--warmup", type=int, default=1000, metavar="N", help="warm-up draws of a chain (default 1000)")
    add("--draws", type=int, default=2000, metavar="N", help="draws of a chain (default 2000)")
    add("--seeds", type=int, default=3, metavar="N", help="seeds (default 3)")
    add("--first-seed", type=int, default=1, metavar="S", help="the first of them (default 1)")
    add("--threads", type=int, default=2, metavar="N", help="cores (default 2)")
    options = parser.parse_args()
    for name in ("steps", "gaussian_steps", "chains", "warmup", "seeds", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}")
    if options.draws < 8 or options.first_seed < 0 or not 0 < options.acceptance < 1:
        parser.error("--draws must be at least 8, --first-seed at least 0, --acceptance between 0 and 1")
    return options


def main() -> None:
    options = chosen_options()
    limit_threads(options.threads)
    warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
    import arviz
    import blackjax
    import jax

    results = []
    for precision in options.precisions:
        for name in options.only:
            for sampler in options.samplers:
                begin = time.perf_counter()
                results.append(measure(name, sampler, precision, options))
                took = time.perf_counter() - begin
                print(f"{name} {sampler} {precision}: {took:.1f} s with compiling", file=sys.stderr, flush=True)
    print(table(results), file=sys.stderr)
    library = f"blackjax {blackjax.__version__} (jax {jax.__version__}), arviz {arviz.__version__}"
    print(json.dumps({"library": library, "options": vars(options), "results": results}, indent=1))


if __name__ == "__main__":
    main()
