"""Writes arviz_traces.json: traces, and what ArviZ says about them.

    python make_arviz_traces.py            (needs the packages of requirements.txt)

The traces come from a fixed seed, so a run with the same versions gives the same file.
"""

import json
import logging
import platform
import warnings
from importlib.metadata import version
from pathlib import Path

import arviz
import arviz_stats
import numpy as np

FIXTURE = Path(__file__).with_name("arviz_traces.json")
SEED = 20260611
PACKAGES = ["arviz", "arviz-stats", "arviz-base", "numpy", "scipy", "xarray"]
LAGS = 50


def ar1(rng, phi, chains, draws):
    """Stationary AR(1) processes of unit innovations: shape (chains, draws)."""
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains) / np.sqrt(1 - phi**2)
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + rng.normal(size=chains)
    return x


def traces():
    """Every case by name: arrays of shape (chains, draws)."""
    rng = np.random.default_rng(SEED)
    normal = lambda *shape: rng.normal(size=shape)  # noqa: E731
    stuck = normal(3, 80)
    # A binary fraction: NumPy's mean of 80 times 0.1 is not 0.1, and 0 / 1e-33 would hide the 0 / 0.
    stuck[1] = 0.125
    return {
        "iid normal, 4 x 1000": normal(4, 1000),
        "iid normal, 1 x 300": normal(1, 300),
        "iid normal, 2 x 10": normal(2, 10),
        "iid normal, 2 x 4": normal(2, 4),
        "iid normal, 2 x 5": normal(2, 5),
        "iid normal, 3 x 6": normal(3, 6),
        "iid normal, 2 x 7": normal(2, 7),
        "iid normal, 2 x 9": normal(2, 9),
        "iid normal, 1 x 4": normal(1, 4),
        "iid normal, 2 x 3: too short": normal(2, 3),
        "iid normal, 16 x 60": normal(16, 60),
        "odd length, 3 x 101": normal(3, 101),
        "quantiles on draws, 1 x 201": normal(1, 201),
        "quantiles on draws, 3 x 107": normal(3, 107),
        "AR(1) 0.9, 4 x 500": ar1(rng, 0.9, 4, 500),
        "AR(1) 0.99, 4 x 300": ar1(rng, 0.99, 4, 300),
        "AR(1) -0.5, 4 x 200": ar1(rng, -0.5, 4, 200),
        "AR(1) -0.95, 2 x 200": ar1(rng, -0.95, 2, 200),
        "AR(1) 0.7, 1 x 333": ar1(rng, 0.7, 1, 333),
        "random walk, 4 x 250": normal(4, 250).cumsum(axis=1),
        "Cauchy, 4 x 250": rng.standard_cauchy(size=(4, 250)),
        "Student t, 3 degrees, 4 x 250": rng.standard_t(3, size=(4, 250)),
        "log-normal, 4 x 200": rng.lognormal(size=(4, 200)),
        "uniform, 5 x 120": rng.uniform(size=(5, 120)),
        "different means, 4 x 200": normal(4, 200) + np.array([[0.0], [1], [2], [5]]),
        "different spreads, 4 x 200": normal(4, 200) * np.array([[1.0], [1], [2], [5]]),
        "drift, 2 x 200": normal(2, 200) + np.linspace(0, 4, 200),
        "two modes, 4 x 150": normal(4, 150) + 6 * rng.integers(0, 2, size=(4, 1)),
        "Poisson, 4 x 150": rng.poisson(3, size=(4, 150)).astype(float),
        "binary, 2 x 100": rng.integers(0, 2, size=(2, 100)).astype(float),
        "rare event, 4 x 100": (rng.uniform(size=(4, 100)) < 0.03).astype(float),
        "rejections repeat draws, 4 x 200": np.repeat(normal(4, 50), 4, axis=1),
        "one decimal, 4 x 130": normal(4, 130).round(1),
        "offset 1e4, 4 x 150": 1e4 + normal(4, 150),
        "small unit 1e-9, 4 x 150": 1e-9 * normal(4, 150),
        "below the resolution 1e-18, 4 x 50": 1e-18 * normal(4, 50),
        "large unit 1e30, 4 x 100": 1e30 * normal(4, 100),
        "constant, 2 x 20": np.full((2, 20), 0.5),
        "constant per chain, 2 x 20": np.repeat([[0.5], [0.25]], 20, axis=1),
        "one stuck chain, 3 x 80": stuck,
        "a NaN, 2 x 20": np.where(np.arange(40).reshape(2, 20) == 7, np.nan, normal(2, 20)),
    }


def numbers(x):
    """What ArviZ's public functions say about one (chains, draws) array."""
    data = arviz.from_dict({"posterior": {"x": x}})
    tail = {"method": "tail"}
    got = {
        "mean": arviz_stats.mean(data, round_to="none"),
        "sd": arviz_stats.std(data, round_to="none"),
        "ess_bulk": arviz.ess(data, method="bulk"),
        "ess_tail": arviz.ess(data, **tail, prob=(0.05, 0.95)),
        "ess_tail_of_summary": arviz.ess(data, **tail),
        "ess_mean": arviz.ess(data, method="mean"),
        "ess_sd": arviz.ess(data, method="sd"),
        "mcse_mean": arviz.mcse(data, method="mean"),
        "mcse_sd": arviz.mcse(data, method="sd"),
        "r_hat": arviz.rhat(data),
    }
    got = {name: float(tree["x"]) for name, tree in got.items()}
    got["bfmi"] = [float(v) for v in arviz_stats.base.array_stats.bfmi(x)]
    first = arviz_stats.base.array_stats.autocorr(x[0])
    got["autocorrelation"] = [float(v) for v in first[:LAGS]]
    return got


def quietly(f, *args):
    """Degenerate traces are here on purpose: no warnings about them."""
    logging.disable(logging.INFO)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(*args)


def to_json(value):
    """JSON has no NaN and no infinity: null and "inf"."""
    if isinstance(value, list):
        return [to_json(v) for v in value]
    return None if np.isnan(value) else "inf" if value == np.inf else value


def from_json(value):
    if isinstance(value, list):
        return [from_json(v) for v in value]
    return np.nan if value is None else float(value)


def draws_of(case):
    """The (chains, draws) array of a case of the file."""
    return np.array([[float(v) for v in chain.split()] for chain in case["chains"]])


def main():
    cases = []
    for name, x in traces().items():
        said = quietly(numbers, x)
        cases.append(
            {
                "name": name,
                "chains": [" ".join(f"{v:.17g}" for v in chain) for chain in x],
                "arviz": {k: to_json(v) for k, v in said.items()},
            }
        )
    fixture = {
        "about": "Traces and ArviZ's numbers for them; written by make_arviz_traces.py.",
        "format": "A chain is a string of its draws with 17 significant digits, for readers whose "
        "JSON numbers are not exact to the last bit. null is NaN.",
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        "seed": SEED,
        "cases": cases,
    }
    FIXTURE.write_text(json.dumps(fixture, indent=1) + "\n")


if __name__ == "__main__":
    main()
