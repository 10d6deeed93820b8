// As much of VS Code as the extension and its client need to run without an editor.
'use strict';

/** What is not said below is a class that does nothing, or an event that never comes. */
function open(known, name) {
  return new Proxy(known, {
    get(target, key) {
      if (key in target || typeof key === 'symbol') return target[key];
      if (/^onDid|^onWill/.test(key)) return (target[key] = () => ({ dispose() {} }));
      if (/^register|^create/.test(key)) return (target[key] = () => open({ dispose() {} }, `${name}.${key}()`));
      return (target[key] = class {});
    },
  });
}

const uri = (fsPath) => ({ scheme: 'file', fsPath, path: fsPath, toString: () => `file://${encodeURI(fsPath)}`, with: () => uri(fsPath) });

class EventEmitter {
  heard = new Set();
  event = (f) => (this.heard.add(f), { dispose: () => this.heard.delete(f) });
  fire(value) {
    for (const f of this.heard) f(value);
  }
  dispose() {}
}

/** An editor with these settings. What was said and done is in `said`, `tasks`, `pages`, `diagnostics`; `press` is the button that is pressed in a message. */
function editor({ settings = {}, trusted = true, document, folder }) {
  const here = { said: [], done: [], tasks: [], pages: [], diagnostics: [], commands: {}, press: undefined, events: {} };
  const event = (name) => (here.events[name] = new EventEmitter()).event;
  const channel = open({ dispose() {}, append() {}, appendLine() {}, info() {}, warn() {}, error() {}, debug() {}, trace() {}, logLevel: 0 }, 'channel');
  const say = async (message, ...more) => (here.said.push(message), more.flat().find((button) => button === here.press));
  const folders = folder ? [{ uri: uri(folder), name: 'folder', index: 0 }] : undefined;
  const workspace = {
    isTrusted: trusted,
    workspaceFolders: folders,
    textDocuments: document ? [document] : [],
    notebookDocuments: [],
    getConfiguration: () => ({ get: (key, otherwise) => settings[key] ?? otherwise, has: () => false, inspect: () => undefined }),
    getWorkspaceFolder: () => folders?.[0],
    createFileSystemWatcher: () => ({ onDidCreate: event('create'), onDidChange: event('change'), onDidDelete: event('delete'), dispose() {} }),
    onDidGrantWorkspaceTrust: event('trust'),
    onDidChangeConfiguration: event('configuration'),
    openTextDocument: async () => document,
  };
  here.vscode = open({
    version: '1.91.0',
    env: { language: 'en', appName: 'none' },
    workspace: open(workspace, 'workspace'),
    window: open({
      activeTextEditor: document && { document },
      visibleTextEditors: [],
      tabGroups: open({ all: [] }, 'tabGroups'),
      showErrorMessage: say,
      showWarningMessage: say,
      showInformationMessage: say,
      createOutputChannel: () => channel,
      createWebviewPanel: () => {
        const panel = { webview: {}, onDidDispose: event('dispose'), reveal() {} };
        here.pages.push(panel);
        return panel;
      },
    }, 'window'),
    commands: open({
      registerCommand: (name, f) => ((here.commands[name] = f), { dispose() {} }),
      executeCommand: async (...what) => void here.done.push(what),
    }, 'commands'),
    languages: open({ match: () => 10, createDiagnosticCollection: () => ({ set: (...told) => void here.diagnostics.push(told), clear() {}, delete() {}, dispose() {} }) }, 'languages'),
    tasks: { executeTask: async (task) => void here.tasks.push(task) },
    extensions: open({ all: [], getExtension: () => undefined }, 'extensions'),
    Uri: { file: uri, parse: (text) => uri(decodeURI(text.replace('file://', ''))) },
    EventEmitter,
    Disposable: class {
      constructor(f) {
        this.dispose = f ?? (() => {});
      }
      static from = (...all) => ({ dispose: () => all.forEach((one) => one.dispose()) });
    },
    CancellationTokenSource: class {
      token = { isCancellationRequested: false, onCancellationRequested: event('cancel') };
      cancel() {}
      dispose() {}
    },
    ProcessExecution: class {
      constructor(program, args, options) {
        Object.assign(this, { program, args, options });
      }
    },
    Task: class {
      constructor(definition, scope, name, source, execution) {
        Object.assign(this, { definition, scope, name, source, execution });
      }
    },
    TaskScope: { Workspace: 2 },
    ViewColumn: { Beside: -2 },
    LogLevel: { Off: 0, Trace: 1, Debug: 2, Info: 3, Warning: 4, Error: 5 },
    TextDocumentSaveReason: { Manual: 1, AfterDelay: 2, FocusOut: 3 },
    DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
    DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
    UIKind: { Desktop: 1 },
    l10n: { t: (text) => text },
  }, 'vscode');
  return here;
}

module.exports = { editor, uri };
