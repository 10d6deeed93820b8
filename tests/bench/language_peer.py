#!/usr/bin/env python3
"""Learning coefficients of one pretrained language model by devinterp and by our program: estimates, seconds, peak memory.

    language_peer.py                          a GPT-2 of 3 layers, width 64, trained for some hundred steps on the texts of this repository
    language_peer.py --folder pythia-14m      another folder of save_pretrained; --tokens rows.npy: another text, [rows, context + 1]
    language_peer.py --head 1.2               the weight-restricted coefficient of head 2 of layer 1, counted from 0, of a GPT-2

Same weights, same tokens, same hyperparameters: step size = lr, n beta = nbeta, gamma = localization (the conventions are those of llc_peers.py, whose
self test checks them), minibatches of --batch rows drawn with replacement, --chains chains of --steps steps, of which the first half is burn-in, on
--threads threads: the library runs one chain after the other, each product on all threads; ours deals chains to threads. L(w0) is the loss over all
rows for both. Each runs in a process of its own, so that the peak memory is its. Ours is `target/release/ergodic`, or what the variable ERGODIC names.
Error bars: ours from the effective sample size; the library's from the scatter of its chains.

Needs torch, transformers, tokenizers, devinterp (requirements.txt). The result is one JSON object on stdout, with "apart", the difference of the estimates in
standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("TQDM_DISABLE", "1")
warnings.simplefilter("ignore")
ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 64


def make(folder: Path, steps: int) -> None:
    """A GPT-2 trained on the texts of this repository, and these as rows of tokens of the tokenizer of the tests."""
    import numpy as np
    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = Tokenizer.from_file(str(ROOT / "tests/data/pretrained/tokenizer.json"))
    text = "\n".join(p.read_text() for p in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "LICENSE-APACHE"]))
    ids = torch.tensor(tokenizer.encode(text).ids)
    rows = ids[: len(ids) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1)
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=320, n_positions=CONTEXT, n_embd=64, n_layer=3, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None)
    net = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for _ in range(steps):
        batch = rows[torch.randint(len(rows), (32,))]
        scores = net(batch[:, :-1]).logits
        torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    net.save_pretrained(folder)
    np.save(folder / "rows.npy", rows.numpy().astype("int32"))


def peak(who: int) -> int:
    most = resource.getrusage(who).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def theirs(o: argparse.Namespace) -> dict[str, Any]:
    import numpy as np
    import torch
    from devinterp.optim.sgmcmc import SGMCMC
    from devinterp.slt.sampler import estimate_learning_coeff_with_summary
    from torch.utils.data import DataLoader, RandomSampler, TensorDataset
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(o.threads)
    net = AutoModelForCausalLM.from_pretrained(o.folder, dtype=torch.float32).eval()
    rows = torch.from_numpy(np.load(o.tokens).astype("int64"))

    def loss(model, data):
        (x,) = data
        return torch.nn.functional.cross_entropy(model(x[:, :-1]).logits.flatten(0, 1), x[:, 1:].flatten())

    with torch.no_grad():
        full = sum(loss(net, (part,)).double().item() * len(part) for part in rows.split(64)) / len(rows)
    for m in net.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0  # the library switches it on
    masks = None
    if o.head:
        layer, head = map(int, o.head.split("."))
        width, size = net.config.n_embd, net.config.n_embd // net.config.n_head
        masks = {name: torch.zeros_like(p, dtype=torch.bool) for name, p in net.named_parameters()}
        attention = f"transformer.h.{layer}.attn"
        for start in (head * size + k * width for k in range(3)):
            masks[f"{attention}.c_attn.weight"][:, start : start + size] = True
            masks[f"{attention}.c_attn.bias"][start : start + size] = True
        masks[f"{attention}.c_proj.weight"][head * size : (head + 1) * size] = True
    # Minibatches as ours are, so that their noise is the same: of rows drawn with replacement, not epoch by epoch.
    draws = RandomSampler(TensorDataset(rows), replacement=True, num_samples=2 * o.steps * o.batch)
    loader = DataLoader(TensorDataset(rows), batch_size=o.batch, sampler=draws)
    begin = time.perf_counter()
    found = estimate_learning_coeff_with_summary(
        net, loader, evaluate=loss, sampling_method=SGMCMC.sgld, optimizer_kwargs={"lr": o.step, "nbeta": o.nbeta, "localization": o.gamma},
        num_chains=o.chains, num_draws=o.steps // 2, num_burnin_steps=o.steps - o.steps // 2, init_loss=full, seed=o.seed, verbose=False,
        optimize_over_per_model_param=masks,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    each = [float(found[f"llc-chain/{k}"]) for k in range(o.chains)]
    mean = sum(each) / len(each)
    spread = math.sqrt(sum((x - mean) ** 2 for x in each) / (len(each) - 1) / len(each)) if len(each) > 1 else math.nan
    return {"estimate": mean, "mcse": spread, "chains": each, "loss": full, "seconds": seconds, "peak_bytes": peak(resource.RUSAGE_SELF)}


def ours(o: argparse.Namespace) -> dict[str, Any]:
    """The numbers of `ergodic run`; its seconds are those of the estimate, as theirs."""
    part = ', restrict: "transformer.h.{}.attn.head{}"'.format(*o.head.split(".")) if o.head else ""
    source = f"""
        let rows = dataset::tokens("{o.tokens}", #{{ test: 0.0, vocabulary: param("vocabulary", 320) }});
        let net = model::pretrained("{o.folder}", #{{ context: rows.dim }});
        let w = net.weights();
        let u = target(net, rows);
        let begin = timestamp();
        let e = llc(u, sampler::sgld(#{{ batch: {o.batch}, step: {o.step} }}), #{{ start: w, nbeta: {o.nbeta}, gamma: {o.gamma}, chains: {o.chains}, steps: {o.steps}, baseline: "full", seed: {o.seed}{part} }});
        #{{ estimate: e.estimate, mcse: e.mcse, chains: e.chains, loss: u.energies(w).loss, virial: e.virial, seconds: begin.elapsed, parameters: net.parameters }}
    """
    vocabulary = json.loads((Path(o.folder) / "config.json").read_text())["vocab_size"]
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch) / "llc.rhai"
        script.write_text(source)
        program = os.environ.get("ERGODIC", str(ROOT / "target/release/ergodic"))
        command = [program, "run", "--json", "--quiet", "--threads", str(o.threads), "--set", f"vocabulary={vocabulary}", "--out", f"{scratch}/out", str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout) | {"peak_bytes": peak(resource.RUSAGE_CHILDREN)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="of save_pretrained; else one is made")
    parser.add_argument("--tokens", help=".npy of rows of context + 1 tokens; needed with --folder")
    parser.add_argument("--training", type=int, default=400, help="steps of the training of the one that is made")
    parser.add_argument("--head", help="LAYER.HEAD of a GPT-2: what moves; else all")
    parser.add_argument("--step", type=float, default=3e-5, help="lr")
    parser.add_argument("--gamma", type=float, default=300.0)
    parser.add_argument("--nbeta", type=float, default=200.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1000, help="with burn-in, half of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.only:
        print(json.dumps(ours(o) if o.only == "ours" else theirs(o)))
        return
    if bool(o.folder) != bool(o.tokens):
        parser.error("--folder and --tokens go together")
    with tempfile.TemporaryDirectory() as made:
        if o.folder is None:
            make(Path(made), o.training)
            o.folder, o.tokens = made, f"{made}/rows.npy"
        report = {k: v for k, v in vars(o).items() if k not in ("only", "folder", "tokens")}
        given = [f"--{k}={v}" for k, v in vars(o).items() if k not in ("only", "training") and v is not None]
        for side in ("ours", "theirs"):
            done = subprocess.run([sys.executable, __file__, *given, "--only", side], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            report[side] = json.loads(done.stdout.splitlines()[-1])
    a, b = report["ours"], report["theirs"]
    report["apart"] = (a["estimate"] - b["estimate"]) / math.hypot(a["mcse"], b["mcse"])
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
