"""The kernel as VS Code's Jupyter extension drives it: by its client library, @jupyterlab/services, over ZeroMQ, in Node; no editor runs.

The questions are in tests/interop/vscode/kernel.test.js.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PLACE

DRIVER = Path(__file__).resolve().parents[1] / "vscode"


def test_the_client_library_of_vs_code(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node in the PATH (Debian: nodejs)")
    if not (DRIVER / "node_modules").exists():
        pytest.skip("no packages of npm in tests/interop/vscode (tests/run --all)")
    env = os.environ | {"KERNELS": str(PLACE / "share/jupyter/kernels"), "FOLDER": str(tmp_path)}
    command = [node, "--test-reporter=spec", "kernel.test.js"]
    done = subprocess.run(command, cwd=DRIVER, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
