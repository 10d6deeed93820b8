//! Initial parameters.

use super::{Layout, TensorSpec};
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::Stream;

/// How the parameters of a model are first drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initialise {
    /// Weights and biases uniform in ±1/√fan_in, as `torch.nn.Linear` does.
    Pytorch,
    /// Weights N(0, 2/fan_in), biases 0 (He et al. 2015).
    He,
    /// Weights N(0, 2/(fan_in+fan_out)), biases 0 (Glorot & Bengio 2010).
    Glorot,
    /// Weights N(0, 1/fan_in), biases 0 (LeCun et al. 1998).
    Lecun,
    /// Everything N(0, scale²).
    Normal(f64),
    /// Everything uniform in 0..scale (Iwagaki & Watanabe: scale 1).
    Uniform(f64),
    /// Everything zero.
    Zeros,
    /// Everything this number.
    Constant(f64),
}

/// What a tensor is in its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Components of the layer's input and of its output.
    pub fan: (usize, usize),
    /// Whether it is a bias.
    pub bias: bool,
}

/// Initial parameters with so many standard normal ones behind them, as parameters of losses and priors begin.
pub fn with_normals(mut w: Vec<f32>, count: usize, stream: &Stream) -> Vec<f32> {
    let mut more = vec![0.0; count];
    fill_normal(stream, &mut more);
    w.append(&mut more);
    w
}

/// The roles in a layout whose weights are `[fan_out, fan_in]` and biases `[fan_out]` after their weight.
pub fn roles(layout: &Layout) -> Vec<Role> {
    let mut fan = (1, 1);
    let each = layout.tensors().iter().map(|t| {
        if let [o, i] = t.shape[..] {
            fan = (i, o);
        }
        let bias = t.shape.len() <= 1;
        Role { fan, bias }
    });
    each.collect()
}

/// The names of laws.
pub(crate) const NAMES: &[&str] = &[
    "pytorch", "he", "glorot", "lecun", "normal", "uniform", "zeros",
];

/// The option that chooses it.
pub(crate) const OPTION: Spec = option(
    "init",
    Kind::Choice(NAMES),
    "pytorch",
    "Initial parameters: \"pytorch\" ±1/√fan_in uniform · \"he\" N(0, 2/fan_in) · \"glorot\" N(0, 2/(fan_in+fan_out)) · \
     \"lecun\" N(0, 1/fan_in), biases 0 · \"normal\" N(0, init_scale²) · \"uniform\" 0..init_scale · \"zeros\"",
);

/// Its scale.
pub(crate) const SCALE: Spec = optional(
    "init_scale",
    Kind::Float(Range::Positive),
    "1",
    "Standard deviation of \"normal\", upper end of \"uniform\".",
);

impl Initialise {
    /// From the checked options `OPTION` and `SCALE`.
    pub fn from_options(o: &Options) -> Result<Self> {
        let scale = o.opt_float("init_scale").unwrap_or(1.0);
        Ok(Self::named(o.text("init")?, scale).unwrap_or(Self::Pytorch))
    }

    /// By its name, with the scale that some need.
    pub fn named(name: &str, scale: f64) -> Option<Self> {
        Some(match name {
            "pytorch" => Self::Pytorch,
            "he" => Self::He,
            "glorot" => Self::Glorot,
            "lecun" => Self::Lecun,
            "normal" => Self::Normal(scale),
            "uniform" => Self::Uniform(scale),
            "zeros" => Self::Zeros,
            _ => return None,
        })
    }

    /// Draw the parameters of a layout whose weights are `[fan_out, fan_in]` and biases `[fan_out]` after their weight.
    pub fn draw(self, layout: &Layout, stream: Stream) -> Vec<f32> {
        let each = roles(layout).into_iter().map(|role| (self, role));
        Self::draw_each(layout, each, stream)
    }

    /// Draw each tensor of a layout by a law of its own.
    pub fn draw_each(
        layout: &Layout,
        laws: impl IntoIterator<Item = (Self, Role)>,
        stream: Stream,
    ) -> Vec<f32> {
        let mut out = vec![0f32; layout.len()];
        fill_normal(&stream, &mut out);
        for (t, (law, role)) in layout.tensors().iter().zip(laws) {
            law.draw_tensor(t, role, &stream, &mut out[t.range.clone()]);
        }
        out
    }

    /// `values` come in as standard normals.
    fn draw_tensor(self, t: &TensorSpec, role: Role, stream: &Stream, values: &mut [f32]) {
        let uniform = |from: f64, to: f64, values: &mut [f32]| {
            let stream = stream.sub_stream(1);
            for (i, v) in values.iter_mut().enumerate() {
                *v = (from + (to - from) * stream.uniform((t.range.start + i) as u32)) as f32;
            }
        };
        let normal = |variance: f64, values: &mut [f32]| {
            values.iter_mut().for_each(|v| *v *= variance.sqrt() as f32);
        };
        match self {
            Self::Pytorch => {
                let bound = 1.0 / (role.fan.0 as f64).sqrt();
                uniform(-bound, bound, values);
            }
            Self::Uniform(scale) => uniform(0.0, scale, values),
            Self::Normal(scale) => normal(scale * scale, values),
            Self::Zeros => values.fill(0.0),
            Self::Constant(value) => values.fill(value as f32),
            _ if role.bias => values.fill(0.0),
            Self::He | Self::Glorot | Self::Lecun => normal(self.variance(role), values),
        }
    }

    /// The variance of a weight where it is that of a normal law: of "he", "glorot" and "lecun"; 1 of others.
    pub fn variance(self, role: Role) -> f64 {
        let (fan_in, fan_out) = role.fan;
        match self {
            Self::He => 2.0 / fan_in as f64,
            Self::Glorot => 2.0 / (fan_in + fan_out) as f64,
            Self::Lecun => 1.0 / fan_in as f64,
            _ => 1.0,
        }
    }
}
