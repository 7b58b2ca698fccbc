/** States, directions and shortened words of American addresses: "708 N 1st St, Austin, TX 78701". */
import { type Reading, type Rule, say, type Tokens, wordSet, wordTable } from '../tokens.js';

export const states = wordTable(`
  AL: Alabama; AK: Alaska; AZ: Arizona; AR: Arkansas; CA: California; CO: Colorado; CT: Connecticut; DE: Delaware;
  FL: Florida; GA: Georgia; HI: Hawaii; ID: Idaho; IL: Illinois; IN: Indiana; IA: Iowa; KS: Kansas; KY: Kentucky;
  LA: Louisiana; ME: Maine; MD: Maryland; MA: Massachusetts; MI: Michigan; MN: Minnesota; MS: Mississippi; MO: Missouri;
  MT: Montana; NE: Nebraska; NV: Nevada; NH: New Hampshire; NJ: New Jersey; NM: New Mexico; NY: New York;
  NC: North Carolina; ND: North Dakota; OH: Ohio; OK: Oklahoma; OR: Oregon; PA: Pennsylvania; RI: Rhode Island;
  SC: South Carolina; SD: South Dakota; TN: Tennessee; TX: Texas; UT: Utah; VT: Vermont; VA: Virginia; WA: Washington;
  WV: West Virginia; WI: Wisconsin; WY: Wyoming; DC: D.C
`);
/** These are words too: only before a ZIP code. */
const alsoWords = wordSet('OK HI ME');
/** Words with a capital before a comma that are not cities: "Well, IN the end". */
const noCity = wordSet(
  'Well Yes No Oh So Now Okay Sure Right Great Please Sorry Thanks Hello Hi Hey But And',
);

const zip = /^\d{5}(?:-\d{4})?$/;

const directions = wordTable(`
  N: North; S: South; E: East; W: West; NE: Northeast; NW: Northwest; SE: Southeast; SW: Southwest;
  N.E: Northeast; N.W: Northwest; S.E: Southeast; S.W: Southwest
`);
const ways =
  /^(?:St|Street|Ave|Avenue|Rd|Road|Dr|Drive|Ln|Lane|Blvd|Boulevard|Ct|Court|Pl|Place|Way|Ter|Terrace|Hwy|Highway|Pkwy|Parkway|Cir|Circle|Sq|Square|Expy|Fwy|Trl|Trail)$/;

const isName = (core: string | undefined): boolean =>
  core !== undefined && /^\p{Lu}|^\d+(?:st|nd|rd|th)$/iu.test(core);

/** "Austin, TX", "Austin TX 78701". */
const state = (tokens: Tokens, at: number): Reading | null => {
  const { core, gap } = tokens.at(at);
  const name = states.get(core);
  if (name === undefined || at === 0 || gap !== 'space') return null;
  const city = tokens.at(at - 1);
  if (!/^\p{Lu}\p{Ll}/u.test(city.core) || !/^,?$/.test(city.tail)) return null;
  const isBeforeZip = zip.test(tokens.next(at)?.core ?? '');
  const isAfterCity = city.tail === ',' && !noCity.has(city.core) && !alsoWords.has(core);
  return isBeforeZip || isAfterCity ? say(name) : null;
};

/** Before a direction: "I-95 N", "Route 9 W", "40.7° N", "10 mph NW", "winds SW". */
const road = /^(?:I|US|SR|CR)-\d+$|^\d[\d.]*°$|^(?:hwy|highway|route|rte|rt|interstate) \d+$/i;
const windy = /^(?:mph|kph|knots|kts?|winds?)$/i;

export const isAfterRoad = (tokens: Tokens, at: number): boolean =>
  road.test(tokens.previous(at)?.core ?? '') ||
  road.test(`${tokens.previous(at - 1)?.core} ${tokens.previous(at)?.core}`);

/** "12 N Main St", "N Main St", "Pennsylvania Ave NW", "I-95 N". */
const direction = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const name = directions.get(core);
  if (name === undefined) return null;
  const before = tokens.previous(at)?.core ?? '';
  const next = tokens.nextAfterStop(at);
  const rest = next === undefined ? tokens.tailOfAbbreviation(at) : tail.replace(/^\./, '');
  const isOfHouse = /^\d+[A-Z]?$/.test(before) && isName(next?.core);
  const isOfStreet = isName(next?.core) && ways.test(tokens.nextAfterStop(at + 1)?.core ?? '');
  if (
    isOfHouse ||
    isOfStreet ||
    isAfterRoad(tokens, at) ||
    (core.length > 1 && (ways.test(before) || windy.test(before)))
  )
    return { parts: [{ core: name, tail: rest }] };
  return null;
};

const places = wordTable(`
  Ste: Suite; Apt: Apartment; Bldg: Building; Fl: Floor; Expy: Expressway; Fwy: Freeway; Cir: Circle; Trl: Trail; Plz: Plaza;
  fl: floor; Tpke: Turnpike; Rte: Route; Rt: Route; Hwy: Highway; hwy: Highway; Pg: Page; pg: page; pgs: pages
`);

/** "Ste 200", "Rt. 66", "Ocean Pkwy". */
const place = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const name = places.get(core);
  if (name === undefined) return null;
  const next = tokens.nextAfterStop(at);
  const isNumbered = /^#?\d|^[A-Z]$|^\d+[A-Z]$/.test(next?.core ?? '');
  const isOrdinal = /^fl$/i.test(core) && /^\d+(?:st|nd|rd|th)$/i.test(tokens.previous(at)?.core ?? '');
  const isStreet = /^(?:Expy|Fwy|Cir|Trl|Plz|Tpke|[Hh]wy)$/.test(core) && isName(tokens.previous(at)?.core);
  if (!isNumbered && !isStreet && !isOrdinal) return null;
  return {
    parts: [{ core: name, tail: isNumbered ? tail.replace(/^\./, '') : tokens.tailOfAbbreviation(at) }],
  };
};

export const addressParts: Rule = (tokens, at) =>
  /^\p{L}{1,4}(?:\.\p{L})?$/u.test(tokens.at(at).core)
    ? (state(tokens, at) ?? direction(tokens, at) ?? place(tokens, at))
    : null;
