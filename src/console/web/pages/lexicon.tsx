/** The words of an account's lexicon: search, hear, add, remove. */
import { useState } from 'preact/hooks';
import { call } from '../call.js';
import { formatNumber, plural } from '../format.js';
import { Choice } from '../parts/form.js';
import { AccountSelect, NoAccount, useAccountChoice } from '../parts/account-choice.js';
import { AddWord, HearButton } from '../parts/add-word.js';
import { ConfirmButton } from '../parts/dialog.js';
import { Search } from '../parts/filters.js';
import { Empty, Page, Problem, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useQuery } from '../route.js';
import { useCall } from '../use-call.js';

const Words = (props: { readonly accountId: number; readonly voices: readonly string[] }) => {
  const { accountId, voices } = props;
  const [search, setSearch] = useQuery<string>('search', '');
  const [voice, setVoice] = useQuery<string>('voice', voices[0] ?? '', voices);
  const [problem, setProblem] = useState<string | null>(null);
  const words = useCall('words', { accountId, search });
  return (
    <>
      <section class="card">
        <h2>Add a word</h2>
        <AddWord accountId={accountId} voice={voice} word="" />
      </section>
      <div class="filters">
        <Search label="Search words" value={search} onChange={setSearch} />
        <Choice label="Hear with" options={voices} value={voice} onChange={setVoice} />
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
