"""Made the files beside it, with PyTorch 2.15: python make.py"""

import copy
import json

import torch

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
inputs = torch.randn(5, 4)
json.dump({"inputs": inputs.tolist(), "outputs": net(inputs).tolist()}, open("outputs.json", "w"))
state = copy.deepcopy(net.state_dict())
torch.save(state, "mlp.pt")
torch.save(state, "legacy.pt", _use_new_zipfile_serialization=False)
torch.save(net, "module.pt")

# As trainers save: beside the state of an optimiser, in which there are tensors, too.
adam = torch.optim.Adam(net.parameters())
net(inputs).sum().backward()
adam.step()
torch.save({"epoch": 3, "best": 0.5, "state_dict": state, "optimizer": adam.state_dict()}, "checkpoint.pt")
torch.save({"model": state, "ema": {k: 2 * v for k, v in state.items()}}, "two.pt")

# 1 … 6 in all the ways in which tensors lie in storages.
six = torch.arange(1.0, 7.0).reshape(2, 3)
torch.save(
    {
        "double_transposed": six.T.contiguous().double().T,
        "half": six.half(),
        "bfloat16_slice": torch.arange(-6.0, 13.0).bfloat16()[7:13].reshape(2, 3),
        "every_second": torch.arange(12.0).reshape(2, 6)[:, ::2],
        "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
        "parameter": torch.nn.Parameter(six),
        "shared": six,
        "num_batches_tracked": torch.tensor(7),
        "mask": torch.ones(2, dtype=torch.bool),
        "name": "text",
        "scalar": torch.tensor(0.5),
        "empty": torch.zeros(0, 3),
    },
    "kinds.pt",
)
