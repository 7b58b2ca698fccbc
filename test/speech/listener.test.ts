/** What a listener has in hand, and how late its audio is. */
import t from 'tap';
import { Listener } from '../../src/speech/listener.js';
import { PlaybackClock } from '../../src/threads/playback-clock.js';

const listen = (nowMs = 0) => new Listener(new PlaybackClock(), 'stream', nowMs);

t.test('audio in time is never late, however it is cut', (t) => {
  const listener = listen();
  listener.resumed(0, 0);
  t.equal(listener.arrived(900, 0, 120), 0, 'the first is never late');
  listener.handed(900, 120);
  t.equal(listener.arrived(1_020, 0, 250), 0, 'at the last moment');
  listener.handed(1_020, 250);
  t.equal(listener.arrived(1_100, 1, 500), 0);
  listener.handed(1_100, 500);
  t.equal(listener.arrived(1_770, 1, 100), 0, 'audio that came early counts');
  t.end();
});

t.test(
  'audio that comes after playback ran out is late by that much, and the next counts from there',
  (t) => {
    const listener = listen();
    listener.arrived(0, 0, 100);
    listener.handed(0, 100);
    t.equal(listener.arrived(130, 0, 200), 30);
    listener.handed(130, 200);
    t.equal(listener.arrived(330, 0, 100), 0, 'playing went on at 130');
    listener.handed(330, 100);
    t.equal(listener.arrived(431, 1, 100), 1);
    t.end();
  },
);

t.test('frames that come together are late once', (t) => {
  const listener = listen();
  listener.arrived(0, 0, 100);
  listener.handed(0, 100);
  const late = [1, 2, 3].map(() => listener.arrived(150, 0, 100));
  t.strictSame(late, [50, 0, 0]);
  t.end();
});

t.test('a listener who takes nothing is not waiting', (t) => {
  const listener = listen();
  listener.arrived(0, 0, 100);
  listener.handed(0, 100);
  listener.arrived(50, 0, 1_000);
  // Its socket is full: the frame before still waits when this one comes.
  t.equal(listener.arrived(5_000, 0, 1_000), 0);
  listener.handed(60_000, 1_000);
  listener.handed(60_000, 1_000);
  t.equal(listener.arrived(61_900, 0, 100), 0, 'it has two seconds from when it took them');
  listener.handed(61_900, 100);
  t.equal(listener.arrived(62_150, 0, 100), 50);
  t.end();
});

t.test('text that comes when playback has run out starts playback again', (t) => {
  const listener = listen();
  listener.resumed(0, 0);
  listener.arrived(10, 0, 1_000);
  listener.handed(10, 1_000);
  listener.resumed(9_000, 1);
  t.equal(listener.arrived(9_400, 1, 100), 0, 'that is first audio');
  listener.handed(9_400, 100);
  t.equal(listener.arrived(9_600, 1, 100), 100, 'from here on it is awaited');
  t.end();
});

t.test('text that comes in time must be spoken in time', (t) => {
  const listener = listen();
  listener.arrived(0, 0, 1_000);
  listener.handed(0, 1_000);
  listener.resumed(700, 1);
  t.equal(listener.arrived(1_200, 1, 1_000), 200, '300 ms were left');
  listener.handed(1_200, 1_000);
  listener.resumed(2_100, 2);
  t.equal(listener.arrived(2_300, 2, 1_000), 0, '100 ms are too short to make it');
  t.end();
});

t.test('audio of earlier text stays due', (t) => {
  const listener = listen();
  listener.arrived(0, 0, 100);
  listener.handed(0, 100);
  // The gate opened for segment 2, when segment 1 was still on its way.
  listener.resumed(150, 2);
  t.equal(listener.arrived(180, 1, 100), 80);
  listener.handed(180, 100);
  t.equal(listener.arrived(400, 2, 100), 0);
  t.end();
});

t.test('it has in hand what came and was not played', (t) => {
  const listener = listen(1_000);
  t.equal(listener.slackMs(1_000), 0);
  listener.arrived(1_200, 0, 500);
  listener.handed(1_200, 500);
  t.equal(listener.slackMs(1_300), 400, 'it plays from when its audio came');
  t.equal(listener.slackMs(1_800), -100, 'it has been dry for so long');
  listener.arrived(1_900, 0, 500);
  t.equal(listener.slackMs(1_900), 500);
  t.strictSame([listener.arrivedMs, listener.handedMs], [1_000, 500]);
  t.end();
});

t.test('what a listener does not take it does not play, whatever the clock says', (t) => {
  const listener = listen();
  listener.arrived(0, 0, 100);
  listener.handed(0, 100);
  for (let frame = 0; frame < 5; frame++) listener.arrived(50, 0, 1_000);
  t.equal(listener.slackMs(4_100), 5_000, 'its socket is full: all five seconds wait');
  for (let nowMs = 250; nowMs <= 60_000; nowMs += 250) listener.standsStill(nowMs);
  t.equal(listener.clock.at(100), 60_000, 'the clock stood still at what it has');
  t.equal(listener.slackMs(60_000), 5_000);
  listener.handed(60_010, 1_000);
  t.equal(listener.clock.at(1_100), 61_010, 'it plays on when it takes the next');
  t.end();
});

t.test('time does not stand still for a listener who takes all', (t) => {
  const listener = listen();
  listener.arrived(0, 0, 1_000);
  listener.handed(0, 1_000);
  listener.standsStill(900);
  t.equal(listener.slackMs(900), 100);
  listener.standsStill(1_500);
  t.equal(listener.arrived(1_500, 0, 100), 500, 'it is dry');
  t.end();
});

t.test('it awaits first audio from the text on until the audio comes', (t) => {
  const listener = listen();
  t.equal(listener.isAwaiting, false, 'nothing was asked for');
  listener.resumed(10, 0);
  t.equal(listener.isAwaiting, true);
  listener.resumed(500, 1);
  listener.arrived(600, 0, 1_000);
  t.equal(listener.isAwaiting, false);
  listener.handed(600, 1_000);
  listener.resumed(1_500, 1);
  t.equal(listener.isAwaiting, false, 'it still plays');
  listener.resumed(1_700, 1);
  t.equal(listener.isAwaiting, true, 'it has played all');
  t.end();
});

t.test('a whole file is due by its length; nobody plays it, so nothing is late and nothing moves', (t) => {
  const file = new Listener(new PlaybackClock(), 'whole', 1_000);
  t.equal(file.isFile, true);
  t.equal(file.slackMs(1_000), 300, 'not before 300 ms');
  file.resumed(1_000, 0);
  t.equal(file.isAwaiting, false);
  t.equal(file.arrived(4_000, 0, 2_000), 0);
  t.equal(file.slackMs(4_000), -2_000, 'two seconds were due at 2,000');
  file.standsStill(5_000);
  file.handed(5_000, 2_000);
  t.equal(file.clock.at(2_000), 2_000);
  t.equal(file.arrived(6_000, 1, 2_000), 0);
  t.equal(file.clock.at(4_000), 3_000);
  t.equal(new Listener(new PlaybackClock(), 'elevenlabs-whole', 0).isFile, true);
  for (const framing of ['stream', 'raw', 'openai-events', 'socket'] as const)
    t.equal(new Listener(new PlaybackClock(), framing, 0).isFile, false, framing);
  t.end();
});
