//! What is answered, about one script.

use super::source;
use super::text::{byte, position, range};
use crate::script::Interpreter;
use crate::script::explore::declarations::declared;
use crate::script::explore::layout;
use crate::script::explore::tokens::{Token, tokens};
use crate::simulation::session::Session;
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionParams, CompletionTextEdit, Diagnostic,
    DiagnosticSeverity, DocumentFormattingParams, DocumentSymbol, DocumentSymbolParams,
    Documentation, GotoDefinitionParams, Hover, HoverContents, HoverParams, Location,
    MarkupContent, MarkupKind, ParameterInformation, ParameterLabel, Position, Range,
    SignatureHelp, SignatureHelpParams, SignatureInformation, SymbolKind, TextEdit, Uri,
};

/// What a request is about.
pub trait About {
    /// The script.
    fn uri(&self) -> &Uri;
}

macro_rules! about {
    ($($params:ty: $($path:ident).+;)*) => {
        $(impl About for $params {
            fn uri(&self) -> &Uri {
                &self.$($path).+.uri
            }
        })*
    };
}

about! {
    CompletionParams: text_document_position.text_document;
    HoverParams: text_document_position_params.text_document;
    SignatureHelpParams: text_document_position_params.text_document;
    GotoDefinitionParams: text_document_position_params.text_document;
    DocumentSymbolParams: text_document;
    DocumentFormattingParams: text_document;
}

/// Mistakes that are shown, at most.
const MOST_MISTAKES: usize = 100;

fn interpreter() -> Interpreter {
    Interpreter::new(Session::new("runs".into()), Default::default())
}

fn markdown(text: impl Into<String>) -> MarkupContent {
    MarkupContent {
        kind: MarkupKind::Markdown,
        value: text.into(),
    }
}

/// What is certainly wrong.
pub fn diagnostics(text: &str) -> Vec<Diagnostic> {
    let (found, tokens) = (interpreter().mistakes(text), tokens(text));
    found
        .into_iter()
        .take(MOST_MISTAKES)
        .map(|(line, column, message)| Diagnostic {
            range: word_at(text, &tokens, line, column),
            severity: Some(DiagnosticSeverity::ERROR),
            source: Some("ergodic".into()),
            message,
            ..Diagnostic::default()
        })
        .collect()
}

/// The range of the token at a place of the compiler, which counts lines and characters from 1.
fn word_at(text: &str, tokens: &[Token<'_>], line: usize, column: usize) -> Range {
    let start: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let rest = text.get(start..).unwrap_or("");
    let within = rest.char_indices().nth(column - 1);
    let start = start + within.map_or(rest.trim_end().len(), |(k, _)| k);
    let end = tokens.iter().find(|t| t.start <= start && start < t.end());
    let end = end.map_or(start, |t| t.end());
    // A string over many lines is marked on its first.
    let stop = text[start..end].find('\n').map_or(end, |k| start + k);
    range(text, start..stop)
}

/// What could stand at the cursor.
pub fn completion(params: &CompletionParams, text: &str) -> Option<Vec<CompletionItem>> {
    let cursor = byte(text, params.text_document_position.position);
    let found = interpreter().complete(text, cursor);
    let place = range(text, found.start..found.end.max(found.start));
    let one = |(k, m): (usize, crate::script::explore::Match)| CompletionItem {
        label: m.text.clone(),
        kind: Some(match m.kind {
            "function" => CompletionItemKind::FUNCTION,
            "method" => CompletionItemKind::METHOD,
            "property" => CompletionItemKind::PROPERTY,
            "module" => CompletionItemKind::MODULE,
            "option" => CompletionItemKind::FIELD,
            "value" => CompletionItemKind::VALUE,
            "variable" => CompletionItemKind::VARIABLE,
            _ => CompletionItemKind::KEYWORD,
        }),
        detail: Some(m.detail).filter(|d| !d.is_empty()),
        documentation: Some(m.doc)
            .filter(|d| !d.is_empty())
            .map(|d| Documentation::MarkupContent(markdown(d))),
        // In our order.
        sort_text: Some(format!("{k:05}")),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(place, m.text))),
        ..CompletionItem::default()
    };
    Some(found.matches.into_iter().enumerate().map(one).collect())
}

/// What the word at the cursor means.
pub fn hover(params: &HoverParams, text: &str) -> Option<Hover> {
    let cursor = byte(text, params.text_document_position_params.position);
    let found = interpreter().inspect(text, cursor)?;
    Some(Hover {
        contents: HoverContents::Markup(markdown(found)),
        range: None,
    })
}

/// The signatures of the call that the cursor is in.
pub fn signatures(params: &SignatureHelpParams, text: &str) -> Option<SignatureHelp> {
    let cursor = byte(text, params.text_document_position_params.position);
    let (items, argument) = interpreter().signatures(text, cursor);
    let one = |item: crate::script::item::Item| {
        let parameters = parameters(&item.signature);
        SignatureInformation {
            documentation: Some(Documentation::MarkupContent(markdown(item.markdown()))),
            active_parameter: u32::try_from(argument.min(parameters.len().saturating_sub(1))).ok(),
            parameters: Some(parameters),
            label: item.signature,
        }
    };
    let signatures: Vec<_> = items.into_iter().map(one).collect();
    (!signatures.is_empty()).then_some(SignatureHelp {
        signatures,
        active_signature: Some(0),
        active_parameter: None,
    })
}

/// The parameters of a signature, as parts of it.
fn parameters(signature: &str) -> Vec<ParameterInformation> {
    let inside = signature.split_once('(').map_or("", |(_, rest)| rest);
    let inside = inside.rsplit_once(')').map_or(inside, |(before, _)| before);
    let mut depth = 0;
    let parts = inside.split(|c: char| {
        depth += match c {
            '{' | '(' | '[' => 1,
            '}' | ')' | ']' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|p| !p.is_empty());
    parts
        .map(|p| ParameterInformation {
            label: ParameterLabel::Simple(p.into()),
            documentation: None,
        })
        .collect()
}

/// Where the name at the cursor is defined.
pub fn definition(params: &GotoDefinitionParams, text: &str) -> Option<Location> {
    let own = params.uri();
    let cursor = byte(text, params.text_document_position_params.position);
    let found = source::definition(own, text, cursor)?;
    Some(Location {
        range: range(&found.text, found.bytes),
        uri: found.uri.unwrap_or_else(|| own.clone()),
    })
}

/// The functions and variables of the script.
pub fn symbols(_: &DocumentSymbolParams, text: &str) -> Option<Vec<DocumentSymbol>> {
    let all = declared(text).into_iter().filter(|d| d.depth == 0);
    let one = |d: crate::script::explore::declarations::Declared| {
        let at = range(text, d.start..d.start + d.name.len());
        #[expect(deprecated, reason = "the field must be given")]
        DocumentSymbol {
            name: d.name.into(),
            detail: None,
            kind: match d.word {
                "fn" => SymbolKind::FUNCTION,
                "const" => SymbolKind::CONSTANT,
                _ => SymbolKind::VARIABLE,
            },
            tags: None,
            deprecated: None,
            range: at,
            selection_range: at,
            children: None,
        }
    };
    Some(all.map(one).collect())
}

/// The script, indented by its brackets.
pub fn formatting(_: &DocumentFormattingParams, text: &str) -> Option<Vec<TextEdit>> {
    let done = layout::indented(text);
    let whole = Range::new(Position::new(0, 0), position(text, text.len()));
    Some(match done == text {
        true => Vec::new(),
        false => vec![TextEdit::new(whole, done)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_parts_of_the_signature() {
        let of = |s: &str| {
            let each = parameters(s).into_iter();
            each.map(|p| match p.label {
                ParameterLabel::Simple(text) => text,
                ParameterLabel::LabelOffsets(_) => String::new(),
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(
            of("sample(target, sampler, #{ a, b }) -> Run"),
            ["target", "sampler", "#{ a, b }"]
        );
        assert!(of("data.describe() -> string").is_empty());
    }

    #[test]
    fn errors_are_marked_where_they_are() {
        let found = diagnostics("let å = 1;\nlet net = model::mpl(#{ layers: [1, 2] });\n");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].message.contains("did you mean 'mlp'?"),
            "{found:?}"
        );
        assert_eq!(found[0].range.start.line, 1);
        let broken = diagnostics("let x = (1;\n");
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert!(diagnostics("").is_empty() && diagnostics("let x = 1; x").is_empty());
    }
}
