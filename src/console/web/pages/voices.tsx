import { useEffect, useRef } from 'preact/hooks';
import type { PackView, TrialView, VoicesView } from '../../contract.js';
import { call } from '../call.js';
import { formatBytes, formatMs, formatNumber, formatTime } from '../format.js';
import { Button } from '../parts/button.js';
import { useAct } from '../parts/form.js';
import { Empty, Page, Problem, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { showToast } from '../parts/toast.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';
import { VoiceGallery } from './voice-gallery.js';

const listOf = (values: readonly (string | number)[]): string => [...new Set(values)].join(', ');

const Trial = ({ trial }: { readonly trial: TrialView | null }) =>
  trial === null ? (
    <span class="muted">Not tried</span>
  ) : (
    <>
      {formatMs(trial.firstChunkMs)}
      <span class="below">Longest step {formatMs(trial.stepMsMax)}</span>
    </>
  );

const Packs = ({ packs }: { readonly packs: readonly PackView[] }) => (
  <Table
    caption="Voice packs"
    rows={packs}
    rowKey={({ name }) => name}
    columns={[
      {
        label: 'Pack',
        cell: ({ format, loaded, message, name, notes }) => (
          <>
            {name} {!loaded && <span class="badge bad">Not loaded</span>}
            {[format === null ? null : `Format ${format}`, message, ...notes].map(
              (line) => line !== null && <span class="below">{line}</span>,
            )}
          </>
        ),
      },
      { label: 'Voice ids', isNumber: true, cell: ({ voices }) => formatNumber(voices.length) },
      { label: 'Languages', cell: ({ voices }) => listOf(voices.map(({ language }) => language)) },
      {
        label: 'Sample rate',
        isNumber: true,
        cell: ({ voices }) => listOf(voices.map(({ sampleRateHz }) => `${formatNumber(sampleRateHz)} Hz`)),
      },
      { label: 'First audio here', cell: ({ trial }) => <Trial trial={trial} /> },
      {
        label: 'Licence',
        cell: ({ voices }) => listOf(voices.map(({ licence }) => licence ?? 'Not stated')),
      },
      { label: 'Size', isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
    ]}
  />
);

const reloadText = ({ reload }: VoicesView): string => {
  if (reload.running) return 'Reading the voices …';
  return reload.atMs === null ? 'Read at the start.' : `Last read on ${formatTime(reload.atMs)}.`;
};

export const VoicesPage = () => {
  const isOperator = useUser().role === 'operator';
  const asked = useCall('voices', {});
  const { act, refusal, running } = useAct();
  const isReloading = running || asked.answer?.reload.running === true;
  useEffect(() => {
    if (!isReloading) return;
    const timer = setInterval(() => void refresh(), 1_000);
    return () => clearInterval(timer);
  }, [isReloading]);
  const reload = () =>
    void act(async () => {
      await call('reloadVoices', {});
      await refresh();
    });
  const { atMs, message } = asked.answer?.reload ?? {};
  const shownAtMs = useRef(atMs);
  useEffect(() => {
    if (shownAtMs.current !== undefined && shownAtMs.current !== atMs)
      showToast(message === null ? 'The voices were reloaded.' : 'The voices were not reloaded.');
    shownAtMs.current = atMs;
  }, [atMs]);
  return (
    <Page
      title="Voices"
      lead="Hear a sample of each voice, and try it in the playground."
      actions={isOperator && <Button label="Reload voices" isOff={isReloading} onClick={reload} />}
    >
      {refusal !== null && <Problem refusal={refusal} />}
      <Shown of={asked}>
        {(answer) =>
          answer.packs.length === 0 ? (
            <Empty title="No voices are installed">
              Add a voice pack with <code>npm run voices -- add</code>, then reload.
            </Empty>
          ) : (
            <>
              {isOperator && answer.reload.message !== null && (
                <div class="notice warn">{answer.reload.message}</div>
              )}
              <VoiceGallery voices={answer.packs.flatMap(({ voices }) => voices)} />
              {isOperator && (
                <section>
                  <h2>Packs</h2>
                  <Packs packs={answer.packs} />
                  <p class="hint">{reloadText(answer)}</p>
                </section>
              )}
            </>
          )
        }
      </Shown>
    </Page>
  );
};
