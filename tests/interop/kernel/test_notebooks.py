"""The notebooks run from top to bottom, by nbclient, as they are, and show what they are shipped with: other numbers perhaps, in the same shape."""

import shutil
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from ship import shape, shown

FOLDER = Path(__file__).resolve().parents[3] / "notebooks"
NOTEBOOKS = sorted(path for path in FOLDER.glob("*.ipynb") if not path.name.endswith(".run.ipynb"))


def of(language):
    return [path for path in NOTEBOOKS if nbformat.read(path, 4).metadata.kernelspec.language == language]


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_is_shipped_with_outputs(path):
    book = nbformat.read(path, 4)
    nbformat.validate(book)
    assert [cell.execution_count for cell in code(book)] == list(range(1, len(code(book)) + 1))
    for cell in code(book):
        # What ship.py writes: no bars of progress, figures once.
        assert shown(cell.outputs) == cell.outputs
    kinds = {mime for cell in code(book) for o in cell.outputs for mime in o.get("data", {})}
    assert {"image/svg+xml", "text/html", "text/plain"} <= kinds


def run(path, kernel, folder):
    shutil.copytree(FOLDER / "data", folder / "data")
    book = nbformat.read(path, 4)
    shipped = [cell.outputs for cell in code(book)]
    start = time.monotonic()
    NotebookClient(book, kernel_name=kernel, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    print(f"\n{path.name}: {time.monotonic() - start:.1f} s")
    for cell, before in zip(code(book), shipped, strict=True):
        # Nothing is said about files, failures or defects.
        assert not [o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"]
        assert shape(shown(cell.outputs)) == shape(before), cell.source


@pytest.mark.parametrize("path", of("rhai"), ids=lambda p: p.stem)
def test_it_runs(path, tmp_path):
    run(path, "ergodic", tmp_path)


@pytest.mark.parametrize("path", of("rust"), ids=lambda p: p.stem)
def test_it_runs_in_rust(path, tmp_path, rust_kernel):
    run(path, rust_kernel, tmp_path)
