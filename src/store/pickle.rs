//! What a pickle describes, read by candle's stack machine, which takes calls down and makes none.
//!
//! That machine copies whatever is fetched from its memo and nests without limit, so a few bytes could ask for all memory, or for a stack that
//! ends the process. Each step is looked at before and after it is taken.

use crate::memory;
use candle_core::pickle::{Object, OpCode, Stack};

/// How deep objects are nested at most; state dicts take about ten.
const DEEPEST: usize = 60;
/// Objects that may be copied or looked through; ten thousand tensors, and a million losses beside them, take about five million.
const MOST: usize = 1 << 23;
/// The longest pickle; tensors are beside it.
pub(super) const LONGEST: u64 = 1 << 26;

/// The object of a pickle; an error is a clause about it.
pub(super) fn parse(bytes: &[u8]) -> Result<Object, String> {
    let largest = (bytes.len() * size_of::<Object>()) as u128;
    memory::check(largest, "what its pickle may describe").map_err(|e| e.to_string())?;
    let (mut rest, mut stack, mut left) = (bytes, Stack::empty(), MOST);
    loop {
        let op = *rest.first().ok_or("its pickle is cut off")?;
        if OpCode::try_from(op).is_err() {
            return Err(format!(
                "its pickle has the op-code {op}, which PyTorch does not write by default; save it by torch.save(model.state_dict(), path) without pickle_protocol, \
                 and let it hold nothing but tensors, numbers and texts"
            ));
        }
        if op == b'X' && text_length(rest).is_none_or(|n| n > rest.len()) {
            return Err("its pickle is cut off within a text".into());
        }
        consumed(op, stack.stack())
            .iter()
            .try_for_each(|o| look(o, DEEPEST, &mut left))?;
        let read = stack.read(&mut rest);
        if read.map_err(damaged)? {
            return stack.finalize().map_err(damaged);
        }
        // Both directions of the memo copy.
        if let (b'q' | b'r' | b'h' | b'j', Some(top)) = (op, stack.stack().last()) {
            look(top, DEEPEST, &mut left)?;
        }
    }
}

fn damaged(e: candle_core::Error) -> String {
    let text: String = e.to_string().chars().take(120).collect();
    let line = text.lines().next().unwrap_or_default();
    format!("its pickle is damaged ({line}); get the file again")
}

/// Bytes from the op-code of a text to its end.
fn text_length(rest: &[u8]) -> Option<usize> {
    let length = rest.get(1..5)?.try_into().ok()?;
    (u32::from_le_bytes(length) as usize).checked_add(5)
}

/// What an op-code is about to put into another object. So nothing on the stack is nested deeper than what was looked through, and one more.
fn consumed(op: u8, stack: &[Object]) -> &[Object] {
    let count = match op {
        b't' | b'u' | b'e' | b'd' => {
            let above = stack.iter().rev().take_while(|o| **o != Object::Mark);
            above.count()
        }
        b'a' | b'Q' | 0x85 => 1,
        b's' | b'R' | b'b' | 0x81 | 0x86 => 2,
        0x87 => 3,
        _ => 0,
    };
    &stack[stack.len().saturating_sub(count)..]
}

/// Look through an object, which must be neither too deep nor too large.
fn look(object: &Object, deepest: usize, left: &mut usize) -> Result<(), String> {
    let deepest = deepest.checked_sub(1);
    let size = match object {
        Object::Unicode(text) => 1 + text.len() / 64,
        _ => 1,
    };
    let (Some(deepest), Some(rest)) = (deepest, left.checked_sub(size)) else {
        return Err(
            "its pickle is nested or repeated beyond what a state dict is; save model.state_dict() alone"
                .into(),
        );
    };
    *left = rest;
    let mut each = |o: &Object| look(o, deepest, left);
    match object {
        Object::Tuple(all) | Object::List(all) => all.iter().try_for_each(each),
        Object::Dict(all) => all
            .iter()
            .try_for_each(|(k, v)| each(k).and_then(|()| each(v))),
        Object::Reduce { callable, args } | Object::Build { callable, args } => {
            each(callable).and_then(|()| each(args))
        }
        Object::PersistentLoad(id) => each(id),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_all_memory_or_stack_is_refused() {
        let said = |bytes: &[u8]| parse(bytes).unwrap_err();
        // A tuple of a tuple of a tuple …
        let mut deep = vec![b')'];
        deep.extend([0x85; 1_000_000]);
        deep.push(b'.');
        assert!(said(&deep).contains("nested"), "{}", said(&deep));
        // The same through lists, the innermost not the last of its list.
        let mut lists = b"]".repeat(1000);
        lists.extend(b"(".iter().chain(b"K\x01e").copied());
        for _ in 0..998 {
            lists.extend(b"a");
        }
        lists.push(b'.');
        assert!(said(&lists).contains("nested"));
        // Each a pair of the one before, which is copied: 2^60 objects of 300 bytes.
        let mut doubled = vec![b']', b'q', 0];
        for _ in 0..60 {
            doubled.extend([b'h', 0, b'h', 0, 0x86, b'q', 0]);
        }
        doubled.push(b'.');
        assert!(said(&doubled).contains("repeated"));
        assert!(said(b"X\xff\xff\xff\xffabc").contains("cut off"));
        assert!(said(b"\x80\x02]").contains("cut off"));
        assert!(said(b"\x80\x04\x95").contains("op-code 149"));
        for bad in [
            &b"."[..],
            b"R.",
            b"a.",
            b"u.",
            b"h\x07.",
            b"K\x01K\x02K\x03s.",
        ] {
            assert!(said(bad).contains("damaged"), "{bad:?}");
        }
        assert_eq!(
            parse(b"\x80\x02K\x07\x85."),
            Ok(Object::Tuple(vec![Object::Int(7)]))
        );
    }
}
