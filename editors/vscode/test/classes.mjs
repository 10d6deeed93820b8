// What each character of scripts is, for tests/interop/test_editor.py: by a TextMate grammar as VS Code reads it, and by the mode for JupyterLab's editor.
// Standard input: { grammar, mode, sources }, two texts and an array of them. Standard output: for each source line by line, the scopes around each character, and its class.
import { StringStream } from '@codemirror/language';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import oniguruma from 'vscode-oniguruma';
import textmate from 'vscode-textmate';

const { grammars, mode, sources } = JSON.parse(readFileSync(0, 'utf8'));
const wasm = createRequire(import.meta.url).resolve('vscode-oniguruma/release/onig.wasm');
await oniguruma.loadWASM(readFileSync(wasm).buffer);
const onigLib = { createOnigScanner: (p) => new oniguruma.OnigScanner(p), createOnigString: (s) => new oniguruma.OnigString(s) };

const load = (text) => new textmate.Registry({ onigLib, loadGrammar: () => textmate.parseRawGrammar(text, 'rhai.tmLanguage.json') }).loadGrammar('source.rhai');

/** Line by line, how many characters have which scopes, the outermost first. */
function scopes(grammar, source) {
  let stack = textmate.INITIAL;
  return source.split('\n').map((line) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    return tokens.map((t) => [Array.from(line.slice(t.startIndex, t.endIndex)).length, t.scopes]);
  });
}

/** The mode as the extension of JupyterLab defines it. */
async function codemirror() {
  globalThis.window = {};
  (0, eval)(mode);
  const extension = window._JUPYTERLAB['ergodic-rhai'];
  let found;
  const modules = {
    '@jupyterlab/codemirror': { IEditorLanguageRegistry: {} },
    '@codemirror/language': { LanguageSupport: class {}, StreamLanguage: { define: (m) => (found = m) } },
  };
  extension.init(Object.fromEntries(Object.entries(modules).map(([name, m]) => [name, { 1: { loaded: 1, get: async () => () => m } }])));
  (await extension.get())().default.activate({}, { addLanguage() {} });
  return found;
}

const KINDS = { comment: 'c', string: 's', number: 'n', keyword: 'k', bool: 'k', self: 'k', meta: 'm' };
const rules = await codemirror();
function classes(source) {
  const state = rules.startState();
  return source.split('\n').map((line) => {
    let out = '';
    for (const stream = new StringStream(line, 4, 4); !stream.eol(); ) {
      stream.start = stream.pos;
      const kind = KINDS[rules.token(stream, state)] ?? '.';
      // The mode has one token of both if a template begins with `${`.
      out += stream.current() === '`${' ? 's..' : kind.repeat(Array.from(stream.current()).length);
    }
    return out;
  });
}

const loaded = await Promise.all(grammars.map(load));
const found = sources.map((source) => ({ scopes: loaded.map((grammar) => scopes(grammar, source)), mode: classes(source) }));
process.stdout.write(JSON.stringify(found));
