/** The words of an account's lexicon: search, hear, add, remove. */
import { useState } from 'preact/hooks';
import type { WordView } from '../../contract.js';
import { call } from '../call.js';
import { formatNumber, plural } from '../format.js';
import { AccountSelect, NoAccount, useAccountChoice } from '../parts/account-choice.js';
import { AddWord, HearButton } from '../parts/add-word.js';
import { Confirm } from '../parts/dialog.js';
import { Choice, Search } from '../parts/filters.js';
import { Empty, Page, Problem, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useQuery } from '../route.js';
import { useCall } from '../use-call.js';

const Words = (props: { readonly accountId: number; readonly voices: readonly string[] }) => {
  const { accountId, voices } = props;
  const [search, setSearch] = useQuery<string>('search', '');
  const [voice, setVoice] = useQuery<string>('voice', voices[0] ?? '', voices);
  const [removing, setRemoving] = useState<WordView | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const words = useCall('words', { accountId, search });
  const remove = async () => {
    const word = removing?.word ?? '';
    await call('removeWord', { accountId, word });
    return `${word} is out of the lexicon. The next utterance says it as the voice does.`;
  };
  return (
    <>
      <section class="card">
        <h2>Add a word</h2>
        <AddWord accountId={accountId} voice={voice} word="" />
      </section>
      <div class="filters">
        <Search label="Search words" value={search} onChange={setSearch} />
        <Choice
          label="Hear with"
          options={Object.fromEntries(voices.map((id) => [id, id]))}
          value={voice}
          onChange={setVoice}
        />
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
                            <button
                              type="button"
                              class="button small"
                              aria-label={`Remove ${row.word}`}
                              onClick={() => setRemoving(row)}
                            >
                              Remove
                            </button>
                          ) : (
                            <span class="hint">In a file of an operator</span>
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
      {removing !== null && (
        <Confirm
          title={`Remove ${removing.word}?`}
          act="Remove word"
          onAct={remove}
          onClose={() => setRemoving(null)}
        >
          <p>It is no longer said as “{removing.spoken}”, from the next utterance on.</p>
        </Confirm>
      )}
    </>
  );
};

export const LexiconPage = () => {
  const choice = useAccountChoice();
  const voices = useCall('voices', {});
  if (choice.account === null) return <NoAccount title="Lexicon" of={choice} />;
  const { accountId } = choice.account;
  return (
    <Page
      title="Lexicon"
      lead="Names and words as this account says them, from the next utterance on."
      actions={<AccountSelect of={choice} />}
    >
      <Shown of={voices}>
        {({ packs }) => (
          <Words
            key={accountId}
            accountId={accountId}
            voices={packs.flatMap((pack) => pack.voices.map(({ id }) => id))}
          />
        )}
      </Shown>
    </Page>
  );
};
