"""The library in the standard Rust kernel, evcxr_jupyter: what works there, and how long it takes.

    cargo install evcxr_jupyter --locked
    python3 tests/bench/standard_evcxr.py [--kernel EVCXR_JUPYTER] [--folder FOLDER]

Runs the cells of `ergodic docs notebooks` twice, in two sessions with one EVCXR_TMPDIR: the first compiles the library, the second finds it
compiled. Needs jupyter-client. Fails if a cell does.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from queue import Empty

ROOT = Path(__file__).resolve().parents[2]
CELLS = [
    (f':dep ergodic = {{ path = "{ROOT}", default-features = false }}\nuse ergodic::prelude::*;', None),
    ("""let data = dataset::Digits::new().build()?;
let net = model::Mlp::new([64, 8, 10]).build()?;
let target = Target::of(&net, &data).run()?;
let sgld = sampler::Sgld::new().step(1e-4).batch(100).build()?;
let run = sample(&target, &sgld).temperature(1e-3).chains(2).steps(STEPS).every(10).run()?;
run""", "text/html"),
    ("run.summary()?.thermometers[0].temperature", "text/plain"),
    ('run.plot_traces("cost")?', "image/svg+xml"),
    ("assert!(!cfg!(debug_assertions)); let again = sample(&target, &sgld).temperature(1e-3).chains(2).steps(STEPS).run()?;", None),
]


def cells_of(client, steps):
    for code, mime in CELLS:
        begin = time.monotonic()
        message = client.execute(code.replace("STEPS", str(steps)))
        shown, said, status = set(), "", None
        while status != "idle":
            try:
                got = client.get_iopub_msg(timeout=1800)
            except Empty:
                sys.exit(f"no answer to: {code}")
            if got["parent_header"].get("msg_id") != message:
                continue
            content = got["content"]
            status = content.get("execution_state", status)
            shown |= set(content.get("data", {}))
            said += content.get("text", "") + "\n".join(content.get("traceback", []))
        reply = client.get_shell_msg(timeout=60)["content"]
        if reply["status"] != "ok" or mime and mime not in shown:
            sys.exit(f"{code}\nfailed: {sorted(shown)}\n{said}")
        first = code.splitlines()[0]
        print(f"  {time.monotonic() - begin:7.1f} s  {first[:70]}{'  -> ' + mime if mime else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="evcxr_jupyter")
    parser.add_argument("--folder", help="EVCXR_TMPDIR (default: a new folder)")
    parser.add_argument("--steps", type=int, default=20000)
    arguments = parser.parse_args()
    from jupyter_client.manager import start_new_kernel

    place = Path(tempfile.mkdtemp(prefix="standard-evcxr-"))
    spec = place / "share/jupyter/kernels/rust"
    spec.mkdir(parents=True)
    start = [arguments.kernel, "--control_file", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": start, "display_name": "Rust", "language": "rust"}))
    os.environ["JUPYTER_PATH"] = str(place / "share/jupyter")
    # As the page says.
    os.environ["EVCXR_TMPDIR"] = arguments.folder or str(place / "built")
    os.environ["CARGO_PROFILE_DEV_OPT_LEVEL"] = "3"
    os.environ["CARGO_PROFILE_DEV_DEBUG_ASSERTIONS"] = "false"
    for session in ["first", "second"]:
        begin = time.monotonic()
        manager, client = start_new_kernel(kernel_name="rust", startup_timeout=120, cwd=str(place))
        print(f"{session} session: started in {time.monotonic() - begin:.1f} s", flush=True)
        cells_of(client, arguments.steps)
        client.stop_channels()
        manager.shutdown_kernel()


if __name__ == "__main__":
    main()
