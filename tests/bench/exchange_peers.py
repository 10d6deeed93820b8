#!/usr/bin/env python3
"""Parallel tempering by ptemcee (or reddemcee, or nested sampling by dynesty) on two Gaussians of known evidence and weights.

    exchange_peers.py --dim 10 --sweeps 5000 --temperatures 10 --seed 1                   ptemcee, 2 max(dim, 8) walkers
    exchange_peers.py --library reddemcee ... ; exchange_peers.py --library dynesty --dim 10 --seed 1
    exchange_peers.py --dim 10 --exact --temperatures 10                                  the known answers only
    exchange_peers.py --check                                                             self test of the known answers

Target: prior N(0, tau^2 I), likelihood L(w) = sum_k a_k N(w; mu_k e_1, sigma^2 I), a = (0.7, 0.3), mu = (3, -3), sigma = 0.5,
tau = 2. With v = sigma^2 + tau^2: Z = sum_k a_k N(mu_k e_1; 0, v I), posterior weights as the terms of that sum, posterior modes
N(mu_k tau^2/v e_1, sigma^2 tau^2/v I). Mode 1 is told by w_1 > the midpoint of the modes. Path: prior * L^beta.

One JSON object per run on stdout. A sweep is one update of every walker at every temperature, with one attempt to swap every
neighbouring pair of temperatures for every walker. "--sweeps" are kept; "--burn-in" (default a half as many) come before and
adapt the ladder, which is frozen afterwards ("--ladder fixed": beta + sigma^2/tau^2 geometric from beta = 0 to 1, the optimum of a
Gaussian path, never adapted, to run two programs on the same ladder; else ptemcee's default with Tmax = inf). Likelihood evaluations are counted in the likelihood; "seconds" are those of the
sampler, burn-in included, without the statistics after it.

Errors. Walkers of an ensemble depend on one another, and ptemcee permutes them at random in every swap, so a walker's own
autocorrelation (arviz, emcee) says too little: it falls at once while the fraction of walkers in mode 1 drifts slowly. The
fraction over walkers, f_t, is a proper time series: "error" = sd(f) sqrt(tau_f/n), tau_f its integrated autocorrelation time
(emcee's), "ess" = p(1-p)/error^2 (var/error^2 for a coordinate). "ess_bulk_walkers" is arviz's with walkers as chains.
ln Z: "ln_z"/"ln_z_error" are the library's own (thermodynamic integration by trapezia, and its difference from every second
temperature); "ln_z_ladder_bias" is what trapezia on that ladder give with the exact <ln L>, less the exact ln Z;
"ln_z_stepping" is stepping stones (geometric bridge) on the same draws, by this script, with the error of the time series.

numpy >= 2 has neither np.float nor np.trapz, which the libraries use: set below, the only patches.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import sys
import time
import warnings
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from scipy.special import logsumexp, ndtr

np.float = float  # type: ignore[attr-defined]
np.trapz = np.trapezoid  # type: ignore[attr-defined]
warnings.filterwarnings("ignore")

LN2PI = math.log(2 * math.pi)


class Target:
    def __init__(self, options: argparse.Namespace) -> None:
        self.dim, self.sigma, self.tau = options.dim, options.sigma, options.tau
        self.a, self.mu = np.array(options.weights), np.array(options.means)
        self.evaluations = 0
        self.v = self.sigma**2 + self.tau**2
        terms = np.log(self.a) - 0.5 * self.mu**2 / self.v - 0.5 * self.dim * (LN2PI + math.log(self.v))
        self.ln_z = float(logsumexp(terms))
        mixture = np.exp(terms - self.ln_z)
        self.centres, self.spread = self.mu * self.tau**2 / self.v, self.sigma * self.tau / math.sqrt(self.v)
        self.cut = float(self.centres.mean())
        side = ndtr((self.centres - self.cut) / self.spread)
        self.weight = float(mixture @ side)  # P(w_1 > cut)
        self.mean = float(mixture @ self.centres)
        self.variance = float(mixture @ (self.spread**2 + self.centres**2) - self.mean**2)

    def log_likelihood(self, w: np.ndarray) -> np.ndarray:
        """Of rows."""
        self.evaluations += len(w)
        first = w[:, :1] - self.mu
        rest = np.einsum("ij,ij->i", w[:, 1:], w[:, 1:])
        peaks = np.log(self.a) - 0.5 * first**2 / self.sigma**2
        top = peaks.max(axis=1)
        peaks = top + np.log(np.exp(peaks - top[:, None]).sum(axis=1))
        return peaks - 0.5 * rest / self.sigma**2 - self.dim * (0.5 * LN2PI + math.log(self.sigma))

    def log_prior(self, w: np.ndarray) -> np.ndarray:
        return -0.5 * np.einsum("ij,ij->i", w, w) / self.tau**2 - self.dim * (0.5 * LN2PI + math.log(self.tau))

    # ---- known answers at any beta: the first coordinate by quadrature, the others in closed form

    def first(self, beta: float) -> tuple[np.ndarray, np.ndarray, float]:
        """ln L's part of the first coordinate on a grid, its probability there, ln of its normaliser."""
        x = np.linspace(-12 * self.tau, 12 * self.tau, 40_001)
        u = logsumexp(np.log(self.a) - 0.5 * (x[:, None] - self.mu) ** 2 / self.sigma**2, axis=1)
        u -= 0.5 * LN2PI + math.log(self.sigma)
        ln_p = beta * u - 0.5 * x**2 / self.tau**2 - 0.5 * LN2PI - math.log(self.tau) + math.log(x[1] - x[0])
        norm = float(logsumexp(ln_p))
        return u, np.exp(ln_p - norm), norm

    def exact(self, beta: float) -> tuple[float, float, float]:
        """ln Z(beta), <ln L>, Var ln L."""
        u, p, norm = self.first(beta)
        rest, constant = self.dim - 1, 0.5 * LN2PI + math.log(self.sigma)
        ratio = beta * self.tau**2 / self.sigma**2
        ln_z = norm - rest * (0.5 * math.log1p(ratio) + beta * constant)
        scale = self.tau**2 / (self.sigma**2 + beta * self.tau**2)  # |rest|^2/2 sigma^2 is Gamma(rest/2, scale)
        mean = float(p @ u)
        return ln_z, mean - rest * (0.5 * scale + constant), float(p @ (u - mean) ** 2) + 0.5 * rest * scale**2

    def draws(self, beta: float, n: int, random: np.random.Generator) -> np.ndarray:
        """ln L of n independent states at beta (in the quadrature of the first coordinate)."""
        u, p, _ = self.first(beta)
        scale = self.tau**2 / (self.sigma**2 + beta * self.tau**2)
        rest = self.dim - 1
        values = random.choice(u, size=n, p=p / p.sum())
        if rest:
            values = values - random.gamma(rest / 2, scale, n) - rest * (0.5 * LN2PI + math.log(self.sigma))
        return values

    def ladder(self, betas: np.ndarray, n: int = 200_000) -> dict[str, Any]:
        """Trapezia with the exact <ln L>; acceptances of the neighbours by independent draws."""
        random = np.random.default_rng(0)
        points = [self.exact(float(beta)) for beta in betas]
        trapezia = -float(np.trapezoid([point[1] for point in points], betas))
        drawn = [self.draws(float(beta), n, random) for beta in betas]
        accept = [
            float(np.exp(np.minimum(0, (a - b) * (next_ - this))).mean())
            for a, b, this, next_ in zip(betas, betas[1:], drawn, drawn[1:])
        ]
        return {"trapezia": trapezia, "swap_acceptance_exact": accept}

    def barrier(self, points: int = 400, n: int = 100_000) -> float:
        """Lambda = 1/2 int_0^1 E|U - U'| dbeta, on a grid uniform in ln(beta + sigma^2/tau^2)."""
        random = np.random.default_rng(0)
        shift = self.sigma**2 / self.tau**2
        t = np.linspace(math.log(shift), math.log1p(shift), points + 1)
        t = 0.5 * (t[1:] + t[:-1])
        total = 0.0
        for beta in np.exp(t) - shift:
            x = np.sort(self.draws(float(beta), n, random))
            gap = 2 * (x @ (2 * np.arange(n) - n + 1)) / (n * (n - 1))  # Gini's mean difference
            total += 0.5 * gap * (beta + shift)
        return float(total * math.log1p(1 / shift) / points)


class Rows:
    """A pool whose map takes all the points at once: Python's calls point by point would dominate the time."""

    def __init__(self, target: Target, beta_pairs: bool) -> None:
        self.target, self.beta_pairs = target, beta_pairs

    def map(self, _function: Any, points: Any) -> list[tuple[float, float]]:
        if self.beta_pairs:  # reddemcee: (x, beta) -> (ln prior + beta ln L, ln L)
            points = list(points)
            w, beta = np.array([x for x, _ in points]), points[0][1]
            ln_l = self.target.log_likelihood(w)
            return list(zip(self.target.log_prior(w) + beta * ln_l, ln_l))
        w = np.asarray(points)
        return list(zip(self.target.log_likelihood(w), self.target.log_prior(w)))


# ---- statistics


def autocorrelation_time(series: np.ndarray) -> float:
    """Sokal's window of 5, as emcee.autocorr, of one series."""
    import emcee

    if np.ptp(series) == 0:
        return math.nan
    return float(emcee.autocorr.integrated_time(series[:, None, None], c=5, tol=0, quiet=True)[0])


def of_walkers(values: np.ndarray, variance: float) -> dict[str, Any]:
    """values [n, walkers]; variance is the known one of a single draw."""
    import arviz

    series = values.mean(axis=1)
    time_ = autocorrelation_time(series)
    error = float(series.std(ddof=1) * math.sqrt(time_ / len(series))) if math.isfinite(time_) else math.nan
    bulk = float(arviz.ess(np.ascontiguousarray(values.T.astype(float)), method="bulk"))
    return {
        "mean": float(series.mean()), "error": error, "autocorrelation_sweeps": time_,
        "ess": variance / error**2 if error else math.nan, "ess_bulk_walkers": bulk,
    }  # fmt: skip


def stepping(betas: np.ndarray, ln_l: np.ndarray) -> tuple[float, float]:
    """ln_l [temperatures, n, walkers], betas falling. Bridge between neighbours; error from the linearised time series."""
    total, influence = 0.0, np.zeros(ln_l.shape[1])
    for hot in range(1, len(betas)):
        half = 0.5 * (betas[hot - 1] - betas[hot])
        for sign, x in ((1, half * ln_l[hot]), (-1, -half * ln_l[hot - 1])):
            mean = logsumexp(x) - math.log(x.size)
            total += sign * mean
            influence += sign * (np.exp(x - mean).mean(axis=1) - 1)
    time_ = autocorrelation_time(influence)
    return float(total), float(influence.std(ddof=1) * math.sqrt(time_ / len(influence)))


# ---- the libraries


def start_ladder(options: argparse.Namespace) -> np.ndarray:
    from ptemcee.sampler import default_beta_ladder

    if options.ladder == "adapted":
        return default_beta_ladder(options.dim, options.temperatures, np.inf)
    shift = options.sigma**2 / options.tau**2
    betas = shift * (1 + 1 / shift) ** np.linspace(1, 0, options.temperatures) - shift
    betas[0], betas[-1] = 1.0, 0.0
    return betas


def run_ptemcee(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    import ptemcee

    random = np.random.RandomState(options.seed)
    betas = start_ladder(options)
    start_at = random.normal(0, options.tau, (options.temperatures, options.walkers, options.dim))
    pool = Rows(target, False) if options.evaluation == "rows" else None
    sampler = ptemcee.Sampler(
        options.walkers, options.dim, lambda x: target.log_likelihood(x[None])[0], lambda x: target.log_prior(x[None])[0],
        betas=betas, pool=pool, adaptation_lag=options.adaptation_lag, adaptation_time=options.adaptation_time, random=random,
    )  # fmt: skip
    start = time.perf_counter()
    sampler.run_mcmc(start_at, iterations=options.burn_in, storechain=False, adapt=options.ladder == "adapted")
    burn_seconds, burn_evaluations = time.perf_counter() - start, target.evaluations
    ratios = np.zeros(options.temperatures - 1)
    for *_, swapped in sampler.sample(iterations=options.sweeps, adapt=False, swap_ratios=True):
        ratios += swapped
    seconds = time.perf_counter() - start
    ln_z, error = sampler.log_evidence_estimate(fburnin=0.0)
    return {
        "betas": sampler.betas, "swap": ratios / options.sweeps, "accept": sampler.acceptance_fraction.mean(axis=1),
        "seconds": seconds, "burn_in_seconds": burn_seconds, "burn_in_evaluations": burn_evaluations,
        "ln_z": {"ln_z": ln_z, "ln_z_error": error},
        "cold": sampler.chain[0].transpose(1, 0, 2), "ln_l": sampler.loglikelihood.transpose(0, 2, 1),
    }  # fmt: skip


def run_reddemcee(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    from reddemcee.sampler import PTSampler

    np.random.seed(options.seed)  # its swaps draw from the global generator, its moves from a copy of the same state
    betas = start_ladder(options)
    start_at = np.random.normal(0, options.tau, (options.temperatures, options.walkers, options.dim))
    pool = Rows(target, True) if options.evaluation == "rows" else None
    sampler = PTSampler(
        options.walkers, options.dim, lambda x: target.log_likelihood(x[None])[0], lambda x: target.log_prior(x[None])[0],
        betas=betas, ntemps=options.temperatures, pool=pool, adapt_tau=options.adaptation_lag, adapt_nu=options.adaptation_time,
    )  # fmt: skip
    start = time.perf_counter()
    if options.ladder == "fixed":
        sampler.select_adjustment("NONE")
    state = sampler.run_mcmc(start_at, nsweeps=options.burn_in, nsteps=1)
    burn_seconds, burn_evaluations = time.perf_counter() - start, target.evaluations
    sampler.reset()
    sampler.select_adjustment("NONE")
    start_kept = time.perf_counter()
    sampler.run_mcmc(state, nsweeps=options.sweeps, nsteps=1)
    seconds = burn_seconds + time.perf_counter() - start_kept
    ti, ss, hybrid = sampler.get_evidence_ti(), sampler.get_evidence_ss(), sampler.get_evidence_hybrid()
    return {
        "betas": np.array(sampler.betas), "swap": np.asarray(sampler.get_tsw()).mean(axis=0),
        "accept": np.asarray(sampler.acceptance_fraction).mean(axis=1), "seconds": seconds, "burn_in_seconds": burn_seconds,
        "burn_in_evaluations": burn_evaluations,
        "ln_z": {"ln_z": ti[0], "ln_z_error": ti[1], "ln_z_ss": ss[0], "ln_z_ss_error": ss[1],
                 "ln_z_hybrid": hybrid[0], "ln_z_hybrid_error": hybrid[1]},
        "cold": np.asarray(sampler.get_chain())[0], "ln_l": np.asarray(sampler.get_log_like()),
    }  # fmt: skip


def run_dynesty(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    import dynesty
    from scipy.special import ndtri

    sampler = dynesty.NestedSampler(
        lambda w: target.log_likelihood(w[None])[0], lambda u: options.tau * ndtri(u), options.dim, nlive=options.live,
        sample=options.nested, rstate=np.random.default_rng(options.seed),
    )  # fmt: skip
    start = time.perf_counter()
    sampler.run_nested(print_progress=False, dlogz=0.01)
    seconds = time.perf_counter() - start
    results = sampler.results
    w = np.exp(results.logwt - results.logz[-1])
    w /= w.sum()
    above = results.samples[:, 0] > target.cut
    p, ess = float(w @ above), float(1 / (w @ w))
    return {
        "live": options.live, "method": options.nested, "ln_z": float(results.logz[-1]), "ln_z_error": float(results.logzerr[-1]),
        "ln_z_exact": target.ln_z, "weight": {"mean": p, "error": math.sqrt(p * (1 - p) / ess), "exact": target.weight, "ess": ess},
        "evaluations": target.evaluations, "seconds": seconds,
    }  # fmt: skip


def report(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    head = {
        "library": f"{options.library} {importlib.metadata.version(options.library)}, numpy {np.__version__}",
        "dim": options.dim, "seed": options.seed, "sigma": options.sigma, "tau": options.tau, "means": options.means,
        "weights": options.weights,
    }  # fmt: skip
    if options.library == "dynesty":
        return head | run_dynesty(target, options)
    out = (run_ptemcee if options.library == "ptemcee" else run_reddemcee)(target, options)
    betas, cold, evaluations = out["betas"], out["cold"], target.evaluations
    ladder = target.ladder(betas, 50_000)
    ln_z_step, step_error = stepping(betas, out["ln_l"])
    mode = of_walkers(cold[:, :, 0] > target.cut, target.weight * (1 - target.weight))
    first = of_walkers(cold[:, :, 0], target.variance)
    for of, exact in ((mode, target.weight), (first, target.mean)):
        of |= {"exact": exact, "z": (of["mean"] - exact) / of["error"] if of["error"] else None}
        of |= {"ess_per_evaluation": of["ess"] / evaluations, "ess_per_second": of["ess"] / out["seconds"]}
    return head | {
        "temperatures": options.temperatures, "walkers": options.walkers, "sweeps": options.sweeps, "burn_in": options.burn_in,
        "ladder": options.ladder, "evaluation": options.evaluation, **out["ln_z"], "ln_z_exact": target.ln_z,
        "ln_z_ladder_bias": ladder["trapezia"] - target.ln_z, "ln_z_stepping": ln_z_step, "ln_z_stepping_error": step_error,
        "weight": mode, "first": first, "evaluations": evaluations, "burn_in_evaluations": out["burn_in_evaluations"],
        "seconds": out["seconds"], "burn_in_seconds": out["burn_in_seconds"],
        "evaluations_per_second": evaluations / out["seconds"], "swap_acceptance": out["swap"].tolist(),
        "swap_acceptance_exact": ladder["swap_acceptance_exact"], "move_acceptance": out["accept"].tolist(),
        "betas": betas.tolist(),
    }  # fmt: skip


# ---- self test


def check(options: argparse.Namespace) -> bool:
    good = True
    for dim in (1, 2, 10, 50):
        options.dim = dim
        target = Target(options)
        ln_z, mean, variance = target.exact(1.0)
        step = 1e-4
        slope = (target.exact(0.5 + step)[0] - target.exact(0.5 - step)[0]) / (2 * step)
        curve = (target.exact(0.5 + step)[1] - target.exact(0.5 - step)[1]) / (2 * step)
        rows = [
            ("ln Z(1), quadrature against closed form", ln_z, target.ln_z, 1e-9), ("ln Z(0)", target.exact(0.0)[0], 0.0, 1e-9),
            ("<ln L> against the slope of ln Z", target.exact(0.5)[1], slope, 1e-5),
            ("Var ln L against the slope of <ln L>", target.exact(0.5)[2], curve, 1e-4),
        ]  # fmt: skip
        w = np.random.default_rng(1).normal(0, target.tau, (400_000, dim))
        values = target.log_likelihood(w)
        rows.append(("<ln L> of the prior, by draws", values.mean(), target.exact(0.0)[1], 5 * values.std() / math.sqrt(len(w))))
        for name, got, want, within in rows:
            fine = abs(got - want) <= within * max(1.0, abs(want)) if within < 1e-3 else abs(got - want) <= within
            good &= bool(fine)
            print(f"{'ok ' if fine else 'BAD'} d={dim} {name}: {got:.10g} {want:.10g}", file=sys.stderr)
    return good


def standard(value: Any) -> Any:
    """Without the NaN and infinity that JSON has not, and numpy's types: null."""
    if isinstance(value, dict):
        return {key: standard(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [standard(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=("ptemcee", "reddemcee", "dynesty"), default="ptemcee")
    parser.add_argument("--dim", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=5000)
    parser.add_argument("--burn-in", type=int)
    parser.add_argument("--temperatures", type=int, default=8)
    parser.add_argument("--walkers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, choices=(1,))
    parser.add_argument("--sigma", type=float, default=0.5)
    parser.add_argument("--tau", type=float, default=2.0)
    parser.add_argument("--means", type=float, nargs=2, default=[3.0, -3.0])
    parser.add_argument("--weights", type=float, nargs=2, default=[0.7, 0.3])
    parser.add_argument("--evaluation", choices=("rows", "points"), default="rows")
    parser.add_argument("--ladder", choices=("adapted", "fixed"), default="adapted")
    parser.add_argument("--adaptation-lag", type=int, default=10_000)
    parser.add_argument("--adaptation-time", type=int, default=100)
    parser.add_argument("--live", type=int, default=500)
    parser.add_argument("--nested", default="auto")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.walkers = options.walkers or 2 * max(options.dim, 8)
    options.burn_in = options.sweeps // 2 if options.burn_in is None else options.burn_in
    if options.check:
        return 0 if check(options) else 1
    target = Target(options)
    if options.exact:
        betas = start_ladder(options)
        out = {
            "dim": options.dim, "ln_z_exact": target.ln_z, "weight": target.weight, "mean": target.mean,
            "variance": target.variance, "barrier": target.barrier(), "betas": betas.tolist(),
            "ln_z_of_beta": [target.exact(float(b)) for b in betas], **target.ladder(betas),
        }  # fmt: skip
        print(json.dumps(standard(out)))
        return 0
    print(json.dumps(standard(report(target, options))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
