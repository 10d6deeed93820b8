//! A column of tokens of a Parquet file: lists, each a text, or numbers, one text.

use crate::error::{Result, of_package};
use crate::memory::Growing;
use anyhow::{Context, bail, ensure};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use std::path::Path;
use std::sync::Arc;

/// A column: what messages call it, its numbers, and the lengths of its lists, if it has lists.
pub type Column = (String, Vec<f64>, Option<Vec<usize>>);

/// The column that is chosen of those that hold whole numbers or lists of them.
pub fn read(path: &str, choose: impl Fn(&[String]) -> Result<String>) -> Result<Column> {
    // The library panics at some damaged files.
    let read = of_package("it is damaged", || column(path, choose));
    read.with_context(|| format!("cannot read '{path}' as Parquet"))
}

fn column(path: &str, choose: impl Fn(&[String]) -> Result<String>) -> Result<Column> {
    let reader = SerializedFileReader::new(crate::store::disk::open(Path::new(path))?)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns = schema.root_schema().get_fields();
    let names: Vec<_> = columns.iter().map(|c| c.name().to_string()).collect();
    let name = choose(&names)?;
    let one = columns.iter().find(|c| c.name() == name).cloned();
    let projection = Type::group_type_builder(schema.root_schema().name())
        .with_fields(one.into_iter().collect::<Vec<Arc<Type>>>())
        .build()?;
    let what = format!("'{path}', column '{name}'");
    let (mut numbers, mut lengths) = (Vec::new(), Vec::new());
    let mut growing = Growing::new(&what);
    let mut lists = None;
    for (i, row) in reader.get_row_iter(Some(projection))?.enumerate() {
        let row = row?;
        let Some((_, field)) = row.get_column_iter().next() else {
            continue;
        };
        let before = numbers.len();
        let list = match field {
            Field::ListInternal(list) => {
                for x in list.elements() {
                    numbers.push(number(x).with_context(|| format!("{what}: row {i}"))?);
                }
                true
            }
            Field::Null => bail!("{what}: row {i} is null; fill it or leave it out"),
            x => {
                numbers.push(number(x).with_context(|| format!("{what}: row {i}"))?);
                false
            }
        };
        ensure!(
            *lists.get_or_insert(list) == list,
            "{what}: row {i} is {}",
            if list { "a list" } else { "no list" }
        );
        lengths.push(numbers.len() - before);
        growing.reached(size_of_val(&numbers[..]))?;
    }
    Ok((what, numbers, lists.unwrap_or(false).then_some(lengths)))
}

fn number(field: &Field) -> Result<f64> {
    Ok(match field {
        Field::Byte(x) => (*x).into(),
        Field::Short(x) => (*x).into(),
        Field::Int(x) => (*x).into(),
        Field::Long(x) => *x as f64,
        Field::UByte(x) => (*x).into(),
        Field::UShort(x) => (*x).into(),
        Field::UInt(x) => (*x).into(),
        Field::ULong(x) => *x as f64,
        other => bail!("{other} is no whole number, as tokens are"),
    })
}
