// Colours of Rhai in the book, by the mode that JupyterLab has (rhai.js).
(async () => {
  const CLASSES = {
    bool: 'literal', self: 'literal', special: 'subst', propertyName: 'attr', namespace: 'symbol', operator: '', brace: '', bracket: '',
    punctuation: '', variableName: '',
  };

  /** A line, as a mode reads it. */
  class Line {
    constructor(text) {
      [this.text, this.at] = [text, 0];
    }
    get rest() {
      return this.text.slice(this.at);
    }
    sol = () => this.at === 0;
    eol = () => this.at >= this.text.length;
    peek = () => this.text[this.at];
    next = () => (this.eol() ? undefined : this.text[this.at++]);
    indentation = () => this.text.search(/\S|$/);
    eatSpace = () => this.match(/^\s+/) !== null;
    skipToEnd = () => void (this.at = this.text.length);
    skipTo(words) {
      const there = this.text.indexOf(words, this.at);
      if (there >= 0) this.at = there;
      return there >= 0;
    }
    eatWhile(c) {
      while (this.peek() === c) this.at++;
    }
    match(what, eat = true) {
      const found = typeof what === 'string' ? (this.rest.startsWith(what) ? [what] : null) : this.rest.match(what);
      if (found && eat) this.at += found[0].length;
      return found;
    }
  }

  let mode;
  const part = { '1': { get: async () => () => ({ StreamLanguage: { define: (found) => (mode = found) }, LanguageSupport: class {} }) } };
  const extension = window._JUPYTERLAB['ergodic-rhai'];
  extension.init({ '@jupyterlab/codemirror': part, '@codemirror/language': part });
  (await extension.get())().default.activate(null, { addLanguage() {} });

  for (const block of document.querySelectorAll('code.language-rhai')) {
    const state = mode.startState();
    const lines = block.textContent.split('\n').map((text) => {
      const [line, pieces] = [new Line(text), []];
      while (!line.eol()) {
        const begin = line.at;
        const kind = mode.token(line, state);
        const name = kind && (CLASSES[kind] ?? (kind.includes('function') ? 'title' : CLASSES[kind.split('.')[0]] ?? kind));
        const piece = document.createElement('span');
        if (name) piece.className = `hljs-${name}`;
        piece.textContent = text.slice(begin, line.at);
        pieces.push(piece);
      }
      return pieces;
    });
    block.classList.add('hljs');
    block.replaceChildren(...lines.flatMap((pieces, k) => (k ? ['\n', ...pieces] : pieces)));
  }
})();
