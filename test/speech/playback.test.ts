import t from 'tap';
import { Playback } from '../../src/speech/playback.js';

t.test('audio in time is never late, however it is cut', (t) => {
  const playback = new Playback();
  playback.resumed(0, 0);
  t.equal(playback.arrived(900, 0), 0, 'the first is never late');
  playback.handed(900, 120);
  t.equal(playback.arrived(1_020, 0), 0, 'at the last moment');
  playback.handed(1_020, 250);
  t.equal(playback.arrived(1_100, 1), 0);
  playback.handed(1_100, 500);
  t.equal(playback.arrived(1_770, 1), 0, 'audio that came early counts');
  t.end();
});

t.test(
  'audio that comes after playback ran out is late by that much, and the next counts from there',
  (t) => {
    const playback = new Playback();
    playback.arrived(0, 0);
    playback.handed(0, 100);
    t.equal(playback.arrived(130, 0), 30);
    playback.handed(130, 200);
    t.equal(playback.arrived(330, 0), 0, 'playing went on at 130');
    playback.handed(330, 100);
    t.equal(playback.arrived(431, 1), 1);
    t.end();
  },
);

t.test('frames that come together are late once', (t) => {
  const playback = new Playback();
  playback.arrived(0, 0);
  playback.handed(0, 100);
  t.strictSame([playback.arrived(150, 0), playback.arrived(150, 0), playback.arrived(150, 0)], [50, 0, 0]);
  t.end();
});

t.test('a listener who takes nothing is not waiting', (t) => {
  const playback = new Playback();
  playback.arrived(0, 0);
  playback.handed(0, 100);
  playback.arrived(50, 0);
  // Its socket is full: the frame before still waits when this one comes.
  t.equal(playback.arrived(5_000, 0), 0);
  playback.handed(60_000, 1_000);
  playback.handed(60_000, 1_000);
  t.equal(playback.arrived(61_900, 0), 0, 'it has two seconds from when it took them');
  playback.handed(61_900, 100);
  t.equal(playback.arrived(62_150, 0), 50);
  t.end();
});

t.test('text that comes when playback has run out starts playback again', (t) => {
  const playback = new Playback();
  playback.resumed(0, 0);
  playback.arrived(10, 0);
  playback.handed(10, 1_000);
  playback.resumed(9_000, 1);
  t.equal(playback.arrived(9_400, 1), 0, 'that is first audio');
  playback.handed(9_400, 100);
  t.equal(playback.arrived(9_600, 1), 100, 'from here on it is awaited');
  t.end();
});

t.test('text that comes in time must be spoken in time', (t) => {
  const playback = new Playback();
  playback.arrived(0, 0);
  playback.handed(0, 1_000);
  playback.resumed(700, 1);
  t.equal(playback.arrived(1_200, 1), 200, '300 ms were left');
  playback.handed(1_200, 1_000);
  playback.resumed(2_100, 2);
  t.equal(playback.arrived(2_300, 2), 0, '100 ms are too short to make it');
  t.end();
});

t.test('audio of earlier text stays due', (t) => {
  const playback = new Playback();
  playback.arrived(0, 0);
  playback.handed(0, 100);
  // The gate opened for segment 2, when segment 1 was still on its way.
  playback.resumed(150, 2);
  t.equal(playback.arrived(180, 1), 80);
  playback.handed(180, 100);
  t.equal(playback.arrived(400, 2), 0);
  t.end();
});
