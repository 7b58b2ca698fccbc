/** A word for the lexicon of an account, which can be heard before it is added. */
import { useRef, useState } from 'preact/hooks';
import type { HearQuestion } from '../../contract.js';
import { call, jsonBody } from '../call.js';
import { refresh, toRefusal } from '../use-call.js';
import { speechOf } from '../playground/problems.js';
import { decodeBase64 } from '../playground/wire.js';
import { Button } from './button.js';
import { Field, Form, textOf } from './form.js';
import { Problem } from './page.js';
import { showToast } from './toast.js';

let sound: HTMLAudioElement | null = null;

/** Speaks a word in a spoken form. @throws {CallError} */
const hear = async (accountId: number, question: HearQuestion): Promise<void> => {
  const response = await speechOf(`/api/hear?accountId=${accountId}`, jsonBody(JSON.stringify(question)));
  const { audio } = (await response.json()) as { readonly audio: string };
  const url = URL.createObjectURL(new Blob([decodeBase64(audio)], { type: 'audio/mpeg' }));
  sound?.pause();
  sound = new Audio(url);
  sound.addEventListener('ended', () => URL.revokeObjectURL(url));
  await sound.play().catch(() => undefined);
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
    const problem = await hear(props.accountId, question).then(() => null, toRefusal);
    props.onProblem(problem?.message ?? null);
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
