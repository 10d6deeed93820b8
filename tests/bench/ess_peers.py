#!/usr/bin/env python3
"""How well BlackJAX and nutpie sample: effective sample sizes per gradient and second on targets whose answers are known.

    ess_peers.py                           every target, sampler and precision: JSON on stdout, a table on stderr
    ess_peers.py --only funnel --samplers hmc --steps 16 --precisions float64,float32

The targets are those of ess_targets.py; `network` needs the file that tests/bench/ess makes (--network FILE). Every sampler
has the warm-up that its library gives it, and a diagonal mass matrix:

    hmc, nuts         blackjax.window_adaptation, acceptance 0.8; hmc takes --steps integration steps, which nothing jitters
    chees             blackjax.chees_adaptation of all chains together, mass_matrix_estimation="diagonal", adam(0.02)
    mclmc             blackjax.mclmc_find_L_and_step_size; a draw is --every steps, and there are --more times as many,
                      also in the warm-up: a step is no trajectory
    adjusted_mclmc    blackjax.adjusted_mclmc_find_L_and_step_size, acceptance 0.9, lengths of trajectories random
    nutpie            its defaults. It calls JAX back through Python for each gradient, which costs more than these densities:
                      its seconds are not those of a compiled model

Chains start at standard normal draws and run by vmap, those of nutpie in threads.

ESS is ArviZ's bulk ESS (split chains, ranks, normal scores) of every column of the target and of its square; the smallest
counts. A gradient is one of the log density: one per integration step of HMC and NUTS (velocity Verlet keeps the last one),
two of MCLMC. NUTS counts the steps of subtrees that it rejects as well. Gradients are summed over chains; "per gradient"
divides by those after the warm-up. Seconds are those after the warm-up, without compiling; nutpie's are shared out by gradients.

Every number is a mean over seeds with its standard error. "z" is the distance of the draws of all the seeds from what is known.
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
from pathlib import Path
from typing import Any

import numpy as np

from ess_targets import TARGETS, Columns, Known, Target, network

SAMPLERS = ("hmc", "nuts", "chees", "mclmc", "adjusted_mclmc", "nutpie")
PRECISIONS = ("float64", "float32")
NAMES = (*TARGETS, "network")


# ---- sampling: a sampler is a warm-up of all chains, and draws of all chains


@dataclass
class Draws:
    """One seed's draws [chain, draw, coordinate], and what they cost."""

    w: np.ndarray
    numbers: dict[str, float]


@dataclass
class Sampler:
    """`warm_up` takes a key and starts [chain, size], gives a carry and gradients; `draw` takes a key and the carry, gives
    draws [chain, draw, size], gradients, divergences and acceptance."""

    warm_up: Callable[[Any, Any], tuple[Any, Any]]
    draw: Callable[[Any, Any], tuple[Any, Any, Any, Any]]


def per_chain(options: argparse.Namespace, warm_up: Callable[[Any, Any], Any], draw: Callable[[Any, Any], Any]) -> Sampler:
    """A sampler whose chains know nothing of one another."""
    import jax

    def keys(key: Any) -> Any:
        return jax.random.split(key, options.chains)

    return Sampler(lambda key, starts: jax.vmap(warm_up)(keys(key), starts), lambda key, carry: jax.vmap(draw)(keys(key), carry))


def scanned(draws: int, key: Any, state: Any, step: Callable[[Any, Any], Any]) -> Any:
    """What `step` gives beside the next state, of every draw."""
    import jax

    return jax.lax.scan(step, state, jax.random.split(key, draws))[1]


def hamiltonian(target: Target, name: str, options: argparse.Namespace) -> Sampler:
    import blackjax

    algorithm = {"hmc": blackjax.hmc, "nuts": blackjax.nuts}[name]
    extra = {"num_integration_steps": options.steps} if name == "hmc" else {}

    def warm_up(key: Any, start: Any) -> Any:
        adaptation = blackjax.window_adaptation(
            algorithm,
            target.logdensity,
            is_mass_matrix_diagonal=True,
            target_acceptance_rate=options.acceptance,
            adaptation_info_fn=lambda state, info, adapted: info.num_integration_steps,
            **extra,
        )
        (state, parameters), gradients = adaptation.run(key, start, num_steps=options.warmup)
        return (state, parameters["step_size"], parameters["inverse_mass_matrix"]), gradients.sum()

    def draw(key: Any, carry: Any) -> Any:
        state, step_size, inverse_mass_matrix = carry
        kernel = algorithm(target.logdensity, step_size, inverse_mass_matrix, **extra)

        def one(state: Any, key: Any) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps, info.is_divergent, info.acceptance_rate)

        return scanned(options.draws, key, state, one)

    return per_chain(options, warm_up, draw)


def chees(target: Target, name: str, options: argparse.Namespace) -> Sampler:
    import blackjax
    import jax
    import optax

    functions: dict[str, Any] = {}  # of the adapted kernel: no arrays, so they outlive the tracing

    def warm_up(key: Any, starts: Any) -> Any:
        adaptation = blackjax.chees_adaptation(
            target.logdensity,
            options.chains,
            mass_matrix_estimation="diagonal",
            adaptation_info_fn=lambda state, info, adapted: info.num_integration_steps,
        )
        (states, found), info = adaptation.run(
            key, starts, 0.1, optax.adam(0.02), num_steps=options.warmup, max_sampling_steps=options.draws
        )
        functions.update({key: found[key] for key in ("next_random_arg_fn", "integration_steps_fn")})
        adapted = found["step_size"], found["inverse_mass_matrix"], found["integration_steps_params"]
        return (states, *adapted), info._wrapped_info.sum()

    def draw(key: Any, carry: Any) -> Any:
        states, *adapted = carry
        kernel = blackjax.dynamic_hmc.build_kernel(**functions)

        def one(states: Any, key: Any) -> Any:
            keys = jax.random.split(key, options.chains)
            states, info = jax.vmap(lambda key, state: kernel(key, state, target.logdensity, *adapted))(keys, states)
            return states, (states.position, info.num_integration_steps, info.is_divergent, info.acceptance_rate)

        w, *others = scanned(options.draws, key, states, one)
        return w.swapaxes(0, 1), *others

    return Sampler(warm_up, draw)


def mclmc(target: Target, name: str, options: argparse.Namespace) -> Sampler:
    import blackjax
    import jax

    kernel = blackjax.mclmc.build_kernel()
    steps = options.every * options.more * options.warmup

    def warm_up(key: Any, start: Any) -> Any:
        first, second = jax.random.split(key)
        state, found, taken = blackjax.mclmc_find_L_and_step_size(
            mclmc_kernel=kernel,
            num_steps=3 * steps,  # of which it takes a third
            state=blackjax.mclmc.init(start, target.logdensity, first),
            rng_key=second,
            logdensity_fn=target.logdensity,
        )
        return (state, found), 2 * taken

    def draw(key: Any, carry: Any) -> Any:
        state, found = carry

        def one(state: Any, key: Any) -> Any:
            state, info = kernel(key, state, target.logdensity, found.inverse_mass_matrix, found.L, found.step_size)
            return state, ~info.nonans

        def several(state: Any, key: Any) -> Any:
            state, failed = jax.lax.scan(one, state, jax.random.split(key, options.every))
            return state, (state.position, 2 * options.every, failed.sum(), 1.0)

        return scanned(options.more * options.draws, key, state, several)

    return per_chain(options, warm_up, draw)


def adjusted_mclmc(target: Target, name: str, options: argparse.Namespace) -> Sampler:
    import blackjax
    import jax
    from blackjax.mcmc.adjusted_mclmc_dynamic import make_random_trajectory_length_fn

    kernel = blackjax.adjusted_mclmc_dynamic.build_kernel(integration_steps_fn=make_random_trajectory_length_fn(True))

    def warm_up(key: Any, start: Any) -> Any:
        first, second = jax.random.split(key)
        state, found, taken = blackjax.adjusted_mclmc_find_L_and_step_size(
            mclmc_kernel=kernel,
            logdensity_fn=target.logdensity,
            num_steps=round(options.warmup / 0.3),  # of which it takes three tenths
            state=blackjax.adjusted_mclmc_dynamic.init(start, target.logdensity, first),
            rng_key=second,
            target=0.9,
        )
        return (state, found), 2 * taken

    def draw(key: Any, carry: Any) -> Any:
        state, found = carry

        def one(state: Any, key: Any) -> Any:
            state, info = kernel(
                key,
                state,
                target.logdensity,
                found.step_size,
                inverse_mass_matrix=found.inverse_mass_matrix,
                integration_steps_params=(found.L / found.step_size,),
            )
            return state, (state.position, 2 * info.num_integration_steps, info.is_divergent, info.acceptance_rate)

        return scanned(options.draws, key, state, one)

    return per_chain(options, warm_up, draw)


BUILD = {"hmc": hamiltonian, "nuts": hamiltonian, "chees": chees, "mclmc": mclmc, "adjusted_mclmc": adjusted_mclmc}


def sample(target: Target, name: str, precision: str, options: argparse.Namespace) -> list[Draws]:
    """The draws of every seed; compiles once, untimed."""
    import jax

    sampler = BUILD[name](target, name, options)
    compiled: dict[str, Any] = {}

    def timed(what: str, function: Any, *arguments: Any) -> tuple[Any, float]:
        if what not in compiled:
            compiled[what] = jax.jit(function).lower(*arguments).compile()
        begin = time.perf_counter()
        return jax.block_until_ready(compiled[what](*arguments)), time.perf_counter() - begin

    def run(seed: int) -> Draws:
        warm_key, draw_key = jax.random.split(jax.random.key(seed))
        start = np.random.default_rng(seed).standard_normal((options.chains, target.size)).astype(precision)
        (carry, warm_gradients), warm_seconds = timed("warm", sampler.warm_up, warm_key, jax.numpy.asarray(start))
        (w, gradients, divergent, acceptance), seconds = timed("draw", sampler.draw, draw_key, carry)
        assert w.dtype == precision and w.shape[::2] == (options.chains, target.size)
        numbers = {
            "gradients": int(np.asarray(gradients, np.int64).sum()),
            "warmup_gradients": int(np.asarray(warm_gradients, np.int64).sum()),
            "seconds": seconds,
            "warmup_seconds": warm_seconds,
            "divergences": int(divergent.sum()),
            "acceptance": float(np.asarray(acceptance, np.float64).mean()),
        }
        return Draws(np.asarray(w, np.float64), numbers)

    return [run(seed) for seed in range(options.first_seed, options.first_seed + options.seeds)]


def sample_nutpie(target: Target, options: argparse.Namespace) -> list[Draws]:
    import jax
    import nutpie

    function = jax.jit(jax.value_and_grad(target.logdensity))
    function(np.zeros(target.size))

    def logp(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(w)
        return float(value), np.asarray(gradient)

    model = nutpie.compiled_pyfunc.from_pyfunc(
        target.size, lambda: logp, lambda *seeds: lambda w: {"w": np.array(w)}, ["float64"], [(target.size,)], ["w"],
        make_initial_point_fn=lambda seed: np.random.default_rng(seed).standard_normal(target.size),
    )  # fmt: skip

    def run(seed: int) -> Draws:
        begin = time.perf_counter()
        found = nutpie.sample(
            model, draws=options.draws, tune=options.warmup, chains=options.chains, cores=options.threads, seed=seed, progress_bar=False
        )
        seconds = time.perf_counter() - begin
        gradients, warm = (int(stats.n_steps.sum()) for stats in (found.sample_stats, found.warmup_sample_stats))
        numbers = {
            "gradients": gradients,
            "warmup_gradients": warm,
            "seconds": seconds * gradients / (gradients + warm),
            "warmup_seconds": seconds * warm / (gradients + warm),
            "divergences": int(found.sample_stats.diverging.sum()),
            "acceptance": float(found.sample_stats.mean_tree_accept.mean()),
        }
        return Draws(found.posterior.w.values, numbers)

    return [run(seed) for seed in range(options.first_seed, options.first_seed + options.seeds)]


# ---- what the draws are worth


def worst(statistic: Callable[..., Any], columns: Columns, pick: Callable[[Any], Any], **arguments: Any) -> float:
    """An ArviZ statistic of every column; the one that `pick` picks."""
    import arviz

    found = statistic(arviz.convert_to_dataset({"x": np.stack(list(columns.values()), -1)}), **arguments)
    return float(pick(found["x"].values))


def spread(values: list[float]) -> dict[str, Any]:
    """Mean and standard error over seeds."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "se": error, "seeds": values}


def distance(known: dict[str, Known], columns: list[Columns]) -> tuple[float, str]:
    """The largest distance of a mean or an sd from what is known, in standard errors of both, and whose it is."""
    import arviz

    found = []
    for label, it in known.items():
        values = np.concatenate([one[label] for one in columns])
        errors = {method: float(arviz.mcse(values, method=method)) for method in ("mean", "sd")}
        # Reference draws are nearly independent: the error of their sd is that of their mean over the root of 2.
        found.append(((values.mean() - it.mean) / np.hypot(errors["mean"], it.mcse), f"mean of {label}"))
        found.append(((values.std(ddof=1) - it.sd) / np.hypot(errors["sd"], 0.5**0.5 * it.mcse), f"sd of {label}"))
    z, label = max(found, key=lambda pair: np.nan_to_num(abs(pair[0]), nan=np.inf))
    return float(z), label


def measure(name: str, sampler: str, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    import arviz
    import jax

    jax.config.update("jax_enable_x64", precision == "float64")
    target = network(options.network) if name == "network" else TARGETS[name]()
    draws = sample_nutpie(target, options) if sampler == "nutpie" else sample(target, sampler, precision, options)
    columns = [target.columns(one.w) for one in draws]
    for one, found in zip(draws, columns):
        squares = {label: values**2 for label, values in found.items()}
        one.numbers["ess"] = min(worst(arviz.ess, some, np.min, method="bulk") for some in (found, squares))
        one.numbers["rhat"] = max(worst(arviz.rhat, some, np.max) for some in (found, squares))
    z, of = distance(target.known, columns)
    return {
        "target": name,
        "sampler": sampler,
        "precision": precision,
        "size": target.size,
        **{key: spread([one.numbers[key] for one in draws]) for key in draws[0].numbers},
        "ess_per_gradient": spread([one.numbers["ess"] / one.numbers["gradients"] for one in draws]),
        "z": z,
        "of": of,
    }


# ---- the command


def limit_threads(threads: int) -> None:
    """Before the libraries are imported: XLA sizes its pools by the cores it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["NPROC"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"


def table(results: list[dict[str, Any]]) -> str:
    head = ("target", "sampler", "precision", "ESS/gradient", "ESS", "gradients", "in warm-up", "s", "warm-up s", "divergent", "accepted", "R̂", "z")  # fmt: skip

    lines = [head]
    for result in results:
        mean = {key: value["mean"] for key, value in result.items() if isinstance(value, dict)}
        error = result["ess_per_gradient"]["se"]
        lines.append((
            result["target"], result["sampler"], result["precision"],
            f"{mean['ess_per_gradient']:.3g}" + ("" if error is None else f" ± {error:.1g}"), f"{mean['ess']:.0f}",
            f"{mean['gradients']:.0f}", f"{mean['warmup_gradients']:.0f}", f"{mean['seconds']:.3f}", f"{mean['warmup_seconds']:.3f}",
            f"{mean['divergences']:.1f}", f"{mean['acceptance']:.3f}", f"{mean['rhat']:.3f}", f"{result['z']:+.1f} ({result['of']})",
        ))  # fmt: skip
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


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
    add("--only", type=some_of(NAMES), default=list(TARGETS), metavar="A,B", help=f"of {', '.join(NAMES)}; all but the last")
    add("--samplers", type=some_of(SAMPLERS), default=list(SAMPLERS), metavar="A,B", help=f"of {', '.join(SAMPLERS)}")
    add("--precisions", type=some_of(PRECISIONS), default=["float64"], metavar="A,B", help="float64 (default), float32")
    add("--network", type=Path, metavar="FILE", help="the network that ess.rhai has exported")
    add("--steps", type=int, default=10, metavar="L", help="integration steps of HMC (default 10)")
    add("--every", type=int, default=2, metavar="N", help="steps of MCLMC per draw (default 2)")
    add("--more", type=int, default=5, metavar="N", help="draws of MCLMC for each draw of the others (default 5)")
    add("--acceptance", type=float, default=0.8, metavar="A", help="target acceptance of HMC and NUTS (default 0.8)")
    add("--chains", type=int, default=4, metavar="N", help="chains (default 4)")
    add("--warmup", type=int, default=1000, metavar="N", help="warm-up draws of a chain (default 1000)")
    add("--draws", type=int, default=2000, metavar="N", help="draws of a chain (default 2000)")
    add("--seeds", type=int, default=3, metavar="N", help="seeds (default 3)")
    add("--first-seed", type=int, default=1, metavar="S", help="the first of them (default 1)")
    add("--threads", type=int, default=2, metavar="N", help="cores (default 2)")
    options = parser.parse_args()
    for name in ("steps", "every", "more", "chains", "warmup", "seeds", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    if options.draws < 8 or options.first_seed < 0 or not 0 < options.acceptance < 1:
        parser.error("--draws must be at least 8, --first-seed at least 0, --acceptance between 0 and 1")
    if "network" in options.only and not (options.network and options.network.is_file()):
        parser.error("the network needs --network FILE: tests/bench/ess makes it")
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
                if sampler == "nutpie" and precision == "float32":
                    continue  # it has no such
                begin = time.perf_counter()
                results.append(measure(name, sampler, precision, options))
                took = time.perf_counter() - begin
                print(f"{name} {sampler} {precision}: {took:.1f} s with compiling", file=sys.stderr, flush=True)
    print(table(results), file=sys.stderr)
    library = f"blackjax {blackjax.__version__} (jax {jax.__version__}), arviz {arviz.__version__}"
    if "nutpie" in options.samplers:
        import nutpie

        library += f", nutpie {nutpie.__version__}"
    print(json.dumps({"library": library, "options": vars(options), "results": results}, indent=1, default=str))


if __name__ == "__main__":
    main()
