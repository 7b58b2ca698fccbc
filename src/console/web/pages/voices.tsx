import { useEffect } from 'preact/hooks';
import type { PackView, VoicesView } from '../../contract.js';
import { call } from '../call.js';
import { formatBytes, formatNumber, formatTime, plural } from '../format.js';
import { lazy } from '../lazy.js';
import { useAct } from '../parts/form.js';
import { Empty, Page, Problem, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { tell } from '../parts/tell.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';

const VoiceGallery = lazy(() =>
  import('../playground/voice-gallery.js').then((module) => module.VoiceGallery),
);

const Packs = ({ packs }: { readonly packs: readonly PackView[] }) => (
  <Table
    caption="Voice packs"
    rows={packs}
    rowKey={({ name }) => name}
    columns={[
      {
        label: 'Pack',
        cell: ({ name, loaded, message }) => (
          <>
            {name} {!loaded && <span class="badge bad">Not loaded</span>}
            {message !== null && <span class="below">{message}</span>}
          </>
        ),
      },
      { label: 'Voices', isNumber: true, cell: ({ voices }) => formatNumber(voices.length) },
      {
        label: 'Languages',
        cell: ({ voices }) => [...new Set(voices.map(({ language }) => language))].join(', '),
      },
      {
        label: 'Sample rate',
        isNumber: true,
        cell: ({ voices }) =>
          [...new Set(voices.map(({ sampleRateHz }) => sampleRateHz))]
            .map((hz) => `${formatNumber(hz)} Hz`)
            .join(', '),
      },
      {
        label: 'Licence',
        cell: ({ voices }) => [...new Set(voices.map(({ licence }) => licence ?? 'Not stated'))].join(', '),
      },
      { label: 'Size', isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
    ]}
  />
);

const reloadText = ({ generation, reload }: VoicesView): string => {
  if (reload.running) return 'The voices are being read again …';
  const at = reload.atMs === null ? '' : ` Last read on ${formatTime(reload.atMs)}.`;
  return `Generation ${formatNumber(generation)}.${at}`;
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
      const { packs } = await call('reloadVoices', {});
      await refresh();
      tell(`${plural(packs.length, 'pack')} read.`);
    });
  return (
    <Page
      title="Voices"
      lead={
        isOperator
          ? 'What is installed in the folder of voices.'
          : 'Hear them, and try one in the playground.'
      }
      actions={
        isOperator && (
          <button type="button" class="button" aria-disabled={isReloading} onClick={reload}>
            Reload voices
          </button>
        )
      }
    >
      {refusal !== null && <Problem refusal={refusal} />}
      <Shown of={asked}>
        {(answer) =>
          answer.packs.length === 0 ? (
            <Empty title="No voices are installed">
              Put a voice pack into the folder of voices, then reload.
            </Empty>
          ) : (
            <>
              {isOperator && (
                <>
                  {answer.reload.message !== null && <div class="notice warn">{answer.reload.message}</div>}
                  <Packs packs={answer.packs} />
                  <p class="hint foot">{reloadText(answer)}</p>
                </>
              )}
              <div class={isOperator ? 'section' : ''}>
                <h2 class="head">Listen</h2>
                <VoiceGallery />
              </div>
            </>
          )
        }
      </Shown>
    </Page>
  );
};
