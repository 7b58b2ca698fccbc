/** A card for each voice, with a sample to hear. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VoiceView } from '../../contract.js';
import { formatNumber } from '../format.js';
import { Icon } from '../parts/icon.js';
import { Empty, Problem, Shown } from '../parts/page.js';
import { useCall } from '../use-call.js';
import { problemOf, unreachable } from './problems.js';

const languageOf = (tag: string): string => {
  try {
    return new Intl.DisplayNames(undefined, { type: 'language', fallback: 'code' }).of(tag) ?? tag;
  } catch {
    // A pack may have an invalid language tag.
    return tag;
  }
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
      const response = await fetch(url).catch(() => null);
      if (response === null) setProblem(unreachable);
      else setProblem(response.ok ? 'This browser cannot play the sample.' : await problemOf(response));
    });
  };
  return { play, playing, problem, stop };
};

const VoiceCard = (props: {
  readonly voice: VoiceView;
  readonly isPlaying: boolean;
  readonly onPlay: () => void;
  readonly onStop: () => void;
  readonly onChoose: (() => void) | undefined;
}) => {
  const { isPlaying, onChoose, onPlay, onStop, voice } = props;
  return (
    <li class="card stack pg-voice">
      <h2>{voice.id}</h2>
      <p>{voice.description}</p>
      <p class="hint">
        {languageOf(voice.language)}, {formatNumber(voice.sampleRateHz)} Hz
      </p>
      <div class="row">
        <button type="button" class="button small" onClick={isPlaying ? onStop : onPlay}>
          <Icon name={isPlaying ? 'stop' : 'play'} />
          {isPlaying ? 'Stop' : 'Sample'}
          <span class="hidden"> of {voice.id}</span>
        </button>
        {onChoose === undefined ? (
          <a class="button small" href={`/playground?voice=${encodeURIComponent(voice.id)}`}>
            Try it<span class="hidden"> with {voice.id}</span>
          </a>
        ) : (
          <button type="button" class="button small" onClick={onChoose}>
            Try it<span class="hidden"> with {voice.id}</span>
          </button>
        )}
      </div>
    </li>
  );
};

export const VoiceGallery = ({ onChoose }: { readonly onChoose?: (voice: string) => void }) => {
  const asked = useCall('voices', {});
  const { play, playing, problem, stop } = useSamples();
  return (
    <div class="stack">
      {problem !== null && <Problem refusal={{ message: problem }} />}
      <Shown of={asked}>
        {({ packs }) => {
          const voices = packs.flatMap((pack) => pack.voices);
          if (voices.length === 0)
            return <Empty title="No voice is loaded">An operator can add a voice pack and reload.</Empty>;
          return (
            <ul class="cells">
              {voices.map((voice) => (
                <VoiceCard
                  key={voice.id}
                  voice={voice}
                  isPlaying={playing === voice.id}
                  onPlay={() => play(voice.id)}
                  onStop={stop}
                  onChoose={onChoose && (() => onChoose(voice.id))}
                />
              ))}
            </ul>
          );
        }}
      </Shown>
    </div>
  );
};
