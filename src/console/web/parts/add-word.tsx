/** A word for the lexicon of an account, which can be heard before it is added. */
import { useRef, useState } from 'preact/hooks';
import type { HearQuestion } from '../../contract.js';
import { call } from '../call.js';
import { refresh } from '../use-call.js';
import { problemOf, unreachable } from '../playground/problems.js';
import { Button } from './button.js';
import { Field, Form, textOf } from './form.js';
import { Problem } from './page.js';
import { showToast } from './toast.js';

let sound: HTMLAudioElement | null = null;

/** Speaks a word in a spoken form. @returns what went wrong; `null` if it sounds */
const hear = async (accountId: number, question: HearQuestion): Promise<string | null> => {
  const response = await fetch(`/api/hear?accountId=${accountId}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  }).catch(() => null);
  if (response === null) return unreachable;
  if (!response.ok) return problemOf(response);
  const { audio } = (await response.json()) as { readonly audio: string };
  const bytes = Uint8Array.from(atob(audio), (character) => character.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: 'audio/mpeg' }));
  sound?.pause();
  const made = new Audio(url);
  sound = made;
  made.addEventListener('ended', () => URL.revokeObjectURL(url));
  await made.play().catch(() => undefined);
  return null;
};

export const HearButton = (props: {
  readonly accountId: number;
  /** `null`: not all is known. */
  readonly question: () => HearQuestion | null;
  readonly label?: string;
  readonly onProblem: (problem: string | null) => void;
}) => {
  const [isRunning, setIsRunning] = useState(false);
  const play = async () => {
    const question = props.question();
    if (question === null || isRunning) return;
    setIsRunning(true);
    props.onProblem(await hear(props.accountId, question));
    setIsRunning(false);
  };
  return (
    <Button kind="small" icon="play" label="Hear it" name={props.label} isOff={isRunning} onClick={play} />
  );
};

export const AddWord = (props: {
  readonly accountId: number;
  readonly voice: string;
  readonly word: string;
  readonly spoken?: string;
  /** Gives the form a second button. */
  readonly onDone?: () => void;
}) => {
  const { accountId, onDone, voice } = props;
  const box = useRef<HTMLDivElement>(null);
  const [count, setCount] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const question = (): HearQuestion | null => {
    const form = box.current?.querySelector('form');
    if (!(form instanceof HTMLFormElement) || !form.reportValidity()) return null;
    const values = new FormData(form);
    return { voice, word: textOf(values, 'word'), spoken: textOf(values, 'spoken') };
  };
  return (
    <div ref={box}>
      <Form
        key={count}
        submit="Add to the lexicon"
        {...(onDone && { onCancel: onDone })}
        onSubmit={async (values) => {
          const [word, spoken] = [textOf(values, 'word'), textOf(values, 'spoken')];
          setProblem(null);
          await call('addWord', { accountId, word, spoken });
          await refresh();
          showToast(`${word} is in the lexicon. It holds from the next utterance on.`);
          if (onDone === undefined) setCount(count + 1);
          else onDone();
        }}
      >
        {problem !== null && <Problem refusal={{ message: problem }} />}
        <div class="cells">
          <Field name="word" label="Word" defaultValue={props.word} required maxLength={200} />
          <Field
            name="spoken"
            label="Say it as"
            hint="Another spelling, or phonemes between slashes: /təˈmɑːtoʊ/"
            defaultValue={props.spoken ?? ''}
            required
            maxLength={200}
            autoFocus={onDone !== undefined}
          />
        </div>
        <div>
          <HearButton accountId={accountId} question={question} onProblem={setProblem} />
        </div>
      </Form>
    </div>
  );
};
