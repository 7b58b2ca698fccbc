/** Opens the contexts of one WebSocket within the bounds, and connects each of them to the stages below and to its session. */
import { quoted } from '../../api/quoted.js';
import { unknownVoiceMessage } from '../../api/error-shape.js';
import { voicesOf } from '../../accounts/keys.js';
import { settingsOf } from '../../api/speech-settings.js';
import type { ClientFrame } from '../../api/ws-frames.js';
import type { PartOfAccount } from '../../byte-budget.js';
import { errors } from '../../errors.js';
import type { Bounds } from '../../limits.js';
import type { Log } from '../../log.js';
import { refusalOf, type Metrics, type RefusalReason } from '../../metrics.js';
import type { Clock } from '../../monotonic.js';
import type { FirstAudio } from '../../speech/first-audio.js';
import type { FrameSink, OpenRefusal, Speech } from '../../speech/speech.js';
import type { ActiveKey } from '../../store/store.js';
import type { Outbox } from './outbox.js';
import type { SocketProtocol } from './protocol.js';
import { SocketContext } from './socket-context.js';
import type { SocketLease } from './socket-lease.js';

export type StartFrame = Extract<ClientFrame, { type: 'start' }>;

/** What a session hands on to its contexts. */
export interface OpenerParts {
  /** The `x-request-id` of the handshake. */
  readonly id: string;
  /** For the log and the metrics. */
  readonly route: string;
  /** As it was read last. */
  readonly key: () => ActiveKey;
  readonly protocol: SocketProtocol;
  readonly speech: Speech;
  readonly lease: SocketLease;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bounds: Bounds;
  /** Ids of flushes that are not completed, in UTF-16 units. */
  readonly flushIdBudget: PartOfAccount;
  /** The service takes no new contexts. */
  readonly isDraining: () => boolean;
}

/** What a context reports to its session. */
export interface ContextEvents {
  /** Runs a callback. An exception ends the session and no other. */
  readonly guard: (callback: () => void) => void;
  readonly onFirstAudio: (reply: FirstAudio) => void;
  readonly onChange: (context: SocketContext) => void;
  readonly onAudio: (durationMs: number, nowMs: number) => void;
  readonly onRefused: (reason: RefusalReason, context: SocketContext) => void;
  readonly onOver: (context: SocketContext) => void;
}

export class ContextOpener {
  readonly #parts: OpenerParts;
  readonly #outbox: Outbox;
  /** What all contexts of the socket share: they count as one listener. */
  readonly #group: object;
  readonly #events: ContextEvents;

  constructor(parts: OpenerParts, outbox: Outbox, group: object, events: ContextEvents) {
    this.#parts = parts;
    this.#outbox = outbox;
    this.#group = group;
    this.#events = events;
  }

  /** @param open how many contexts the socket has @returns why no context opens; `null`: one may open */
  refusalOf({ contextId, settings }: StartFrame, isTaken: boolean, open: number) {
    const { bounds, isDraining, key, speech } = this.#parts;
    const speakerIds = voicesOf(key(), speech.voices.speakerIds);
    const refuse = (reason: RefusalReason, text: string) => ({ reason, text });
    if (isTaken)
      return refuse(
        'frameInvalid',
        `invalid frame: context_id already in use: ${quoted(contextId ?? 'null', bounds)}`,
      );
    if (!speakerIds.includes(settings.voiceId))
      return refuse('voiceUnknown', unknownVoiceMessage(settings.voiceId, speakerIds, bounds));
    if (isDraining()) return refuse('draining', errors.unavailable.socketText);
    if (open >= bounds.contextsPerSocketMax)
      return refuse(refusalOf('contextsExhausted'), errors.contextsExhausted.socketText);
    return null;
  }

  /** @returns the context, or why it cannot be opened */
  open({ contextId, settings, timestamps, format }: StartFrame): SocketContext | OpenRefusal {
    const { bounds, clock, flushIdBudget, id, key, lease, log } = this.#parts;
    const { metrics, protocol, route, speech } = this.#parts;
    const { guard, onFirstAudio, onRefused, ...events } = this.#events;
    const share = lease.share();
    const settingsNow = () => settingsOf(settings, key().speaking);
    const options = {
      ...{ lease: share, group: this.#group, format, framing: protocol.framing, timestamps },
      ...{ settings: settingsNow(), settingsNow },
      ...(contextId !== null && { clientContextId: contextId }),
    };
    const context = new SocketContext({
      ...events,
      clientContextId: contextId,
      voiceId: settings.voiceId,
      ...{ protocol, lease, share, outbox: this.#outbox, flushIdBudget, clock },
      flushesPendingMax: bounds.flushesPendingMax,
      open: (sink: FrameSink) => speech.open(options, (frame) => guard(() => sink(frame))),
      onRefused: (code, refused) => onRefused(refusalOf(code), refused),
      onFirstAudio: (reply, figure, ms) => {
        onFirstAudio(reply);
        metrics.firstAudio(figure, route, format.encoding, ms);
      },
      onFault: (reason) => {
        metrics.failed(route);
        log.error({ requestId: id, reason }, 'context of a socket failed');
      },
    });
    return context.openRefusal ?? context;
  }
}
