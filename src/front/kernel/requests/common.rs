//! Requests that are answered without the evaluator, on either channel.

use super::super::message::VERSION;
use super::super::note::note;
use super::super::state::{Core, Request};
use serde_json::{Value, json};

/// Answer a request; one that is not known gets an error, so that nobody waits for ever.
pub fn answer(core: &Core, request: &Request) {
    let message = &request.message;
    match message.kind() {
        "kernel_info_request" => core.reply(request, "kernel_info_reply", &kernel_info(core)),
        "comm_info_request" => {
            core.reply(
                request,
                "comm_info_reply",
                &json!({"status": "ok", "comms": {}}),
            );
        }
        // Nobody listens here: the other side is told to close.
        "comm_open" => {
            let content = json!({"comm_id": message.content["comm_id"], "data": {}});
            core.iopub.send(&message.header, "comm_close", content);
        }
        "comm_msg" | "comm_close" => {}
        "usage_request" => core.reply(request, "usage_reply", &core.usage.read()),
        "debug_request" => core.reply(request, "debug_reply", &no_debugger(&message.content)),
        "interrupt_request" => {
            core.handle.interrupt();
            core.reply(request, "interrupt_reply", &json!({"status": "ok"}));
        }
        "shutdown_request" => {
            let content = json!({"status": "ok", "restart": message.flag("restart", false)});
            core.reply(request, "shutdown_reply", &content);
            // The other clients learn it too.
            core.iopub.send(&message.header, "shutdown_reply", content);
        }
        other => refuse(core, request, other),
    }
}

fn refuse(core: &Core, request: &Request, kind: &str) {
    let Some(stem) = kind.strip_suffix("_request") else {
        return note(format_args!("a message of unknown type {kind} is ignored"));
    };
    let value = format!("this kernel does not answer {kind} here");
    let content =
        json!({"status": "error", "ename": "NotSupported", "evalue": value, "traceback": [value]});
    core.reply(request, &format!("{stem}_reply"), &content);
}

fn kernel_info(core: &Core) -> Value {
    let info = &core.info;
    let mut language = json!({
        "name": info.language,
        "version": info.language_version,
        "mimetype": info.mimetype,
        "file_extension": info.file_extension,
    });
    if !info.codemirror_mode.is_null() {
        language["codemirror_mode"] = info.codemirror_mode.clone();
    }
    if !info.pygments_lexer.is_empty() {
        language["pygments_lexer"] = json!(info.pygments_lexer);
    }
    let link = |(text, url): &(String, String)| json!({"text": text, "url": url});
    json!({
        "status": "ok",
        "protocol_version": VERSION,
        "implementation": info.implementation,
        "implementation_version": info.implementation_version,
        "language_info": language,
        "banner": info.banner,
        "help_links": info.help_links.iter().map(link).collect::<Vec<_>>(),
        "debugger": false,
        "supported_features": [],
    })
}

/// The content of a debug reply is a response of the Debug Adapter Protocol.
fn no_debugger(request: &Value) -> Value {
    json!({
        "type": "response",
        "seq": 0,
        "request_seq": request["seq"],
        "command": request["command"],
        "success": false,
        "message": "this kernel has no debugger",
        "body": {},
    })
}
