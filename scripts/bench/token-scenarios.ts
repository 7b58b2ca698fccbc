/** Text that arrives as a language model writes it: when speech begins, and whether it ever waits for text. */
import type { Load } from './load.js';
import { type Row, barredRow, row } from './report.js';
import type { Target } from './streams.js';
import { agentTexts } from './token-texts.js';
import { median, percentile } from '../rig/statistics.js';

/** Fewer at a time where text comes fast: the machine speaks all of it, and must not be the reason to wait. */
const speeds = [
  { tokensPerSecond: 10, atOnce: 10 },
  { tokensPerSecond: 20, atOnce: 8 },
  { tokensPerSecond: 40, atOnce: 4 },
  { tokensPerSecond: 80, atOnce: 2 },
  { tokensPerSecond: 160, atOnce: 1 },
] as const;
/** Of the first sound, compared with speech that waits for a sentence or for a hundred characters. */
const ratioMax = 0.5;
/** From this speed on, a listener never waits for text. */
const gaplessTokensPerSecond = 40;
/** A clock's tick and a socket's turn. */
const gapMsMax = 5;
/** One lane for each key. */
export const tokenKeysNeeded = Math.max(...speeds.map(({ atOnce }) => atOnce));

const ms = (value: number): string => `${value.toFixed(0)} ms`;

export const measureTokens = async (load: Load, target: Target): Promise<Row[]> => {
  // The first utterances make the service load and compile code.
  await load.call('replayTokens', { target, texts: agentTexts.slice(0, 5), tokensPerSecond: 160, atOnce: 1 });
  const rows: Row[] = [];
  for (const { atOnce, tokensPerSecond } of speeds) {
    const replays = await load.call('replayTokens', { target, texts: agentTexts, tokensPerSecond, atOnce });
    const early = replays.map(({ firstSoundMs }) => firstSoundMs.tokens);
    const late = replays.map(({ firstSoundMs }) => firstSoundMs.sentences);
    const ratio = median(early) / median(late);
    const spread = (values: readonly number[]) =>
      `p50 ${ms(median(values))}, p95 ${ms(percentile(values, 0.95))}`;
    rows.push(
      barredRow(
        `First sound, ${tokensPerSecond} tokens a second, ${replays.length} texts`,
        `${spread(early)}; by the sentence ${spread(late)} (${ratio.toFixed(2)} x)`,
        `p50 at most ${ratioMax} x by the sentence`,
        ratio <= ratioMax,
      ),
    );
    const gaps = replays.map(({ dryMs }) => dryMs).filter((dryMs) => dryMs > gapMsMax);
    const what = `Gaps in playback, ${tokensPerSecond} tokens a second`;
    const figure = gaps.length === 0 ? 'none' : `${gaps.length} texts, the longest ${ms(Math.max(...gaps))}`;
    if (tokensPerSecond < gaplessTokensPerSecond) rows.push(row(what, figure));
    else rows.push(barredRow(what, figure, 'none', gaps.length === 0));
  }
  return rows;
};
