// What a notebook in VS Code asks of the kernel. Needs KERNELS, a folder of kernels, and FOLDER, one to work in.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { Kernel } = require('./kernel.js');

const LONG =
  'let run = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 50_000_000, every: 1000, chains: 2, observe: [observable::cost()] });';
const kernels = [];

function kernel(name) {
  const made = new Kernel(path.join(process.env.KERNELS, name), process.env.FOLDER);
  kernels.push(made);
  return made;
}

const rhai = kernel('ergodic');
const text = (shown, name) => shown.filter((m) => m.header.msg_type === 'stream' && m.content.name === name).map((m) => m.content.text).join('');
const seconds = async (work) => {
  const begin = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - begin) / 1e9;
};

/** Run something long until `act`, which is called when its progress has changed twice. */
async function during(code, act) {
  let updates = 0;
  let acting;
  const cell = await rhai.execute(code, (m) => {
    updates += m.header.msg_type === 'update_display_data';
    if (updates === 2) acting ??= act();
  });
  await acting;
  return cell;
}

before(() => rhai.start(), { timeout: 20_000 });
after(() => Promise.all(kernels.map((k) => k.process && k.stop())));

test('the kernel says what it is', { timeout: 20_000 }, async () => {
  assert.equal(rhai.spec.language, 'rhai');
  assert.equal(rhai.spec.interrupt_mode, 'message');
  assert.equal(rhai.connection.connectionStatus, 'connected');
  const { content } = await rhai.connection.requestKernelInfo();
  assert.equal(content.status, 'ok');
  assert.equal(content.language_info.name, 'rhai');
  assert.equal(content.language_info.file_extension, '.rhai');
  assert.ok(!content.supported_features.length);
});

test('a cell prints, displays and has a value', { timeout: 20_000 }, async () => {
  const { reply, shown } = await rhai.execute('print("ä\\n👍"); debug(1); display(plot::curve([1, 2], [3.0, 4.0])); 6 * 7');
  assert.equal(reply.status, 'ok');
  assert.equal(text(shown, 'stdout'), 'ä\n👍\n');
  assert.match(text(shown, 'stderr'), /1/);
  const figure = shown.find((m) => m.header.msg_type === 'display_data').content.data;
  assert.match(figure['image/svg+xml'], /^<svg/);
  const value = shown.find((m) => m.header.msg_type === 'execute_result').content;
  assert.equal(value.data['text/plain'], '42');
  assert.equal(value.execution_count, reply.execution_count);
});

test('HTML has no scripts and needs nothing from elsewhere', { timeout: 20_000 }, async () => {
  const { shown } = await rhai.execute('display(plot::curve([1, 2], [3.0, 4.0])); table(["a"], [[1]])');
  const html = shown.map((m) => m.content.data['text/html']);
  assert.equal(html.length, 2);
  for (const h of html) assert.doesNotMatch(h, /<script|src="http|url\(http|@import/);
});

test('an error has a name and a traceback, and cells after it run', { timeout: 20_000 }, async () => {
  const failing = rhai.execute('let x = 1;\nno_such_function(x)');
  const next = rhai.execute('x + 1');
  const { reply, shown } = await failing;
  assert.equal(reply.status, 'error');
  const error = shown.find((m) => m.header.msg_type === 'error').content;
  assert.match(error.evalue, /no_such_function/);
  assert.ok(error.traceback.length >= 2 && error.traceback.every((line) => typeof line === 'string'));
  // VS Code sends stop_on_error: false.
  assert.equal((await next).reply.status, 'ok');
});

test('outputs are cleared', { timeout: 20_000 }, async () => {
  const { shown } = await rhai.execute('print("a"); clear_output(); print("b")');
  const clear = shown.find((m) => m.header.msg_type === 'clear_output');
  assert.equal(typeof clear.content.wait, 'boolean');
});

test('completion, hover, and whether a cell is complete', { timeout: 20_000 }, async () => {
  const code = '"👍"; sampler::hmc(#{ leap';
  // Positions are code points.
  const points = [...code].length;
  const { content: found } = await rhai.connection.requestComplete({ code, cursor_pos: points });
  assert.deepEqual(found.matches, ['leapfrog: ']);
  assert.deepEqual([found.cursor_start, found.cursor_end], [points - 4, points]);
  assert.equal(found.metadata._jupyter_types_experimental[0].type, 'property');
  const { content: about } = await rhai.connection.requestInspect({ code: 'sampler::hmc', cursor_pos: 9, detail_level: 0 });
  assert.ok(about.found);
  assert.match(about.data['text/plain'], /hybrid Monte Carlo/);
  const complete = async (code) => (await rhai.connection.requestIsComplete({ code })).content.status;
  assert.equal(await complete('1 + 1'), 'complete');
  assert.equal(await complete('print('), 'incomplete');
  const { content: history } = await rhai.connection.requestHistory({ hist_access_type: 'tail', output: false, raw: true, n: 1 });
  assert.equal(history.history.length, 1);
});

test('widgets, which there are not, are refused and not waited for', { timeout: 20_000 }, async () => {
  const { content } = await rhai.connection.requestCommInfo({ target_name: 'jupyter.widget' });
  assert.deepEqual(content.comms, {});
  const comm = rhai.connection.createComm('jupyter.widget');
  const closed = new Promise((resolve) => (comm.onClose = resolve));
  comm.open({});
  await closed;
});

for (const channel of ['control', 'shell']) {
  test(`progress changes in its place, and an interrupt on ${channel} saves the run`, { timeout: 30_000 }, async () => {
    await rhai.execute('let kept = 41;');
    let waited;
    const { reply, shown } = await during(LONG, async () => (waited = await seconds(() => rhai.interrupt(channel))));
    assert.equal(reply.ename, 'Interrupted');
    assert.ok(waited < 5, `${waited} s`);
    const bars = shown.filter((m) => m.header.msg_type.endsWith('display_data'));
    assert.equal(bars[0].header.msg_type, 'display_data');
    assert.equal(new Set(bars.map((m) => m.content.transient.display_id)).size, 1);
    assert.match(bars.at(-1).content.data['text/html'], /ergodic-progress/);
    const { shown: after } = await rhai.execute('kept + 1');
    assert.equal(after[0].content.data['text/plain'], '42');
  });
}

test('a restart ends a running cell, and the run can be read', { timeout: 30_000 }, async () => {
  const old = rhai.process;
  // What waits for the reply of the old process is told that it was disposed of.
  const ended = await new Promise((resolve) => during(LONG, async () => resolve(await rhai.restart())).catch(() => {}));
  assert.deepEqual(ended, [0, null]);
  assert.notEqual(rhai.process.pid, old.pid);
  assert.equal((await rhai.execute('kept')).reply.status, 'error');
  const [session] = fs.readdirSync(path.join(process.env.FOLDER, 'runs')).filter((n) => /-1$/.test(n));
  const { reply, shown } = await rhai.execute(`open("runs/${session}/sample-1").step`);
  assert.equal(reply.status, 'ok');
  assert.ok(Number(shown[0].content.data['text/plain']) > 0);
});

test('a cell asks for input', { timeout: 20_000 }, async () => {
  const toy = kernel('demo');
  await toy.start();
  const { shown } = await toy.execute('input("who? ")', undefined, ({ prompt }) => `${prompt}me`);
  assert.equal(shown[0].content.data['text/plain'], 'who? me');
  await toy.stop();
});

test('the end of a session leaves no process, and nothing was said on standard error', { timeout: 20_000 }, async () => {
  const { pid } = rhai.process;
  assert.deepEqual(await rhai.stop(), [0, null]);
  assert.throws(() => process.kill(pid, 0));
  assert.equal(rhai.stderr, '');
});
