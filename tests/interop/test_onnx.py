"""Networks that PyTorch exports as ONNX files: outputs, losses and gradients of the compiled model against autograd.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_onnx.py
"""

import json
import math
import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)
nn, F = torch.nn, torch.nn.functional


def evaluate(folder, source, fails=False):
    script = folder / "s.rhai"
    script.write_text(source)
    done = subprocess.run([os.environ["ERGODIC"], "run", "--json", "--quiet", "--allow-write", str(folder), "--out", str(folder / "out"), str(script)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else json.loads(done.stdout)


class Residual(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return F.silu(x + self.layer(x))


def mlp():
    return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 5)), (6,)


def activations():
    layers = [nn.GELU(), nn.GELU(approximate="tanh"), nn.SiLU(), nn.ELU(), nn.LeakyReLU(0.1), nn.SELU(), nn.CELU(0.7), nn.Softplus(), nn.Sigmoid(), nn.Mish(),
              nn.Hardswish(), nn.Hardsigmoid(), nn.Softsign(), nn.PReLU(4), nn.ReLU6()]
    return nn.Sequential(nn.Linear(6, 4), *[nn.Sequential(f, nn.Linear(4, 4)) for f in layers], nn.Linear(4, 5)), (6,)


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(8 * 3 * 3, 20), nn.Tanh(), nn.Dropout(), nn.Linear(20, 5)), (1, 20, 20)


def resnet():
    """Frozen batch norms, strides, a global mean."""
    def block(n):
        return Residual(nn.Sequential(nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n), nn.ReLU(), nn.Conv2d(n, n, 3, padding=1), nn.BatchNorm2d(n)))
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), block(4), nn.Conv2d(4, 8, 3, stride=2, padding=1), block(8),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.running_mean, -1, 1)
            nn.init.uniform_(m.running_var, 0.5, 2)
            nn.init.uniform_(m.weight, 0.5, 2)
            nn.init.uniform_(m.bias, -1, 1)
    return net, (3, 10, 10)


def norms():
    """Group and instance norms, groups of channels, dilation, uneven windows."""
    return nn.Sequential(nn.Conv2d(4, 8, 3, groups=2, dilation=2, padding=2), nn.GroupNorm(4, 8), nn.MaxPool2d(3, 2, padding=1, ceil_mode=True),
                         nn.InstanceNorm2d(8, affine=True), nn.Conv2d(8, 8, (3, 2), padding=(1, 0), groups=8), nn.LeakyReLU(), nn.AvgPool2d(3, 2, padding=1, count_include_pad=False),
                         nn.Upsample(scale_factor=2), nn.Flatten(), nn.LayerNorm(8 * 6 * 4), nn.Linear(8 * 6 * 4, 5)), (4, 10, 9)


class Signal(nn.Module):
    """One-dimensional convolutions, padding by reflection, sums along axes."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Conv1d(2, 6, 5, stride=2), nn.Conv1d(6, 4, 3, dilation=2), nn.Linear(12, 5)

    def forward(self, x):
        x = F.relu(self.a(F.pad(x, (3, 2), mode="reflect")))
        x = self.b(x).square()
        return self.out(torch.cat([x.mean(2), x.amax(2), x.norm(dim=2)], 1))


def signal():
    return Signal(), (2, 25)


class Attention(nn.Module):
    """As nanoGPT has it: one product for queries, keys and values, a mask that is a buffer."""
    def __init__(self, width, heads, length):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.c_attn(x).split(c, 2))
        a = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
        a = F.softmax(a.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), -1)
        return self.c_proj((a @ v).transpose(1, 2).contiguous().view(b, t, c))


class Decoder(nn.Module):
    def __init__(self, words, width, length):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.ln, self.attn, self.out = nn.LayerNorm(width), Attention(width, 2, length), nn.Linear(width, words, bias=False)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x):
        h = self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device))
        h = h + self.attn(self.ln(h))
        return self.out(h + self.mlp(h))


def decoder():
    return Decoder(11, 8, 6), (6,)


class Encoder(nn.Module):
    """torch.nn.TransformerEncoderLayer, whose examples are the second axis within."""
    def __init__(self, batch_first):
        super().__init__()
        self.first = batch_first
        self.embed, self.cls = nn.Linear(3, 8), nn.Parameter(torch.randn(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=batch_first, norm_first=not batch_first)
        self.encoder, self.out = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 5)

    def forward(self, x):
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), self.embed(x)], 1)
        return self.out(self.encoder(x)[:, 0] if self.first else self.encoder(x.transpose(0, 1))[0])


def encoder():
    return Encoder(True), (7, 3)


def encoder_positions_first():
    return Encoder(False), (7, 3)


class Llama(nn.Module):
    """Root-mean-square norms, rotary positions, grouped queries, gates, products by names."""
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.norm, self.gate, self.up, self.down = nn.RMSNorm(8, eps=1e-6), nn.Linear(8, 12), nn.Linear(8, 12), nn.Linear(12, 8)
        self.out = nn.Linear(8, 5)

    def turned(self, x):
        t, d = x.shape[-2:]
        angle = torch.outer(torch.arange(t).float(), 100.0 ** (-torch.arange(0, d, 2).float() / d))
        cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x):
        b, t, _ = x.shape
        h = self.norm(x)
        q = self.turned(self.q(h).view(b, t, 4, 2).transpose(1, 2))
        k, v = self.kv(h).view(b, t, 2, 2, 2).permute(3, 0, 2, 1, 4)
        k = self.turned(k)
        k, v = (y[:, :, None].expand(b, 2, 2, t, 2).reshape(b, 4, t, 2) for y in (k, v))
        a = torch.einsum("bhid,bhjd->bhij", q, k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True) + 0.1 * torch.einsum("bhij,bhjd->bhid", a, v)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, 8))
        x = x + self.down(F.silu(self.gate(x)) * self.up(x))
        return self.out(x.mean(1))


def llama():
    return Llama(), (6, 8)


# What exporters put into other tensors, which then are no parameters: frozen batch norms go into the convolutions before them, and the table of positions,
# which is taken as a whole, into a constant.
FOLDED = {"resnet": 44, "decoder": 48}

MODELS = [mlp, activations, lenet, resnet, norms, signal, decoder, encoder, encoder_positions_first, llama]


def gradient(net, x, y):
    net.zero_grad()
    out = net(x)
    loss = F.cross_entropy(out.flatten(0, -2), y.flatten())
    loss.backward()
    return out.detach().numpy(), loss.item(), {name: p.grad.numpy() for name, p in net.named_parameters()}


# The old exporter does not know root-mean-square norms. Made for one row, it writes encoders that have lost which axis that row is.
LOST = [(llama, "torchscript"), (llama, "one row"), (encoder, "one row"), (encoder_positions_first, "one row")]
PAIRS = [(make, exporter) for make in MODELS for exporter in ("plain", "optimized", "torchscript", "one row") if (make, exporter) not in LOST]


@pytest.mark.parametrize("make,exporter", PAIRS)
def test_outputs_and_gradients(tmp_path, make, exporter):
    torch.manual_seed(3)
    net, shape = make()
    net.eval()
    with torch.no_grad():
        for p in net.parameters():
            # Of equal tensors, exporters keep one.
            p.add_(0.01 * torch.randn_like(p))
    words = isinstance(net, Decoder)
    x = torch.randint(11, (8, *shape)) if words else torch.randn(8, *shape)
    path = tmp_path / "net.onnx"
    if exporter in ("plain", "optimized"):
        torch.onnx.export(net, (x[:3],), path, dynamic_shapes=({0: torch.export.Dim("rows")},), optimize=exporter == "optimized", verbose=False)
    else:
        axes = {"x": {0: "rows"}} if exporter == "torchscript" else None
        torch.onnx.export(net, (x[:1],), path, input_names=["x"], dynamic_axes=axes, dynamo=False, opset_version=17)
    np.save(tmp_path / "x.npy", x.numpy())
    if words:
        # The label of a token is the one after it.
        last = torch.arange(8)[:, None] % 11
        np.save(tmp_path / "x.npy", torch.cat([x, last], 1).numpy())
        out, loss, theirs = gradient(net, x, torch.cat([x[:, 1:], last], 1))
        data = f'dataset::tokens("{tmp_path}/x.npy", #{{ test: 0.0, vocabulary: 11 }})'
    else:
        y = torch.arange(8) % 5
        np.save(tmp_path / "y.npy", y.numpy())
        out, loss, theirs = gradient(net, x, y)
        data = f'dataset::npy("{tmp_path}/x.npy", "{tmp_path}/y.npy", #{{ test: 0.0, scale: "none" }})'
    # Weights of norms that the old exporter has given names of its own.
    made_up = [i.name for i in onnx.load(path).graph.initializer if i.name not in theirs and i.data_type == 1 and math.prod(i.dims) == 8] if make is norms else []
    found = evaluate(tmp_path, f"""
        let net = model::onnx("{path}", #{{ parameters: {json.dumps(made_up)} }});
        let w = net.weights();
        let t = target(net, {data});
        let r = sample(t, sampler::hmc(#{{ dt: 1e-12, adapt: false, leapfrog: 1 }}), #{{ start: w, steps: 2, every: 1, burn_in: 0, chains: 1, observe: [observable::named("g", |s| s.gradient())] }});
        net.save("{tmp_path}/ours.npz", w);
        #{{ outputs: t.outputs(w, "train").to_array(), gradient: r.trace("g", 0)[0], loss: t.energies(w).loss }}
    """)
    relative = np.abs(np.reshape(found["outputs"], out.shape) - out).max() / np.abs(out).max()
    with np.load(tmp_path / "ours.npz") as f:
        sizes = {name: f[name].shape for name in f.files}
    ours, all_theirs = np.array(found["gradient"]), np.concatenate([g.ravel() for g in theirs.values()])
    named = all(name in theirs and theirs[name].shape == size for name, size in sizes.items())
    # Where the exporter has turned weights and given them other names: as sets of numbers.
    flat, ours = (np.concatenate([theirs[n].ravel() for n in sizes]), ours) if named else (np.sort(all_theirs), np.sort(ours))
    count = f"{len(ours)} parameters of {len(all_theirs)}"
    if len(ours) != len(all_theirs):
        print(f"\n{make.__name__}, {exporter}: {count}, outputs off by {relative:.1e}")
        assert exporter != "plain" and len(all_theirs) - len(ours) == FOLDED[make.__name__] and relative < 1e-5
        return
    off = np.linalg.norm(ours - flat) / np.linalg.norm(flat)
    print(f"\n{make.__name__}, {exporter}: {count}{', by name' if named else ''}, outputs off by {relative:.1e}, gradient by {off:.1e}")
    assert relative < 1e-5 and abs(found["loss"] - loss) < 1e-5 and off < 1e-4
    assert named or exporter != "plain"
