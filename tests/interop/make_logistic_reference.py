"""Reference of tests/data/patients.csv: a logistic regression with a hierarchical prior, by BlackJAX.

Needs blackjax; prints a line per parameter: name, mean, sd, and their errors from the means of fifty blocks per chain. Not part of the tests, whose
reference, tests/data/patients_reference.json, has these numbers.
"""

import csv
import math
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
rows = list(csv.reader(open(Path(__file__).parent.parent / "data/patients.csv")))[1:]
X = np.array([[float(v) for v in r[:6]] for r in rows])
y = np.array([r[6] == "recovered" for r in rows], float)


def ln_density(q):
    """beta_j ~ N(0, tau), tau ~ half-Cauchy(1), b ~ N(0, 5), in u = ln tau."""
    beta, b, u = q["beta"], q["b"], q["u"]
    tau = jnp.exp(u)
    z = X @ beta + b
    likelihood = jnp.sum(y * z - jax.nn.softplus(z))
    prior = jnp.sum(-0.5 * (beta / tau) ** 2 - u) - 0.5 * (b / 5) ** 2 - jnp.log1p(tau**2) + u
    return likelihood + prior


key = jax.random.PRNGKey(0)
chains = []
for _ in range(4):
    key, k1, k2, k3 = jax.random.split(key, 4)
    start = {"beta": 0.1 * jax.random.normal(k3, (6,)), "b": jnp.array(0.0), "u": jnp.array(0.0)}
    (state, settings), _ = blackjax.window_adaptation(blackjax.nuts, ln_density).run(k1, start, 1000)
    step = blackjax.nuts(ln_density, **settings).step

    def one(state, key):
        state, _ = step(key, state)
        p = state.position
        return state, jnp.concatenate([p["beta"], p["b"][None], jnp.exp(p["u"])[None]])

    chains.append(np.asarray(jax.lax.scan(one, state, jax.random.split(k2, 25_000))[1]))
draws = np.array(chains)
for k, name in enumerate([f"beta{k}" for k in range(6)] + ["b0", "tau"]):
    a = draws[:, :, k]
    mean, sd = a.mean(), a.std()

    def error(values):
        blocks = values.reshape(4, 50, -1).mean(2).ravel()
        return blocks.std(ddof=1) / math.sqrt(len(blocks))

    print(name, mean, sd, error(a), error((a - mean) ** 2) / (2 * sd))
