/** The words of an account's lexicon: search, hear, add, remove. */
import { useState } from 'preact/hooks';
import { call } from '../call.js';
import { formatNumber, plural } from '../format.js';
import { PageOfAccount } from '../parts/account-choice.js';
import { AddWord, HearButton } from '../parts/add-word.js';
import { ConfirmButton } from '../parts/dialog.js';
import { useChoice, useSearch } from '../parts/filters.js';
import { Empty, Problem, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useCall, useVoices } from '../use-call.js';

const Words = (props: { readonly accountId: number; readonly voices: readonly string[] }) => {
  const { accountId, voices } = props;
  const [search, searchField] = useSearch('Search words');
  const [voice, voiceField] = useChoice('voice', 'Hear with', voices, voices[0] ?? '');
  const [problem, setProblem] = useState<string | null>(null);
  const words = useCall('words', { accountId, search });
  return (
    <>
      <section class="card">
        <h2>Add a word</h2>
        <AddWord accountId={accountId} voice={voice} word="" />
      </section>
      <div class="filters">
        {searchField}
        {voiceField}
      </div>
      {problem !== null && <Problem refusal={{ message: problem }} />}
      <Shown of={words}>
        {({ found, own, ownMax, words: rows }) => (
          <>
            {found === 0 && search === '' ? (
              <Empty title="No words yet">
                Add a name that a voice says wrongly. All keys of the account say it right from the next
                utterance on.
              </Empty>
            ) : (
              <>
                <Table
                  caption="Words"
                  none="No word is like that."
                  rowsMax={100}
                  rows={rows}
                  rowKey={({ language, spoken, word }) => `${word} ${language ?? ''} ${spoken}`}
                  columns={[
                    {
                      label: 'Word',
                      cell: ({ language, word }) => (
                        <>
                          {word} {language !== null && <span class="badge">{language}</span>}
                        </>
                      ),
                    },
                    { label: 'Said as', cell: ({ spoken }) => spoken },
                    {
                      label: 'Actions',
                      isAction: true,
                      cell: (row) => (
                        <span class="row">
                          <HearButton
                            accountId={accountId}
                            label={`Hear it: ${row.word}`}
                            question={() => ({ voice, word: row.word, spoken: row.spoken })}
                            onProblem={setProblem}
                          />
                          {row.isOwn ? (
                            <ConfirmButton
                              label="Remove"
                              of={row.word}
                              title={`Remove ${row.word}?`}
                              act="Remove word"
                              onAct={() => call('removeWord', { accountId, word: row.word })}
                              done={`${row.word} is out of the lexicon. The next utterance says it as the voice does.`}
                            >
                              <p>It is no longer said as “{row.spoken}”, from the next utterance on.</p>
                            </ConfirmButton>
                          ) : (
                            <span class="hint">Set by an operator</span>
                          )}
                        </span>
                      ),
                    },
                  ]}
                />
                {found > rows.length && (
                  <p class="muted">
                    {plural(found - rows.length, 'more word is', 'more words are')} like that: search for
                    them.
                  </p>
                )}
              </>
            )}
            <p class="hint">
              {formatNumber(own)} of {formatNumber(ownMax)} words.
            </p>
          </>
        )}
      </Shown>
    </>
  );
};

export const LexiconPage = () => {
  const voices = useVoices();
  return (
    <PageOfAccount
      title="Lexicon"
      lead="Names and words as this account says them, from the next utterance on."
    >
      {({ accountId }) => (
        <Shown of={voices}>
          {(all) => <Words key={accountId} accountId={accountId} voices={all.map(({ id }) => id)} />}
        </Shown>
      )}
    </PageOfAccount>
  );
};
