"""The targets of ess_peers.py: densities on R^size, the functions of w that are measured, and what is known of them.

Posteriors are sampled in the coordinates of scripts/posteriors: a scale by its logarithm, a share by its logit, ordered
numbers by the first and the logarithms of the gaps, each with its Jacobian. What is measured are the parameters of the
reference draws in tests/data/posteriordb.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "data" / "posteriordb"
CONDITION = 1e4  # of the Gaussian
SIZE = 100
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])  # eight schools: y, sigma
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
FUNNEL = 10  # v and nine x

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Known:
    """A mean and a standard deviation, with the error of the mean: 0 where they are exact."""

    mean: float
    sd: float
    mcse: float = 0.0


@dataclass(frozen=True)
class Target:
    """A density on R^size, up to a constant."""

    size: int
    logdensity: Callable[[Any], Any]
    columns: Callable[[np.ndarray], Columns]  # functions of draws [..., size]
    known: dict[str, Known]  # of some columns


def coordinates(w: np.ndarray) -> Columns:
    return {f"w{i}": w[..., i] for i in range(w.shape[-1])}


# ---- targets without data


def gaussian() -> Target:
    """U = 1/2 sum k_i (w_i - 1)^2, curvatures k_i from 1 to CONDITION in geometric steps."""
    curvatures = CONDITION ** (np.arange(SIZE) / (SIZE - 1))

    def logdensity(w: Any) -> Any:
        return -0.5 * (curvatures.astype(w.dtype) * (w - 1) ** 2).sum()

    return Target(SIZE, logdensity, coordinates, {f"w{i}": Known(1.0, k**-0.5) for i, k in enumerate(curvatures)})


def schools_exact() -> dict[str, Known]:
    """Moments of the eight schools by quadrature over log tau: given tau everything else is Gaussian."""
    log_tau = np.linspace(-25, 12, 200_001)
    tau = np.exp(log_tau)
    precisions = 1 / (ERRORS**2 + tau[:, None] ** 2)  # of y given mu
    variance = 1 / (1 / 25 + precisions.sum(1))  # of mu
    mean = variance * (precisions @ EFFECTS)
    log_p = 0.5 * (np.log(precisions).sum(1) - precisions @ EFFECTS**2 + mean**2 / variance + np.log(variance))
    log_p += log_tau - np.log1p(tau**2 / 25)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()

    def moments(mean: np.ndarray, square: np.ndarray) -> Known:
        return Known(float(p @ mean), float(np.sqrt(p @ square - (p @ mean) ** 2)))

    return {"w0": moments(mean, variance + mean**2), "w1": moments(log_tau, log_tau**2)}


def schools(centred: bool) -> Callable[[Any], Any]:
    """ln p of w = mu, log tau, then the eight theta, or (theta - mu) / tau where not centred."""

    def logdensity(w: Any) -> Any:
        import jax.numpy as jnp

        mu, log_tau, rest = w[0], w[1], w[2:]
        tau = jnp.exp(log_tau)
        theta = rest if centred else mu + tau * rest
        prior = -0.5 * (mu / 5) ** 2 - jnp.log1p((tau / 5) ** 2) + log_tau
        if centred:
            prior += -0.5 * (((theta - mu) / tau) ** 2).sum() - len(EFFECTS) * log_tau
        else:
            prior += -0.5 * (rest**2).sum()
        return prior - 0.5 * (((EFFECTS.astype(w.dtype) - theta) / ERRORS.astype(w.dtype)) ** 2).sum()

    return logdensity


def schools_centred() -> Target:
    return Target(2 + len(EFFECTS), schools(centred=True), coordinates, schools_exact())


def funnel() -> Target:
    """Neal's: w = v, x_1 ... x_9 with v ~ N(0, 3^2) and x_i ~ N(0, e^v)."""

    def logdensity(w: Any) -> Any:
        import jax.numpy as jnp

        v, x = w[0], w[1:]
        return -0.5 * (v / 3) ** 2 - 0.5 * jnp.exp(-v) * (x**2).sum() - 0.5 * (FUNNEL - 1) * v

    return Target(FUNNEL, logdensity, coordinates, {"w0": Known(0.0, 3.0)})


# ---- the small network


def network(file: Path) -> Target:
    """exp(-U/T) of the network that ess.rhai has exported; stops where its energies are not ours."""
    exported = json.loads(file.read_text())
    layers, temperature, precision = exported["layers"], exported["temperature"], exported["precision"]
    x, labels = np.array(exported["inputs"]), np.array(exported["labels"], int)

    def outputs(w: Any) -> Any:
        import jax.numpy as jnp

        out, at = x.astype(w.dtype), 0
        for k, (a, b) in enumerate(zip(layers, layers[1:])):
            weights, biases = w[at : at + a * b].reshape(b, a), w[at + a * b : at + (a + 1) * b]
            out = out @ weights.T + biases
            out, at = (jnp.tanh(out) if k < len(layers) - 2 else out), at + (a + 1) * b
        return out

    def cost(w: Any) -> Any:
        import jax

        return -jax.nn.log_softmax(outputs(w))[np.arange(len(labels)), labels].mean()

    def energy(w: Any) -> Any:
        return cost(w) + 0.5 * precision * (w**2).sum()

    for point in exported["points"]:
        ours, theirs = float(energy(np.array(point["w"]))), point["energy"]
        if not abs(ours - theirs) < 1e-5 * abs(theirs):
            raise SystemExit(f"{file}: the energy of the network is {theirs} by ergodic, {ours} here")

    def columns(w: np.ndarray) -> Columns:
        import jax

        costs = jax.lax.map(cost, jax.numpy.asarray(w.reshape(-1, w.shape[-1])), batch_size=256)
        return {**coordinates(w), "cost": np.asarray(costs).reshape(w.shape[:-1]), "norm2": (w**2).sum(-1)}

    known = {name: Known(**moments) for name, moments in exported["known"].items()}
    return Target(len(exported["points"][0]["w"]), lambda w: -energy(w) / temperature, columns, known)


# ---- the twelve posteriors


def read(name: str) -> tuple[dict[str, Any], dict[str, Known]]:
    """Data, arrays as such, and reference of a posterior."""
    posterior = json.loads((DATA / f"{name}.json").read_text())
    data = {key: np.array(value, float) if isinstance(value, list) else value for key, value in posterior["data"].items()}
    return data, {key: Known(**moments) for key, moments in posterior["reference"].items()}


def regression(
    name: str,
    columns_of: Callable[[dict[str, Any]], list[np.ndarray]],
    y: Callable[[dict[str, Any]], np.ndarray],
    normal: float | None = None,
    scale: Callable[[Any], Any] = lambda sigma: 0.0,
) -> Target:
    """y ~ N(X beta, sigma); beta ~ N(0, normal) or flat; `scale` is the log density of sigma."""
    data, known = read(name)
    x, response = np.stack(columns_of(data), 1), y(data)
    coefficients = [label for label in known if label != "sigma"]
    assert x.shape[1] == len(coefficients)

    def logdensity(w: Any) -> Any:
        import jax.numpy as jnp

        beta, log_sigma = w[:-1], w[-1]
        sigma = jnp.exp(log_sigma)
        residual = (response.astype(w.dtype) - x.astype(w.dtype) @ beta) / sigma
        prior = 0.0 if normal is None else -0.5 * (beta**2).sum() / normal**2
        return prior + scale(sigma) + log_sigma - len(response) * log_sigma - 0.5 * (residual**2).sum()

    def columns(w: np.ndarray) -> Columns:
        return {**{label: w[..., i] for i, label in enumerate(coefficients)}, "sigma": np.exp(w[..., -1])}

    return Target(x.shape[1] + 1, logdensity, columns, known)


def half_cauchy(sigma: Any) -> Any:
    import jax.numpy as jnp

    return -jnp.log1p((sigma / 2.5) ** 2)


def eight_schools() -> Target:
    _, known = read("eight_schools-eight_schools_noncentered")

    def columns(w: np.ndarray) -> Columns:
        mu, tau = w[..., 0], np.exp(w[..., 1])
        return {"mu": mu, "tau": tau, **{f"theta[{i + 1}]": mu + tau * w[..., 2 + i] for i in range(len(EFFECTS))}}

    return Target(2 + len(EFFECTS), schools(centred=False), columns, known)


def gauss_mix() -> Target:
    """w = mu_1, ln(mu_2 - mu_1), ln sigma_1, ln sigma_2, logit theta."""
    data, known = read("low_dim_gauss_mix-low_dim_gauss_mix")
    y = data["y"]

    def logdensity(w: Any) -> Any:
        import jax
        import jax.numpy as jnp

        mu, sigma = jnp.stack([w[0], w[0] + jnp.exp(w[1])]), jnp.exp(w[2:4])
        ln_share = jnp.stack([jax.nn.log_sigmoid(w[4]), jax.nn.log_sigmoid(-w[4])])
        parts = ln_share - w[2:4] - 0.5 * ((y.astype(w.dtype)[:, None] - mu) / sigma) ** 2
        prior = -0.5 * ((mu / 2) ** 2).sum() - 0.5 * ((sigma / 2) ** 2).sum() + 4 * ln_share.sum()
        return prior + w[1] + w[2] + w[3] + ln_share.sum() + jax.nn.logsumexp(parts, axis=1).sum()

    def columns(w: np.ndarray) -> Columns:
        sigma = np.exp(w[..., 2:4])
        means = {"mu[1]": w[..., 0], "mu[2]": w[..., 0] + np.exp(w[..., 1])}
        return {**means, "sigma[1]": sigma[..., 0], "sigma[2]": sigma[..., 1], "theta": 1 / (1 + np.exp(-w[..., 4]))}

    return Target(5, logdensity, columns, known)


def of(name: str) -> Callable[[dict[str, Any]], np.ndarray]:
    return lambda d: d[name]


def listed(*names: str) -> Callable[[dict[str, Any]], list[np.ndarray]]:
    return lambda d: [np.ones(d["N"]), *(d[name] for name in names)]


def interaction(d: dict[str, Any]) -> list[np.ndarray]:
    z = (d["height"] - d["height"].mean()) / d["height"].std(ddof=1)
    return [np.ones(d["N"]), z, d["male"], z * d["male"]]


def volume(d: dict[str, Any]) -> list[np.ndarray]:
    return [np.ones(d["N"]), np.log(d["diam1"] * d["diam2"] * d["canopy_height"])]


def logarithms(d: dict[str, Any]) -> list[np.ndarray]:
    area = d["diam1"] * d["diam2"]
    positive = [area * d["canopy_height"], area, d["diam1"] / d["diam2"], d["total_height"], d["density"]]
    return [np.ones(d["N"]), *map(np.log, positive), d["group"]]


def election(d: dict[str, Any]) -> list[np.ndarray]:
    ages = [(d["age_discrete"] == k) * 1.0 for k in (2, 3, 4)]
    return [np.ones(d["N"]), d["real_ideo"], d["race_adj"], *ages, d["educ1"], d["gender"], d["income"]]


POSTERIORS: dict[str, Callable[[], Target]] = {
    "arK": lambda: regression(
        "arK-arK", lambda d: [np.ones(195), *(d["y"][5 - k : 200 - k] for k in range(1, 6))], lambda d: d["y"][5:], 10.0, half_cauchy
    ),
    "earn_height": lambda: regression("earnings-earn_height", listed("height"), of("earn")),
    "eight_schools": eight_schools,
    "gauss_mix": gauss_mix,
    "kidscore_interaction": lambda: regression(
        "kidiq-kidscore_interaction",
        lambda d: [*listed("mom_hs", "mom_iq")(d), d["mom_hs"] * d["mom_iq"]], of("kid_score"), scale=half_cauchy,
    ),
    "kidscore_momhsiq": lambda: regression("kidiq-kidscore_momhsiq", listed("mom_hs", "mom_iq"), of("kid_score"), scale=half_cauchy),
    "logearn_interaction": lambda: regression("earnings-logearn_interaction_z", interaction, lambda d: np.log(d["earn"])),
    "logmesquite_logvas": lambda: regression("mesquite-logmesquite_logvas", logarithms, lambda d: np.log(d["weight"])),
    "logmesquite_logvolume": lambda: regression("mesquite-logmesquite_logvolume", volume, lambda d: np.log(d["weight"])),
    "mesquite": lambda: regression(
        "mesquite-mesquite", listed("diam1", "diam2", "canopy_height", "total_height", "density", "group"), of("weight")
    ),
    "nes2000": lambda: regression("nes2000-nes", election, of("partyid7")),
    "sblrc_blr": lambda: regression(
        "sblrc-blr", lambda d: list(d["X"].T), of("y"), 10.0, lambda sigma: -0.5 * (sigma / 10) ** 2
    ),
}  # fmt: skip
TARGETS: dict[str, Callable[[], Target]] = {
    "gaussian": gaussian, "schools_centred": schools_centred, "funnel": funnel, **POSTERIORS,
}  # fmt: skip
