//! Norms with their weights and biases.

use super::super::norm::Norm;
use super::back::Target;
use super::form::Gather;
use super::passes::{Passes, Result, int, long};
use super::{Argument, At, View};

/// Channels, and where weights (or biases) are; nowhere if there are none.
fn channel(of: Option<&View>) -> [Argument; 2] {
    match of {
        Some(v) => [Argument::At(v.at), long(v.chain)],
        None => [Argument::Nowhere, long(0)],
    }
}

/// Numbers and the gradient of what came out.
fn pair(x: View, d: View) -> [Argument; 4] {
    let [a, b] = [x, d].map(|v| [Argument::At(v.at), long(v.chain)]);
    [a[0], a[1], b[0], b[1]]
}

impl Passes<'_> {
    /// Mean and deviation of every group.
    fn moments(&mut self, n: &Norm, x: View, rows: usize) -> At {
        let groups = rows * x.width / n.size;
        let to = self.scratch(self.chains * 2 * groups);
        let arguments = vec![
            Argument::At(x.at),
            long(x.chain),
            int(self.chains),
            int(groups),
            int(n.size),
            int(n.centre.into()),
            Argument::Float(n.epsilon),
            Argument::At(to),
        ];
        self.launch("norm_moments", groups, arguments);
        to
    }

    pub(super) fn norm(&mut self, n: &Norm, of: &[View], to: Result) {
        let (x, rows) = (of[0], to.rows);
        let moments = self.moments(n, x, rows);
        let mut arguments = vec![Argument::At(x.at), long(x.chain)];
        arguments.extend([self.chains, rows, to.width, n.size].map(int));
        arguments.push(Argument::At(moments));
        arguments.extend(channel(of.get(1)));
        arguments.extend(channel(of.get(2)));
        arguments.extend([int(n.channels), int(n.inner)]);
        arguments.extend([Argument::At(to.y), long(to.chain)]);
        self.launch("norm_values", rows * to.width, arguments);
    }

    /// The gradient with respect to the numbers, the weights or the biases.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn norm_back(
        &mut self,
        n: &Norm,
        back: &Gather,
        which: usize,
        of: &[View],
        d: View,
        rows: usize,
        target: Target,
    ) {
        if which == 2 {
            return self.sum(back, d, rows, target);
        }
        if which == 1 {
            let (x, width) = (of[0], d.width);
            let moments = Argument::At(self.moments(n, x, rows));
            let both = pair(x, d);
            let terms = self.scratch(self.chains * rows * width);
            let sizes = [self.chains, rows, width, n.size].map(int);
            let arguments = [&both[..], &sizes, &[moments, Argument::At(terms)]].concat();
            self.launch("norm_terms", rows * width, arguments);
            let terms = View {
                at: terms,
                chain: rows * width,
                row: width,
                width,
            };
            return self.sum(back, terms, rows, target);
        }
        self.norm_to_numbers(n, of, d, rows, target);
    }

    /// The gradient with respect to the numbers.
    pub(super) fn norm_to_numbers(
        &mut self,
        n: &Norm,
        of: &[View],
        d: View,
        rows: usize,
        target: Target,
    ) {
        let (x, width) = (of[0], d.width);
        let moments = Argument::At(self.moments(n, x, rows));
        let both = pair(x, d);
        let groups = rows * width / n.size;
        let sums = Argument::At(self.scratch(self.chains * 2 * groups));
        let weight = channel(of.get(1));
        let channels = [int(n.channels), int(n.inner)];
        let sizes = [self.chains, groups, width, n.size, n.centre.into()].map(int);
        let arguments = [&both[..], &sizes, &[moments], &weight, &channels, &[sums]].concat();
        self.launch("norm_sums", groups, arguments);
        let sizes = [self.chains, rows, width, n.size].map(int);
        let to = [
            Argument::At(target.at),
            long(target.chain),
            Argument::Int(target.add.into()),
        ];
        let arguments = [&both[..], &sizes, &[moments, sums], &weight, &channels, &to].concat();
        self.launch("norm_slopes", rows * width, arguments);
    }
}
