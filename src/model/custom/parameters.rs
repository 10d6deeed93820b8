//! The parameters of a custom model: names, shapes, and how they begin.

use crate::error::Result;
use crate::kernels::tensor::Graph;
use crate::model::Layout;
use crate::model::initialise::{Initialise, Role};
use crate::rng::Stream;
use anyhow::ensure;
use candle_core::Tensor;

/// How a parameter begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// As the model's option says.
    AsModel,
    /// Drawn by a law of its own.
    Law(Initialise),
    /// These numbers.
    Numbers(Vec<f32>),
}

/// A parameter as it is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// Its shape; empty for a number.
    pub shape: Vec<usize>,
    /// How it begins.
    pub start: Start,
}

/// The parameters of a custom model.
#[derive(Debug, Clone)]
pub struct Parameters {
    kind: &'static str,
    /// What is said of the model behind its name.
    note: String,
    name: String,
    layout: Layout,
    starts: Vec<Start>,
    roles: Vec<Role>,
    law: Initialise,
}

impl Parameters {
    /// Lay parameters out in this order; `name` is what the model is called.
    pub fn new(name: Option<&str>, declared: Vec<Declared>, law: Initialise) -> Result<Self> {
        ensure!(!declared.is_empty(), "model::custom: there are no params");
        let mut numbers = 0usize;
        for (i, d) in declared.iter().enumerate() {
            let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let word = |part: &str| !part.is_empty() && part.chars().all(fine);
            ensure!(
                d.name.split('.').all(word),
                "model::custom: a parameter is called '{}', but names are letters, digits and underscores, with dots between",
                d.name
            );
            ensure!(
                declared[..i].iter().all(|e| e.name != d.name),
                "model::custom: two parameters are called '{}'",
                d.name
            );
            let count = d.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
            let all = count.and_then(|c| numbers.checked_add(c));
            ensure!(
                count != Some(0),
                "model::custom: the parameter '{}' has an axis of length 0",
                d.name
            );
            ensure!(
                all.is_some_and(|n| n < u32::MAX as usize),
                "model::custom: params asks for more than 2^32 numbers"
            );
            numbers = all.unwrap_or(0);
            if let Start::Numbers(given) = &d.start {
                ensure!(
                    Some(given.len()) == count,
                    "model::custom: the parameter '{}' of shape {:?} has an init of {} numbers",
                    d.name,
                    d.shape,
                    given.len()
                );
            }
        }
        let tensors = declared.iter().map(|d| (d.name.clone(), d.shape.clone()));
        Ok(Self {
            kind: "custom",
            note: String::new(),
            name: name.unwrap_or_default().into(),
            layout: Layout::new(tensors),
            roles: declared.iter().map(|d| role(&d.shape)).collect(),
            starts: declared.into_iter().map(|d| d.start).collect(),
            law,
        })
    }

    /// Of a model of another kind.
    pub fn of_kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    /// With something to be said of the model behind its name.
    pub fn with_note(mut self, note: String) -> Self {
        self.note = note;
        self
    }

    /// With names for some slices that belong together; see [`Layout::with_part`].
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        for (name, slices) in parts {
            self.layout = self.layout.with_part(name, slices);
        }
        self
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Take from a graph which parameters are weights of what width, and which are biases to which.
    pub(super) fn with_roles(mut self, graph: &Graph) -> Self {
        for i in 0..self.roles.len() {
            if let Some(fan) = graph.fan(i) {
                self.roles[i] = Role { fan, bias: false };
            } else if let Some(fan) = graph.weight_of_bias(i).and_then(|w| graph.fan(w)) {
                self.roles[i] = Role { fan, bias: true };
            }
        }
        self
    }

    /// What each tensor is in its layer.
    pub(super) fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The kind of the model, and its name.
    pub(super) fn describe(&self) -> String {
        let note = &self.note;
        match &*self.name {
            "" => format!("{}{note}", self.kind),
            name => format!("{} \"{name}\"{note}", self.kind),
        }
    }

    /// Draw the initial numbers.
    pub(super) fn draw(&self, stream: Stream) -> Vec<f32> {
        let given = |s: &Start| matches!(s, Start::Numbers(_));
        let mut out = match self.starts.iter().all(given) {
            // Numbers of a large model that nobody sees take a while to draw.
            true => vec![0.0; self.layout.len()],
            false => self.drawn(stream),
        };
        for (t, start) in self.layout.tensors().iter().zip(&self.starts) {
            if let Start::Numbers(given) = start {
                out[t.range.clone()].copy_from_slice(given);
            }
        }
        out
    }

    /// All of them by their laws.
    fn drawn(&self, stream: Stream) -> Vec<f32> {
        let laws = self.starts.iter().zip(&self.roles).map(|(start, role)| {
            let law = match start {
                Start::Law(law) => *law,
                _ => self.law,
            };
            (law, *role)
        });
        Initialise::draw_each(&self.layout, laws, stream)
    }

    /// The tensors of a parameter vector.
    pub(super) fn cut(&self, params: &Tensor) -> candle_core::Result<Vec<Tensor>> {
        let each = self.layout.tensors().iter().map(|t| {
            let own = params.narrow(0, t.range.start, t.range.len())?;
            own.reshape(t.shape.as_slice())
        });
        each.collect()
    }
}

/// What a tensor is taken for that is no factor of a product: of a matrix `[out, in]`, of a vector a bias.
fn role(shape: &[usize]) -> Role {
    Role {
        fan: (
            shape.last().copied().unwrap_or(1),
            shape.first().copied().unwrap_or(1),
        ),
        bias: shape.len() <= 1,
    }
}
