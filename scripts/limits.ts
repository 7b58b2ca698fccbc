/** The list of bounds in scripts/deploy/limits.md: by who can fill them, in the words of limits.ts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/config.js';
import { limits } from '../src/limits.js';
import { planFor } from '../src/plan.js';
import { program, runIfMain } from './command.js';

const usage = `Usage: npm run limits

Writes the list of bounds in scripts/deploy/limits.md, from src/limits.ts. Run it after a change of that file.
`;

type Name = keyof typeof limits;

/** Which callers can fill which bound. A time that is not named here is filled by no caller. */
export const fillers: Readonly<Record<string, string>> = {
  'An address, without a key': `connectionsMax consoleConnectionsMax opsConnectionsMax wyomingConnectionsMax keylessSocketsMax
    discoveryBytesMax discoveryMsAtOnceMax discoveryMsPerSecond handshakeMsAtOnceMax handshakeMsPerSecond keylessMessageBytesMax
    keylessFramesMax opsHeadBytesMax consoleBodyBytesMax bodyDiscardBytesMax consoleCallsAtOnceMax
    consoleCallsPerSecond consoleAttemptsAtOnceMax consoleSpareAttemptsMax`,
  'Several addresses together': `consoleAttemptsOfNameMax consoleCountedMax passwordsWaitingMax administrationCallsMax
    refusedSignInsPerMinuteMax`,
  'A key': 'slotsPerKey socketsPerKeyMax',
  'A key, for one request or WebSocket': `bodyBytesMax bodyDepthMax bodyTokensMax validationItemsMax quotedBytesMax
    normalisedTokenMax contextsPerSocketMax socketMessageBytesMax socketShortMessageBytesMax socketTextBytesMax socketFrameBytesMax socketFrameDepthMax
    socketFrameTokensMax socketIdMax flushesPendingMax socketCharactersMax socketBufferedBytesMax socketAnswerBytesMax
    resultMemoryBytesMax wyomingPingTextMax`,
  'An account, with all its keys': `contextsMax socketsMax bodyBytesInFlightMax requestCharactersInFlightMax
    socketCharactersInFlightMax flushIdUnitsInFlightMax waitingMessageBytesMax arrivingMessageBytesMax resultMemoryInFlightBytesMax resultSpoolBytesMax
    resultSpoolFilesMax resultSpoolFreeBytesMin unsentAudioBytesMax socketBufferedBytesInFlightMax socketAnswerBytesInFlightMax answerBytesInFlightMax jobsPerThreadMax
    parseMsPerSecond framesPerSecond requestsOfAccountMax`,
  'An account, with its members at the console': `keysPerAccountMax consoleCallsWaitingMax consoleWordsMax consoleWordsShownMax consoleLexiconUnitsMax
    webhookAttemptsMax webhookChangesMax webhooksAtOnceMax consoleSamplesMax consoleSamplesAtOnceMax fileAnswerBytes sessionsPerUserMax tokensPerUserMax consoleStreamsPerSessionMax`,
  'Operators, or several accounts together': `requestsKeptMax storeKeysMax ledgerQueueMax linksMax certificatesInUseMax voicePackBytesMax voiceTrialCpuSecondsMax
    voiceTrialMiBMax voiceReadHeapMiBMax lexiconEntriesMax lexiconUnitsMax lexiconTextMax lexiconFilesMax lexiconFileBytesMax
    lexiconFindingsMax`,
  'No caller': `segmentCharactersMax firstSegmentCharactersMax phonemeTextMax firstPhonemeTextMax pronunciationsCachedMax
    spokenLettersMax hungThreadsReplacedMax segmentRetriesMax mp3EncodersWarm mp3EncodersIdleMax writeBytesMax senderQueueBytesMax
    leaseStepCharacters heapGrowthBytesMax logBytesWaitingMax ledgerBatchMax storeFreeBytesMin storeCheckBytesMax
    storeCacheBytesMax creditAheadCharacters journalFileBytes administrationHeapMiBMax synthesisHeapMiBMax synthesisYoungHeapMiBMax
    actorHeapMiBMax historyHourPointsMax historyDayPointsMax historyWeekPointsMax historyDaysMax`,
};

const KiB = 1024;
const MiB = 1024 * KiB;

/** With the unit that is in the name. */
const shown = (name: Name): string => {
  const value: number = limits[name];
  const withUnit = (count: number, unit: string): string => `${count.toLocaleString('en')} ${unit}`;
  if (name.includes('MiB')) return withUnit(value, 'MiB');
  if (name.includes('Bytes')) {
    if (value % MiB === 0) return withUnit(value / MiB, 'MiB');
    return value % KiB === 0 ? withUnit(value / KiB, 'KiB') : withUnit(value, 'bytes');
  }
  if (!/Ms(?:[A-Z]|$)/.test(name)) return value.toLocaleString('en');
  return value % 1000 === 0 ? withUnit(value / 1000, 's') : withUnit(value, 'ms');
};

/** Those that a machine of 1 GiB makes smaller. */
const pools = (): ReadonlySet<string> => {
  const config = {
    ...readConfig({}),
    hasLexicons: false,
    provider: 'cpu',
    synthesisThreads: 2,
    actorThreads: 1,
  } as const;
  const { bounds } = planFor(config, { memoryBytes: 1024 * MiB, filesMax: 1_024 }, [
    { openFiles: 3, modelBytes: 8 * MiB },
  ]);
  return new Set(names.filter((name) => bounds[name] < limits[name]));
};

const names = Object.keys(limits) as Name[];

/** The comment above each bound. */
const comments = (source: string): ReadonlyMap<string, string> =>
  new Map(
    [...source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2}(\w+): /g)].map(
      ([, comment = '', name = '']) => [name, comment.replaceAll(/\s*\n \s*\* ?/g, ' ').trim()],
    ),
  );

/** @param source of limits.ts */
export const listOf = (source: string): string => {
  const texts = comments(source);
  const isPool = pools();
  const valued = (name: string): string =>
    `\`${name}\`${isPool.has(name) ? '\\*' : ''} (${shown(name as Name)})`;
  const others = names.filter(
    (name) => !Object.values(fillers).some((filled) => filled.split(/\s+/).includes(name)),
  );
  const sections = Object.entries(fillers).map(([who, filled]) => {
    const bounds = filled.split(/\s+/);
    const lines =
      who === 'No caller'
        ? `${[...bounds, ...others].map(valued).join(', ')}.\n`
        : bounds.map((name) => `- ${valued(name)}: ${texts.get(name) ?? ''}\n`).join('');
    return `### ${who}\n\n${lines}\n`;
  });
  return `\n${sections.join('')}`;
};

const BEGIN = '<!-- limits:begin -->\n';
const END = '<!-- limits:end -->';
export const pagePath = fileURLToPath(new URL('../../scripts/deploy/limits.md', import.meta.url));

/** @returns the page with this list */
export const pageWith = (page: string, list: string): string =>
  page.slice(0, page.indexOf(BEGIN) + BEGIN.length) + list + page.slice(page.indexOf(END));

export const limitsProgram = program('limits', usage, {
  options: [],
  run: (_, { out }) => {
    const source = readFileSync(new URL('../../src/limits.ts', import.meta.url), 'utf8');
    writeFileSync(pagePath, pageWith(readFileSync(pagePath, 'utf8'), listOf(source)));
    out(`${pagePath}\n`);
  },
});

await runIfMain(import.meta.url, limitsProgram);
