"""The BlackJAX peers: blackjax.sgld and blackjax.hmc inside the scan of jax_peers, chains by vmap.

Scaling. blackjax.sgld does w <- w + s grad log p + sqrt(2 T s) eta: with grad log p = -g, s = eps/2 this is our SGLD. It does
not hand out the gradient or the loss, so this peer does not accumulate them (it has less to do than the others).
blackjax.hmc samples exp(log p) with unit momenta: with log p = -U/T and p = sqrt(T) p', dw = dt p = (dt sqrt(T)) p' and
dp' = -dt g / sqrt(T) = (dt sqrt(T)) grad log p, so its step size is dt sqrt(T).
"""

from __future__ import annotations

from typing import Any

import blackjax
import jax
import jax.numpy as jnp

from jax_peers import Kernel, Params, Peer, Sums, energy, gradient, loss_and_gradient, minibatch
from workloads import Workload

__all__ = ["build", "gradient"]
LIBRARY = f"blackjax {blackjax.__version__} (jax {jax.__version__})"


def sgld(workload: Workload) -> Kernel:
    """blackjax.sgld on minibatches drawn with replacement."""

    def minus_gradient(params: Params, rows: tuple[jax.Array, jax.Array]) -> Params:
        return [-g for g in loss_and_gradient(workload, params, *rows)[1]]

    sampler = blackjax.sgld(minus_gradient)

    def step(params: Params, key: jax.Array, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[Params, Sums]:
        rows_key, noise_key = jax.random.split(key)
        rows = minibatch(workload, rows_key, x, y)
        return sampler.step(noise_key, params, rows, workload.step / 2, t), {}

    return Kernel(lambda params, t, x, y: params, step, lambda params: params)


def hmc(workload: Workload) -> Kernel:
    """blackjax.hmc with log density -U/T."""

    def sampler(t: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        return blackjax.hmc(
            lambda params: -energy(workload, params, x, y) / t,
            step_size=workload.step * jnp.sqrt(t),
            inverse_mass_matrix=jnp.ones(workload.size),
            num_integration_steps=workload.leapfrog,
        )

    def init(params: Params, t: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        return sampler(t, x, y).init(params)

    def step(state: Any, key: jax.Array, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[Any, Sums]:
        state, info = sampler(t, x, y).step(key, state)
        return state, {"energy": -t * state.logdensity, "accepted": info.is_accepted.astype(jnp.float32)}

    return Kernel(init, step, lambda state: state.position)


def build(workload: Workload, peer: str, threads: int) -> Peer:
    return Peer(workload, {"sgld": sgld, "hmc": hmc}[workload.sampler](workload), "vmap", LIBRARY)
