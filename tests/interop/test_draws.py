"""Kept draws are what xarray opens, and the last of them are the weights that PyTorch loads.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_draws.py
"""

import os
import subprocess
import warnings

import numpy
import pytest

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")
safetensors = pytest.importorskip("safetensors.numpy")
if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)

SCRIPT = """
let t = target(model::mlp(#{ layers: [64, 6, 10] }), dataset::digits(5));
let s = sampler::sgld(#{ step: 0.001, batch: 20 });
sweep(t, s, #{ temperatures: [1e-4, 1e-3], chains: 3, steps: 400, keep: 50, name: "whole" });
sample(t, s, #{ temperature: 1e-3, chains: 2, steps: 400, keep: 100, keep_tensors: ["w2"], keep_as: "f16", name: "part" });
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draws")
    script = folder / "draws.rhai"
    script.write_text(SCRIPT)
    subprocess.run([os.environ["ERGODIC"], "run", "--quiet", "--out", str(folder / "out"), str(script)], check=True, capture_output=True)
    return folder / "out"


def opened(run, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_zarr(run / "draws.zarr", **how) as draws:
            return draws.load()


def test_dims_and_values(runs):
    draws = opened(runs / "whole")
    assert draws.w1.dims == ("chain", "draw", "temperature", "w1_dim_0", "w1_dim_1")
    assert draws.w1.shape == (3, 4, 2, 6, 64) and draws.w1.dtype == numpy.float32
    assert list(draws.step.values) == [250, 300, 350, 400] and draws.step.dims == ("draw",)
    assert "step" in draws.coords and list(draws.temperature.values) == [1e-4, 1e-3]
    assert set(draws.data_vars) == {"w1", "b1", "w2", "b2"}
    last = safetensors.load_file(runs / "whole" / "weights.safetensors")
    assert set(last) == set(draws.data_vars)
    for name, values in last.items():
        assert (draws[name].values[:, -1] == values).all(), name


def test_without_consolidated_metadata(runs):
    xarray.testing.assert_identical(opened(runs / "whole", consolidated=False), opened(runs / "whole"))


def test_a_part_in_half_precision(runs):
    draws = opened(runs / "part")
    assert set(draws.data_vars) == {"w2"} and draws.w2.dtype == numpy.float16
    assert draws.w2.dims == ("chain", "draw", "w2_dim_0", "w2_dim_1")
    last = safetensors.load_file(runs / "part" / "weights.safetensors")["w2"]
    assert (draws.w2.values[:, -1] == last.astype(numpy.float16)).all()
