#!/usr/bin/env python3
"""Runs notebooks of the repository and keeps their outputs in them, as a code host shows them.

    tests/interop/kernel/ship.py [NAME…]

NAME is the beginning of a file's name, as 03; without one, all are run. The program is $ERGODIC, or target/release/ergodic;
Rust cells need the feature evcxr and `ergodic notebook setup`. Needs nothing but Python.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
FIGURE = "image/svg+xml"


def joined(text):
    return text if isinstance(text, str) else "".join(text or [])


def shown(outputs):
    """The outputs that are kept: no bars of progress, and figures as SVG and text only, not as HTML too."""
    kept = []
    for output in outputs:
        data = output.get("data", {})
        html = joined(data.get("text/html"))
        if 'class="ergodic-progress"' in html:
            continue
        drawing = re.search(r"<svg.*</svg>", html, re.DOTALL)
        if drawing and FIGURE not in data:
            # A figure of plotters; code hosts take drawings out of HTML.
            data = data | {FIGURE: drawing[0]}
        if FIGURE in data:
            data = {kind: value for kind, value in data.items() if kind != "text/html"}
            output = dict(output, data=data)
        kept.append(output)
    return kept


def shape(outputs):
    """What two runs of a cell have in common: the kinds of what it shows, of tables the headers and the number of rows, of figures the panels."""
    found = []
    for before, output in zip([{}, *outputs], outputs):
        # What a cell prints may come in one piece or several, as its time has it.
        if output.get("name") and output.get("name") == before.get("name"):
            continue
        data = output.get("data", {})
        html = joined(data.get("text/html"))
        found.append({
            "output": output["output_type"],
            "stream": output.get("name"),
            "kinds": sorted(data),
            "header": re.findall(r"<th [^>]*>(.*?)</th>", html),
            "rows": html.count("<tr>"),
            "figures": joined(data.get(FIGURE)).count("<svg"),
        })
    return found


def ship(path, program):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copytree(NOTEBOOKS / "data", folder / "data")
        shutil.copy(path, folder)
        subprocess.run([program, "notebook", "run", "--in-place", folder / path.name], check=True)
        done = json.loads((folder / path.name).read_text())
    book = json.loads(path.read_text())
    count = 0
    for cell, ran in zip(book["cells"], done["cells"], strict=True):
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = shown(ran["outputs"])
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = count
                if FIGURE in output.get("data", {}):
                    output["data"][FIGURE] = joined(output["data"][FIGURE]).splitlines(True)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    names = sys.argv[1:] or [""]
    program = Path(os.environ.get("ERGODIC", ROOT / "target/release/ergodic")).resolve()
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if any(path.name.startswith(name) for name in names):
            ship(path, program)
