"""Language models of the Python package transformers, saved by save_pretrained: outputs, losses and gradients of the compiled model against autograd.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_pretrained.py
"""

import json
import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)
WORDS, CONTEXT, ROWS = 23, 12, 5


def evaluate(folder, source, fails=False):
    script = folder / "s.rhai"
    script.write_text(source)
    done = subprocess.run([os.environ["ERGODIC"], "run", "--json", "--quiet", "--force", "--allow-write", str(folder), "--out", str(folder / "out"), str(script)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else json.loads(done.stdout)


def gpt2(**given):
    sizes = dict(n_embd=12, n_layer=2, n_head=3, n_positions=16, bos_token_id=None, eos_token_id=None)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=WORDS, **(sizes | given)))


def of(config, model, **given):
    sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=20, max_position_embeddings=32,
                 bos_token_id=None, eos_token_id=None, pad_token_id=None)
    return model(config(vocab_size=WORDS, **(sizes | given)))


def neox(**given):
    return of(transformers.GPTNeoXConfig, transformers.GPTNeoXForCausalLM, **(dict(hidden_size=32) | given))


def llama(**given):
    return of(transformers.LlamaConfig, transformers.LlamaForCausalLM, **given)


def mistral(**given):
    return of(transformers.MistralConfig, transformers.MistralForCausalLM, **(dict(num_key_value_heads=2) | given))


def qwen2(**given):
    return of(transformers.Qwen2Config, transformers.Qwen2ForCausalLM, **(dict(num_key_value_heads=2) | given))


LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
MODELS = {
    "gpt2": lambda: gpt2(),
    "gpt2, untied": lambda: gpt2(tie_word_embeddings=False, n_inner=10, activation_function="relu", layer_norm_epsilon=1e-3),
    "gpt2, other scales": lambda: gpt2(scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True, activation_function="gelu_pytorch_tanh"),
    "gpt_neox": lambda: neox(),
    "gpt_neox, one after the other": lambda: neox(use_parallel_residual=False, rotary_pct=1.0, hidden_act="gelu_fast", tie_word_embeddings=True),
    "gpt_neox, no biases": lambda: neox(attention_bias=False, rotary_pct=0.5, rotary_emb_base=100, hidden_act="gelu_new"),
    "llama": lambda: llama(),
    "llama, grouped queries, tied": lambda: llama(num_key_value_heads=2, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=6),
    "llama, one key for all": lambda: llama(num_key_value_heads=1, rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=100.0)),
    "llama 3": lambda: llama(num_key_value_heads=2, rope_parameters=LLAMA3),
    "mistral": lambda: mistral(sliding_window=CONTEXT),
    "qwen2": lambda: qwen2(),
    "qwen2, tied": lambda: qwen2(tie_word_embeddings=True, rms_norm_eps=1e-5, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
}


def made(name):
    torch.manual_seed(5)
    net = MODELS[name]().eval()
    with torch.no_grad():
        for p in net.parameters():
            # Norms and biases begin as ones and zeros, which would hide them.
            p.add_(0.1 * torch.randn_like(p))
    return net


def parameters(net):
    """With the names that files have: transformers 5 renames the head of GPT-NeoX when it reads one."""
    neox = net.config.model_type == "gpt_neox"
    return [("embed_out.weight" if neox and name == "lm_head.weight" else name, p) for name, p in net.named_parameters()]


def autograd(net, rows):
    net.zero_grad()
    scores = net(rows[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
    loss.backward()
    return scores.detach().numpy(), loss.item(), {name: p.grad.numpy() for name, p in parameters(net)}


def compare(tmp_path, net, what, **saved):
    folder = tmp_path / "net"
    net.save_pretrained(folder, **saved)
    # What the file says, if it was rounded.
    net = type(net).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    rows = torch.randint(WORDS, (ROWS, CONTEXT + 1), generator=torch.Generator().manual_seed(1))
    np.save(tmp_path / "rows.npy", rows.numpy().astype(np.uint16))
    out, loss, theirs = autograd(net, rows)
    found = evaluate(tmp_path, f"""
        let net = model::pretrained("{folder}", #{{ context: {CONTEXT} }});
        let w = net.weights();
        let t = target(net, dataset::tokens("{tmp_path}/rows.npy", #{{ test: 0.0, vocabulary: net.vocabulary }}));
        let r = sample(t, sampler::hmc(#{{ dt: 1e-12, adapt: false, leapfrog: 1 }}), #{{ start: w, steps: 2, every: 1, burn_in: 0, chains: 1, observe: [observable::named("g", |s| s.gradient())] }});
        net.save("{tmp_path}/ours.npz", w);
        #{{ outputs: t.outputs(w, "train").to_array(), gradient: r.trace("g", 0)[0], loss: t.energies(w).loss }}
    """)
    with np.load(tmp_path / "ours.npz") as f:
        ours = {name: f[name] for name in f.files}
    # All of PyTorch's parameters, under the names of the file.
    assert sorted(ours) == sorted(theirs)
    for name, p in parameters(net):
        np.testing.assert_array_equal(ours[name], p.detach().numpy(), err_msg=name)
    theirs = {name: theirs[name] for name in ours}
    relative = np.abs(np.reshape(found["outputs"], out.shape) - out).max() / np.abs(out).max()
    gradient = np.concatenate([g.ravel() for g in theirs.values()])
    off = np.linalg.norm(np.array(found["gradient"]) - gradient) / np.linalg.norm(gradient)
    print(f"\n{what}: {len(gradient)} parameters, outputs off by {relative:.1e}, loss by {abs(found['loss'] - loss) / loss:.1e}, gradient by {off:.1e}")
    assert relative < 1e-5 and abs(found["loss"] - loss) < 1e-5 * loss and off < 1e-4
    # Tensor by tensor, so that no small one hides behind a large one.
    at = 0
    for name, g in theirs.items():
        own = np.array(found["gradient"][at:at + g.size]).reshape(g.shape)
        at += g.size
        assert np.linalg.norm(own - g) < 1e-3 * np.linalg.norm(g) + 1e-6 * np.linalg.norm(gradient), name


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients(tmp_path, name):
    compare(tmp_path, made(name), name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(tmp_path, dtype):
    compare(tmp_path, made("qwen2, tied").to(dtype), f"{dtype}")


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped queries, tied"])
def test_shards(tmp_path, name):
    net = made(name)
    compare(tmp_path, net, f"{name}, in shards", max_shard_size="4KB")
    shards = list((tmp_path / "net").glob("model-*.safetensors"))
    assert len(shards) > 2
    shards[1].unlink()
    message = evaluate(tmp_path, f'model::pretrained("{tmp_path}/net")', fails=True)
    assert shards[1].name in message


def test_a_state_dict_of_torch(tmp_path):
    """Older checkpoints, among them those of Pythia's training, have pytorch_model.bin."""
    net = made("gpt_neox")
    net.save_pretrained(tmp_path / "net")
    (tmp_path / "net" / "model.safetensors").unlink()
    state = net.state_dict() | {f"gpt_neox.layers.{i}.attention.bias": torch.ones(1, 1, 32, 32, dtype=torch.bool).tril() for i in range(2)}
    torch.save(state, tmp_path / "net" / "pytorch_model.bin")
    found = evaluate(tmp_path, f'let net = model::pretrained("{tmp_path}/net"); net.save("{tmp_path}/ours.safetensors", net.weights()); net.parameters')
    assert found == sum(p.numel() for p in net.parameters())


def test_a_body_without_a_head(tmp_path):
    """The files of OpenAI's GPT-2 have names without `transformer.`, and masks among the weights."""
    net = made("gpt2")
    net.save_pretrained(tmp_path / "net")
    from safetensors.torch import save_file

    body = {name.removeprefix("transformer."): x.contiguous() for name, x in net.state_dict().items() if name != "lm_head.weight"}
    save_file(body | {f"h.{i}.attn.bias": torch.ones(1, 1, 16, 16).tril() for i in range(2)}, tmp_path / "net" / "model.safetensors")
    rows = torch.randint(WORDS, (ROWS, CONTEXT + 1))
    np.save(tmp_path / "rows.npy", rows.numpy())
    loss = autograd(net, rows)[1]
    found = evaluate(tmp_path, f"""
        let net = model::pretrained("{tmp_path}/net", #{{ context: {CONTEXT}, freeze: ["wte", "h.0"] }});
        let t = target(net, dataset::tokens("{tmp_path}/rows.npy", #{{ test: 0.0, vocabulary: net.vocabulary }}));
        net.save("{tmp_path}/ours.npz", net.weights());
        t.energies(net.weights()).loss
    """)
    assert abs(found - loss) < 1e-5 * loss
    with np.load(tmp_path / "ours.npz") as f:
        assert list(f.files) == [n for n in body if not n.startswith(("wte.", "h.0."))]


def changed(folder, **entries):
    path = folder / "config.json"
    path.write_text(json.dumps({k: v for k, v in (json.loads(path.read_text()) | entries).items() if v != "gone"}))


@pytest.mark.parametrize("name, entries, said", [
    ("gpt2", dict(model_type="bert"), "\"bert\" (config.json: 'model_type') are not supported; there are gpt2, gpt_neox, llama"),
    ("gpt2", dict(n_embd="gone"), "config.json has no 'n_embd'"),
    ("gpt2", dict(n_head=5), "a width of 12 does not divide into 5 heads"),
    ("gpt2", dict(n_layer=3), "there is no tensor 'transformer.h.2.ln_1.weight'"),
    ("gpt2", dict(n_layer=1), "not part of the network: transformer.h.1.attn.c_attn.bias"),
    ("gpt2", dict(vocab_size=24), "the tensor 'transformer.wte.weight' is [23, 12], but by config.json it must be [24, 12]"),
    ("gpt2", dict(activation_function="quick_gelu"), "'activation_function' is \"quick_gelu\", which is not supported"),
    ("gpt2", dict(quantization_config=dict(quant_method="gptq")), "its weights are quantised (gptq)"),
    ("gpt2", dict(n_positions=8), "by config.json the network knows 8 positions"),
    ("llama", dict(rope_parameters=dict(rope_type="yarn", factor=4.0)), "rotary positions of the type \"yarn\" are not supported"),
    ("llama", dict(rope_parameters=dict(rope_type="linear")), "need 'factor'"),
    ("llama", dict(tie_word_embeddings="yes"), "'tie_word_embeddings' is \"yes\", but must be true or false"),
    ("llama", dict(num_key_value_heads=3), "4 heads of queries do not divide among 3"),
    ("mistral", dict(sliding_window=8), "looks back over 8 positions only (config.json: 'sliding_window')"),
    ("qwen2", dict(layer_types=["full_attention", "sliding_attention"], sliding_window=4), "looks back over 4 positions only"),
])
def test_what_is_refused(tmp_path, name, entries, said):
    made(name).save_pretrained(tmp_path / "net")
    changed(tmp_path / "net", **entries)
    message = evaluate(tmp_path, f'model::pretrained("{tmp_path}/net", #{{ context: {CONTEXT} }})', fails=True)
    assert said in message and "panick" not in message, message


def test_older_files(tmp_path):
    """Before transformers 5, rotary positions had other names."""
    net = made("gpt_neox, no biases")
    net.save_pretrained(tmp_path / "new")
    net.save_pretrained(tmp_path / "old")
    changed(tmp_path / "old", rope_parameters="gone", rotary_pct=0.5, rotary_emb_base=100)
    rows = torch.randint(WORDS, (ROWS, CONTEXT + 1))
    np.save(tmp_path / "rows.npy", rows.numpy())
    new, old = evaluate(tmp_path, f"""
        let data = dataset::tokens("{tmp_path}/rows.npy", #{{ test: 0.0, vocabulary: {WORDS} }});
        let loss = |folder| {{ let net = model::pretrained(folder, #{{ context: {CONTEXT} }}); target(net, data).energies(net.weights()).loss }};
        [loss.call("{tmp_path}/new"), loss.call("{tmp_path}/old")]
    """)
    assert new == old and abs(new - autograd(net, rows)[1]) < 1e-5 * new


def byte_level():
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    return t, tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>"], show_progress=False)


def plain_bpe():
    t = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    t.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFKC(), tokenizers.normalizers.Lowercase()])
    t.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Punctuation(), tokenizers.pre_tokenizers.Digits(individual_digits=True)])
    return t, tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=["[UNK]", "<|endoftext|>"], show_progress=False)


def metaspace():
    """As those of Llama, which put a token at the beginning, and with a pattern as GPT-4 and Qwen2 have it."""
    t = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True))
    pattern = tokenizers.Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    t.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Split(pattern, "isolated"), tokenizers.pre_tokenizers.Metaspace()])
    return t, tokenizers.trainers.BpeTrainer(vocab_size=350, special_tokens=["<|endoftext|>", "<s>"], show_progress=False)


@pytest.mark.parametrize("make", [byte_level, plain_bpe, metaspace])
def test_tokens_of_a_text(tmp_path, make):
    """Of every token of a text, one number after the other, as the Python package gives it."""
    tokenizer, trainer = make()
    text = "".join(open(name, encoding="utf-8").read() for name in ["LICENSE-APACHE", "CONTRIBUTING.md", "docs/architecture.md"])
    text += "\n\n<|endoftext|>  Ünïcödé … 你好, мир! 🦀 don't  we'LL\t1234567.89\r\n<|endoftext|>fin"
    tokenizer.train_from_iterator([text], trainer)
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=7)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    (tmp_path / "text.txt").write_text(text, encoding="utf-8", newline="")
    found = evaluate(tmp_path, f"""
        let data = dataset::text("{tmp_path}/text.txt", #{{ tokenizer: "{tmp_path}", context: 1, test: 0.0 }});
        let inputs = [];
        for k in 0..data.train_rows {{ inputs.push(data.row("train", k).inputs[0]); }}
        #{{ inputs: inputs, classes: data.classes }}
    """)
    assert found["inputs"] == ids[:-1]
    assert found["classes"] == tokenizer.get_vocab_size()
