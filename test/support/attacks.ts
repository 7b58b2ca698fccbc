/** Texts that make a parser slow whose time grows faster than its input. */

/** A text of about this many UTF-16 units. */
export interface Attack {
  readonly name: string;
  readonly text: (units: number) => string;
}

const signs = Array.from(' \t\r\nazA01.,\'"/[](){}<>&=-_#*:;$%+@!?|\\^~’”…。漢é\u0301\u0000\u00a0😀');
const shapes = [
  ...['a ', 'a.', 'a,', 'a-', "a'", 'a=', '/a', 'a@', '&a', '<a', '</', '<!--', 'a'.repeat(99) + ' '],
  ...['0,', '1.', '0 ', ' 1', '1-', '0:', '[1]', '[]', '()', '{[', '..', ', ', '".', '\r\n', '://', "a'a"],
];

/** The same in each run. */
const dice = (seed: number) => {
  let state = seed;
  return (sides: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % sides;
  };
};

/** @param hint characters that the parser knows: its source */
export const attacks = (hint = '', random = 24): Attack[] => {
  const known = [...new Set(hint.replace(/\\[pP]\{[^}]*\}|\\u[\dA-Fa-f]{4}|\\[a-zA-Z]|[\\()|?*+^$]/g, ''))];
  const roll = dice(hint.length + 1);
  const sign = (): string => {
    const from = known.length > 0 && roll(2) === 0 ? known : signs;
    return from[roll(from.length)]!;
  };
  const drawn = Array.from({ length: random }, () => Array.from({ length: 1 + roll(3) }, sign).join(''));
  // An expression that begins with a word is slow only where the word comes often.
  const words = hint.split(/\\[a-zA-Z]|(?<!\\)[[\](){}|?*+^$.]/).map((word) => word.replace(/\\(.)/g, '$1'));
  const ofWords = words
    .filter((word) => word.length > 3)
    .map((word) => ({ name: JSON.stringify(word), text: (units: number) => word.repeat(units) }));
  const ofPumps = [...signs, ...shapes, ...known, ...drawn].flatMap((pump) =>
    [
      ['', '\u0001'],
      ['aa', '\n!b'],
      [sign() + sign(), sign()],
    ].map(([before = '', after = '']) => ({
      name: JSON.stringify([before, pump, after]),
      text: (units: number) => before + pump.repeat(units / pump.length) + after,
    })),
  );
  return [...ofPumps, ...ofWords];
};

/** The same in words of this many units: a bound on tokens does not stop what is slow within one. */
export const inWords = (attacks: readonly Attack[], wordUnits: number): Attack[] =>
  attacks.map(({ name, text }) => ({
    name: `words of ${name}`,
    text: (units) => `${text(wordUnits)} `.repeat(units / wordUnits),
  }));

const growthMax = 2.5;
/** For a unit; the slowest parser takes a twentieth. */
const msPerUnitMax = 0.1;
/** Shorter times say nothing of growth: code is compiled meanwhile, and the CPU time of a thread grows in steps of 4 ms. */
const comparableMs = 40;
const rounds = 6;

/** Other work of the machine makes one measurement steep now and then; a quadratic parser is steep in each. */
const measurements = 3;

const slownessOnce = async (
  { name, text }: Attack,
  units: number,
  run: (text: string) => unknown,
  suspectMs: number,
): Promise<string | null> => {
  const msOf = async (input: string, times: number): Promise<number> => {
    let best = Infinity;
    for (let time = 0; time < times && best > suspectMs; time++) {
      const before = process.threadCpuUsage();
      await run(input);
      const { user, system } = process.threadCpuUsage(before);
      best = Math.min(best, (user + system) / 1_000);
    }
    return best;
  };
  // Short ones first: what is worse than quadratic would take hours with long ones.
  for (const size of [units / 8, units]) {
    if ((await msOf(text(2 * size), 2)) <= suspectMs) continue;
    let slowness: string | null = null;
    // The next size tells a step from growth: a text whose objects outgrow the young heap costs several times as much.
    for (let round = 0, half = size; round < rounds; round++, half *= 2) {
      const [halfMs, wholeMs] = [await msOf(text(half), 3), await msOf(text(2 * half), 3)];
      const isSteep = wholeMs > growthMax * halfMs || wholeMs > 2 * half * msPerUnitMax;
      const isComparable = wholeMs >= comparableMs;
      if (isComparable && isSteep)
        slowness = `${name}: ${wholeMs.toFixed(1)} ms for ${2 * half} characters, ${halfMs.toFixed(1)} for half`;
      else slowness = null;
      if ((isComparable && !isSteep) || wholeMs > 1_000) break;
    }
    if (slowness !== null) return slowness;
  }
  return null;
};

/**
 * @param suspectMs what is slower is looked at again: a quadratic parser of texts of this length
 * @returns what is too slow, in words; `null` if twice the length takes at most 2.5 times as long
 */
export const slownessOf = async (
  attack: Attack,
  units: number,
  run: (text: string) => unknown,
  suspectMs = 4,
): Promise<string | null> => {
  let slowness: string | null = null;
  for (let measured = 0; measured < measurements; measured++) {
    slowness = await slownessOnce(attack, units, run, suspectMs);
    if (slowness === null) break;
  }
  return slowness;
};
