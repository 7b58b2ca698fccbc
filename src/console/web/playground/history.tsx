/** What was spoken in this tab of the browser: to hear it again, and to compare two of them. */
import { formatSeconds, formatNumber } from '../format.js';
import { Button } from '../parts/button.js';
import { Switch } from '../parts/switch.js';
import { Table } from '../parts/table.js';
import type { SpeechRun } from './speech-run.js';

/** The page keeps all samples: up to 12 MB for each minute. */
const runsMax = 10;
const secondsMax = 600;

/** What one compares: the first and the second. */
export type Pair = readonly [SpeechRun, SpeechRun];

/** @returns the newest that the page has room for, and those that are shown; the others are closed */
export const keptOf = (runs: readonly SpeechRun[], shown: readonly SpeechRun[]): readonly SpeechRun[] => {
  let seconds = 0;
  const kept = runs.filter((run, index) => {
    seconds += run.track.receivedSeconds;
    return shown.includes(run) || (index < runsMax && seconds <= secondsMax);
  });
  for (const run of runs) if (!kept.includes(run)) run.close();
  return kept;
};

/** Where the next one goes on: at the same word of the same text, otherwise at the start. */
export const samePlace = (from: SpeechRun, to: SpeechRun): number => {
  if (from.text !== to.text || from.track.state === 'finished') return 0;
  // In a pause: the word before it.
  const seconds = from.track.heardSeconds ?? 0;
  const index = from.words.findLastIndex(({ startSeconds }) => startSeconds <= seconds);
  return to.words[index]?.startSeconds ?? 0;
};

const settingsOf = ({ question: { request }, format }: SpeechRun): string =>
  [
    String(request['voice']),
    `${format.encoding} at ${formatNumber(format.sampleRateHz)} Hz`,
    ...('temperature' in request ? [`temperature ${formatNumber(Number(request['temperature']))}`] : []),
    ...(request['normalize_text'] === true ? [] : ['numbers as written']),
  ].join(', ');

export const PairSwitch = (props: {
  readonly pair: Pair;
  readonly shown: SpeechRun;
  readonly onShow: (run: SpeechRun) => void;
}) => {
  const { pair, onShow, shown } = props;
  return (
    <div class="row">
      <Switch
        name="pair"
        label="Compare"
        options={{ 0: `A: ${settingsOf(pair[0])}`, 1: `B: ${settingsOf(pair[1])}` }}
        value={shown === pair[0] ? '0' : '1'}
        onChange={(chosen) => onShow(pair[chosen === '0' ? 0 : 1])}
      />
      <span class="hint">Goes on at the same word of the same text.</span>
    </div>
  );
};

export const History = (props: {
  readonly runs: readonly SpeechRun[];
  readonly shown: SpeechRun | null;
  /** Of what a text costs. */
  readonly unit: string;
  readonly costOf: (text: string) => string;
  readonly onHear: (run: SpeechRun) => void;
  readonly onCompare: (run: SpeechRun) => void;
  readonly onClear: () => void;
}) => {
  const { costOf, onClear, onCompare, onHear, runs, shown, unit } = props;
  const heard = runs.filter(({ hasAudio }) => hasAudio);
  if (heard.length === 0) return null;
  return (
    <section>
      <div class="between">
        <h2>History of this tab</h2>
        <Button kind="small" label="Clear" onClick={onClear} />
      </div>
      <Table
        caption="What was spoken in this tab, the newest first"
        rows={heard}
        rowKey={({ number }) => number}
        columns={[
          {
            label: 'Text',
            cell: (run) => (
              <>
                <span class="pg-excerpt">{run.text}</span> {run === shown && <span class="badge">Shown</span>}
                <span class="below">{settingsOf(run)}</span>
              </>
            ),
          },
          {
            label: 'Audio',
            isNumber: true,
            cell: ({ track }) => `${formatSeconds(track.receivedSeconds * 1_000)} s`,
          },
          { label: unit, isNumber: true, cell: ({ text }) => costOf(text) },
          {
            label: 'Actions',
            isAction: true,
            cell: (run) => (
              <span class="row">
                <Button kind="small" label="Hear" name={`Hear ${run.number}`} onClick={() => onHear(run)} />
                {shown !== null && run !== shown && (
                  <Button
                    kind="small"
                    label="Compare"
                    name={`Compare ${run.number} with the one shown`}
                    onClick={() => onCompare(run)}
                  />
                )}
              </span>
            ),
          },
        ]}
      />
      <p class="hint">
        Kept in this page until it is closed: the last {runsMax}, of {secondsMax / 60} minutes together.
      </p>
    </section>
  );
};
