// A kernel as VS Code's Jupyter extension has it: its client library, over a ZeroMQ socket that it takes for a websocket.
// After src/kernels/raw in github.com/microsoft/vscode-jupyter: what is sent, on which channel, and which signal, is the same.
'use strict';

const { spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { KernelMessage, ServerConnection } = require('@jupyterlab/services');
const { KernelConnection } = require('@jupyterlab/services/lib/kernel/default');
const wire = require('@nteract/messaging/lib/wire-protocol');
const zmq = require('zeromq');

const CHANNELS = ['shell', 'control', 'stdin', 'iopub'];

class RawSocket {
  protocol = '';

  constructor(connection) {
    this.key = connection.key;
    const routingId = randomUUID();
    this.sockets = {};
    this.sending = Promise.resolve();
    for (const channel of CHANNELS) {
      const unlimited = { receiveHighWaterMark: 0, maxMessageSize: -1 };
      const socket = channel === 'iopub' ? new zmq.Subscriber(unlimited) : new zmq.Dealer({ ...unlimited, routingId, sendHighWaterMark: 0 });
      socket.connect(`tcp://${connection.ip}:${connection[`${channel}_port`]}`);
      this.sockets[channel] = socket;
      this.receive(channel, socket);
    }
    this.sockets.iopub.subscribe();
  }

  async receive(channel, socket) {
    for await (const frames of socket) {
      if (this.closed) return;
      this.onmessage({ data: { ...wire.decode(frames, this.key), channel }, type: 'message', target: this });
    }
  }

  send(message) {
    const frames = wire.encode(message, this.key);
    this.sending = this.sending.then(() => this.sockets[message.channel].send(frames));
  }

  close() {
    this.closed = true;
    Object.values(this.sockets).forEach((socket) => socket.close());
  }
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function listens(port) {
  for (;;) {
    const socket = net.connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await sleep(200);
    } finally {
      socket.destroy();
    }
  }
}

/** Whether the kernel has answered and its outputs arrive, at the second attempt at the latest. */
async function ready(connection) {
  const heard = new Promise((resolve) => connection.iopubMessage.connect(resolve));
  for (let attempt = 1; attempt <= 2; attempt++) {
    const both = Promise.all([connection.requestKernelInfo(), heard]).then(() => true);
    if (await Promise.race([both, sleep(1500)])) return;
  }
  throw new Error('the kernel does not answer');
}

class Kernel {
  /** `folder` has kernel.json; the kernel works in `cwd`. */
  constructor(folder, cwd) {
    this.spec = JSON.parse(fs.readFileSync(path.join(folder, 'kernel.json'), 'utf8'));
    this.cwd = cwd;
    this.stderr = '';
    // They stay the same when the kernel is restarted.
    this.identity = { clientId: randomUUID(), username: randomUUID(), model: { name: path.basename(folder), id: randomUUID() } };
  }

  async start() {
    const connection = { version: 1, transport: 'tcp', ip: '127.0.0.1', key: randomUUID(), signature_scheme: 'hmac-sha256' };
    for (const channel of [...CHANNELS, 'hb']) connection[`${channel}_port`] = await freePort();
    const file = path.join(this.cwd, `kernel-v2-${randomUUID()}.json`);
    fs.writeFileSync(file, JSON.stringify(connection));
    const [program, ...rest] = this.spec.argv.map((a) => a.replace('{connection_file}', file));
    this.process = spawn(program, rest, { cwd: this.cwd, env: { ...process.env, ...this.spec.env } });
    this.process.stderr.on('data', (data) => (this.stderr += data));
    await Promise.all(['shell', 'iopub'].map((channel) => listens(connection[`${channel}_port`])));
    let socket;
    const WebSocket = function () {
      return (socket = new RawSocket(connection));
    };
    const same = (message) => message;
    const serverSettings = ServerConnection.makeSettings({ WebSocket, wsUrl: 'RAW', serializer: { serialize: same, deserialize: same } });
    this.connection = new KernelConnection({ serverSettings, handleComms: true, ...this.identity });
    this.socket = socket;
    socket.onopen({ target: socket });
    await ready(this.connection);
  }

  /** Run a cell: its reply, and all that it has shown. `seen` hears each of these messages. */
  async execute(code, seen = () => {}, answer) {
    const content = { code, silent: false, stop_on_error: false, allow_stdin: true, store_history: true };
    const future = this.connection.requestExecute(content, false);
    const shown = [];
    future.onIOPub = (message) => {
      shown.push(message);
      seen(message);
    };
    future.onStdin = (message) => this.connection.sendInputReply({ status: 'ok', value: answer(message.content) }, message.header);
    const reply = await future.done;
    future.dispose();
    return { reply: reply.content, shown: shown.filter((m) => !['status', 'execute_input'].includes(m.header.msg_type)) };
  }

  /** By a message on `channel`: control since November 2025, shell before. A kernel of interrupt mode "signal" would get SIGINT. */
  async interrupt(channel) {
    const { username, clientId } = this.connection;
    const message = KernelMessage.createMessage({ msgType: 'interrupt_request', channel, username, session: clientId, content: {} });
    const send = channel === 'shell' ? 'sendShellMessage' : 'sendControlMessage';
    await this.connection[send](message, true, true).done;
  }

  /** By SIGTERM and no message. Returns how the process has ended. */
  async stop() {
    const ended = this.process.exitCode === null && this.process.signalCode === null ? once(this.process, 'exit') : null;
    this.process.kill();
    this.connection.dispose();
    this.socket.close();
    return (await ended) ?? [this.process.exitCode, this.process.signalCode];
  }

  /** A new process; variables are lost. */
  async restart() {
    const ended = this.stop();
    await this.start();
    return ended;
  }
}

module.exports = { Kernel };
