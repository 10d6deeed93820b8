"""Writes the folder pretrained: a very small GPT-2, trained a little on LICENSE-APACHE, and its tokenizer.

    python tests/data/make_pretrained.py            (needs torch, transformers, tokenizers)

Seeds are fixed; the numbers are bfloat16, as those of most models that are shared.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = Path(__file__).with_name("pretrained")
TEXT = (Path(__file__).parents[2] / "LICENSE-APACHE").read_text()
WORDS, CONTEXT, STEPS = 320, 32, 1500

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=WORDS, initial_alphabet=alphabet, show_progress=False))
FOLDER.mkdir(exist_ok=True)
tokenizer.save(str(FOLDER / "tokenizer.json"))

torch.manual_seed(1)
tokens = torch.tensor(tokenizer.encode(TEXT).ids)
net = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                 bos_token_id=None, eos_token_id=None))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=STEPS)
for step in range(STEPS):
    at = torch.randint(len(tokens) - CONTEXT, (16, 1)) + torch.arange(CONTEXT + 1)
    rows = tokens[at.clamp(max=len(tokens) - 1)]
    scores = net(rows[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        print(step + 1, round(loss.item(), 3))
net.to(torch.bfloat16).save_pretrained(FOLDER)
(FOLDER / "generation_config.json").unlink(missing_ok=True)
