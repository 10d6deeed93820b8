//! The priors that a script can name: `prior::…`.

use super::density::Each;
use super::law::Law;
use super::{Parameters, Prior};
use crate::error::Result;
use crate::model::initialise::Initialise;
use crate::model::place::Place;
use crate::options::{Entry, Kind, Options, Range, Spec, option, required};
use std::sync::Arc;

const RANGE: Kind = Kind::Float(Range::NonNegative);

/// `prior::…`.
pub const REGISTRY: &[Entry<Arc<Prior>>] = &[
    Entry {
        name: "none",
        doc: "No prior: R = 0.",
        arguments: &[],
        options: &[],
        example: "prior::none()",
        build: |_| Ok(Arc::new(Prior::None)),
    },
    Entry {
        name: "gaussian",
        doc: "A Gaussian prior: R = ½·precision·|w|², so that w ~ N(0, T/precision).",
        arguments: &["precision"],
        options: &[required(
            "precision",
            RANGE,
            "Inverse variance of each parameter at T = 1.",
        )],
        example: "prior::gaussian(0.1)",
        build: |o| {
            Ok(Arc::new(Prior::Gaussian {
                precision: o.float("precision")?,
            }))
        },
    },
    Entry {
        name: "l2",
        doc: "An L2 prior scaled with the number of parameters: R = (λ/2N)|w|² (Zambon 2026, eq. 3).",
        arguments: &["lambda"],
        options: &[required(
            "lambda",
            RANGE,
            "λ; Zambon (2026) uses 10 for spin vectors.",
        )],
        example: "prior::l2(10.0)",
        build: |o| {
            Ok(Arc::new(Prior::L2 {
                lambda: o.float("lambda")?,
            }))
        },
    },
    Entry {
        name: "localised",
        doc: "A Gaussian around a point: R = ½γ|w - w0|² (Hitchcock & Hoogland 2025, appendix; their main text omits the ½).",
        arguments: &["gamma", "centre"],
        options: &[
            required("gamma", RANGE, "γ, the strength of the localisation."),
            required(
                "centre",
                Kind::Object("Parameters"),
                "w0, from `train`, `run.params()` or `parameters`.",
            ),
        ],
        example: "prior::localised(1.0, parameters([0.5, -1.0]))",
        build: |o| {
            let centre = o
                .object::<Parameters>("centre")
                .and_then(|p| p.vectors.first().cloned());
            let centre = centre.ok_or_else(|| {
                anyhow::anyhow!("{}: option 'centre' holds no parameters", o.owner())
            })?;
            Ok(Arc::new(Prior::Localised {
                gamma: o.float("gamma")?,
                centre,
            }))
        },
    },
    Entry {
        name: "uniform_box",
        doc: "A uniform box with hard walls: |w_i| < width_i/2 (Baldock & Marzari 2019).\n\n\
              Trajectories (hmc, nuts, mala) and Langevin-type samplers are reflected at the walls, sampler::metropolis rejects moves out of the box, and sampler::ohzeki_ichiki works within walls only without its flow. The thermometer leaves out what happens at the walls.",
        arguments: &["width"],
        options: &[required(
            "width",
            Kind::Anything("number, or array with one number per tensor of the model"),
            "Full width(s) of the box.",
        )],
        example: "prior::uniform_box(4.0)",
        build: build_box,
    },
    Entry {
        name: "normal",
        doc: "Normal numbers: p(x) ∝ exp(-½(x - mean)²/sd²), at T = 1.\n\nIn a map of priors, mean and sd may be names of parameters: `#{ w1: prior::normal(0, \"tau\"), tau: prior::half_cauchy(1) }` samples tau with the weights.",
        arguments: &["mean", "sd"],
        options: &[
            required("mean", PLACE, "Mean, a number or the name of a parameter."),
            required("sd", PLACE, "Standard deviation."),
        ],
        example: "prior::normal(0, 10)",
        build: |o| each(o, Law::Normal, "mean", "sd"),
    },
    Entry {
        name: "laplace",
        doc: "Laplace numbers: p(x) = exp(-|x - mean|/scale)/(2 scale), at T = 1.",
        arguments: &["mean", "scale"],
        options: &[
            required("mean", PLACE, "Mean, a number or the name of a parameter."),
            required("scale", PLACE, SCALE),
        ],
        example: "prior::laplace(0, 0.1)",
        build: |o| each(o, Law::Laplace, "mean", "scale"),
    },
    Entry {
        name: "student_t",
        doc: "Numbers by Student's t: p(x) ∝ (1 + z²/ν)^(-(ν+1)/2) with z = (x - mean)/scale, at T = 1.",
        arguments: &["nu", "mean", "scale"],
        options: &[
            NU,
            required(
                "mean",
                PLACE,
                "Centre, a number or the name of a parameter.",
            ),
            required("scale", PLACE, SCALE),
        ],
        example: "prior::student_t(4, 0, 1)",
        build: |o| each(o, Law::StudentT(o.float("nu")?), "mean", "scale"),
    },
    Entry {
        name: "cauchy",
        doc: "Cauchy numbers: p(x) ∝ 1/(1 + z²) with z = (x - centre)/scale, at T = 1.",
        arguments: &["centre", "scale"],
        options: &[
            required(
                "centre",
                PLACE,
                "Centre, a number or the name of a parameter.",
            ),
            required("scale", PLACE, SCALE),
        ],
        example: "prior::cauchy(0, 2.5)",
        build: |o| each(o, Law::StudentT(1.0), "centre", "scale"),
    },
    Entry {
        name: "half_normal",
        doc: "Positive numbers, the half of a normal law: p(x) ∝ exp(-½x²/sd²) for x > 0, at T = 1.",
        arguments: &["sd"],
        options: &[required(
            "sd",
            PLACE,
            "Standard deviation of the whole law.",
        )],
        example: "target(potential::closure(#{ s: support::positive() }, |p| 0 * p.s), #{ prior: #{ s: prior::half_normal(1) } })",
        build: |o| about_zero(o, Law::Normal, true, "sd"),
    },
    Entry {
        name: "half_student_t",
        doc: "Positive numbers, the half of Student's t: p(x) ∝ (1 + z²/ν)^(-(ν+1)/2) for z = x/scale > 0, at T = 1.",
        arguments: &["nu", "scale"],
        options: &[NU, required("scale", PLACE, SCALE)],
        example: "prior::half_student_t(4, 1)",
        build: |o| about_zero(o, Law::StudentT(o.float("nu")?), true, "scale"),
    },
    Entry {
        name: "half_cauchy",
        doc: "Positive numbers, the half of a Cauchy law: p(x) ∝ 1/(1 + x²/scale²) for x > 0, at T = 1.",
        arguments: &["scale"],
        options: &[required("scale", PLACE, SCALE)],
        example: "prior::half_cauchy(2.5)",
        build: |o| about_zero(o, Law::StudentT(1.0), true, "scale"),
    },
    Entry {
        name: "lognormal",
        doc: "Positive numbers whose logarithms are normal: ln x ~ N(mean, sd²), at T = 1.",
        arguments: &["mean", "sd"],
        options: &[
            required("mean", PLACE, "Mean of ln x."),
            required("sd", PLACE, "Standard deviation of ln x."),
        ],
        example: "prior::lognormal(0, 1)",
        build: |o| each(o, Law::LogNormal, "mean", "sd"),
    },
    Entry {
        name: "exponential",
        doc: "Positive numbers: p(x) = rate exp(-rate x), at T = 1.",
        arguments: &["rate"],
        options: &[required("rate", PLACE, "1/mean.")],
        example: "prior::exponential(1)",
        build: |o| about_zero(o, Law::Gamma(1.0), false, "rate"),
    },
    Entry {
        name: "gamma",
        doc: "Positive numbers: p(x) ∝ x^(shape-1) exp(-rate x), at T = 1.",
        arguments: &["shape", "rate"],
        options: &[
            SHAPE,
            required("rate", PLACE, "Rate; the mean is shape/rate."),
        ],
        example: "prior::gamma(2, 0.1)",
        build: |o| about_zero(o, Law::Gamma(o.float("shape")?), false, "rate"),
    },
    Entry {
        name: "inverse_gamma",
        doc: "Positive numbers: p(x) ∝ x^(-shape-1) exp(-scale/x), at T = 1.",
        arguments: &["shape", "scale"],
        options: &[SHAPE, required("scale", PLACE, SCALE)],
        example: "prior::inverse_gamma(3, 1)",
        build: |o| about_zero(o, Law::InverseGamma(o.float("shape")?), false, "scale"),
    },
    Entry {
        name: "beta",
        doc: "Numbers between 0 and 1: p(x) ∝ x^(a-1) (1 - x)^(b-1), at T = 1.",
        arguments: &["a", "b"],
        options: &[
            required("a", Kind::Float(Range::Positive), "Shape at 0."),
            required("b", Kind::Float(Range::Positive), "Shape at 1."),
        ],
        example: "prior::beta(5, 5)",
        build: |o| {
            let shapes = (o.float("a")?, o.float("b")?);
            Ok(fixed(Law::Beta {
                shapes,
                within: (0.0, 1.0),
            }))
        },
    },
    Entry {
        name: "uniform",
        doc: "The same density everywhere between two numbers, for a parameter of that support; of weights see uniform_box.",
        arguments: &["from", "to"],
        options: &[
            required("from", Kind::Float(Range::Any), "The lower end."),
            required("to", Kind::Float(Range::Any), "The upper end."),
        ],
        example: "prior::uniform(0, 10)",
        build: |o| {
            let within = (o.float("from")?, o.float("to")?);
            anyhow::ensure!(
                within.0 < within.1,
                "{}: 'from' must be less than 'to'",
                o.owner()
            );
            Ok(fixed(Law::Beta {
                shapes: (1.0, 1.0),
                within,
            }))
        },
    },
    Entry {
        name: "horseshoe",
        doc: "The horseshoe: x ~ N(0, scale²λ²) with λ half-Cauchy, λ integrated out (Carvalho, Polson & Scott 2010): most weights near 0, some not.\n\nThe density is infinite at 0, so that gradients are large there: use a sampler that accepts or rejects (hmc, nuts, mala).",
        arguments: &["scale"],
        options: &[required(
            "scale",
            PLACE,
            "Global scale; often the name of a parameter with a half-Cauchy prior.",
        )],
        example: "prior::horseshoe(0.1)",
        build: |o| about_zero(o, Law::Horseshoe, false, "scale"),
    },
    Entry {
        name: "mixture",
        doc: "A mixture of normal laws, such as a spike and a slab: p(x) = Σ_k weight_k N(x; mean_k, sd_k²), at T = 1.",
        arguments: &["weights", "means", "sds"],
        options: &[
            required(
                "weights",
                Kind::Floats(Range::Positive),
                "Shares; divided by their sum.",
            ),
            required("means", Kind::Floats(Range::Any), "Means."),
            required("sds", Kind::Floats(Range::Positive), "Standard deviations."),
        ],
        example: "prior::mixture([0.5, 0.5], [0.0, 0.0], [0.05, 1.0])",
        build: mixture,
    },
    Entry {
        name: "scaled",
        doc: "Weights N(0, c/fan) as initialisations scale them, so that widths can be compared: \"he\" 2/fan_in, \"glorot\" 2/(fan_in + fan_out), \"lecun\" 1/fan_in, at T = 1.\n\nOf a weight that no product shows, fan_in is its last axis.",
        arguments: &["law"],
        options: &[
            option(
                "law",
                Kind::Choice(&["he", "glorot", "lecun"]),
                "lecun",
                "Variance of weights.",
            ),
            option(
                "bias",
                Kind::Float(Range::Positive),
                "1",
                "Standard deviation of biases.",
            ),
        ],
        example: "prior::scaled(\"he\", #{ bias: 0.1 })",
        build: |o| {
            let weights = Initialise::named(o.text("law")?, 1.0).unwrap_or(Initialise::Lecun);
            Ok(Arc::new(Prior::Scaled {
                weights,
                bias: o.float("bias")?,
            }))
        },
    },
];

const PLACE: Kind = Kind::Anything("number, or the name of a parameter");
const SCALE: &str = "Scale, a number > 0 or the name of a positive parameter.";
const NU: Spec = required(
    "nu",
    Kind::Float(Range::Positive),
    "ν, the degrees of freedom.",
);
const SHAPE: Spec = required(
    "shape",
    Kind::Float(Range::Positive),
    "Shape, the power of x.",
);

fn each(o: &Options, law: Law, location: &str, scale: &str) -> Result<Arc<Prior>> {
    Ok(Arc::new(Prior::Each(Each {
        law,
        half: false,
        location: Place::of(o, location, false)?,
        scale: Place::of(o, scale, true)?,
    })))
}

/// A law without a location, or the positive half of one.
fn about_zero(o: &Options, law: Law, half: bool, scale: &str) -> Result<Arc<Prior>> {
    let scale = Place::of(o, scale, true)?;
    Ok(Arc::new(Prior::Each(Each {
        half,
        scale,
        ..Each::of(law)
    })))
}

/// A law without location and scale.
fn fixed(law: Law) -> Arc<Prior> {
    Arc::new(Prior::Each(Each::of(law)))
}

fn mixture(o: &Options) -> Result<Arc<Prior>> {
    let [weights, means, sds] =
        ["weights", "means", "sds"].map(|n| o.floats(n).unwrap_or_default());
    anyhow::ensure!(
        !weights.is_empty() && weights.len() == means.len() && means.len() == sds.len(),
        "{}: {} weights, {} means and {} sds; there must be one of each per part",
        o.owner(),
        weights.len(),
        means.len(),
        sds.len()
    );
    let sum: f64 = weights.iter().sum();
    let parts = weights.iter().zip(means).zip(sds);
    Ok(fixed(Law::Mixture(
        parts.map(|((p, m), s)| [p / sum, m, s]).collect(),
    )))
}

fn build_box(o: &Options) -> Result<Arc<Prior>> {
    let widths = o
        .floats("width")
        .or_else(|| o.opt_float("width").map(|w| vec![w]))
        .unwrap_or_default();
    anyhow::ensure!(
        !widths.is_empty() && widths.iter().all(|w| *w > 0.0 && w.is_finite()),
        "{}: option 'width' must be a number > 0, or an array of such numbers, one per tensor of the model",
        o.owner()
    );
    Ok(Arc::new(Prior::Box { widths }))
}
