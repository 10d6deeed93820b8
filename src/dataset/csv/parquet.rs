//! Rows of a Parquet file, as lines of text.

use super::lines::Take;
use crate::dataset::date;
use crate::dataset::file::File;
use crate::error::{Result, of_package};
use anyhow::Context;
use csv::ByteRecord;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::path::Path;

/// The beginning of the name of a column that is the index of a pandas data frame.
const INDEX: &str = "__index_level_";
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Go through all rows; the first line has the names of the columns.
pub fn each(f: &File, take: Take) -> Result<()> {
    let mut failed = None;
    let mut take = |record: &ByteRecord, row| take(record, row).map_err(|e| failed = Some(e));
    // The library panics at some damaged files.
    let read = of_package("it is damaged", || read(&f.path, &mut take));
    match failed {
        Some(e) => Err(e),
        None => read.with_context(|| format!("cannot read '{}' as Parquet", f.path)),
    }
}

fn read(path: &str, take: &mut dyn FnMut(&ByteRecord, u64) -> Result<(), ()>) -> Result<()> {
    let reader = SerializedFileReader::new(crate::store::disk::open(Path::new(path))?)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns = schema.root_schema().get_fields();
    let kept: Vec<usize> = (0..columns.len())
        .filter(|j| !columns[*j].name().starts_with(INDEX))
        .collect();
    let ticks: Vec<i64> = columns
        .iter()
        .map(|c| ticks(c.get_basic_info().logical_type_ref()))
        .collect();
    let names: ByteRecord = kept.iter().map(|j| columns[*j].name()).collect();
    if take(&names, 0).is_err() {
        return Ok(());
    }
    for (row, number) in reader.get_row_iter(None)?.zip(1..) {
        let row = row?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let cells: ByteRecord = kept.iter().map(|j| cell(fields[*j], ticks[*j])).collect();
        if take(&cells, number).is_err() {
            break;
        }
    }
    Ok(())
}

/// Ticks of a time per second that whole numbers of a column are; 0 if they are numbers.
fn ticks(kind: Option<&LogicalType>) -> i64 {
    match kind {
        // Times in other units come as such.
        Some(LogicalType::Timestamp(t)) if t.unit == TimeUnit::NANOS => SECOND,
        _ => 0,
    }
}

/// A value as a cell of a text. Numbers have all their digits.
fn cell(field: &Field, ticks: i64) -> String {
    match field {
        Field::Null => String::new(),
        Field::Bool(b) => u8::from(*b).to_string(),
        Field::Long(t) if ticks > 0 => moment(*t, ticks),
        Field::TimestampMillis(t) => moment(*t, 1_000),
        Field::TimestampMicros(t) => moment(*t, 1_000_000),
        Field::Date(day) => date::text(i64::from(*day)),
        Field::Float16(x) => f64::from(x.to_f32()).to_string(),
        Field::Float(x) => f64::from(*x).to_string(),
        Field::Double(x) => x.to_string(),
        Field::Str(text) => text.clone(),
        // Text of writers that do not say so.
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => "a list".into(),
        other => other.to_string(),
    }
}

/// A time since 1970, as a date with a time.
fn moment(t: i64, ticks: i64) -> String {
    let (second, part) = (t.div_euclid(ticks), t.rem_euclid(ticks) * (SECOND / ticks));
    let (day, of_day) = (second.div_euclid(DAY), second.rem_euclid(DAY));
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!(
        "{} {hour:02}:{minute:02}:{second:02}.{part:09}",
        date::text(day)
    )
}

#[cfg(test)]
#[path = "parquet_tests.rs"]
mod tests;
