//! Requests about code that is not run: completion, inspection, completeness, history.

use super::super::cursor;
use super::super::evaluator::{Completeness, Completions, Evaluator};
use super::super::message::Message;
use super::super::state::Request;
use super::{Shell, guarded};
use serde_json::{Value, json};

impl<E: Evaluator> Shell<E> {
    pub(super) fn complete(&self, request: &Request) {
        let message = &request.message;
        let (code, at) = (message.text("code"), position(message));
        let nothing = Completions {
            matches: Vec::new(),
            start: at,
            end: at,
        };
        let found = guarded(|| self.evaluator.complete(code, at)).unwrap_or(nothing);
        let (start, end) = (count(message, found.start), count(message, found.end));
        let typed = found.matches.iter().map(|m| {
            let mut typed = json!({"start": start, "end": end, "text": m.text});
            for (key, value) in [("type", &m.kind), ("signature", &m.signature)] {
                if let Some(value) = value {
                    typed[key] = json!(value);
                }
            }
            typed
        });
        let content = json!({
            "status": "ok",
            "matches": found.matches.iter().map(|m| &m.text).collect::<Vec<_>>(),
            "cursor_start": start,
            "cursor_end": end,
            "metadata": {"_jupyter_types_experimental": typed.collect::<Vec<_>>()},
        });
        self.core.reply(request, "complete_reply", &content);
    }

    pub(super) fn inspect(&self, request: &Request) {
        let message = &request.message;
        let detail = u8::from(message.content["detail_level"].as_u64() >= Some(1));
        let look = || {
            self.evaluator
                .inspect(message.text("code"), position(message), detail)
        };
        let found = guarded(look).unwrap_or_default();
        let content = match found {
            Some(rich) => {
                json!({"status": "ok", "found": true, "data": rich.data, "metadata": rich.metadata})
            }
            None => json!({"status": "ok", "found": false, "data": {}, "metadata": {}}),
        };
        self.core.reply(request, "inspect_reply", &content);
    }

    pub(super) fn is_complete(&self, request: &Request) {
        let code = request.message.text("code");
        let content = match guarded(|| self.evaluator.is_complete(code)) {
            Ok(Completeness::Complete) => json!({"status": "complete"}),
            Ok(Completeness::Incomplete { indent }) => {
                json!({"status": "incomplete", "indent": indent})
            }
            Ok(Completeness::Invalid) => json!({"status": "invalid"}),
            Ok(Completeness::Unknown) | Err(_) => json!({"status": "unknown"}),
        };
        self.core.reply(request, "is_complete_reply", &content);
    }

    pub(super) fn recall(&self, request: &Request) {
        let history = self.history.answer(&request.message.content);
        let content = json!({"status": "ok", "history": history});
        self.core.reply(request, "history_reply", &content);
    }
}

/// The cursor in code points, within the code; at its end if the client does not say.
fn position(message: &Message) -> usize {
    let code = message.text("code");
    let end = code.chars().count();
    let sent = message.content["cursor_pos"].as_u64();
    match sent.and_then(|p| usize::try_from(p).ok()) {
        Some(unit) if message.counts_utf16() => cursor::point_of_utf16(code, unit),
        Some(point) => point.min(end),
        None => end,
    }
}

/// A position in code points as the client counts.
fn count(message: &Message, point: usize) -> Value {
    match message.counts_utf16() {
        true => json!(cursor::utf16_of_point(message.text("code"), point)),
        false => json!(point),
    }
}
