"""Writes arviz_loo.json: what ArviZ says of PSIS-LOO on ln likelihoods that a formula gives.

    python make_arviz_loo.py            (needs the packages of requirements.txt)
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import arviz
import numpy as np

FIXTURE = Path(__file__).with_name("arviz_loo.json")
# Chains, draws per chain, examples, relative efficiency.
CASES = [(4, 250, 8, 1.0), (4, 250, 8, 0.3), (1, 400, 5, 1.7), (2, 40, 6, 1.0), (2, 500, 6, 0.2)]


def ln_likelihoods(case):
    """[chains, draws, examples]: importance ratios of example i are Pareto with shape (i + 1) / 6, by a congruential generator."""
    chains, draws, examples, _ = CASES[case]
    x, out = 12345 + case, np.empty(chains * draws * examples)
    for k in range(out.size):
        x = (1103515245 * x + 12345) % 2**31
        out[k] = (k % examples + 1) / 6 * np.log((x + 0.5) / 2**31) - 1.0
    return out.reshape(chains, draws, examples)


def elpd_data(case):
    ln = ln_likelihoods(case)
    data = arviz.from_dict({"posterior": {"x": ln[:, :, 0] * 0}, "log_likelihood": {"y": ln}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return arviz.loo(data, pointwise=True, reff=CASES[case][3])


def numbers(case):
    """ArviZ's numbers."""
    found = elpd_data(case)
    return {
        "elpd": float(found.elpd),
        "se": float(found.se),
        "p": float(found.p),
        "good_k": float(found.good_k),
        "elpd_i": [float(v) for v in found.elpd_i.values],
        "k": [float(v) for v in found.pareto_k.values],
    }


def comparison():
    """The difference of the first two cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.compare({"a": elpd_data(0), "b": elpd_data(1)}, round_to="none")
    return {"difference": float(table["elpd_diff"].iloc[1]), "se": float(table["dse"].iloc[1])}


def main():
    fixture = {
        "about": "PSIS-LOO by ArviZ; written by make_arviz_loo.py, which has the formula of the likelihoods.",
        "versions": {p: version(p) for p in ["arviz", "arviz-stats", "numpy", "scipy"]},
        "cases": [
            dict(zip(["chains", "draws", "examples", "efficiency"], c)) | {"arviz": numbers(i)}
            for i, c in enumerate(CASES)
        ],
        "comparison": comparison(),
    }
    FIXTURE.write_text(json.dumps(fixture, indent=1) + "\n")


if __name__ == "__main__":
    main()
