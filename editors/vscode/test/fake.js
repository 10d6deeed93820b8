#!/usr/bin/env node
// A program that answers as ergodic does, with as much of a language server as the client of the extension needs. It notes what it is asked in $NOTES.
'use strict';
const { appendFileSync } = require('node:fs');
const rpc = require('vscode-jsonrpc/node');

const note = (what) => appendFileSync(process.env.NOTES, `${JSON.stringify(what)}\n`);
const [command, ...rest] = process.argv.slice(2);
note({ command, rest, pid: process.pid });
if (command === 'lsp' && !rest.length) {
  const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(process.stdin), new rpc.StreamMessageWriter(process.stdout));
  connection.onRequest((method, params) => {
    note({ method, params });
    if (method !== 'initialize') return null;
    return {
      capabilities: {
        textDocumentSync: { openClose: true, change: 2 },
        completionProvider: { triggerCharacters: ['.', ':'] },
        hoverProvider: true,
        signatureHelpProvider: { triggerCharacters: ['('] },
        definitionProvider: true,
        documentFormattingProvider: true,
        documentSymbolProvider: true,
      },
    };
  });
  connection.onNotification((method, params) => {
    note({ method, params });
    if (method === 'exit') process.exit(0);
  });
  connection.listen();
}
