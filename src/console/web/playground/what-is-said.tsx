/** What will be said of the text: its spoken form, and each word with its sounds. A word can get another form. */
import { useEffect, useState } from 'preact/hooks';
import type { Answer, Question } from '../../contract.js';
import { Button } from '../parts/button.js';
import { AddWord } from '../parts/add-word.js';
import { Dialog } from '../parts/dialog.js';
import { Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useCall } from '../use-call.js';

/** While a person types, nothing is asked. */
const restMs = 500;

const useRested = <T,>(value: T): T => {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), restMs);
    return () => clearTimeout(timer);
  }, [JSON.stringify(value)]);
  return rested;
};

const marks = /^[([{"'‘’“«¿¡*_]+|(?<![.,;:!?…)\]}"'’”»*_])[.,;:!?…)\]}"'’”»*_]+$/g;

const Words = (props: { readonly question: Question<'said'>; readonly said: Answer<'said'> }) => {
  const { question, said } = props;
  const { accountId, voice } = question;
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <div class="stack">
      <p class="pg-text">{said.spoken}</p>
      {!said.hasPhonemes && <p class="hint">This voice reads letters: it has no phonemes.</p>}
      {chosen !== null && (
        <Dialog title="Say it otherwise" onClose={() => setChosen(null)}>
          <AddWord accountId={accountId} voice={voice} word={chosen} onDone={() => setChosen(null)} />
        </Dialog>
      )}
      <Table
        caption="Words and their sounds"
        rows={said.words.map((word, index) => ({ ...word, index }))}
        rowKey={({ index }) => index}
        columns={[
          { label: 'Word', cell: ({ word }) => word },
          { label: 'Sounds', cell: ({ ipa }) => ipa },
          { label: 'Replaced by', cell: ({ by = '' }) => by },
          {
            label: 'Change',
            isAction: true,
            cell: ({ word }) => (
              <Button
                kind="small"
                label="Say it otherwise"
                name={`Say it otherwise: ${word}`}
                onClick={() => setChosen(word.replace(marks, ''))}
              />
            ),
          },
        ]}
      />
    </div>
  );
};

const Saying = ({ question }: { readonly question: Question<'said'> }) => {
  const rested = useRested(question);
  return <Shown of={useCall('said', rested)}>{(said) => <Words question={question} said={said} />}</Shown>;
};

export const WhatIsSaid = ({ question }: { readonly question: Question<'said'> }) => {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="card" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What will be said</summary>
      {isOpen && <Saying question={question} />}
    </details>
  );
};
