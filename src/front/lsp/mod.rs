//! `ergodic lsp`: what an editor asks of a script, over the Language Server Protocol on standard input and output.
//!
//! Scripts are never run: what is wrong is what `ergodic check` finds, names and texts come from the reference.

mod answers;
mod source;
mod text;

use crate::error::Result;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    Completion, DocumentSymbolRequest, Formatting, GotoDefinition, HoverRequest, Request as _,
    SignatureHelpRequest,
};
use lsp_types::{
    CompletionOptions, HoverProviderCapability, OneOf, PublishDiagnosticsParams,
    ServerCapabilities, SignatureHelpOptions, TextDocumentSyncCapability, TextDocumentSyncKind,
    Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Characters of a script that is looked at, at most.
const LONGEST: usize = 1 << 21;

/// Serve an editor until it leaves.
///
/// # Errors
/// If it does not speak the protocol, or its end closes.
pub fn serve() -> Result<()> {
    let (connection, threads) = Connection::stdio();
    let about = json!({
        "capabilities": capabilities(),
        "serverInfo": {"name": "ergodic", "version": env!("CARGO_PKG_VERSION")},
    });
    let (id, _) = connection.initialize_start()?;
    connection.initialize_finish(id, about)?;
    let mut server = Server {
        connection: &connection,
        texts: HashMap::new(),
    };
    server.listen()?;
    drop(connection);
    Ok(threads.join()?)
}

fn capabilities() -> ServerCapabilities {
    let words = |all: &[&str]| Some(all.iter().map(ToString::to_string).collect());
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(
            TextDocumentSyncKind::INCREMENTAL,
        )),
        completion_provider: Some(CompletionOptions {
            trigger_characters: words(&[".", ":", "\""]),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: words(&["(", ","]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        ..ServerCapabilities::default()
    }
}

/// A session with an editor.
struct Server<'a> {
    connection: &'a Connection,
    /// The scripts that are open.
    texts: HashMap<Uri, String>,
}

impl Server<'_> {
    fn listen(&mut self) -> Result<()> {
        for message in &self.connection.receiver {
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    let answer = self.answer(request);
                    self.connection.sender.send(answer.into())?;
                }
                // What cannot be understood changes nothing; an editor shows what is said on standard error.
                Message::Notification(told) => {
                    if let Err(error) = self.hear(told) {
                        crate::output::remark(format_args!(
                            "NOTE: a message is passed over: {error:#}"
                        ));
                    }
                }
                Message::Response(_) => {}
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let of = match method.as_str() {
            Completion::METHOD => self.on(params, answers::completion),
            HoverRequest::METHOD => self.on(params, answers::hover),
            SignatureHelpRequest::METHOD => self.on(params, answers::signatures),
            GotoDefinition::METHOD => self.on(params, answers::definition),
            DocumentSymbolRequest::METHOD => self.on(params, answers::symbols),
            Formatting::METHOD => self.on(params, answers::formatting),
            other => {
                let text = format!("ergodic does not answer {other}");
                return Response::new_err(id, ErrorCode::MethodNotFound as i32, text);
            }
        };
        match of {
            Ok(value) => Response::new_ok(id, value),
            Err(error) => {
                let text = crate::error::message(&error.to_string());
                Response::new_err(id, ErrorCode::InvalidParams as i32, text)
            }
        }
    }

    /// What is answered to a request about a script. Nothing where the script is not open.
    fn on<P: DeserializeOwned + answers::About, A: Serialize>(
        &self,
        params: Value,
        answer: impl Fn(&P, &str) -> Option<A>,
    ) -> Result<Value> {
        let params: P = serde_json::from_value(params)?;
        let Some(text) = self.texts.get(params.uri()).filter(|t| t.len() <= LONGEST) else {
            return Ok(Value::Null);
        };
        Ok(serde_json::to_value(answer(&params, text))?)
    }

    fn hear(&mut self, told: Notification) -> Result<()> {
        let Notification { method, params } = told;
        let uri = match method.as_str() {
            DidOpenTextDocument::METHOD => {
                let opened: lsp_types::DidOpenTextDocumentParams = serde_json::from_value(params)?;
                let document = opened.text_document;
                self.texts.insert(document.uri.clone(), document.text);
                document.uri
            }
            DidChangeTextDocument::METHOD => {
                let changed: lsp_types::DidChangeTextDocumentParams =
                    serde_json::from_value(params)?;
                let text = self.texts.entry(changed.text_document.uri.clone());
                let text = text.or_default();
                for change in changed.content_changes {
                    text::change(text, change.range, &change.text);
                }
                changed.text_document.uri
            }
            DidCloseTextDocument::METHOD => {
                let closed: lsp_types::DidCloseTextDocumentParams = serde_json::from_value(params)?;
                let uri = closed.text_document.uri;
                self.texts.remove(&uri);
                return self.publish(uri, Vec::new());
            }
            _ => return Ok(()),
        };
        let text = self.texts.get(&uri).filter(|t| t.len() <= LONGEST);
        let found = text.map(|t| answers::diagnostics(t)).unwrap_or_default();
        self.publish(uri, found)
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>) -> Result<()> {
        let params = PublishDiagnosticsParams {
            uri,
            diagnostics,
            version: None,
        };
        let told = Notification::new(PublishDiagnostics::METHOD.into(), params);
        Ok(self.connection.sender.send(told.into())?)
    }
}
