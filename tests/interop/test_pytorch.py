"""State dicts of PyTorch load, what is saved loads in PyTorch, and networks agree on both sides.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_pytorch.py
"""

import collections
import json
import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set: name the program", allow_module_level=True)


def evaluate(folder, source):
    """The value of a script, run in a folder."""
    (folder / "script.rhai").write_text(source)
    command = [os.path.abspath(os.environ["ERGODIC"]), "run", "--json", "--quiet", "--allow-write", ".", "--out", "out", "script.rhai"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=folder).stdout)


def network(*widths):
    layers = [torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
    activations = [torch.nn.Tanh() for _ in layers[1:]] + [torch.nn.Identity()]
    return torch.nn.Sequential(*[f for pair in zip(layers, activations) for f in pair][:-1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("widths", [(5, 7, 3), (4, 4, 4, 4), (3, 40, 40, 1), (2,) + 12 * (3,)])
def test_outputs_and_weights_agree_there_and_back(tmp_path, widths, dtype):
    torch.manual_seed(1)
    net = network(*widths).to(dtype)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    net = net.to(torch.float32)
    inputs = torch.randn(20, widths[0])
    found = evaluate(tmp_path, f"""
        let net = model::mlp(#{{ layers: {list(widths)}, activation: "tanh" }});
        let w = net.load("net.pt");
        let shifted = parameters(w.vector(0) * 2.0);
        net.save("{tmp_path}/shifted.pt", shifted, #{{ like: "net.pt" }});
        net.outputs(w, tensor({inputs.tolist()})).to_array()
    """)
    with torch.no_grad():
        expected = net(inputs).numpy()
    print(f"\n{widths}, {dtype}: largest difference {np.abs(np.array(found) - expected).max():.1e}")
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    for mapped in [False, True]:
        back = torch.load(tmp_path / "shifted.pt", weights_only=True, mmap=mapped)
        assert isinstance(back, collections.OrderedDict)
        assert list(back) == list(net.state_dict())
        for name, value in net.state_dict().items():
            torch.testing.assert_close(back[name], 2 * value, atol=0, rtol=0)
    network(*widths).load_state_dict(back)


def test_a_model_that_multiplies_the_other_way_round(tmp_path):
    torch.manual_seed(2)
    net = network(4, 4, 2)
    torch.save({"epoch": 1, "model": {f"module.{k}": v for k, v in net.state_dict().items()}}, tmp_path / "net.pth")
    inputs = torch.randn(6, 4)
    options = """#{ transpose: true, rename: #{ "module.0.weight": "a", "module.0.bias": "x", "module.2.weight": "b", "module.2.bias": "y" } }"""
    found = evaluate(tmp_path, f"""
        let net = model::custom(#{{ inputs: 4, params: #{{ a: [4, 4], x: [4], b: [4, 2], y: [2] }},
            forward: |p, i| (i.matmul(p.a) + p.x).tanh().matmul(p.b) + p.y }});
        let w = net.load("net.pth", {options});
        net.save("{tmp_path}/back.pth", w, {options});
        net.outputs(w, tensor({inputs.tolist()})).to_array()
    """)
    back = torch.load(tmp_path / "back.pth", weights_only=True)
    net.load_state_dict({k.removeprefix("module."): v for k, v in back.items()})
    with torch.no_grad():
        np.testing.assert_allclose(found, net(inputs).numpy(), atol=1e-5, rtol=0)


def test_kinds_of_files(tmp_path):
    """What PyTorch writes in other ways is read, or it is said what it is."""
    net = network(3, 2)
    state = net.state_dict()
    torch.save(state, tmp_path / "fine.pt")
    torch.serialization.set_crc32_options(False)
    torch.save(state, tmp_path / "no-checksums.pt")
    torch.serialization.set_crc32_options(True)
    torch.save(state, tmp_path / "protocol-4.pt", pickle_protocol=4)
    torch.save(state, tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(net, tmp_path / "module.pt")
    torch.save(list(state.values()), tmp_path / "list.pt")
    torch.save(net[0].weight, tmp_path / "tensor.pt")
    torch.save({"0.weight": state["0.weight"].to_sparse(), "0.bias": state["0.bias"]}, tmp_path / "sparse.pt")
    torch.jit.script(net).save(tmp_path / "script.pt")
    with open(tmp_path / "numpy.npz", "wb") as f:
        np.savez_compressed(f, **{k: v.numpy().astype(np.float16) for k, v in state.items()})
    said = evaluate(tmp_path, """
        let net = model::mlp(#{ layers: [3, 2] });
        let said = #{};
        for name in ["fine.pt", "no-checksums.pt", "protocol-4.pt", "legacy.pt", "module.pt", "list.pt", "tensor.pt", "sparse.pt", "script.pt", "numpy.npz"] {
            try { net.load(name); said[name] = ""; } catch (e) { said[name] = `${e}`; }
        }
        said
    """)
    expected = {
        "fine.pt": "",
        "no-checksums.pt": "set_crc32_options",
        "protocol-4.pt": "without pickle_protocol",
        "legacy.pt": "before 1.6",
        "module.pt": "code is not run",
        "list.pt": "no tensors by name",
        "tensor.pt": "a tensor without a name",
        "sparse.pt": "to_dense()",
        "script.pt": "TorchScript",
        "numpy.npz": "",
    }
    for name, words in expected.items():
        print(f"{name}: {said[name]}")
        assert words in said[name] and bool(words) == bool(said[name]), (name, said[name])
