/** The voices page: what is installed, whether it loaded, and how the last reload went. */
import type { VoiceReload } from '../threads/reload.js';
import type { Voice, VoicePack } from '../threads/voices.js';
import type { PackView, VoicesView } from './contract.js';

export interface VoicesParts {
  readonly generation: () => { readonly number: number; readonly packs: readonly VoicePack[] };
  readonly reload: Pick<VoiceReload, 'isRunning' | 'last' | 'request'>;
}

const loadedPack = ({ name, modelBytes, licence, voices }: VoicePack): PackView => ({
  name,
  bytes: modelBytes,
  loaded: true,
  message: null,
  voices: voices.map(({ id, language, sampleRateHz, description = '' }) => ({
    ...{ id, pack: name, description, language, sampleRateHz, licence: licence ?? null },
  })),
});

/** A reload takes all packs or none. */
const NOT_TAKEN = 'The pack can be used. It was not loaded, because the reload ended at another pack.';

export class InstalledVoices {
  readonly #parts: VoicesParts;

  constructor(parts: VoicesParts) {
    this.#parts = parts;
  }

  /** The voices that speak now. */
  get voices(): readonly Voice[] {
    return this.#parts.generation().packs.flatMap(({ voices }) => voices);
  }

  /** As SIGHUP. */
  reload(): void {
    this.#parts.reload.request();
  }

  view(): VoicesView {
    const { generation, reload } = this.#parts;
    const { number, packs } = generation();
    const findings = reload.last?.findings ?? [];
    const faultOf = (name: string): string | null =>
      findings.find(({ pack }) => pack === name)?.fault ?? null;
    const others = findings.filter(({ pack }) => !packs.some(({ name }) => name === pack));
    return {
      generation: number,
      packs: [
        // Its voices go on speaking, although its files cannot be used any more.
        ...packs.map((pack) => ({ ...loadedPack(pack), message: faultOf(pack.name) })),
        ...others.map(({ pack, fault }) => ({
          ...{ name: pack, bytes: 0, loaded: false, message: fault ?? NOT_TAKEN, voices: [] },
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
