/** The voices page: the installed packs, whether each loaded, how fast it spoke, and how the last reload went. */
import { sampleText } from '../text/sample-sentences.js';
import type { VoiceReload } from '../threads/reload.js';
import type { PackFinding, VoicePack } from '../threads/voices.js';
import type { PackView, VoicesView } from './contract.js';

export interface VoicesParts {
  readonly generation: () => {
    readonly number: number;
    readonly packs: readonly VoicePack[];
    readonly findings: readonly PackFinding[];
  };
  /** By voice id, in seconds of CPU time for a second of speech. */
  readonly speechCpu: () => ReadonlyMap<string, number>;
  readonly reload: Pick<VoiceReload, 'isRunning' | 'last' | 'request'>;
}

const loadedPack = (
  { name, licence, voices, ...pack }: VoicePack,
  speechCpu: ReadonlyMap<string, number>,
): PackView => ({
  name,
  format: pack.engine,
  bytes: pack.modelBytes + (pack.sharedBytes ?? 0),
  loaded: true,
  message: null,
  notes: pack.notes ?? [],
  trial: pack.trial ?? null,
  voices: voices.map(({ id, language, sampleRateHz, description = '', sex = null, pace = null }) => ({
    ...{ id, pack: name, description, language, sex, pace, sampleRateHz, licence: licence ?? null },
    realTimeFactor: speechCpu.get(id) ?? null,
  })),
});

export class InstalledVoices {
  readonly #parts: VoicesParts;

  constructor(parts: VoicesParts) {
    this.#parts = parts;
  }

  /** Of the voices that speak now. */
  get ids(): readonly string[] {
    return this.#parts.generation().packs.flatMap(({ voices }) => voices.map(({ id }) => id));
  }

  /** @returns `undefined` if no such voice speaks now */
  sampleTextOf(voiceId: string): string | undefined {
    for (const pack of this.#parts.generation().packs) {
      const voice = pack.voices.find(({ id }) => id === voiceId);
      if (voice !== undefined) return sampleText(pack, voice);
    }
    return undefined;
  }

  /** As SIGHUP. */
  reload(): void {
    this.#parts.reload.request();
  }

  view(): VoicesView {
    const { generation, reload } = this.#parts;
    const speechCpu = this.#parts.speechCpu();
    const { number, packs, findings: current } = generation();
    // The findings of a reload that failed are newer.
    const findings = typeof reload.last?.fault === 'string' ? reload.last.findings : current;
    const faultOf = (name: string): string | null =>
      findings.find(({ pack }) => pack === name)?.fault ?? null;
    const others = findings.filter(({ pack }) => !packs.some(({ name }) => name === pack));
    return {
      generation: number,
      packs: [
        // Its voices go on speaking, although its files cannot be used any more.
        ...packs.map((pack) => ({ ...loadedPack(pack, speechCpu), message: faultOf(pack.name) })),
        ...others.map(({ pack, fault }) => ({
          ...{ name: pack, format: null, bytes: 0, loaded: false, message: fault },
          ...{ notes: [], trial: null, voices: [] },
        })),
      ],
      reload: {
        running: reload.isRunning,
        message: reload.last?.fault ?? null,
        atMs: reload.last?.atMs ?? null,
      },
    };
  }
}
