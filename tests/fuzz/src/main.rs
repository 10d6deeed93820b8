//! Bytes of the fuzzer, as everything that this program reads. The variable READER says as what.

#![no_main]

mod readers;
mod scripts;

use libfuzzer_sys::fuzz_target;
use readers::Reader;
use std::cell::RefCell;

thread_local! {
    static READER: RefCell<Reader> = RefCell::new(Reader::named(&std::env::var("READER").expect("READER names no reader")));
}

fuzz_target!(|bytes: &[u8]| READER.with_borrow_mut(|reader| reader.read(bytes)));
