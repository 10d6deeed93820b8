//! `execute_request`: runs a cell.

use super::super::evaluator::{Evaluator, Failure, Outcome};
use super::super::output::Output;
use super::super::rich::Rich;
use super::super::state::Request;
use super::{Shell, guarded};
use serde_json::{Map, Value, json};
use std::time::Instant;

impl<E: Evaluator> Shell<E> {
    pub(super) fn execute(&mut self, request: &Request) {
        let (core, message) = (self.core.clone(), &request.message);
        if self.is_aborted(request) || !core.handle.begin(|| self.evaluator.rearm()) {
            return core.reply(request, "execute_reply", &json!({"status": "aborted"}));
        }
        let silent = message.flag("silent", false);
        let stored = !silent && message.flag("store_history", true);
        let count = self.count.saturating_add(1);
        if stored {
            self.count = count;
        }
        let code = message.text("code");
        if !silent {
            let content = json!({"code": code, "execution_count": count});
            core.iopub.send(&message.header, "execute_input", content);
        }
        let out = Output::of(&core, request, silent);
        let evaluator = &mut self.evaluator;
        let outcome = guarded(|| evaluator.execute(code, count, &out)).unwrap_or_else(Outcome::Err);
        let expressions = match outcome {
            Outcome::Ok(_) => self.express(&message.content["user_expressions"]),
            _ => json!({}),
        };
        core.handle.end();
        let pages = out.end();
        if stored {
            self.history.add(count, code, plain(&outcome));
        }
        let mut reply = self.conclude(request, count, silent, outcome);
        reply["execution_count"] = json!(count);
        reply["user_expressions"] = expressions;
        reply["payload"] = pages.into();
        // What was printed comes before the reply, for clients that look at nothing else.
        core.iopub.flush_now();
        core.reply(request, "execute_reply", &reply);
    }

    /// Whether an earlier cell has failed after this one was sent.
    fn is_aborted(&self, request: &Request) -> bool {
        let failed = self.failed.as_ref();
        failed.is_some_and(|(session, when)| {
            session == request.message.session() && request.arrived <= *when
        })
    }

    /// Show how a cell ended. Returns the start of the reply.
    fn conclude(&mut self, request: &Request, count: u32, silent: bool, outcome: Outcome) -> Value {
        let message = &request.message;
        let show = |kind, content| {
            if !silent {
                self.core.iopub.send(&message.header, kind, content);
            }
        };
        match outcome {
            Outcome::Ok(value) => {
                if let Some(rich) = value {
                    show("execute_result", result(count, rich));
                }
                json!({"status": "ok"})
            }
            failed => {
                let mut reply = error(failed);
                show("error", reply.clone());
                if message.flag("stop_on_error", true) {
                    self.failed = Some((message.session().into(), Instant::now()));
                }
                reply["status"] = json!("error");
                reply
            }
        }
    }

    /// Values of the expressions that a client wants to know after the cell.
    fn express(&mut self, expressions: &Value) -> Value {
        let mut values = Map::new();
        for (name, code) in expressions.as_object().into_iter().flatten() {
            let (code, out) = (code.as_str().unwrap_or_default(), Output::nowhere());
            let outcome = guarded(|| self.evaluator.express(code, &out));
            let value = match outcome.unwrap_or_else(Outcome::Err) {
                Outcome::Ok(rich) => {
                    let rich = rich.unwrap_or_default();
                    json!({"status": "ok", "data": rich.data, "metadata": rich.metadata})
                }
                failed => {
                    let mut value = error(failed);
                    value["status"] = json!("error");
                    value
                }
            };
            values.insert(name.clone(), value);
        }
        Value::Object(values)
    }
}

fn plain(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok(Some(rich)) => rich.plain(),
        _ => None,
    }
}

fn result(count: u32, rich: Rich) -> Value {
    // Not by the macro, which would copy what may be large.
    let mut content = Map::new();
    content.insert("execution_count".into(), json!(count));
    content.insert("data".into(), Value::Object(rich.data));
    content.insert("metadata".into(), Value::Object(rich.metadata));
    Value::Object(content)
}

fn error(outcome: Outcome) -> Value {
    let failure = match outcome {
        Outcome::Err(failure) => failure,
        _ => Failure {
            name: "Interrupted".into(),
            value: "the cell was interrupted".into(),
            traceback: vec!["Interrupted: the cell was interrupted".into()],
        },
    };
    json!({"ename": failure.name, "evalue": failure.value, "traceback": failure.traceback})
}
