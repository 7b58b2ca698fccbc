/**
 * English words of one spelling and two sounds, where espeak-ng would take the wrong one. Each is written as another
 * spelling that espeak-ng reads as it should be, so that accents and neighbouring words keep their effect.
 */

const set = (list: string): ReadonlySet<string> => new Set(list.split(' '));
/** "word:spelling" of each. */
export const spellings = (list: string): ReadonlyMap<string, string> =>
  new Map(list.split(' ').map((pair) => pair.split(':') as [string, string]));

const auxiliaries = set(
  "will would shall should can could may might must do does did don't doesn't didn't won't wouldn't can't cannot couldn't " +
    "shouldn't mustn't i'll you'll he'll she'll we'll they'll it'll i'd you'd he'd she'd we'd they'd",
);
const causatives = set("to please let's help let make");
const adverbs = set(
  'not never always also just then really only even still simply now soon quickly carefully gently often usually ever',
);
const connectors = set('and or but then first next finally now so');
/** What a command is done to: "Close the door." */
const objects = set(
  'the a an your my his her its our their this that these those it them me him us all both each every any some yourself',
);
/** "Export to CSV", "transfer five dollars" */
const sending =
  /^(?:(?:export|transfer|extract|record|insert) (?:to|as|from|into)$|transfer (?:\d|(?:one|two|ten)$|three|four|five|six|seven|eight|nine|twe|thirt|fort|fift))/;
const determiners = set(
  "the a an my your his her its our their this that these those no every each another one's",
);
const subjects = set('i you we they he she it who');
const thirdPersons = set('he she it who');
const perfects = set(
  "have has had having i've you've we've they've he's she's was were been being is are get got be",
);
const past = set('yesterday ago last once already earlier previously');

/** Words on each side that say what a clause is about. */
const nearMax = 16;

/** The words of a clause in small letters, seen from one of them. */
class View {
  readonly #words: readonly string[];
  readonly #at: number;
  readonly #opens: boolean;

  constructor(words: readonly string[], at: number, opens: boolean) {
    this.#words = words;
    this.#at = at;
    this.#opens = opens;
  }

  get next(): string {
    return this.after();
  }

  /** The word some places after; '' if there is none. */
  after(places = 1): string {
    return this.#words[this.#at + places] ?? '';
  }

  /** The word some places before; '' if there is none. */
  before(places = 1): string {
    return this.#words[this.#at - places] ?? '';
  }

  /** Whether one of the words nearby is on a list. */
  has(list: ReadonlySet<string>): boolean {
    return this.#words
      .slice(Math.max(0, this.#at - nearMax), this.#at + nearMax)
      .some((word) => list.has(word));
  }

  /** The nearest word before that is no adverb, as its distance. */
  get #head(): number {
    let places = 1;
    while (places < 4 && adverbs.has(this.before(places))) places++;
    return places;
  }

  get head(): string {
    return this.before(this.#head);
  }

  get beforeHead(): string {
    return this.before(this.#head + 1);
  }

  /** It begins a command: "Close the door", "and close the door". */
  get isCommand(): boolean {
    const starts = this.#opens || (this.#at > 0 && connectors.has(this.before()));
    return starts && (objects.has(this.next) || sending.test(`${this.#words[this.#at]} ${this.next}`));
  }

  /** After to, will, must, please, do not ("will they read"), or at the start of a command. */
  get isInfinitive(): boolean {
    const { head, beforeHead } = this;
    if (auxiliaries.has(head) || causatives.has(head)) return true;
    // "let me present it"
    if (/^(?:let|help|make)$/.test(beforeHead) && /^(?:me|us|him|her|them|you)$/.test(head)) return true;
    // "What we must do is read.", "will you read it"
    if (head === 'is' && /^(?:do|does|did)$/.test(beforeHead)) return true;
    return (auxiliaries.has(beforeHead) && subjects.has(head)) || this.isCommand;
  }

  get isVerb(): boolean {
    return this.isInfinitive || /^(?:i|you|we|they|who)$/.test(this.head);
  }
}

/** Verbs that are stressed or voiced otherwise than the noun. */
const verbs = spellings(
  'close:cloze record:recordd use:yuze excuse:excuze present:presennt separate:seperait estimate:estimait permit:permitt ' +
    'contract:contractt export:exportt extract:extrract transfer:transfur insert:insurt suspect:suspecked ' +
    'alternate:altternate moderate:moderait perfect:perfecked rebel:rebell contrast:conntrast project:projectt ' +
    'conduct:conduckt conflict:conflickt object:objectt house:howze abuse:abuze progress:progresse protest:protestt ' +
    'survey:survay graduate:graduait convict:convicked attribute:attribbute',
);

const metals = set('tin zinc copper iron mercury silver gold arsenic cadmium nickel steel');
const metallic = set('metal element toxic poisonous dense soft');
const leaded = set('pipe pipes paint water blood soil');
const ofLead = set(
  'pipe pipes piping paint paints poisoning pencil pencils acid bullet bullets shot weight weights glass crystal oxide ore solder ' +
    'foil roof shield shielding apron exposure contamination battery batteries dust free',
);
const liveOnes = set(
  'music concert concerts stream streams streaming show shows event events broadcast broadcasts audience audiences updates video ' +
    'performance performances coverage chat demo session wire wires ammunition bait animals data recording television tv',
);
const away = set('up down around round through along into its his her their back about across between');
const fish = set(
  'fish fishing fished caught catch hooked lake river striped largemouth pond fried grilled anglers angler',
);
const several = set(
  'of save saved lose lost take took risk ruin change many more most other human innocent real private daily everyday black past ' +
    'double two three four nine few several',
);
const small = set(
  'detail details amount amounts quantity quantities particle particles change changes difference differences trace traces fraction ' +
    'crack cracks fragment fragments organisms variation variations',
);

const read = (view: View): string | null => {
  const { head, beforeHead } = view;
  if (view.isInfinitive || (head === 'is' && beforeHead === 'do')) return 'reed';
  // "mark as read", "I just read it"
  if (
    (head === 'as' && beforeHead !== 'such') ||
    (view.before() === 'just' && head !== '' && !connectors.has(head))
  )
    return 'red';
  // "have you ever read"
  if (perfects.has(head) || /^(?:have|has|had)$/.test(beforeHead)) return 'red';
  if (thirdPersons.has(head) || view.has(past)) return 'red';
  if (/^(?:i|you|we|they)$/.test(head)) return 'reed';
  // "Sarah read it", "the teacher read it"
  const isOne = !/(?:s|ly|people|children|men|^)$/.test(head) && !connectors.has(head);
  const isSubject = /^(?:|doctor|mister|missus|miz)$/.test(beforeHead) || determiners.has(beforeHead);
  return isOne && isSubject && objects.has(view.next) ? 'red' : null;
};

const special: Readonly<Record<string, (view: View) => string | null>> = {
  read,
  close: (view) => {
    const { head, next } = view;
    if (/^(?:a|the)$/.test(head) && /^(?:of|at|)$/.test(next)) return 'cloze';
    // "Click close", "the close button"
    if (/\b(?:click|press|tap)(?: on)?$/.test(`${view.beforeHead} ${head}`) || next === 'button')
      return 'cloze';
    if (/^(?:select|choose) (?:from|in|on|)$/.test(`${head} ${next}`)) return 'cloze';
    // "Banks close early."
    if (/[^s]s$/.test(head) && !perfects.has(head) && /^(?:early|at|late|for|soon)$/.test(next))
      return 'cloze';
    return view.isInfinitive || (view.isVerb && next !== 'to') ? 'cloze' : null;
  },
  use: (view) => {
    const isStart = view.before() === '' && !/^(?:of|cases?|is|was|by|in|at|)$/.test(view.next);
    return view.isVerb || isStart ? 'yuze' : null;
  },
  wound: (view) => {
    const { head, next } = view;
    if (determiners.has(head)) return null;
    return subjects.has(head) || perfects.has(head) || away.has(next) ? 'wownd' : null;
  },
  lead: (view) => {
    if (view.isVerb) return null;
    const { head, next } = view;
    const isBeside = [view.before(2), head, next, view.after(2)].some((word) => metals.has(word));
    const isNamed = /^(?:is|was)$/.test(next) && view.has(metallic);
    const isContained =
      /^(?:of|contains?|containing|molten|contained|toxic)$/.test(head) ||
      (next === 'in' && view.has(leaded));
    return ofLead.has(next) || isBeside || isNamed || isContained ? 'led' : null;
  },
  live: (view) => {
    const { head, next } = view;
    if (/^(?:are|were) (?:you|we|they)$/.test(`${view.beforeHead} ${head}`)) return 'lyve';
    if (determiners.has(head) || liveOnes.has(next)) return 'lyve';
    if (
      /^(?:is|are|was|were|am|we're|they're|i'm|it's|go|goes|going|went|gone|watch|watched|air|aired)$/.test(
        head,
      )
    )
      return 'lyve';
    const isCommand = head === '' && /^(?:long|your|well|life)$/.test(next);
    return view.isVerb || head === 'people' || isCommand ? 'liv' : null;
  },
  /** "My mother lives in Rome", not "lost lives in the war". */
  lives: (view) => {
    const { head, next } = view;
    if (!/^(?:in|with|here|there|alone|at|on|near|next|by)$/.test(next)) return null;
    if (/(?:s|ing|ed)$/.test(head) || determiners.has(head) || several.has(head)) return null;
    return head !== 'and' || view.has(thirdPersons) ? 'livz' : null;
  },
  wind: (view) => {
    const { head, next } = view;
    if (view.isInfinitive || (view.isVerb && next !== '')) return 'wined';
    return away.has(next) && next === 'up' && !determiners.has(head) ? 'wined' : null;
  },
  winds: ({ head, next }) =>
    away.has(next) && !/^(?:strong|high|light|cold|warm|the|these|those)$/.test(head) ? 'wineds' : null,
  tear: (view) => {
    const { head, next, beforeHead } = view;
    if (view.isInfinitive || (view.isVerb && next !== '')) return 'tare';
    if (head === 'and' && beforeHead === 'wear') return 'tare';
    return /^(?:a|the|this|that|small|big|long)$/.test(head) && /^(?:in|along)$/.test(next) ? 'tare' : null;
  },
  bow: (view) => {
    const { head, next, beforeHead } = view;
    if (
      /^(?:a|his|her|their|final|last)$/.test(head) &&
      /^(?:take|takes|took|taking|taken)$/.test(beforeHead)
    )
      return 'bough';
    if (view.isInfinitive || /^(?:to|down|before)$/.test(next)) return 'bough';
    return (next === 'of' && head === 'the') || view.has(ships) ? 'bough' : null;
  },
  bass: (view) => (view.has(fish) ? 'basse' : null),
  row: ({ head, next, beforeHead }) =>
    /^(?:a|big|blazing|huge|furious)$/.test(head) &&
    (/^(?:with|about|over|between|broke)$/.test(next) || beforeHead === 'blazing')
      ? 'rau'
      : null,
  dove: ({ head, next }) =>
    /^(?:in|into|under|down|off|headfirst|deep|straight|right|for)$/.test(next) &&
    !/^(?:a|the|white|turtle|mourning|this|that|one)$/.test(head)
      ? 'dohve'
      : null,
  minute: ({ next }) => (small.has(next) ? 'my-newt' : null),
  content: ({ head, next }) =>
    /^(?:i|am|i'm|are|be|been|feel|feels|felt|seem|seems|seemed|quite|perfectly|very|he's|she's|we're|they're)$/.test(
      head,
    ) ||
    (/^(?:is|was|were)$/.test(head) && /^(?:with|to|)$/.test(next))
      ? 'contentt'
      : null,
  increase: (view) =>
    view.isVerb || /[^s]s (?:by|at|for|when|daily|every)$/.test(`${view.head} ${view.next}`)
      ? 'inkreese'
      : null,
  produce: ({ head }) => (/^(?:fresh|local|organic|seasonal|frozen|farm)$/.test(head) ? 'proddewce' : null),
  analyses: ({ head, next }) => (thirdPersons.has(head) || objects.has(next) ? null : 'a nalliseez'),
  louis: ({ head }) => (/^(?:saint|st)$/.test(head) ? 'lewis' : null),
  chi: ({ head, next }) => (next === 'minh' || head === 'tai' ? 'chee' : null),
  resume: ({ head, next }) =>
    /^(?:my|your|his|her|their|our|updated|attached|a)$/.test(head) && next !== 'the' ? 'rezzumay' : null,
  polish: (view) => (view.isVerb ? 'pollish' : null),
};
const ships = set('stern ship boat hull prow vessel');

/**
 * @param words of a clause in small letters
 * @param opens the first word begins a sentence, or may
 * @returns the spelling that sounds right here; `null`: as it is written
 */
export const homograph = (words: readonly string[], at: number, opens: boolean): string | null => {
  const word = words[at]!;
  if (Object.hasOwn(special, word)) return special[word]!(new View(words, at, opens));
  const verb = verbs.get(word);
  return verb !== undefined && new View(words, at, opens).isVerb ? verb : null;
};
