//! A mixture of two Gaussians with tied means: two parameters, two modes, real examples.

use crate::error::Result;
use crate::model::Layout;
use crate::model::loss::Sums;
use crate::options::{Entry, Kind, Options, Range, option, optional};
use crate::rng::{Purpose, Stream};
use crate::target::{Potential, Rows, Workspace};
use std::sync::Arc;

/// `potential::mixture`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "mixture",
    doc: "A mixture of two Gaussians with tied means: loss_i = -ln[½ N(x_i; θ_1, 1/b) + ½ N(x_i; θ_1 + θ_2, 1/b)], b = `precision`.\n\n\
          The parameters are the tensor `theta` = (θ_1, θ_2). The examples x_i are real, and minibatches select them: data drawn from the \
          mixture at θ = `means`, either component with probability ½, or those given as `data`.\n\n\
          Exact: the likelihood does not change when θ becomes (θ_1 + θ_2, -θ_2), which exchanges the components; so beside the mode near \
          (0, 2) there is one of the same likelihood near (2, -2), and only the prior tells them apart. Moments are known by two-dimensional \
          quadrature.\n\n\
          Use energy: \"sum\", so that U = Σ_i loss_i + R is minus the log posterior up to a constant; the prior is not part of it, add \
          prior::gaussian(0.1).\n\n\
          Source: Ohzeki & Ichiki 2015, eqs. 30-31, with n = 100 and b = 10; tied means as in Welling & Teh 2011, section 5.1. The \
          gradient with respect to θ_2 in eq. 36 of the former is misprinted: that of ln(e_1 + e_2) is b (x - θ_1 - θ_2) e_2/(e_1 + e_2), \
          e_k being the two exponentials.",
    arguments: &[],
    options: &[
        option(
            "precision",
            Kind::Float(Range::Positive),
            "10",
            "b, the inverse variance of either component.",
        ),
        optional(
            "examples",
            Kind::Int(Range::Between(1.0, 1e8)),
            "100, or as many as `data` has",
            "n, the number of examples.",
        ),
        option(
            "means",
            Kind::Floats(Range::Any),
            "[0, 2]",
            "(θ_1, θ_2) that the data are drawn at: the means are θ_1 and θ_1 + θ_2. Not used with `data`.",
        ),
        option(
            "seed",
            Kind::Int(Range::NonNegative),
            "1",
            "Seed of the data. Not used with `data`.",
        ),
        optional(
            "data",
            Kind::Floats(Range::Any),
            "drawn from the mixture",
            "The examples x_i.",
        ),
    ],
    example: "target(potential::mixture(#{ examples: 50 }), #{ energy: \"sum\", prior: prior::gaussian(0.1) })",
    build: |o| Ok(Arc::new(Mixture::from_options(o)?)),
};

/// The losses of examples under the mixture.
struct Mixture {
    text: String,
    layout: Layout,
    precision: f64,
    /// ln 2 + ½ ln(2π/b), which makes the densities integrate to 1.
    constant: f64,
    data: Vec<f64>,
}

impl Mixture {
    fn from_options(o: &Options) -> Result<Self> {
        let precision = o.float("precision")?;
        let (data, origin) = match o.floats("data") {
            Some(data) => (given(o, data)?, "given".to_string()),
            None => drawn(o, precision)?,
        };
        Ok(Self {
            text: format!(
                "mixture of two Gaussians with tied means, precision {precision}, data {origin}, N = 2"
            ),
            layout: Layout::new([("theta".to_string(), vec![2])]),
            precision,
            constant: std::f64::consts::LN_2 + 0.5 * (std::f64::consts::TAU / precision).ln(),
            data,
        })
    }

    /// Loss and its gradient, summed over some examples. The loop does no more than it must: its steps last a microsecond.
    #[inline]
    fn sum(&self, theta: [f64; 2], examples: impl Iterator<Item = f64>) -> (f64, [f64; 2]) {
        let (mut count, mut squares, mut off, mut off_second) = (0.0, 0.0, 0.0, 0.0);
        // Σ ln(1 + e) is taken as the logarithm of a product, for one logarithm in hundreds of examples.
        let (mut logarithms, mut product) = (0.0, 1.0f64);
        for x in examples {
            // Distances to the means of the first and the second component.
            let (first, second) = (x - theta[0], x - theta[0] - theta[1]);
            // ln(e_2/e_1), without the difference of two squares.
            let odds = 0.5 * self.precision * theta[1] * (first + second);
            let small = (-odds.abs()).exp();
            // Of the larger exponential; the smaller one is `small` times it.
            let (nearest, share) = if odds > 0.0 {
                (second, 1.0 / (1.0 + small))
            } else {
                (first, small / (1.0 + small))
            };
            squares += nearest * nearest;
            product *= 1.0 + small;
            if product > 1e250 {
                logarithms += product.ln();
                product = 1.0;
            }
            // share is e_2/(e_1 + e_2).
            off += first - share * theta[1];
            off_second += share * second;
            count += 1.0;
        }
        let loss =
            count * self.constant + 0.5 * self.precision * squares - (logarithms + product.ln());
        (loss, [-self.precision * off, -self.precision * off_second])
    }
}

/// The user's data.
fn given(o: &Options, data: Vec<f64>) -> Result<Vec<f64>> {
    anyhow::ensure!(!data.is_empty(), "{}: option 'data' is empty", o.owner());
    if let Some(examples) = o.opt_int("examples") {
        anyhow::ensure!(
            examples == data.len() as u64,
            "{}: option 'examples' is {examples}, but 'data' has {} numbers; leave 'examples' out",
            o.owner(),
            data.len()
        );
    }
    Ok(data)
}

/// Data from the mixture at the given means, and where they are from.
fn drawn(o: &Options, precision: f64) -> Result<(Vec<f64>, String)> {
    let means = o.floats("means").unwrap_or_default();
    let [first, difference] = means[..] else {
        anyhow::bail!(
            "{}: option 'means' has {} numbers, but must have two, θ_1 and θ_2",
            o.owner(),
            means.len()
        );
    };
    let (examples, seed) = (o.opt_int("examples").unwrap_or(100), o.int("seed")?);
    let components = Stream::new(seed, Purpose::Dataset, 0, 0);
    let normals = components.sub_stream(1);
    let data = (0..examples as u32)
        .map(|i| {
            let second = components.uniform(i) < 0.5;
            let mean = if second { first + difference } else { first };
            mean + normals.normal(i) / precision.sqrt()
        })
        .collect();
    let origin = format!("drawn at ({first}, {difference}) with seed {seed}");
    Ok((data, origin))
}

impl Potential for Mixture {
    fn describe(&self) -> String {
        self.text.clone()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn examples(&self) -> usize {
        self.data.len()
    }

    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        _: &mut Workspace,
    ) -> Result<Sums> {
        let theta = [w[0] as f64, w[1] as f64];
        let (loss, gradient) = match rows {
            Rows::All => self.sum(theta, self.data.iter().copied()),
            Rows::Indices(i) => self.sum(theta, i.iter().map(|i| self.data[*i as usize])),
        };
        if let Some(g) = grad {
            g[0] = gradient[0] as f32;
            g[1] = gradient[1] as f32;
        }
        Ok(Sums { loss, errors: 0.0 })
    }

    fn split_sums(&self, _: &[f32], split: &str, _: &mut Workspace) -> Result<(Sums, usize)> {
        anyhow::bail!("an analytic target has no split \"{split}\"")
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.data.iter().for_each(|x| hash.update(&x.to_le_bytes()));
    }
}
