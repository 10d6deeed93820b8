// Rhai's colours and indentation in JupyterLab 4: an extension as webpack would write it, by hand, so that nothing has to be built.
// `ergodic kernel install` writes it beside the kernel, with the program's own keywords.
(() => {
  'use strict';
  const KEYWORDS = new Set('let const fn if else while loop do until for in break continue return switch try catch throw true false import export as private this Fn call curry is_shared is_def_fn is_def_var type_of print debug eval global'.split(' '));
  const CONSTANTS = { true: 'bool', false: 'bool', this: 'self', global: 'self' };
  const NAME = /^[\p{Alphabetic}_][\p{Alphabetic}\p{N}_]*/u;
  const NUMBER = /^(?:0x[\da-f_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:e[-+]?\d+)?)/i;
  const CLOSING = { '{': '}', '(': ')', '[': ']' };

  // A place that is open ends with `end`; the line where it began is indented by `indent`.
  const top = (state) => state.open.at(-1);
  const open = (stream, state, end, more) => state.open.push({ end, indent: stream.indentation(), ...more });

  /** Comments within comments count. */
  function comment(stream, state) {
    while (state.comments && !stream.eol()) {
      if (stream.match('/*')) state.comments++;
      else if (stream.match('*/')) state.comments--;
      else stream.next();
    }
    return 'comment';
  }

  /** The text of a template, up to its end or to `${`. */
  function template(stream, state) {
    if (stream.match('${')) {
      open(stream, state, '}');
      return 'special';
    }
    while (!stream.eol() && !stream.match('${', false)) {
      if (stream.next() === '`') {
        state.open.pop();
        break;
      }
    }
    return 'string';
  }

  /** The rest of a string: a raw one goes on over lines, another one only behind a backslash. */
  function string(stream, state) {
    const end = state.string;
    if (end.length > 1) {
      if (stream.skipTo(end)) stream.match(end);
      else return stream.skipToEnd(), 'string';
    } else {
      while (!stream.eol()) {
        const c = stream.next();
        if (c === end) break;
        if (c === '\\' && !stream.next()) return 'string';
      }
    }
    state.string = '';
    return 'string';
  }

  function name(stream, state, word) {
    const after = state.after;
    state.after = KEYWORDS.has(word) ? word : '';
    if (after === '.') return stream.match(/^\s*\(/, false) ? 'propertyName.function' : 'propertyName';
    if (Object.hasOwn(CONSTANTS, word)) return CONSTANTS[word];
    if (KEYWORDS.has(word)) return 'keyword';
    if (after === 'fn') return 'variableName.function.definition';
    if (after === 'let' || after === 'const') return 'variableName.definition';
    if (stream.match(/^\s*::/, false)) return 'namespace';
    if (stream.match(/^\s*\(/, false)) return 'variableName.function';
    if (top(state)?.map && stream.match(/^\s*:/, false)) return 'propertyName';
    return 'variableName';
  }

  function token(stream, state) {
    if (state.comments) return comment(stream, state);
    if (state.string) return string(stream, state);
    if (top(state)?.end === '`') return template(stream, state);
    if (!state.open.length && stream.sol() && stream.match(/^(?::|%%?)[a-z]/)) return stream.skipToEnd(), 'meta';
    if (stream.eatSpace()) return null;
    if (stream.match('//')) return stream.skipToEnd(), 'comment';
    if (stream.match('/*')) return (state.comments = 1), comment(stream, state);
    if (stream.match(NUMBER)) return (state.after = ''), 'number';
    const word = stream.match(NAME);
    if (word) return name(stream, state, word[0]);
    state.after = '';
    const raw = stream.match(/^(#+)"/);
    if (raw) return (state.string = `"${raw[1]}`), string(stream, state);
    if (stream.match('#{')) return open(stream, state, '}', { map: true }), 'brace';
    const c = stream.next();
    if (c === '"' || c === "'") return (state.string = c), string(stream, state);
    if (c === '`') return open(stream, state, '`'), template(stream, state);
    if (CLOSING[c]) return open(stream, state, CLOSING[c]), 'bracket';
    if ('})]'.includes(c)) {
      if (top(state)?.end === c) state.open.pop();
      return top(state)?.end === '`' ? 'special' : 'bracket';
    }
    if (c === '.' && stream.peek() !== '.') return (state.after = '.'), 'operator';
    if (c === '.') return stream.eatWhile('.'), 'operator';
    return '+-*/%<>=!&|^~?'.includes(c) ? 'operator' : 'punctuation';
  }

  const rhai = {
    name: 'rhai',
    startState: () => ({ open: [], comments: 0, string: '', after: '' }),
    copyState: (state) => ({ ...state, open: [...state.open] }),
    token,
    indent(state, rest, context) {
      const place = top(state);
      if (state.comments || state.string || place?.end === '`') return null;
      if (!place) return 0;
      return place.indent + (rest.startsWith(place.end) ? 0 : context.unit);
    },
    languageData: {
      commentTokens: { line: '//', block: { open: '/*', close: '*/' } },
      closeBrackets: { brackets: ['(', '[', '{', '"', '`'] },
      indentOnInput: /^\s*[})\]]$/,
    },
  };

  let shared;
  async function use(module) {
    const versions = Object.values(shared[module]);
    const version = versions.find((v) => v.loaded) ?? versions[0];
    return (await version.get())();
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB['ergodic-rhai'] = {
    init(scope) {
      shared = scope;
    },
    async get() {
      const { IEditorLanguageRegistry } = await use('@jupyterlab/codemirror');
      const { LanguageSupport, StreamLanguage } = await use('@codemirror/language');
      const plugin = {
        id: 'ergodic-rhai:language',
        description: 'Rhai for the editor',
        autoStart: true,
        requires: [IEditorLanguageRegistry],
        activate(app, languages) {
          const support = new LanguageSupport(StreamLanguage.define(rhai));
          languages.addLanguage({ name: 'rhai', displayName: 'Rhai', mime: 'text/x-rhai', extensions: ['rhai'], support });
        },
      };
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
