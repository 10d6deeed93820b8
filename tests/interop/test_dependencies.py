"""What the program is built from: the bill of materials against cargo's own account, and the rules of deny.toml."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc")
FEATURES = "parquet,mpi,evcxr"


def output(*command: str, **variables: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env={**os.environ, **variables}).stdout


def bill(target: str) -> dict:
    return json.loads(output(sys.executable, ".ci/sbom", "--features", FEATURES, "--target", target))


def allowed(expression: str, licences: set[str]) -> bool:
    """Whether an SPDX expression can be met with these licences."""
    # A plus is "or a later version", and so also that one.
    terms = re.sub(r"([\w.-]+( WITH [\w.-]+)?)\+?", lambda found: {"OR": "or", "AND": "and"}.get(found[1], str(found[1] in licences)), expression)
    return eval(terms, {"__builtins__": {}})


def test_expressions_of_licences():
    licences = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}
    for expression in ("MIT", "GPL-3.0 OR MIT", "(GPL-3.0 OR MIT) AND Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Apache-2.0+"):
        assert allowed(expression, licences), expression
    for expression in ("GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR (MIT AND MPL-2.0)", "MIT WITH LLVM-exception"):
        assert not allowed(expression, licences), expression


def test_the_bill_lists_what_cargo_builds():
    bom = bill(TARGETS[0])
    # Which asks for no more than the plan of a build: nothing is compiled.
    plan = json.loads(output("cargo", "build", "--locked", "--features", FEATURES, "--unit-graph", "-Z", "unstable-options", RUSTC_BOOTSTRAP="1"))
    wanted = set()
    for unit in plan["units"]:
        # "registry+…#name@version" or, where the folder has the crate's name, "path+…/name#version"
        folder, crate = unit["pkg_id"].rsplit("#", 1)
        name, _, version = crate.rpartition("@")
        wanted.add((name or folder.rsplit("/", 1)[1], version))
    parts = [bom["metadata"]["component"], *bom["components"]]
    assert {(part["name"], part["version"]) for part in parts} == wanted
    known = {part["bom-ref"] for part in parts}
    assert all(line["ref"] in known and known.issuperset(line["dependsOn"]) for line in bom["dependencies"])
    assert len(bom["dependencies"]) == len(parts)


@pytest.mark.parametrize("target", TARGETS)
def test_licences_and_origins_are_those_that_deny_toml_allows(target):
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    licences, banned = set(rules["licenses"]["allow"]), {ban["crate"] for ban in rules["bans"]["deny"]}
    for part in bill(target)["components"]:
        name = part["name"]
        assert name not in banned, f"{name} is banned"
        assert "licenses" in part and allowed(part["licenses"][0]["expression"], licences), part
        # Ours is beside us; cargo has checksums of what comes from the registry only.
        assert (name in {"ergodic-kernels", "ergodic-version"}) != ("hashes" in part), f"{name} is not from the registry"
