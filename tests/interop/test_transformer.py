"""Weights from PyTorch load by name, and the logits agree with those of a PyTorch model of the same shape.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_transformer.py
"""

import json
import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
save_file, load_file = safetensors.save_file, safetensors.load_file

if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set: name the program", allow_module_level=True)


class Attention(torch.nn.Module):
    """Heads whose keys and queries see learned positions, and whose values do not."""

    def __init__(self, width, heads, head_width, bias):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (torch.nn.Linear(width, heads * head_width, bias=bias) for _ in range(3))
        self.out = torch.nn.Linear(heads * head_width, width, bias=bias)

    def forward(self, x, position):
        rows, context, _ = x.shape
        q, k, v = (
            f(y).view(rows, context, self.heads, -1).transpose(1, 2)
            for f, y in [(self.query, x + position), (self.key, x + position), (self.value, x)]
        )
        read = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(read.transpose(1, 2).reshape(rows, context, -1))


class Transformer(torch.nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads, head_width, layer_norm, bias):
        super().__init__()
        norm = (lambda: torch.nn.LayerNorm(width)) if layer_norm else torch.nn.Identity
        self.embed = torch.nn.Embedding(vocabulary, width)
        self.position = torch.nn.Embedding(context, width)
        self.norms = torch.nn.ModuleList(norm() for _ in range(layers))
        self.blocks = torch.nn.ModuleList(Attention(width, heads, head_width, bias) for _ in range(layers))
        self.final_norm = norm()
        self.unembed = torch.nn.Linear(width, vocabulary, bias=bias)

    def forward(self, tokens):
        x = self.embed(tokens)
        for norm, block in zip(self.norms, self.blocks):
            x = x + block(norm(x), self.position.weight)
        return self.unembed(self.final_norm(x))

    def tensors(self):
        """The parameters under the names, and in the shapes, that `model::transformer` documents."""
        heads = lambda w: w.view(self.blocks[0].heads, -1, *w.shape[1:])
        out = {"embed": self.embed.weight, "position": self.position.weight, "unembed": self.unembed.weight}
        if self.unembed.bias is not None:
            out["unembed_bias"] = self.unembed.bias
        norms = {"final_norm": self.final_norm}
        for i, (norm, block) in enumerate(zip(self.norms, self.blocks), start=1):
            norms[f"block{i}.norm"] = norm
            for name in ["query", "key", "value"]:
                out[f"block{i}.attn.{name}"] = heads(getattr(block, name).weight)
            out[f"block{i}.attn.out"] = heads(block.out.weight.T)
            if block.out.bias is not None:
                for name in ["query", "key", "value"]:
                    out[f"block{i}.attn.{name}_bias"] = heads(getattr(block, name).bias)
                out[f"block{i}.attn.out_bias"] = block.out.bias
        for name, norm in norms.items():
            out |= {f"{name}.{k}": p for k, p in norm.named_parameters()}
        return {k: v.detach().contiguous().clone() for k, v in out.items()}

    def load_tensors(self, tensors):
        """The other way round: parameters from what `tensors` returns."""
        with torch.no_grad():
            flat = lambda w, like: w.reshape(like.shape)
            self.embed.weight.copy_(tensors["embed"])
            self.position.weight.copy_(tensors["position"])
            self.unembed.weight.copy_(tensors["unembed"])
            if self.unembed.bias is not None:
                self.unembed.bias.copy_(tensors["unembed_bias"])
            norms = {"final_norm": self.final_norm}
            for i, (norm, block) in enumerate(zip(self.norms, self.blocks), start=1):
                norms[f"block{i}.norm"] = norm
                for name in ["query", "key", "value"]:
                    linear = getattr(block, name)
                    linear.weight.copy_(flat(tensors[f"block{i}.attn.{name}"], linear.weight))
                    if linear.bias is not None:
                        linear.bias.copy_(flat(tensors[f"block{i}.attn.{name}_bias"], linear.bias))
                block.out.weight.copy_(flat(tensors[f"block{i}.attn.out"], block.out.weight.T).T)
                if block.out.bias is not None:
                    block.out.bias.copy_(tensors[f"block{i}.attn.out_bias"])
            for name, norm in norms.items():
                for k, p in norm.named_parameters():
                    p.copy_(tensors[f"{name}.{k}"])


def rhai(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


SHAPES = {
    "small": dict(vocabulary=23, context=17, layers=2, width=32, heads=4, head_width=8, layer_norm=True, bias=False),
    "without norms": dict(vocabulary=23, context=17, layers=2, width=32, heads=4, head_width=12, layer_norm=False, bias=False),
    "biases": dict(vocabulary=11, context=9, layers=3, width=24, heads=3, head_width=8, layer_norm=True, bias=True),
    "one token": dict(vocabulary=5, context=1, layers=1, width=8, heads=1, head_width=8, layer_norm=True, bias=True),
    "the paper's, shorter": dict(vocabulary=300, context=150, layers=4, width=256, heads=8, head_width=32, layer_norm=True, bias=False),
}


@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_those_of_pytorch(name, tmp_path):
    shape, rows = SHAPES[name], 3
    generator = torch.Generator().manual_seed(1)
    model = Transformer(**shape).eval()
    with torch.no_grad():
        for p in model.parameters():
            # Off their initial values, norms and biases too.
            p += (0.1 if p.dim() == 1 else 0.02) * torch.randn(p.shape, generator=generator)
    tokens = torch.randint(shape["vocabulary"], (rows, shape["context"] + 1), generator=generator)
    save_file(model.tensors(), tmp_path / "weights.safetensors")
    save_file({"tokens": tokens.int()}, tmp_path / "tokens.safetensors")
    options = ", ".join(f"{k}: {rhai(v)}" for k, v in shape.items())
    (tmp_path / "logits.rhai").write_text(f"""
        let data = dataset::tokens("{tmp_path}/tokens.safetensors", #{{ vocabulary: {shape["vocabulary"]}, test: 0 }});
        let net = model::transformer(#{{ {options} }});
        let target = target(net, data);
        let at = net.load("{tmp_path}/weights.safetensors");
        #{{ logits: target.outputs(at, "train").to_array(), loss: target.energies(at).loss }}
    """)
    command = [os.environ["ERGODIC"], "run", "--json", "--out", tmp_path / "out", tmp_path / "logits.rhai"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    with torch.no_grad():
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    ours = np.array(said["logits"]).reshape(logits.shape)
    print(f"\n{name}: largest logit {logits.abs().max():.2f}, largest difference {np.abs(ours - logits.numpy()).max():.1e}")
    np.testing.assert_allclose(ours, logits.numpy(), atol=1e-4, rtol=0)
    np.testing.assert_allclose(said["loss"], loss.item(), rtol=1e-5)


def test_adamw_is_that_of_pytorch(tmp_path):
    """Five steps over all rows, from the weights and tokens that our program wrote; the weight decay is large enough to be seen."""
    shape = dict(vocabulary=13, context=8, layers=2, width=16, heads=2, head_width=8, layer_norm=True, bias=True)
    tokens = torch.randint(shape["vocabulary"], (6, shape["context"] + 1), generator=torch.Generator().manual_seed(2))
    save_file({"tokens": tokens.int()}, tmp_path / "tokens.safetensors")
    options = ", ".join(f"{k}: {rhai(v)}" for k, v in shape.items())
    (tmp_path / "train.rhai").write_text(f"""
        let data = dataset::tokens("{tmp_path}/tokens.safetensors", #{{ vocabulary: {shape["vocabulary"]}, test: 0 }});
        let u = target(model::transformer(#{{ {options} }}), data);
        train(u, optimizer::adamw(#{{ lr: 0.01, weight_decay: 0.5, epochs: 5, batch: 6 }}), #{{ checkpoints: [0, 5], name: "t" }}).history("loss")
    """)
    command = [os.environ["ERGODIC"], "run", "--json", "--out", tmp_path / "out", tmp_path / "train.rhai"]
    losses = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    (folder,) = (tmp_path / "out").rglob("weights")
    model = Transformer(**shape)
    start, end = (load_file(folder / f"chain-0-epoch-{epoch}.safetensors") for epoch in [0, 5])
    model.load_tensors(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.5)
    theirs = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    np.testing.assert_allclose(losses, theirs, rtol=1e-4)
    for name, tensor in model.tensors().items():
        moved = (end[name] - start[name]).abs().max().item()
        # Adam divides by the root of gradients that may be tiny, keys' biases above all: compare with how far a tensor moved.
        worst = (end[name] - tensor).abs().max().item()
        if not name.endswith("key_bias"):
            assert worst < 0.01 * moved, (name, worst, moved)
