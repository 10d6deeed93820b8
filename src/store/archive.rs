//! Archives: what a checkpoint keeps of an object. One function names its numbers, for saving and for restoring.

use super::checkpoint::{DataRef, TensorData, TensorRef, Tensors};
use crate::error::Result;
use anyhow::{anyhow, ensure};
use std::collections::HashMap;

/// Something of which checkpoints keep numbers.
pub trait Kept {
    /// Show all numbers to an archive, which saves or restores them.
    ///
    /// # Errors
    /// If the archive has others than the object can have.
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()>;
}

/// Named tensors that are being saved or restored.
pub enum Archive<'a> {
    /// What was shown so far; large arrays stay where they are.
    Saving(Vec<(String, Vec<usize>, Held<'a>)>),
    /// What was not asked for yet.
    Restoring(HashMap<String, TensorData>),
}

/// Numbers that are somewhere else, or here.
pub enum Held<'a> {
    /// Elsewhere.
    There(DataRef<'a>),
    /// Elsewhere: a list to which numbers are only added.
    Grows(DataRef<'a>),
    /// Here.
    Here(TensorData),
}

/// A type of numbers that archives have.
pub trait Number: Copy + 'static {
    /// Numbers where they are.
    fn view(numbers: &[Self]) -> DataRef<'_>;
    /// Numbers of one's own.
    fn own(numbers: Vec<Self>) -> TensorData;
    /// The numbers of a tensor; none if they are of another type.
    fn of(data: TensorData) -> Option<Vec<Self>>;
}

macro_rules! number {
    ($($t:ty => $kind:ident),*) => {$(
        impl Number for $t {
            fn view(numbers: &[Self]) -> DataRef<'_> {
                DataRef::$kind(numbers)
            }

            fn own(numbers: Vec<Self>) -> TensorData {
                TensorData::$kind(numbers)
            }

            fn of(data: TensorData) -> Option<Vec<Self>> {
                match data {
                    TensorData::$kind(x) => Some(x),
                    _ => None,
                }
            }
        }
    )*};
}

number!(f32 => F32, f64 => F64, u64 => U64);

impl From<Tensors> for Archive<'_> {
    fn from(tensors: Tensors) -> Self {
        let found = tensors.into_iter().map(|(name, t)| (name, t.data));
        Self::Restoring(found.collect())
    }
}

impl<'a> Archive<'a> {
    /// The tensors of an object.
    pub fn of(object: &'a mut impl Kept) -> Result<Self> {
        let mut out = Self::Saving(Vec::new());
        object.keep(&mut out)?;
        Ok(out)
    }

    /// Let an object have the tensors of a checkpoint.
    pub fn restore(object: &'a mut impl Kept, tensors: Tensors) -> Result<()> {
        object.keep(&mut Self::from(tensors))
    }

    /// What a checkpoint saves.
    pub fn tensors(&self) -> Vec<(String, TensorRef<'_>)> {
        let Self::Saving(all) = self else {
            return Vec::new();
        };
        let mut out = Vec::with_capacity(all.len());
        for (name, shape, held) in all {
            let data = match held {
                Held::There(data) | Held::Grows(data) => *data,
                Held::Here(TensorData::F32(x)) => DataRef::F32(x),
                Held::Here(TensorData::F64(x)) => DataRef::F64(x),
                Held::Here(TensorData::U64(x)) => DataRef::U64(x),
                Held::Here(TensorData::I64(x)) => DataRef::I64(x),
            };
            let (shape, grows) = (shape.clone(), matches!(held, Held::Grows(_)));
            out.push((name.clone(), TensorRef { shape, data, grows }));
        }
        out
    }

    /// Whether the object is to be restored.
    pub fn restores(&self) -> bool {
        matches!(self, Self::Restoring(_))
    }

    fn take<T: Number>(found: &mut HashMap<String, TensorData>, name: &str) -> Result<Vec<T>> {
        let data = found
            .remove(name)
            .ok_or_else(|| anyhow!("the checkpoint has no tensor '{name}'"))?;
        T::of(data)
            .ok_or_else(|| anyhow!("the checkpoint's '{name}' has another type than it should"))
    }

    /// Numbers in so many rows, always as many as there are now.
    pub fn rows<T: Number>(
        &mut self,
        name: &str,
        numbers: &'a mut Vec<T>,
        rows: usize,
    ) -> Result<()> {
        match self {
            Self::Saving(all) => {
                let shape = vec![rows, numbers.len() / rows.max(1)];
                all.push((name.into(), shape, Held::There(T::view(numbers))));
            }
            Self::Restoring(found) => {
                let taken = Self::take(found, name)?;
                ensure!(
                    taken.len() == numbers.len(),
                    "the checkpoint's '{name}' has {} numbers, {} are needed",
                    taken.len(),
                    numbers.len()
                );
                *numbers = taken;
            }
        }
        Ok(())
    }

    /// Numbers, of which there may be more or less.
    pub fn list<T: Number>(&mut self, name: &str, numbers: &'a mut Vec<T>) -> Result<()> {
        self.held(name, numbers, Held::There)
    }

    /// Numbers to which others are only added: a checkpoint writes what is new.
    pub fn grows<T: Number>(&mut self, name: &str, numbers: &'a mut Vec<T>) -> Result<()> {
        self.held(name, numbers, Held::Grows)
    }

    fn held<T: Number>(
        &mut self,
        name: &str,
        numbers: &'a mut Vec<T>,
        held: fn(DataRef<'a>) -> Held<'a>,
    ) -> Result<()> {
        match self {
            Self::Saving(all) => {
                let shape = vec![numbers.len()];
                all.push((name.into(), shape, held(T::view(numbers))));
            }
            Self::Restoring(found) => *numbers = Self::take(found, name)?,
        }
        Ok(())
    }

    /// Numbers that are made from an object, and it from them.
    pub fn made<T: Number, O>(
        &mut self,
        name: &str,
        object: &mut O,
        numbers: impl FnOnce(&O) -> Vec<T>,
        restored: impl FnOnce(&mut O, Vec<T>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Saving(all) => {
                let made = numbers(object);
                all.push((name.into(), vec![made.len()], Held::Here(T::own(made))));
                Ok(())
            }
            Self::Restoring(found) => restored(object, Self::take(found, name)?),
        }
    }

    /// Numbers that are few enough to be copied, and of which there may be more or less.
    pub fn copied<T: Number>(&mut self, name: &str, numbers: &mut Vec<T>) -> Result<()> {
        self.made(name, numbers, Vec::clone, |numbers, found| {
            *numbers = found;
            Ok(())
        })
    }

    /// A few numbers.
    pub fn values<T: Number, const N: usize>(
        &mut self,
        name: &str,
        values: [&mut T; N],
    ) -> Result<()> {
        let mut values = values;
        self.made(
            name,
            &mut values,
            |values| values.iter().map(|v| **v).collect(),
            |values, found: Vec<T>| {
                ensure!(
                    found.len() == N,
                    "the checkpoint's '{name}' has {} numbers, {N} are needed",
                    found.len()
                );
                values.iter_mut().zip(found).for_each(|(v, f)| **v = f);
                Ok(())
            },
        )
    }

    /// The numbers of a part, whose names begin with this.
    pub fn within(&mut self, prefix: &str, part: &'a mut impl Kept) -> Result<()> {
        match self {
            Self::Saving(all) => {
                let mut own = Self::Saving(Vec::new());
                part.keep(&mut own)?;
                if let Self::Saving(own) = own {
                    let named = |(name, shape, held)| (format!("{prefix}{name}"), shape, held);
                    all.extend(own.into_iter().map(named));
                }
                Ok(())
            }
            Self::Restoring(found) => {
                let own = found.extract_if(|name, _| name.starts_with(prefix));
                let own = own.map(|(name, data)| (name[prefix.len()..].to_string(), data));
                part.keep(&mut Self::Restoring(own.collect()))
            }
        }
    }

    /// Items of N numbers each, of which there may be more or less.
    pub fn table<R, const N: usize>(
        &mut self,
        name: &str,
        rows: &mut Vec<R>,
        numbers: fn(&R) -> [f64; N],
        row: fn(&[f64; N]) -> R,
    ) -> Result<()> {
        self.made(
            name,
            rows,
            |rows| rows.iter().flat_map(numbers).collect(),
            |rows, found| {
                let (found, rest) = found.as_chunks::<N>();
                ensure!(
                    rest.is_empty(),
                    "the checkpoint's '{name}' has rows of another length than {N}"
                );
                *rows = found.iter().map(row).collect();
                Ok(())
            },
        )
    }
}
