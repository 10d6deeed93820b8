"""What `ergodic` stores is what the Python world opens.

Run with the folder of a finished run:

    ERGODIC_RUN=runs/my-run pytest -s tests/interop/test_store.py
"""

import os
import warnings
from pathlib import Path

import pytest

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")

GROUPS = ["posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"]


@pytest.fixture(scope="module")
def run() -> Path:
    folder = os.environ.get("ERGODIC_RUN")
    if not folder:
        pytest.skip("ERGODIC_RUN is not set: name the folder of a finished run")
    folder = Path(folder)
    assert (folder / "trace.zarr").is_dir(), f"there is no trace.zarr in {folder}"
    return folder


@pytest.fixture(scope="module")
def trace(run):
    """The trace, read as a whole; any warning is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xarray.open_datatree(run / "trace.zarr", engine="zarr")
        tree.load()
    yield tree
    tree.close()


def groups(trace):
    return {name: trace[name].dataset for name in GROUPS if name in trace.children}


def test_groups(trace):
    assert {"posterior", "sample_stats"} <= set(trace.children)
    assert set(trace.children) <= set(GROUPS)


def test_dims(trace):
    for name, dataset in groups(trace).items():
        for variable in dataset.data_vars.values():
            assert variable.dims[:2] == ("chain", "draw"), f"{name}/{variable.name}: {variable.dims}"
        if "temperature" in dataset.dims:
            assert any("temperature" in v.dims for v in dataset.data_vars.values()), name
    posterior = trace["posterior"].dataset
    assert posterior.sizes["chain"] > 0 and posterior.sizes["draw"] > 0
    assert posterior.sizes["chain"] == trace["sample_stats"].dataset.sizes["chain"]


def test_coordinates(trace):
    for name, dataset in groups(trace).items():
        assert {"chain", "draw"} <= set(dataset.coords), f"{name} lacks coordinates"
        for coordinate in dataset.coords.values():
            assert not coordinate.isnull().any(), f"{name}/{coordinate.name} has NaN"
            index = coordinate.to_index()
            assert index.is_unique, f"{name}/{coordinate.name} repeats a value"


def test_without_consolidated_metadata(run, trace):
    """The metadata in the root says the same as that of each group and array."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xarray.open_datatree(run / "trace.zarr", engine="zarr", consolidated=False)
    xarray.testing.assert_identical(tree.load(), trace)
    tree.close()


def test_summary(trace):
    with warnings.catch_warnings():
        # ArviZ 0.x announces its successor on import.
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
    # ArviZ 0.x does not take a tree.
    old = arviz.__version__.startswith("0.")
    summary = arviz.summary(trace["posterior"].to_dataset() if old else trace)
    print(f"\n{summary}")
    assert len(summary) >= len(trace["posterior"].dataset.data_vars)
