"""Networks of the layers library against the same networks in PyTorch: outputs, and gradients of the compiled model.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_layers.py
"""

import json
import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)
nn = torch.nn


def evaluate(folder, source):
    script = folder / "s.rhai"
    script.write_text(source)
    done = subprocess.run([os.environ["ERGODIC"], "run", "--json", "--quiet", "--allow-write", str(folder), "--out", str(folder / "out"), str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Residual(nn.Module):
    def __init__(self, layer, shortcut=None):
        super().__init__()
        self.layer = layer
        if shortcut is not None:
            self.shortcut = shortcut

    def forward(self, x):
        return self.layer(x) + (self.shortcut(x) if hasattr(self, "shortcut") else x)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (y.reshape(n, t, self.heads, width // self.heads).transpose(1, 2) for y in self.c_attn(x).split(width, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(n, t, width))


def lenet():
    theirs = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                           nn.Linear(16 * 4 * 4, 20), nn.Tanh(), nn.Linear(20, 5))
    ours = """nn::sequential([nn::conv(1, 6, 5, #{ padding: 2 }), nn::activation("tanh"), nn::avg_pool(2), nn::conv(6, 16, 5), nn::activation("relu"), nn::max_pool(2),
        nn::flatten(), nn::linear(256, 20), nn::activation("tanh"), nn::linear(20, 5)])"""
    return theirs, ours, (1, 24, 24)


def resnet():
    def block(a, b, stride):
        conv = lambda x, y, s, k: nn.Conv2d(x, y, k, stride=s, padding=k // 2)
        layer = nn.Sequential(conv(a, b, stride, 3), nn.GroupNorm(2, b), nn.ReLU(), conv(b, b, 1, 3), nn.GroupNorm(2, b))
        return Residual(layer, conv(a, b, stride, 1) if stride > 1 else None)

    theirs = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), block(4, 4, 1), nn.SiLU(), block(4, 8, 2), nn.GELU(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(8, 5))
    ours = """{
        let block = |a, b, stride| {
            let layer = nn::sequential([nn::conv(a, b, 3, #{ stride: stride, padding: 1 }), nn::group_norm(2, b), nn::activation("relu"), nn::conv(b, b, 3, #{ padding: 1 }), nn::group_norm(2, b)]);
            nn::residual(layer, if stride > 1 { nn::conv(a, b, 1, #{ stride: stride }) } else { () })
        };
        nn::sequential([nn::conv(3, 4, 3, #{ padding: 1 }), block.call(4, 4, 1), nn::activation("silu"), block.call(4, 8, 2), nn::activation("gelu"), nn::avg_pool(4), nn::flatten(), nn::linear(8, 5)])
    }"""
    return theirs, ours, (3, 8, 8)


def transformer():
    def block(width):
        attention = nn.Sequential(nn.LayerNorm(width), Attention(width, 2))
        mlp = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 16), nn.GELU(approximate="tanh"), nn.Linear(16, width))
        return nn.Sequential(Residual(attention), Residual(mlp))

    theirs = nn.Sequential(block(8), block(8), nn.LayerNorm(8), nn.Flatten(), nn.Linear(56, 5))
    ours = """{
        let block = |width| nn::sequential([
            nn::residual(nn::sequential([nn::layer_norm(width), nn::attention(width, 2)]), ()),
            nn::residual(nn::sequential([nn::rms_norm(width), nn::linear(width, 16), nn::activation("gelu_tanh"), nn::linear(16, width)]), ()),
        ]);
        nn::sequential([block.call(8), block.call(8), nn::layer_norm(8), nn::flatten(), nn::linear(56, 5)])
    }"""
    return theirs, ours, (7, 8)


@pytest.mark.parametrize("make", [lenet, resnet, transformer])
def test_outputs_and_gradients(tmp_path, make):
    torch.manual_seed(3)
    theirs, ours, shape = make()
    torch.save(theirs.state_dict(), tmp_path / "net.pt")
    x = torch.randn(12, *shape)
    y = torch.arange(12) % 5
    loss = nn.functional.cross_entropy(theirs(x), y)
    loss.backward()
    names = [name for name, _ in theirs.named_parameters()]
    gradient = torch.cat([p.grad.flatten() for p in theirs.parameters()]).numpy()
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", y.numpy())
    found = evaluate(tmp_path, f"""
        import "layers" as nn;
        let net = nn::model({ours}, #{{ inputs: {list(shape)} }});
        let w = net.load("{tmp_path}/net.pt", #{{ transpose: [] }});
        let data = dataset::npy("{tmp_path}/x.npy", "{tmp_path}/y.npy", #{{ test: 0.0, scale: "none" }});
        let t = target(net, data);
        let r = sample(t, sampler::hmc(#{{ dt: 1e-12, adapt: false, leapfrog: 1 }}), #{{ start: w, steps: 2, every: 1, burn_in: 0, chains: 1, observe: [observable::named("g", |s| s.gradient())] }});
        #{{ outputs: t.outputs(w, "train").to_array(), gradient: r.trace("g", 0)[0], loss: t.energies(w).loss }}
    """)
    with torch.no_grad():
        np.testing.assert_allclose(np.reshape(found["outputs"], (12, 5)), theirs(x).numpy(), atol=2e-5, rtol=1e-5)
    assert abs(found["loss"] - loss.item()) < 1e-5
    off = np.linalg.norm(np.array(found["gradient"]) - gradient) / np.linalg.norm(gradient)
    print(f"\n{make.__name__}, {len(gradient)} parameters of {len(names)} tensors: gradient off by {off:.1e}")
    assert off < 1e-4


@pytest.mark.parametrize("ours, theirs", [("rms_norm", nn.RMSNorm(2)), ("layer_norm", nn.LayerNorm(2))])
def test_what_is_small_shows_the_epsilon(tmp_path, ours, theirs):
    x = torch.tensor([[1e-3, 1e-3], [1e-4, -2e-4]])
    torch.save(theirs.state_dict(), tmp_path / "net.pt")
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", np.arange(2))
    found = evaluate(tmp_path, f"""
        import "layers" as nn;
        let net = nn::model(nn::{ours}(2), #{{ inputs: [2] }});
        let data = dataset::npy("{tmp_path}/x.npy", "{tmp_path}/y.npy", #{{ test: 0.0, scale: "none" }});
        target(net, data).outputs(net.load("{tmp_path}/net.pt"), "train").to_array()
    """)
    np.testing.assert_allclose(np.reshape(found, (2, 2)), theirs(x).detach().numpy(), rtol=1e-4)


def test_statistics_of_batch_norms(tmp_path):
    """They are constants of the model, are left out by `load`, and are in the file that `save` writes like another one."""
    torch.manual_seed(5)
    theirs = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)).eval()
    for t in (theirs[1].running_mean, theirs[1].running_var, theirs[1].weight, theirs[1].bias):
        nn.init.uniform_(t, 0.5, 2)
    torch.save(theirs.state_dict(), tmp_path / "net.pt")
    x = torch.randn(5, 3, 6, 6)
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", np.arange(5))
    found = evaluate(tmp_path, f"""
        import "layers" as nn;
        let at = |name| tensor::load("{tmp_path}/net.pt", name);
        let norm = nn::batch_norm(4, #{{ mean: at.call("1.running_mean"), variance: at.call("1.running_var") }});
        let net = nn::model(nn::sequential([nn::conv(3, 4, 3, #{{ padding: 1 }}), norm, nn::activation("relu"), nn::flatten(), nn::linear(144, 5)]), #{{ inputs: [3, 6, 6] }});
        let w = net.load("{tmp_path}/net.pt", #{{ transpose: [] }});
        net.save("{tmp_path}/back.pt", w, #{{ like: "{tmp_path}/net.pt", transpose: [] }});
        let data = dataset::npy("{tmp_path}/x.npy", "{tmp_path}/y.npy", #{{ test: 0.0, scale: "none" }});
        #{{ outputs: target(net, data).outputs(w, "train").to_array() }}
    """)
    with torch.no_grad():
        np.testing.assert_allclose(np.reshape(found["outputs"], (5, 5)), theirs(x).numpy(), atol=2e-5, rtol=1e-5)
    back = torch.load(tmp_path / "back.pt")
    for name, t in theirs.state_dict().items():
        if t.is_floating_point():
            assert torch.equal(t, back[name]), name
    theirs.load_state_dict(back, strict=True)
