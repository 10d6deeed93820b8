"""A real run, seen from Python: ArviZ's numbers are those of the summary, and the weights are those of the last draw.

    ERGODIC=target/release/ergodic ERGODIC_RUN=runs/my-run pytest -s tests/interop/test_run.py
"""

import json
import os
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz
xarray = pytest.importorskip("xarray")

if not {"ERGODIC", "ERGODIC_RUN"} <= os.environ.keys():
    pytest.skip("ERGODIC and ERGODIC_RUN are not set", allow_module_level=True)
RUN = Path(os.environ["ERGODIC_RUN"])


def show():
    output = subprocess.run([os.environ["ERGODIC"], "show", "--json", str(RUN)], check=True, capture_output=True)
    return json.loads(output.stdout)[RUN.name]


def by_arviz(x):
    """ArviZ's numbers for one (chain, draw) array."""
    old = arviz.__version__.startswith("0.")
    data = arviz.from_dict(posterior={"x": x}) if old else arviz.from_dict({"posterior": {"x": x}})
    said = {
        "ess": arviz.ess(data, method="bulk"),
        "ess_tail": arviz.ess(data, method="tail", prob=(0.05, 0.95)),
        "rhat": arviz.rhat(data),
        "mcse": arviz.mcse(data, method="mean"),
    }
    return {k: float(v["x"]) for k, v in said.items()}


@pytest.fixture(scope="module")
def trace():
    tree = xarray.open_datatree(RUN / "trace.zarr", engine="zarr")
    yield tree.load()
    tree.close()


def test_arviz_says_what_the_summary_says(trace):
    summary, compared = show(), 0
    for group in ["posterior", "sample_stats"]:
        for name, variable in trace[group].dataset.data_vars.items():
            if set(variable.dims) - {"chain", "draw", "temperature"}:
                continue
            for t in range(variable.sizes.get("temperature", 1)):
                x = variable.isel(temperature=t) if "temperature" in variable.dims else variable
                # ArviZ's name for the Hamiltonian is that of our observable.
                key = "hamiltonian" if (group, name) == ("sample_stats", "energy") else name
                ours = {k: summary[f"{key}_{k}"] for k in ["ess", "ess_tail", "rhat", "mcse", "sd"]} | {"mean": summary[key]}
                ours = {k: v[t] if isinstance(v, list) else v for k, v in ours.items()}
                x = x.transpose("chain", "draw").values
                if not np.isfinite(x).all() or np.ptp(x) < 1e-15:
                    continue
                theirs = by_arviz(x) | {"mean": x.mean(), "sd": x.std(ddof=1)}
                for k, value in theirs.items():
                    kept = np.nan if ours[k] is None else ours[k]
                    if np.isfinite(value):
                        np.testing.assert_allclose(kept, value, rtol=1e-6, err_msg=f"{name} {k} at temperature {t}")
                        compared += 1
    print(f"\n{compared} numbers compared")
    assert compared > 50


def test_weights_are_those_of_the_last_draw(trace):
    load = pytest.importorskip("safetensors.numpy").load_file
    norm2 = trace["posterior"].dataset["norm2"]
    chains = norm2.sizes["chain"]
    weights = load(RUN / "weights.safetensors")
    for t in range(norm2.sizes.get("temperature", 1)):
        for c in range(chains):
            tensors = {name: w[c, t] if "temperature" in norm2.dims else w[c] for name, w in weights.items()}
            square = sum(float((w.astype(np.float64) ** 2).sum()) for w in tensors.values())
            last = norm2.isel(chain=c, draw=-1, **({"temperature": t} if "temperature" in norm2.dims else {}))
            np.testing.assert_allclose(square, float(last), rtol=1e-9)
            assert all(name[0] in "wb" for name in tensors)
