"""Installs the kernels in a folder of their own, which Jupyter is told to look at: the program's, and a toy to test the protocol with."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("jupyter_client")
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(os.environ.get("DEMO_KERNEL", ROOT / "target/release/examples/demo-kernel"))
ERGODIC = Path(os.environ.get("ERGODIC", ROOT / "target/release/ergodic")).resolve()
PLACE = Path(tempfile.mkdtemp(prefix="ergodic-kernels-"))

subprocess.run([PROGRAM, "install", "--prefix", PLACE], check=True)
subprocess.run([ERGODIC, "kernel", "install", "--prefix", PLACE], check=True)
os.environ["JUPYTER_PATH"] = str(PLACE / "share/jupyter")
os.environ["XDG_STATE_HOME"] = str(PLACE / "state")
# Rust cells, where the tests of the program have compiled the library for them.
RUST = Path(os.environ.setdefault("ERGODIC_RUST_FOLDER", str(ROOT / "target/rust-cells")))


def pytest_sessionfinish():
    shutil.rmtree(PLACE, ignore_errors=True)


@pytest.fixture(scope="session")
def program():
    return PROGRAM


@pytest.fixture(scope="session")
def ergodic():
    return ERGODIC


@pytest.fixture(scope="session")
def rust_kernel():
    """The kernel of Rust cells, by name."""
    if not (RUST / "setup.json").exists():
        pytest.skip("Rust cells are not set up: feature evcxr (tests/run --all)")
    place = dict(os.environ, JUPYTER_DATA_DIR=str(PLACE / "share/jupyter"))
    subprocess.run([ERGODIC, "notebook", "setup"], check=True, env=place)
    return "ergodic-rust"
