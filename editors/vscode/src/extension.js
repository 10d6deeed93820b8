// @ts-check
// VS Code's side of ergodic: it starts the language server, runs scripts in a terminal, and shows reports.
'use strict';

const { execFile } = require('node:child_process');
const { readFile } = require('node:fs/promises');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const vscode = require('vscode');
const { LanguageClient, RevealOutputChannelOn } = require('vscode-languageclient/node');

/** @type {LanguageClient | undefined} */
let client;
/** @type {vscode.WebviewPanel | undefined} */
let panel;
/** Starts and ends of the server, one after the other. */
let queue = Promise.resolve();

const folder = () => vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === 'file')?.uri.fsPath;

/** The program as it is set. */
function program() {
  const given = vscode.workspace.getConfiguration('ergodic').get('path', '').trim() || 'ergodic';
  return given.replace(/^~(?=[\\/])/, os.homedir()).replaceAll('${workspaceFolder}', folder() ?? '.');
}

/**
 * What the program prints.
 * @param {string[]} args
 * @param {string} [cwd]
 */
async function ask(args, cwd = folder()) {
  const { stdout } = await promisify(execFile)(program(), args, { cwd, maxBuffer: 1 << 28 });
  return stdout;
}

/**
 * @param {string} message
 * @param {string} button
 * @param {() => unknown} then
 */
async function say(message, button, then) {
  if ((await vscode.window.showErrorMessage(message, button)) === button) await then();
}

/** @param {string} message */
const saySettings = (message) =>
  say(message, 'Open Settings', () => vscode.commands.executeCommand('workbench.action.openSettings', 'ergodic.path'));

/**
 * Whether the program answers; if not, a message that says why.
 * @param {string[]} args
 */
async function answers(args) {
  try {
    await ask(args);
    return true;
  } catch (error) {
    const why = /** @type {{ code?: unknown, message: string }} */ (error);
    if (why.code === 'ENOENT') void saySettings(`The command '${program()}' was not found. Install ergodic, or say in the setting ergodic.path where it lies.`);
    else if (why.code === 2) void saySettings(`'${program()}' does not know '${args[0]}': it is older than this extension.`);
    else void saySettings(`'${program()}' did not start: ${why.message}`);
    return false;
  }
}

async function stop() {
  const old = client;
  client = undefined;
  // A server that has crashed cannot be asked to end.
  await old?.dispose().catch(() => {});
}

/** Starts the language server. After a crash the client itself starts it anew, up to four times in three minutes. */
function restart() {
  queue = queue.then(stop).then(async () => {
    if (!vscode.workspace.isTrusted || !(await answers(['lsp', '--help']))) return;
    client = new LanguageClient(
      'ergodic',
      'ergodic',
      { command: program(), args: ['lsp'], options: { cwd: folder() } },
      {
        // Cells of notebooks are left to their kernel, which knows what ran before them.
        documentSelector: ['file', 'untitled'].map((scheme) => ({ scheme, language: 'rhai' })),
        synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher('**/*.rhai') },
        revealOutputChannelOn: RevealOutputChannelOn.Never,
      },
    );
    await client.start().catch((why) => void saySettings(`The language server did not start: ${why.message ?? why}`));
  });
  return queue;
}

/**
 * The script that is meant: its name, and the folder that results and data are relative to.
 * @param {vscode.Uri} [uri]
 */
async function script(uri) {
  const document = uri ? await vscode.workspace.openTextDocument(uri) : vscode.window.activeTextEditor?.document;
  if (document?.languageId !== 'rhai' || document.uri.scheme !== 'file') {
    void vscode.window.showErrorMessage('Open a script that is saved as a file (.rhai) first.');
    return undefined;
  }
  const file = document.uri.fsPath;
  const workspace = vscode.workspace.getWorkspaceFolder(document.uri);
  return { document, file, workspace, cwd: workspace?.uri.fsPath ?? path.dirname(file) };
}

/**
 * @param {string[]} options
 * @param {vscode.Uri} [uri]
 */
async function run(options, uri) {
  const found = await script(uri);
  if (!found || !(await found.document.save()) || !(await answers(['--version']))) return;
  const more = vscode.workspace.getConfiguration('ergodic', found.document.uri).get('arguments', /** @type {string[]} */ ([]));
  const name = path.relative(found.cwd, found.file);
  // No shell is between, so that nothing needs quotes.
  const execution = new vscode.ProcessExecution(program(), ['run', ...options, ...more, name], { cwd: found.cwd });
  const task = new vscode.Task({ type: 'ergodic' }, found.workspace ?? vscode.TaskScope.Workspace, name, 'ergodic', execution);
  task.presentationOptions = { clear: true, showReuseMessage: false };
  await vscode.tasks.executeTask(task);
}

/** The report of the newest results of a script, finished or not. @param {vscode.Uri} [uri] */
async function openReport(uri) {
  const found = await script(uri);
  if (!found || !(await answers(['--version']))) return;
  const { cwd, file } = found;
  const name = path.basename(file);
  try {
    /** @type {{ folder: string, script?: string }[]} */
    const all = JSON.parse(await ask(['ls', '--json'], cwd));
    const newest = all.filter((r) => r.script && path.resolve(cwd, r.script) === file).at(-1)?.folder;
    if (newest === undefined) {
      void say(`There are no results of ${name} in ${path.join(cwd, 'runs')}.`, 'Run Script', () => run([], uri));
      return;
    }
    await ask(['report', newest], cwd);
    const page = await readFile(path.resolve(cwd, newest, 'report.html'), 'utf8');
    if (!panel) {
      panel = vscode.window.createWebviewPanel('ergodic.report', newest, vscode.ViewColumn.Beside, { enableFindWidget: true });
      panel.onDidDispose(() => (panel = undefined));
    }
    panel.title = newest;
    panel.webview.html = page;
    panel.reveal();
  } catch (error) {
    const why = /** @type {{ stderr?: string, message: string }} */ (error);
    void vscode.window.showErrorMessage(`No report of ${name}: ${why.stderr?.trim() || why.message}`);
  }
}

/** @param {vscode.ExtensionContext} context */
function activate(context) {
  const { registerCommand } = vscode.commands;
  context.subscriptions.push(
    registerCommand('ergodic.run', (uri) => run([], uri)),
    registerCommand('ergodic.runQuick', (uri) => run(['--quick'], uri)),
    registerCommand('ergodic.openReport', openReport),
    registerCommand('ergodic.restart', restart),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('ergodic.path') && restart()),
  );
  void restart();
}

function deactivate() {
  return (queue = queue.then(stop));
}

module.exports = { activate, deactivate };
