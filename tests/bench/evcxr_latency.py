"""How long Rust cells take: the first useful one from the start of the program, and ten later ones.

    python3 tests/bench/evcxr_latency.py PROGRAM [--runs 5] [--unread 5] [--cold 1] [--folder FOLDER]

PROGRAM is built with --features evcxr. Warmed: on a folder that `PROGRAM notebook setup` has prepared (the default one, or FOLDER), new
processes each time. Unread: the same, after the system has forgotten all files that it has read (Linux, as root), as after a restart.
Cold: so many setups in an empty folder, each followed by one run. Prints a table with the machine's load.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FIRST = """let data = dataset::Digits::new().build()?;
let net = model::Mlp::new([64, 8, 10]).build()?;
let target = Target::of(&net, &data).run()?;
let sgld = sampler::Sgld::new().step(1e-4).batch(100).build()?;
let run = sample(&target, &sgld).temperature(1e-3).chains(2).steps(500).every(10).run()?;
run"""

LATER = [
    "let x = 3.0f64;",
    "x * 2.0",
    'println!("{}", run.info.name);',
    "struct Pair { a: f64, b: f64 }\nimpl Pair { fn sum(&self) -> f64 { self.a + self.b } }",
    "let pair = Pair { a: x, b: 1.0 };",
    "pair.sum()",
    "let squares: Vec<f64> = (0..10).map(|i| (i * i) as f64).collect();\nsquares.clone()",
    "let summary = run.summary()?;\nsummary.thermometers[0].temperature",
    'run.plot_traces("cost")?',
    "let again = sample(&target, &sgld).temperature(1e-3).chains(2).steps(200).every(10).run()?;\nagain.summary()?",
]

LINE = re.compile(r"^cell (\d+) of \d+ .*: [\d.]+ s$")


def notebook(path):
    def cell(i, source):
        return {"cell_type": "code", "id": f"c{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": source}

    cells = [cell(i, s) for i, s in enumerate([FIRST, *LATER])]
    metadata = {"kernelspec": {"display_name": "Rust", "language": "rust", "name": "ergodic-rust"}}
    with open(path, "w") as f:
        json.dump({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, f)


def run(program, environment):
    """Seconds of the first cell, from the start of the program, and of the later ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "latency.ipynb")
        notebook(path)
        last = time.monotonic()
        process = subprocess.Popen(
            [program, "notebook", "run", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        )
        seconds, rest = [], []
        for line in process.stderr:
            if LINE.match(line):
                now = time.monotonic()
                seconds.append(now - last)
                last = now
            else:
                rest.append(line)
        if process.wait() != 0 or len(seconds) != 1 + len(LATER):
            sys.exit("the notebook failed:\n" + "".join(rest))
    return seconds[0], seconds[1:]


def load():
    return "load " + " ".join(f"{x:.1f}" for x in os.getloadavg())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--unread", type=int, default=0)
    parser.add_argument("--cold", type=int, default=0)
    parser.add_argument("--folder")
    given = parser.parse_args()
    environment = dict(os.environ)
    if given.folder:
        environment["ERGODIC_RUST_FOLDER"] = os.path.abspath(given.folder)
    print("| | first cell, s | later cells: median, largest, s | |\n|---|---|---|---|")
    for k in range(given.cold):
        folder = tempfile.mkdtemp(prefix="ergodic-rust-")
        cold = environment | {"ERGODIC_RUST_FOLDER": folder}
        begin = time.monotonic()
        subprocess.run([given.program, "notebook", "setup", "--yes", "--no-kernel"], check=True, env=cold, stdout=subprocess.DEVNULL)
        setup = time.monotonic() - begin
        first, later = run(given.program, cold)
        print(f"| cold {k + 1} | {setup:.0f} (setup) + {first:.1f} | {statistics.median(later):.2f}, {max(later):.2f} | {load()} |", flush=True)
        shutil.rmtree(folder)
    for kind, count in [("unread", given.unread), ("warmed", given.runs)]:
        firsts, all_later = [], []
        for k in range(count):
            if kind == "unread":
                os.sync()
                with open("/proc/sys/vm/drop_caches", "w") as f:
                    f.write("3")
            first, later = run(given.program, environment)
            firsts.append(first)
            all_later += later
            print(f"| {kind} {k + 1} | {first:.1f} | {statistics.median(later):.2f}, {max(later):.2f} | {load()} |", flush=True)
        if firsts:
            print(f"| **{kind}, median** | {statistics.median(firsts):.1f} | {statistics.median(all_later):.2f}, {max(all_later):.2f} | |")


if __name__ == "__main__":
    main()
