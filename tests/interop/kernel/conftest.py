"""Installs the demo kernel in a folder of its own, which Jupyter is told to look at."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("DEMO_KERNEL", ROOT / "target/debug/demo-kernel"))
PLACE = Path(tempfile.mkdtemp(prefix="demo-kernel-"))

subprocess.run([PROGRAM, "install", "--prefix", PLACE], check=True)
os.environ["JUPYTER_PATH"] = str(PLACE / "share/jupyter")


def pytest_sessionfinish():
    shutil.rmtree(PLACE, ignore_errors=True)


@pytest.fixture(scope="session")
def program():
    return PROGRAM
