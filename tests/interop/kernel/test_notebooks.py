"""The notebooks run from top to bottom, by nbclient, as they are."""

import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "notebooks").glob("*.ipynb"))


def of(language):
    return [path for path in NOTEBOOKS if nbformat.read(path, 4).metadata.kernelspec.language == language]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_output_is_kept(path):
    book = nbformat.read(path, 4)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None


def run(path, kernel, folder):
    book = nbformat.read(path, 4)
    start = time.monotonic()
    NotebookClient(book, kernel_name=kernel, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    print(f"\n{path.name}: {time.monotonic() - start:.1f} s")
    shown = [o for c in book.cells if c.cell_type == "code" for o in c.outputs]
    kinds = {mime for o in shown for mime in o.get("data", {})}
    assert {"image/svg+xml", "text/html", "text/plain"} <= kinds
    # Nothing is said about files, failures or defects.
    assert not [o for o in shown if o.output_type == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("path", of("rhai"), ids=lambda p: p.stem)
def test_it_runs(path, tmp_path):
    run(path, "ergodic", tmp_path)


@pytest.mark.parametrize("path", of("rust"), ids=lambda p: p.stem)
def test_it_runs_in_rust(path, tmp_path, rust_kernel):
    run(path, rust_kernel, tmp_path)
