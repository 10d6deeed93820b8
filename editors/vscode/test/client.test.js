// What the bundled extension does, in an editor that is made up (vscode.js): with the program, without it, and with one that crashes.
'use strict';
const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const Module = require('node:module');
const os = require('node:os');
const path = require('node:path');
const { after, test } = require('node:test');
const { editor, uri } = require('./vscode.js');

const BUNDLE = path.resolve(__dirname, '../dist/extension.js');
const FAKE = path.resolve(__dirname, 'fake.js');
const load = Module._load;

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'ergodic-editor-'));
after(() => fs.rmSync(scratch, { recursive: true }));
const place = () => fs.mkdtempSync(path.join(scratch, 'folder-'));

/** A new copy of the extension in this editor. */
function start(here) {
  Module._load = (name, ...rest) => (name === 'vscode' ? here.vscode : load(name, ...rest));
  delete require.cache[BUNDLE];
  const extension = require(BUNDLE);
  extension.activate({ subscriptions: [] });
  return extension;
}

async function until(what, why) {
  for (let i = 0; i < 200; i++) {
    const found = what();
    if (found) return found;
    await new Promise((go) => setTimeout(go, 50));
  }
  throw new Error(why);
}

/** An editor whose program is the fake one, and what that was asked. */
function faked(more) {
  const folder = place();
  process.env.NOTES = path.join(folder, 'notes');
  fs.writeFileSync(process.env.NOTES, '');
  const { NOTES } = process.env;
  const notes = () => fs.readFileSync(NOTES, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return { here: editor({ folder, settings: { path: FAKE }, ...more }), folder, notes };
}

const commands = (notes) => notes().filter(({ command }) => command).map(({ command, rest }) => [command, ...rest].join(' '));

test('the server is told what the client knows, started anew after a crash and on demand, and ended', async () => {
  const { here, notes } = faked();
  const extension = start(here);
  const count = (what) => notes().filter(({ method }) => method === what).length;
  await until(() => count('initialized') === 1, 'no handshake');
  const { params } = notes().find(({ method }) => method === 'initialize');
  const { textDocument, general } = params.capabilities;
  for (const name of ['completion', 'hover', 'signatureHelp', 'definition', 'formatting', 'documentSymbol', 'publishDiagnostics']) assert.ok(textDocument[name], name);
  assert.deepEqual(general.positionEncodings, ['utf-16']);
  process.kill(notes().find(({ command, rest }) => command === 'lsp' && !rest.length).pid);
  await until(() => count('initialized') === 2, 'not started anew after a crash');
  await here.commands['ergodic.restart']();
  await until(() => count('initialized') === 3, 'not started anew on demand');
  here.events.configuration.fire({ affectsConfiguration: (name) => name === 'ergodic.path' });
  await until(() => count('initialized') === 4, 'not started anew with another path');
  await extension.deactivate();
  await until(() => notes().at(-1).method === 'exit', 'not ended');
  assert.deepEqual(commands(notes), ['lsp --help', 'lsp', 'lsp', 'lsp --help', 'lsp', 'lsp --help', 'lsp']);
  assert.deepEqual(here.said, []);
});

test('nothing is started in a folder that is not trusted, until it is', async () => {
  const { here, notes } = faked({ trusted: false });
  const extension = start(here);
  await here.commands['ergodic.restart']();
  assert.deepEqual(notes(), []);
  here.vscode.workspace.isTrusted = true;
  here.events.trust.fire();
  await until(() => notes().some(({ method }) => method === 'initialized'), 'not started');
  await extension.deactivate();
});

test('a program that is not there, or too old, is named, with the way to the settings', async () => {
  const folder = place();
  const old = path.join(folder, 'old');
  fs.writeFileSync(old, '#!/bin/sh\nexit 2\n', { mode: 0o755 });
  for (const [program, says] of [[path.join(folder, 'none'), /none' was not found.*ergodic\.path/], ['${workspaceFolder}/old', /old' does not know 'lsp'/]]) {
    const here = editor({ folder, settings: { path: program } });
    here.press = 'Open Settings';
    const extension = start(here);
    await until(() => here.done.length, 'no way to the settings');
    assert.equal(here.said.length, 1);
    assert.match(here.said[0], says);
    assert.deepEqual(here.done, [['workbench.action.openSettings', 'ergodic.path']]);
    await extension.deactivate();
  }
});

/** A script that is open in the editor. */
function opened(folder, text) {
  const file = path.join(folder, 'a script.rhai');
  fs.writeFileSync(file, text);
  return { languageId: 'rhai', uri: uri(file), getText: () => text, version: 1, save: async () => true };
}

test('a script is run in a terminal, without a shell', async () => {
  const folder = place();
  const { here } = faked({ folder, document: opened(folder, '1'), settings: { path: FAKE, arguments: ['--set', 'n=1 2'] } });
  const extension = start(here);
  await here.commands['ergodic.run']();
  await here.commands['ergodic.runQuick']();
  const [full, quick] = here.tasks.map(({ execution }) => execution);
  assert.equal(full.program, FAKE);
  assert.deepEqual(full.args, ['run', '--set', 'n=1 2', 'a script.rhai']);
  assert.deepEqual(quick.args, ['run', '--quick', '--set', 'n=1 2', 'a script.rhai']);
  assert.equal(full.options.cwd, folder);
  await extension.deactivate();
});

test('the server of the program says what is wrong in a script', { skip: process.env.ERGODIC ? false : 'ERGODIC is not set' }, async () => {
  const folder = place();
  const document = opened(folder, 'let net = model::mpl(#{ layers: [1, 2] });');
  const here = editor({ folder, document, settings: { path: path.resolve(process.env.ERGODIC) } });
  const extension = start(here);
  const [file, found] = await until(() => here.diagnostics.find(([, all]) => all.length), 'nothing was told');
  assert.equal(file.fsPath, document.uri.fsPath);
  assert.equal(found.length, 1);
  assert.deepEqual(here.said, []);
  await extension.deactivate();
});

test('the report is that of the newest results of the script', { skip: process.env.ERGODIC ? false : 'ERGODIC is not set' }, async () => {
  const folder = place();
  const document = opened(folder, 'plot::curve([1, 2], [1.0, 2.0]).save("line.svg");');
  const here = editor({ folder, document, settings: { path: path.resolve(process.env.ERGODIC) } });
  const extension = start(here);
  await here.commands['ergodic.openReport']();
  assert.match(here.said.find((text) => text.includes('results')), /no results of a script\.rhai/);
  for (let i = 0; i < 2; i++) execFileSync(process.env.ERGODIC, ['run', '--quiet', 'a script.rhai'], { cwd: folder });
  await here.commands['ergodic.openReport']();
  const [page] = here.pages;
  assert.equal(page.title, 'runs/a script-2');
  assert.match(page.webview.html, /^<!doctype html>[^]*class="script"[^]*line\.svg/);
  await extension.deactivate();
});
