"""The JAX peers: one jitted, donated lax.scan over the steps of a chain; chains by lax.map ("jax") or vmap ("jax-vmap").

Random numbers are JAX's default, threefry: on CPU it is twice as fast as rbg and unsafe_rbg for a million normals (6.4 against
13.5 ms on one core), and no slower in any workload.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import workloads
from workloads import Workload

LIBRARY = f"jax {jax.__version__}"
CHUNK_SECONDS = 0.3  # of one call of the compiled scan

Params = list[jax.Array]
Sums = dict[str, jax.Array]
ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh, "identity": lambda x: x}


class Chain(NamedTuple):
    """What a chain carries from step to step."""

    state: Any
    key: jax.Array
    sums: Sums


Step = Callable[[Any, jax.Array, jax.Array, jax.Array, jax.Array], tuple[Any, Sums]]  # state, key, T, x, y


RmspropState = tuple[Params, Params]  # weights, v
NoiseState = tuple[jax.Array, jax.Array]  # weights, gradient


class Kernel(NamedTuple):
    """A sampler of one chain."""

    init: Callable[[Params, jax.Array, jax.Array, jax.Array], Any]  # params, T, x, y
    step: Step
    params: Callable[[Any], Params]


def unflatten(workload: Workload, w: jax.Array) -> Params:
    sizes = np.cumsum([int(np.prod(shape)) for shape in workload.shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(jnp.split(w, sizes), workload.shapes)]


def mean_loss(workload: Workload, params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    for layer in range(len(workload.layers) - 1):
        x = x @ params[2 * layer] + params[2 * layer + 1] if workload.bias else x @ params[layer]
        x = ACTIVATIONS[workload.activation(layer)](x)
    if workload.loss == "squared":
        return jnp.square(x - y).sum() / len(x)
    return (jax.nn.logsumexp(x, axis=1) - jnp.take_along_axis(x, y[:, None], axis=1)[:, 0]).mean()


def dot(a: Params, b: Params) -> jax.Array:
    return sum(jnp.vdot(p, q) for p, q in zip(a, b))  # type: ignore[return-value]


def energy(workload: Workload, params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """U on the rows (x, y)."""
    return mean_loss(workload, params, x, y) + workload.prior / workload.size / 2 * dot(params, params)


def minibatch(workload: Workload, key: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    index = jax.random.randint(key, (workload.batch,), 0, workload.rows)
    return x.at[index].get(mode="promise_in_bounds"), y.at[index].get(mode="promise_in_bounds")


def loss_and_gradient(workload: Workload, params: Params, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Params]:
    """Mean loss, and the gradient of U with the prior's part by hand."""
    loss, gradients = jax.value_and_grad(functools.partial(mean_loss, workload))(params, x, y)
    return loss, [g + workload.prior / workload.size * p for g, p in zip(gradients, params)]


def sgld(workload: Workload) -> Kernel:
    """SGLD, w <- w - (eps/2) g + sqrt(eps T) eta, on a minibatch drawn with replacement."""

    def step(params: Params, key: jax.Array, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[Params, Sums]:
        rows_key, noise_key = jax.random.split(key)
        loss, g = loss_and_gradient(workload, params, *minibatch(workload, rows_key, x, y))
        noise = unflatten(workload, jax.random.normal(noise_key, (workload.size,)))
        scale, eps = jnp.sqrt(workload.step * t), workload.step
        sums = {"loss": loss, "virial": dot(params, g) / workload.size}
        return [p - eps / 2 * dp + scale * eta for p, dp, eta in zip(params, g, noise)], sums

    return Kernel(lambda params, t, x, y: params, step, lambda params: params)


def rmsprop(workload: Workload) -> Kernel:
    """RMSProp-preconditioned SGLD (Li et al. 2016): v <- a v + (1-a) g^2, G = 1/(floor + sqrt(v)),
    w <- w - (eps/2) G g + sqrt(eps T G) eta."""

    def step(state: RmspropState, key: jax.Array, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[RmspropState, Sums]:
        params, v = state
        rows_key, noise_key = jax.random.split(key)
        loss, g = loss_and_gradient(workload, params, *minibatch(workload, rows_key, x, y))
        noise = unflatten(workload, jax.random.normal(noise_key, (workload.size,)))
        sums = {"loss": loss, "virial": dot(params, g) / workload.size}
        v = [workload.decay * a + (1 - workload.decay) * jnp.square(dp) for a, dp in zip(v, g)]
        metric = [1 / (workload.floor + jnp.sqrt(a)) for a in v]
        eps = workload.step
        params = [
            p - eps / 2 * m * dp + jnp.sqrt(eps * t * m) * eta for p, dp, m, eta in zip(params, g, metric, noise)
        ]
        return (params, v), sums

    return Kernel(lambda params, t, x, y: (params, [jnp.zeros_like(p) for p in params]), step, lambda state: state[0])


class HmcState(NamedTuple):
    params: Params
    energy: jax.Array
    gradient: Params


def hmc(workload: Workload) -> Kernel:
    """HMC at density exp(-U/T) with momenta N(0, T) and unit masses: a leapfrog trajectory and a Metropolis test."""
    value_and_grad = jax.value_and_grad(functools.partial(energy, workload))
    dt = workload.step

    def init(params: Params, t: jax.Array, x: jax.Array, y: jax.Array) -> HmcState:
        return HmcState(params, *value_and_grad(params, x, y))

    def step(state: HmcState, key: jax.Array, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[HmcState, Sums]:
        momentum_key, accept_key = jax.random.split(key)
        p = unflatten(workload, jnp.sqrt(t) * jax.random.normal(momentum_key, (workload.size,)))
        before = state.energy + dot(p, p) / 2

        def leapfrog(_: int, at: tuple[HmcState, Params]) -> tuple[HmcState, Params]:
            (q, _, g), p = at
            p = [a - dt / 2 * b for a, b in zip(p, g)]
            q = [a + dt * b for a, b in zip(q, p)]
            u, g = value_and_grad(q, x, y)
            return HmcState(q, u, g), [a - dt / 2 * b for a, b in zip(p, g)]

        end, p = lax.fori_loop(0, workload.leapfrog, leapfrog, (state, p))
        after = end.energy + dot(p, p) / 2
        accept = jax.random.uniform(accept_key) < jnp.exp((before - after) / t)
        state = jax.tree.map(lambda new, old: jnp.where(accept, new, old), end, state)
        return state, {"energy": state.energy, "accepted": accept.astype(jnp.float32)}

    return Kernel(init, step, lambda state: state.params)


def noise(workload: Workload) -> Kernel:
    """The update of SGLD alone; the state is weights and a fixed gradient."""

    def step(state: NoiseState, key: jax.Array, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[NoiseState, Sums]:
        w, g = state
        eta = jax.random.normal(key, w.shape)
        return (w - workload.step / 2 * g + jnp.sqrt(workload.step * t) * eta, g), {}

    return Kernel(lambda params, t, x, y: (params[0], jnp.ones_like(params[0])), step, lambda state: [state[0]])


class Peer:
    """A kernel's chains, advanced by a compiled scan."""

    def __init__(self, workload: Workload, kernel: Kernel, many: str, library: str = LIBRARY) -> None:
        self.workload, self.kernel, self.library, self.steps = workload, kernel, library, 0
        x, y = workloads.data(workload) if workload.rows else (np.zeros(1, np.float32), np.zeros(1, np.float32))
        self.x, self.y = jnp.asarray(x), jnp.asarray(y)
        self.temperatures = jnp.asarray(workload.temperatures, jnp.float32)
        single = workload.chains == 1

        def over_chains(function: Callable[..., Any], *arguments: Any) -> Any:
            """One chain has no chain axis."""
            if single:
                return function(*arguments)
            if many == "map":
                return lax.map(lambda chain: function(*chain), arguments)
            return jax.vmap(function)(*arguments)

        def init(w: jax.Array, t: jax.Array, key: jax.Array, x: jax.Array, y: jax.Array) -> Chain:
            def one(w: jax.Array, t: jax.Array, key: jax.Array) -> Chain:
                state = kernel.init(unflatten(workload, w), t, x, y)
                sums = jax.eval_shape(lambda: kernel.step(state, key, t, x, y)[1])
                return Chain(state, key, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), sums))

            return over_chains(one, w, t, key)

        def run(chains: Chain, t: jax.Array, x: jax.Array, y: jax.Array, length: int) -> Chain:
            def one(chain: Chain, t: jax.Array) -> Chain:
                def body(chain: Chain, _: None) -> tuple[Chain, None]:
                    key, step_key = jax.random.split(chain.key)
                    state, sums = kernel.step(chain.state, step_key, t, x, y)
                    return Chain(state, key, jax.tree.map(jnp.add, chain.sums, sums)), None

                return lax.scan(body, chain, length=length)[0]

            return over_chains(one, chains, t)

        self.run = jax.jit(run, static_argnames="length", donate_argnames="chains")
        w, key = jnp.asarray(workloads.start(workload)), jax.random.key(3)
        if single:
            w, self.temperatures = w[0], self.temperatures[0]
        keys = key if single else jax.random.split(key, workload.chains)
        self.chains = jax.block_until_ready(jax.jit(init)(w, self.temperatures, keys, self.x, self.y))
        self.length = 1

    def call(self, length: int) -> None:
        self.chains = jax.block_until_ready(self.run(self.chains, self.temperatures, self.x, self.y, length=length))
        self.steps += length

    def warm_up(self) -> None:
        """Compile, and choose the length of the scan. A scan of one step compiles to no loop at all: that is slower for SGLD
        (but not for HMC, which has a loop inside), and faster for noise alone."""
        if self.workload.sampler == "noise":
            self.call(1)
            return
        least = 1 if self.workload.sampler == "hmc" else 2
        for length in (least, 10):
            self.call(length)
            begin = time.perf_counter()
            self.call(length)
            seconds = (time.perf_counter() - begin) / length
            if seconds > CHUNK_SECONDS / 10:
                break
        self.length = max(least, round(CHUNK_SECONDS / seconds))
        self.call(self.length)

    def advance(self, steps: int) -> None:
        self.call(steps)

    def weights(self) -> np.ndarray:
        chains = self.workload.chains
        return np.concatenate([np.asarray(p).reshape(chains, -1) for p in self.kernel.params(self.chains.state)], axis=1)

    def stats(self) -> dict[str, float]:
        return {name: float(jnp.mean(value)) / self.steps for name, value in self.chains.sums.items()}


KERNELS: dict[str, Callable[[Workload], Kernel]] = {"sgld": sgld, "rmsprop": rmsprop, "hmc": hmc, "noise": noise}


def build(workload: Workload, peer: str, threads: int) -> Peer:
    return Peer(workload, KERNELS[workload.sampler](workload), "vmap" if peer == "jax-vmap" else "map")


def gradient(workload: Workload, peer: str, w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient [C, N] of the mean loss alone: for the self test."""

    def one(w: jax.Array) -> jax.Array:
        gradients = jax.grad(functools.partial(mean_loss, workload))(unflatten(workload, w), x, y)
        return jnp.concatenate([g.ravel() for g in gradients])

    return np.asarray(jax.vmap(one)(jnp.asarray(w)))
