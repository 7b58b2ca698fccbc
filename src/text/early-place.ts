/** Where a segment may end before its sentence or clause does. */
import { needsDictionary } from './characters.js';
import { wordSpans } from './words.js';

/** Words before such a place at least. */
export const earlyWordsMin = 3;
/** UTF-16 units known after such a place: about two words, as far as the sound before it depends on what follows. */
const lookAhead = 6;

const words = (list: string): ReadonlySet<string> => new Set(list.split(' '));

/** Words of more than three letters that lean on the next one, by language. */
const leaning: Readonly<Record<string, ReadonlySet<string>>> = {
  en: words(
    'with from that this these those there your their into onto over under about between than then when while where which ' +
      'because since until though although unless whose what every each some many more most very such just also only ' +
      'will would could should might must have been were they them does upon without within through during per both ' +
      "before after against among around along near either neither i'll i'm i've it's that's you'll you're we'll we're we've they're don't can't won't isn't",
  ),
  de: words(
    'einen einem einer eines eine kein keine keinen keinem keiner mein meine meinen meinem meiner dein deine deinen ihre ihren ' +
      'ihrem ihrer seine seinen seinem seiner unser unsere unseren euer eure dieser diese dieses diesen diesem jeder jede ' +
      'jedes jeden jedem welche welcher welches welchen manche solche alle allen aller viele vielen wenige beim über unter ' +
      'nach ohne durch gegen zwischen wegen trotz seit statt oder aber denn sondern sowie dass weil wenn während ' +
      'obwohl damit bevor nachdem sobald falls auch noch nicht sehr mehr ganz etwa nur schon wird werden wurde wurden kann ' +
      'können muss müssen soll sollen will wollen darf dürfen habe haben hatte hatten sind waren sein eins zwei drei vier fünf',
  ),
  fr: words(
    'dans avec sans pour chez vers sous entre depuis pendant avant après contre selon sauf dont quand comme mais donc puis ' +
      'parce lorsque puisque quoique afin cette cette elle elles nous vous leur leurs notre votre quel quelle quels quelles ' +
      'quelque quelques chaque plusieurs tout toute tous toutes très plus moins aussi assez trop bien encore être avoir sont ' +
      "était étaient sera seront avons avez vont peut peuvent doit doivent fait faire c'est qu'il qu'elle qu'ils qu'on n'est n'a d'un d'une jusqu'à",
  ),
  es: words(
    'para desde hasta hacia sobre entre según durante mediante contra ante bajo tras como cuando donde aunque porque mientras ' +
      'pero sino este esta estos estas ese esos esas aquel aquella aquellos nuestro nuestra nuestros nuestras vuestro ' +
      'unos unas cada todo toda todos todas mucho mucha muchos muchas poco pocos otro otra otros otras algún alguna algunos ' +
      'ningún ninguna cual cuales quien cuyo cuya tan muy más menos también casi están está estaba estaban será serán tiene ' +
      'tienen hay puede pueden debe deben había habían hemos fueron',
  ),
  it: words(
    'della dello delle degli dalla dallo dalle dagli nella nello nelle negli sulla sullo sulle sugli alla allo alle agli ' +
      'come quando dove mentre perché poiché anche però oppure questo questa questi queste quello quella quelli quelle ogni ' +
      'tutto tutta tutti tutte molto molta molti molte altro altra altri altre nostro nostra vostro vostra loro qualche sono ' +
      'erano stato stata hanno aveva avevano viene vengono deve devono senza verso sopra sotto dopo prima durante contro tra ' +
      "fra più meno così dell'altro c'era",
  ),
  pt: words(
    'para pelo pela pelos pelas desde até entre sobre sob contra durante mediante segundo como quando onde porque embora ' +
      'enquanto mas este esta estes estas esse essa esses essas aquele aquela nosso nossa nossos nossas numa duma cada todo ' +
      'toda todos todas muito muita muitos muitas pouco outro outra outros outras algum alguma alguns algumas nenhum qual ' +
      'quem cujo cuja mais menos também quase está estão estava estavam será serão pode podem deve devem havia foram temos',
  ),
  nl: words(
    'een deze dit die dat mijn jouw zijn haar onze hun voor naar over onder tussen tegen zonder door vanaf tijdens sinds ' +
      'volgens omdat want maar toen terwijl hoewel zodat indien elke ieder iedere alle veel weinig meer minder zeer heel ook ' +
      'nog niet geen wordt worden werd werden kunnen moet moeten zullen willen mogen hebben heeft waren welke sommige enkele',
  ),
};

/** In languages without a list: the fewest letters of a word after which a turn is cut. Long words lean less. */
const unlistedLettersMin = 6;
/** There too: the fewest letters of the word after the cut. A shorter one may be a postposition. */
const nextLettersMin = 4;

const edges = /^[^\p{L}\p{N}]+|(?<![^\p{L}\p{N}])[^\p{L}\p{N}]+$/gu;
const opening = /^[\p{Ps}\p{Pi}"'*_]+/u;
const closing = /(?<![\p{Pe}\p{Pf}"'*_])[\p{Pe}\p{Pf}"'*_]+$/u;
const plainWord = /^[\p{L}\p{M}'’-]{4,}$/u;
const startsPlainly = /^[\p{Ps}\p{Pi}"'*_]*\p{L}[^\p{N}\p{Sc}]*$/u;
const capital = /^\p{Lu}/u;

const lettersOf = (bare: string): number => bare.match(/\p{L}/gu)?.length ?? 0;

/** Whether two words in a row may be spoken by two segments. Numbers and names stay whole; short words lean on the next. */
const mayPart = (word: string, next: string, code: string): boolean => {
  if (needsDictionary(word)) return needsDictionary(next);
  const whole = word.replace(opening, '').replace(closing, '');
  if (!plainWord.test(whole) || !startsPlainly.test(next)) return false;
  const bare = word.replace(edges, '');
  const bareNext = next.replace(edges, '');
  if (capital.test(bare) && capital.test(bareNext)) return false;
  if (Object.hasOwn(leaning, code)) return !leaning[code]!.has(bare.toLowerCase().replace('’', "'"));
  return lettersOf(bare) >= unlistedLettersMin && lettersOf(bareNext) >= nextLettersMin;
};

/**
 * The last good place of a text, some words before its end.
 *
 * @param text whole words
 * @param code primary subtag of its language: `de`
 * @returns the UTF-16 offset of the word after the place; `null` if there is none yet
 */
export const earlyPlace = (text: string, code = 'en'): number | null => {
  const spans = wordSpans(text);
  const wordAt = (index: number) => text.slice(spans[index]!.start, spans[index]!.end);
  for (let next = spans.length - 1; next >= earlyWordsMin; next--) {
    const { start } = spans[next]!;
    if (spans.at(-1)!.end - start >= lookAhead && mayPart(wordAt(next - 1), wordAt(next), code)) return start;
  }
  return null;
};

/** Whether a clause that ends with this text is long enough to speak, and its last word is not part of a date or a list of numbers. */
export const isEarlyClause = (text: string): boolean => {
  const spans = wordSpans(text);
  const last = spans.at(-1);
  if (last === undefined || /\p{Nd}/u.test(text.slice(last.start, last.end))) return false;
  // In scripts without white space words are short and not well defined, so characters count.
  return spans.length >= earlyWordsMin || (needsDictionary(text) && text.trim().length > earlyWordsMin + 1);
};
