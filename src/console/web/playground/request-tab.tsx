/** Speaks a text with one streaming request, as a program does. */
import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VoiceView } from '../../contract.js';
import { formatNumber, formatSeconds } from '../format.js';
import { CopyBlock } from '../parts/copy.js';
import { Labelled } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Problem } from '../parts/page.js';
import { Switch } from '../parts/switch.js';
import { useConsole, useUser } from '../session.js';
import { codeFor, type Code } from './as-code.js';
import { decodesStreams } from './decoder.js';
import {
  firstFormat,
  firstTemperature,
  FormatFields,
  formatOf,
  VoiceFields,
  wireFormat,
  type FormatChoice,
} from './settings.js';
import { extensionOf, SpeechRun } from './speech-run.js';
import { SpokenText } from './spoken-text.js';
import { AudioOutput } from './track.js';
import { useRedraw } from './use-redraw.js';
import { WhatIsSaid } from './what-is-said.js';

/** About six minutes. The page keeps all samples, for jumps and replay. */
const charactersMax = 5_000;

interface Draft {
  readonly text: string;
  readonly temperature: number;
  readonly normalize: boolean;
  readonly format: FormatChoice;
}

const firstDraft: Draft = {
  text: 'Good morning. The kettle is on, the train leaves at 9:45, and a ticket costs $12.',
  temperature: firstTemperature,
  normalize: true,
  format: firstFormat,
};
/** Kept while the user visits other pages of the console. Another user starts with the first draft. */
let kept = { userId: 0, draft: firstDraft };

const requestOf = ({ format, normalize, temperature, text }: Draft, voice: string) => ({
  text,
  voice,
  response_format: wireFormat(format),
  timestamps: true,
  ...(temperature !== firstTemperature && { temperature }),
  normalize_text: normalize,
});

const wholeMs = (ms: number): string => `${formatNumber(Math.round(ms))} ms`;

const statusOf = (run: SpeechRun | null): string => {
  if (run === null) return '';
  switch (run.state) {
    case 'asking':
      return 'Asking …';
    case 'failed':
      return '';
    case 'stopped':
      return 'Stopped.';
    case 'receiving':
    case 'complete':
      switch (run.track.state) {
        case 'finished':
          return 'Spoken.';
        case 'stopped':
          return 'Stopped.';
        case 'playing':
        case 'waiting':
          return 'Speaking …';
      }
  }
};

/** Figures of the last request. */
const Figures = ({ run }: { readonly run: SpeechRun }) => {
  const { firstAudibleMs, firstByteMs, track } = run;
  const figures = [
    ['First byte', firstByteMs === null ? '–' : wholeMs(firstByteMs)],
    ['First audible sample', firstAudibleMs === null ? '–' : wholeMs(firstAudibleMs)],
    ['Audio', `${formatSeconds(track.receivedSeconds * 1_000)} s`],
    ...(track.gaps > 0 ? [['Gaps: audio came too late', formatNumber(track.gaps)]] : []),
  ];
  return (
    <dl class="cells tiles">
      {figures.map(([name, value]) => (
        <div key={name} class="card">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
};

const languages = { curl: 'curl', node: 'Node', python: 'Python' } as const satisfies Record<
  keyof Code,
  string
>;

const AsCode = ({ code }: { readonly code: Code }) => {
  const [language, setLanguage] = useState<keyof Code>('curl');
  return (
    <details class="card">
      <summary>As code</summary>
      <Switch name="language" label="Language" options={languages} value={language} onChange={setLanguage} />
      <CopyBlock text={code[language]} label={`The request in ${language}`} />
      <p class="hint">Replace YOUR_API_KEY with an API key. This page has none.</p>
    </details>
  );
};

/** Why a codec sounds only at its end, and what to do. */
const playsLate = (encoding: string): string =>
  isSecureContext
    ? `This browser plays ${encoding} only when all of it has arrived. Choose pcm to hear speech as it streams.`
    : `Over plain HTTP from another machine, browsers play ${encoding} only when all of it has arrived. Choose pcm to hear speech as it streams, or open the console over HTTPS.`;

export const RequestTab = (props: {
  readonly accountId: number;
  readonly voices: readonly VoiceView[];
  readonly voice: string;
  readonly onVoice: (voice: string) => void;
  /** Called when credit may have been spent. */
  readonly onSpoken: () => void;
}) => {
  const { accountId, onSpoken, onVoice, voice, voices } = props;
  const { serviceUrl } = useConsole().session;
  const { userId } = useUser();
  const [draft, setDraft] = useState(kept.userId === userId ? kept.draft : firstDraft);
  const redraw = useRedraw();
  const output = useRef<AudioOutput>(null);
  const run = useRef<SpeechRun | null>(null);
  kept = { userId, draft };

  useEffect(
    () => () => {
      run.current?.close();
      output.current?.close();
    },
    [],
  );
  const isReceiving = run.current?.isReceiving === true;
  useEffect(() => {
    if (run.current?.hasAudio === true && !isReceiving) onSpoken();
  }, [isReceiving]);

  const speak = () => {
    if (draft.text.length > charactersMax) return;
    run.current?.close();
    output.current ??= new AudioOutput();
    const question = { accountId, request: requestOf(draft, voice) };
    run.current = new SpeechRun(question, formatOf(draft.format), output.current, redraw);
    redraw();
  };
  const stop = () => run.current?.stop();
  const change = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape') stop();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) speak();
  };

  const { current } = run;
  const { encoding } = draft.format;
  const sounds = current !== null && (isReceiving || current.track.state === 'playing');
  const hasAudio = current?.hasAudio === true;
  const request = requestOf(draft, voice);
  const code = codeFor({ serviceUrl, request, file: `speech.${extensionOf(encoding)}` });
  const left = charactersMax - draft.text.length;

  return (
    <div class="stack" onKeyDown={onKeyDown}>
      <div class="pg-columns">
        <div class="stack">
          <Labelled
            name="text"
            label="Text"
            hint={
              left < 500
                ? `${formatNumber(left)} characters left. The API takes longer texts.`
                : 'Ctrl+Enter speaks, Escape stops.'
            }
          >
            {(control) => (
              <textarea
                {...control}
                rows={5}
                maxLength={charactersMax}
                value={draft.text}
                onInput={(event) => change({ text: event.currentTarget.value })}
              />
            )}
          </Labelled>
          <div class="row">
            <button type="button" class="button primary" onClick={speak}>
              <Icon name="play" /> Speak
            </button>
            <button type="button" class="button" aria-disabled={!sounds} onClick={stop}>
              <Icon name="stop" /> Stop
            </button>
            <button
              type="button"
              class="button"
              aria-disabled={!hasAudio}
              onClick={() => current?.track.playFrom(0)}
            >
              Play again
            </button>
            <button
              type="button"
              class="button"
              aria-disabled={!hasAudio}
              onClick={() => {
                if (hasAudio) current.download('speech');
              }}
            >
              <Icon name="download" /> Download
            </button>
          </div>
          <p class="muted pg-status" role="status">
            {statusOf(current)}
          </p>
          {typeof current?.problem === 'string' && <Problem refusal={{ message: current.problem }} />}
          {current !== null && current.state !== 'asking' && (current.state !== 'failed' || hasAudio) && (
            <>
              <Figures run={current} />
              <p class="hint">
                Both times count from the click. The second includes the delay of the browser and the
                loudspeaker.
              </p>
              <SpokenText
                label="Spoken words. The arrow keys move, Enter plays from a word."
                text={String(current.question.request['text'])}
                words={current.words}
                track={current.track}
              />
            </>
          )}
        </div>
        <div class="card stack">
          <VoiceFields
            voices={voices}
            value={{ voice, temperature: draft.temperature }}
            onChange={(value) => {
              onVoice(value.voice);
              change({ temperature: value.temperature });
            }}
          />
          <FormatFields value={draft.format} onChange={(format) => change({ format })} />
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
      <AsCode code={code} />
    </div>
  );
};
