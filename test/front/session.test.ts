/** One WebSocket's session over a fake socket, a fake clock and scripted speech. */
import t from 'tap';
import { ElevenLabsProtocol } from '../../src/dialects/elevenlabs/socket.js';
import { SocketLease } from '../../src/front/ws/socket-lease.js';
import { limits } from '../../src/limits.js';
import { activeKey } from '../support/front-server.js';
import { kindOf } from '../support/socket-client.js';
import { Books, cancel, close, createSession, flush, start, text } from '../support/socket-session.js';
import { wholeBudget } from '../support/whole-budget.js';

const kinds = (frames: readonly object[]): string[] => frames.map(kindOf);

t.test('a context from start to close, frame by frame', (t) => {
  const { books, heard, say, speech, session, tick } = createSession();
  speech.script = (context) => {
    if (context.unspoken !== '') context.speak(3_000);
    context.close();
  };
  say(start('a', { response_format: { encoding: 'mp3' } }));
  t.strictSame(heard(), [
    {
      context_started: {
        voice_id: 'ada',
        model_id: 'default',
        timestamps: false,
        response_format: { encoding: 'mp3', sample_rate: 32_000, bitrate: '128k' },
      },
      context_id: 'a',
    },
  ]);
  t.equal(books.slots, 0, 'an open context holds no slot');
  say(text('Hello'), text(' there.'));
  t.equal(books.slots, 1);
  t.equal(speech.last.text, 'Hello there.');
  say(flush('f1'));
  tick();
  const frames = heard();
  t.strictSame(kinds(frames), ['audio_chunk', 'flush_completed']);
  t.strictSame(frames[1], { flush_completed: true, flush_id: 'f1', context_id: 'a' });
  t.match(books, { slots: 0, reserved: 0, charged: 12 });
  say(text('More.'), close());
  t.strictSame(heard().slice(1), [
    { flush_completed: true, flush_id: 'a:close', context_id: 'a' },
    { context_closed: true, context_id: 'a' },
  ]);
  t.match(books, { slots: 0, reserved: 0, charged: 17 });
  t.equal(session.contexts, 0);
  t.ok(speech.last.released);
  t.end();
});

t.test('without a context id no frame has one, and a flush without an id gets one', (t) => {
  const { heard, say, speech } = createSession();
  speech.script = (context) => context.close();
  say(start(null), { send_text: 'Hi.' }, { flush: true }, { close_context: true });
  const frames = heard();
  t.ok(frames.every((frame) => !('context_id' in frame)));
  const ids = frames.flatMap(({ flush_id }) => flush_id ?? []);
  t.match(ids[0], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  t.equal(ids[1], ':close');
  t.end();
});

t.test('an idle socket gives its slot back after two seconds, and takes it again', (t) => {
  const { books, heard, pass, say, speech } = createSession();
  say(start(), text('Hel'));
  t.match(books, { slots: 1, reserved: 3 });
  pass(1_800);
  t.equal(books.slots, 1);
  say(text('lo'));
  pass(1_800);
  t.equal(books.slots, 1, 'text keeps it');
  pass(400);
  t.match(books, { slots: 0, reserved: 0 });
  heard();
  say(flush('f'));
  t.equal(speech.last.text, 'Hello');
  t.strictSame(kinds(heard()), ['audio_chunk', 'flush_completed']);
  t.match(books, { slots: 0, reserved: 0, charged: 5 });
  t.end();
});

t.test('long generation keeps the slot, and one slot serves all contexts', (t) => {
  const { books, pass, say, speech } = createSession();
  speech.flushScript = () => undefined;
  say(start('a'), start('b'), text('One. ', 'a'), text('Two. ', 'b'));
  t.match(books, { slots: 1, reserved: 10 });
  const [a, b] = speech.contexts;
  b?.speak(3_000);
  for (let second = 0; second < 30; second++) {
    a?.audio(3_000);
    pass(1_000);
    t.equal(books.slots, 1);
  }
  t.end();
});

t.test('a character whose halves come in two messages is one; a flush parts them', (t) => {
  const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)];
  const { books, say, speech } = createSession();
  say(start(), text(`a${high}`), text(`${low}b`), flush('f'));
  t.equal(speech.last.text, 'a😀b');
  t.equal(books.charged, 3);
  say(text(`c${high}`), flush('g'), text(`${low}d`), flush('h'));
  t.equal(speech.last.text, `a😀bc${low}d`, 'a half that nothing follows is not spoken');
  t.match(books, { slots: 0, reserved: 0, charged: 6 });
  t.end();
});

t.test('blank text takes no slot and is charged with the words after it', (t) => {
  const { books, say } = createSession();
  say(start(), text('  \n'), flush('f'), text(' '));
  t.match(books, { slots: 0, charged: 0 });
  say(text('Hi.'), flush('g'));
  t.match(books, { slots: 0, reserved: 0 });
  t.ok(books.charged >= 3);
  t.end();
});

for (const [name, spoil, error] of [
  ['slots', { slotsMax: 0 }, 'Rate limit exceeded'],
  ['credit', { credit: 8 }, 'INSUFFICIENT_CREDITS'],
] as const)
  t.test(`without ${name} a context refuses text until its next flush, which gets the same error`, (t) => {
    const { books, heard, say, speech } = createSession();
    say(start());
    heard();
    Object.assign(books, spoil);
    say(text('First half. '), text('Second half.'), text(' Third.'));
    t.strictSame(heard(), [{ error, context_id: 'a' }], 'one error for each utterance');
    say(flush('f1'));
    t.strictSame(heard(), [{ error, context_id: 'a', flush_id: 'f1' }]);
    t.equal(speech.last.text, '', 'no half of the utterance is spoken');
    t.match(books, { slots: 0, reserved: 0, charged: 0 });
    Object.assign(books, { slotsMax: 9, credit: 100 });
    say(text('Again.'), flush('f2'));
    t.strictSame(kinds(heard()), ['audio_chunk', 'flush_completed']);
    t.equal(books.charged, 6);
    t.end();
  });

t.test('at capacity an utterance is refused as without a slot; one that was admitted goes on', (t) => {
  const { books, heard, say, speech } = createSession();
  say(start('a'), start('b'), text('Admitted ', 'a'));
  heard();
  speech.isAtCapacity = true;
  say(text('and not cut short.', 'a'), flush('f1', 'a'));
  t.strictSame(kinds(heard()), ['audio_chunk', 'flush_completed']);
  say(text('One. ', 'b'), text('Two.', 'b'));
  t.strictSame(heard(), [{ error: 'Service unavailable', context_id: 'b' }]);
  say(flush('f2', 'b'));
  t.strictSame(heard(), [{ error: 'Service unavailable', context_id: 'b', flush_id: 'f2' }]);
  t.equal(speech.last.text, '');
  t.match(books, { slots: 0, reserved: 0, charged: 27 });
  speech.isAtCapacity = false;
  books.credit = 'Again.'.length;
  say(text('Again.', 'b'), flush('f3', 'b'));
  t.strictSame(kinds(heard()), ['audio_chunk', 'flush_completed']);
  t.end();
});

t.test('two utterances that are refused one after the other are answered in order', (t) => {
  const { heard, say, speech } = createSession();
  speech.isAtCapacity = true;
  speech.flushScript = () => undefined;
  say(start(), text('One.'), flush('f1'), text('Two.'), text(' Three.'), flush('f2'));
  const context = speech.last;
  for (const flushId of context.flushIds) context.emit({ type: 'flushed', contextId: 0, flushId });
  say();
  const error = { error: 'Service unavailable', context_id: 'a' };
  t.strictSame(heard().slice(1), [error, { ...error, flush_id: 'f1' }, error, { ...error, flush_id: 'f2' }]);
  t.end();
});

t.test('a refusal within an utterance drops its accepted part; a close still closes', (t) => {
  const { books, heard, say, speech } = createSession();
  speech.script = (context) => context.close();
  books.credit = 10;
  say(start(), text('Hello'));
  heard();
  say(text(' world, how are you?'));
  t.strictSame(heard(), [{ error: 'INSUFFICIENT_CREDITS', context_id: 'a' }]);
  t.equal(speech.last.text, '');
  t.match(books, { slots: 0, reserved: 0 });
  say(text('ignored'), close());
  t.strictSame(kinds(heard()), ['flush_completed', 'context_closed']);
  t.match(books, { slots: 0, reserved: 0, charged: 0 });
  t.end();
});

t.test('if no slot is free, the flush of held text is refused', (t) => {
  const { books, heard, pass, say, speech } = createSession();
  speech.script = (context) => context.close();
  say(start(), start('b'), text('Held'), text('Held too', 'b'));
  pass(2_200);
  books.slotsMax = 0;
  heard();
  say(flush('f'));
  t.strictSame(heard(), [{ error: 'Rate limit exceeded', context_id: 'a', flush_id: 'f' }]);
  say(close('b'));
  t.strictSame(heard(), [
    { error: 'Rate limit exceeded', context_id: 'b' },
    { flush_completed: true, flush_id: 'b:close', context_id: 'b' },
    { context_closed: true, context_id: 'b' },
  ]);
  t.match(books, { slots: 0, reserved: 0, charged: 0 });
  t.end();
});

t.test('a cancel drops what is queued, answers at once, and frees the id', (t) => {
  const { books, heard, say, session, socket, speech, tick } = createSession();
  say(start(), start('b'), text('A long story. '), text('Another.', 'b'));
  heard();
  socket.stalled = true;
  socket.bufferedBytes = limits.socketBufferedBytesMax;
  const [a, b] = speech.contexts;
  for (let i = 0; i < 50; i++) a?.audio(3_000);
  b?.audio(300);
  tick();
  t.equal(socket.sent.length, 0, 'the socket is full');
  say(cancel());
  t.ok(a?.released);
  a?.audio(3_000);
  t.equal(books.reserved, 'Another.'.length, 'the credit of what was not spoken is back');
  say(start());
  socket.bufferedBytes = 0;
  socket.stalled = false;
  session.drained();
  tick();
  t.strictSame(
    heard().map((frame) => `${kindOf(frame)} ${frame.context_id ?? ''}`),
    ['audio_chunk b', 'context_closed a', 'context_started a'],
  );
  t.equal(books.slots, 1, 'the other context still speaks');
  say(cancel('b'));
  t.equal(books.slots, 0, 'given back at once');
  t.end();
});

t.test('a context that is cancelled in the tick of its start still answers context_started', (t) => {
  const { heard, say, session, socket, tick } = createSession();
  say(start(), text('Hello.'), cancel(), start(), cancel(), start());
  const told = () => heard().map((frame) => `${kindOf(frame)} ${frame.context_id ?? ''}`);
  const [started, closed] = ['context_started a', 'context_closed a'];
  t.strictSame(told(), [started, closed, started, closed, started], 'each before the next of its id');
  socket.stalled = true;
  socket.bufferedBytes = limits.socketBufferedBytesMax;
  say(cancel(), start(), start('b'), cancel());
  socket.stalled = false;
  socket.bufferedBytes = 0;
  session.drained();
  tick();
  t.strictSame(told(), [closed, 'context_started b', started, closed]);
  t.end();
});

t.test('a closing context takes no frames but its cancel', (t) => {
  const { heard, say, session, speech } = createSession();
  speech.script = () => undefined;
  say(start(), text('Hello.'), close());
  heard();
  say(text('x'), flush('f'), close(), start());
  t.strictSame(heard(), [
    { error: 'unknown context_id: a', context_id: 'a' },
    { error: 'unknown context_id: a', context_id: 'a', flush_id: 'f' },
    { error: 'unknown context_id: a', context_id: 'a' },
    { error: 'invalid frame: context_id already in use: a', context_id: 'a' },
  ]);
  say(cancel());
  t.strictSame(heard(), [{ context_closed: true, context_id: 'a' }]);
  t.equal(session.contexts, 0);
  say(cancel());
  t.strictSame(heard(), [{ error: 'unknown context_id: a', context_id: 'a' }]);
  t.end();
});

t.test('a fault ends its context with one error frame, and sent audio is charged', (t) => {
  const { books, heard, say, session, speech, lines } = createSession();
  say(start(), start('b'), text('Half of this is heard. '), text('Fine.', 'b'));
  const [a] = speech.contexts;
  a?.speak(3_000);
  a?.fail('scripted');
  say(text('More.'), flush('f2', 'b'));
  t.strictSame(
    heard()
      .slice(2)
      .map((frame) => [kindOf(frame), frame.context_id, frame.error]),
    [
      ['audio_chunk', 'a', undefined],
      ['error', 'a', 'unknown context_id: a'],
      ['audio_chunk', 'b', undefined],
      ['error', 'a', 'Internal Server Error'],
      ['flush_completed', 'b', undefined],
    ],
  );
  t.equal(session.contexts, 1);
  t.match(books, { slots: 0, reserved: 0, charged: 'Half of this is heard. Fine.'.length });
  t.notOk(JSON.stringify(lines).includes('Half of'), 'no text in the log');
  t.end();
});

t.test('contexts, flushes and text are bounded', (t) => {
  const { heard, say, speech } = createSession();
  speech.flushScript = () => undefined;
  say(...Array.from({ length: limits.contextsPerSocketMax + 1 }, (_, i) => start(`c${i}`)));
  const started = heard();
  t.strictSame(kinds(started).filter((kind) => kind === 'error').length, 1);
  t.ok(
    started.some(({ error, context_id }) => error === 'Too many contexts are open' && context_id === 'c64'),
  );
  say(...Array.from({ length: limits.flushesPendingMax + 2 }, (_, i) => flush(`f${i}`, 'c0')));
  t.strictSame(
    heard().map(({ error, flush_id }) => [error, flush_id]),
    [
      ['Too many flushes are waiting', 'f256'],
      ['Too many flushes are waiting', 'f257'],
    ],
  );
  const piece = text('x'.repeat(limits.socketTextBytesMax), 'c1');
  for (let sent = 0; sent < limits.socketCharactersMax; sent += limits.socketTextBytesMax) say(piece);
  t.strictSame(heard(), []);
  say(text('y', 'c2'));
  t.strictSame(heard(), [{ error: 'Too much text is waiting', context_id: 'c2' }]);
  say(cancel('c1'));
  say(flush('f', 'c2'), text('y', 'c2'));
  t.strictSame(heard(), [{ context_closed: true, context_id: 'c1' }], 'there is room again');
  t.end();
});

t.test('what follows in a message that waited for credit is done when the credit is there', (t) => {
  const protocol = new ElevenLabsProtocol(
    {
      ...{ voiceId: () => 'ada', format: { encoding: 'pcm', sampleRateHz: 16_000 }, normalization: null },
      ...{ isMulti: true, isAuto: false, isSync: false, idleMsMax: null },
    },
    limits,
  );
  const decisions: (() => void)[] = [];
  const { say, session, speech } = createSession({
    protocol,
    waitForCredit: (_key, _characters, _slotsOf, _isGrowing, decide) => {
      decisions.push(decide);
      return { cancel: () => true };
    },
  });
  speech.script = () => undefined;
  speech.flushScript = () => undefined;
  say({ text: 'Hello. ', context_id: 'a', flush: true });
  t.ok(session.isWaiting);
  t.equal(speech.last.text, '');
  decisions.shift()?.();
  t.equal(speech.last.text, 'Hello. ');
  t.equal(speech.last.flushIds.length, 1, 'the flush of the same message');
  t.notOk(session.isWaiting);
  t.end();
});

t.test('a socket that ends while it waits for credit waits no more', (t) => {
  let cancelled = 0;
  const { say, session } = createSession({
    waitForCredit: () => ({ cancel: () => ++cancelled > 0 }),
  });
  say(start(), text('Hello.'));
  t.ok(session.isWaiting);
  t.equal(cancelled, 0);
  session.closed(1006);
  t.equal(cancelled, 1);
  t.end();
});

t.test('where flushes have no answer, those beyond the bound join the next, and no text is lost', (t) => {
  const settings = {
    voiceId: () => 'ada',
    format: { encoding: 'pcm', sampleRateHz: 16_000 } as const,
    normalization: null,
  };
  const kind = { isMulti: true, isAuto: false, isSync: false, idleMsMax: null };
  const protocol = new ElevenLabsProtocol({ ...settings, ...kind }, limits);
  const { heard, say, speech } = createSession({ protocol });
  speech.script = () => undefined;
  speech.flushScript = () => undefined;
  const said = (i: number) => ({ text: `${i} `, context_id: 'a', flush: true });
  const count = limits.flushesPendingMax + 50;
  say(...Array.from({ length: count }, (_, i) => said(i)));
  t.strictSame(heard(), [], 'no error');
  const context = speech.last;
  t.equal(context.flushIds.length, limits.flushesPendingMax);
  context.emit({ type: 'flushed', contextId: 0, flushId: '' });
  t.equal(
    context.flushIds.length,
    limits.flushesPendingMax + 1,
    'one place is free: one flush for all that follow',
  );
  context.emit({ type: 'flushed', contextId: 0, flushId: '' });
  t.equal(context.flushIds.length, limits.flushesPendingMax + 1);
  say(said(count), said(count + 1), { text: 'not flushed', context_id: 'a' });
  say({ context_id: 'a', close_context: true });
  t.ok(context.ended);
  t.match(context.text, new RegExp(`^0 1 2 .* ${count} ${count + 1} `), 'all that was flushed');
  t.end();
});

t.test('contexts alternate on a slow socket', (t) => {
  const { heard, say, session, socket, speech, tick } = createSession();
  say(start('a'), start('b'), text('A.', 'a'), text('B.', 'b'));
  heard();
  socket.bufferedBytes = limits.socketBufferedBytesMax;
  const [a, b] = speech.contexts;
  for (let i = 0; i < 20; i++) a?.audio(300);
  for (let i = 0; i < 3; i++) b?.audio(300);
  tick();
  t.equal(a?.handedFrames.length, 0, 'nothing is handed, so the gate closes');
  socket.bufferedBytes = 0;
  session.drained();
  tick();
  t.strictSame(
    heard()
      .slice(0, 7)
      .map(({ context_id }) => context_id),
    ['a', 'b', 'a', 'b', 'a', 'b', 'a'],
  );
  t.equal(a?.handedFrames.length, 20);
  t.end();
});

t.test('a reader that takes nothing is dropped after a minute, a slow one is not', (t) => {
  const { lines, pass, say, session, socket, state } = createSession();
  say(start(), text('Hello.'));
  socket.stalled = true;
  socket.bufferedBytes = 100_000;
  for (let minute = 0; minute < 5; minute++) {
    pass(50_000);
    session.received();
    socket.bufferedBytes -= 1_000;
  }
  t.equal(socket.closed, null);
  t.ok(socket.pings > 10, 'small writes find out whether it takes more');
  pass(59_000);
  session.received();
  t.equal(socket.closed, null);
  pass(1_400);
  t.strictSame(socket.closed, { code: 1006, reason: '' });
  t.equal(state.over, 1);
  t.match(lines.at(-1), { message: 'socket', fields: { outcome: 'reader-stalled' } });
  t.end();
});

t.test('idle sockets are kept by pings, silent ones dropped', (t) => {
  const { lines, pass, session, socket } = createSession();
  for (let i = 0; i < 20; i++) {
    pass(20_000);
    t.equal(socket.pings, i + 1);
    session.received();
  }
  pass(59_800);
  t.equal(socket.closed, null);
  pass(400);
  t.ok(socket.closed);
  t.match(lines.at(-1), { fields: { outcome: 'silent' } });
  t.end();
});

t.test('a client that sends frames and reads no answers is dropped', (t) => {
  const { lines, session, socket, tick } = createSession();
  socket.bufferedBytes = limits.socketBufferedBytesMax;
  for (let i = 0; i < 100_000 && socket.closed === null; i++) {
    session.guard(() => session.message(Buffer.from('{}')));
    if (i % 100 === 0) tick();
  }
  t.ok(socket.closed);
  t.match(lines.at(-1), { fields: { outcome: 'flooded' } });
  t.end();
});

t.test('audio beyond the bound of what waits for a socket ends it', (t) => {
  const { lines, say, socket, speech, tick } = createSession({ bounds: { senderQueueBytesMax: 10_000 } });
  say(start(), text('Hello.'));
  socket.stalled = true;
  socket.bufferedBytes = limits.socketBufferedBytesMax;
  speech.last.audio(3_000);
  tick();
  t.equal(socket.closed, null, 'some may wait');
  speech.last.audio(9_000);
  tick();
  t.ok(socket.closed);
  t.match(lines.at(-1), { fields: { outcome: 'flooded' } });
  t.end();
});

t.test('a socket that goes away in any state leaves nothing behind', (t) => {
  const states: ((s: ReturnType<typeof createSession>) => void)[] = [
    () => undefined,
    (s) => s.say(start()),
    (s) => s.say(start(), text('Hel')),
    (s) => s.say(start(), text('Hello. '), flush('f')),
    (s) => {
      s.speech.script = () => undefined;
      s.say(start(), text('Hello. '), close());
    },
    (s) => {
      s.say(start(), start('b'), text('Hello. '));
      s.socket.bufferedBytes = limits.socketBufferedBytesMax;
      s.speech.contexts[0]?.speak(3_000);
      s.tick();
    },
    (s) => {
      s.books.slotsMax = 0;
      s.say(start(), text('Hello. '));
    },
    (s) => s.say(start(), text('Hello. '), cancel()),
    (s) => {
      s.say(start(), text('Hello. '));
      s.speech.last.fail('scripted');
    },
  ];
  states.forEach((reach, i) => {
    const s = createSession();
    reach(s);
    s.session.closed(1006);
    s.session.closed(1006);
    s.tick();
    s.session.beat(s.state.nowMs + 1);
    t.ok(
      s.speech.contexts.every(({ released }) => released),
      `state ${i}`,
    );
    t.match(s.books, { slots: 0, reserved: 0 });
    t.equal(s.state.over, 1);
    t.equal(s.session.contexts, 0);
    t.equal(s.lines.filter(({ message }) => message === 'socket').length, 1, 'one line a socket');
  });
  t.end();
});

t.test('a revoked key ends the socket in any state', (t) => {
  const { books, heard, say, session, socket, speech } = createSession();
  say(start(), text('Hello. '));
  speech.last.speak(3_000);
  heard();
  session.revoke();
  t.strictSame(heard(), [{ error: 'INVALID_API_KEY' }]);
  t.strictSame(socket.closed, { code: 1008, reason: 'INVALID_API_KEY' });
  t.match(books, { slots: 0, reserved: 0 });
  t.ok(speech.last.released);
  t.end();
});

t.test('a context whose voice the key loses ends with an error; what was sent is charged', (t) => {
  const { books, heard, say, session, socket, speech, state, tick } = createSession();
  speech.script = () => undefined;
  say(start('a'), text('Hello. '), start('b', { voice_id: 'bela' }), start('c'));
  speech.contexts[0]?.speak(3_000);
  say(text('Not spoken. '), close('c'));
  heard();
  speech.contexts[0]?.audio(3_000);
  speech.contexts[2]?.close();
  state.key = activeKey(7, ['bela']);
  session.reviewVoices();
  session.reviewVoices();
  speech.contexts[0]?.audio(3_000);
  tick();
  const error = "Unknown voice 'ada'. Valid voices: bela";
  const frames = heard();
  const of = (id: string) => frames.filter(({ context_id }) => context_id === id);
  t.strictSame(kinds(of('a')), ['audio_chunk', 'error'], 'in order, and nothing after the error');
  t.strictSame(of('a').at(-1), { error, context_id: 'a' });
  t.strictSame(of('b'), [], 'it has another voice');
  t.strictSame(kinds(of('c')), ['flush_completed', 'context_closed'], 'it had ended');
  t.match(books, { slots: 0, reserved: 0, charged: 7 });
  t.ok(speech.contexts[0]?.released);
  t.equal(session.contexts, 1);
  say(start('d'), start('e', { voice_id: 'bela' }));
  t.strictSame(
    heard().map((frame) => frame.error),
    [error, undefined],
  );
  t.equal(socket.closed, null);
  t.end();
});

t.test('a drain closes idle sockets at once, and speaking ones when they have finished', (t) => {
  const idle = createSession();
  idle.say(start());
  idle.state.draining = true;
  idle.session.drain();
  t.match(idle.socket.closed, { code: 1001 });

  const { heard, pass, say, session, socket, speech, state } = createSession();
  speech.flushScript = () => undefined;
  say(start(), text('Hello. '), flush('f'));
  state.draining = true;
  session.drain();
  t.equal(socket.closed, null);
  heard();
  say(start('b'));
  t.strictSame(heard(), [{ error: 'Service unavailable', context_id: 'b' }]);
  speech.last.speak(3_000);
  speech.last.emit({ type: 'flushed', contextId: 0, flushId: 'f' });
  pass(200);
  t.strictSame(kinds(heard()), ['audio_chunk', 'flush_completed']);
  pass(200);
  t.match(socket.closed, { code: 1001 });
  t.end();
});

t.test(
  'a socket ends when its reader has taken what the library holds: at a drain, and when its client asks',
  (t) => {
    const isMulti = { isMulti: true, isAuto: false, isSync: false, idleMsMax: null };
    const format = { encoding: 'pcm', sampleRateHz: 16_000 } as const;
    const settings = { voiceId: () => 'ada', format, normalization: null, ...isMulti };
    const draining = createSession();
    const asked = createSession({ protocol: new ElevenLabsProtocol(settings, limits) });
    draining.say(start(), text('Hello. '), flush('f'));
    for (const { pass, socket } of [draining, asked]) {
      pass(200);
      socket.bufferedBytes = 4_096;
    }
    draining.state.draining = true;
    draining.session.drain();
    asked.say({ close_socket: true });
    for (const { pass, session, socket } of [draining, asked]) {
      pass(1_000);
      t.equal(socket.closed, null);
      socket.bufferedBytes = 0;
      session.drained();
      pass(200);
    }
    t.match(draining.socket.closed, { code: 1001 });
    t.match(asked.socket.closed, { code: 1000 });
    t.end();
  },
);

t.test('the log has one line for each socket, without text, ids or keys of the client', (t) => {
  const { lines, say, session, speech } = createSession();
  say(start('secret-id'), text('Secret words.', 'secret-id'), flush('secret-flush', 'secret-id'));
  session.closed(1000);
  t.match(lines, [
    {
      level: 'info',
      message: 'socket',
      fields: {
        requestId: 'request-1',
        keyId: 7,
        route: '/v1/tts/ws',
        status: 101,
        outcome: 'client',
        code: 1000,
        contexts: 1,
        frames: 3,
        characters: 13,
        spokenCharacters: 13,
      },
    },
  ]);
  t.notMatch(JSON.stringify(lines), /secret|words/i);
  t.equal(speech.contexts.length, 1);
  t.end();
});

t.test('regular expressions do not keep the text of a client', (t) => {
  const { say, session } = createSession();
  say(start(), text(' secret words '), flush('f1'));
  session.closed(1000);
  // The runtime keeps the whole text of the last match.
  t.equal((RegExp as unknown as Record<string, string>)['$_'], '');
  t.end();
});

t.test('marks that wait count as text, and are given back with it', (t) => {
  const textBudget = wholeBudget(100);
  const books = new Books();
  const parts = {
    admission: { admit: (_key: unknown, characters: number) => books.admit(characters) },
    use: { key: activeKey(7) },
    requestId: 'request-1',
    charactersMax: 1_000,
    textBudget,
    onHeld: () => undefined,
  };
  const lease = new SocketLease(parts);
  const [one, other] = [lease.share(), lease.share()];
  t.equal(one.add(10, true, 60), null);
  t.equal(other.add(2, true, 60), 'textExhausted');
  t.equal(other.add(2, true, 6), null);
  t.equal(textBudget.taken, 78);
  one.settle(6, 'ada');
  t.equal(textBudget.taken, 72, 'which marks are left is not known');
  other.drop(2);
  t.equal(textBudget.taken, 64, 'a context gives back no marks of another');
  one.settle(4, 'ada');
  t.equal(textBudget.taken, 0);
  const large = new SocketLease({ ...parts, textBudget: wholeBudget(10_000) }).share();
  t.equal(large.add(500, true, 501), 'textExhausted', 'marks count on their socket, too');
  t.equal(large.add(500, true, 500), null);

  const settings = { format: { encoding: 'pcm', sampleRateHz: 16_000 }, normalization: null } as const;
  const kind = { isMulti: true, isAuto: false, isSync: false, idleMsMax: null };
  const protocol = new ElevenLabsProtocol({ voiceId: () => 'ada', ...settings, ...kind }, limits);
  const bounds = { socketCharactersInFlightMax: 1_000 };
  const { heard, say, speech } = createSession({ protocol, bounds });
  speech.script = () => undefined;
  say({ text: `${'<sub alias="b">a</sub>'.repeat(30)} `, context_id: 'a' });
  t.strictSame(heard(), [], 'thirty of them have room');
  say({ text: `${'<sub alias="b">a</sub>'.repeat(30)} `, context_id: 'a' });
  t.match(heard(), [{ error: 'max_character_limit_exceeded' }]);
  t.end();
});
