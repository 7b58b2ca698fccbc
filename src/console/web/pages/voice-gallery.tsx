/** Each voice once, to hear and to choose: with its conversational variant, if it has one. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VoiceView } from '../../contract.js';
import { formatNumber, formatRatio, formatTenths, plural } from '../format.js';
import { Button } from '../parts/button.js';
import { CopyButton } from '../parts/copy.js';
import { useChoice, useSearch } from '../parts/filters.js';
import { Icon } from '../parts/icon.js';
import { Empty, Problem } from '../parts/page.js';
import { speechOf } from '../playground/problems.js';
import { toRefusal } from '../use-call.js';

const languageOf = (tag: string): string => {
  try {
    return new Intl.DisplayNames(undefined, { type: 'language', fallback: 'code' }).of(tag) ?? tag;
  } catch {
    // A pack may have an invalid language tag.
    return tag;
  }
};

const conversational = '_conv';

/** A voice, and the ids by which it speaks: its own, and that of its conversational variant. */
interface Shown extends VoiceView {
  readonly variants: readonly VoiceView[];
}

const withVariants = (voices: readonly VoiceView[]): readonly Shown[] => {
  const ids = new Set(voices.map(({ id }) => id));
  const baseOf = ({ id }: VoiceView): string => {
    const base = id.endsWith(conversational) ? id.slice(0, -conversational.length) : id;
    return ids.has(base) ? base : id;
  };
  return voices
    .filter((voice) => baseOf(voice) === voice.id)
    .map((voice) => ({ ...voice, variants: voices.filter((other) => baseOf(other) === voice.id) }));
};

const sexes = { '': 'All', female: 'Female', male: 'Male' } as const;

/** How many times as fast as speech. */
const speedOf = (realTimeFactor: number): string => {
  const speed = 1 / realTimeFactor;
  return speed < 10 ? formatTenths(speed) : formatNumber(Math.round(speed));
};

/** Plays one sample at a time. */
const useSamples = () => {
  const audio = useRef<HTMLAudioElement>(null);
  const [playing, setPlaying] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const stop = () => {
    audio.current?.pause();
    audio.current = null;
    setPlaying(null);
  };
  useEffect(() => () => audio.current?.pause(), []);
  const play = (voice: string) => {
    stop();
    const url = `/api/sample?voice=${encodeURIComponent(voice)}`;
    const element = new Audio(url);
    audio.current = element;
    setPlaying(voice);
    setProblem(null);
    element.addEventListener('ended', () => {
      if (audio.current === element) stop();
    });
    element.play().catch(async () => {
      if (audio.current !== element) return;
      stop();
      // The element does not report the reason.
      const refusal = await speechOf(url).then(() => null, toRefusal);
      setProblem(refusal?.message ?? 'This browser cannot play the sample.');
    });
  };
  return { play, playing, problem, stop };
};

const Variant = (props: {
  readonly voice: VoiceView;
  readonly isPlaying: boolean;
  readonly onPlay: () => void;
  readonly onStop: () => void;
}) => {
  const { isPlaying, onPlay, onStop, voice } = props;
  const { id, pace } = voice;
  return (
    <div class="between">
      <span>
        <code>{id}</code>
        {pace !== null && <span class="below">Pace {formatRatio(pace)} ×</span>}
      </span>
      <span class="row">
        <button type="button" class="button small" onClick={isPlaying ? onStop : onPlay}>
          <Icon name={isPlaying ? 'stop' : 'play'} />
          {isPlaying ? 'Stop' : 'Sample'}
          <span class="hidden"> of {id}</span>
        </button>
        <CopyButton text={id} label="Copy id" of={id} />
        <a class="button small" href={`/playground?voice=${encodeURIComponent(id)}`}>
          Try it<span class="hidden"> with {id}</span>
        </a>
      </span>
    </div>
  );
};

export const VoiceGallery = ({ voices }: { readonly voices: readonly VoiceView[] }) => {
  const { play, playing, problem, stop } = useSamples();
  const all = withVariants(voices);
  const languages = Object.fromEntries(all.map(({ language }) => [language, languageOf(language)]));
  const [text, searchField, setText] = useSearch('Name or description');
  const [chosenLanguage, languageField, setLanguage] = useChoice<string>('language', 'Language', {
    '': 'All',
    ...languages,
  });
  const [chosenSex, sexField, setSex] = useChoice('sex', 'Sex', sexes);
  const wanted = text.toLowerCase();
  const found = all.filter(
    ({ description, id, language, pack, sex }) =>
      (chosenLanguage === '' || language === chosenLanguage) &&
      (chosenSex === '' || sex === chosenSex) &&
      `${id} ${description} ${pack} ${languages[language] ?? ''}`.toLowerCase().includes(wanted),
  );
  return (
    <div class="stack">
      {problem !== null && <Problem refusal={{ message: problem }} />}
      <div class="filters" role="search">
        {searchField}
        {languageField}
        {sexField}
      </div>
      <p class="hint" role="status">
        {found.length === all.length
          ? plural(all.length, 'voice')
          : `${formatNumber(found.length)} of ${plural(all.length, 'voice')}`}
      </p>
      {found.length === 0 ? (
        <Empty
          title="No voice is like this"
          action={
            <Button
              label="Show all"
              onClick={() => {
                setText('');
                setLanguage('');
                setSex('');
              }}
            />
          }
        />
      ) : (
        <ul class="cells voices">
          {found.map(({ description, id, language, realTimeFactor, sampleRateHz, sex, variants }) => (
            <li key={id} class="card stack">
              <div>
                <h2>{id}</h2>
                {description !== '' && <p>{description}</p>}
                <p class="hint">
                  {[languages[language], sex, `${formatNumber(sampleRateHz)} Hz`].filter(Boolean).join(', ')}
                </p>
                {realTimeFactor !== null && realTimeFactor > 0 && (
                  <p class="hint">{speedOf(realTimeFactor)} times as fast as speech here, on one core</p>
                )}
              </div>
              {variants.map((voice) => (
                <Variant
                  key={voice.id}
                  voice={voice}
                  isPlaying={playing === voice.id}
                  onPlay={() => play(voice.id)}
                  onStop={stop}
                />
              ))}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
};
