/** Speaks a text with one streaming request, as a program does. */
import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AccountView, VoiceView } from '../../contract.js';
import { formatMs, formatNumber, formatSeconds, plural } from '../format.js';
import { Button } from '../parts/button.js';
import { CopyBlock, Programs } from '../parts/copy.js';
import { TextField } from '../parts/form.js';
import { Problem } from '../parts/page.js';
import { Tiles } from '../parts/tiles.js';
import { useConsole, useUser } from '../session.js';
import { codeFor } from './as-code.js';
import { decodesStreams } from './decoder.js';
import { History, keptOf, PairSwitch, samePlace, type Pair } from './history.js';
import {
  firstFormat,
  firstTemperature,
  formatOf,
  SpeechFields,
  wireFormat,
  type SpeechChoice,
} from './settings.js';
import { extensionOf, SpeechRun } from './speech-run.js';
import { SpokenText, whatWasHeard } from './spoken-text.js';
import { AudioOutput } from './track.js';
import { useRedraw } from './use-redraw.js';
import { Waveform } from './waveform.js';
import { WhatIsSaid } from './what-is-said.js';

/** About six minutes. The page keeps all samples, for jumps and replay. */
const charactersMax = 5_000;

interface Draft extends SpeechChoice {
  readonly text: string;
  readonly normalize: boolean;
}

const firstDraft: Draft = {
  text: 'Good morning. The kettle is on, the train leaves at 9:45, and a ticket costs $12.',
  temperature: firstTemperature,
  normalize: true,
  format: firstFormat,
};
interface Kept {
  readonly userId: number;
  readonly output: AudioOutput;
  draft: Draft;
  /** The newest first. */
  runs: readonly SpeechRun[];
  shown: SpeechRun | null;
  pair: Pair | null;
  redraw: () => void;
}
const keptFor = (userId: number): Kept => ({
  ...{ userId, output: new AudioOutput(), draft: firstDraft, runs: [], shown: null, pair: null },
  redraw: () => undefined,
});
/** Kept while the user visits other pages of the console. Another user finds nothing of it. */
let kept = keptFor(0);

const forget = (): void => {
  for (const run of kept.runs) run.close();
  Object.assign(kept, { runs: [], shown: null, pair: null });
};

const requestOf = ({ format, normalize, temperature, text }: Draft, voice: string) => ({
  text,
  voice,
  response_format: wireFormat(format),
  timestamps: true,
  ...(temperature !== firstTemperature && { temperature }),
  normalize_text: normalize,
});

const statusOf = (run: SpeechRun | null): string => {
  if (run === null || run.state === 'failed') return '';
  if (run.state === 'asking') return 'Asking …';
  const heard = whatWasHeard(run.track, run.words);
  if (heard !== '') return heard;
  return run.track.state === 'finished' ? 'Spoken to the end.' : 'Speaking …';
};

/** What a text costs: credits, or only characters where there is no limit. */
interface Cost {
  readonly cost: number;
  readonly unit: 'Credits' | 'Characters';
}

/** Figures of one request. */
const Figures = ({ run, cost, unit }: { readonly run: SpeechRun } & Cost) => {
  const { firstAudibleMs, firstByteMs, track } = run;
  const figures: readonly (readonly [string, string])[] = [
    ['First byte', firstByteMs === null ? '–' : formatMs(firstByteMs)],
    ['First audible sample', firstAudibleMs === null ? '–' : formatMs(firstAudibleMs)],
    ['Audio', `${formatSeconds(track.receivedSeconds * 1_000)} s`],
    [run.state === 'stopped' ? `${unit}, at most` : unit, formatNumber(cost)],
    ...(track.gaps > 0 ? [['Gaps: audio came too late', formatNumber(track.gaps)] as const] : []),
  ];
  return <Tiles figures={figures} />;
};

/** Why a codec sounds only at its end, and what to do. */
const playsLate = (encoding: string): string =>
  isSecureContext
    ? `This browser plays ${encoding} only when all of it has arrived. Choose pcm to hear speech as it streams.`
    : `Over plain HTTP from another machine, browsers play ${encoding} only when all of it has arrived. Choose pcm to hear speech as it streams, or open the console over HTTPS.`;

export interface TabProps {
  readonly account: AccountView;
  readonly voices: readonly VoiceView[];
  readonly voice: string;
  readonly onVoice: (voice: string) => void;
  /** Called when credit may have been spent. */
  readonly onSpoken: () => void;
}

export const RequestTab = (props: TabProps) => {
  const { account, onSpoken, onVoice, voice, voices } = props;
  const { accountId } = account;
  const { creditsPerCharacter, serviceUrl } = useConsole().session;
  const { userId } = useUser();
  if (kept.userId !== userId) {
    forget();
    kept.output.close();
    kept = keptFor(userId);
  }
  const redraw = useRedraw();
  kept.redraw = redraw;
  const { draft, pair, runs, shown } = kept;
  const box = useRef<HTMLDivElement>(null);
  const [lacksText, setLacksText] = useState(false);
  // A change is drawn at once, and not with the next frame of the screen.
  const [, setDraft] = useState(draft);

  useEffect(() => () => kept.shown?.stop(), []);
  const isReceiving = shown?.isReceiving === true;
  useEffect(() => {
    if (shown?.hasAudio === true && !isReceiving) onSpoken();
  }, [shown, isReceiving]);

  const costOf = (text: string): Cost => {
    const characters = Array.from(text).length;
    if (!account.metered) return { cost: characters, unit: 'Characters' };
    return { cost: characters * creditsPerCharacter, unit: 'Credits' };
  };
  // What follows asks `kept`: what is drawn may be older by a frame.
  const speak = () => {
    if (draft.text.length > charactersMax) return;
    const isEmpty = draft.text.trim() === '';
    setLacksText(isEmpty);
    if (isEmpty) {
      box.current?.querySelector('textarea')?.focus();
      return;
    }
    stop();
    const question = { accountId, request: requestOf(draft, voice) };
    const run = new SpeechRun(question, formatOf(draft.format), kept.output, () => kept.redraw());
    Object.assign(kept, { shown: run, pair: null, runs: keptOf([run, ...kept.runs], [run]) });
    redraw();
  };
  const hear = (run: SpeechRun, seconds: number) => {
    kept.shown?.track.stop();
    kept.shown = run;
    run.track.playFrom(seconds);
  };
  const compare = (run: SpeechRun) => {
    if (shown === null) return;
    kept.pair = [shown, run];
    hear(run, samePlace(shown, run));
  };
  const stop = () => kept.shown?.stop();
  const change = (changes: Partial<Draft>) => {
    kept.draft = { ...kept.draft, ...changes };
    if (changes.text !== undefined) setLacksText(false);
    setDraft(kept.draft);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape') stop();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) speak();
  };

  const { encoding } = draft.format;
  const sounds = shown !== null && (isReceiving || shown.track.state === 'playing');
  const hasAudio = shown?.hasAudio === true;
  const request = requestOf(draft, voice);
  const code = codeFor({ serviceUrl, request, file: `speech.${extensionOf(encoding)}` });
  const isFull = draft.text.length >= charactersMax;
  const used = `${formatNumber(draft.text.length)} of ${plural(charactersMax, 'character')}`;
  const size = account.metered ? `${used}, ${plural(costOf(draft.text).cost, 'credit')}` : used;

  return (
    <div class="stack" ref={box} onKeyDown={onKeyDown}>
      <div class="pg-columns">
        <div class="stack">
          <TextField
            name="text"
            label="Text"
            hint={`${size}. ${isFull ? 'The rest is not taken here. The API takes longer texts.' : 'Ctrl+Enter speaks, Escape stops.'}`}
            rows={5}
            maxLength={charactersMax}
            placeholder="Write what you want to hear."
            value={draft.text}
            onInput={(event) => change({ text: event.currentTarget.value })}
          />
          <div class="row">
            <Button kind="primary" icon="play" label="Speak" onClick={speak} />
            <Button icon="stop" label="Stop" isOff={!sounds} onClick={stop} />
            <Button label="Play again" isOff={!hasAudio} onClick={() => shown?.track.playFrom(0)} />
            <Button
              icon="download"
              label="Download"
              isOff={!hasAudio}
              onClick={() => {
                if (hasAudio) shown.download('speech');
              }}
            />
          </div>
          <p class="muted pg-status" role="status">
            {statusOf(shown)}
          </p>
          {lacksText && (
            <div class="notice warn between">
              <span role="alert">There is no text. Write what you want to hear, then choose Speak.</span>
              <Button kind="small" label="Use an example" onClick={() => change({ text: firstDraft.text })} />
            </div>
          )}
          {typeof shown?.problem === 'string' && <Problem refusal={{ message: shown.problem }} />}
          {shown !== null && shown.state !== 'asking' && (shown.state !== 'failed' || hasAudio) && (
            <>
              {pair !== null && pair.includes(shown) && (
                <PairSwitch pair={pair} shown={shown} onShow={(run) => hear(run, samePlace(shown, run))} />
              )}
              <Waveform track={shown.track} words={shown.words} />
              <SpokenText
                label="Spoken words. The arrow keys move, Enter plays from a word."
                text={shown.text}
                words={shown.words}
                track={shown.track}
              />
              <Figures run={shown} {...costOf(shown.text)} />
              <p class="hint">
                Both times count from the click. The second includes the delay of the browser and the
                loudspeaker.
              </p>
            </>
          )}
        </div>
        <div class="card stack">
          <SpeechFields {...{ voices, voice, onVoice }} choice={draft} onChange={change} />
          <p class="hint">
            {decodesStreams(encoding)
              ? `You hear the ${encoding} stream as it arrives, and download the same bytes.`
              : playsLate(encoding)}
          </p>
          <label class="row">
            <input
              type="checkbox"
              checked={draft.normalize}
              onChange={(event) => change({ normalize: event.currentTarget.checked })}
            />
            Speak numbers, dates and money as words
          </label>
        </div>
      </div>
      <WhatIsSaid
        question={{ accountId, voice, text: draft.text.slice(0, charactersMax), normalize: draft.normalize }}
      />
      <details class="card">
        <summary>As code</summary>
        <Programs
          label="Language"
          programs={Object.fromEntries(
            Object.entries(code).map(([language, text]) => [
              language,
              <CopyBlock text={text.trim()} label={`The request in ${language}`} />,
            ]),
          )}
        />
        <p class="hint">Replace YOUR_API_KEY with an API key.</p>
      </details>
      <History
        runs={runs}
        shown={shown}
        unit={costOf('').unit}
        costOf={(text) => formatNumber(costOf(text).cost)}
        onHear={(run) => hear(run, 0)}
        onCompare={compare}
        onClear={() => {
          forget();
          redraw();
        }}
      />
    </div>
  );
};
