//! Bytes of the fuzzer, as everything that this program reads. The variable READER says as what.

#![no_main]

mod readers;
mod scripts;

use libfuzzer_sys::fuzz_target;
use readers::Reader;
use std::cell::RefCell;

thread_local! {
    static READER: RefCell<Reader> = RefCell::new(first());
}

fn first() -> Reader {
    // The fuzzer's ends the process, also where a panic is to be caught.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !ergodic::error::panic_is_caught() {
            hook(info);
        }
    }));
    Reader::named(&std::env::var("READER").expect("READER names no reader"))
}

fuzz_target!(|bytes: &[u8]| READER.with_borrow_mut(|reader| reader.read(bytes)));
